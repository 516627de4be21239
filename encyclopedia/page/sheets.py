"""Sheets that are joined of several: each part of a page has a file of its own, and a browser asks for one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

#: Places of the joined sheets, from the site's root: that of every page, and that of families' pages.
SITE_SHEET, FAMILY_SHEET = "sheets/site.css", "sheets/family.css"

#: By place, the parts of a joined sheet under ``assets/css/``, in order.
PARTS: Mapping[str, Sequence[str]] = {
    SITE_SHEET: ("base.css", "theme.css"),
    FAMILY_SHEET: ("hero.css", "block.css", "diagram.css", "card.css", "api.css", "notes.css", "depth.css",
                   "costs.css"),
}

_FOLDER = Path(__file__).resolve().parents[2] / "site_src" / "assets" / "css"


def joined_sheets() -> Iterator[tuple[str, str]]:
    """The place and the text of each joined sheet, without comments and indentation."""
    for place, parts in PARTS.items():
        text = "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in parts)
        yield place, re.sub(r"\n\s*", "\n", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)).lstrip()
