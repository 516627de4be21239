"""The table of models in a real browser: order, filters, columns, address, files, keyboard, no script, phone."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect


@pytest.fixture(scope="module")
def data(site: Path) -> dict[str, Any]:
    """``data/models.json``."""
    return json.loads((site / "data" / "models.json").read_text(encoding="utf-8"))


@pytest.fixture
def table(open_page: Callable) -> Callable[..., Page]:
    """Opens the table with an address: ``table("sort=-num_layers", phone=True)``."""

    def opener(hash: str = "", **more: Any) -> Page:
        opened = open_page("models/" + (f"#{hash}" if hash else ""), **more)
        expect(opened.page.locator("[data-models-table][data-ready]")).to_have_count(1)
        return opened.page

    return opener


def first_names(page: Page) -> list[str]:
    return page.locator("[data-models-table] tbody th").all_text_contents()


def header(page: Page, key: str) -> Any:
    return page.locator(f'th[data-key="{key}"]')


def shown_keys(page: Page) -> list[str]:
    return page.locator("thead th:visible").evaluate_all("found => found.map(header => header.dataset.key)")


def answers(cell: Any) -> list:
    return [] if cell is None else cell if isinstance(cell, list) else [cell]


def settled(page: Page) -> str:
    """The address, once it is written."""
    page.wait_for_timeout(300)
    return urlsplit(page.url).fragment


def test_a_click_on_a_header_sorts_and_says_so(table: Callable, data: dict) -> None:
    page = table()
    assert first_names(page)[:5] == [row["checkpoint"] for row in data["rows"]][:5]
    header(page, "parameters_total").locator("button").click()
    expect(header(page, "parameters_total")).to_have_attribute("aria-sort", "descending")
    largest = sorted(data["rows"], key=lambda row: -row["parameters_total"])
    assert first_names(page)[:8] == [row["checkpoint"] for row in largest][:8]
    header(page, "parameters_total").locator("button").click()
    expect(header(page, "parameters_total")).to_have_attribute("aria-sort", "ascending")
    smallest = sorted(data["rows"], key=lambda row: row["parameters_total"])
    assert first_names(page)[:8] == [row["checkpoint"] for row in smallest][:8]


def test_what_a_column_does_not_tell_comes_last_and_equals_keep_the_order_before(table: Callable, data: dict) -> None:
    page = table("sort=num_kv_heads,-hidden_size")
    told = [row for row in data["rows"] if row["num_kv_heads"] is not None]
    expected = sorted(told, key=lambda row: (min(answers(row["num_kv_heads"])), -max(answers(row["hidden_size"]))))
    assert first_names(page)[:8] == [row["checkpoint"] for row in expected][:8]
    page.locator("[data-models-scroll]").evaluate("region => { region.scrollTop = region.scrollHeight }")
    untold = [row["checkpoint"] for row in data["rows"] if row["num_kv_heads"] is None]
    expect(page.locator("[data-models-table] tbody th").last).to_have_text(
        sorted(untold, key=lambda name: -next(row["hidden_size"] for row in data["rows"]
                                              if row["checkpoint"] == name))[-1])


def test_search_ranges_and_choices_find_what_they_say(table: Callable, data: dict) -> None:
    page, total = table(), len(data["rows"])
    count = page.locator("[data-models-count]")
    expect(count).to_have_text(f"{total} of {total} checkpoints")
    page.locator("[data-models-search]").fill("gqa  rope")
    found = [row for row in data["rows"] if "GQA" in answers(row["attention"]) and "rope" in answers(row["positions"])]
    expect(count).to_have_text(f"{len(found)} of {total} checkpoints")
    page.get_by_role("button", name="Filters").click()
    page.get_by_label("hidden_size, from").fill("1k")
    page.get_by_label("hidden_size, to").fill("3,000")
    found = [row for row in found if 1000 <= row["hidden_size"] <= 3000]
    expect(count).to_have_text(f"{len(found)} of {total} checkpoints")
    page.get_by_role("group", name="norm", exact=True).get_by_role("checkbox", name="RMSNorm").check()
    found = [row for row in found if "RMSNorm" in answers(row["norm"])]
    expect(count).to_have_text(f"{len(found)} of {total} checkpoints")
    assert 0 < len(found) < total
    assert set(first_names(page)) <= {row["checkpoint"] for row in found}
    page.get_by_label("hidden_size, to").fill("wide")
    expect(page.get_by_label("hidden_size, to")).to_have_attribute("aria-invalid", "true")
    page.get_by_role("button", name="norm: RMSNorm, take this filter away").click()
    expect(page.get_by_role("checkbox", name="RMSNorm")).not_to_be_checked()
    page.get_by_role("button", name="Clear all").click()
    expect(count).to_have_text(f"{total} of {total} checkpoints")
    expect(page.locator("[data-models-search]")).to_be_focused()
    assert settled(page) == ""


def test_numbers_are_asked_for_as_the_table_writes_them(table: Callable[[], Page]) -> None:
    page = table()
    page.get_by_role("button", name="Filters").click()
    fields = page.locator("[data-models-range] input").all()
    written = [field.get_attribute("placeholder") or "" for field in fields]
    assert {"FLOP", "B", ""} <= {text.lstrip("0123456789,. ").lstrip("kMGT") for text in written}
    for field, text in zip(fields, written, strict=True):
        field.fill(text)
        assert field.get_attribute("aria-invalid") is None, text


def test_quirks_chosen_together_have_to_be_there_together(table: Callable, data: dict) -> None:
    page = table("quirks=Mixture%20of%20experts,Shared%20expert")
    found = [row for row in data["rows"] if {"Mixture of experts", "Shared expert"} <= set(row["quirks"])]
    assert found
    expect(page.locator("[data-models-count]")).to_have_text(f"{len(found)} of {len(data['rows'])} checkpoints")


def test_an_address_opens_the_table_as_it_was(table: Callable, open_page: Callable) -> None:
    page = table()
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("checkbox", name="qk_head_dim").check()
    page.get_by_role("checkbox", name="norm placement").check()
    page.get_by_role("checkbox", name="vocabulary").uncheck()
    page.get_by_role("button", name="Filters").click()
    page.get_by_label("blocks, from", exact=True).fill("20")
    page.get_by_role("group", name="attention").get_by_role("checkbox", name="GQA").check()
    page.locator("[data-models-search]").fill("rope")
    header(page, "head_dim").locator("button").click()
    fragment, names, keys = settled(page), first_names(page), shown_keys(page)
    again = table(fragment)
    assert first_names(again) == names
    assert shown_keys(again) == keys
    assert {"qk_head_dim", "norm_placement"} <= set(keys)
    assert "vocab_size" not in keys
    assert again.locator("[data-models-search]").input_value() == "rope"
    expect(header(again, "head_dim")).to_have_attribute("aria-sort", "descending")
    assert settled(again) == fragment


def test_columns_are_remembered(table: Callable) -> None:
    page = table()
    usual = shown_keys(page)
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("checkbox", name="state_dim").check()
    settled(page)
    page.goto(page.url.partition("#")[0] + "?again")
    expect(page.locator("[data-ready]")).to_have_count(1)
    assert "state_dim" in shown_keys(page)
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("button", name="The usual columns").click()
    assert shown_keys(page) == usual


@pytest.mark.parametrize("kind", ["CSV", "JSON"])
def test_a_file_holds_what_is_shown(table: Callable, data: dict, kind: str) -> None:
    page = table("attention=GQA&sort=-hidden_size&columns=hidden_size,num_heads,attention,quirks")
    with page.expect_download() as download:
        page.get_by_role("button", name=f"Download what is shown as {kind}").click()
    found = sorted((row for row in data["rows"] if "GQA" in answers(row["attention"])),
                   key=lambda row: -max(answers(row["hidden_size"])))
    assert download.value.suggested_filename == f"models-{len(found)}-of-{len(data['rows'])}.{kind.lower()}"
    text = Path(download.value.path()).read_text(encoding="utf-8")
    keys = shown_keys(page)
    columns = [column for column in data["columns"] if column["key"] in keys]
    assert keys == [column["key"] for column in columns]
    if kind == "JSON":
        saved = json.loads(text)
        assert saved["columns"] == columns
        assert saved["rows"] == [{key: row[key] for key in keys} for row in found]
    else:
        first, *lines = list(csv.reader(io.StringIO(text)))
        assert first == [column["heading"] for column in columns]
        assert lines == [["; ".join(map(str, answers(row[key]))) for key in keys] for row in found]


def test_a_file_of_everything_is_the_published_one(table: Callable, data: dict, site: Path) -> None:
    page = table("columns=" + ",".join(column["key"] for column in data["columns"]))
    with page.expect_download() as download:
        page.get_by_role("button", name="Download what is shown as CSV").click()
    assert download.value.suggested_filename == "models.csv"
    assert Path(download.value.path()).read_bytes() == (site / "data" / "models.csv").read_bytes()


def test_a_row_leads_to_its_checkpoint(table: Callable) -> None:
    page = table("q=laguna-s-2.1")
    page.locator("[data-models-table] tbody a").first.click()
    page.wait_for_url("**/families/laguna/**")
    assert urlsplit(page.url).fragment.startswith("ckpt=poolside/Laguna-S-2.1&block=0")


def test_everything_goes_by_keyboard(table: Callable) -> None:
    page = table()
    page.locator("[data-models-search]").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#models-filters")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#models-filters")).to_be_hidden()
    expect(page.locator("#models-columns")).to_be_visible()
    page.keyboard.press("Enter")
    region = page.get_by_role("region", name="Checkpoints and their numbers")
    region.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-models-scroll]")).not_to_have_js_property("scrollLeft", 0)
    page.keyboard.press("Tab")
    expect(header(page, "checkpoint").locator("button")).to_be_focused()
    page.keyboard.press("Space")
    expect(header(page, "checkpoint")).to_have_attribute("aria-sort", "ascending")
    for _ in shown_keys(page):
        page.keyboard.press("Tab")
    expect(page.locator("[data-models-table] tbody a").first).to_be_focused()


def test_the_keyboard_keeps_its_place_when_its_row_goes(table: Callable, data: dict) -> None:
    page = table()
    page.locator("[data-models-table] tbody a").first.focus()
    header(page, "num_layers").locator("button").evaluate("button => button.click()")
    page.locator("[data-models-search]").evaluate(
        "field => { field.value = 'no such row'; field.dispatchEvent(new Event('input', { bubbles: true })); }")
    expect(page.get_by_role("region", name="Checkpoints and their numbers")).to_be_focused()
    expect(page.locator("[data-models-count]")).to_have_text(f"0 of {len(data['rows'])} checkpoints")


def test_rows_are_all_there_for_somebody_who_scrolls(table: Callable, data: dict) -> None:
    page = table()
    seen: list[str] = []
    region = page.locator("[data-models-scroll]")
    expect(page.locator("[data-models-table]")).to_have_attribute("aria-rowcount", str(len(data["rows"]) + 1))
    for _ in range(200):
        seen += [name for name in first_names(page) if name not in seen]
        before = region.evaluate("region => region.scrollTop")
        region.evaluate("region => new Promise(done => { region.scrollTop += region.clientHeight / 2; "
                        "requestAnimationFrame(() => requestAnimationFrame(done)); })")
        if region.evaluate("region => region.scrollTop") == before:
            break
    seen += [name for name in first_names(page) if name not in seen]
    assert seen == [row["checkpoint"] for row in data["rows"]]


def test_without_script_every_cell_is_there(open_page: Callable, data: dict) -> None:
    page = open_page("models/", script=False).page
    expect(page.locator("[data-models-table] tbody tr")).to_have_count(len(data["rows"]))
    assert shown_keys(page) == [column["key"] for column in data["columns"]]
    expect(page.locator("[data-models-tools]")).to_be_hidden()
    assert first_names(page) == [row["checkpoint"] for row in data["rows"]]
    sizes = page.locator("[data-models-table] tbody tr").evaluate_all(
        "(rows, place) => rows.map(row => row.cells[place].textContent)",
        [column["key"] for column in data["columns"]].index("hidden_size"))
    assert sizes == [f"{row['hidden_size']:,}" for row in data["rows"]]


def test_a_phone_shows_fewer_columns_and_reaches_the_others(table: Callable) -> None:
    page = table(phone=True)
    assert shown_keys(page) == ["checkpoint", "parameters_total", "num_layers", "hidden_size", "attention"]
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    page.get_by_role("button", name="Columns").tap()
    page.get_by_role("checkbox", name="vocabulary").tap()
    assert "vocab_size" in shown_keys(page)
    region = page.locator("[data-models-scroll]")
    region.evaluate("region => { region.scrollLeft = 200; region.scrollTop = 300; }")
    left = page.locator("[data-models-table] tbody th").nth(12).bounding_box()["x"]
    assert abs(left - region.bounding_box()["x"]) < 3
    top = header(page, "parameters_total").bounding_box()["y"]
    assert abs(top - region.bounding_box()["y"]) < 3


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_with_filters_in_use(table: Callable, scheme: str, phone: bool) -> None:
    page = table("norm=RMSNorm&sort=-hidden_size&hidden_size=1k..", scheme=scheme, phone=phone)
    page.get_by_role("button", name="Filters").click()
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()


def test_nothing_is_asked_of_another_host_and_nothing_fails(open_page: Callable, address: str) -> None:
    opened = open_page("models/")
    expect(opened.page.locator("[data-ready]")).to_have_count(1)
    asked = {urlsplit(url).netloc for url in opened.requests if not url.startswith("data:")}
    assert asked == {urlsplit(address).netloc}
    assert opened.errors == []


def test_search_of_the_site_knows_the_page_and_not_its_rows(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = [entry for entry in index["docs"] if entry["location"].startswith("models/")]
    assert found[0]["title"] == "Models"
    assert not any("Laguna" in entry["text"] for entry in found)
