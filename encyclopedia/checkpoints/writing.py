"""Recorded checkpoints as the text of their file: a line per key of a config."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

#: Keys of a checkpoint whose entries stand on lines of their own.
_SPREAD = ("config", "known_from")


def text_of(family: Mapping[str, JsonValue]) -> str:
    """The file of a family, from what :func:`json.loads` makes of it."""
    checkpoints = family["checkpoints"]
    assert isinstance(checkpoints, list)
    entries = ",\n".join("\n".join(_checkpoint(entry)) for entry in checkpoints if isinstance(entry, dict))
    head = "".join(f"  {_dumped(key)}: {_dumped(value)},\n" for key, value in family.items() if key != "checkpoints")
    return f'{{\n{head}  "checkpoints": [\n{entries}\n  ]\n}}\n'


def _checkpoint(entry: Mapping[str, JsonValue]) -> Iterator[str]:
    yield "    {"
    yield from _lines(entry, 6)
    yield "    }"


def _lines(entries: Mapping[str, JsonValue], indent: int) -> Iterator[str]:
    for position, (key, value) in enumerate(entries.items()):
        comma = "," if position < len(entries) - 1 else ""
        head = f"{' ' * indent}{_dumped(key)}: "
        if isinstance(value, dict) and value and (key in _SPREAD or _is_nested(value)):
            yield f"{head}{{"
            yield from _lines(value, indent + 2)
            yield f"{' ' * indent}}}{comma}"
        else:
            yield f"{head}{_dumped(value)}{comma}"


def _is_nested(entries: Mapping[str, JsonValue]) -> bool:
    return any(isinstance(value, dict) for value in entries.values())


def _dumped(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
