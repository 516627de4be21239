"""Every kind of page for readers with a keyboard, a screen reader, large text, high contrast or no wish for motion."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Opened
from tests.browser.kinds import AUDITED_ON_BOTH, KINDS, PIN, opened_as, pinned_with_charts, sideways


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", [
    pytest.param(kind, marks=pytest.mark.core) if kind in AUDITED_ON_BOTH else kind for kind in KINDS])
def test_axe_finds_nothing(open_page: Callable[..., Opened], kind: str, scheme: str, phone: bool) -> None:
    page = opened_as(open_page, kind, scheme=scheme, phone=phone)
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
    assert sideways(page) <= 0


@pytest.mark.core
def test_the_keyboard_gets_past_the_header_in_one_step(open_page: Callable[..., Opened]) -> None:
    page = open_page("checks/").page
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.page-body') !== null")


def test_the_diagram_is_a_list_of_buttons_in_forward_order(open_family: Callable[..., Opened]) -> None:
    diagram = open_family("laguna").page.locator(".diagram:visible")
    assert diagram.get_attribute("role") == "list"
    nodes = diagram.evaluate("""list => [...list.querySelectorAll("[role=listitem]")].map((item) => {
        const parts = [...item.querySelectorAll("[data-node]")];
        const [part] = parts;
        return [parts.length, part.getAttribute("role"), part.getAttribute("aria-label"), part.dataset.node];
    })""")
    assert all((count, role) == (1, "button") and name for count, role, name, _ in nodes)
    names = [node for *_, node in nodes]
    assert len(names) == diagram.locator("[data-node]").count()
    order = ["stream.input", "value.self_attn.attention_queries", PIN, "value.self_attn.attention_probabilities",
             "contribution.self_attn", "add.0", "stream.mid", "sublayer.mlp", "contribution.mlp", "add.1",
             "stream.output"]
    assert [name for name in names if name in order] == order


def test_the_slider_says_block_and_kind(open_family: Callable[..., Opened]) -> None:
    opened = open_family("laguna")
    labels = {block: kind["label"] for kind in opened.checkpoint()["kinds"] for block in kind["blocks"]}
    slider = opened.page.get_by_role("slider", name="Block", exact=True)
    for key, block in (("Home", 0), ("ArrowRight", 1), ("End", len(labels) - 1)):
        slider.press(key)
        expect(slider).to_have_attribute("aria-valuetext", f"block {block}, {labels[block]}")


def test_a_card_is_announced_when_it_is_pinned_and_not_when_it_is_pointed_at(
    open_family: Callable[..., Opened],
) -> None:
    opened = open_family("laguna")
    status = opened.page.get_by_role("status").and_(opened.page.locator("[data-card-status]"))
    for node in ("value.self_attn.attention_queries", PIN):
        opened.node(node).hover()
        expect(opened.page.locator("[data-card-expression]")).to_contain_text(node.rpartition(".")[2])
        expect(status).to_have_text("")
    opened.node(PIN).click()
    expect(status).to_contain_text("attention_scores")
    expect(status).to_contain_text("pinned")
    said = status.inner_text()
    opened.node("value.self_attn.attention_queries").hover()
    expect(status).to_have_text(said)


def test_nothing_moves_for_readers_who_want_no_motion(open_family: Callable[..., Opened]) -> None:
    page = open_family("laguna", phone=True).page
    page.evaluate("""() => {
        window.asked = [];
        for (const [owner, name] of [[Element.prototype, "scrollIntoView"], [window, "scrollBy"]]) {
            const own = owner[name];
            owner[name] = function (how) {
                window.asked.push(how.behavior);
                return own.call(this, how);
            };
        }
        const animate = Element.prototype.animate;
        Element.prototype.animate = function (frames, how) {
            window.asked.push(how.duration ? "smooth" : "auto");
            return animate.call(this, frames, how);
        };
    }""")
    page.get_by_role("slider", name="Block", exact=True).press("ArrowRight")
    page.locator(f'[data-node="{PIN}"]:visible').tap()
    page.locator("[data-show-in-block]").first.evaluate("button => button.click()")
    assert page.evaluate("asked.length") >= 2
    assert "smooth" not in page.evaluate("asked")
    slow = page.evaluate("""[...document.querySelectorAll("body *")].filter((element) =>
        ["animationDuration", "transitionDuration"].some((name) => element.matches(".page-body *")
            && getComputedStyle(element)[name].split(",").some((time) => parseFloat(time) > 0.001)))
        .map((element) => element.className.baseVal ?? element.className)""")
    assert slow == []


@pytest.mark.parametrize("kind", KINDS)
def test_text_of_double_size_is_all_there(open_page: Callable[..., Opened], kind: str) -> None:
    page = open_page(KINDS[kind].path).page
    page.set_viewport_size({"width": 1280, "height": 900})
    page.evaluate("document.documentElement.style.fontSize ="
                  " `${2 * parseFloat(getComputedStyle(document.documentElement).fontSize)}px`")
    KINDS[kind].prepare(page)
    assert sideways(page) <= 0
    # The button that lets go of a part stands a little in the card's padding.
    clipped = page.locator(".hero, .hero *, .card, .card *").evaluate_all("""elements => elements.filter((element) =>
        element.matches(":not(.visually-hidden, .copy, .card-head, select)") && element.clientWidth
        && element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).display !== "inline")
        .map((element) => `${element.className}: ${element.scrollWidth} in ${element.clientWidth}`)""")
    assert clipped == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_at_double_zoom_does_not_scroll_sideways(browser: Browser, address: str, kind: str) -> None:
    page = browser.new_page(viewport={"width": 640, "height": 450}, device_scale_factor=2)
    try:
        page.goto(f"{address}/{KINDS[kind].path}")
        KINDS[kind].prepare(page)
        assert sideways(page) <= 0
    finally:
        page.close()


def test_with_forced_colors_parts_ticks_and_focus_are_still_told_apart(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900}, forced_colors="active")
    try:
        page.goto(f"{address}/{KINDS['family'].path}")
        pinned_with_charts(page)
        look = """([selector, ...names]) => {
            const style = getComputedStyle(document.querySelector(`.diagram-wide ${selector}`));
            return names.map((name) => style[name]);
        }"""
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        for line in (".diagram-value > rect", ".diagram-stream-line", ".diagram-edges path"):
            assert page.evaluate(look, [line, "stroke"]) != [paper], line
        assert (page.evaluate(look, [".diagram-value:not(.is-shown) > rect", "stroke", "strokeWidth"])
                != page.evaluate(look, [".is-pinned > rect", "stroke", "strokeWidth"]))
        ticks = page.locator("[data-ticks] i").evaluate_all(
            "ticks => ticks.map(tick => [tick.className, getComputedStyle(tick).background])")
        looks = {name.split()[0]: background for name, background in ticks}
        assert len(set(looks.values())) == len(looks) > 1
        page.locator(f'[data-node="{PIN}"]:visible').focus()
        page.keyboard.press("Shift+Tab")
        focused = page.evaluate("""() => {
            const rect = document.activeElement.querySelector("rect, circle");
            return [getComputedStyle(rect).stroke, getComputedStyle(rect).strokeWidth];
        }""")
        assert focused != page.evaluate(look, [".diagram-value:not(.is-shown):not(:focus) > rect", "stroke",
                                               "strokeWidth"])
    finally:
        page.close()
