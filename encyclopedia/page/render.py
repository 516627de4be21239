"""Rendering the pages of a family."""

from __future__ import annotations

from pathlib import Path

from encyclopedia.facts import FamilyFacts
from encyclopedia.page.api import api_view
from encyclopedia.page.block import block_view
from encyclopedia.page.checks import checks_view
from encyclopedia.page.claims import HOLDS
from encyclopedia.page.costs import costs_view
from encyclopedia.page.depth import depth_view
from encyclopedia.page.derived import subtitle_of, title_of
from encyclopedia.page.document import document
from encyclopedia.page.environment import environment
from encyclopedia.page.failed import failed_view
from encyclopedia.page.hero import hero_view
from encyclopedia.page.module import module_view
from encyclopedia.page.names import names_table
from encyclopedia.page.notes import NotesHtml, render_notes
from encyclopedia.page.sheets import FAMILY_SHEET
from encyclopedia.page.shown import reference_first

#: How much a find on a page with notes by people counts beside one on a page that is all derived.
ANNOTATED_BOOST = 1.5

#: What a family's page runs while it is read: the block answers before the rest is there.
EARLY_SCRIPT = "family.js"
#: What a family's page loads, in the order of its sections; one that failed loads the sheets of what it shows.
SCRIPTS = ("names.js", "printout.js", "depth.js", "costs.js")
FAILED_STYLES = ("hero.css", "api.css", "notes.css", "failed.css")
#: What the page of its checks loads.
CHECKS_STYLES = ("checks.css",)


def render_family(family: FamilyFacts, notes: str, templates: Path) -> str:
    """The page of a family.

    Args:
        family: its facts.
        notes: the text of its notes file, or an empty string.
        templates: the folder of templates.
    """
    title, subtitle = title_of(family), subtitle_of(family)
    if family.failure is not None:
        html = environment(templates).get_template("page/failed.html.jinja").render(
            family=family, hero=hero_view(family), failed=failed_view(family))
        return document(html, title=title, hue=family.hue, description=subtitle, styles=FAILED_STYLES)
    html = family_html(family, render_notes(notes, family), templates)
    return document(html, title=title, hue=family.hue, description=subtitle,
                    boost=ANNOTATED_BOOST if family.annotated else None,
                    early=[EARLY_SCRIPT], first_view="block-view", scripts=SCRIPTS, sheets=[FAMILY_SHEET])


def family_html(
    family: FamilyFacts, notes: NotesHtml, templates: Path, *, on_site: bool = True, sources: str | None = None
) -> str:
    """The page of a family about which something was verified, as HTML.

    Args:
        family: its facts.
        notes: its notes.
        templates: the folder of templates.
        on_site: whether other pages stand around it.
        sources: the address of its files' copies, where they are not on the same site.
    """
    return environment(templates).get_template("page/family.html.jinja").render(
        family=family,
        on_site=on_site,
        hero=hero_view(family),
        contents=[{"checkpoint": checkpoint, "block": block_view(checkpoint, family),
                   "api": api_view(checkpoint, family), "depth": depth_view(checkpoint),
                   "costs": costs_view(checkpoint)} for checkpoint in reference_first(family)],
        notes=notes,
        module=module_view(family, sources or f"../../source/{family.model_type}"),
        names=names_table(family),
    )


def render_checks(family: FamilyFacts, notes: str, templates: Path) -> str:
    """The page that lists every check of a family; the arguments are those of :func:`render_family`."""
    title = title_of(family)
    html = checks_html(family, notes, render_notes(notes, family), templates)
    return document(html, title=f"{title}: checks", hue=family.hue,
                    description=f"Every claim about {title} and how exactly it held in a run.", styles=CHECKS_STYLES)


def checks_html(
    family: FamilyFacts, text: str, notes: NotesHtml, templates: Path, *, sources: str | None = None
) -> str:
    """The page of checks as HTML; the arguments are those of :func:`family_html`, with the text of the notes."""
    return environment(templates).get_template("page/checks.html.jinja").render(
        holds=HOLDS,
        checks=checks_view(family, text, notes.headings, sources or f"../../../source/{family.model_type}"),
    )
