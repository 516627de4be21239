"""The cards: what the page says about each part of the strip and the diagram.

A card belongs to one checkpoint. Where its text is the same on several kinds it is stored once, with a shape per
kind; ``[i]`` in an expression stands for the block on the slider.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from encyclopedia.facts import CheckpointFacts, HostFacts, KindFacts, PartFacts, SublayerFacts, ValueFacts
from encyclopedia.page.claims import NOT_CHECKED, how_checked
from encyclopedia.page.course import Course, course_of
from encyclopedia.page.drawing import HOST_ROLES
from encyclopedia.page.tree import class_at
from encyclopedia.page.wording import PART_TITLES, counted, sizes_of, sublayer_title

BLOCK = "model.layers[i]"

_PATHS = {"model": "model", "layer": BLOCK}

_KEYWORD = re.compile(r'(?<!`)\b(\w+="\w+")(?!`)')


@dataclass(frozen=True)
class Row:
    """A line of a card: a word, a phrase in which backticks set code, and a path that can be copied."""

    label: str
    text: str
    code: str | None = None
    #: What copying the path gives, where that is more than is shown.
    copy: str | None = None
    #: Whether it tells of a check that was run.
    checked: bool = False
    #: The words of a link behind the phrase, and its address.
    more: str | None = None
    href: str | None = None


@dataclass(frozen=True)
class Card:
    """What is said about one part."""

    id: str
    #: The sort of part, such as ``value``.
    what: str
    role: str
    expression: str
    description: str
    layout: str | None = None
    dims: tuple[str, ...] = ()
    dtype: str | None = None
    rows: tuple[Row, ...] = ()
    #: The kinds it is true of, as positions in ``CheckpointFacts.kinds``.
    kinds: tuple[int, ...] = ()
    #: Per kind of the checkpoint, at batch 1 and seq 8.
    shapes: tuple[tuple[int, ...] | None, ...] = ()

    def published(self) -> dict[str, Any]:
        """The card as plain data, without what it does not have."""
        return _without_nothing(asdict(self))


@dataclass
class Deck:
    """The cards of a checkpoint while they are gathered."""

    _cards: dict[Card, list[int]] = field(default_factory=dict)

    def add(self, card: Card, kind: int) -> None:
        self._cards.setdefault(card, []).append(kind)

    def cards(self) -> list[Card]:
        return [replace(card, kinds=tuple(kinds)) for card, kinds in self._cards.items()]


@dataclass(frozen=True)
class Here:
    """What the cards of one kind of block are made from."""

    checkpoint: CheckpointFacts
    #: Position of the kind in ``checkpoint.kinds``.
    index: int

    @property
    def kind(self) -> KindFacts:
        return self.checkpoint.kinds[self.index]

    def host(self, name: str) -> HostFacts | None:
        """The host of that name, or ``None``."""
        return next((host for host in self.checkpoint.hosts if host.name == name), None)

    def value(self, host: str, name: str) -> ValueFacts | None:
        """A value of a host, or ``None``."""
        found = self.host(host)
        return next((value for value in found.values if value.name == name), None) if found else None

    def card(
        self, host: str, value: ValueFacts, node: str, what: str, *, role: str | None = None, more: tuple[Row, ...] = ()
    ) -> Card:
        """The card of ``value``, one of ``host``'s, with ``more`` rows in its middle."""
        path = _PATHS.get(host, f"{BLOCK}.{host}")
        computed = value.location == "derived"
        rows = [Row("read at", value.where, None if computed else value.location,
                    None if computed else _reach(path, value.location))]
        if value.condition is not None:
            rows.append(Row("needs", _KEYWORD.sub(r"`\1`", value.condition)))
        rows += more
        rows.append(Row("access", "read and write" if value.writable else "read only"))
        how = how_checked(self.checkpoint, host, value, self.index)
        rows.append(Row("checked", NOT_CHECKED) if how is None
                    else Row("checked", how.text, checked=True, more=how.more, href=how.href))
        return Card(node, what, role or value.role, f"{path}.{value.name}", f"{value.description}.", value.layout,
                    tuple(value.dims), value.dtype, tuple(rows),
                    shapes=tuple(None if shape is None else tuple(shape) for shape in value.shapes))


def cards_of(checkpoint: CheckpointFacts) -> list[Card]:
    """Every card of an available checkpoint."""
    deck = Deck()
    for index in range(len(checkpoint.kinds)):
        here = Here(checkpoint, index)
        for card in (*_strip(here), *_stream(here)):
            deck.add(card, index)
        way = course_of(checkpoint, index)
        for position, sublayer in enumerate(way.sublayers):
            for card in _sublayer(here, way, sublayer, position):
                deck.add(card, index)
        for position, name in enumerate(way.loose, start=len(way.sublayers)):
            for card in _loose(here, way, name, position):
                deck.add(card, index)
        if way.scale is not None:
            deck.add(_scale_card(here, way.scale), index)
    return deck.cards()


