"""The charts over the depth and the panel of costs, in a real browser."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, expect

from encyclopedia.facts import CheckpointFacts
from encyclopedia.page.costs import byte_size, cache_bytes, flop_size
from tests.browser.conftest import SUB_PATH

LIBRARY = "plotly.min.js"
PARAMETERS, SIZES = (f'[data-region=depth] [data-depth-chart="{name}"]' for name in ("parameters", "sizes"))
LEFT, RIGHT = 50, 8


#: Bytes of the heaviest page of a family, as a server sends it.
HEAVIEST = 120_000


def library_requests(opened: Any) -> list[str]:
    return [url for url in opened.requests if url.endswith(LIBRARY)]


def drawn(opened: Any, chart: str = PARAMETERS) -> Locator:
    """The chart, once it is drawn."""
    found = opened.page.locator(chart)
    found.scroll_into_view_if_needed()
    # The library is large, and a busy machine takes its time to read it.
    expect(found).to_have_attribute("data-drawn", "", timeout=60_000)
    return found


def point_of(chart: Locator, block: int, blocks: int) -> dict[str, float]:
    """Inside the chart, a place above the column of ``block``."""
    box = chart.bounding_box()
    assert box is not None
    return {"x": LEFT + (box["width"] - LEFT - RIGHT) * (block + 0.5) / blocks, "y": 60}


def blocks_of(checkpoint: dict[str, Any]) -> int:
    return sum(len(kind["blocks"]) for kind in checkpoint["kinds"])


def another(opened: Any) -> str:
    """An available checkpoint that is not the reference, of other sizes."""
    return [entry["id"] for entry in opened.facts["checkpoints"] if entry["available"]][-1]


def choose(opened: Any, identifier: str) -> None:
    opened.page.locator("[data-selector-button]").click()
    opened.page.locator(f'[data-checkpoint="{identifier}"]').click()


def typed(entry: dict[str, Any]) -> CheckpointFacts:
    return CheckpointFacts.model_validate(entry)


def test_the_library_comes_when_a_chart_comes_into_view(open_family: Callable, address: str) -> None:
    opened = open_family("laguna")
    opened.page.wait_for_load_state("networkidle")
    assert library_requests(opened) == []
    drawn(opened)
    drawn(opened, SIZES)
    assert library_requests(opened) == [f"{address}/vendor/{LIBRARY}"]
    assert SUB_PATH in library_requests(opened)[0]
    assert {urlsplit(url).netloc for url in opened.requests} == {urlsplit(address).netloc}
    assert opened.errors == []


def test_nothing_moves_when_a_chart_arrives(open_family: Callable) -> None:
    opened = open_family("laguna")
    chart = opened.page.locator(PARAMETERS)
    heights = "chart => [chart.offsetHeight, chart.closest('[data-region]').offsetHeight]"
    before = chart.evaluate(heights)
    assert drawn(opened).evaluate(heights) == before
    height = chart.evaluate("chart => chart.querySelector('.main-svg').getBoundingClientRect().height")
    assert height == before[0]


@pytest.mark.parametrize("chart", [PARAMETERS, SIZES], ids=["parameters", "sizes"])
def test_a_click_on_a_bar_moves_the_slider(open_family: Callable, chart: str) -> None:
    opened = open_family("laguna")
    found, blocks = drawn(opened, chart), blocks_of(opened.checkpoint())
    found.click(position=point_of(found, 7, blocks))
    expect(opened.page.locator("[data-block-slider]")).to_have_value("7")
    expect(opened.page).to_have_url(re.compile("block=7"))
    expect(opened.page.locator("[data-depth-block]")).to_have_text("block 7")


def test_a_touch_on_a_bar_moves_the_slider(open_family: Callable) -> None:
    opened = open_family("laguna", phone=True)
    found, blocks = drawn(opened), blocks_of(opened.checkpoint())
    found.tap(position=point_of(found, 20, blocks))
    expect(opened.page.locator("[data-block-slider]")).to_have_value("20")


def test_the_table_moves_the_slider_by_the_keyboard_and_keeps_the_pin(open_family: Callable) -> None:
    opened = open_family("laguna", hash="block=0&pin=stream.input")
    page = opened.page
    page.locator(".depth-numbers summary").first.press("Enter")
    kind = sorted(opened.checkpoint()["kinds"], key=lambda kind: kind["blocks"][0])[-1]
    link = page.locator(".depth-table a", has_text=kind["label"]).first
    link.press("Enter")
    expect(page.locator("[data-block-slider]")).to_have_value(str(kind["blocks"][0]))
    expect(page.locator("[data-card]")).to_have_attribute("data-pinned", "stream.input")


def test_the_slider_moves_the_marker_and_the_numbers(open_family: Callable) -> None:
    opened = open_family("laguna")
    chart, checkpoint = drawn(opened), opened.checkpoint()
    blocks = blocks_of(checkpoint)
    opened.page.locator("[data-block-slider]").focus()
    opened.page.keyboard.press("End")
    expect(opened.page.locator("[data-depth-block]")).to_have_text(f"block {blocks - 1}")
    left, width, chart_width = chart.evaluate("""chart => {
        const { left, width } = getComputedStyle(chart, '::before');
        return [parseFloat(left), parseFloat(width), chart.clientWidth];
    }""")
    middle = LEFT + (chart_width - LEFT - RIGHT) * (blocks - 0.5) / blocks
    assert abs(left + width / 2 - middle) < 1
    kind = next(kind for kind in checkpoint["kinds"] if blocks - 1 in kind["blocks"])
    for part in kind["parameters"]:
        expect(opened.page.locator(f"[data-depth-role={part['role']}]")).not_to_have_class("depth-none")
    expect(opened.page.locator("[data-depth-label]")).to_contain_text(kind["label"])


def test_the_bars_are_the_parameters_of_the_facts(open_family: Callable) -> None:
    opened = open_family("laguna")
    bars = drawn(opened).evaluate(
        "chart => chart.querySelector('.js-plotly-plot').data.map(({ yaxis, y }) => [yaxis, [...y]])")
    kinds = opened.checkpoint()["kinds"]
    for axis, figure in (("y", "total"), ("y2", "active")):
        stacks = [sum(column) for column in zip(*(y for yaxis, y in bars if yaxis == axis), strict=True)]
        for kind in kinds:
            whole = sum(part[figure] for part in kind["parameters"])
            assert {stacks[block] for block in kind["blocks"]} == {whole}


def test_stepping_the_slider_draws_nothing_again_and_stays_within_a_frame(open_family: Callable) -> None:
    opened = open_family("laguna")
    drawn(opened)
    steps = opened.page.evaluate("""async () => {
        const slider = document.querySelector('[data-block-slider]');
        const bars = document.querySelector('[data-depth-chart] .bars');
        const changes = [];
        const watching = new MutationObserver(found => changes.push(...found));
        watching.observe(bars.closest('svg'), { subtree: true, childList: true });
        const times = [];
        for (let block = 0; block <= Number(slider.max); block += 1) {
            slider.value = String(block);
            const start = performance.now();
            slider.dispatchEvent(new Event('input', { bubbles: true }));
            times.push(performance.now() - start);
            await new Promise(requestAnimationFrame);
        }
        return [changes.length, times.sort((one, other) => one - other)[Math.floor(times.length / 2)]];
    }""")
    assert steps[0] == 0
    assert steps[1] < 16


def test_another_checkpoint_is_drawn_with_its_own_blocks(open_family: Callable) -> None:
    opened = open_family("laguna")
    drawn(opened)
    other = another(opened)
    choose(opened, other)
    lengths = drawn(opened).evaluate("chart => chart.querySelector('.js-plotly-plot').data.map(({ x }) => x.length)")
    assert set(lengths) == {blocks_of(opened.checkpoint(other))}
    choose(opened, opened.facts["reference"])
    found = drawn(opened)
    found.click(position=point_of(found, 2, blocks_of(opened.checkpoint())))
    expect(opened.page.locator("[data-block-slider]")).to_have_value("2")
    assert len(library_requests(opened)) == 1
    assert opened.errors == []


def test_a_change_of_the_palette_colours_the_bars_again(open_family: Callable) -> None:
    opened = open_family("laguna")
    chart = drawn(opened)
    bar = chart.locator(".bars .point path").first
    light = bar.evaluate("bar => getComputedStyle(bar).fill")
    opened.page.locator("label[title='Switch to dark']").click()
    expect(opened.page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")
    expect(bar).not_to_have_css("fill", light)


def test_a_chart_that_cannot_be_loaded_leaves_its_table(open_family: Callable) -> None:
    opened = open_family("laguna")
    opened.page.route(f"**/{LIBRARY}", lambda route: route.abort())
    chart = opened.page.locator(PARAMETERS)
    chart.scroll_into_view_if_needed()
    expect(chart).to_be_hidden()
    expect(opened.page.locator(".depth-numbers summary").first).to_be_visible()


def test_without_script_the_tables_and_the_costs_are_there(open_family: Callable) -> None:
    opened = open_family("laguna", script=False)
    page, checkpoint = opened.page, typed(opened.checkpoint())
    expect(page.locator(PARAMETERS)).to_be_hidden()
    table = page.locator(".depth-table").first
    expect(table).to_be_visible()
    for kind in checkpoint.kinds:
        row = table.locator("tr", has_text=kind.label).first
        expect(row).to_contain_text(f"{sum(part.total for part in kind.parameters):,}")
    assert checkpoint.costs is not None
    assert checkpoint.costs.cache is not None
    expect(page.locator("[data-cost=kept]")).to_have_text(byte_size(cache_bytes(checkpoint.costs.cache.kept, 8192)))


@pytest.mark.parametrize("length", [1, 700, 131_072])
def test_costs_at_a_length_are_those_of_the_facts(open_family: Callable, length: int) -> None:
    opened = open_family("laguna")
    page = opened.page
    page.locator("[data-costs-length]").fill(str(length))
    for identifier in (opened.facts["reference"], another(opened)):
        choose(opened, identifier)
        costs = typed(opened.checkpoint(identifier)).costs
        assert costs is not None
        assert costs.cache is not None
        kept = cache_bytes(costs.cache.kept, length)
        operations = costs.flops_per_token.amount + length * costs.flops_per_token_of_context.amount
        expect(page.locator("[data-costs-length]")).to_have_value(str(length))
        expect(page.locator("[data-cost=kept]")).to_have_text(byte_size(kept))
        expect(page.locator("[data-cost-exact=kept]")).to_have_text(f"{kept:,} bytes")
        expect(page.locator("[data-cost=flops]")).to_have_text(flop_size(operations))
        expect(page.locator("[data-cost-exact=flops]")).to_have_text(f"{operations:,}")
        expect(page).to_have_url(re.compile(f"context={length}$"))


def test_the_address_sets_the_length_and_back_takes_it_away(open_family: Callable) -> None:
    opened = open_family("laguna", hash="block=2&context=4096")
    page = opened.page
    expect(page.locator("[data-costs-length]")).to_have_value("4096")
    expect(page.locator("[data-block-slider]")).to_have_value("2")
    page.locator('[data-costs-preset="32768"]').click()
    expect(page).to_have_url(re.compile("block=2&context=32768$"))
    expect(page.locator('[data-costs-preset="32768"]')).to_have_attribute("aria-pressed", "true")
    page.evaluate("location.hash = 'block=1'")
    expect(page.locator("[data-costs-length]")).to_have_value("8192")


def test_a_length_that_is_none_changes_nothing(open_family: Callable) -> None:
    opened = open_family("laguna")
    field = opened.page.locator("[data-costs-length]")
    before = opened.page.locator("[data-cost=kept]").inner_text()
    field.fill("")
    field.blur()
    expect(field).to_have_value("8192")
    field.fill("-3")
    field.blur()
    expect(field).to_have_value("8192")
    assert opened.page.locator("[data-cost=kept]").inner_text() == before


def test_the_range_runs_from_short_to_long(open_family: Callable) -> None:
    opened = open_family("laguna")
    handle, field = opened.page.locator("[data-costs-range]"), opened.page.locator("[data-costs-length]")
    handle.focus()
    opened.page.keyboard.press("Home")
    expect(field).to_have_value("128")
    opened.page.keyboard.press("End")
    expect(field).to_have_value(str(2**20))
    opened.page.keyboard.press("ArrowLeft")
    expect(field).to_have_value(str(2**20 - 2**16))


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
@pytest.mark.parametrize("family", ["laguna", "mamba2"])
def test_the_section_is_laid_out_and_axe_finds_nothing(open_family: Callable, family: str, phone: bool) -> None:
    opened = open_family(family, phone=phone, scheme="dark" if phone else "light")
    drawn(opened)
    opened.page.evaluate("document.querySelectorAll('#depth details').forEach(details => { details.open = true })")
    widths = opened.page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert widths[0] <= widths[1]
    results = Axe().run(opened.page, context="#depth")
    assert results.violations_count == 0, results.generate_report()
    assert opened.errors == []


def test_the_page_with_all_its_checkpoints_stays_light(site: Path) -> None:
    page = (site / "families" / "laguna" / "index.html").read_bytes()
    assert len(gzip.compress(page)) <= HEAVIEST
