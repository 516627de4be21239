"""The inside of a sublayer: its values in the order of the data, a mixture's in panels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from encyclopedia.facts import EdgeFacts, PartFacts, SublayerFacts
from encyclopedia.page.arranging import Arrangement, Flow, Item, Link, Spacing, arrange
from encyclopedia.page.drawing import LINE, Edge, Mark, Node, Style, Text, cut, moved
from encyclopedia.page.geometry import Box, Point
from encyclopedia.page.wording import PART_TITLES, part_sizes, short_names

#: How many arrows two values have to share to be drawn through one point, and that point's room.
SHARED = 3
MEETING = 8.0


@dataclass(frozen=True)
class Interior:
    """The inside of a sublayer, from its own ``(0, 0)``."""

    flow: Flow
    width: float
    height: float
    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    marks: tuple[Mark, ...] = ()
    #: Where the arrow to the contribution leaves, and the value or join it leaves from.
    exit: tuple[Point, ...] = ()
    join: Box | None = None


def interior_of(sublayer: SublayerFacts, sizes: dict[str, int], style: Style, role: str, room: float) -> Interior:
    """The values of a sublayer, across where they fit and down where they do not."""
    if not sublayer.values:
        return Interior("across", 0, 0)
    # Panels stand under one another where there is no room beside; their values then run down as well.
    flows: tuple[Flow, ...] = ("down",) if sublayer.parts and not style.beside else ("across", "down")
    for flow in flows:
        found = _Interior(sublayer, sizes, style, role, room, flow).build()
        if found is not None:
            return found
    raise ValueError(f"a value's name is too long for the {style.name} diagram: {sublayer.values}")


class _Interior:
    """One attempt at the inside of a sublayer, in one flow."""

    def __init__(
        self, sublayer: SublayerFacts, sizes: dict[str, int], style: Style, role: str, room: float, flow: Flow
    ) -> None:
        self.sublayer, self.sizes, self.style, self.role, self.room, self.flow = (
            sublayer, sizes, style, role, room, flow)
        self.short = short_names(sublayer.values)
        self.parts = [part for part in sublayer.parts if any(name in sublayer.values for name in part.values)]
        self.part_of = {name: part for part in self.parts for name in part.values}
        #: By the two ends of an arrow, the key of the meeting point it goes through.
        self.through = {} if self.parts else _meetings(_distinct(sublayer))

    def build(self) -> Interior | None:
        sublayer, style = self.sublayer, self.style
        panels: dict[str, Arrangement] = {}
        items: list[Item] = []
        for name in sublayer.values:
            part = self.part_of.get(name)
            if part is None:
                items.append(self._item(name, 16, self.room - 24))
            elif f"part {part.name}" not in panels:
                inside = self._panel(part)
                if inside is None:
                    return None
                panels[f"part {part.name}"] = inside
                items.append(self._panel_item(part, inside))
        edges = _distinct(sublayer)
        ending = [edge for edge in edges if edge.target == sublayer.contribution]
        sink = sublayer.contribution if ending else None
        if sink is not None:
            size = 0.0 if len(ending) == 1 else 24.0 if self.parts else MEETING
            items.append(Item(sink, size, size))
        items += [Item(key, MEETING, MEETING) for key in dict.fromkeys(self.through.values())]
        outer = arrange(items, self._links(edges), self.flow, style.spacing, self.room, late=bool(self.parts),
                        sink=sink)
        if outer is None:
            return None
        return self._compose(outer, panels, edges, ending, sink)

    def _links(self, edges: Sequence[EdgeFacts]) -> list[Link]:
        found: dict[tuple[str, str], str | None] = {}
        for edge in edges:
            source, target = self._owner(edge.source), self._owner(edge.target)
            meeting = self.through.get((edge.source, edge.target))
            if meeting is not None:
                found |= {(source, meeting): None, (meeting, target): edge.label}
            elif source != target:
                found[source, target] = edge.label
        return [Link(source, target, label) for (source, target), label in found.items()]

    def _route(self, outer: Arrangement, edge: EdgeFacts, places: dict[str, Box]) -> tuple[Point, ...]:
        """The corners of an arrow between two items; none where it is not drawn."""
        source, target = self._owner(edge.source), self._owner(edge.target)
        meeting = self.through.get((edge.source, edge.target))
        stops = [source, target] if meeting is None else [source, meeting, target]
        if source == target or not all(pair in outer.links for pair in pairwise(stops)):
            return ()
        if meeting is None:
            return tuple(outer.route(source, target, places[edge.source], places[edge.target]))
        return (*outer.route(source, meeting), *outer.route(meeting, target))

    def _compose(
        self, outer: Arrangement, panels: dict[str, Arrangement], edges: list[EdgeFacts], ending: list[EdgeFacts],
        sink: str | None,
    ) -> Interior:
        places = dict(outer.boxes)
        marks = [Mark(label.x, label.y, self.role, label.text, label.anchor) for label in outer.labels]
        by_key = {f"part {part.name}": part for part in self.parts}
        drawn: list[Edge] = []
        for key, inside in panels.items():
            left, top = self._panel_origin(by_key[key], outer.boxes[key], inside)
            places |= {name: box.moved(left, top) for name, box in inside.boxes.items()}
            marks += [Mark(label.x + left, label.y + top, self.role, label.text, label.anchor)
                      for label in inside.labels]
            for edge in edges:
                if edge.source in inside.boxes and edge.target in inside.boxes:
                    drawn.append(self._edge(edge, moved(inside.route(edge.source, edge.target), left, top)))
        leaving: tuple[Point, ...] = ()
        for edge in edges:
            points = self._route(outer, edge, places)
            if points and edge.target == sink and len(ending) == 1:
                leaving = points
            elif points:
                drawn.append(self._edge(edge, points))
        marks += [Mark(outer.boxes[key].cx, outer.boxes[key].cy, self.role)
                  for key in dict.fromkeys(self.through.values())]
        join = outer.boxes[sink] if sink is not None and len(ending) > 1 else None
        nodes = self._nodes(outer, places)
        if join is not None:
            # The sum inside the module is the contribution itself; it shares the contribution's card.
            leaving = ((join.right, join.cy),) if self.flow == "across" else ((join.cx, join.bottom),)
        height = max((box.bottom for box in places.values()), default=0.0)
        return Interior(self.flow, outer.width, max(height, outer.height if self.flow == "across" else height),
                        tuple(nodes), tuple(drawn), tuple(marks), leaving, join)

    def _nodes(self, outer: Arrangement, places: dict[str, Box]) -> list[Node]:
        nodes: list[Node] = []
        host, opened = self.sublayer.host, set()
        for name in self.sublayer.values:
            part = self.part_of.get(name)
            if part is not None and part.name not in opened:
                opened.add(part.name)
                nodes.append(self._panel_node(part, outer.boxes[f"part {part.name}"]))
            box = places[name]
            nodes.append(Node(f"value.{host}.{name}", "value", self.role, f"{name}, value of {host}", box,
                              (Text(box.cx, box.cy + 4.5, self._label(name, box), "name", "middle"),)))
        return nodes

    def _panel_node(self, part: PartFacts, box: Box) -> Node:
        title, detail = PART_TITLES.get(part.name, part.name), part_sizes(part, self.sizes)
        if self.flow == "across":
            texts = [Text(box.x + 10, box.y + 18, title, "heading", after=detail)]
        else:
            words = title.split()
            texts = [Text(box.x + 10, box.y + 20 + LINE * index, word, "heading") for index, word in enumerate(words)]
            if detail is not None:
                texts.append(Text(box.x + 10, box.y + 20 + LINE * len(words), detail, "detail"))
        width, height = self._panel_title_size(part)
        size = (box.width, height) if self.flow == "across" else (width - 6, box.height)
        hit = Box(box.x, box.y, *size)
        return Node(f"part.{self.sublayer.host}.{part.name}", "panel", self.role, f"{title} of {self.sublayer.host}",
                    box, tuple(texts), hit=hit)

    def _panel_title_size(self, part: PartFacts) -> tuple[float, float]:
        """Room for a panel's title, which stands where no arrow comes in: above its values across, beside them down."""
        title, detail = PART_TITLES.get(part.name, part.name), part_sizes(part, self.sizes)
        if self.flow == "across":
            return len(f"{title}  {detail or ''}") * self.style.label_letter + 20, 28
        lines = [*title.split(), *([detail] if detail else [])]
        return max(len(line) for line in lines) * self.style.letter + 17, len(lines) * LINE + 18

    def _panel(self, part: PartFacts) -> Arrangement | None:
        names = [name for name in self.sublayer.values if name in part.values]
        links = [Link(edge.source, edge.target, edge.label) for edge in _distinct(self.sublayer)
                 if edge.source in names and edge.target in names]
        tight = Spacing(22, 26, 8, self.style.spacing.letter, self.style.spacing.line)
        if self.flow == "across":
            return arrange([self._item(name, 14, self.room) for name in names], links, "across", tight, self.room - 20)
        room = self.room - self._panel_title_size(part)[0] - 10
        items = [self._item(name, 14, room) for name in names]
        return arrange(items, links, "down", tight, min(self._widest_row(items, links, tight), room))

    def _widest_row(self, items: Sequence[Item], links: Sequence[Link], spacing: Spacing) -> float:
        """The least room in which no row of a panel is broken, so that the panel fits its rows."""
        probe = arrange(items, links, "down", spacing, 10_000)
        assert probe is not None
        rows: dict[float, float] = {}
        for box in probe.boxes.values():
            rows[box.y] = rows.get(box.y, -spacing.apart) + box.width + spacing.apart
        return max(rows.values()) + 2

    def _panel_item(self, part: PartFacts, inside: Arrangement) -> Item:
        width, height = self._panel_title_size(part)
        if self.flow == "across":
            return Item(f"part {part.name}", max(inside.width + 20, width), inside.height + height + 10)
        return Item(f"part {part.name}", width + inside.width + 10, max(inside.height + 20, height))

    def _panel_origin(self, part: PartFacts, panel: Box, inside: Arrangement) -> Point:
        if self.flow == "across":
            return panel.x + 10, panel.y + self._panel_title_size(part)[1]
        return panel.right - 10 - inside.width, panel.cy - inside.height / 2

    def _item(self, name: str, padding: float, room: float) -> Item:
        """A value's box, no wider than ``room``: its label is cut there, and spelled out on the card."""
        height = self.style.value_height - (4 if name in self.part_of else 0)
        return Item(name, min(len(self.short[name]) * self.style.letter + padding, room), height)

    def _label(self, name: str, box: Box) -> str:
        return cut(self.short[name], int((box.width - 6) / self.style.letter))

    def _owner(self, name: str) -> str:
        part = self.part_of.get(name)
        return name if part is None else f"part {part.name}"

    def _edge(self, edge: EdgeFacts, points: Sequence[Point]) -> Edge:
        host = self.sublayer.host
        target = (f"contribution.{host}" if edge.target == self.sublayer.contribution
                  else f"value.{host}.{edge.target}")
        return Edge(f"value.{host}.{edge.source}", target, self.role, tuple(points))


def _meetings(edges: Sequence[EdgeFacts]) -> dict[tuple[str, str], str]:
    """Arrows that meet on their way: several values are each made from the same :data:`SHARED` or more others."""
    sources: dict[str, list[str]] = {}
    for edge in edges:
        sources.setdefault(edge.target, []).append(edge.source)
    through: dict[tuple[str, str], str] = {}
    for one, other in combinations(sources, 2):
        common = [name for name in sources[one] if name in sources[other]]
        ends = [(name, target) for target in (one, other) for name in common]
        if len(common) >= SHARED and not any(end in through for end in ends):
            through |= dict.fromkeys(ends, f"meeting {one} {other}")
    return through


def _distinct(sublayer: SublayerFacts) -> list[EdgeFacts]:
    """The edges between what is drawn, each pair once."""
    known = {*sublayer.values, sublayer.contribution}
    pairs = {(edge.source, edge.target): edge for edge in sublayer.edges
             if edge.source in known and edge.target in known
             and edge.source not in (edge.target, sublayer.contribution)}
    return list(pairs.values())
