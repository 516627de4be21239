"""A page per standard value: what it is, where each family has it, and code that reads and writes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from encyclopedia.across.example import best_checkpoint, example_of
from encyclopedia.across.page import render_page
from encyclopedia.across.presence import MEANINGS, Key, State, Survey, SurveyedFamily, key_of
from encyclopedia.facts import CheckpointFacts, HostFacts, ValueFacts
from encyclopedia.page.api import ShapeLine
from encyclopedia.page.claims import HowChecked
from encyclopedia.page.code import CodeBlock, code_block
from encyclopedia.page.elsewhere import names_elsewhere
from encyclopedia.page.names import NameLine, name_lines
from encyclopedia.vocabulary import FLAVOURS, HOSTS, VOCABULARY, Value

#: What a recurrent mixer is called by its flavour.
FLAVOUR_NAMES: Mapping[str, str] = {
    "delta": "gated delta rule",
    "grouped_delta": "gated delta rule with fewer key heads",
    "key_delta": "gated delta rule with a decay per key channel",
    "lightning": "linear attention with a fixed decay",
    "mlstm": "matrix memory of an xLSTM",
    "scan": "selective scan (Mamba-1)",
    "head_scan": "selective scan run per head",
    "ssd": "state-space dual (Mamba-2)",
    "wkv": "weighted key-value average (RWKV)",
    "lru": "real-gated linear recurrent unit",
    "convolution": "short gated convolution",
    "other": "any other",
}


@dataclass(frozen=True)
class LayoutLine:
    """A layout that a value has.

    Attributes:
        flavours: names of the recurrent mixers that have it so; empty where the value has one layout.
        families: how many families serve it so.
    """

    name: str
    dims: tuple[str, ...]
    flavours: tuple[str, ...]
    families: int


@dataclass(frozen=True)
class Neighbour:
    """Another value, and the address of its page seen from a value's page."""

    host: str
    name: str
    role: str
    url: str


@dataclass(frozen=True)
class FamilyRow:
    """A family that has the value.

    Attributes:
        url: its page with the value pinned, seen from the value's page.
        blocks: on which blocks it is, or ``None`` where on all.
        shapes: at batch 1 and seq 8 on the reference checkpoint.
        layout: where families differ in it.
        how: how it was checked, or ``None``.
        checks: where the claims about it are, seen from the value's page.
    """

    model_type: str
    title: str
    checkpoint: str
    url: str
    blocks: str | None
    layout: str | None
    shapes: tuple[ShapeLine, ...]
    location: str
    where: str
    how: HowChecked | None
    checks: str | None


@dataclass(frozen=True)
class Reason:
    """Families that have or lack the value for one reason; ``text`` is ``None`` where there is nothing to say."""

    text: str | None
    rows: tuple[FamilyRow, ...]
    lacking: tuple[SurveyedFamily, ...] = ()


@dataclass(frozen=True)
class Part:
    """The families in one state."""

    state: State
    meaning: str
    count: int
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class ExampleView:
    """Code for the page; ``checkpoint`` is the id of the model it is written for."""

    checkpoint: str
    load: CodeBlock
    read: CodeBlock
    write: CodeBlock | None


@dataclass(frozen=True)
class HookName:
    """A name that TransformerLens has for the value, and on how many families they were compared.

    Attributes:
        note: how the tensors differ and what an edit does; ``None`` where there is nothing to say.
    """

    hook: str
    note: str | None
    families: int


@dataclass(frozen=True)
class ValueView:
    """The page of a value.

    Attributes:
        expression: what reads it, on block ``i``.
        twin: the value of the same name on another host, or ``None``.
        elsewhere: its names elsewhere on the example's checkpoint, names and code apart.
        lens: its names in TransformerLens over all families, the most usual first.
        usual: the place most families read it at, and how many do; ``None`` where no family has it.
        places: at how many places it is read over all families.
    """

    value: Value
    expression: str
    layouts: tuple[LayoutLine, ...]
    made_from: tuple[Neighbour, ...]
    goes_into: tuple[Neighbour, ...]
    twin: Neighbour | None
    example: ExampleView | None
    elsewhere: tuple[tuple[NameLine, CodeBlock | None], ...]
    lens: tuple[HookName, ...]
    parts: tuple[Part, ...]
    having: int
    total: int
    usual: tuple[str, int] | None
    places: int

    @property
    def title(self) -> str:
        """What the page is called in a search."""
        return f"{self.value.name} on {self.value.host}"

    @property
    def count(self) -> dict[str, int]:
        """How many families are in each state."""
        return {part.state.value: part.count for part in self.parts}


def place_of(key: Key) -> str:
    """The folder of a value's page under ``values/``."""
    return ".".join(key)


