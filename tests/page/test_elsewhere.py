"""Names elsewhere on a page: one function for all of them, each in its own words, once for checkpoints that agree."""

from __future__ import annotations

import html as entities
import json
import re
from pathlib import Path

import pytest

from encyclopedia.facts import FamilyFacts, HookFacts, HostFacts, LensFacts, NativePlace, ValueFacts
from encyclopedia.hooks import filled, hook_snippet
from encyclopedia.page.api import api_view
from encyclopedia.page.block import block_view
from encyclopedia.page.elsewhere import CHOICES, FIRST_CALL, ElsewhereName, names_elsewhere
from encyclopedia.page.names import name_lines, names_table
from encyclopedia.page.render import render_family
from tests.page.small_facts import checkpoint, family, value

TEMPLATES = Path(__file__).parents[2] / "templates"
SCORES, OUTPUT = "model.layers[i].self_attn.attention_scores", "model.layers[i].self_attn.attention_output"
NOT_SEEN = "no module makes it"


def place(kinds: list[int], module: str, location: str, **changes) -> NativePlace:
    return NativePlace(**{"kinds": kinds, "module": module, "location": location, "held": None, "hook": None,
                          "no_hook": None, "no_nnsight": None, **changes})


def attention(path: str = "model.h[i].attn") -> HostFacts:
    hook = HookFacts(module=f"{path}.c_proj", tensor="output", held="batch seq (heads width)")
    dims = ["batch", "heads", "seq", "width"]
    values: list[ValueFacts] = [
        value("attention_scores", "attention", [[1, 2, 8, 8], [1, 3, 8, 8]], layout="Pattern", dims=dims, native=[
            place([0, 1], path, "source.f_0.inputs[1]", no_hook=NOT_SEEN, held="(batch seq) x")]),
        value("attention_output", "attention", [[1, 2, 8, 4], [1, 3, 8, 5]], dims=dims, native=[
            place([0], path, "source.f_0.output", hook=hook),
            place([1], path, "output[0]", hook=HookFacts(module=path, tensor="output[0]", held=None),
                  no_nnsight="not found there")]),
        value("attention_values", "attention", [None, [1, 8, 4]], native=[]),
        value("probs", "attention", [[1, 8, 4]] * 2, location="derived"),
    ]
    return HostFacts(name="self_attn", host="model.layers[i].self_attn", classes=["Attention"], values=values,
                     native=[path, path])


def named(*lens: LensFacts, paths: tuple[str, str] = ("model.h[i].attn", "model.h[i].attn")) -> FamilyFacts:
    first, second = paths
    return family(transformer_lens=list(lens), checkpoints=[
        checkpoint(hosts=[attention(first)]), checkpoint("maker/Tiny-2", hosts=[attention(second)])])


def names(facts: FamilyFacts, name: str, kind: int = 0) -> dict[str, ElsewhereName]:
    found = names_elsewhere(facts, facts.checkpoints[0], "self_attn", name, kind)
    return {each.vocabulary: each for each in found}


def test_a_value_that_no_hook_reads_says_why():
    found = names(named(), "attention_scores")
    assert list(found) == ["transformers", "hook", "nnsight"]
    assert (found["transformers"].text, found["transformers"].note) == ("model.h[i].attn", "inside its forward")
    assert (found["hook"].text, found["hook"].note) == (None, NOT_SEEN)
    assert found["nnsight"].text == "model.h[i].attn.source.f_0.inputs[0][1]"
    assert found["nnsight"].note == "held there as [(batch seq) x]"


def test_a_hook_on_another_module_names_that_module_and_what_was_compared():
    found = names(named(), "attention_output")
    assert (found["transformers"].text, found["transformers"].note) == ("model.h[i].attn.c_proj", "its output")
    assert found["hook"].note == FIRST_CALL
    assert ".unflatten(2, (-1, {width})).transpose(1, 2)" in (found["hook"].text or "")


def test_kinds_differ_and_a_name_that_did_not_hold_has_its_reason():
    found = names(named(), "attention_output", kind=1)
    assert (found["transformers"].text, found["transformers"].note) == ("model.h[i].attn", "element 0 of its output")
    assert found["hook"].note is None
    assert (found["nnsight"].text, found["nnsight"].note) == (None, "not found there")


def test_where_there_is_nothing_nothing_is_said():
    assert names(named(), "attention_values") == {}
    assert names(named(), "attention_values", kind=1) == {}
    assert names(named(), "no_such_value") == {}
    assert names_elsewhere(named(), named().checkpoints[0], "mlp", "mlp_output", 0) == ()


def test_a_computed_value_says_so():
    found = names(named(), "probs")
    assert list(found) == ["transformers", "nnsight"]
    assert all(each.text is None and "computed" in (each.note or "") for each in found.values())