def _strip(here: Here) -> Iterator[Card]:
    kinds = here.checkpoint.kinds
    labels = "; ".join(f"{len(kind.blocks)} × {kind.label}" for kind in kinds)
    yield from _strip_module(here, "embed_tokens", "token_embeddings", "stream")
    yield Card("strip.layers", "blocks", "stream", "model.layers",
               f"The blocks, in order: {labels}. The slider picks the one that is drawn below.",
               rows=(Row("class", f"`{kinds[0].modules.get('layer', 'block')}`"),
                     Row("count", counted(sum(len(kind.blocks) for kind in kinds), "block"))))
    yield from _strip_module(here, "norm", "final_norm_output", "norm")
    yield from _strip_module(here, "lm_head", "lm_head_output", "stream")
    logits = here.value("model", "logits")
    if logits is not None:
        yield here.card("model", logits, "strip.logits", "output")


def _strip_module(here: Here, module: str, name: str, role: str) -> Iterator[Card]:
    value, native = here.value("model", name), class_at(here.checkpoint.printout, [module])
    rows = _module_rows(f"model.{module}", native)
    if value is not None:
        yield here.card("model", value, f"strip.{module}", "module", role=role, more=rows)
    else:
        yield Card(f"strip.{module}", "module", role, f"model.{module}", "A module of the model.", rows=rows)


def _stream(here: Here) -> Iterator[Card]:
    for name in ("input", "mid", "output"):
        value = here.value("layer", f"layer_{name}")
        if value is not None:
            yield here.card("layer", value, f"stream.{name}", "residual stream")


def _sublayer(here: Here, way: Course, sublayer: SublayerFacts, position: int) -> Iterator[Card]:
    role, path, kind = HOST_ROLES.get(sublayer.host, "attention"), f"{BLOCK}.{sublayer.host}", here.kind
    host = here.host(sublayer.host)
    values = {value.name: value for value in (host.values if host else [])}
    phrases = "; ".join(sizes_of(sublayer, kind.sizes))
    yield Card(
        f"sublayer.{sublayer.host}", "module", role, path,
        f"{sublayer_title(sublayer, kind.sizes)}{f' with {phrases}' if phrases else ''}.",
        rows=(*_module_rows(path, sublayer.class_name),
              Row("reads", _reads(sublayer)),
              Row(*(("adds", f"`{sublayer.contribution}`, to the residual stream") if sublayer.host in way.stated
                    else ("gives", f"`{sublayer.contribution}`"))),
              *([Row("holds", ", ".join(f"`{name}`" for name in sublayer.values))] if sublayer.values else [])))
    if sublayer.norm is not None and _is_first_behind(way, position):
        yield _norm_card(here, sublayer.norm, "the residual stream", _norm_value(sublayer))
    if sublayer.post_norm is not None:
        yield _norm_card(here, sublayer.post_norm, f"what `{sublayer.host}` returns", None)
    for name in sublayer.values:
        if name in values:
            yield here.card(sublayer.host, values[name], f"value.{sublayer.host}.{name}", "value")
    for part in sublayer.parts:
        yield _part_card(sublayer, part, role, path)
    added = values.get(sublayer.contribution)
    if added is not None:
        yield here.card(sublayer.host, added, f"contribution.{sublayer.host}", "contribution",
                        more=(*_multiplied(way.factors.get(sublayer.host)), *_term_of(kind.identity)))
    else:
        yield Card(f"contribution.{sublayer.host}", "contribution", role, f"{path}.{sublayer.contribution}",
                   "What the sublayer gives. No standard value is read here.")
    if sublayer.stream_gate is not None:
        yield Card(f"gate.{sublayer.host}", "gate on the stream", "stream", f"{BLOCK}.{sublayer.stream_gate}",
                   "A parameter of the block. The stream is multiplied by it before "
                   f"`{sublayer.contribution}` is added, so what earlier blocks wrote arrives rescaled.",
                   rows=_term_of(kind.identity))
    term = f"`{sublayer.host}.{sublayer.contribution}`"
    if sublayer.host not in way.stated:
        said = f"Where {term} comes back to the stream; how it does is not stated, because no exact sum was found."
    else:
        carried = f"the stream, multiplied by `{sublayer.stream_gate}`" if sublayer.stream_gate else "the stream"
        said = f"Adds {_times(term, way.factors.get(sublayer.host))} to {carried}."
    yield _add_card(here, way, said, position)


def _is_first_behind(way: Course, position: int) -> bool:
    """Whether no earlier sublayer has the same norm in front of it."""
    norms = [sublayer.norm for sublayer in way.sublayers]
    return norms.index(norms[position]) == position


