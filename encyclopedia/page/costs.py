"""View model of the panel on what a checkpoint takes: parameters, weights, cache and arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from encyclopedia.facts import CacheCosts, CacheEntry, CheckpointFacts, Cost, Costs, ParameterCounts
from encyclopedia.page.context import context_of
from encyclopedia.page.depth import OUTSIDE_ROLES
from encyclopedia.page.wording import amount, counted

#: Tokens of context that the panel opens with, where the checkpoint takes as many.
LENGTH = 8192

_PRESETS = (1024, 8192, 32768, 131072)


@dataclass(frozen=True)
class Formula:
    """How a figure is computed."""

    label: str
    text: str


@dataclass(frozen=True)
class Line:
    """A figure in words: a name, a rounded number, the number in full."""

    label: str
    number: str
    exact: str
    #: What a script finds it by, where it depends on the length.
    slot: str | None = None


@dataclass(frozen=True)
class Entry:
    """What one kind's blocks keep."""

    label: str
    name: str
    blocks: int
    dtype: str
    per_token: str
    fixed: str
    window: str


@dataclass(frozen=True)
class Group:
    """A figure that stands for a cost, the lines under it, and how they are computed."""

    title: str
    heads: tuple[Line, ...]
    lines: tuple[Line, ...] = ()
    formulas: tuple[Formula, ...] = ()
    #: A sentence below the lines.
    note: str | None = None
    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True)
class CostsView:
    """Everything ``costs.html.jinja`` shows for one checkpoint."""

    #: What it takes however long the text is.
    held: tuple[Group, ...]
    #: What it takes at ``length``.
    at_length: tuple[Group, ...]
    length: int
    #: The longest text its config names, or ``None``.
    limit: int | None
    #: Lengths to choose at once.
    presets: tuple[int, ...]
    #: Why there is no cache to tell of; ``None`` where there is one, or nothing is told at all.
    no_cache: str | None
    facts: dict[str, Any]


def costs_view(checkpoint: CheckpointFacts) -> CostsView | None:
    """The panel of ``checkpoint``, or ``None`` where its costs were not computed."""
    costs = checkpoint.costs
    if costs is None:
        return None
    limit = context_of(checkpoint)
    length = min(LENGTH, limit or LENGTH)
    held = [] if checkpoint.parameters is None else [_parameters(checkpoint, checkpoint.parameters)]
    at_length = [] if costs.cache is None else [_cache(checkpoint, costs.cache, length)]
    return CostsView(
        held=(*held, _weights(checkpoint, costs)),
        at_length=(*at_length, _flops(checkpoint, costs, length)),
        length=length,
        limit=limit,
        presets=tuple(size for size in _PRESETS if limit is None or size < limit) + ((limit,) if limit else ()),
        no_cache=None if costs.cache else f"No figure for the cache: {costs.cache_reason or 'none is known'}.",
        facts=_published(checkpoint, costs),
    )


def cache_bytes(entries: Sequence[CacheEntry], length: int) -> int:
    """Bytes of a cache of ``entries`` after ``length`` tokens."""
    return sum(entry.blocks * (entry.bytes_fixed + entry.bytes_per_token * min(length, entry.window or length))
               for entry in entries)


def byte_size(count: int) -> str:
    """Bytes for reading, in powers of 1,000: ``66.9 GB``, ``131 kB``, ``512 B``."""
    return scaled(count, "B")


def flop_size(count: int) -> str:
    """Operations for reading: ``6.0 GFLOP``."""
    return scaled(count, "FLOP")