def test_the_hook_that_is_the_value_is_preferred_and_a_difference_is_stated():
    def lens(hook: str, same: bool) -> LensFacts:
        return LensFacts(host="self_attn", value="attention_scores", hook=hook, same=same,
                         difference=None if same else "before the mask")

    both = names(named(lens("blocks.{i}.attn.a", False), lens("blocks.{i}.attn.b", True)), "attention_scores")
    assert (both["transformer_lens"].text, both["transformer_lens"].note) == ("blocks.{i}.attn.b", None)
    one = names(named(lens("blocks.{i}.attn.a", False)), "attention_scores")
    assert (one["transformer_lens"].text, one["transformer_lens"].note) == (
        "blocks.{i}.attn.a", "not the same: before the mask")
    other = names(named(lens("blocks.{i}.attn.a", False)), "attention_output")
    assert (other["transformer_lens"].text, other["transformer_lens"].note) == (None, "no such name in TransformerLens")
    assert "transformer_lens" not in names(named(), "attention_scores")


@pytest.mark.parametrize(("acts", "note"), [
    (True, None),
    (False, "an edit of it does not reach the logits"),
    (None, "TransformerLens fails where it is edited"),
])
def test_whether_an_edit_acts_is_said(acts: bool | None, note: str | None):
    lens = LensFacts(host="self_attn", value="attention_scores", hook="h", same=True, difference=None, acts=acts)
    assert names(named(lens), "attention_scores")["transformer_lens"].note == note


def test_lines_are_for_one_block_with_its_own_sizes():
    facts = named(LensFacts(host="self_attn", value="attention_output", hook="blocks.{i}.hook_attn_out", same=True,
                            difference=None))
    lines = {line.vocabulary: line.text for line in name_lines(facts, facts.checkpoints[0], OUTPUT, 0, 2)}
    assert lines["transformers"] == "model.h[2].attn.c_proj"
    assert lines["transformer_lens"] == "blocks.2.hook_attn_out"
    assert "(-1, 4)" in (lines["hook"] or "")
    assert name_lines(facts, facts.checkpoints[0], "model.layers[i].self_attn", 0, 2) == ()


def test_the_table_says_once_what_all_checkpoints_agree_on():
    table = names_table(named())
    assert table["checkpoints"] == ["maker/Tiny-1", "maker/Tiny-2"]
    [scores] = table["names"][SCORES]
    assert "at" not in scores
    assert [variant["at"] for variant in table["names"][OUTPUT]] == [[[0, [0]], [1, [0]]], [[0, [1]], [1, [1]]]]
    other = names_table(named(paths=("model.h[i].attn", "model.layers[i].attn")))
    assert [variant["at"] for variant in other["names"][SCORES]] == [[[0, [0, 1]]], [[1, [0, 1]]]]


def test_the_table_has_the_modules_that_have_cards():
    table = names_table(named())["names"]
    assert table["model.layers[i].self_attn"] == [
        {"transformers": ["model.h[i].attn"], "nnsight": ["model.h[i].attn"]}]
    assert "model.layers[i].mlp" not in table


def test_only_the_reference_carries_its_names_in_its_table():
    facts = named()
    first, second = (api_view(each, facts) for each in facts.checkpoints)
    assert [bool(row.elsewhere) for row in first.hosts[0].rows] == [True, True, False, True]
    assert not any(row.elsewhere for row in second.hosts[0].rows)
    assert block_view(facts.checkpoints[0], facts).elsewhere
    assert not block_view(facts.checkpoints[1], facts).elsewhere


def test_the_page_has_the_choice_the_table_and_the_code():
    page = render_family(named(), "", TEMPLATES)
    options = re.findall(r'<option value="(\w+)">', page)
    assert options == list(CHOICES) == ["standard", "transformers", "nnsight", "transformer_lens"]
    [script] = re.findall(r"<script[^>]* data-names[^>]*>(.*?)</script>", page, re.DOTALL)
    assert json.loads(script) == json.loads(json.dumps(names_table(named())))
    hook = HookFacts(module="model.h[i].attn.c_proj", tensor="output", held="batch seq (heads width)")
    text = filled(hook_snippet("attention_output", hook, ("batch", "heads", "seq", "width")).text, 0, {"width": 4})
    assert text in {entities.unescape(found) for found in re.findall(r'<pre tabindex="0">(.*?)</pre>', page, re.DOTALL)}


@pytest.mark.parametrize("number", ["{width}", "{i}"])
def test_a_length_that_is_not_known_is_an_error(number: str):
    if number == "{i}":
        assert filled(f"blocks.{number}.x", 7, {}) == "blocks.7.x"
    else:
        with pytest.raises(KeyError):
            filled(number, 0, {})
