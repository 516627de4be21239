"""A drawing: the shapes of one layout of a diagram, and the sizes the two layouts are made with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from encyclopedia.page.arranging import Spacing
from encyclopedia.page.geometry import Box, Point, number, polyline

Shape = Literal["stream", "add", "gate", "norm", "sublayer", "panel", "value", "contribution"]

#: Roles by host; a host that is not here is drawn as the attention.
HOST_ROLES = {"mlp": "mlp"}


@dataclass(frozen=True)
class Style:
    """Sizes of one of the two layouts, in units of its view box."""

    name: Literal["wide", "narrow"]
    width: float
    stream: float
    pill: float
    module: float
    margin: float
    letter: float
    value_height: float
    pill_letters: int
    spacing: Spacing
    label_letter: float
    #: Whether a norm stands beside its module rather than above it.
    beside: bool
    #: Room aside from which a sublayer's box is drawn.
    pad: float


WIDE = Style("wide", 880, 40, 68, 230, 34, 7.3, 32, 17, Spacing(26, 62, 14, 6.3, 14), 6.9, True, 20)
NARROW = Style("narrow", 348, 15, 44, 44, 16, 7.7, 30, 20, Spacing(22, 26, 10, 7.5, 15), 7.5, False, 8)

#: Height of a line of text.
LINE = 15.0


@dataclass(frozen=True)
class Text:
    """A line of text."""

    x: float
    y: float
    text: str
    sort: Literal["name", "title", "sizes", "heading", "detail"]
    anchor: Literal["start", "middle", "end"] = "start"
    #: Smaller text that follows on the same line.
    after: str | None = None


@dataclass(frozen=True)
class Node:
    """A part that can be pointed at."""

    id: str
    shape: Shape
    role: str
    #: Its name for assistive technology.
    name: str
    box: Box
    texts: tuple[Text, ...] = ()
    #: Where it is pointed at; of a module or a panel that is the title, because its inside belongs to its values.
    hit: Box | None = None
    #: A line that belongs to it: a stretch of the stream, the way of a contribution, the sign in a circle.
    line: str = ""
    #: The point inside a module in which a contribution comes together, and whether it is a sum there.
    join: Box | None = None
    sums: bool = False
    #: Whether it is known exactly; what is not is drawn with dashes.
    sure: bool = True


@dataclass(frozen=True)
class Edge:
    """An arrow."""

    source: str
    target: str
    role: str
    points: tuple[Point, ...]
    head: bool = True

    @property
    def path(self) -> str:
        return polyline(self.points, head=self.head)


@dataclass(frozen=True)
class Mark:
    """A word at an arrow, or a dot where the stream is read."""

    x: float
    y: float
    role: str
    text: str = ""
    anchor: str = "middle"


@dataclass
class Drawing:
    """One layout of a diagram; ``nodes`` are in forward order."""

    layout: Literal["wide", "narrow"]
    width: float
    height: float = 0.0
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    #: The stretches of the stream that are no value.
    between: str = ""
    #: How many parallel streams there are, or ``None`` for the usual one.
    streams: int | None = None

    @property
    def view_box(self) -> str:
        return f"0 0 {number(self.width)} {number(self.height)}"


def moved(points: Sequence[Point], dx: float, dy: float) -> tuple[Point, ...]:
    return tuple((x + dx, y + dy) for x, y in points)


def moved_node(node: Node, dx: float, dy: float) -> Node:
    texts = tuple(replace(text, x=text.x + dx, y=text.y + dy) for text in node.texts)
    return replace(node, box=node.box.moved(dx, dy), texts=texts, hit=node.hit and node.hit.moved(dx, dy))


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most - 1]}…"
