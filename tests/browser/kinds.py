"""The kinds of pages, each with what is done on one before it is looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.conftest import FAILING, Opened

PIN = "value.self_attn.attention_scores"
PAIR = "compare/#a=HuggingFaceTB/SmolLM2-135M-Instruct&b=CohereLabs/c4ai-command-r-v01"


@dataclass(frozen=True)
class Kind:
    """A kind of page: where one is, and what is done on it before it is looked at."""

    path: str
    prepare: Callable[[Page], None] = lambda page: None


def pinned_with_charts(page: Page) -> None:
    """A family's page with a part pinned and its charts drawn."""
    expect(page.locator("[data-card][data-pinned]")).to_have_count(1)
    for chart in page.locator("[data-region=depth] [data-depth-chart]").all():
        chart.scroll_into_view_if_needed()
        # The library for charts is large, and asked for only now.
        expect(chart).to_have_attribute("data-drawn", "", timeout=20_000)


def all_open(page: Page) -> None:
    page.evaluate("for (const fold of document.querySelectorAll('.page-body details')) fold.open = true")


def compared(page: Page) -> None:
    expect(page.locator(".compare-result .diagram").first).to_be_visible()


KINDS = {
    "index": Kind(""),
    "models": Kind("models/", lambda page: page.locator('[aria-controls="models-filters"]').click()),
    "values": Kind("values/"),
    "value": Kind("values/self_attn.attention_scores/", all_open),
    "compare": Kind("compare/"),
    "compared": Kind(PAIR, compared),
    "data": Kind("machines/", all_open),
    "names": Kind("names/transformer-lens/", all_open),
    "releases": Kind("releases/", all_open),
    "checks": Kind("checks/"),
    "family": Kind(f"families/laguna/#block=1&pin={PIN}", pinned_with_charts),
    "recurrent": Kind("families/mamba2/#pin=value.linear_attn.attention_values", pinned_with_charts),
    "family-checks": Kind("families/laguna/checks/", all_open),
    "failed": Kind(f"families/{FAILING}/", all_open),
    "missing": Kind("404.html"),
}


#: The kinds that axe looks at on both engines: the frame of the engine's theme is the same around the others.
AUDITED_ON_BOTH = ("index", "values", "family", "missing")


def sideways(page: Page) -> float:
    """By how much the page is wider than its window."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def opened_as(open_page: Callable[..., Opened], kind: str, **how: Any) -> Page:
    opened = open_page(KINDS[kind].path, **how)
    KINDS[kind].prepare(opened.page)
    return opened.page
