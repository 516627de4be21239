"""Arranging boxes that are computed from one another: in layers, along the arrows.

A layer holds what is equally far along the data. Layers stand side by side (``across``) or one under the other
(``down``); an arrow that skips a layer keeps a lane of its own through it, so that it passes beside the boxes. All
arithmetic is in two coordinates, *along* the arrows and *aside* of them, and turned to x and y at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal

from encyclopedia.page.geometry import Box, Point

Flow = Literal["across", "down"]

#: How far after a layer the arrows that leave it turn.
TURN = 9.0
#: How much further each unrelated bundle of arrows in one gap turns.
STAGGER = 5.0
#: Room aside that an arrow takes in a layer it skips.
LANE = 10.0


@dataclass(frozen=True)
class Item:
    """Something to place, by its least size."""

    key: str
    width: float
    height: float


@dataclass(frozen=True)
class Link:
    """An arrow between two items, with the operation's name if it has one."""

    source: str
    target: str
    label: str | None = None


@dataclass(frozen=True)
class Label:
    """A word at an arrow."""

    text: str
    x: float
    y: float
    anchor: Literal["start", "middle", "end"]


@dataclass(frozen=True)
class Spacing:
    """Distances of an arrangement.

    Attributes:
        gap: least distance between two layers.
        widest: largest distance between two layers.
        apart: distance between neighbours in a layer.
        letter: width of one letter of a label.
        line: height of a label.
    """

    gap: float
    widest: float
    apart: float
    letter: float
    line: float


@dataclass(frozen=True)
class Arrangement:
    """Items with their places, from ``(0, 0)`` to ``(width, height)``."""

    flow: Flow
    boxes: dict[str, Box]
    width: float
    height: float
    labels: list[Label]
    #: The pairs of keys that :meth:`route` knows.
    links: frozenset[tuple[str, str]]
    _level: dict[str, int] = field(repr=False)
    _lanes: dict[tuple[str, int], float] = field(repr=False)
    _gaps: list[tuple[float, float]] = field(repr=False)
    _bundle: dict[tuple[str, str], int] = field(repr=False)

    def route(self, source: str, target: str, start: Box | None = None, end: Box | None = None) -> list[Point]:
        """The corners of the arrow from ``source`` to ``target``.

        Args:
            source: key of the item it leaves.
            target: key of the item it enters, in a later layer.
            start: the box it leaves where that is one inside the source.
            end: the box it enters where that is one inside the target.
        """
        start, end = start or self.boxes[source], end or self.boxes[target]
        aside = _aside_centre(start, self.flow)
        points = [(_along_end(start, self.flow), aside)]
        last = self._level[target]
        for level in range(self._level[source] + 1, last + 1):
            wanted = _aside_centre(end, self.flow) if level == last else self._lanes.get((source, level), aside)
            if abs(wanted - aside) > 0.05:
                turn = self._turn(level, self._bundle.get((source, target), 0))
                points += [(turn, aside), (turn, wanted)]
                aside = wanted
        points.append((_along_start(end, self.flow), aside))
        return points if self.flow == "across" else [(x, y) for y, x in points]

    def _turn(self, level: int, bundle: int) -> float:
        start, stop = self._gaps[level - 1]
        return min(start + TURN + STAGGER * bundle, max(stop - TURN, start))


def arrange(
    items: Sequence[Item],
    links: Sequence[Link],
    flow: Flow,
    spacing: Spacing,
    available: float,
    *,
    late: bool = False,
    sink: str | None = None,
) -> Arrangement | None:
    """Places for ``items``.

    Args:
        items: what to place, in forward order.
        links: arrows between them; one that leads back is only drawn where it can be.
        flow: whether layers stand side by side or one under the other.
        spacing: distances.
        available: room in x; across, the layers must fit in it, and down, each layer is broken to fit.
        late: whether an item made from nothing stands right before what is made from it, rather than first.
        sink: key of the item that everything ends in; it stands alone in the last layer.

    Returns:
        The arrangement, or ``None`` where it does not fit in ``available``.
    """
    sizes = {item.key: (item.width, item.height) if flow == "across" else (item.height, item.width) for item in items}
    forward = _acyclic(items, links)
    layers = _layers(items, forward, late=late, sink=sink)
    if flow == "down":
        layers = _broken(layers, {link.target for link in forward}, sizes, spacing.apart, available)
    level = {key: index for index, layer in enumerate(layers) for key in layer}
    gaps = _gap_sizes(layers, level, sizes, forward, flow, spacing)
    lengths = [max((sizes[key][0] for key in layer), default=0.0) for layer in layers]
    if flow == "across":
        spare = available - sum(lengths) - sum(gaps)
        if spare < -1e-6:
            return None
        gaps = _stretched(gaps, spare, spacing.widest)
    limit = available if flow == "down" else None
    if limit is not None and any(sizes[key][1] > limit for key in level):
        return None
    aside, lanes = _aside(layers, level, sizes, forward, spacing.apart, limit)
    *starts, end = accumulate((length + gap for length, gap in zip(lengths, [*gaps, 0.0], strict=False)), initial=0.0)
    boxes = _boxes(layers, list(zip(starts, lengths, strict=True)), aside, sizes, flow)
    spans = [(start + length, after) for start, length, after in zip(starts, lengths, starts[1:], strict=False)]
    depth = max((aside[key] + sizes[key][1] for key in level), default=0.0)
    width, height = (end, depth) if flow == "across" else (available, end)
    bundles = _bundles(level, forward)
    return Arrangement(flow, boxes, width, height, _labels(boxes, forward, level, spans, flow, spacing, available),
                       frozenset(bundles), level, lanes, spans, bundles)