def value_view(value: Value, found: Survey) -> ValueView:
    """The page of ``value`` over all families."""
    key = key_of(value)
    having = [family for family in found.families if family.presences[key].row is not None]
    best = best_family(having) if having else None
    locations = Counter(row.location for family in having if (row := family.presences[key].row) is not None)
    layouts = layouts_of(value, found)
    same_host = {other.name: other for other in VOCABULARY if other.host == value.host}
    return ValueView(
        value=value,
        expression=f"{HOSTS[value.host]}.{value.name}",
        layouts=layouts,
        made_from=tuple(_neighbour(same_host[name]) for name in value.made_from),
        goes_into=tuple(_neighbour(other) for other in same_host.values() if value.name in other.made_from),
        twin=next((_neighbour(other) for other in VOCABULARY
                   if other.name == value.name and other.host != value.host), None),
        example=_example(key, best) if best else None,
        elsewhere=_elsewhere(key, best) if best else (),
        lens=_lens(key, having),
        parts=tuple(_part(state, key, found, several=len(layouts) > 1) for state in State),
        having=len(having),
        total=len(found.families),
        usual=locations.most_common(1)[0] if locations else None,
        places=len(locations),
    )


def render_value(view: ValueView, templates: Path) -> str:
    """The page of a value."""
    return render_page("value", templates, title=view.title, description=f"{view.value.description}.",
                       styles=["checks.css", "values-across.css"], view=view, states=State)


def layouts_of(value: Value, found: Survey) -> tuple[LayoutLine, ...]:
    """The layouts of ``value``: by flavour on a recurrent mixer, else the vocabulary's and any other a family has."""
    flavours: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    if value.host == "linear_attn":
        for flavour, layouts in FLAVOURS.items():
            if value.name in layouts:
                layout = layouts[value.name]
                flavours.setdefault((layout.name, layout.dims), []).append(FLAVOUR_NAMES[flavour])
    elif value.layout is not None:
        flavours[value.layout.name, value.layout.dims] = []
    counts = found.layouts.get(key_of(value), {})
    known = dict.fromkeys([*flavours, *counts])
    return tuple(LayoutLine(*layout, tuple(flavours.get(layout, ())) if len(known) > 1 else (), counts.get(layout, 0))
                 for layout in known)


def _neighbour(value: Value) -> Neighbour:
    return Neighbour(value.host, value.name, value.role.value, f"../{place_of(key_of(value))}/")


def best_family(having: Sequence[SurveyedFamily]) -> SurveyedFamily:
    """The family to write an example for, of those that have a value."""
    chosen = best_checkpoint([(family.facts.annotated, family.checkpoint) for family in having])
    return next(family for family in having if family.checkpoint is chosen)


def _served(key: Key, checkpoint: CheckpointFacts) -> tuple[HostFacts, ValueFacts]:
    host = next(host for host in checkpoint.hosts if host.name == key[0])
    return host, next(value for value in host.values if value.name == key[1])


def _example(key: Key, family: SurveyedFamily) -> ExampleView:
    code = example_of(family.checkpoint, *_served(key, family.checkpoint))
    return ExampleView(code.checkpoint, code_block(code.load, "python"), code_block(code.read, "python"),
                       None if code.write is None else code_block(code.write, "python"))


def _elsewhere(key: Key, family: SurveyedFamily) -> tuple[tuple[NameLine, CodeBlock | None], ...]:
    host, value = _served(key, family.checkpoint)
    kinds = family.checkpoint.kinds
    at = _first_kind(value)
    lines = name_lines(family.facts, family.checkpoint, f"{host.host}.{value.name}", at, kinds[at].blocks[0])
    return tuple((line, code_block(line.text, "python") if line.text and "\n" in line.text else None)
                 for line in lines)


def _first_kind(value: ValueFacts) -> int:
    return next((index for index, shape in enumerate(value.shapes) if shape is not None), 0)


def _lens(key: Key, having: Sequence[SurveyedFamily]) -> tuple[HookName, ...]:
    found: Counter[tuple[str, str | None]] = Counter()
    for family in having:
        kind = _first_kind(_served(key, family.checkpoint)[1])
        found.update((name.text, name.note) for name in names_elsewhere(family.facts, family.checkpoint, *key, kind)
                     if name.vocabulary == "transformer_lens" and name.text is not None)
    return tuple(HookName(hook, note, families) for (hook, note), families in found.most_common())


def _part(state: State, key: Key, found: Survey, *, several: bool) -> Part:
    by_reason: dict[str | None, list[SurveyedFamily]] = {}
    for family in found.families:
        if family.presences[key].state is state:
            by_reason.setdefault(family.presences[key].reason, []).append(family)
    ranked = sorted(by_reason.items(), key=lambda item: -len(item[1]))
    return Part(state, MEANINGS[state], sum(len(families) for families in by_reason.values()), tuple(
        Reason(reason, (), tuple(families)) if state is State.ABSENT else
        Reason(reason, tuple(_row(family, key, several=several) for family in families))
        for reason, families in ranked))


def _row(family: SurveyedFamily, key: Key, *, several: bool) -> FamilyRow:
    row = family.presences[key].row
    if row is None:
        raise ValueError(f"{family.model_type} lacks {place_of(key)}; list it with the reason instead")
    return FamilyRow(
        model_type=family.model_type,
        title=family.title,
        checkpoint=family.checkpoint.id,
        url=f"../../{family.address(key)}",
        blocks=None if row.present is None else row.present.removeprefix("on "),
        layout=row.layout if several else None,
        shapes=row.shapes,
        location=row.location,
        where=row.where,
        how=row.how,
        checks=None if row.how is None else f"../../families/{family.model_type}/{row.how.href}",
    )
