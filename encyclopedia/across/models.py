"""The table of models: a row for each checkpoint that is shown, a column for each thing it can be found by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from encyclopedia.across import architecture
from encyclopedia.facts import CheckpointFacts, FamilyFacts
from encyclopedia.page.context import context_of
from encyclopedia.page.derived import title_of
from encyclopedia.page.shown import shown_of
from encyclopedia.quirks import QUIRKS

#: What a cell holds; several answers where blocks differ, ``None`` where there is none or the facts do not tell.
Cell = int | str | list[int] | list[str] | None

#: How a number is written.
Format = Literal["plain", "short"]


@dataclass(frozen=True)
class Entry:
    """A checkpoint that is shown, and its family."""

    family: FamilyFacts
    checkpoint: CheckpointFacts


@dataclass(frozen=True)
class Column:
    """A column of the table.

    Attributes:
        key: its name in data and addresses.
        title: its name on the page.
        value: what a row has in it.
        about: what it says, in one sentence without a full stop.
        unit: what its numbers count, or ``None`` for words.
        group: under which it is chosen.
        sort: ``number`` or ``text``.
        shown: whether it is shown where a reader has not chosen: ``always``, ``wide`` (not on a phone) or ``no``.
        every: whether a filter asks for all of the chosen words rather than for one of them.
        format: how its numbers are written.
        optional: whether it is left out where no row has anything in it.
    """

    key: str
    title: str
    value: Callable[[Entry], Cell]
    about: str
    unit: str | None = None
    group: str = "Sizes"
    sort: Literal["number", "text"] = "number"
    shown: Literal["always", "wide", "no"] = "no"
    every: bool = False
    format: Format = "plain"
    optional: bool = False

    @property
    def heading(self) -> str:
        """Its title and unit, as in the first line of ``data/models.csv``."""
        return self.title if self.unit is None else f"{self.title} [{self.unit}]"


def _attention(name: str) -> Callable[[Entry], Cell]:
    return lambda entry: _one_or_all(architecture.attention_sizes(entry.checkpoint, name))


def _kinds(*names: str) -> Callable[[Entry], Cell]:
    return lambda entry: _one_or_all(architecture.sizes_of_kinds(entry.checkpoint, *names))


def _size(name: str) -> Callable[[Entry], Cell]:
    return lambda entry: entry.checkpoint.sizes.get(name)


def _words(answers: Callable[[CheckpointFacts], list[str]]) -> Callable[[Entry], Cell]:
    return lambda entry: _one_or_all(answers(entry.checkpoint))


def _one_or_all(found: list[int] | list[str]) -> Cell:
    return found if len(found) > 1 else found[0] if found else None


def _parameters(name: Literal["total", "active"]) -> Callable[[Entry], Cell]:
    return lambda entry: None if entry.checkpoint.parameters is None else getattr(entry.checkpoint.parameters, name)


def _weight_bytes(entry: Entry) -> Cell:
    costs = entry.checkpoint.costs
    return costs.weight_bytes["bfloat16"].amount if costs is not None and "bfloat16" in costs.weight_bytes else None


def _cache_bytes(entry: Entry) -> Cell:
    costs = entry.checkpoint.costs
    return None if costs is None or costs.cache is None else costs.cache.per_token.amount


def _flops(entry: Entry) -> Cell:
    return None if entry.checkpoint.costs is None else entry.checkpoint.costs.flops_per_token.amount


def _state(entry: Entry) -> Cell:
    checkpoint = entry.checkpoint
    values = [value for host in checkpoint.hosts for value in host.values]
    whole = all(value.checked for value in values) and not checkpoint.unconfirmed
    sums = all(kind.identity is not None for kind in checkpoint.kinds)
    return "all" if whole and sums else "values only" if whole else "sums only" if sums else "in part"


def _tied(entry: Entry) -> Cell:
    return "tied" if "tied-embeddings" in entry.checkpoint.quirks else "own"


#: In the order of the table. The first is the row's header.
COLUMNS: tuple[Column, ...] = (
    Column("checkpoint", "checkpoint", lambda entry: entry.checkpoint.id, "The public repository id", sort="text",
           group="Which", shown="always"),
    Column("family", "family", lambda entry: title_of(entry.family), "The family's title", sort="text", group="Which"),
    Column("parameters_total", "parameters", _parameters("total"), "All parameters, tied ones once",
           unit="parameters", shown="always", format="short"),
    Column("parameters_active", "active parameters", _parameters("active"),
           "Parameters that a token's forward multiplies with: experts not routed to are left out", unit="parameters",
           shown="wide", format="short"),
    Column("num_layers", "blocks", _size("num_layers"), "Blocks in the stack", unit="blocks", shown="always"),
    Column("hidden_size", "hidden_size", _size("hidden_size"), "Width of the residual stream", unit="channels",
           shown="always"),
    Column("num_heads", "num_heads", _attention("num_heads"), "Query heads of a softmax attention", unit="heads",
           shown="wide"),
    Column("num_kv_heads", "num_kv_heads", _attention("num_kv_heads"),
           "Key/value heads of a softmax attention, before they are repeated", unit="heads", shown="wide"),
    Column("head_dim", "head_dim", _attention("head_dim"), "Width of a head's values and output", unit="channels",
           shown="wide"),
    Column("qk_head_dim", "qk_head_dim", _attention("qk_head_dim"), "Width of a head's queries and keys",
           unit="channels"),
    Column("intermediate_size", "MLP width", lambda entry: _one_or_all(architecture.mlp_widths(entry.checkpoint)),
           "Neurons of an MLP that every token goes through; experts have a column of their own", unit="neurons",
           shown="wide"),
    Column("vocab_size", "vocabulary", _size("vocab_size"), "Rows of the token table", unit="tokens", shown="wide"),
    Column("context", "context", lambda entry: context_of(entry.checkpoint),
           "Most positions the config allows; empty where it sets no bound", unit="positions", shown="wide"),
    Column("mixer", "mixer", _words(architecture.mixers), "What blocks mix tokens with", sort="text", group="Mixing",
           shown="wide"),
    Column("attention", "attention", _words(architecture.attention_sorts),
           "How query heads share keys and values; latent: all unfolded from one vector per token", sort="text",
           group="Mixing", shown="always"),
    Column("positions", "positions", _words(architecture.positions),
           "How softmax attention knows positions; none: in some or all blocks by the causal mask alone", sort="text",
           group="Mixing", shown="wide"),
    Column("window", "window", _kinds("sliding_window"), "Last positions that a windowed block attends to",
           unit="positions", group="Mixing", shown="wide"),
    Column("windowed_blocks", "windowed blocks", lambda entry: architecture.windowed_blocks(entry.checkpoint),
           "Blocks that attend within a window", unit="blocks", group="Mixing"),
    Column("softmax_blocks", "softmax blocks", lambda entry: architecture.softmax_blocks(entry.checkpoint),
           "Blocks known to have a softmax attention", unit="blocks", group="Mixing"),
    Column("recurrence", "recurrence", _words(architecture.recurrences),
           "What carries tokens' information in a recurrent mixer or a convolution", sort="text", group="Mixing"),
    Column("state_dim", "state_dim", _kinds("state_dim", "key_dim"),
           "Width of a recurrent state by which tokens are stored and read", unit="channels", group="Mixing"),
    Column("norm", "norm", _words(architecture.norms), "The sort of the norms on the stream", sort="text",
           group="Norms and MLP", shown="wide"),
    Column("norm_placement", "norm placement", _words(architecture.norm_placements),
           "Before a sublayer (pre), behind it (post), both (sandwich), or on the stream itself", sort="text",
           group="Norms and MLP"),
    Column("activation", "activation", lambda entry: architecture.activation(entry.checkpoint),
           "The MLP's activation function, or a recurrent mixer's where there is no MLP", sort="text",
           group="Norms and MLP", shown="wide"),
    Column("num_experts", "experts", _kinds("num_experts"), "Experts of a mixture that tokens are routed to",
           unit="experts", group="Norms and MLP", shown="wide"),
    Column("top_k", "experts per token", _kinds("top_k"), "Experts chosen for each token", unit="experts",
           group="Norms and MLP", shown="wide"),
    Column("shared_experts", "shared experts", lambda entry: architecture.shared_experts(entry.checkpoint),
           "Experts that every token goes through beside those chosen", unit="experts", group="Norms and MLP"),
    Column("expert_width", "expert width", _kinds("expert_intermediate_size"), "Neurons of one routed expert",
           unit="neurons", group="Norms and MLP"),
    Column("shared_width", "shared expert width", _kinds("shared_intermediate_size"),
           "Neurons of the shared expert, all together where there are several", unit="neurons", group="Norms and MLP"),
    Column("weight_bytes", "weights", _weight_bytes, "All weights in bfloat16", unit="bytes", group="Costs",
           shown="wide", format="short", optional=True),
    Column("cache_bytes", "cache per token", _cache_bytes,
           "What one more token adds to the cache in bfloat16 while no window is full", unit="bytes", group="Costs",
           shown="wide", format="short", optional=True),
    Column("flops", "FLOPs per token", _flops,
           "Of one token's forward, without what grows with the text's length", unit="FLOPs", group="Costs",
           format="short", optional=True),
    Column("head", "head's weight", _tied, "Whether the head's weight is the token table", sort="text", group="More"),
    Column("kinds", "kinds of block", lambda entry: len(entry.checkpoint.kinds),
           "Blocks with the same modules, classes, sizes and attention type are one kind", unit="kinds", group="More"),
    Column("verified", "verified", _state,
           "Which claims a run confirmed: all, or not every value, or not the sum of every block", sort="text",
           group="More"),
    Column("config", "config", lambda entry: "class default" if entry.checkpoint.is_default else "public checkpoint",
           "Whether the sizes are a public checkpoint's or the defaults of the config class", sort="text",
           group="More"),
    Column("model_type", "model_type", lambda entry: entry.family.model_type, "The family's name in transformers",
           sort="text", group="Which"),
    Column("quirks", "quirks", lambda entry: [QUIRKS[slug].label for slug in entry.checkpoint.quirks],
           "Departures from a plain pre-norm block", sort="text", group="More", every=True),
)


@dataclass(frozen=True)
class Row:
    """A checkpoint's cells, in the order of the table's columns."""

    model_type: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Choice:
    """A word that a column is filtered by, and how many rows have it."""

    word: str
    count: int


@dataclass(frozen=True)
class Filter:
    """How a column is filtered: by choices, or from the least to the most of its numbers."""

    column: Column
    choices: tuple[Choice, ...] = ()
    least: int = 0
    most: int = 0


@dataclass(frozen=True)
class Table:
    """The whole table."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    filters: tuple[Filter, ...] = field(default=())


