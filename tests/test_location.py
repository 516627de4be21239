"""The location grammar: what it accepts comes back as it was spelled, and nothing else is accepted."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from encyclopedia import location
from encyclopedia.location import Location, LocationError

RESERVED = {"source", "output", "input", "inputs"}

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,11}", fullmatch=True).filter(lambda name: name not in RESERVED)
numbers = st.integers(min_value=0, max_value=99)
handles = st.one_of(
    st.just("output"),
    st.just("input"),
    numbers.map("output[{}]".format),
    names.map("output.{}".format),
    st.one_of(numbers, names).map("inputs[{}]".format),
)


@st.composite
def spellings(draw: st.DrawFn) -> str:
    climbs = "../" * draw(st.integers(min_value=0, max_value=2))
    modules = draw(st.lists(names, max_size=3))
    operations = [step for name in draw(st.lists(names, max_size=3)) for step in ("source", name)]
    return climbs + ".".join([*modules, *operations, draw(handles)])


@given(spellings())
@example("derived")
@example("router.source.F_linear_0.output")
@example("experts.source.experts_forward_1.source.weighted_out_view_0.output")
@example("../norm.output")
def test_a_location_comes_back_as_it_was_spelled(text: str) -> None:
    parsed = Location.parse(text)
    assert str(parsed) == text
    assert Location.parse(str(parsed)) == parsed


@given(spellings())
def test_every_location_has_a_phrase(text: str) -> None:
    phrase = Location.parse(text).phrase()
    assert phrase
    assert not phrase.endswith((".", " "))
    assert "  " not in phrase


@given(spellings())
def test_modules_and_operations_are_the_steps(text: str) -> None:
    parsed = Location.parse(text)
    entered = [step for name in parsed.operations for step in ("source", name)]
    assert parsed.steps == (*parsed.modules, *entered)


@given(st.text(max_size=40))
@example("")
@example("output\n")
@example(" output")
@example("output.3")
@example("output.logits[0]")
@example("output[0].logits")
@example("output[-1]")
@example("output[logits]")
@example("input[0]")
@example("inputs")
@example("inputs[]")
@example("inputs[01]")
@example("inputs[²]")
@example("inputs[0][1]")
@example("embed_tokens")
@example("embed_tokens.")
@example(".output")
@example("embed_tokens..output")
@example("a/../output")
@example("..norm.output")
@example("./output")
@example("output.output.output")
@example("source.output")
@example("source.source.softmax_0.output")
@example("source.interface_1.softmax_0.output")
@example("é.output")
@example("<b>.output")
def test_junk_is_refused_by_name(text: str) -> None:
    parsed = parsed_or_refused(text)
    assert str(parsed) == text if isinstance(parsed, Location) else repr(text) in parsed


def parsed_or_refused(text: str) -> Location | str:
    """The location, or the error's message."""
    try:
        return Location.parse(text)
    except LocationError as error:
        return str(error)


@pytest.mark.parametrize("text", ["", "output\n", "output.3", "output.logits[0]", "input[0]", "inputs", "inputs[²]",
                                  "source.output", "source.a_0.b_0.output", "a/../output", "output[-1]"])
def test_what_looks_like_a_location_and_is_none(text: str) -> None:
    with pytest.raises(LocationError, match="ends in output, input or inputs"):
        Location.parse(text)


@pytest.mark.parametrize(("text", "phrase"), [
    ("derived", "computed from other values"),
    ("output", "the output of the module itself"),
    ("input", "the input of the module itself"),
    ("output[0]", "element 0 of the output of the module itself"),
    ("output.logits", "the field logits of the output of the module itself"),
    ("embed_tokens.output", "the output of the child module embed_tokens"),
    ("../norm.output", "the output of the sibling module norm"),
    ("../output", "the output of the parent module"),
    ("experts.inputs[2]", "element 2 of the arguments of the child module experts"),
    ("inputs[attention_mask]", "argument attention_mask of the arguments of the module itself"),
    ("source.hidden_states_2.output", "the output of hidden_states_2, inside the forward"),
    ("source.attention_interface_1.source.nn_functional_softmax_0.input",
     "the input of nn_functional_softmax_0, inside attention_interface_1, inside the forward"),
    ("router.source.F_linear_0.output", "the output of F_linear_0, inside the child module router's forward"),
])
def test_phrases(text: str, phrase: str) -> None:
    assert Location.parse(text).phrase() == phrase


def test_the_docstrings_examples_run() -> None:
    assert doctest.testmod(location).failed == 0
