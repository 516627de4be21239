"""Rendering a page that is about all families."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from encyclopedia.page.document import document
from encyclopedia.page.environment import environment

#: Hue of pages that belong to no family.
SITE_HUE = 230


def render_page(
    template: str, templates: Path, *, title: str, description: str | None = None, scripts: Sequence[str] = (),
    styles: Sequence[str] = (), sheets: Sequence[str] = (), hue: int = SITE_HUE, **views: Any,
) -> str:
    """The page that ``across/TEMPLATE.html.jinja`` makes of ``views``.

    Args:
        template: the template's name.
        templates: the folder of templates.
        title: see :func:`encyclopedia.page.document.document`, as for ``description``, ``scripts``,
            ``styles`` and ``sheets``.
        hue: of the page's marks.
        **views: what the template shows.
    """
    html = environment(templates).get_template(f"across/{template}.html.jinja").render(**views)
    return document(html, title=title, description=description, scripts=scripts, styles=styles,
                    sheets=sheets, hue=hue)


def render_sheet(template: str, templates: Path, **views: Any) -> str:
    """The sheet that ``across/TEMPLATE.css.jinja`` makes of ``views``, for rules that follow from what a page shows."""
    return environment(templates).get_template(f"across/{template}.css.jinja").render(**views)
