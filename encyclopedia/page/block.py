"""View models of the section on the block: strip, slider, diagrams, cards and the identity."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from encyclopedia.facts import CheckpointFacts, FamilyFacts, KindFacts
from encyclopedia.page.cards import Card, cards_of
from encyclopedia.page.claims import claims_address
from encyclopedia.page.course import STREAM, course, course_of
from encyclopedia.page.diagram import draw
from encyclopedia.page.drawing import HOST_ROLES, NARROW, WIDE, Drawing
from encyclopedia.page.hero import SummaryView, summary_view
from encyclopedia.page.names import NameLine, name_lines
from encyclopedia.page.wording import counted, error

#: The looks that ticks have, from the most frequent kind to the rarest.
TICK_LOOKS = 8

_TOKEN = re.compile(r"[A-Za-z_][\w.\[\]]*|==|\s+|.")


@dataclass(frozen=True)
class StripItem:
    """A station between the token ids and the logits."""

    node: str
    name: str
    value: str
    role: str


@dataclass(frozen=True)
class Tick:
    """A block on the slider."""

    block: int
    kind: int


@dataclass(frozen=True)
class Token:
    """A word of the identity, with its role and the node it names."""

    text: str
    role: str | None = None
    node: str | None = None


@dataclass(frozen=True)
class KindView:
    """A kind of block: its legend entry, its diagram in both layouts, its identity."""

    index: int
    label: str
    count: int
    #: Which of the tick looks it has.
    look: int
    wide: Drawing
    narrow: Drawing
    identity: tuple[Token, ...]
    caption: str
    #: Nodes whose value an ordinary load lacks.
    conditional: frozenset[str]
    #: Whether the block's input is a term of the identity.
    carried: bool = True


@dataclass(frozen=True)
class BlockView:
    """Everything ``block.html.jinja`` shows for one checkpoint."""

    checkpoint: str
    strip: tuple[StripItem, ...]
    ticks: tuple[Tick, ...]
    kinds: tuple[KindView, ...]
    #: The card shown before anything is pointed at, with the shape on the first block.
    card: Card
    #: Its names elsewhere on block 0; empty but on the reference, because a script puts them in.
    elsewhere: tuple[NameLine, ...]
    claim: str
    #: Where the check of the identity is listed, or ``None``.
    claim_href: str | None
    facts: dict[str, Any]
    summary: SummaryView

    @property
    def first(self) -> KindView:
        """The kind of block 0."""
        return self.kinds[self.ticks[0].kind]

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The first card's shape on block 0."""
        return self.card.shapes[self.first.index] if self.card.shapes else None


def block_view(checkpoint: CheckpointFacts, family: FamilyFacts) -> BlockView:
    """The section on the block for an available ``checkpoint``.

    Raises:
        ValueError: where the checkpoint has no kinds of blocks to show.
    """
    if not checkpoint.kinds:
        raise ValueError(f"{checkpoint.id} has no blocks to show; ask for the page of an available checkpoint")
    cards = cards_of(checkpoint)
    ticks = tuple(sorted((Tick(block, index) for index, kind in enumerate(checkpoint.kinds) for block in kind.blocks),
                         key=lambda tick: tick.block))
    opening, referred = _opening(cards, checkpoint.kinds, ticks[0].kind), checkpoint.id == family.reference
    return BlockView(
        checkpoint=checkpoint.id,
        strip=_strip(len(ticks)),
        ticks=ticks,
        kinds=tuple(_kind(checkpoint, index, look) for index, look in enumerate(_looks(checkpoint.kinds))),
        card=opening,
        elsewhere=name_lines(family, checkpoint, opening.expression, ticks[0].kind, 0) if referred else (),
        claim=identity_claim(checkpoint),
        claim_href=_identity_href(checkpoint),
        facts={
            "checkpoint": checkpoint.id,
            "kinds": [{"blocks": kind.blocks, "label": kind.label} for kind in checkpoint.kinds],
            "cards": [card.published() for card in cards],
        },
        summary=summary_view(checkpoint, family),
    )