def scaled(count: int, unit: str) -> str:
    """``count`` with three digits or so and the prefix of a power of 1,000."""
    for prefix, size in (("P", 10**15), ("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= size:
            value = count / size
            return f"{value:.0f} {prefix}{unit}" if value >= 100 else f"{value:.1f} {prefix}{unit}"
    return f"{count} {unit}"


def _parameters(checkpoint: CheckpointFacts, counts: ParameterCounts) -> Group:
    terms = []
    for kind in checkpoint.kinds:
        if kind.parameters:
            terms.append((f"{counted(len(kind.blocks), 'block')} * {{:,}}", sum(part.total for part in kind.parameters),
                          sum(part.active for part in kind.parameters)))
    terms += [(f"{OUTSIDE_ROLES.get(part.role, part.role)} {{:,}}", part.total, part.active)
              for part in counts.outside if part.total]
    formulas = [Formula("all", " + ".join(text.format(total) for text, total, _ in terms))] if terms else []
    if terms and counts.active != counts.total:
        formulas.append(Formula("active", " + ".join(text.format(active) for text, _, active in terms if active)))
    heads = [Line("in all", amount(counts.total), f"{counts.total:,}"),
             Line("active per token", amount(counts.active), f"{counts.active:,}")]
    return Group("Parameters", tuple(heads) if counts.active != counts.total else (heads[0],), (), tuple(formulas),
                 None if counts.active != counts.total else "All of them are active for every token.")


def _weights(checkpoint: CheckpointFacts, costs: Costs) -> Group:
    sizes: dict[int, list[str]] = {}
    for dtype, cost in costs.weight_bytes.items():
        sizes.setdefault(cost.amount, []).append(dtype)
    lines = [Line(", ".join(names), byte_size(count), f"{count:,} bytes") for count, names in sizes.items()]
    own = str(checkpoint.config.get("dtype") or checkpoint.config.get("torch_dtype") or "bfloat16")
    head = next((line for line in lines if own in line.label.split(", ")), lines[0])
    formulas = {cost.formula: dtype for dtype, cost in reversed(costs.weight_bytes.items())}
    return Group("Weights", (head,), tuple(line for line in lines if line is not head),
                 tuple(Formula(dtype, text) for text, dtype in reversed(formulas.items())))


def _cache(checkpoint: CheckpointFacts, cache: CacheCosts, length: int) -> Group:
    heads = [_bytes("kept by the cache", cache_bytes(cache.kept, length), "kept")]
    if cache.saving is not None:
        heads.append(_bytes("needed", cache_bytes(cache.needed, length), "needed"))
    more = "one more token"
    if any(entry.window is not None for entry in cache.kept):
        more += " while no window is full"
    return Group(
        "Cache", tuple(heads), (_bytes(more, cache.per_token.amount),), (Formula(more, cache.per_token.formula),),
        cache.saving,
        tuple(_entries(checkpoint, cache.kept)))


def _bytes(label: str, count: int, slot: str | None = None) -> Line:
    return Line(label, byte_size(count), f"{count:,} bytes", slot)


def _entries(checkpoint: CheckpointFacts, entries: Sequence[CacheEntry]) -> Iterator[Entry]:
    for entry in entries:
        yield Entry(checkpoint.kinds[entry.kind].label, entry.name.replace("_", " "), entry.blocks,
                    entry.dtype, f"{entry.bytes_per_token:,}", f"{entry.bytes_fixed:,}",
                    "" if entry.window is None else f"{entry.window:,}")


def _flops(checkpoint: CheckpointFacts, costs: Costs, length: int) -> Group:
    fixed, each = costs.flops_per_token, costs.flops_per_token_of_context
    whole, window = fixed.amount + length * each.amount, _window(checkpoint)
    return Group(
        "Forward of one token",
        (Line("at most" if window is not None and length > window else "", flop_size(whole), f"{whole:,}", "flops"),),
        (_operations("without context", fixed), _operations("each token of context", each)),
        (Formula("without context", fixed.formula), Formula("each token of context", each.formula)),
        None if window is None else f"Past {window:,} tokens it is less: blocks with a window attend to no more.")


def _window(checkpoint: CheckpointFacts) -> int | None:
    """The shortest window that an attention has, or ``None``."""
    return min((kind.sizes["sliding_window"] for kind in checkpoint.kinds if "sliding_window" in kind.sizes),
               default=None)


def _operations(label: str, cost: Cost) -> Line:
    return Line(label, flop_size(cost.amount), f"{cost.amount:,}")


def _published(checkpoint: CheckpointFacts, costs: Costs) -> dict[str, Any]:
    """What ``assets/js/costs.js`` computes from; an entry is its blocks, bytes fixed, bytes per token and window."""
    found: dict[str, Any] = {"flops": [costs.flops_per_token.amount, costs.flops_per_token_of_context.amount],
                             "window": _window(checkpoint)}
    if costs.cache is not None:
        found["kept"] = [_numbers(entry) for entry in costs.cache.kept]
        if costs.cache.saving is not None:
            found["needed"] = [_numbers(entry) for entry in costs.cache.needed]
    return found


def _numbers(entry: CacheEntry) -> list[int | None]:
    return [entry.blocks, entry.bytes_fixed, entry.bytes_per_token, entry.window]
