"""The page of one config as one file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from markupsafe import Markup

from encyclopedia.build.project import Project
from encyclopedia.build.vendor import library
from encyclopedia.capture.family import gather_family
from encyclopedia.facts import CheckpointFacts, FamilyFacts, NotesFacts, SnippetFacts
from encyclopedia.notes import NotesError, snippets
from encyclopedia.page.colours import palette, stylesheet
from encyclopedia.page.derived import title_of
from encyclopedia.page.environment import environment
from encyclopedia.page.module import files_there
from encyclopedia.page.notes import NotesHtml, render_notes
from encyclopedia.page.render import CHECKS_STYLES, EARLY_SCRIPT, SCRIPTS, checks_html, family_html
from encyclopedia.page.sheets import FAMILY_SHEET, PARTS, SITE_SHEET
from encyclopedia.standalone.inlining import json_text, material_sheets, modules, relinked, script_text, sheets
from encyclopedia.standalone.reading import LocalConfig

#: Why no snippet of the notes is run: they take values from the config, and run as code.
NOT_RUN = "the notes run on the family’s own checkpoints, never on a config from elsewhere"

#: What of a text in a config may stand in notes, which are Markdown and code.
_PLAIN = re.compile(r"[\w ./:+,=-]*", re.ASCII)

#: What a page says that it was made by.
GENERATOR = "encyclopedia page"


def page_of(
    local: LocalConfig, facts: CheckpointFacts, project: Project, *, site: str | None = None, charts: bool = False
) -> str:
    """The page of a config.

    Args:
        local: the config.
        facts: what was captured of it.
        project: whose notes, templates and sheets are used.
        site: the address of a built site to link to, without which the page has no links but its own.
        charts: have the library of charts in it, which is most of the file then.
    """
    family = files_there(gather_family(local.model_type, [facts], facts.id, NotesFacts(snippets=[])), project.root)
    family, text, notes = _with_notes(family, project)
    root = None if site is None else site.rstrip("/") + "/"
    address = None if root is None else f"{root}families/{local.model_type}/"
    sources = f"{root}source/{local.model_type}" if root else None
    body = relinked(family_html(family, notes, project.templates, on_site=False, sources=sources),
                    address)
    checks = relinked(checks_html(family, text, notes, project.templates, sources=sources).replace('"../#', '"#'),
                      None if address is None else f"{address}checks/")
    scripts = _of_site(project)
    scripts += [name for name in (EARLY_SCRIPT, *SCRIPTS) if charts or name != "depth.js"]
    folder = project.templates / "standalone"
    importmap, start = modules(scripts, project.source / "assets" / "js",
                               instead={"plotly.js": folder / "plotly.js"} if charts else None)
    assets = project.source / "assets" / "css"
    own = (*PARTS[SITE_SHEET], *PARTS[FAMILY_SHEET], *CHECKS_STYLES)
    shared = sheets([*material_sheets(), *(assets / name for name in own), folder / "page.css"])
    library_of_charts = script_text(library("plotly.min.js").read_text(encoding="utf-8")) if charts else None
    return environment(project.templates).get_template("standalone/page.html.jinja").render(
        title=title_of(family), generator=GENERATOR, local=local, family=family, family_page=address, body=body,
        checks=checks, styles=Markup(stylesheet(palette(family.hue))) + "\n" + shared,
        importmap=importmap, start=start, charts=library_of_charts,
        facts=json_text(family.model_dump_json(by_alias=True)))


def _of_site(project: Project) -> list[str]:
    """The modules that every page of the site has, in order."""
    settings: dict[str, Any] = yaml.safe_load((project.root / "mkdocs.yml").read_text(encoding="utf-8"))
    return [Path(entry["path"]).name for entry in settings["extra_javascript"]]


def _with_notes(family: FamilyFacts, project: Project) -> tuple[FamilyFacts, str, NotesHtml]:
    """The family with what is said of its snippets, the text of its notes, and them as HTML."""
    shared = project.notes / "_derived.md"
    own = project.notes_of(family.model_type)
    for path in dict.fromkeys(path for path in (own, shared) if path is not None and path.is_file()):
        text = path.read_text(encoding="utf-8")
        try:
            return _filled(family, text)
        except NotesError:
            # Notes may be about a checkpoint of the family, or about a key that this config has not got.
            continue
    return _filled(family, "")


def _filled(family: FamilyFacts, text: str) -> tuple[FamilyFacts, str, NotesHtml]:
    plain = family.model_copy(update={"checkpoints": [
        checkpoint.model_copy(update={"config": _plain(checkpoint.config)}) for checkpoint in family.checkpoints]})
    said = NotesFacts(snippets=[SnippetFacts(line=snippet.line, ran_on=[], reason=snippet.needs_weights or NOT_RUN)
                                for snippet in snippets(text, plain)])
    noted = family.model_copy(update={"notes": said})
    return noted, text, render_notes(text, plain.model_copy(update={"notes": said}))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items() if _PLAIN.fullmatch(key)}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return "\ufffd" if isinstance(value, str) and not _PLAIN.fullmatch(value) else value