def identity_claim(checkpoint: CheckpointFacts) -> str:
    """How the identity held, or an empty string where it was not measured."""
    if checkpoint.checks is None or not checkpoint.checks.identity.blocks:
        return ""
    blocks = counted(checkpoint.checks.identity.blocks, "block")
    largest = checkpoint.checks.identity.max_error
    if largest is None:
        return ""
    if largest == 0.0:
        return f"held exactly on {blocks} of the small model"
    return f"held on {blocks} of the small model, largest error {error(largest)}"


def _identity_href(checkpoint: CheckpointFacts) -> str | None:
    listed = next((claim for claim in checkpoint.claims if claim.sort == "identity"), None)
    return None if listed is None else claims_address(checkpoint.id, listed.host, listed.value)


def identity_tokens(kind: KindFacts) -> tuple[Token, ...]:
    """The identity in words, each with the part of the diagram it names; none where there is no identity."""
    if kind.identity is None:
        return ()
    nodes = {STREAM: ("stream", "stream.input"), "layer_output": ("stream", "stream.output")}
    way = course(kind)
    nodes |= {name: ("stream", f"contribution.{name}") for name in way.loose}
    if way.scale is not None:
        nodes[way.scale] = "stream", "gate.layer"
    for sublayer in kind.sublayers:
        host = sublayer.host
        nodes[f"{host}.{sublayer.contribution}"] = HOST_ROLES.get(host, "attention"), f"contribution.{host}"
        if sublayer.stream_gate is not None:
            nodes[sublayer.stream_gate] = "stream", f"gate.{host}"
    return tuple(Token(word, *nodes.get(word, (None, None))) for word in _TOKEN.findall(kind.identity))


def conditional_nodes(checkpoint: CheckpointFacts, kind: KindFacts) -> frozenset[str]:
    """The values of ``kind`` that a default load lacks though another load has them."""
    expressions = {host.name: host.host for host in checkpoint.hosts}
    lacking, ever = checkpoint.support.get("default", {}), checkpoint.support.get("eager", {})
    found = set()
    for sublayer in kind.sublayers:
        expression = expressions.get(sublayer.host, "")
        missing = set(lacking.get(expression, {})) - set(ever.get(expression, {}))
        found |= {f"value.{sublayer.host}.{name}" for name in sublayer.values if name in missing}
    return frozenset(found)


def _strip(blocks: int) -> tuple[StripItem, ...]:
    return (
        StripItem("strip.embed_tokens", "embed_tokens", "token_embeddings", "stream"),
        StripItem("strip.layers", "layers", f"× {blocks}", "stream"),
        StripItem("strip.norm", "norm", "final_norm_output", "norm"),
        StripItem("strip.lm_head", "lm_head", "lm_head_output", "stream"),
        StripItem("strip.logits", "logits", "logits", "stream"),
    )


def _looks(kinds: Sequence[KindFacts]) -> list[int]:
    """A look per kind: the calmest for the most frequent, so that the rare ones stand out."""
    ranked = sorted(range(len(kinds)), key=lambda index: -len(kinds[index].blocks))
    return [ranked.index(index) % TICK_LOOKS for index in range(len(kinds))]


def _kind(checkpoint: CheckpointFacts, index: int, look: int) -> KindView:
    kind = checkpoint.kinds[index]
    way = course_of(checkpoint, index)
    return KindView(
        index=index, label=kind.label, count=len(kind.blocks), look=look,
        wide=draw(kind, WIDE, way), narrow=draw(kind, NARROW, way),
        identity=identity_tokens(kind), caption=f"Diagram of a block, {kind.label}",
        conditional=conditional_nodes(checkpoint, kind), carried=way.carried,
    )


def _opening(cards: Sequence[Card], kinds: Sequence[KindFacts], kind: int) -> Card:
    """The card to open with: the first interior value of the first sublayer, else the stream's input."""
    interior = [f"value.{sublayer.host}.{name}" for sublayer in kinds[kind].sublayers for name in sublayer.values]
    for node in (*interior, "stream.input", "strip.layers"):
        for card in cards:
            if card.id == node and kind in card.kinds:
                return card
    raise ValueError("a checkpoint's cards hold its strip")
