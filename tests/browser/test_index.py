"""The front page in a real browser: searching, filters that combine, the address, the keyboard, and no script."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.conftest import FAILING, FAMILIES, SORTS

CARDS = "[data-card]:visible"


@pytest.fixture(scope="module")
def index(site: Path) -> list[dict[str, Any]]:
    """The published index, which the front page has to agree with."""
    return json.loads((site / "data" / "index.json").read_text(encoding="utf-8"))["families"]


def types_where(index: list[dict[str, Any]], test: Callable[[dict[str, Any]], bool]) -> set[str]:
    return {entry["model_type"] for entry in index if test(entry)}


def verified(entry: dict[str, Any]) -> bool:
    return entry["state"] == "verified"


def shown(page: Page) -> set[str]:
    return {card.get_attribute("data-card") or "" for card in page.locator(CARDS).all()}


def says(page: Page, found: int, index: list[dict[str, Any]]) -> None:
    expect(page.locator("[data-find-status]")).to_have_text(f"{found} of {len(index)} families")


def card(page: Page, model_type: str) -> Any:
    return page.locator(f'[data-card="{model_type}"]')


def choose(page: Page, key: str, value: str) -> None:
    page.locator(f'[data-filter="{key}"]').select_option(value)


def test_a_checkpoint_finds_its_family_and_leads_to_itself(open_page: Callable) -> None:
    opened = open_page("")
    page = opened.page
    page.locator("[data-find-query]").fill("doge-20m")
    assert shown(page) == {"doge"}
    expect(card(page, "doge").locator(".index-hit")).to_have_text("checkpoint SmallDoge/Doge-20M")
    page.keyboard.press("Enter")
    page.wait_for_url("**/families/doge/#ckpt=SmallDoge/Doge-20M*")
    expect(page.locator("[data-selector-shown]")).to_contain_text("Doge-20M")
    assert opened.errors == []


@pytest.mark.parametrize(("query", "hit"), [
    ("router logits", "value mlp.router_logits"),
    ("laguna", None),
    ("LagunaForCausal", "class LagunaForCausalLM"),
    ("output gate", "quirk Output gate"),
    ("poolside router", "checkpoint poolside/Laguna-XS-2.1, value mlp.router_logits"),
])
def test_a_hit_says_what_matched(open_page: Callable, query: str, hit: str | None) -> None:
    page = open_page("").page
    page.locator("[data-find-query]").fill(query)
    expect(card(page, "laguna")).to_be_visible()
    if hit is None:
        expect(card(page, "laguna").locator(".index-hit")).to_have_count(0)
    else:
        expect(card(page, "laguna").locator(".index-hit")).to_have_text(hit)


def test_a_value_leads_to_its_row(open_page: Callable, index: list[dict[str, Any]]) -> None:
    page = open_page("#q=router_logits").page
    assert shown(page) == types_where(index, lambda entry: "mlp.router_logits" in entry["values"])
    card(page, "laguna").locator("h3 a").click()
    page.wait_for_url("**/families/laguna/#mlp.router_logits")
    expect(page.locator("#value-mlp-router_logits")).to_be_in_viewport()


def test_two_filters_combine_and_each_can_be_undone(open_page: Callable, index: list[dict[str, Any]]) -> None:
    opened = open_page("")
    page = opened.page
    choose(page, "quirk", "mixture-of-experts")
    mixtures = types_where(index, lambda entry: verified(entry) and "mixture-of-experts" in entry["quirks"])
    assert shown(page) == mixtures
    choose(page, "value", "router_logits")
    both = types_where(index, lambda entry: entry["model_type"] in mixtures and "mlp.router_logits" in entry["values"])
    assert shown(page) == both
    assert "laguna" in both
    says(page, len(both), index)
    assert page.url.endswith("#quirk=mixture-of-experts&value=router_logits")
    chips = page.locator("[data-find-active] button")
    expect(chips).to_have_text(["Mixture of experts", "serves router_logits", "clear all"])
    chips.nth(0).click()
    assert shown(page) == types_where(index, lambda entry: "mlp.router_logits" in entry["values"])
    page.get_by_role("button", name="Clear all").click()
    assert shown(page) == {entry["model_type"] for entry in index}
    assert "#" not in page.url
    assert opened.errors == []


@pytest.mark.parametrize(("hash", "test"), [
    ("mixer=recurrent", lambda entry: entry["mixers"] and set(entry["mixers"]) <= {"recurrent", "none"}
     and "recurrent" in entry["mixers"]),
    ("mlp=mixture", lambda entry: "mixture" in entry["mlps"]),
    ("group=failed", lambda entry: not verified(entry)),
    ("annotated=yes", lambda entry: entry["annotated"] and verified(entry)),
    ("max=10M", lambda entry: entry["parameters"] and entry["parameters"]["total"][0] <= 10e6),
    ("min=30B", lambda entry: entry["parameters"] and entry["parameters"]["total"][1] >= 30e9),
])
def test_an_address_filters(open_page: Callable, index: list[dict[str, Any]], hash: str, test: Callable) -> None:
    page = open_page(f"#{hash}").page
    wanted = types_where(index, test)
    says(page, len(wanted), index)
    assert shown(page) == wanted


def test_both_bounds_ask_for_one_checkpoint_between_them(open_page: Callable) -> None:
    page = open_page("#min=30M&max=100M").page
    expect(card(page, "doge")).to_be_visible()
    page = open_page("#min=14M&max=30M").page
    expect(card(page, "doge")).to_be_hidden()


def test_back_and_forward_and_a_copied_address_show_the_same(open_page: Callable) -> None:
    opened = open_page("")
    page = opened.page
    choose(page, "quirk", "sliding-window")
    choose(page, "mlp", "mixture")
    page.locator("[data-find-query]").fill("XS-2.1 & more")
    page.wait_for_url("**#q=XS-2.1+%26+more&quirk=sliding-window&mlp=mixture")
    again = open_page(page.url.rpartition("/")[2]).page
    expect(again.locator("[data-find-query]")).to_have_value("XS-2.1 & more")
    expect(again.locator('[data-filter="mlp"]')).to_have_value("mixture")
    page.go_back()
    expect(page.locator("[data-find-active] button")).to_have_text(["Sliding window", "clear all"])
    expect(page.locator("[data-find-query]")).to_have_value("")
    page.go_forward()
    expect(page.locator("[data-find-query]")).to_have_value("XS-2.1 & more")
    assert opened.errors == []


@pytest.mark.parametrize("hash", ["quirk=nonsense", "min=heavy", "q=%E0%A4%A", "q=<img src=x onerror=alert(1)>"])
def test_a_wrong_address_finds_nothing_and_says_what_to_drop(open_page: Callable, hash: str) -> None:
    opened = open_page(f"#{hash}")
    page = opened.page
    expect(page.locator("[data-find-none]")).to_be_visible()
    page.locator("[data-find-none] button").click()
    expect(page.locator("[data-find-none]")).to_be_hidden()
    expect(card(page, "doge")).to_be_visible()
    assert opened.errors == []


def test_no_match_says_which_filter_to_drop(open_page: Callable) -> None:
    page = open_page("#q=doge&quirk=gated-stream&mixer=recurrent").page
    ways = page.locator("[data-find-none] button")
    expect(ways).to_have_text(["without mixer: Recurrent: 1 family"])
    ways.first.click()
    assert shown(page) == {"doge"}


def test_a_link_to_a_sort_of_family_still_goes_there(open_page: Callable) -> None:
    page = open_page("#recurrent").page
    expect(page.locator("#recurrent h2")).to_be_in_viewport()
    expect(page.locator("[data-find-active] button")).to_have_count(0)


def test_the_keyboard_goes_through_what_is_found(open_page: Callable) -> None:
    opened = open_page("")
    page, field = opened.page, opened.page.locator("[data-find-query]")
    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    page.keyboard.type("o")
    links = page.locator(f"{CARDS} h3 a")
    page.keyboard.press("ArrowDown")
    expect(links.nth(0)).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(links.nth(1)).to_be_focused()
    page.keyboard.press("Tab")
    expect(links.nth(2)).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowUp")
    expect(field).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(field).to_have_value("")
    choose(page, "mlp", "mixture")
    field.focus()
    page.keyboard.press("Escape")
    expect(page.locator("[data-find-active] button")).to_have_count(0)
    assert opened.errors == []


def test_menus_say_what_each_choice_would_leave(open_page: Callable, index: list[dict[str, Any]]) -> None:
    page = open_page("#mlp=mixture").page
    wanted = types_where(index, lambda entry: "mixture" in entry["mlps"] and "sliding-window" in entry["quirks"])
    option = page.locator('[data-filter="quirk"] option[value="sliding-window"]')
    expect(option).to_have_text(f"Sliding window ({len(wanted)})")
    expect(page.locator('[data-filter="quirk"] option[value="gated-stream"]')).to_be_attached()
    choose(page, "quirk", "sliding-window")
    assert shown(page) == wanted
    expect(option).to_be_disabled()


def test_without_script_every_family_is_there_and_no_dead_field(open_page: Callable) -> None:
    page = open_page("#q=doge", script=False).page
    expect(page.locator("[data-find]")).to_be_hidden()
    for family in (*FAMILIES, *SORTS, FAILING):
        expect(page.locator(f'.index-families a[href="families/{family}/"]')).to_be_visible()
    expect(card(page, "doge")).to_contain_text("13.1–268 M")


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
@pytest.mark.parametrize("hash", ["q=laguna&quirk=sliding-window", "q=nothing&min=1B"])
def test_what_is_found_is_laid_out(open_page: Callable, phone: bool, hash: str) -> None:
    opened = open_page(f"#{hash}", phone=phone, scheme="dark" if phone else "light")
    page = opened.page
    if phone:
        expect(page.locator('[data-filter="quirk"]')).to_be_hidden()
        page.locator("[data-find-filters] summary").click()
    expect(page.locator('[data-filter="quirk"]')).to_be_visible()
    widths = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth, window.innerWidth]")
    assert widths[0] <= widths[1] <= widths[2]
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
    assert opened.errors == []
