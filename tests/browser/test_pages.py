"""Whole pages in a real browser: no script, no strangers, no sideways scroll."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.conftest import FAILING, FAMILIES, SORTS

#: Parts that a block of each sort has, and parts that it has not got.
TABS = ["Overview", "Models", "Values", "Compare", "Checks", "Data"]

PARTS = {
    "cohere": (("norm.input_layernorm", "contribution.self_attn", "contribution.mlp"), ("stream.mid",)),
    "gemma2": (("norm.input_layernorm", "norm.post_attention_layernorm", "norm.pre_feedforward_layernorm",
                "norm.post_feedforward_layernorm", "stream.mid"), ("sublayer.linear_attn",)),
    "mamba2": (("norm.norm", "sublayer.linear_attn", "value.linear_attn.attention_values",
                "contribution.linear_attn"), ("sublayer.self_attn", "sublayer.mlp", "stream.mid")),
}


@pytest.mark.core
@pytest.mark.parametrize("family", FAMILIES)
def test_without_script_the_reference_is_all_there(open_family: Callable, family: str) -> None:
    opened = open_family(family, script=False)
    page = opened.page
    expect(opened.node("stream.input")).to_have_count(1)
    expect(opened.node("value.self_attn.attention_scores")).to_have_count(1)
    expect(page.locator("#api")).to_contain_text("attention_scores")
    expect(page.locator("#notes pre").first).to_be_visible()
    expect(page.locator("[data-identity]").first).to_contain_text("layer_output")
    for checkpoint in opened.facts["checkpoints"]:
        expect(page.locator("body")).to_contain_text(checkpoint["id"].split("/")[1])


@pytest.mark.core
@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_is_asked_of_another_host_and_nothing_fails(open_family: Callable, family: str, address: str) -> None:
    opened = open_family(family)
    opened.node("value.self_attn.attention_scores").click()
    assert {urlsplit(url).netloc for url in opened.requests} == {urlsplit(address).netloc}
    assert opened.errors == []


@pytest.mark.core
@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_page_does_not_scroll_sideways(open_family: Callable, family: str, phone: bool) -> None:
    opened = open_family(family, phone=phone)
    for identifier in [entry["id"] for entry in opened.facts["checkpoints"] if entry["available"]]:
        opened.page.evaluate("hash => { location.hash = hash }", f"ckpt={identifier}&block=1")
        widths = opened.page.evaluate(
            "[document.documentElement.scrollWidth, document.documentElement.clientWidth, window.innerWidth]")
        assert widths[0] <= widths[1] <= widths[2], identifier


@pytest.mark.parametrize("family", FAMILIES)
def test_the_head_the_identity_and_a_card_lead_to_the_checks(open_family: Callable, family: str) -> None:
    opened = open_family(family, hash="block=1&pin=value.self_attn.attention_probabilities")
    page, reference = opened.page, opened.facts["reference"]
    row = page.locator(".card-checked")
    expect(row).to_contain_text("equals the softmax of attention_scores")
    expect(page.locator(".identity-claim a")).to_have_attribute("href", f"checks/#{reference}/layer/block")
    page.locator(".summary-claim a").click()
    expect(page.locator("h1")).to_contain_text(opened.facts["title"])
    expect(page.locator(f'[id="{reference}"]')).to_be_in_viewport()
    page.go_back()
    row.locator("a").click()
    expect(page.locator(f'[id="{reference}/self_attn/attention_probabilities"]')).to_be_in_viewport()
    assert opened.errors == []


@pytest.mark.core
@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_a_link_to_a_claim_opens_its_checkpoint(open_family: Callable, script: bool) -> None:
    opened = open_family("laguna", script=script)
    other = next(entry["id"] for entry in opened.facts["checkpoints"]
                 if entry["available"] and entry["id"] != opened.facts["reference"])
    opened.page.goto(f"{opened.page.url}checks/#{other}/mlp/router_logits")
    expect(opened.page.locator(f'[id="{other}/mlp/router_logits"]')).to_be_in_viewport()


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_the_checks_list_every_claim(open_family: Callable, phone: bool) -> None:
    opened = open_family("laguna", phone=phone)
    page = opened.page
    page.goto(f"{page.url}checks/")
    claims = sum(len(entry["claims"]) for entry in opened.facts["checkpoints"])
    assert page.locator(".checks-claim").count() == claims
    page.evaluate("document.querySelectorAll('.checks-checkpoint').forEach(details => { details.open = true })")
    widths = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth, window.innerWidth]")
    assert widths[0] <= widths[1] <= widths[2]


def test_search_finds_the_checks_by_their_title_only(site: Path) -> None:
    entries = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    for family in FAMILIES:
        [entry] = [entry for entry in entries if entry["location"].startswith(f"families/{family}/checks/")]
        assert len(entry["text"]) < 60


def test_text_in_the_diagram_is_legible_on_a_phone(open_family: Callable) -> None:
    opened = open_family("laguna", phone=True, hash="block=1")
    heights = opened.page.evaluate("""
        [...document.querySelectorAll('svg text')].filter(e => e.getClientRects().length).map(e => {
            const scale = e.getScreenCTM().a;
            return [e.textContent.trim(), parseFloat(getComputedStyle(e).fontSize) * scale];
        })""")
    assert heights
    small = [entry for entry in heights if entry[1] < 10.5]
    assert small == []


@pytest.mark.core
def test_the_site_uses_relative_addresses_only(site: Path) -> None:
    # The page for what is missing is shown at any depth, where only an address from the root reaches its sheet.
    for path in set(site.rglob("*.html")) - {site / "404.html"}:
        text = path.read_text(encoding="utf-8")
        for attribute in ('href="/', 'src="/'):
            assert attribute not in text, f"{path.relative_to(site)} has {attribute}"


def test_every_link_within_the_site_leads_to_a_file(site: Path) -> None:
    for path in site.rglob("index.html"):
        for link in set(re.findall(r' href="([^"#?:]+)["#?]', path.read_text(encoding="utf-8"))):
            target = path.parent / unescape(unquote(link))
            assert (target / "index.html" if link.endswith(("/", ".")) else target).is_file(), (
                f"{path.relative_to(site)} links to {link}")


@pytest.mark.parametrize("family", SORTS)
def test_every_sort_of_block_is_drawn(open_family: Callable, family: str) -> None:
    opened = open_family(family)
    there, not_there = PARTS[family]
    for node in there:
        expect(opened.node(node)).to_have_count(1)
    for node in not_there:
        expect(opened.node(node)).to_have_count(0)
    for sublayer in opened.checkpoint()["kinds"][0]["sublayers"]:
        for name in sublayer["values"]:
            node = opened.node(f"value.{sublayer['host']}.{name}")
            node.hover()
            expect(opened.page.locator("[data-card-expression]")).to_contain_text(name)
    assert opened.errors == []


def laid_out(opened: Any) -> None:
    """Nothing scrolls sideways and axe finds nothing."""
    widths = opened.page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth, window.innerWidth]")
    assert widths[0] <= widths[1] <= widths[2]
    results = Axe().run(opened.page)
    assert results.violations_count == 0, results.generate_report()
    assert opened.errors == []


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
@pytest.mark.parametrize("family", [*SORTS, FAILING])
def test_every_sort_of_page_is_laid_out(open_family: Callable, family: str, phone: bool) -> None:
    laid_out(open_family(family, phone=phone, scheme="dark" if phone else "light"))


@pytest.mark.core
def test_the_navigation_leads_to_the_overview_and_the_checks(open_page: Callable) -> None:
    opened = open_page("")
    page = opened.page
    tabs = page.locator(".md-tabs__link")
    assert [text.strip() for text in tabs.all_inner_texts()] == TABS
    for family in (*FAMILIES, *SORTS, FAILING):
        expect(page.locator(f'.index-families a[href="families/{family}/"]')).to_have_count(1)
    tabs.get_by_text("Checks").click()
    expect(page.locator("h1")).to_contain_text("What was checked")
    page.locator('[id="doge"] a').click()
    expect(page.locator("h1")).to_contain_text("Doge")
    assert opened.errors == []


def test_a_family_that_failed_says_so_wherever_it_is_named(open_family: Callable, open_page: Callable) -> None:
    opened = open_family(FAILING)
    failure = opened.facts["failure"]
    reason = opened.page.locator(".failed-reason")
    assert reason.inner_text().replace("\u200b", "") == failure["reason"]
    expect(opened.page.locator(".failed-here")).to_contain_text(failure["step"])
    expect(opened.node("stream.input")).to_have_count(0)
    index = open_page("").page
    expect(index.locator(".index-failed", has=index.locator(f'a[href="families/{FAILING}/"]'))).to_contain_text(
        "not verified")
    expect(open_page("checks/").page.locator(f'[id="{FAILING}"]')).to_contain_text(failure["step"])
