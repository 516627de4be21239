"""The index of values: the matrix, its marks and addresses, and the list by host."""

from __future__ import annotations

import gzip
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from encyclopedia.across.files import site_files
from encyclopedia.across.matrix import LEGEND, matrix_view, render_matrix
from encyclopedia.across.presence import survey
from encyclopedia.facts import FamilyFacts, HostFacts
from encyclopedia.vocabulary import HOSTS, VOCABULARY, Role
from tests.across.test_checks import Unsearched
from tests.page.small_facts import CONDITION, checkpoint, family, value
from tests.page.test_derived import failed

TEMPLATES = Path(__file__).parents[2] / "templates"

#: What the whole index may weigh, compressed.
MOST_BYTES = 60_000


def cells(facts: FamilyFacts) -> dict[tuple[str, str], tuple[str, str | None]]:
    """By host and name: the word and the address of a family's cells."""
    group, = matrix_view(survey([facts])).groups
    line, = group.families
    return {(entry.host, entry.name): (cell.word, cell.url)
            for entry, cell in zip(VOCABULARY, line.cells, strict=True)}


def test_a_cell_says_how_far_and_leads_to_the_part() -> None:
    found = cells(family())
    assert found["self_attn", "attention_scores"] == (
        "if", "../families/tiny/#ckpt=maker/Tiny-1&block=0&pin=value.self_attn.attention_scores")
    assert found["self_attn", "attention_output"] == (
        "all", "../families/tiny/#ckpt=maker/Tiny-1&block=0&pin=contribution.self_attn")
    assert found["mlp", "router_logits"] == ("some", "../families/tiny/#value-mlp-router_logits")
    assert found["linear_attn", "states"] == ("no", None)


def test_a_condition_and_some_blocks_are_both_said() -> None:
    scores = value("attention_scores", "attention", [None, [1, 3, 8, 8]], condition=CONDITION)
    facts = checkpoint(hosts=[HostFacts(name="self_attn", host=HOSTS["self_attn"], classes=["A"], values=[scores])])
    word, url = cells(family(checkpoints=[facts]))["self_attn", "attention_scores"]
    assert word == "if some"
    assert "block=1" in str(url)
    assert {cell[0] for cell in cells(family()).values()} <= LEGEND.keys()


def test_every_value_is_a_column_in_the_colour_of_its_role() -> None:
    view = matrix_view(survey([family()]))
    assert [column.value for column in view.columns] == list(VOCABULARY)
    by_position = {position: role for role, positions in view.positions.items() for position in positions}
    assert by_position == {column.position: column.value.role.value for column in view.columns}
    assert view.positions.keys() == {role.value for role in Role}


def test_families_that_could_not_be_verified_are_named_apart() -> None:
    view = matrix_view(survey([family(), failed(model_type="broken")]))
    assert view.total == 1
    assert view.unverified == (("broken", "../families/broken/"),)
    assert 'href="../families/broken/">broken</a>' in render_matrix(view, TEMPLATES)


class Tables(HTMLParser):
    """The cells of each row of each table, spans counted."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[int] = []
        self.inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "table":
            self.inside = "data-matrix-table" in found
        if self.inside and tag == "tr":
            self.rows.append(0)
        if self.inside and tag in ("th", "td"):
            self.rows[-1] += int(found.get("colspan") or 1)


def test_the_matrix_is_a_table_of_equal_rows_with_heads() -> None:
    page = render_matrix(matrix_view(survey([family()])), TEMPLATES)
    assert set(Tables(page).rows) == {len(VOCABULARY) + 1}
    matrix = page[page.index("data-matrix-table"):page.index("</table>")]
    assert matrix.count('scope="col"') == len(VOCABULARY) + 1
    assert matrix.count('scope="row"') == 1
    for entry in VOCABULARY:
        assert f'<a href="{entry.host}.{entry.name}/">{entry.name}</a>' in matrix


@pytest.mark.parametrize(
    "place", ["values/index.md", "values/self_attn.attention_scores/index.md", "machines/index.md"])
def test_search_leaves_out_the_whole_of_what_it_is_told_to(place: str) -> None:
    found = Unsearched(dict(site_files([family()], TEMPLATES))[place])
    assert found.left_out > 1
    assert found.nested == []


def test_the_list_says_layouts_and_counts() -> None:
    page = render_matrix(matrix_view(survey([family()])), TEMPLATES)
    listed = page[page.index('id="by-host"'):]
    assert "<b>Pattern</b> <code>[batch num_heads query key]</code>" in listed
    assert re.search(r"attention_<wbr>scores.*?<b>1</b> of 1", listed)


def test_a_hundred_and_forty_two_full_rows_stay_light() -> None:
    hosts = [HostFacts(name=host, host=expression, classes=["Native"], values=[
        value(entry.name, entry.role.value, [[1, 8, 4], [1, 8, 4]], condition=CONDITION)
        for entry in VOCABULARY if entry.host == host]) for host, expression in HOSTS.items()]
    families = [family(model_type=f"family_{number * 7919 % 1000}", title=f"Family {number}",
                       reference=f"maker-{number % 31}/Model-{number * 104729 % 9973}",
                       checkpoints=[checkpoint(f"maker-{number % 31}/Model-{number * 104729 % 9973}", hosts=hosts)])
                for number in range(142)]
    page = render_matrix(matrix_view(survey(families)), TEMPLATES)
    assert len(gzip.compress(page.encode())) <= MOST_BYTES
