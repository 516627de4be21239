"""The API section of a checkpoint: its values by host, its printout and its config, as plain views for templates."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from pydantic import JsonValue

from encyclopedia.facts import CheckpointFacts, FamilyFacts, HostFacts, KindFacts, ValueFacts
from encyclopedia.page.claims import HowChecked, claims_address, how_checked
from encyclopedia.page.course import course_of
from encyclopedia.page.names import NameLine, name_lines
from encyclopedia.page.printout import PrintoutView, printout_view
from encyclopedia.page.ranges import blocks
from encyclopedia.vocabulary import HOSTS


@dataclass(frozen=True)
class ShapeLine:
    """One shape a value has; ``blocks`` says where, or is ``None`` where it holds wherever the value is."""

    sizes: tuple[int, ...]
    blocks: str | None


@dataclass(frozen=True)
class ValueRow:
    """A value as a row of its host's table.

    Attributes:
        id: the row's anchor.
        heading: the value on its host, such as ``self_attn.attention_scores``; search finds it by that.
        heading_id: the anchor of the heading.
        expression: what to copy, on the first block that has it.
        present: on which blocks it is, or ``None`` where on all.
        condition_label: the condition in a few words, or ``None``.
        how: how it was checked, or ``None`` where it was not.
        address: the page's address with this value pinned, or ``None`` where the diagram has no part for it.
        elsewhere: its other names on the first block that has it; empty where a script puts them in.
    """

    id: str
    heading: str
    heading_id: str
    name: str
    expression: str
    role: str
    layout: str | None
    dims: tuple[str, ...]
    shapes: tuple[ShapeLine, ...]
    present: str | None
    description: str
    where: str
    location: str
    condition: str | None
    condition_label: str | None
    how: HowChecked | None
    address: str | None
    elsewhere: tuple[NameLine, ...]


@dataclass(frozen=True)
class Condition:
    """A condition that several values of a host share."""

    text: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class LeftOut:
    """Values of a native class that were left out, because no run confirmed them, and why."""

    native: str
    names: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class HostTable:
    """The values of one host."""

    id: str
    expression: str
    classes: tuple[str, ...]
    rows: tuple[ValueRow, ...]
    conditions: tuple[Condition, ...]
    unconfirmed: tuple[LeftOut, ...]


@dataclass(frozen=True)
class Missing:
    """Values that no block of the checkpoint has, and why."""

    host: str
    names: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Piece:
    """A stretch of text, a link where ``url`` is not ``None``."""

    text: str
    url: str | None = None


@dataclass(frozen=True)
class EntryGroup:
    """Entries that lie side by side in a nested value, and the path to them."""

    path: str
    entries: tuple[ConfigRow, ...]


@dataclass(frozen=True)
class ConfigRow:
    """A key of the config.

    Attributes:
        text: the value, summarised where it is long.
        exact: the whole value where ``text`` is a summary.
        groups: the entries of a nested value, each group under its path in it (empty for the outermost).
        source: number of the source it is known from, or ``None``.
    """

    key: str
    text: str
    exact: str | None
    groups: tuple[EntryGroup, ...]
    source: int | None


@dataclass(frozen=True)
class SizesByKind:
    """Sizes that differ between kinds: a row per size, a column per kind."""

    kinds: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, tuple[int | None, ...]], ...]


@dataclass(frozen=True)
class ConfigView:
    """The config card; ``usual_source`` is the number of the source most keys are known from."""

    sizes: tuple[tuple[str, int], ...]
    by_kind: SizesByKind | None
    recorded: tuple[ConfigRow, ...]
    defaults: tuple[ConfigRow, ...]
    sources: tuple[tuple[Piece, ...], ...]
    usual_source: int | None
    source: tuple[Piece, ...]


@dataclass(frozen=True)
class ApiView:
    """The whole section for ``api.html.jinja``; ``claims`` is the address of the claims about the checkpoint."""

    checkpoint: str
    architecture: str | None
    is_default: bool
    hosts: tuple[HostTable, ...]
    missing: tuple[Missing, ...]
    checked: int
    total: int
    claims: str
    printout: PrintoutView
    config: ConfigView


def api_view(checkpoint: CheckpointFacts, family: FamilyFacts) -> ApiView:
    """The section of ``checkpoint``, one of ``family``'s."""
    standing = {host.name for host in checkpoint.hosts}
    bare = [HostFacts(name=name, host=HOSTS.get(name, name), classes=[], values=[])
            for name in dict.fromkeys(left.host for left in checkpoint.unconfirmed) if name not in standing]
    # Once is enough: the page has all names in a table, from which a script takes those of the other checkpoints.
    named = family if checkpoint.id == family.reference else None
    tables = tuple(_table(host, checkpoint, named) for host in (*checkpoint.hosts, *bare))
    return ApiView(
        checkpoint=checkpoint.id,
        architecture=checkpoint.architecture,
        is_default=checkpoint.is_default,
        hosts=tables,
        missing=tuple(_missing(checkpoint)),
        checked=sum(row.how is not None for table in tables for row in table.rows),
        total=sum(len(table.rows) for table in tables),
        claims=claims_address(checkpoint.id),
        printout=printout_view(checkpoint),
        config=config_view(checkpoint),
    )


