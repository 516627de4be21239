"""The page about the data: it describes every key there is, no other, and its example loads."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas
import pytest

from encyclopedia import facts as all_facts
from encyclopedia.across.files import site_files
from encyclopedia.across.machines import PLAIN, example, keys_of, machines_view, render_machines
from encyclopedia.build.pages import write_pages
from encyclopedia.facts import Fact, FamilyFacts
from tests.page.small_facts import empty_project, family
from tests.page.test_derived import failed

TEMPLATES = Path(__file__).parents[2] / "templates"


def paths(data: Any, at: str = "") -> set[str]:
    """The paths of all keys in ``data``, with ``[]`` for each entry of a list."""
    if isinstance(data, list):
        return {path for entry in data for path in paths(entry, f"{at}[]")}
    if not isinstance(data, dict):
        return {at}
    return {path for key, entry in data.items() for path in paths(entry, f"{at}.{key}" if at else key)} | (
        {at} if at else set())


def test_every_key_of_the_data_is_described_once() -> None:
    keys = [key.path for key in keys_of(FamilyFacts)]
    assert len(keys) == len(set(keys))
    data = family().model_dump(by_alias=True, mode="json")
    plain = {path.replace("[]", "") for path in keys}
    mappings = tuple(f"{path.partition('{}')[0]}." for path in keys if "{}" in path)
    unknown = [path for path in paths(data)
               if path.replace("[]", "") not in plain and not f"{path}.".startswith(mappings)]
    assert unknown == []


def test_every_file_that_is_no_page_is_listed() -> None:
    families = [family()]
    files = dict(site_files(families, TEMPLATES))
    linked = set(re.findall(r'<th scope="row"><a href="\.\./([^"]+)"', files["machines/index.md"]))
    written = {place for place in files if place.endswith((".json", ".csv", ".txt"))}
    of_values = {place for place in written if place.startswith("values/")}
    assert written - of_values <= linked
    assert len(linked & of_values) == 1
    of_family = {f"data/{families[0].model_type}.json", f"families/{families[0].model_type}/llms.txt"}
    assert linked - written == of_family


def test_descriptions_are_lines_about_json() -> None:
    for key in keys_of(FamilyFacts):
        assert key.said
        assert "\n" not in key.said
        assert "``" not in key.said
        assert ":mod:" not in key.said
        assert "None" not in key.said


def test_nothing_is_described_that_is_not_there() -> None:
    for name, described in PLAIN.items():
        model = getattr(all_facts, name)
        assert set(described) <= {about.alias or field for field, about in model.model_fields.items()}


def test_a_key_without_a_description_is_refused() -> None:
    class Versions(Fact):
        unheard_of: str

    with pytest.raises(ValueError, match=r"Versions\.unheard_of has no description: put one above it"):
        list(keys_of(Versions))


def index() -> dict[str, Any]:
    """What ``data/index.json`` holds of a family."""
    return json.loads(dict(site_files([family()], TEMPLATES))["data/index.json"])


def test_the_index_is_described_key_by_key() -> None:
    found = index()
    described = [key.path for key in machines_view([family()], found).index]
    assert described == ["schema", "families[]", *(f"families[].{key}" for key in found["families"][0])]
    found["families"][0]["unheard_of"] = 1
    with pytest.raises(ValueError, match=r"families\[\]\.unheard_of has no description: put one in INDEX"):
        machines_view([family()], found)


def test_types_say_what_may_be_null() -> None:
    kinds = {key.path: key.kind for key in keys_of(FamilyFacts)}
    assert kinds["checkpoints[].hosts[].values[].condition"] == "text or null"
    assert kinds["checkpoints[].hosts[].values[].shapes[][]"] == "list of list of integer"
    assert kinds["checkpoints[].sizes{}"] == "mapping to integer"
    assert kinds["checkpoints[].available"] == "true or false"


def test_the_example_loads_the_data_that_a_build_writes(tmp_path: Path) -> None:
    project = empty_project(tmp_path)
    write_pages(project, [family()], [])
    code = example("tiny", root=str(project.source / "data"))
    assert len(code.splitlines()) == 3
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    values = namespace["values"]
    assert isinstance(values, pandas.DataFrame)
    assert {"name", "layout", "location", "shapes", "id", "hosts.host"} <= set(values.columns)
    shown = [entry for entry in family().checkpoints if entry.available]
    assert len(values) == sum(len(host.values) for entry in family().checkpoints for host in entry.hosts)
    scores = values[(values["name"] == "attention_scores") & (values["id"] == shown[0].id)].iloc[0]
    assert scores["hosts.host"] == "model.layers[i].self_attn"
    assert scores["shapes"] == [[1, 2, 8, 8], [1, 3, 8, 8]]


def test_the_page_shows_the_example_and_every_key() -> None:
    families = [failed(model_type="broken"), family()]
    page = render_machines(families, index(), TEMPLATES)
    view = machines_view(families, index())
    assert view.family == "tiny"
    assert "../data/tiny.json" in page
    assert "../families/tiny/llms.txt" in page
    assert page.count("<tr") == 3 + 8 + len(view.index) + len(list(keys_of(FamilyFacts)))
    assert "<code>null</code>" in page


def test_without_a_family_there_is_nothing_to_document() -> None:
    with pytest.raises(ValueError, match="build one first"):
        machines_view([], {})
    assert "machines/index.md" not in dict(site_files([], TEMPLATES))
