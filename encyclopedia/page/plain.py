"""Pieces of plain Markdown, for files that are read as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from encyclopedia.page.api import ShapeLine


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar in a cell would end it."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(one_line(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def bullets(entries: Iterable[str]) -> str:
    """A list."""
    return "\n".join(f"- {one_line(entry)}" for entry in entries)


def one_line(text: str) -> str:
    """``text`` without line breaks."""
    return " ".join(text.split())


def shapes(lines: Sequence[ShapeLine]) -> str:
    """Shapes, each with its blocks where it is not on all of them."""
    return "; ".join(f"[{', '.join(map(str, line.sizes))}]" + (f" on {line.blocks}" if line.blocks else "")
                     for line in lines)
