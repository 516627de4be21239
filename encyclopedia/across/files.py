"""Every file of the site that is about all families at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from encyclopedia.across.checks import render_site_checks
from encyclopedia.across.compare import MARK_HUE, render_compare
from encyclopedia.across.index import index_data, render_index
from encyclopedia.across.lens import PATH as LENS
from encyclopedia.across.lens import render_lens
from encyclopedia.across.llms import llms_text
from encyclopedia.across.machines import render_machines
from encyclopedia.across.matrix import SHEET as MATRIX_SHEET
from encyclopedia.across.matrix import matrix_sheet, matrix_view, render_matrix
from encyclopedia.across.models import model_table
from encyclopedia.across.models_page import SHEET as MODELS_SHEET
from encyclopedia.across.models_page import models_sheet, models_view, render_models, table_csv, table_json
from encyclopedia.across.page import SITE_HUE
from encyclopedia.across.presence import key_of, survey
from encyclopedia.across.releases import write_releases
from encyclopedia.across.value_text import value_text
from encyclopedia.across.values import place_of, render_value, value_view
from encyclopedia.facts import SCHEMA, FamilyFacts
from encyclopedia.page.colours import palette, sheet_of, stylesheet
from encyclopedia.page.markdown import NAME
from encyclopedia.page.sheets import joined_sheets
from encyclopedia.page.versions import signed
from encyclopedia.vocabulary import VOCABULARY

#: Gives files as their paths under the site's source folder and their texts, from all families and the templates.
#: A page is the index of its own folder, so that a relative link means the same in its file and at its address.
Writer = Callable[[Sequence[FamilyFacts], Path], Iterator[tuple[str, str]]]


def _index(families: Sequence[FamilyFacts], templates: Path) -> Iterator[tuple[str, str]]:
    yield "index.md", render_index(families, templates)
    yield "checks/index.md", render_site_checks(families, templates)


def _index_of(families: Sequence[FamilyFacts]) -> dict[str, Any]:
    return {"schema": SCHEMA, "families": [index_data(family) for family in families]}


def _data(families: Sequence[FamilyFacts], templates: Path) -> Iterator[tuple[str, str]]:
    yield "data/index.json", json.dumps(_index_of(families), indent=1) + "\n"
    schema = FamilyFacts.model_json_schema(by_alias=True, mode="serialization")
    yield "data/schema.json", json.dumps(schema, indent=1) + "\n"


def _values(families: Sequence[FamilyFacts], templates: Path) -> Iterator[tuple[str, str]]:
    found = survey(families)
    matrix = matrix_view(found)
    yield "values/index.md", render_matrix(matrix, templates)
    yield MATRIX_SHEET, matrix_sheet(matrix, templates)
    for value in VOCABULARY:
        place = f"values/{place_of(key_of(value))}"
        view = value_view(value, found)
        yield f"{place}/index.md", render_value(view, templates)
        yield f"{place}/{NAME}", value_text(view)


def _machines(families: Sequence[FamilyFacts], templates: Path) -> Iterator[tuple[str, str]]:
    if families:
        yield "machines/index.md", render_machines(families, _index_of(families), templates)
    yield "llms.txt", llms_text(families)


def _models(families: Sequence[FamilyFacts], templates: Path) -> Iterator[tuple[str, str]]:
    table = model_table(families)
    page = models_view(table)
    yield "models/index.md", render_models(page, templates)
    yield MODELS_SHEET, models_sheet(page, templates)
    yield "data/models.json", table_json(table)
    yield "data/models.csv", table_csv(table)


def _compare(families: Sequence[FamilyFacts], templates: Path) -> Iterator[tuple[str, str]]:
    yield "compare/index.md", render_compare(families, templates)


def _lens(families: Sequence[FamilyFacts], templates: Path) -> Iterator[tuple[str, str]]:
    yield LENS, render_lens(families, templates)


def _sheets(families: Sequence[FamilyFacts], templates: Path) -> Iterator[tuple[str, str]]:
    yield from joined_sheets()
    for hue in sorted({SITE_HUE, MARK_HUE, *(family.hue for family in families)}):
        yield sheet_of(hue), stylesheet(palette(hue)) + "\n"


#: In the order in which they are written.
WRITERS: tuple[Writer, ...] = (_sheets, _index, _data, _models, _values, _lens, _compare, _machines, write_releases)


def site_files(families: Sequence[FamilyFacts], templates: Path) -> Iterator[tuple[str, str]]:
    """The path and the text of every such file."""
    for writer in WRITERS:
        for place, text in writer(families, templates):
            yield place, signed(text, families) if place.endswith(".md") else text