def model_table(families: Sequence[FamilyFacts]) -> Table:
    """Every checkpoint of ``families`` that is shown, by the family's title and in the family's own order."""
    entries = [Entry(family, checkpoint) for family in sorted(families, key=lambda family: title_of(family).lower())
               for checkpoint in shown_of(family)]
    every = [Row(entry.family.model_type, tuple(column.value(entry) for column in COLUMNS)) for entry in entries]
    kept = [index for index, column in enumerate(COLUMNS)
            if not column.optional or any(row.cells[index] is not None for row in every)]
    columns = tuple(COLUMNS[index] for index in kept)
    rows = tuple(Row(row.model_type, tuple(row.cells[index] for index in kept)) for row in every)
    return Table(columns, rows, tuple(_filters(columns, rows)))


def _filters(columns: Sequence[Column], rows: Sequence[Row]) -> list[Filter]:
    found = []
    for index, column in enumerate(columns[1:], start=1):
        values = [value for row in rows for value in answers(row.cells[index])]
        if not values:
            continue
        if column.sort == "number":
            numbers = [value for value in values if isinstance(value, int)]
            found.append(Filter(column, least=min(numbers), most=max(numbers)))
        else:
            words = sorted({str(value) for value in values}, key=str.lower)
            found.append(Filter(column, tuple(Choice(word, values.count(word)) for word in words)))
    return found


def answers(cell: Cell) -> list[int] | list[str] | list[int | str]:
    """What a cell holds as a list."""
    return [] if cell is None else cell if isinstance(cell, list) else [cell]


_COUNTS = ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "K"))
_PREFIXES = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))
#: Units that a short number is written with, under prefixes; anything else is counted.
_WITH_UNIT = {"bytes": "B", "FLOPs": "FLOP"}


def written(column: Column, cell: Cell) -> str:
    """A cell as the page writes it; empty where it holds nothing."""
    return (" / " if column.sort == "number" else ", ").join(
        number(column, value) if isinstance(value, int) else value for value in answers(cell))


def number(column: Column, value: int) -> str:
    """A number as a column writes it: in full, or ``8.03 B``, ``16.1 GB`` or ``6.03 GFLOP`` where it writes short."""
    if column.format == "short":
        unit = _WITH_UNIT.get(column.unit or "", "")
        for size, name in _PREFIXES if unit else _COUNTS:
            if value >= size:
                return f"{float(f'{value / size:.3g}'):g} {name}{unit}"
    return f"{value:,}"
