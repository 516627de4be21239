"""View models of the charts over the depth: what each block holds by role, and which sizes differ between blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from encyclopedia.facts import CheckpointFacts, KindFacts, ParameterCounts, RoleParameters
from encyclopedia.page.ranges import ranges
from encyclopedia.page.wording import amount, counted

#: What a role in a block is called, from the bottom of a bar to its top.
BLOCK_ROLES = {"attention": "attention", "recurrent": "recurrent mixer", "mlp": "MLP", "shared": "shared expert",
               "router": "router", "experts": "routed experts", "norm": "norms", "other": "other"}
OUTSIDE_ROLES = {"embedding": "embedding", "norm": "final norm", "head": "head", "other": "other"}

#: Parameters that a token's forward does not multiply with.
IDLE = "idle"

_MLP_SIZES = {"intermediate_size", "num_experts", "top_k", "expert_intermediate_size", "shared_intermediate_size"}

# A label is broken where a phone's width ends.
_LETTERS = 46

@dataclass(frozen=True)
class Segment:
    """A part of every bar, with what it amounts to in block 0 (``None`` where that has none of it)."""

    slug: str
    label: str
    count: int | None

    @property
    def shown(self) -> str:
        return "–" if self.count is None else amount(self.count)


@dataclass(frozen=True)
class Cell:
    """Parameters of a role, and those of them that are active where that is fewer."""

    total: str
    active: str | None = None


@dataclass(frozen=True)
class DepthRow:
    """A line of the table: a kind of block, or what stands outside the blocks."""

    label: str
    #: The blocks of a kind, and the first of them; empty outside.
    where: str
    first: int | None
    #: By role, ``None`` where it has none; empty outside.
    cells: tuple[Cell | None, ...]
    total: Cell
    #: Of all parameters of the checkpoint, over all its blocks.
    share: str
    #: A kind's sizes that differ from another's, in the order of their names.
    sizes: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class Panel:
    """A row of the chart of parameters."""

    lines: tuple[str, ...]
    look: str = "panel"


@dataclass(frozen=True)
class Variation:
    """Sizes that differ between kinds in the same way, as one row of the chart.

    Where a size has one value and some kinds lack it, ``values`` holds 1 where it is there, and the label its value.
    """

    lines: tuple[str, ...]
    #: The role whose colour it has.
    role: str
    #: Per kind.
    values: tuple[int | None, ...]

    @property
    def look(self) -> str:
        """``bars`` where there are several values, ``strip`` where there is one."""
        return "bars" if len({value for value in self.values if value is not None}) > 1 else "strip"

    def published(self) -> dict[str, Any]:
        return {"label": len(self.lines), "role": self.role, "values": list(self.values)}


@dataclass(frozen=True)
class DepthView:
    """Everything ``depth.html.jinja`` shows for one checkpoint."""

    checkpoint: str
    #: How many there are.
    blocks: int
    caption: str
    segments: tuple[Segment, ...]
    #: Of block 0.
    here: str
    #: Whether fewer parameters are active than there are, so that there is a chart of those too.
    split: bool
    roles: tuple[str, ...]
    rows: tuple[DepthRow, ...]
    #: What stands outside the blocks, and the sum of everything.
    rest: tuple[DepthRow, ...]
    variations: tuple[Variation, ...]
    variation_caption: str
    #: Names of the sizes that differ.
    names: tuple[str, ...]
    #: What ``assets/js/depth.js`` draws from.
    facts: dict[str, Any]

    @property
    def panels(self) -> tuple[Panel, ...]:
        """The rows of the chart of parameters."""
        titles = ("all parameters", "those a token uses") if self.split else ("all parameters",)
        return tuple(Panel((title,)) for title in titles)


def depth_view(checkpoint: CheckpointFacts) -> DepthView | None:
    """The charts of ``checkpoint``, or ``None`` where its parameters were not counted by block."""
    kinds, counts = checkpoint.kinds, checkpoint.parameters
    if counts is None or not all(kind.parameters for kind in kinds):
        return None
    roles = tuple(role for role in BLOCK_ROLES if any(_find(kind.parameters, role) for kind in kinds))
    first = min(kinds, key=lambda kind: kind.blocks[0])
    names = _varying(kinds)
    variations = tuple(_variations(kinds, names))
    return DepthView(
        checkpoint=checkpoint.id,
        blocks=sum(len(kind.blocks) for kind in kinds),
        caption=_caption(checkpoint, counts.total),
        segments=tuple(_segments(kinds, first, roles)),
        here=f"{first.label}: {amount(_total(first))} parameters",
        split=any(_active(kind) < _total(kind) for kind in kinds),
        roles=tuple(BLOCK_ROLES[role] for role in roles),
        rows=tuple(_row(kind, roles, names, counts.total) for kind in sorted(kinds, key=lambda kind: kind.blocks[0])),
        rest=(*_outside(counts), DepthRow("all", "", None, (), _cell(counts.total, counts.active), "100%")),
        variations=variations,
        variation_caption=_variation_caption(kinds, names),
        names=tuple(names),
        facts=_facts(kinds, variations),
    )


def _facts(kinds: Sequence[KindFacts], variations: Sequence[Variation]) -> dict[str, Any]:
    """By kind, its blocks and the parameters of each role, all and active; and the rows of sizes."""
    return {
        "kinds": [{"blocks": kind.blocks, "label": kind.label,
                   "parameters": {part.role: [part.total, part.active] for part in kind.parameters}} for kind in kinds],
        "variations": [row.published() for row in variations],
    }


def _find(parts: Sequence[RoleParameters], role: str) -> RoleParameters | None:
    return next((part for part in parts if part.role == role), None)


def _total(kind: KindFacts) -> int:
    return sum(part.total for part in kind.parameters)


def _active(kind: KindFacts) -> int:
    return sum(part.active for part in kind.parameters)


def _cell(total: int, active: int) -> Cell:
    return Cell(f"{total:,}", f"{active:,}" if active < total else None)


def _share(part: int, whole: int) -> str:
    """A share for reading: ``81%``, ``0.4%``; what would round to nothing is said to be less."""
    percent = 100 * part / whole
    if 0 < percent < 0.05:
        return "<0.1%"
    return f"{percent:.0f}%" if percent >= 99.95 or percent == 0 else f"{percent:.1f}%"


def _segments(kinds: Sequence[KindFacts], first: KindFacts, roles: Sequence[str]) -> Iterator[Segment]:
    for role in roles:
        part = _find(first.parameters, role)
        yield Segment(role, BLOCK_ROLES[role], part.active if part else None)
        if role == "experts" and any(_active(kind) < _total(kind) for kind in kinds):
            yield _idle(kinds, first)
    if "experts" not in roles and any(_active(kind) < _total(kind) for kind in kinds):
        yield _idle(kinds, first)


def _idle(kinds: Sequence[KindFacts], first: KindFacts) -> Segment:
    idle = {part.role for kind in kinds for part in kind.parameters if part.active < part.total}
    label = "experts not routed to" if idle == {"experts"} else "not used by a token"
    return Segment(IDLE, label, _total(first) - _active(first) or None)


def _row(kind: KindFacts, roles: Sequence[str], names: Sequence[str], whole: int) -> DepthRow:
    found = [_find(kind.parameters, role) for role in roles]
    return DepthRow(
        kind.label, ranges(kind.blocks), kind.blocks[0],
        tuple(None if part is None else _cell(part.total, part.active) for part in found),
        _cell(_total(kind), _active(kind)), _share(_total(kind) * len(kind.blocks), whole),
        tuple(kind.sizes.get(name) for name in names))


def _outside(counts: ParameterCounts) -> Iterator[DepthRow]:
    for part in counts.outside:
        yield DepthRow(OUTSIDE_ROLES.get(part.role, part.role), "", None, (), _cell(part.total, part.active),
                       _share(part.total, counts.total))


def _caption(checkpoint: CheckpointFacts, whole: int) -> str:
    kinds = checkpoint.kinds
    number = sum(len(kind.blocks) for kind in kinds)
    least, most = min(kinds, key=_total), max(kinds, key=_total)
    if _total(least) == _total(most):
        largest = max(most.parameters, key=lambda part: part.total)
        name = BLOCK_ROLES.get(largest.role, largest.role)
        said = (f"Each of the {number} blocks has {amount(_total(most))} parameters" if number > 1
                else f"The block has {amount(_total(most))} parameters")
        said += f", {_share(largest.total, _total(most))} of them in the {name}" if len(most.parameters) > 1 else ""
    else:
        said = (f"A block has from {amount(_total(least))} parameters ({least.label}) to {amount(_total(most))} "
                f"({most.label})")
    idle = [kind for kind in kinds if _active(kind) < _total(kind)]
    if idle:
        low, high = (amount(count) for count in (min(map(_active, kinds)), max(map(_active, kinds))))
        said += f"; a token uses {low if low == high else f'{low} to {high}'} of them"
    inside = sum(_total(kind) * len(kind.blocks) for kind in kinds)
    return f"{said}. The blocks hold {_share(inside, whole)} of all {amount(whole)}."


def _varying(kinds: Sequence[KindFacts]) -> list[str]:
    names = dict.fromkeys(name for kind in kinds for name in kind.sizes)
    return [name for name in names if len({kind.sizes.get(name) for kind in kinds}) > 1]


def _variations(kinds: Sequence[KindFacts], names: Sequence[str]) -> Iterator[Variation]:
    """Rows for the sizes with several values, then for those that some kinds have and others lack."""
    rows: dict[tuple[str, tuple[int | None, ...], bool], list[str]] = {}
    for name in names:
        values = tuple(kind.sizes.get(name) for kind in kinds)
        there = {value for value in values if value is not None}
        role = "mlp" if name in _MLP_SIZES else "stream" if name == "hidden_size" else "attention"
        if len(there) > 1:
            rows.setdefault((role, values, True), []).append(name)
        else:
            presence = tuple(None if value is None else 1 for value in values)
            rows.setdefault((role, presence, False), []).append(f"{name} {there.pop()}")
    for (role, values, _), labels in sorted(rows.items(), key=lambda row: not row[0][2]):
        yield Variation(tuple(_lines(labels)), role, values)


def _lines(labels: Sequence[str]) -> Iterator[str]:
    line = ""
    for label in labels:
        longer = f"{line} · {label}" if line else label
        if line and len(longer) > _LETTERS:
            yield line
            longer = label
        line = longer
    yield line


def _variation_caption(kinds: Sequence[KindFacts], names: Sequence[str]) -> str:
    if not names:
        return ""
    said = f"{counted(len(names), 'size')} {'differs' if len(names) == 1 else 'differ'} between the " \
           f"{counted(len(kinds), 'kind')} of blocks"
    gaps = any(name not in kind.sizes for kind in kinds for name in names)
    return f"{said}; a gap is a block that has no such size." if gaps else f"{said}."
