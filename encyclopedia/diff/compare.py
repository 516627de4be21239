"""Comparing the facts of families, old with new."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from encyclopedia.diff.records import SORTS, Change, Difference, FamilyChanges
from encyclopedia.facts import CheckpointFacts, FamilyFacts, KindFacts, ValueFacts

Entries = Mapping[str, JsonValue]
Failures = Mapping[str, Sequence[str]]

_NONE: Failures = {}

#: What a change of lines in the printout is about.
PRINTOUT = "printout"


class NothingToCompare(Exception):
    """One side has no family."""


def compare_families(
    old: Sequence[FamilyFacts], new: Sequence[FamilyFacts], *,
    old_failures: Failures = _NONE, new_failures: Failures = _NONE,
) -> Difference:
    """What is otherwise in ``new``.

    Args:
        old: the facts as they were.
        new: the facts as they are.
        old_failures: what failed while the old ones were captured, by family.
        new_failures: the same of the new ones.

    Raises:
        NothingToCompare: where either side is empty.
    """
    if not old or not new:
        raise NothingToCompare(f"the {'old' if not old else 'new'} facts have none of the families: capture them with "
                               "`encyclopedia facts`, or name others")
    before, after = ({family.model_type: family for family in side} for side in (old, new))
    both = [name for name in after if name in before]
    changes = {name: (*changes_of(before[name], after[name]),
                      *_failing(old_failures.get(name, ()), new_failures.get(name, ()))) for name in both}
    return Difference(
        old=old[0].versions,
        new=new[0].versions,
        added=tuple(name for name in after if name not in before),
        removed=tuple(name for name in before if name not in after),
        unchanged=tuple(name for name in both if not changes[name]),
        changed=tuple(FamilyChanges(model_type=name, changes=changes[name]) for name in both if changes[name]),
    )


def changes_of(old: FamilyFacts, new: FamilyFacts) -> tuple[Change, ...]:
    """What changed in a family, in the order of :data:`~encyclopedia.diff.records.SORTS`.

    A change that several checkpoints share is told once, with all of their ids.
    """
    found: dict[tuple[str, str, str, str], tuple[Change, list[str]]] = {}
    for checkpoint, change in _changes(old, new):
        key = (change.sort, change.what, repr(change.old), repr(change.new))
        found.setdefault(key, (change, []))[1].extend([checkpoint] if checkpoint else [])
    told = [change.model_copy(update={"checkpoints": tuple(ids)}) for change, ids in found.values()]
    order = list(SORTS)
    return tuple(sorted(told, key=lambda change: order.index(change.sort)))


def _changes(old: FamilyFacts, new: FamilyFacts) -> Iterator[tuple[str | None, Change]]:
    for change in _entries("state", {"the family": _failure(old)}, {"the family": _failure(new)}):
        yield None, change
    before, after = ({checkpoint.id: checkpoint for checkpoint in side.checkpoints} for side in (old, new))
    for name in dict.fromkeys((*before, *after)):
        one, other = before.get(name), after.get(name)
        if one is None or other is None or not (one.available and other.available):
            states = [None if side is None else "shown" if side.available else side.reason for side in (one, other)]
            yield from ((None, change) for change in _entries("state", {name: states[0]}, {name: states[1]}))
            continue
        yield from ((name, change) for change in checkpoint_changes(one, other))


def _failing(old: Sequence[str], new: Sequence[str]) -> Iterator[Change]:
    """Failures that only one side has."""
    for line in old:
        if line not in new:
            yield Change(sort="check", what="a failure is gone", old=line, new=None)
    for line in new:
        if line not in old:
            yield Change(sort="check", what="began to fail", old=None, new=line)


def _failure(family: FamilyFacts) -> str:
    return "verified" if family.failure is None else f"{family.failure.step}: {family.failure.reason}"


def checkpoint_changes(old: CheckpointFacts, new: CheckpointFacts) -> Iterator[Change]:
    """What changed in a checkpoint that both show."""
    yield from _entries("module", _modules(old), _modules(new))
    yield from _printouts(old, new)
    yield from _entries("size", old.sizes, new.sizes)
    yield from _entries("parameters", _parameters(old), _parameters(new))
    yield from _entries("kind", _kinds(old), _kinds(new))
    yield from _values(old, new)
    yield from _entries("identity", _identities(old), _identities(new))
    yield from _entries("check", _left_out(old), _left_out(new))
    yield from _entries("check", _unchecked(old, new), _unchecked(new, old))
    yield from _entries("quirk", dict.fromkeys(old.quirks, "there"), dict.fromkeys(new.quirks, "there"))
    yield from _entries("config", old.config, new.config)


def _entries(sort: str, old: Entries, new: Entries) -> Iterator[Change]:
    """The keys whose entries are not the same."""
    for key in dict.fromkeys((*old, *new)):
        if old.get(key) != new.get(key):
            yield Change(sort=sort, what=key, old=old.get(key), new=new.get(key))


def _modules(checkpoint: CheckpointFacts) -> dict[str, JsonValue]:
    """The class of each native module that stands in a kind of block, and which class of ours serves it."""
    classes: dict[str, JsonValue] = {
        f"{host} of {_where(kind)}": name for kind in checkpoint.kinds for host, name in kind.modules.items()}
    served = {f"{entry.native} as {entry.host}": entry.serves for entry in checkpoint.module_classes}
    return {**classes, **served}


def _printouts(old: CheckpointFacts, new: CheckpointFacts) -> Iterator[Change]:
    """The lines that only one printout has, of those that tell native modules and not values."""
    before, after = ([line.strip() for line in side.printout if ") -> " not in line] for side in (old, new))
    gone, came = [line for line in before if line not in after], [line for line in after if line not in before]
    if gone or came:
        yield Change(sort="module", what=PRINTOUT, old=list[JsonValue](gone), new=list[JsonValue](came))


def _parameters(checkpoint: CheckpointFacts) -> dict[str, JsonValue]:
    counts = checkpoint.parameters
    return {} if counts is None else {"total": counts.total, "active": counts.active}


def _kinds(checkpoint: CheckpointFacts) -> dict[str, JsonValue]:
    return {f"{_where(kind)}": {"label": kind.label, **kind.sizes} for kind in checkpoint.kinds}


def _identities(checkpoint: CheckpointFacts) -> dict[str, JsonValue]:
    return {_where(kind): kind.identity for kind in checkpoint.kinds}


def _where(kind: KindFacts) -> str:
    first, last = kind.blocks[0], kind.blocks[-1]
    return f"block {first}" if first == last else f"blocks {first} to {last} ({len(kind.blocks)})"


def _left_out(checkpoint: CheckpointFacts) -> dict[str, JsonValue]:
    return {f"{entry.host}.{entry.name} on {entry.native}": entry.reason for entry in checkpoint.unconfirmed}


def _unchecked(checkpoint: CheckpointFacts, other: CheckpointFacts) -> dict[str, JsonValue]:
    """The values that no run confirmed, of those that ``other`` has as well."""
    there = _by_expression(other)
    return {name: "not checked" for name, value in _by_expression(checkpoint).items()
            if not value.checked and name in there}


def _values(old: CheckpointFacts, new: CheckpointFacts) -> Iterator[Change]:
    before, after = _by_expression(old), _by_expression(new)
    for name in dict.fromkeys((*before, *after)):
        one, other = before.get(name), after.get(name)
        if one is None or other is None:
            places = [None if side is None else side.location for side in (one, other)]
            yield Change(sort="value", what=name, old=places[0], new=places[1])
            continue
        yield from _entries("location", {name: one.location}, {name: other.location})
        yield from _entries("layout", {name: _shape(one)}, {name: _shape(other)})
        yield from _entries("condition", {name: one.condition}, {name: other.condition})


def _by_expression(checkpoint: CheckpointFacts) -> dict[str, ValueFacts]:
    return {f"{host.host}.{value.name}": value for host in checkpoint.hosts for value in host.values}


def _shape(value: ValueFacts) -> JsonValue:
    shapes: list[JsonValue] = [None if shape is None else list[JsonValue](shape) for shape in value.shapes]
    return {"layout": value.layout, "shapes": shapes, "dtype": value.dtype}
