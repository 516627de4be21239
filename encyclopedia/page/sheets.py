"""The sheet of families' pages: each part of a page has a file of its own, and a browser asks for one."""

from __future__ import annotations

import re
from pathlib import Path

#: Where on the site it is, from its root.
FAMILY_SHEET = "sheets/family.css"

#: Its parts under ``assets/css/``, in the order of the page.
FAMILY_PARTS = (
    "hero.css", "block.css", "diagram.css", "card.css", "api.css", "notes.css", "depth.css", "costs.css",
)

_FOLDER = Path(__file__).resolve().parents[2] / "site_src" / "assets" / "css"


def family_sheet() -> str:
    """The text of :data:`FAMILY_SHEET`, without comments and indentation."""
    text = "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in FAMILY_PARTS)
    return re.sub(r"\n\s*", "\n", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)).lstrip()
