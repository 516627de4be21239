"""Every file of the site that is about all families at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from encyclopedia.across.lens import PATH as LENS
from encyclopedia.across.lens import render_lens
from encyclopedia.across.overview import index_data, render_index, render_site_checks
from encyclopedia.facts import SCHEMA, FamilyFacts

#: Gives files as their paths under the site's source folder and their texts, from all families and the templates.
Writer = Callable[[Sequence[FamilyFacts], Path], Iterator[tuple[str, str]]]


def _index(families: Sequence[FamilyFacts], templates: Path) -> Iterator[tuple[str, str]]:
    yield "index.md", render_index(families, templates)
    yield "checks.md", render_site_checks(families, templates)


def _data(families: Sequence[FamilyFacts], templates: Path) -> Iterator[tuple[str, str]]:
    index = {"schema": SCHEMA, "families": [index_data(family) for family in families]}
    yield "data/index.json", json.dumps(index, indent=1) + "\n"
    schema = FamilyFacts.model_json_schema(by_alias=True, mode="serialization")
    yield "data/schema.json", json.dumps(schema, indent=1) + "\n"


def _lens(families: Sequence[FamilyFacts], templates: Path) -> Iterator[tuple[str, str]]:
    yield LENS, render_lens(families, templates)


#: In the order in which they are written.
WRITERS: tuple[Writer, ...] = (_index, _lens, _data)


def site_files(families: Sequence[FamilyFacts], templates: Path) -> Iterator[tuple[str, str]]:
    """The path and the text of every such file."""
    for writer in WRITERS:
        yield from writer(families, templates)
