"""Numbers in the prose of notes: one that a config holds is filled in from the facts, never typed.

Typed, it would stay when the config changes, and nothing would notice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from encyclopedia.facts import FamilyFacts

#: Numbers up to here count things in a sentence.
SMALL = 8

#: Whatever is not prose: fences, code spans, expressions, addresses.
_NOT_PROSE = re.compile(
    r"^ *(?P<fence>`{3,}|~{3,}).*?^ *(?P=fence)[`~]* *$|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"
    r"|\{\{.*?\}\}|\{%.*?%\}|\]\([^)\s]*\)|https?://\S+",
    re.DOTALL | re.MULTILINE,
)

#: A number that is not part of a name, as in Doge-260M, XS-2.1 or float32.
_NUMBER = re.compile(r"(?<![\w.,/-])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w/]|[.,]\d)")

#: Words after which a number is a name: of a release, or of a block.
_NAMING = re.compile(r"(?:transformers|torch|nnsight|Llama|block|blocks) $")


@dataclass(frozen=True)
class TypedNumber:
    """A number in the prose that is also in a config.

    Attributes:
        line: counted from 1.
        text: as it stands there.
        keys: the config's keys that hold it, each as ``checkpoint: key``.
    """

    line: int
    text: str
    keys: tuple[str, ...]


def typed_numbers(notes: str, family: FamilyFacts) -> Iterator[TypedNumber]:
    """The numbers in the prose of ``notes`` that a config of ``family`` holds.

    Args:
        notes: the notes file, before anything in it is filled in.
        family: the family's facts.
    """
    held: dict[float, list[str]] = {}
    for checkpoint in family.checkpoints:
        counted = {} if checkpoint.parameters is None else checkpoint.parameters.model_dump(mode="json")
        entries = {**checkpoint.config, "sizes": checkpoint.sizes, "parameters": counted}
        for key, number in _numbers(entries):
            if number > SMALL:
                held.setdefault(number, []).append(f"{checkpoint.id}: {key}")
    prose = _NOT_PROSE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), notes)
    for found in _NUMBER.finditer(prose):
        keys = held.get(float(found[0].replace(",", "")))
        if keys and not _NAMING.search(prose[: found.start()].replace("\n", " ")):
            yield TypedNumber(prose.count("\n", 0, found.start()) + 1, found[0], tuple(keys))


def _numbers(value: Any, key: str = "") -> Iterator[tuple[str, float]]:
    """Every number under ``value`` with the path to it; an entry per block counts once."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _numbers(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        for inner in dict.fromkeys(element for element in value if isinstance(element, int | float)):
            yield from _numbers(inner, key)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield key, float(value)