def _table(host: HostFacts, checkpoint: CheckpointFacts, named: FamilyFacts | None) -> HostTable:
    conditions: dict[str, list[str]] = {}
    for value in host.values:
        if value.condition:
            conditions.setdefault(value.condition, []).append(value.name)
    return HostTable(
        id=f"values-{host.name}",
        expression=host.host,
        classes=tuple(host.classes),
        rows=tuple(value_row(value, host, checkpoint, named) for value in host.values),
        conditions=tuple(Condition(text, tuple(names)) for text, names in conditions.items()),
        unconfirmed=unconfirmed(checkpoint, host.name),
    )


def unconfirmed(checkpoint: CheckpointFacts, host: str) -> tuple[LeftOut, ...]:
    """What was left out of a host's values, those with one reason together."""
    names: dict[tuple[str, str], list[str]] = {}
    for left in checkpoint.unconfirmed:
        if left.host == host:
            names.setdefault((left.native, left.reason), []).append(left.name)
    return tuple(LeftOut(native, tuple(found), reason.rstrip(".")) for (native, reason), found in names.items())


def value_row(
    value: ValueFacts, host: HostFacts, checkpoint: CheckpointFacts, named: FamilyFacts | None = None
) -> ValueRow:
    """One of ``host``'s values as a row; both are ``checkpoint``'s, of the family ``named`` where names are shown."""
    having = [(kind, tuple(shape)) for kind, shape in zip(checkpoint.kinds, value.shapes, strict=True)
              if shape is not None]
    everywhere = len(having) == len(checkpoint.kinds) or not having
    first = min((kind.blocks[0] for kind, _ in having), default=0)
    node = _node(value.name, host.name, [kind for kind, _ in having])
    # The stream's middle is drawn where it lies between two rows, which a block with more sublayers has not got.
    if node == "stream.mid" and not course_of(checkpoint, _kind_of(checkpoint, first)).mid:
        node = None
    return ValueRow(
        id=f"value-{host.name}-{value.name}",
        heading=f"{host.host.rpartition('.')[2]}.{value.name}",
        heading_id=f"{host.name}.{value.name}",
        name=value.name,
        expression=f"{host.host.replace('[i]', f'[{first}]')}.{value.name}",
        role=value.role,
        layout=value.layout,
        dims=tuple(value.dims),
        shapes=_shapes(having),
        present=None if everywhere else f"on {blocks(_blocks_of([kind for kind, _ in having]))}",
        description=value.description,
        where=value.where,
        location=value.location,
        condition=value.condition,
        condition_label=_condition_label(value.condition, everywhere=everywhere),
        how=how_checked(checkpoint, host.name, value),
        address=f"#ckpt={quote(checkpoint.id)}&block={first}&pin={node}" if node else None,
        elsewhere=() if named is None else name_lines(
            named, checkpoint, f"{host.host}.{value.name}", _kind_of(checkpoint, first), first),
    )


def _kind_of(checkpoint: CheckpointFacts, block: int) -> int:
    return next(index for index, kind in enumerate(checkpoint.kinds) if block in kind.blocks)


def _shapes(having: Sequence[tuple[KindFacts, tuple[int, ...]]]) -> tuple[ShapeLine, ...]:
    kinds_by_shape: dict[tuple[int, ...], list[KindFacts]] = {}
    for kind, shape in having:
        kinds_by_shape.setdefault(shape, []).append(kind)
    several = len(kinds_by_shape) > 1
    return tuple(ShapeLine(shape, blocks(_blocks_of(kinds)) if several else None)
                 for shape, kinds in kinds_by_shape.items())


def _blocks_of(kinds: Sequence[KindFacts]) -> list[int]:
    return sorted(block for kind in kinds for block in kind.blocks)


def _condition_label(condition: str | None, *, everywhere: bool) -> str | None:
    if condition is None:
        return None
    return "not on every load" if everywhere else "not on every block"


# The diagram's parts that stand for a value of the root or of the block.
_NODES = {
    ("model", "token_embeddings"): "strip.embed_tokens",
    ("model", "final_norm_output"): "strip.norm",
    ("model", "lm_head_output"): "strip.lm_head",
    ("model", "logits"): "strip.logits",
    ("layer", "layer_input"): "stream.input",
    ("layer", "layer_mid"): "stream.mid",
    ("layer", "layer_output"): "stream.output",
}


def _node(name: str, host: str, kinds: Sequence[KindFacts]) -> str | None:
    if (host, name) in _NODES:
        return _NODES[host, name]
    sublayers = [sublayer for kind in kinds for sublayer in kind.sublayers if sublayer.host == host]
    if any(sublayer.contribution == name for sublayer in sublayers):
        return f"contribution.{host}"
    return f"value.{host}.{name}" if any(name in sublayer.values for sublayer in sublayers) else None


