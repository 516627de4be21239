"""The captured facts of two checkpoints against facts written down beforehand.

``expected/*.json`` holds, per host and value, ``Layout @ location``, with ``!`` where a load may lack the value; the
numbers of sizes and config; and the printout, folded: a line ``= name`` stands for that value's line without its
description, ``<layers>`` for the stack, and each entry of the stack for one of the blocks written out once.

A location may be spelled otherwise where it is the same place. The expected facts call a module's own output
``output``; captured ones say which element or field of it holds the tensor: ``logits`` is ``output.logits``, because
the causal model returns an object with fields.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "expected"
EXPECTED = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
OWN_OUTPUT = re.compile(r"output(\[0\]|\.\w+)?")
HOST_VALUES = [(family, host) for family, facts in EXPECTED.items() for host in facts["hosts"]]


@pytest.mark.parametrize(("family", "host"), HOST_VALUES)
def test_the_values_of_a_host(captured: Any, family: str, host: str) -> None:
    expected = EXPECTED[family]["hosts"][host]
    found = next(facts for facts in captured(EXPECTED[family]["checkpoint"]).hosts if facts.host == host)
    assert found.classes == expected["classes"]
    assert {value.name for value in found.values} == set(expected["values"])
    for value in found.values:
        layout, _, place = expected["values"][value.name].partition(" @ ")
        location, _, mark = place.partition(" ")
        assert (value.layout or "scalar") == layout, value.name
        assert " ".join(value.dims) == EXPECTED[family]["layouts"].get(layout, ""), value.name
        assert (value.condition is not None) == (mark == "!"), value.name
        if value.location != location:
            assert OWN_OUTPUT.fullmatch(location), value.name
            assert OWN_OUTPUT.fullmatch(value.location), value.name
            assert (family, value.name, value.location) in {
                ("doge", "logits", "output.logits"), ("laguna", "logits", "output.logits"),
                ("doge", "attention_output", "output[0]"), ("laguna", "attention_output", "output[0]"),
            }


@pytest.mark.parametrize("family", EXPECTED)
def test_the_numbers(captured: Any, family: str) -> None:
    facts = captured(EXPECTED[family]["checkpoint"])
    numbers = EXPECTED[family]["numbers"]
    assert facts.sizes == numbers["sizes"]
    for key, number in numbers["config"].items():
        assert facts.config[key] == ([number] if key == "architectures" else number), key


def unfolded(expected: dict[str, Any]) -> list[str]:
    """The printout's lines, values without their descriptions."""
    layouts = {
        (value, layout) for host in expected["hosts"].values()
        for value, layout in ((name, text.partition(" @ ")[0]) for name, text in host["values"].items())
    }
    typed = {
        value: f"({value}) -> {layout} [{expected['layouts'][layout]}]" if layout != "scalar" else f"({value})"
        for value, layout in layouts
    }

    def line(text: str) -> str:
        indent, mark, value = text.partition("= ")
        return indent + typed[value] if mark and not indent.strip() else text

    lines: list[str] = []
    for text in expected["printout"]:
        if text != "<layers>":
            lines.append(line(text))
            continue
        for entry in expected["stack"]:
            title, _, block = entry.rpartition(" ")
            lines += [f"    {title}", *(f"    {line(inner)}" for inner in expected["blocks"][block])]
    return lines


def without_description(line: str) -> str:
    return re.sub(r"^(\s*\((?:input_size\)|\w+\) -> \w+ \[[^\]]*\])): .*$", r"\1", line)


@pytest.mark.parametrize("family", EXPECTED)
def test_the_printout_line_by_line(captured: Any, family: str) -> None:
    expected = unfolded(EXPECTED[family])
    found = [without_description(line) for line in captured(EXPECTED[family]["checkpoint"]).printout]
    for number, (one, other) in enumerate(zip(expected, found, strict=False), start=1):
        assert one == other, f"line {number}"
    assert len(expected) == len(found)


def test_as_many_lines_as_were_written_down() -> None:
    assert {family: len(unfolded(expected)) for family, expected in EXPECTED.items()} == {"doge": 54, "laguna": 1023}
