"""Bounds on a config that nobody has looked at, checked before anything is built from it."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

#: Of the whole config: how deep it nests, how many entries it has and how long a text in it is.
DEEPEST, MOST_ENTRIES, LONGEST_TEXT = 16, 20_000, 4_000

#: A module is built for each block, and in some families for each expert of each block.
MOST_BLOCKS, MOST_EXPERTS, MOST_EXPERTS_OF_ALL_BLOCKS = 1_000, 8_192, 200_000

#: Above any number of a model; twice as much no longer fits a tensor's size.
LARGEST_NUMBER = 2**40

_BLOCKS = re.compile(r"(num|n)_?(hidden_|decoder_|encoder_)?layers?|num_blocks|n_blocks")
_EXPERTS = re.compile(r"(num|n)_.*experts|.*_num_experts|n_experts")


class TooMuch(ValueError):
    """An entry beyond the bounds, named by its key."""


def check_amounts(config: Mapping[str, Any], *, usual: Collection[tuple[str, Any]] = ()) -> None:
    """Check that a config asks for no more than any model has.

    Args:
        config: a config.
        usual: keys and numbers that its class has by default, of which an infinite one is allowed, and a number of
            experts that no class makes a module of each for.

    Raises:
        TooMuch: naming the key and the bound.
    """
    blocks, experts = 1, 0
    for number, (key, value) in enumerate(entries(config)):
        if number > MOST_ENTRIES:
            raise TooMuch(f"more than {MOST_ENTRIES:,} entries")
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            raise TooMuch(f"key {named(key)}: a text of {len(value):,} characters, more than {LONGEST_TEXT:,}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if isinstance(value, float) and not math.isfinite(value):
            if (key, value) in usual:
                continue
            raise TooMuch(f"key {named(key)}: no finite number")
        if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
            raise TooMuch(f"key {named(key)}: a number of {value.bit_length()} bits, larger than any model has")
        if _BLOCKS.fullmatch(key):
            _at_most(key, value, MOST_BLOCKS)
            blocks = max(blocks, int(value))
        elif _EXPERTS.fullmatch(key) and not (value > MOST_EXPERTS and (key, value) in usual):
            _at_most(key, value, MOST_EXPERTS)
            experts = max(experts, int(value))
    if blocks * experts > MOST_EXPERTS_OF_ALL_BLOCKS:
        raise TooMuch(f"{blocks:,} blocks of {experts:,} experts: more than {MOST_EXPERTS_OF_ALL_BLOCKS:,} in all")


def check_depth(config: Any) -> None:
    """Check how deep a config nests; without recursion, so that no depth is too deep for the check itself.

    Raises:
        TooMuch: naming the bound.
    """
    level = [config]
    for _ in range(DEEPEST):
        level = [value for entry in level if isinstance(entry, dict | list)
                 for value in (entry.values() if isinstance(entry, dict) else entry)]
        if not level:
            return
    raise TooMuch(f"nested more than {DEEPEST} deep")


def entries(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every entry at every depth with its key; an entry of a list has the list's."""
    for name, value in config.items():
        yield from _entries_of(str(name), value)


def _entries_of(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    yield key, value
    if isinstance(value, dict):
        yield from entries(value)
    elif isinstance(value, list):
        for entry in value:
            yield from _entries_of(key, entry)


def named(key: str) -> str:
    """A key for a message: quoted, on one line and not longer than a line."""
    return repr(key if len(key) <= 60 else f"{key[:57]}...")


def _at_most(key: str, value: float, most: int) -> None:
    if value > most:
        raise TooMuch(f"key {named(key)}: {value:,} is more than the {most:,} that a page is made for")
