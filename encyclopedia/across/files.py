"""Every file of the site that is about all families at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from encyclopedia.across.compare import render_compare
from encyclopedia.across.index import index_data, render_index
from encyclopedia.across.lens import PATH as LENS
from encyclopedia.across.lens import render_lens
from encyclopedia.across.llms import llms_text
from encyclopedia.across.machines import render_machines
from encyclopedia.across.matrix import render_matrix
from encyclopedia.across.model_table import render_models, table_csv, table_json
from encyclopedia.across.models import model_table
from encyclopedia.across.overview import render_site_checks
from encyclopedia.across.presence import key_of, survey
from encyclopedia.across.releases import write_releases
from encyclopedia.across.value_text import value_text
from encyclopedia.across.values import place_of, render_value, value_view
from encyclopedia.facts import SCHEMA, FamilyFacts
from encyclopedia.page.markdown import NAME
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
    yield "values/index.md", render_matrix(found, templates)
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
    yield "models/index.md", render_models(table, templates)
    yield "data/models.json", table_json(table)
    yield "data/models.csv", table_csv(table)


def _compare(families: Sequence[FamilyFacts], templates: Path) -> Iterator[tuple[str, str]]:
    yield "compare/index.md", render_compare(families, templates)


def _lens(families: Sequence[FamilyFacts], templates: Path) -> Iterator[tuple[str, str]]:
    yield LENS, render_lens(families, templates)


#: In the order in which they are written.
WRITERS: tuple[Writer, ...] = (_index, _data, _models, _values, _lens, _compare, _machines, write_releases)


def site_files(families: Sequence[FamilyFacts], templates: Path) -> Iterator[tuple[str, str]]:
    """The path and the text of every such file."""
    for writer in WRITERS:
        yield from writer(families, templates)
