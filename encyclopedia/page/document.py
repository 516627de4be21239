"""A page as the Markdown file that a site engine reads: front matter, and one block of HTML that Markdown passes on."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape

from encyclopedia.page.colours import sheet_of
from encyclopedia.page.scripts import imported

# A line that Markdown takes for the fence of a block of code, even inside HTML.
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})", re.MULTILINE)


def document(
    html: str, *, title: str, hue: int, description: str | None = None, scripts: Sequence[str] = (),
    early: Sequence[str] = (), first_view: str | None = None, styles: Sequence[str] = (), sheets: Sequence[str] = (),
    boost: float | None = None,
) -> str:
    """The file of a page.

    Args:
        html: its content.
        title: what browsers, search and links call it.
        hue: of its marks.
        description: one sentence for search engines.
        scripts: modules under ``assets/js/`` that this page loads beside the site's own, once it has been read.
        early: modules that run while the page is being read. The browser asks for what they import at once, and for the
            others' imports when it comes to them.
        first_view: the id of the element that the page has to be read up to before it is painted, by browsers that know
            how: what stands above it would move while it is read.
        styles: sheets under ``assets/css/`` that this page loads beside the site's own.
        sheets: generated ones, from the site's root, that it loads after those.
        boost: how much a find on this page counts in search, where one is not the measure.
    """
    front_matter = {"title": _text(title), "description": _text(description) if description else None,
                    "template": "family.html", "hide": ["navigation", "toc"], "scripts": list(scripts),
                    "styles": [sheet_of(hue), *(f"assets/css/{name}" for name in styles), *sheets],
                    "early": list(early), "modules": imported(early or scripts),
                    "first_view": first_view, "search": {"boost": boost} if boost else None}
    # JSON is YAML, and quotes whatever a title may hold.
    head = "\n".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in front_matter.items() if value)
    return f"---\n{head}\n---\n\n{_FENCE.sub(_entities, html.strip())}\n"


def _text(said: str) -> str:
    """``said`` for the front matter: site engines put it into HTML as it is, and YAML has no invisible characters."""
    shown = "".join(char if char.isprintable() else "\ufffd" for char in " ".join(said.split()))
    return escape(shown, quote=False).replace('"', "&quot;")


def _entities(fence: re.Match[str]) -> str:
    return fence[0].replace("`", "&#96;").replace("~", "&#126;")
