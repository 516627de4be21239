"""The diagram of one kind of block: what is drawn and where, computed from its facts alone.

A residual stream runs down the left. Each sublayer is a row: its norm, the module with its interior values in the
order of the data, its post-norm, and the line by which its contribution returns to an add on the stream.
"""

from __future__ import annotations

from collections.abc import Sequence

from encyclopedia.facts import KindFacts, SublayerFacts
from encyclopedia.page.course import Course, course, factor_in_short
from encyclopedia.page.drawing import (
    HOST_ROLES,
    LINE,
    Drawing,
    Edge,
    Mark,
    Node,
    Style,
    Text,
    cut,
    moved,
    moved_node,
)
from encyclopedia.page.geometry import Box, Point, number, polyline
from encyclopedia.page.interior import interior_of
from encyclopedia.page.wording import broken_name, sizes_of, sublayer_title

#: Radius of an add, and of a gate.
ADD, GATE = 14.0, 11.0
#: Height of a contribution's box.
CHIP = 28.0
#: What stands in a block of which no sublayer is known.
UNKNOWN = "no sublayer told apart"


def draw(kind: KindFacts, style: Style, way: Course | None = None) -> Drawing:
    """One layout of the diagram of ``kind``.

    Args:
        kind: the facts of the blocks that are drawn.
        style: :data:`WIDE` or :data:`NARROW`.
        way: how its parts follow one another; by default one after the other.
    """
    return _Painter(kind, style, way or course(kind)).paint()