def _boxes(
    layers: list[list[str]], extents: list[tuple[float, float]], aside: dict[str, float],
    sizes: dict[str, tuple[float, float]], flow: Flow,
) -> dict[str, Box]:
    """Where each item stands, from the start and the length of each layer and where the items start aside."""
    boxes = {}
    for layer, (start, length) in zip(layers, extents, strict=True):
        for key in layer:
            own, thickness = sizes[key]
            if flow == "across":
                # A column of one width reads as one step; rows already have one height.
                boxes[key] = Box(start, aside[key], length if own else own, thickness)
            else:
                boxes[key] = Box(aside[key], start, thickness, own)
    return boxes


def _acyclic(items: Sequence[Item], links: Sequence[Link]) -> list[Link]:
    keys = {item.key for item in items}
    kept: list[Link] = []
    reached: dict[str, set[str]] = {key: {key} for key in keys}
    for link in links:
        if link.source not in keys or link.target not in keys or link.source in reached[link.target]:
            continue
        kept.append(link)
        for key in keys:
            if link.source in reached[key]:
                reached[key] |= reached[link.target]
    return kept


def _layers(items: Sequence[Item], links: Sequence[Link], *, late: bool, sink: str | None) -> list[list[str]]:
    level = {item.key: 0 for item in items}
    for _ in items:
        for link in links:
            level[link.target] = max(level[link.target], level[link.source] + 1)
    if sink is not None and len(items) > 1:
        level[sink] = max(level[key] for key in level if key != sink) + 1
    if late:
        made = {link.target for link in links}
        for item in items:
            after = [level[link.target] for link in links if link.source == item.key]
            if item.key not in made and after:
                level[item.key] = min(after) - 1
    used = sorted(set(level.values()))
    return [[item.key for item in items if level[item.key] == value] for value in used]


def _broken(
    layers: list[list[str]], made: set[str], sizes: dict[str, tuple[float, float]], apart: float, limit: float
) -> list[list[str]]:
    """``layers`` with those that are too wide in several rows; what arrows lead to stands nearer to their start."""
    broken = []
    for layer in layers:
        row: list[str] = []
        used = 0.0
        for key in sorted(layer, key=lambda key: key not in made) if _total(layer, sizes, apart) > limit else layer:
            if row and used + apart + sizes[key][1] > limit:
                broken.append(row)
                row, used = [], 0.0
            used += sizes[key][1] + (apart if row else 0.0)
            row.append(key)
        broken.append(row)
    return broken


def _total(layer: Sequence[str], sizes: dict[str, tuple[float, float]], apart: float) -> float:
    return sum(sizes[key][1] for key in layer) + apart * (len(layer) - 1)


def _gap_sizes(
    layers: list[list[str]],
    level: dict[str, int],
    sizes: dict[str, tuple[float, float]],
    links: Sequence[Link],
    flow: Flow,
    spacing: Spacing,
) -> list[float]:
    gaps = []
    for index in range(1, len(layers)):
        if not any(sizes[key][0] for key in layers[index]):
            # A sink without a size is only where the last arrow leaves.
            gaps.append(2 * TURN)
            continue
        texts = [link.label for link in links if link.label and level[link.target] == index]
        room = max((len(text) * spacing.letter + 12 for text in texts), default=0.0) if flow == "across" else (
            spacing.line + TURN + 6 if texts else 0.0)
        bends = len({link.source for link in links if level[link.target] == index}) > 1
        gaps.append(max(spacing.gap, room + (TURN if bends and flow == "across" else 0.0)))
    return gaps


def _stretched(gaps: list[float], spare: float, widest: float) -> list[float]:
    if not gaps:
        return gaps
    share = spare / len(gaps)
    return [max(gap, min(gap + share, widest)) for gap in gaps]


