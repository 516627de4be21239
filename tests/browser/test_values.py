"""The pages about standard values in a real browser: the matrix, its filters and addresses, and where it leads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from encyclopedia.vocabulary import VOCABULARY
from tests.browser.conftest import FAILING, FAMILIES, SORTS

SHOWN = len(FAMILIES) + len(SORTS)

ROWS = ".matrix-families > tr:visible"


def total(page: Page) -> int:
    """How many families the matrix has, which are more where other pages were built before."""
    return page.locator(".matrix-families > tr").count()


def row(page: Page, model_type: str):
    return page.locator(f'.matrix-families tr:has(th a[title="{model_type}"])')


def cell(page: Page, model_type: str, host: str, name: str):
    position = next(at for at, value in enumerate(VOCABULARY) if (value.host, value.name) == (host, name))
    return row(page, model_type).locator("td").nth(position)


def test_without_script_the_matrix_is_all_there(open_page: Callable) -> None:
    page = open_page("values/", script=False).page
    assert total(page) >= SHOWN
    expect(page.locator("[data-matrix-filter]")).to_be_hidden()
    expect(cell(page, "laguna", "mlp", "router_logits").locator("a")).to_be_visible()
    expect(page.locator("#by-host tbody tr")).to_have_count(len(VOCABULARY))
    expect(page.locator(f'.matrix-caption a[href="../families/{FAILING}/"]')).to_be_visible()


def test_text_sort_and_host_filter_and_the_address_says_so(open_page: Callable) -> None:
    opened = open_page("values/")
    page = opened.page
    count = page.locator("[data-matrix-count]")
    everything = total(page)
    expect(count).to_have_text(f"{everything} families")
    page.get_by_label("family").fill("lagu")
    expect(page.locator(ROWS)).to_have_count(1)
    expect(count).to_have_text(f"1 of {everything} families")
    expect(page.locator(".matrix-group:visible")).to_have_count(1)
    assert page.evaluate("location.hash") == "#family=lagu"
    page.get_by_label("host").select_option("mlp")
    expect(page.locator(".matrix-columns th:visible")).to_have_count(
        1 + sum(value.host == "mlp" for value in VOCABULARY))
    expect(cell(page, "laguna", "mlp", "router_logits")).to_be_visible()
    expect(cell(page, "laguna", "self_attn", "attention_keys")).to_be_hidden()
    assert page.evaluate("location.hash") == "#family=lagu&host=mlp"
    page.get_by_role("button", name="clear", exact=True).click()
    expect(page.locator(ROWS)).to_have_count(everything)
    assert page.evaluate("location.hash") == ""
    page.get_by_label("sort").select_option("recurrent")
    expect(row(page, "mamba2")).to_be_visible()
    expect(row(page, "laguna")).to_be_hidden()
    assert opened.errors == []


def test_an_address_opens_the_matrix_just_so(open_page: Callable) -> None:
    page = open_page("values/#family=cohere&group=parallel&host=layer").page
    expect(row(page, "cohere")).to_be_visible()
    expect(row(page, "laguna")).to_be_hidden()
    expect(page.get_by_label("family")).to_have_value("cohere")
    expect(page.get_by_label("host")).to_have_value("layer")
    page.evaluate("location.hash = 'family=doge&host=nothing'")
    expect(row(page, "doge")).to_be_visible()
    expect(page.get_by_label("host")).to_have_value("")
    expect(page.locator(".matrix-columns th:visible")).to_have_count(1 + len(VOCABULARY))


@pytest.mark.parametrize(("model_type", "host", "name", "node"), [
    ("laguna", "mlp", "router_logits", "value.mlp.router_logits"),
    ("doge", "self_attn", "attention_scores", "value.self_attn.attention_scores"),
    ("mamba2", "linear_attn", "attention_output", "contribution.linear_attn"),
    ("gemma2", "layer", "layer_mid", "stream.mid"),
])
def test_a_cell_opens_the_family_with_the_part_pinned(
    open_page: Callable, model_type: str, host: str, name: str, node: str
) -> None:
    opened = open_page("values/")
    cell(opened.page, model_type, host, name).locator("a").click()
    expect(opened.page.locator("[data-card]")).to_have_attribute("data-pinned", node)
    expect(opened.page.locator("[data-card-expression]")).to_contain_text(name)
    assert opened.errors == []


@pytest.mark.parametrize("model_type", [*FAMILIES, *SORTS])
def test_every_cell_leads_to_a_part_that_is_drawn_or_a_row_that_is_there(
    open_page: Callable, site: Path, model_type: str
) -> None:
    page = open_page("values/").page
    addresses = row(page, model_type).locator("td a").evaluate_all("links => links.map((link) => link.hash)")
    html = (site / "families" / model_type / "index.html").read_text(encoding="utf-8")
    assert addresses
    for address in addresses:
        pin = address.partition("pin=")[2]
        assert (f'data-node="{pin}"' if pin else f'id="{address[1:]}"') in html, address


def test_heads_lead_to_the_value_and_to_the_family(open_page: Callable) -> None:
    page = open_page("values/").page
    page.get_by_role("columnheader", name="betas").locator("a").click()
    expect(page.locator("h1")).to_have_text("betas")
    page.go_back()
    row(page, "laguna").locator("th a").click()
    expect(page.locator("h1")).to_contain_text("Laguna")


def test_the_keyboard_walks_the_matrix_from_one_stop(open_page: Callable) -> None:
    page = open_page("values/").page
    assert page.locator('[data-matrix-table] a[tabindex="0"]').count() == 1
    page.locator('[data-matrix-table] a[tabindex="0"]').focus()
    page.keyboard.press("ArrowDown")
    first = page.evaluate("document.activeElement.closest('tr').cells[0].textContent")
    said = page.locator("[data-matrix-said]")
    expect(said).to_contain_text(f"{first}, model.logits: on every block, load and call.")
    page.keyboard.press("ArrowRight")
    expect(said).to_contain_text("model.token_embeddings")
    page.keyboard.press("End")
    expect(said).to_contain_text("mlp.")
    page.keyboard.press("Home")
    assert page.evaluate("document.activeElement.closest('th') !== null")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("[data-card]")).to_have_attribute("data-pinned", "strip.logits")


def test_what_has_the_focus_is_not_under_the_sticky_heads(open_page: Callable) -> None:
    page = open_page("values/", phone=True).page
    page.locator('[data-matrix-table] a[tabindex="0"]').focus()
    for key in ("ArrowDown", "End", *["ArrowLeft"] * 12):
        page.keyboard.press(key)
    covered = page.evaluate("""() => {
      const at = document.activeElement.getBoundingClientRect();
      const head = document.querySelector("[data-matrix-table] thead").getBoundingClientRect();
      const first = document.activeElement.closest("tr").cells[0].getBoundingClientRect();
      return at.top < head.bottom - 1 || at.left < first.right - 1;
    }""")
    assert covered is False


def test_on_a_phone_the_matrix_scrolls_in_its_own_region(open_page: Callable) -> None:
    page = open_page("values/", phone=True).page
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    region = page.locator("[data-matrix-scroll]")
    assert region.evaluate("box => box.scrollWidth > box.clientWidth")
    region.evaluate("box => { box.scrollLeft = 400; box.scrollTop = 60; }")
    left, edge = page.evaluate("""() => {
      const box = document.querySelector("[data-matrix-scroll]").getBoundingClientRect();
      return [document.querySelector(".matrix-families th").getBoundingClientRect().left, box.left];
    }""")
    assert abs(left - edge) <= 2


def test_the_matrix_fits_a_screen_in_width(open_page: Callable) -> None:
    page = open_page("values/").page
    assert page.locator("[data-matrix-scroll]").evaluate("box => box.scrollWidth <= box.clientWidth")


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["values/", "values/self_attn.attention_scores/", "values/linear_attn.state_input/",
                                  "machines/"])
def test_axe_finds_nothing_and_nothing_scrolls_sideways(
    open_page: Callable, path: str, scheme: str, phone: bool
) -> None:
    opened = open_page(path, phone=phone, scheme=scheme)
    assert opened.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    results = Axe().run(opened.page)
    assert results.violations_count == 0, results.generate_report()
    assert opened.errors == []


def test_a_row_of_a_value_opens_the_family_there(open_page: Callable) -> None:
    page = open_page("values/mlp.router_logits/").page
    page.locator('tr[data-family="laguna"] th a').click()
    expect(page.locator("[data-card]")).to_have_attribute("data-pinned", "value.mlp.router_logits")
    expect(page.locator("[data-card-expression]")).to_contain_text("model.layers[1].mlp.router_logits")


def test_search_finds_a_value_by_name_and_not_by_the_families_of_its_tables(open_page: Callable) -> None:
    page = open_page("").page
    found = page.evaluate("""async () => {
      const index = await (await fetch("search/search_index.json")).json();
      return index.docs.filter((entry) => entry.location.startsWith("values/"))
        .map((entry) => [entry.location, entry.title, entry.text]);
    }""")
    titles = {place: title for place, title, _ in found}
    assert titles["values/self_attn.attention_scores/"] == "attention_scores on self_attn"
    whole = " ".join(text for place, _, text in found if place.startswith("values/self_attn.attention_scores/"))
    assert "Pattern" in whole
    assert "about to enter the softmax" in whole
    assert "Laguna" not in whole
    assert "Laguna" not in " ".join(text for place, _, text in found if place.split("#")[0] == "values/")


def test_the_text_of_a_family_is_served_as_it_was_written(open_page: Callable) -> None:
    page = open_page("families/laguna/").page
    answer = page.request.get(page.url + "llms.txt")
    assert answer.ok
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text().startswith("# Laguna")
    assert page.request.get(page.url + "../../llms.txt").text().startswith("# the encyclopedia")