class _Painter:
    """Draws rows from the top down; ``y`` is how far it has come."""

    def __init__(self, kind: KindFacts, style: Style, way: Course) -> None:
        self.kind, self.style, self.way = kind, style, way
        self.drawing = Drawing(style.name, style.width, streams=way.streams)
        self.y = 44.0
        self.norms: dict[str, Box] = {}
        #: Where adds and gates interrupt the stream, from the top.
        self.adds: list[float] = []
        self.cuts: list[tuple[float, float]] = []
        #: Where the stream between two rows begins: among the nodes, and from the top.
        self.middle: tuple[int, float] | None = None

    def paint(self) -> Drawing:
        rows = self.way.rows
        for index, row in enumerate(rows):
            ways = []
            for lane, sublayer in enumerate(row):
                self.y += 26 if lane else 0
                ways.append(self._row(sublayer, lane, alone=len(row) == 1))
            for lane, (sublayer, (leave, join)) in enumerate(zip(row, ways, strict=True)):
                self._return(sublayer, leave, join, lane)
            if self.way.mid and index == 0:
                self.middle = len(self.drawing.nodes), self.adds[-1]
            self.y += 48 if index + 1 < len(rows) else 0
        for name in self.way.loose:
            self._loose(name)
        if self.way.scale is not None:
            lines = broken_name(self.way.scale, 40 if self.style.beside else self.style.pill_letters)
            self.y += ADD + GATE + 11 + 8 * (len(lines) - 1)
            self._gate("layer", self.way.scale, lines, self.y)
        if not rows and not self.way.loose:
            self.drawing.marks.append(Mark(self.style.pill, self.y + 22, "stream", UNKNOWN, "start"))
            self.y += 36
        self._streams()
        return self.drawing

    def _streams(self) -> None:
        nodes, bottom = self.drawing.nodes, self.y + 56
        self.drawing.height = bottom + 8
        first, last = (self.adds[0], self.adds[-1]) if self.adds else (self.y, self.y)
        end_of_input = first if self.adds else self.y - 6
        if self.middle is not None:
            at, top = self.middle
            below = next(add for add in self.adds if add > top)
            nodes.insert(at, self._stream("mid", top, below, top + ADD + 20))
            self.drawing.between = self._line(first, top) + self._line(below, last)
        else:
            self.drawing.between = self._line(first, last)
        nodes.insert(0, self._stream("input", 8, end_of_input, 20))
        nodes.append(self._stream("output", last if self.adds else end_of_input, bottom, bottom - 12))

    def _line(self, top: float, bottom: float) -> str:
        """The stream from ``top`` to ``bottom``, without what interrupts it."""
        line, start = "", top
        for cut_top, cut_bottom in self.cuts:
            if cut_bottom <= top or cut_top >= bottom:
                continue
            if cut_top > start:
                line += f"M{number(self.style.stream)} {number(start)}V{number(cut_top)}"
            start = cut_bottom
        if start < bottom:
            line += f"M{number(self.style.stream)} {number(start)}V{number(bottom)}"
        return line

    def _stream(self, name: str, top: float, bottom: float, text: float) -> Node:
        x, label = self.style.stream, f"layer_{name}"
        after = None if self.way.streams is None else f"× {self.way.streams} streams"
        line = self._line(top, bottom)
        if name == "output":
            line += f"M{number(x - 6)} {number(bottom - 7)}l6 7l6-7"
        letters = len(label) + (0 if after is None else len(after) + 1)
        box = Box(x - 9, text - 14, 27 + letters * self.style.letter, 22)
        return Node(f"stream.{name}", "stream", "stream", f"{label}, the residual stream", box,
                    (Text(x + 14, text + 1, label, "name", after=after),), line=line,
                    sure=name != "input" or self.way.carried)

    def _row(
        self, sublayer: SublayerFacts, lane: int, *, alone: bool
    ) -> tuple[tuple[Point, ...], Box | None]:
        """Draws a sublayer and its norm; gives the way its contribution leaves, and the sum it leaves from."""
        style, role, top = self.style, HOST_ROLES.get(sublayer.host, "attention"), self.y
        pill = self._norm_box(sublayer, top)
        if not style.beside and pill is not None:
            top = pill.bottom + 20
        header, texts = self._header(sublayer, top)
        room = style.width - style.margin - style.module - 2 * style.pad
        interior = interior_of(sublayer, self.kind.sizes, style, role, room)
        height = header + (interior.height + style.pad if interior.nodes else 6)
        if style.beside and pill is not None:
            height = max(height, pill.bottom - top)
        module = Box(style.module, top, style.width - style.margin - style.module, height)
        self._norm(sublayer, pill, module)
        title = sublayer_title(sublayer, self.kind.sizes)
        self.drawing.nodes.append(Node(f"sublayer.{sublayer.host}", "sublayer", role,
                                       f"{sublayer.host}, {title}", module, texts,
                                       hit=Box(module.x, top, module.width, min(header, height))))
        dx, dy = module.x + style.pad, top + header
        self.drawing.nodes += [moved_node(node, dx, dy) for node in interior.nodes]
        self.drawing.edges += [Edge(edge.source, edge.target, edge.role, moved(edge.points, dx, dy), edge.head)
                               for edge in interior.edges]
        self.drawing.marks += [Mark(mark.x + dx, mark.y + dy, mark.role, mark.text, mark.anchor)
                               for mark in interior.marks]
        self.y = module.bottom
        side = module.right + 16 - 6 * lane
        leave = moved(interior.exit, dx, dy) or ((module.right, module.cy),)
        if interior.flow == "down" and interior.exit and not alone:
            leave = (*leave, (leave[-1][0], module.bottom - style.pad / 2))
        if interior.flow == "across" or not interior.exit or not alone:
            leave = (*leave, (side, leave[-1][1]))
        return leave, None if interior.join is None else interior.join.moved(dx, dy)

    def _norm_box(self, sublayer: SublayerFacts, top: float) -> Box | None:
        """Where the sublayer's norm stands; ``None`` where it has none of its own."""
        style = self.style
        if sublayer.norm is None or sublayer.norm in self.norms:
            return None
        lines = broken_name(sublayer.norm, style.pill_letters)
        height = max(34.0, len(lines) * LINE + 14)
        width = min(max(len(line) for line in lines) * style.letter + 24, style.module - style.pill - 22
                    if style.beside else style.width - style.margin - style.pill)
        return Box(style.pill, max(top, top + 34 - height / 2) if style.beside else top, width, height)

    def _norm(self, sublayer: SublayerFacts, pill: Box | None, module: Box) -> None:
        """The way from the stream into the module, through the norm if there is one."""
        style, role = self.style, HOST_ROLES.get(sublayer.host, "attention")
        host, entry = f"sublayer.{sublayer.host}", module.y + min(34.0, module.height / 2)
        if sublayer.norm is not None and pill is None:
            shared = self.norms[sublayer.norm]
            lane = shared.right + 10 if style.beside else module.x - 9
            start = (shared.right, shared.cy) if style.beside else (shared.x + 16, shared.bottom)
            turn = start[1] if style.beside else shared.bottom + 7
            points = (start, (start[0], turn), (lane, turn), (lane, entry), (module.x, entry))
            self.drawing.edges.append(Edge(f"norm.{sublayer.norm}", host, "norm", points))
            return
        self.drawing.marks.append(Mark(style.stream, pill.cy if pill else entry, "stream"))
        if pill is None:
            self.drawing.edges.append(Edge(self._read_from(), host, role, ((style.stream, entry), (module.x, entry))))
            return
        assert sublayer.norm is not None
        self.norms[sublayer.norm] = pill
        self.drawing.nodes.append(self._pill(sublayer.norm, "norm", pill))
        self.drawing.edges.append(Edge(self._read_from(), f"norm.{sublayer.norm}", "norm",
                                       ((style.stream, pill.cy), (pill.x, pill.cy))))
        onward = ((pill.right, pill.cy), (module.x, pill.cy)) if style.beside else (
            (pill.cx, pill.bottom), (pill.cx, module.y))
        self.drawing.edges.append(Edge(f"norm.{sublayer.norm}", host, "norm", onward))

    def _read_from(self) -> str:
        """The node whose stretch of the stream is read next."""
        if not self.adds:
            return "stream.input"
        return "stream.mid" if self.middle is not None else f"add.{len(self.adds) - 1}"

    def _pill(self, name: str, what: str, box: Box) -> Node:
        lines = broken_name(name, self.style.pill_letters)
        most = max(4, int((box.width - 14) / self.style.letter))
        first = box.cy - (len(lines) - 1) * LINE / 2 + 4
        texts = tuple(Text(box.cx, first + LINE * index, cut(line, most), "name", "middle")
                      for index, line in enumerate(lines))
        return Node(f"norm.{name}", "norm", "norm", f"{name}, {what}", box, texts)

    def _header(self, sublayer: SublayerFacts, top: float) -> tuple[float, tuple[Text, ...]]:
        style = self.style
        x, title = style.module + style.pad, sublayer_title(sublayer, self.kind.sizes)
        phrases = sizes_of(sublayer, self.kind.sizes)
        room = style.width - style.margin - style.module - 2 * style.pad
        beside = [sublayer.host, *phrases]
        if style.beside and len(title) * 10.5 + len(" · ".join(beside)) * style.label_letter <= room:
            return 46, (Text(x, top + 27, title, "title", after=" · ".join(beside)),)
        lines = [""]
        for phrase in phrases:
            longer = f"{lines[-1]} · {phrase}" if lines[-1] else phrase
            if lines[-1] and len(longer) * style.label_letter > room:
                lines.append(phrase)
            else:
                lines[-1] = longer
        most = int(room / style.label_letter)
        lines = [cut(line, most) for line in lines if line]
        texts = [Text(x, top + 24, title, "title", after=sublayer.host)]
        texts += [Text(x, top + 43 + 16 * index, line, "sizes") for index, line in enumerate(lines)]
        return 38 + 16.0 * len(lines), tuple(texts)

    def _return(self, sublayer: SublayerFacts, leave: tuple[Point, ...], join: Box | None, lane: int) -> None:
        """The contribution's way back: through the post-norm, past any gate on the stream, to the add."""
        style, role = self.style, HOST_ROLES.get(sublayer.host, "attention")
        host, right = f"contribution.{sublayer.host}", style.width - style.margin
        sideways, sure = leave[-1][0] > right, sublayer.host in self.way.stated
        words = self._added(self.way.name_of(sublayer), self.way.factors.get(sublayer.host))
        width = max(map(len, words)) * style.letter + 22
        height = CHIP + LINE * (len(words) - 1)
        gate_lines = broken_name(sublayer.stream_gate or "", 40 if style.beside else style.pill_letters)
        y = self.y + (46 if lane else 36) + (20 + 8 * len(gate_lines) if sublayer.stream_gate else 0)
        y += (height - CHIP) / 2
        post, stacked, middle = None, False, right - width / 2 if sideways else leave[-1][0]
        if sublayer.post_norm is not None:
            size = self._post_size(sublayer.post_norm)
            stacked = size[0] + width + 40 > right - style.module
            y = max(y, self.y + 20 + size[1] / 2)
            centre = right - size[0] / 2 if sideways else _within(middle, size[0], style.pill, right)
            post = Box.around(centre, y, *size)
            if stacked:
                y = post.bottom + 20 + height / 2
            else:
                middle = post.x - 26 - width / 2
        chip = Box.around(_within(middle, width, style.pill + 4, right), y, width, height)
        source = self._leaving(sublayer)
        if post is None:
            self.drawing.edges.append(Edge(source, host, role, _into(chip, leave, sideways)))
        else:
            name = f"norm.{sublayer.post_norm}"
            self.drawing.edges.append(Edge(source, name, role, _into(post, leave, sideways)))
            self.drawing.nodes.append(self._pill(str(sublayer.post_norm), f"behind {sublayer.host}", post))
            onward = _into(chip, ((post.cx, post.bottom),), False) if stacked else ((post.x, y), (chip.right, y))
            self.drawing.edges.append(Edge(name, host, role, onward))
        self._contribution(host, role, f"{self.way.name_of(sublayer)}, contribution", chip, words, join=join,
                           sums=bool(sublayer.parts), sure=sure)
        if sublayer.stream_gate is not None:
            self._gate(sublayer.host, sublayer.stream_gate, gate_lines, y - ADD - GATE - 11)
        self._add(y, sure=sure)
        self.y = max(y + (height - CHIP) / 2, post.bottom - CHIP / 2 if post is not None else y)

    def _added(self, name: str, factor: str | None) -> list[str]:
        """What stands in a contribution's box: its name, and under it what multiplies it."""
        most = int((self.style.width - self.style.margin - self.style.pill - 30) / self.style.letter)
        return [cut(line, most) for line in (name, *([] if factor is None else [factor_in_short(factor)]))]

    def _contribution(
        self, node: str, role: str, name: str, box: Box, words: Sequence[str], *, join: Box | None = None,
        sums: bool = False, sure: bool = True,
    ) -> None:
        """A contribution's box, and its line to the stream."""
        top = box.cy + 4.5 - LINE * (len(words) - 1) / 2
        texts = tuple(Text(box.cx, top + LINE * index, word, "detail" if index else "name", "middle")
                      for index, word in enumerate(words))
        line = polyline(((box.x, box.cy), (self.style.stream + ADD + 3, box.cy)))
        self.drawing.nodes.append(Node(node, "contribution", role, name, box, texts, line=line, join=join,
                                       sums=sums, sure=sure))

    def _loose(self, name: str) -> None:
        """The output of a native module that is added as it is."""
        words = self._added(name, self.way.factors.get(name))
        width, height = max(map(len, words)) * self.style.letter + 22, CHIP + LINE * (len(words) - 1)
        y = self.y + 32 + height / 2
        left = self.style.module if self.style.beside else self.style.pill + 4
        self._contribution(f"contribution.{name}", "stream", f"{name}, added to the stream",
                           Box(left, y - height / 2, width, height), words)
        self._add(y)
        self.y = y + (height - CHIP) / 2

    def _post_size(self, name: str) -> tuple[float, float]:
        lines = broken_name(name, self.style.pill_letters)
        return max(len(line) for line in lines) * self.style.letter + 24, max(32.0, len(lines) * LINE + 12)

    def _leaving(self, sublayer: SublayerFacts) -> str:
        """The node that the contribution's way starts at."""
        sources = [edge.source for edge in sublayer.edges
                   if edge.target == sublayer.contribution and edge.source in sublayer.values]
        if len(sources) == 1:
            return f"value.{sublayer.host}.{sources[0]}"
        return f"sublayer.{sublayer.host}"

    def _gate(self, host: str, gate: str, lines: Sequence[str], y: float) -> None:
        x, reach = self.style.stream, GATE * 0.42
        sign = "".join(f"M{number(x - reach * side)} {number(y - reach)}L{number(x + reach * side)} {number(y + reach)}"
                       for side in (1, -1))
        first = y - (len(lines) - 1) * LINE / 2 + 4
        texts = tuple(Text(x + GATE + 8, first + LINE * index, line, "name") for index, line in enumerate(lines))
        self.drawing.nodes.append(Node(f"gate.{host}", "gate", "stream", f"{gate}, gate on the stream",
                                       Box.around(x, y, 2 * GATE, 2 * GATE), texts, line=sign))
        self.cuts.append((y - GATE, y + GATE))

    def _add(self, y: float, *, sure: bool = True) -> None:
        x, reach = self.style.stream, 6.0
        across, up = number(2 * reach), number(-reach)
        sign = f"M{number(x - reach)} {number(y)}h{across}m{up} {up}v{across}"
        index = len(self.adds)
        self.drawing.nodes.append(Node(f"add.{index}", "add", "stream", f"add {index}, onto the residual stream",
                                       Box.around(x, y, 2 * ADD, 2 * ADD), line=sign, sure=sure))
        self.adds.append(y)
        self.cuts.append((y - ADD, y + ADD))


def _into(box: Box, leave: tuple[Point, ...], sideways: bool) -> tuple[Point, ...]:
    """The rest of a way into ``box``: through its right side, or from above."""
    x = leave[-1][0]
    if sideways:
        return (*leave, (x, box.cy), (box.right, box.cy))
    meeting = min(max(x, box.x + 12), box.right - 12)
    return (*leave, (x, box.y - 12), (meeting, box.y - 12), (meeting, box.y))


def _within(centre: float, width: float, left: float, right: float) -> float:
    return min(max(centre, left + width / 2), right - width / 2)
