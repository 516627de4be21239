"""The site's search: what it finds, under which titles, and how much a reader downloads for it."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import FAMILIES
from tests.browser.searching import finds

#: What may be downloaded for the search, compressed.
MOST_BYTES = 1_500_000
#: Headings that every page has, which as titles would say nothing.
EMPTY = {"The block", "The API", "The Notes", "From the family module", "What differs from a plain block", "Printout",
         "Config", "The depth", "The costs"}


@pytest.fixture(scope="module")
def entries(site: Path) -> list[dict[str, Any]]:
    return json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]


def search(page: Page, query: str) -> Any:
    """The finds for ``query`` in Material's theme, each a page with its sections."""
    finds(page, query)
    found = page.locator(".md-search-result__item")
    expect(found.first).to_be_visible(timeout=20_000)
    return found


@pytest.mark.parametrize(("query", "family", "section", "anchor"), [
    ("attention_scores", "doge", "self_attn.attention_scores", "self_attn.attention_scores"),
    ("router_logits", "laguna", "mlp.router_logits", "mlp.router_logits"),
    ("gated residual", "doge", "Gated stream", "quirk-gated-stream"),
    ("steering the router", "laguna", "Steering the router", "note-steering-the-router"),
    ("LagunaAttention", "laguna", "Which class serves which module", "module-classes"),
])
def test_a_find_has_a_sensible_title(open_page: Callable, query: str, family: str, section: str, anchor: str) -> None:
    opened = open_page("")
    found = search(opened.page, query)
    links = found.locator(f'a[href*="families/{family}/"]', has=opened.page.locator("article h2"))
    assert (links.first.locator("h2").text_content() or "").strip() == section
    assert (links.first.get_attribute("href") or "").endswith(f"#{anchor}")
    assert opened.errors == []


def test_a_checkpoint_finds_its_family_first(open_page: Callable) -> None:
    found = search(open_page("").page, "Doge-20M")
    expect(found.first.locator("h1")).to_have_text("Doge")


@pytest.mark.core
def test_a_find_opens_at_its_value(open_page: Callable) -> None:
    page = open_page("").page
    finds(page, "router_logits").and_(page.locator('[href*="families/"][href$="#mlp.router_logits"]')).first.click()
    page.wait_for_url("**#mlp.router_logits")
    expect(page.locator("#value-mlp-router_logits")).to_be_in_viewport()


def test_titles_are_never_those_that_every_page_has(entries: list[dict[str, Any]]) -> None:
    titles = Counter(entry["title"] for entry in entries if "#note-" not in entry["location"])
    assert len(titles) > len(FAMILIES)
    assert EMPTY.isdisjoint(titles)


def test_notes_that_many_families_share_are_no_finds(entries: list[dict[str, Any]], site: Path) -> None:
    index = json.loads((site / "data" / "index.json").read_text(encoding="utf-8"))["families"]
    derived = tuple(f"families/{entry['model_type']}/#note-" for entry in index if not entry["annotated"])
    assert derived
    assert not [entry["location"] for entry in entries if entry["location"].startswith(derived)]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_value_of_the_reference_is_a_find_of_its_own(
    entries: list[dict[str, Any]], site: Path, family: str
) -> None:
    facts = json.loads((site / "data" / f"{family}.json").read_text(encoding="utf-8"))
    [reference] = [entry for entry in facts["checkpoints"] if entry["id"] == facts["reference"]]
    texts = {entry["location"]: entry["text"] for entry in entries}
    for host in reference["hosts"]:
        for value in host["values"]:
            assert value["description"][:20] in texts[f"families/{family}/#{host['name']}.{value['name']}"]
    assert any(location.startswith(f"families/{family}/#note-") for location in texts)


def test_the_families_of_the_front_page_are_found_on_their_own_pages(entries: list[dict[str, Any]]) -> None:
    [front] = [entry for entry in entries if entry["location"] == ""]
    assert "Laguna" not in front["text"]


def test_the_index_is_small(site: Path) -> None:
    data = (site / "search" / "search_index.json").read_bytes()
    assert len(gzip.compress(data)) < MOST_BYTES
