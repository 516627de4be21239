"""Plane geometry for the block's diagram: boxes, and paths of horizontal and vertical lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

Point = tuple[float, float]

#: Length and half-width of an arrowhead.
HEAD = (5.5, 3.6)
#: Radius that rounds a path's corners.
CORNER = 6.0


@dataclass(frozen=True)
class Box:
    """A rectangle by its upper left corner; ``y`` grows downwards."""

    x: float
    y: float
    width: float
    height: float

    @classmethod
    def around(cls, x: float, y: float, width: float, height: float) -> Box:
        """The box of this size whose centre is ``(x, y)``."""
        return cls(x - width / 2, y - height / 2, width, height)

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def cx(self) -> float:
        return self.x + self.width / 2

    @property
    def cy(self) -> float:
        return self.y + self.height / 2

    def moved(self, dx: float, dy: float) -> Box:
        """This box, shifted."""
        return replace(self, x=self.x + dx, y=self.y + dy)


def number(value: float) -> str:
    """``value`` to one decimal, without a trailing zero."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def polyline(points: Sequence[Point], *, head: bool = True) -> str:
    """The ``d`` of an SVG path along ``points`` with rounded corners.

    Args:
        points: at least two corners, joined by horizontal and vertical lines.
        head: whether to draw an arrowhead at the end. It is part of the path, so a drawing needs no marker with an
            id of its own.
    """
    corners = _without_repeats(points)
    if len(corners) < 2:
        return ""
    parts = [f"M{_pair(corners[0])}"]
    for before, corner, after in zip(corners, corners[1:], corners[2:], strict=False):
        radius = min(CORNER, _distance(before, corner) / 2, _distance(corner, after) / 2)
        begin, end = _towards(corner, before, radius), _towards(corner, after, radius)
        parts.append(f"L{_pair(begin)}Q{_pair(corner)} {_pair(end)}")
    parts.append(f"L{_pair(corners[-1])}")
    if head:
        parts.append(_arrowhead(corners[-2], corners[-1]))
    return "".join(parts)


def _arrowhead(before: Point, tip: Point) -> str:
    length, half = HEAD
    back = _towards(tip, before, length)
    dx, dy = (tip[0] - back[0]) / length, (tip[1] - back[1]) / length
    left, right = (back[0] - dy * half, back[1] + dx * half), (back[0] + dy * half, back[1] - dx * half)
    return f"M{_pair(left)}L{_pair(tip)}L{_pair(right)}"


def _without_repeats(points: Sequence[Point]) -> list[Point]:
    kept: list[Point] = []
    for point in points:
        if kept and _distance(kept[-1], point) < 0.05:
            continue
        if len(kept) >= 2 and _straight(kept[-2], kept[-1], point):
            kept[-1] = point
        else:
            kept.append(point)
    return kept


def _straight(a: Point, b: Point, c: Point) -> bool:
    return any(abs(a[axis] - b[axis]) < 0.05 and abs(b[axis] - c[axis]) < 0.05 for axis in (0, 1))


def _distance(a: Point, b: Point) -> float:
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


def _towards(start: Point, end: Point, length: float) -> Point:
    distance = ((end[0] - start[0]) ** 2 + (end[1] - start[1]) ** 2) ** 0.5 or 1.0
    return (start[0] + (end[0] - start[0]) * length / distance, start[1] + (end[1] - start[1]) * length / distance)


def _pair(point: Point) -> str:
    return f"{number(point[0])} {number(point[1])}"
