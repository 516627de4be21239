"""Writing the pages and the data into the site's source folder, ahead of the site engine."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from encyclopedia.across.files import site_files
from encyclopedia.build.facts import facts_text, families_in
from encyclopedia.build.headers import HEADERS, headers_text
from encyclopedia.build.project import Project
from encyclopedia.build.vendor import copy_libraries
from encyclopedia.facts import FamilyFacts
from encyclopedia.files import write_text
from encyclopedia.page.markdown import NAME, family_markdown
from encyclopedia.page.module import files_there, source_file
from encyclopedia.page.render import render_checks, render_family
from encyclopedia.page.versions import signed


def write_pages(project: Project, families: Sequence[FamilyFacts], failed: Sequence[str]) -> None:
    """Write a page, its checks and a data file for each family, and the files about all of them.

    A family whose facts say what failed has a page that says so and none of checks. Pages of families that were not
    built this time stay; those of ``failed`` families go, because a page that did not pass its checks is not shown.
    """
    for name in failed:
        _data(project, name).unlink(missing_ok=True)
        for folder in (_page(project, name).parent, project.source / "source" / name):
            shutil.rmtree(folder, ignore_errors=True)
    for family in (files_there(family, project.root) for family in families):
        notes = project.notes_of(family.model_type)
        text = notes.read_text(encoding="utf-8") if notes is not None else ""
        _copy_sources(project, family)
        write_text(_page(project, family.model_type).with_name(NAME), family_markdown(family, text))
        write_text(_page(project, family.model_type),
                   signed(render_family(family, text, project.templates), [family]))
        if family.failure is None:
            write_text(_checks(project, family.model_type),
                       signed(render_checks(family, text, project.templates), [family]))
        else:
            _checks(project, family.model_type).unlink(missing_ok=True)
        write_text(_data(project, family.model_type), facts_text(family))
    for place, text in site_files(families_in(project.source / "data"), project.templates):
        write_text(project.source / place, text)
    write_text(project.source / HEADERS, headers_text(project.root / "mkdocs.yml"))
    copy_libraries(project.source / "vendor")


def _page(project: Project, model_type: str) -> Path:
    return project.source / "families" / model_type / "index.md"


def _checks(project: Project, model_type: str) -> Path:
    return project.source / "families" / model_type / "checks" / "index.md"


def _data(project: Project, model_type: str) -> Path:
    return project.source / "data" / f"{model_type}.json"


def _copy_sources(project: Project, family: FamilyFacts) -> None:
    """Put the family's own files on the site, as text, so that its page can link to them."""
    for source in family.sources:
        target = project.source / "source" / family.model_type / source_file(source)
        write_text(target, (project.root / source.path).read_text(encoding="utf-8"))
