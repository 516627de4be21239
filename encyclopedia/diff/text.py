"""A comparison as lines of text."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pydantic import JsonValue

from encyclopedia.diff.compare import PRINTOUT
from encyclopedia.diff.records import SORTS, Change, Difference
from encyclopedia.facts import Versions

#: Longest shown form of one side of a change, in letters.
LONGEST = 100
#: Most lines of a printout that are shown of each side.
_MOST_LINES = 4


def lines_of(difference: Difference) -> Iterator[str]:
    """Every line, a heading per family."""
    yield f"from {versions_of(difference.old)} to {versions_of(difference.new)}"
    changed = len(difference.changed)
    yield (f"{changed} {'family' if changed == 1 else 'families'} changed, {len(difference.unchanged)} did not, "
           f"{len(difference.added)} came, {len(difference.removed)} went")
    for word, names in (("came", difference.added), ("went", difference.removed)):
        if names:
            yield f"{word}: {', '.join(names)}"
    for family in difference.changed:
        yield ""
        yield family.model_type
        yield from (f"  {line}" for change in family.changes for line in change_lines(change))


def versions_of(versions: Versions) -> str:
    """The versions in a few words."""
    return f"transformers {versions.transformers} (torch {versions.torch}, nnsight {versions.nnsight})"


def change_lines(change: Change) -> Iterator[str]:
    """A change in one line, or in several where lines of a printout came or went."""
    of = f" [{', '.join(change.checkpoints)}]" if change.checkpoints else ""
    head = f"{SORTS[change.sort].lower()}: {change.what}"
    if change.what == PRINTOUT and isinstance(change.old, list) and isinstance(change.new, list):
        yield f"{head}{of}"
        for sign, rows in zip("-+", (change.old, change.new), strict=True):
            yield from (f"  {sign} {row}" for row in rows[:_MOST_LINES])
            if len(rows) > _MOST_LINES:
                yield f"  {sign} and {len(rows) - _MOST_LINES} more"
        return
    yield f"{head}: {shown(change.old)} -> {shown(change.new)}{of}"


def shown(value: JsonValue) -> str:
    """One side of a change, cut where it is long."""
    text = "nothing" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST - 1]}…"