def _missing(checkpoint: CheckpointFacts) -> list[Missing]:
    served = {host.host: {value.name for value in host.values} for host in checkpoint.hosts}
    names_by_reason: dict[tuple[str, str], list[str]] = {}
    for host, reasons in checkpoint.support.get("eager", {}).items():
        for name, reason in reasons.items():
            if name not in served.get(host, set()):
                names_by_reason.setdefault((host, reason), []).append(name)
    return [Missing(host, tuple(names), reason) for (host, reason), names in names_by_reason.items()]


def config_view(checkpoint: CheckpointFacts) -> ConfigView:
    """The config card of ``checkpoint``, which need not be one that is shown."""
    sources = list(dict.fromkeys(
        checkpoint.config_known_from[key] for key in checkpoint.config if key in checkpoint.config_known_from))
    recorded: list[ConfigRow] = []
    defaults: list[ConfigRow] = []
    for key, value in checkpoint.config.items():
        known_from = checkpoint.config_known_from.get(key)
        row = _config_row(key, _with_numbers(value), sources.index(known_from) + 1 if known_from else None)
        (recorded if known_from else defaults).append(row)
    sizes, by_kind = _sizes(checkpoint)
    usual = Counter(row.source for row in recorded).most_common(1)
    return ConfigView(sizes, by_kind, tuple(recorded), tuple(defaults), tuple(map(_linked, sources)),
                      usual[0][0] if usual else None, _linked(checkpoint.config_source or ""))


def _sizes(checkpoint: CheckpointFacts) -> tuple[tuple[tuple[str, int], ...], SizesByKind | None]:
    names = dict.fromkeys(name for kind in checkpoint.kinds for name in kind.sizes)
    per_kind = {name: tuple(kind.sizes.get(name) for kind in checkpoint.kinds) for name in names}
    differing = {name: sizes for name, sizes in per_kind.items() if len(set(sizes)) > 1}
    common = {name: size for name, sizes in per_kind.items()
              if name not in differing and (size := sizes[0]) is not None}
    root = {name: size for name, size in checkpoint.sizes.items() if name not in differing}
    counts = checkpoint.parameters
    parameters = {"parameters": counts.total, "active parameters": counts.active} if counts else {}
    by_kind = SizesByKind(
        tuple((kind.label, blocks(kind.blocks)) for kind in checkpoint.kinds), tuple(differing.items()),
    ) if differing else None
    return tuple({**parameters, **root, **common}.items()), by_kind


# A list longer than this is summarised.
_LONG = 6
_MOST_RUNS = 10


def _config_row(key: str, value: JsonValue, source: int | None) -> ConfigRow:
    if isinstance(value, dict) and value:
        return ConfigRow(key, f"{len(value)} {'entry' if len(value) == 1 else 'entries'}", None,
                         tuple(_groups(value, "")), source)
    if isinstance(value, list) and len(value) > _LONG:
        return ConfigRow(key, run_lengths(value), repr(value), (), source)
    return ConfigRow(key, repr(value), None, (), source)


def _with_numbers(value: JsonValue) -> JsonValue:
    """``value`` with the numbers that JSON has no name for, which configs spell ``{"__float__": "Infinity"}``."""
    if isinstance(value, dict):
        if list(value) == ["__float__"]:
            return float(str(value["__float__"]))
        return {key: _with_numbers(entry) for key, entry in value.items()}
    return [_with_numbers(entry) for entry in value] if isinstance(value, list) else value


def _groups(value: Mapping[str, JsonValue], path: str) -> list[EntryGroup]:
    plain = tuple(_config_row(key, inner, None) for key, inner in value.items()
                  if not isinstance(inner, dict) or not inner)
    found = [EntryGroup(path, plain)] if plain else []
    for key, inner in value.items():
        if isinstance(inner, dict) and inner:
            found.extend(_groups(inner, f"{path}.{key}" if path else key))
    return found


def run_lengths(values: Sequence[object]) -> str:
    """``values`` in short: ``48, 64 × 3``, and ``(48, 64 × 3) × 10`` for what repeats as a whole."""
    period = next((length for length in range(1, len(values) // 2 + 1)
                   if len(values) % length == 0 and list(values[:length]) * (len(values) // length) == list(values)),
                  len(values))
    runs: list[tuple[object, int]] = []
    for value in values[:period]:
        if runs and runs[-1][0] == value:
            runs[-1] = (value, runs[-1][1] + 1)
        else:
            runs.append((value, 1))
    texts = [repr(value) if count == 1 else f"{value!r} × {count}" for value, count in runs]
    text = ", ".join(texts if len(texts) <= _MOST_RUNS else [*texts[:_MOST_RUNS - 2], "…", texts[-1]])
    repeats = len(values) // period
    if repeats == 1:
        return text
    return f"{text} × {repeats}" if len(runs) == 1 else f"({text}) × {repeats}"


_URL = re.compile(r"(https?://[^\s,;()]+[^\s,;().])")


def _linked(text: str) -> tuple[Piece, ...]:
    return tuple(Piece(piece, piece if index % 2 else None)
                 for index, piece in enumerate(_URL.split(text)) if piece)
