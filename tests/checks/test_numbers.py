"""No number of a config is typed in a note's prose."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from encyclopedia.capture.numbers import typed_numbers
from encyclopedia.capture.snippets import check_notes
from encyclopedia.checkpoints import families_recorded, read_family
from encyclopedia.facts import CheckpointFacts, FamilyFacts
from encyclopedia.notes import NotesError

NOTES = Path(__file__).parents[2] / "site_src" / "notes"


def family(model_type: str) -> FamilyFacts:
    """A family with nothing but its recorded configs."""
    checkpoints = [
        CheckpointFacts.model_construct(id=record.id, config=record.config, sizes={}, parameters=None)
        for record in read_family(model_type)[0]
    ]
    return FamilyFacts.model_construct(model_type=model_type, checkpoints=checkpoints, reference=checkpoints[0].id)


def found(text: str, model_type: str = "laguna") -> list[tuple[int, str]]:
    return [(number.line, number.text) for number in typed_numbers(text, family(model_type))]


@pytest.mark.parametrize("model_type", [name for name in families_recorded() if (NOTES / f"{name}.md").exists()])
def test_the_notes_have_none(model_type: str) -> None:
    path = NOTES / f"{model_type}.md"
    assert found(path.read_text(encoding="utf-8"), model_type) == []


@pytest.mark.parametrize("text", [
    "The stream is 2048 wide.",
    "There are 100,352 words (and more).",
    "A 512-token window slides.",
    "Its window is 512.",
    "The base is 500000, or **10000**.",
    "An epsilon, a factor of 32.0; a table\n| heads |\n|---|\n| 48 |",
])
def test_a_typed_number_is_found(text: str) -> None:
    assert found(text)


def test_where_it_stands_and_what_holds_it_are_said() -> None:
    number, *_ = typed_numbers("One line.\n\n```python\nx = 512\n```\n\nIts window is 512.", family("laguna"))
    assert (number.line, number.text) == (7, "512")
    assert "poolside/Laguna-XS-2.1: sliding_window" in number.keys


@pytest.mark.parametrize("text", [
    "The stream is {{ ref.sizes.hidden_size }} wide.",
    '{{ measured("512", of="a count", on="x", known_from="y") }} of them',
    "`sliding_window=512` and ``2048``",
    "```python\nwidth = 2048\n```",
    "~~~text\n2048\n~~~",
    "[a page](https://example.org/512) and https://example.org/2048",
    "Laguna-2048 and float512, v512, 2048x and 1.512",
    "since transformers 48, from block 48 on",
    "all 8 of them, 4 by 4",
    "a number no config has: 1234",
])
def test_what_is_not_typed_prose_is_left_alone(text: str) -> None:
    assert found(text) == []


def test_the_build_refuses_it() -> None:
    expected = ("site_src/notes/laguna.md:3: expected an expression for the number that is poolside/Laguna-XS-2.1: "
                "sliding_window, found 512 typed in the text")
    with pytest.raises(NotesError, match=re.escape(expected)):
        check_notes("### Windows\n\nIts window is 512.\n", family("laguna"), [])
