"""Rendering whole pages as the Markdown files that a site engine reads.

A page is front matter and one block of HTML, which Markdown passes through.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from encyclopedia.facts import FamilyFacts
from encyclopedia.page.api import api_view
from encyclopedia.page.block import block_view
from encyclopedia.page.checks import checks_view
from encyclopedia.page.claims import HOLDS
from encyclopedia.page.colours import palette, stylesheet
from encyclopedia.page.derived import subtitle_of, title_of
from encyclopedia.page.environment import environment
from encyclopedia.page.failed import failed_view
from encyclopedia.page.hero import hero_view
from encyclopedia.page.module import module_view
from encyclopedia.page.notes import render_notes
from encyclopedia.page.site import site_view

#: Hue of pages that belong to no family.
SITE_HUE = 230


def render_family(family: FamilyFacts, notes: str, templates: Path) -> str:
    """The page of a family.

    Args:
        family: its facts.
        notes: the text of its notes file, or an empty string.
        templates: the folder of templates.
    """
    title, subtitle = title_of(family), subtitle_of(family)
    head = {"title": title, "description": subtitle, "template": "family.html", "hide": ["navigation", "toc"]}
    colours = stylesheet(palette(family.hue))
    if family.failure is not None:
        return _document(head, environment(templates).get_template("page/failed.html.jinja").render(
            family=family, stylesheet=colours, hero=hero_view(family), failed=failed_view(family)))
    reference = next(checkpoint for checkpoint in family.checkpoints if checkpoint.id == family.reference)
    others = [checkpoint for checkpoint in family.checkpoints
              if checkpoint.available and checkpoint.id != family.reference]
    html = environment(templates).get_template("page/family.html.jinja").render(
        family=family,
        stylesheet=colours,
        hero=hero_view(family),
        contents=[{"checkpoint": checkpoint, "block": block_view(checkpoint, family),
                   "api": api_view(checkpoint, family)} for checkpoint in (reference, *others)],
        notes=render_notes(notes, family),
        module=module_view(family, f"../../source/{family.model_type}"),
    )
    return _document(head, html)


def render_checks(family: FamilyFacts, notes: str, templates: Path) -> str:
    """The page that lists every check of a family; the arguments are those of :func:`render_family`."""
    title = title_of(family)
    html = environment(templates).get_template("page/checks.html.jinja").render(
        stylesheet=stylesheet(palette(family.hue)),
        holds=HOLDS,
        checks=checks_view(family, notes, render_notes(notes, family).headings, f"../../../source/{family.model_type}"),
    )
    return _document({"title": f"{title}: checks",
                      "description": f"Every claim about {title} and how exactly it held in a run.",
                      "template": "family.html", "hide": ["navigation", "toc"]}, html)


def render_index(families: Sequence[FamilyFacts], templates: Path) -> str:
    """The front page: every family with its sentence, sorted by how its blocks are made."""
    return _site_page("Overview", "index", families, templates)


def render_site_checks(families: Sequence[FamilyFacts], templates: Path) -> str:
    """The page of what was checked over the whole site, with a line per family."""
    return _site_page("Checks", "site_checks", families, templates)


def _site_page(title: str, template: str, families: Sequence[FamilyFacts], templates: Path) -> str:
    html = environment(templates).get_template(f"page/{template}.html.jinja").render(
        site=site_view(families), stylesheet=stylesheet(palette(SITE_HUE)))
    return _document({"title": title, "template": "family.html", "hide": ["navigation", "toc"]}, html)


def _document(front_matter: dict[str, Any], html: str) -> str:
    # JSON is YAML, and quotes whatever a title may hold.
    head = "\n".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in front_matter.items())
    return f"---\n{head}\n---\n\n{html.strip()}\n"
