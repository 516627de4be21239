"""Block numbers as ranges: ``[1, 2, 3, 5]`` becomes ``1–3, 5``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

#: First and last number, both included.
Span = tuple[int, int]

# A longer regular series is shown by its beginning and its end.
_SHOWN = 5
_BEGINNING = 3


def spans(numbers: Iterable[int]) -> list[Span]:
    """``numbers`` as runs of neighbours, in ascending order."""
    found: list[Span] = []
    for number in sorted(set(numbers)):
        if found and found[-1][1] + 1 == number:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def ranges(numbers: Iterable[int]) -> str:
    """``numbers`` as text; a long regular series is cut in its middle: ``0, 4, 8, … 36``."""
    found = spans(numbers)
    texts = [str(first) if first == last else f"{first}–{last}" for first, last in found]
    if len(texts) > _SHOWN and _regular(found):
        return f"{', '.join(texts[:_BEGINNING])}, … {texts[-1]}"
    return ", ".join(texts)


def blocks(numbers: Sequence[int]) -> str:
    """``numbers`` with the word in front: ``block 0``, ``blocks 1–39``."""
    return f"{'block' if len(numbers) == 1 else 'blocks'} {ranges(numbers)}"


def _regular(found: Sequence[Span]) -> bool:
    steps = {after[0] - before[0] for before, after in pairwise(found)}
    # The last run may be cut short by the end of the stack.
    lengths = {last - first for first, last in found[:-1]}
    return len(steps) == 1 and len(lengths) <= 1