def _aside(
    layers: list[list[str]],
    level: dict[str, int],
    sizes: dict[str, tuple[float, float]],
    links: Sequence[Link],
    apart: float,
    limit: float | None,
) -> tuple[dict[str, float], dict[tuple[str, int], float]]:
    """Where each item starts aside, and the centre of each lane by source and layer."""
    start: dict[str, float] = {}
    lanes: dict[tuple[str, int], float] = {}

    def centre(source: str, before: int) -> float:
        return lanes[source, before] if (source, before) in lanes else start[source] + sizes[source][1] / 2

    for index, layer in enumerate(layers):
        wanted: list[tuple[str | tuple[str, int], float, float | None]] = []
        for key in layer:
            incoming = [link.source for link in links if link.target == key]
            skipping = [source for source in incoming if level[source] < index - 1]
            # An arrow that skipped layers arrives in a straight line; otherwise stand between what it is made from.
            anchors = skipping or incoming
            middle = sum(centre(source, index - 1) for source in anchors) / len(anchors) if anchors else None
            wanted.append((key, sizes[key][1], middle))
        passing = dict.fromkeys(link.source for link in links if level[link.source] < index < level[link.target])
        through = [((source, index), LANE, centre(source, index - 1)) for source in passing]
        placed = _placed([*wanted, *through], apart, limit) or _placed(wanted, apart, limit) or {}
        for name, position in placed.items():
            if isinstance(name, tuple):
                lanes[name] = position + LANE / 2
            else:
                start[name] = position
        for source in passing:
            lanes.setdefault((source, index), centre(source, index - 1))
    if limit is None:
        lowest = min(start.values(), default=0.0)
        start = {key: value - lowest for key, value in start.items()}
        lanes = {lane: value - lowest for lane, value in lanes.items()}
    return start, lanes


def _placed(
    wanted: Sequence[tuple[str | tuple[str, int], float, float | None]], apart: float, limit: float | None
) -> dict[str | tuple[str, int], float] | None:
    """Starts along one line, in the order of the wished centres; ``None`` where the line is too short."""
    total = sum(size for _, size, _ in wanted) + apart * max(len(wanted) - 1, 0)
    if limit is not None and total > limit + 1e-6:
        return None
    # What wishes for nothing stands last, but before lanes: an arrow that passes by stays on the outside.
    only_lanes = all(isinstance(name, tuple) for name, _, middle in wanted if middle is not None)
    ordered = sorted(wanted, key=lambda entry: ((entry[2] is None) != only_lanes, entry[2] or 0.0))
    starts: list[float] = []
    cursor: float | None = None
    for _, size, middle in ordered:
        begin = cursor if cursor is not None else (0.0 if middle is None else middle - size / 2)
        if middle is not None and cursor is not None:
            begin = max(cursor, middle - size / 2)
        starts.append(begin)
        cursor = begin + size + apart
    drifts = [middle - (begin + size / 2) for begin, (_, size, middle) in zip(starts, ordered, strict=True)
              if middle is not None]
    shift = sum(drifts) / len(drifts) if drifts else ((limit - total) / 2 if limit is not None else 0.0)
    starts = [begin + shift for begin in starts]
    if limit is not None:
        edge = limit
        for index in reversed(range(len(starts))):
            starts[index] = min(starts[index], edge - ordered[index][1])
            edge = starts[index] - apart
        edge = 0.0
        for index in range(len(starts)):
            starts[index] = max(starts[index], edge)
            edge = starts[index] + ordered[index][1] + apart
    return {name: begin for begin, (name, _, _) in zip(starts, ordered, strict=True)}


def _bundles(level: dict[str, int], links: Sequence[Link]) -> dict[tuple[str, str], int]:
    """A number per link: links into one layer that share a source or a target turn together."""
    bundles: dict[tuple[str, str], int] = {}
    for index in set(level.values()):
        groups: list[tuple[set[str], set[str]]] = []
        for link in (link for link in links if level[link.target] == index):
            touching = [group for group in groups if link.source in group[0] or link.target in group[1]]
            sources, targets = {link.source}, {link.target}
            for group in touching:
                sources |= group[0]
                targets |= group[1]
                groups.remove(group)
            groups.append((sources, targets))
        for link in (link for link in links if level[link.target] == index):
            bundles[link.source, link.target] = next(n for n, group in enumerate(groups) if link.source in group[0])
    return bundles


def _labels(
    boxes: dict[str, Box],
    links: Sequence[Link],
    level: dict[str, int],
    spans: list[tuple[float, float]],
    flow: Flow,
    spacing: Spacing,
    available: float,
) -> list[Label]:
    labels = []
    for target, text in dict.fromkeys((link.target, link.label) for link in links if link.label):
        box, sources = boxes[target], [link.source for link in links if link.target == target]
        start, _ = spans[level[target] - 1]
        assert text is not None
        if flow == "across":
            bent = any(abs(boxes[source].cy - box.cy) > 0.05 for source in sources)
            left = start + (TURN if bent else 0.0)
            labels.append(Label(text, (left + box.x) / 2, box.cy - 5, "middle"))
        else:
            fits = box.cx + 7 + len(text) * spacing.letter <= available
            labels.append(Label(text, box.cx + (7 if fits else -7), box.y - 8, "start" if fits else "end"))
    return labels


def _along_start(box: Box, flow: Flow) -> float:
    return box.x if flow == "across" else box.y


def _along_end(box: Box, flow: Flow) -> float:
    return box.right if flow == "across" else box.bottom


def _aside_centre(box: Box, flow: Flow) -> float:
    return box.cy if flow == "across" else box.cx