def _loose(here: Here, way: Course, name: str, position: int) -> Iterator[Card]:
    """The cards of a native module's output that is a term of the identity, and of its add."""
    module, _, location = name.rpartition(".")
    native = class_at(here.checkpoint.printout, ["layers", here.kind.blocks[0], *module.split(".")])
    yield Card(f"contribution.{name}", "native output", "stream", f"{BLOCK}.{name}",
               f"The {location} of a native module, added to the stream. It has no standard name.",
               rows=(*_module_rows(f"{BLOCK}.{module}", native), *_multiplied(way.factors.get(name)),
                     *_term_of(here.kind.identity)))
    yield _add_card(here, way, f"Adds {_times(f'`{name}`', way.factors.get(name))} to the stream.", position)


def _times(term: str, factor: str | None) -> str:
    return term if factor is None else f"{term}, multiplied by `{factor}`,"


def _scale_card(here: Here, scale: str) -> Card:
    said = f"The whole sum is multiplied by `{scale}` before it leaves the block."
    value = here.value("layer", "layer_output")
    if value is None:
        return Card("gate.layer", "gate on the stream", "stream", BLOCK, said, rows=_term_of(here.kind.identity))
    return replace(here.card("layer", value, "gate.layer", "gate on the stream", more=_term_of(here.kind.identity)),
                   description=f"{said} The product is `layer_output`.")


def _multiplied(factor: str | None) -> tuple[Row, ...]:
    return () if factor is None else (Row("times", f"`{factor}`, before it is added"),)


def _term_of(identity: str | None) -> tuple[Row, ...]:
    return () if identity is None else (Row("term of", f"`{identity}`"),)


def _reads(sublayer: SublayerFacts) -> str:
    return f"the stream through `{sublayer.norm}`" if sublayer.norm else "the stream as it is, without a norm in front"


def _norm_value(sublayer: SublayerFacts) -> str:
    return "mlp_norm_output" if sublayer.host == "mlp" else "attention_norm_output"


def _norm_card(here: Here, norm: str, reads: str, name: str | None) -> Card:
    native = class_at(here.checkpoint.printout, ["layers", here.kind.blocks[0], *norm.split(".")])
    is_norm = native is None or "norm" in native.lower()
    rows = (*_module_rows(f"{BLOCK}.{norm}", native), Row("reads", reads))
    value = here.value("layer", name) if name else None
    # The standard value is this norm's only where it is read at this norm.
    if value is not None and norm in value.location.split("."):
        return here.card("layer", value, f"norm.{norm}", "norm", role="norm", more=rows)
    return Card(f"norm.{norm}", "norm" if is_norm else "module", "norm", f"{BLOCK}.{norm}",
                f"A {'norm' if is_norm else 'module'} behind the sublayer: what it gives goes on to the stream."
                if name is None else "The norm in front of the sublayer.", rows=rows)


def _part_card(sublayer: SublayerFacts, part: PartFacts, role: str, path: str) -> Card:
    said = {
        "router": "Scores every expert for each token and keeps the best.",
        "experts": "The experts that tokens are sent to; their weighted outputs are summed per token.",
        "shared": "A dense MLP that every token passes, beside the experts it is routed to.",
    }
    return Card(f"part.{sublayer.host}.{part.name}", PART_TITLES.get(part.name, part.name), role,
                f"{path}.{part.module}", said.get(part.name, "A part of the mixture."),
                rows=(*_module_rows(f"{path}.{part.module}", part.class_name),
                      Row("holds", ", ".join(f"`{name}`" for name in part.values) or "no standard value")))


def _add_card(here: Here, way: Course, said: str, position: int) -> Card:
    name, identity = way.sum_after(position), here.kind.identity
    value = here.value("layer", name) if name is not None else None
    if value is None:
        return Card(f"add.{position}", "add", "stream", BLOCK, said, rows=_term_of(identity))
    behind = f"The sum is `{name}`." if identity is not None else f"Behind it stands `{name}`."
    return replace(here.card("layer", value, f"add.{position}", "add", more=_term_of(identity)),
                   description=f"{said} {behind}")


def _reach(host: str, location: str) -> str:
    """The whole expression of a location, as it is written in a trace."""
    while location.startswith("../"):
        host, location = host.rpartition(".")[0], location.removeprefix("../")
    return f"{host}.{location}"


def _module_rows(path: str, native: str | None) -> tuple[Row, ...]:
    named = () if native is None else (Row("class", f"`{native}`"),)
    return (*named, Row("module", "", path, path))


def _without_nothing(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nothing(entry) for key, entry in value.items() if entry not in (None, "", (), False)}
    if isinstance(value, (list, tuple)):
        return [_without_nothing(entry) for entry in value]
    return value
