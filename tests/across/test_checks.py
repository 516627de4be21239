"""The pages about all families: sorts, counts, and what failed."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from encyclopedia.across.checks import render_site_checks, site_view
from encyclopedia.across.index import render_index
from encyclopedia.across.sorts_table import sorts_table
from encyclopedia.build.pages import write_pages
from encyclopedia.facts import FamilyFacts, KindFacts
from encyclopedia.page.claims import claims_checked
from encyclopedia.page.mixers import GROUPS, group_of
from encyclopedia.page.render import render_checks, render_family
from encyclopedia.page.tally import tally, total
from tests.page.small_facts import checkpoint, empty_project, family
from tests.page.test_course import BOTH, checkpoint_of
from tests.page.test_derived import LEFT_OUT, bare, failed
from tests.page.test_diagram import KINDS, attention, dense, kind, mixture, recurrent

TEMPLATES = Path(__file__).parents[2] / "templates"
MIDDLE = ("layer_mid", *BOTH)


def of_kinds(*kinds: KindFacts, layer: tuple[str, ...] = MIDDLE, layout: str = "Residual", **changes) -> FamilyFacts:
    facts = checkpoint_of(kinds[0], *layer, layout=layout, **changes)
    if len(kinds) > 1:
        facts = facts.model_copy(update={"kinds": list(kinds), "hosts": []})
    return bare(facts)


@pytest.mark.parametrize(("facts", "sort"), [
    (of_kinds(kind(attention(), dense())), "dense"),
    (of_kinds(kind(attention(), mixture())), "mixture"),
    (of_kinds(kind(attention(), mixture()), config={"kv_lora_rank": 512}), "latent"),
    (of_kinds(kind(attention(), dense()), layer=BOTH), "parallel"),
    (of_kinds(kind(attention(), dense(), streams=4), layout="Streams"), "streams"),
    (of_kinds(KINDS["three"]), "hybrid"),
    (of_kinds(kind(recurrent()), kind(attention()), kind(dense())), "hybrid"),
    (of_kinds(kind(recurrent())), "recurrent"),
    (of_kinds(kind()), "other"),
    (of_kinds(kind(attention())), "other"),
    (failed(), "failed"),
])
def test_a_family_is_sorted_by_its_blocks(facts: FamilyFacts, sort: str) -> None:
    assert group_of(facts).slug == sort


def test_the_table_of_sorts_lists_every_family_once() -> None:
    families = [of_kinds(kind(recurrent())), family(), failed(model_type="broken")]
    lines = sorts_table(families).splitlines()
    assert lines[0] == "| sort | families | `model_type` |"
    assert lines[2:] == ["| Parallel | 1 | `tiny` |", "| Recurrent | 1 | `tiny` |", "| Not verified | 1 | `broken` |"]


def test_counts_are_those_of_the_checkpoints_that_are_shown() -> None:
    facts = family(checkpoints=[checkpoint(unconfirmed=[LEFT_OUT]),
                                checkpoint("maker/Tiny-3", available=False, reason="no config")])
    found = tally(facts)
    assert (found.checkpoints, found.values, found.values_checked, found.values_left_out) == (1, 4, 3, 1)
    assert (found.kinds, found.identities) == (2, 2)
    assert (found.snippets, found.snippets_run) == (3, 2)
    assert found.claims == claims_checked(facts, facts.checkpoints[0])
    assert tally(failed()).claims == tally(failed()).values == 0
    assert total([found, found]).values == 8


def test_the_page_of_checks_links_to_each_familys_own() -> None:
    families = [family(), failed(model_type="broken")]
    page = render_site_checks(families, TEMPLATES)
    assert 'href="../families/tiny/checks/"' in page
    assert 'href="../families/broken/"' in page
    assert "families/broken/checks/" not in page
    claims = site_view(families).total.claims
    assert f"<b>{claims:,}</b><span>claims that held</span>" in page
    assert '<b>1 <span class="checks-of">of 2</span></b><span>families verified</span>' in page


class Unsearched(HTMLParser):
    """Which elements that search leaves out hold another of their own tag, at which it would begin again."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[tuple[str, bool]] = []
        self.left_out = 0
        self.nested: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if (tag, True) in self.open:
            self.nested.append(tag)
        excluded = "data-search-exclude" in dict(attrs)
        self.left_out += excluded
        if tag not in ("input", "wbr", "rect", "path", "circle", "br"):
            self.open.append((tag, excluded))

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1][0] == tag:
            self.open.pop()


@pytest.mark.parametrize("page", [
    render_family(family(checkpoints=[checkpoint(unconfirmed=[LEFT_OUT])]), "", TEMPLATES),
    render_family(failed(), "", TEMPLATES),
    render_checks(family(checkpoints=[checkpoint(unconfirmed=[LEFT_OUT])]), "", TEMPLATES),
    render_site_checks([family()], TEMPLATES),
    render_index([family()], TEMPLATES),
], ids=["family", "failed", "checks", "checks of the site", "index"])
def test_search_leaves_out_the_whole_of_what_it_is_told_to(page: str) -> None:
    found = Unsearched(page)
    assert found.left_out
    assert found.nested == []


def test_every_sort_has_a_place_on_the_index() -> None:
    assert len({group.slug for group in GROUPS}) == len(GROUPS)


def test_a_family_that_fails_now_loses_its_checks_and_keeps_a_page(tmp_path: Path) -> None:
    project = empty_project(tmp_path)
    write_pages(project, [family()], [])
    checks = project.source / "families" / "tiny" / "checks" / "index.md"
    assert checks.is_file()
    write_pages(project, [failed()], [])
    assert not checks.exists()
    assert "What failed" in (project.source / "families" / "tiny" / "index.md").read_text(encoding="utf-8")
    index = json.loads((project.source / "data" / "index.json").read_text(encoding="utf-8"))
    assert [entry["state"] for entry in index["families"]] == ["failed"]
    assert "not verified" in (project.source / "checks" / "index.md").read_text(encoding="utf-8")
