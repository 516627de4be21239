"""The interaction contract, on both families, in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from encyclopedia.build.site import Engine
from tests.browser.conftest import FAMILIES

pytestmark = pytest.mark.core

SCORES = "value.self_attn.attention_scores"
NEURONS = "value.mlp.mlp_neurons"

#: Addresses that cannot be the id of an element, over which the script of Zensical's theme stumbles without harm.
NO_ID = {"pin=%E0%A4%A", 'pin="]<img src=x onerror=alert(1)>'}


@pytest.mark.parametrize("family", FAMILIES)
def test_hovering_shows_a_part_and_clicking_pins_it(open_family: Callable, family: str) -> None:
    opened = open_family(family)
    page, card = opened.page, opened.page.locator("[data-card]")
    opened.node(SCORES).hover()
    expect(card.locator("[data-card-expression]")).to_contain_text("model.layers[0].self_attn.attention_scores")
    expect(card).not_to_have_attribute("data-pinned", SCORES)
    opened.node(NEURONS).hover()
    expect(card.locator("[data-card-expression]")).to_contain_text("model.layers[0].mlp.mlp_neurons")
    opened.node(SCORES).click()
    expect(card).to_have_attribute("data-pinned", SCORES)
    opened.node(NEURONS).hover()
    expect(card.locator("[data-card-expression]")).to_contain_text("attention_scores")
    opened.node(SCORES).click()
    expect(card).not_to_have_attribute("data-pinned", SCORES)
    opened.node(NEURONS).click()
    expect(card).to_have_attribute("data-pinned", NEURONS)
    opened.node(SCORES).click()
    expect(card).to_have_attribute("data-pinned", SCORES)
    page.keyboard.press("Escape")
    expect(card).not_to_have_attribute("data-pinned", SCORES)
    assert opened.errors == []


@pytest.mark.parametrize("family", FAMILIES)
def test_the_card_says_layout_shape_and_place(open_family: Callable, family: str) -> None:
    opened = open_family(family)
    for host in opened.checkpoint()["hosts"]:
        for value in host["values"]:
            node = opened.node(f"value.{host['name']}.{value['name']}")
            if not node.count() or value["shapes"][0] is None:
                continue
            node.hover()
            card = opened.page.locator("[data-card]")
            expect(card.locator("[data-card-expression]")).to_contain_text(value["name"])
            if value["layout"]:
                expect(card.locator("[data-card-layout]")).to_contain_text(value["layout"])
            expect(card.locator("[data-card-shape]")).to_contain_text(str(value["shapes"][0]))
            expect(card.locator("[data-card-where]")).to_contain_text(value["location"])


@pytest.mark.parametrize("family", FAMILIES)
def test_every_part_is_reached_by_tab_in_forward_order(open_family: Callable, family: str) -> None:
    opened = open_family(family)
    page = opened.page
    expected = page.evaluate(
        "[...document.querySelectorAll('[data-node]')].filter(e => e.getClientRects().length).map(e => e.dataset.node)")
    assert len(expected) == len(set(expected))
    page.locator("input[data-block-slider]").focus()
    strip = [node for node in expected if node.startswith("strip.")]
    assert strip == ["strip.embed_tokens", "strip.layers", "strip.norm", "strip.lm_head", "strip.logits"]
    opened.node("strip.embed_tokens").focus()
    reached = []
    for _ in range(len(expected) * 3):
        node = page.evaluate("document.activeElement.dataset.node || null")
        if node and node not in reached:
            reached.append(node)
        page.keyboard.press("Tab")
    assert sorted(reached) == sorted(expected)
    assert [node for node in reached if node.startswith("strip.")] == strip
    inside = [node for node in reached if not node.startswith("strip.")]
    assert inside[0] == "stream.input"
    assert inside[-1] == "stream.output"
    for sublayer in opened.checkpoint()["kinds"][0]["sublayers"]:
        values = [f"value.{sublayer['host']}.{name}" for name in sublayer["values"]]
        assert [node for node in inside if node in values] == values
        norm = f"norm.{sublayer['norm']}"
        order = [norm, f"sublayer.{sublayer['host']}", *values, f"contribution.{sublayer['host']}"]
        assert [node for node in inside if node in order] == order
    assert inside.index("add.0") < inside.index("stream.mid") < inside.index("add.1")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_keyboard_alone_shows_pins_and_releases(open_family: Callable, family: str) -> None:
    opened = open_family(family)
    page, card = opened.page, opened.page.locator("[data-card]")
    opened.node(SCORES).focus()
    expect(card.locator("[data-card-expression]")).to_contain_text("attention_scores")
    page.keyboard.press("Enter")
    expect(card).to_have_attribute("data-pinned", SCORES)
    page.keyboard.press("Enter")
    expect(card).not_to_have_attribute("data-pinned", SCORES)
    page.keyboard.press("Space")
    expect(card).to_have_attribute("data-pinned", SCORES)
    page.keyboard.press("Tab")
    expect(card.locator("[data-card-expression]")).to_contain_text("attention_scores")
    page.keyboard.press("Escape")
    expect(card).not_to_have_attribute("data-pinned", SCORES)


@pytest.mark.parametrize("family", FAMILIES)
def test_touch_pins_and_releases_and_the_card_is_a_sheet_in_view(open_family: Callable, family: str) -> None:
    opened = open_family(family, phone=True)
    card = opened.page.locator("[data-card]")
    opened.node(SCORES).tap()
    expect(card).to_have_attribute("data-pinned", SCORES)
    expect(card).to_be_in_viewport(ratio=0.9)
    expect(card.locator("[data-card-expression]")).to_contain_text("attention_scores")
    opened.node(SCORES).scroll_into_view_if_needed()
    opened.node(SCORES).tap()
    expect(card).not_to_have_attribute("data-pinned", SCORES)
    assert opened.errors == []


def test_the_slider_crosses_kinds_by_keys(open_family: Callable) -> None:
    opened = open_family("laguna", hash="pin=value.self_attn.attention_queries")
    page = opened.page
    shape = page.locator("[data-card-shape]")
    slider = page.locator("input[data-block-slider]")
    expect(shape).to_contain_text("[1, 48, 8, 128]")
    expect(opened.node("part.mlp.router")).to_have_count(0)
    expect(opened.node("value.mlp.mlp_activation")).to_have_count(1)
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(shape).to_contain_text("[1, 64, 8, 128]")
    expect(page.locator("[data-card-expression]")).to_contain_text("model.layers[1].self_attn.attention_queries")
    expect(opened.node("part.mlp.router")).to_have_count(1)
    expect(opened.node("value.mlp.mlp_activation")).to_have_count(0)
    expect(page.locator("[data-card]")).to_have_attribute("data-pinned", "value.self_attn.attention_queries")
    page.keyboard.press("End")
    assert slider.input_value() == "39"
    expect(page.locator("[data-card-expression]")).to_contain_text("model.layers[39]")
    page.keyboard.press("Home")
    assert slider.input_value() == "0"
    expect(shape).to_contain_text("[1, 48, 8, 128]")
    page.keyboard.press("ArrowLeft")
    assert slider.input_value() == "0"
    assert opened.errors == []


def test_ticks_choose_a_block_and_the_identity_follows(open_family: Callable) -> None:
    opened = open_family("laguna")
    page = opened.page
    page.locator('[data-tick="4"]').click()
    assert page.locator("input[data-block-slider]").input_value() == "4"
    opened.node(SCORES).hover()
    expect(page.locator("[data-card-shape]")).to_contain_text("[1, 48, 8, 8]")
    page.locator('[data-tick="5"]').click()
    opened.node(SCORES).hover()
    expect(page.locator("[data-card-shape]")).to_contain_text("[1, 64, 8, 8]")
    assert "block=5" in page.evaluate("location.hash")
    expect(page.locator("[data-identity]")).to_contain_text("mlp.mlp_output")


def test_doge_carries_its_gates_in_the_identity(open_family: Callable) -> None:
    opened = open_family("doge")
    identity = opened.page.locator("[data-identity]")
    expect(identity).to_contain_text("post_attention_residual")
    expect(identity).to_contain_text("input_residual")


@pytest.mark.parametrize(("family", "other", "disabled"), [
    ("doge", "SmallDoge/Doge-40M-MoE", "SmallDoge/Doge-60M"),
    ("laguna", "poolside/Laguna-M.1", "poolside/Laguna-M.1-base"),
])
def test_the_selector_changes_the_checkpoint_and_keeps_its_hands_off_the_greyed_out(
    open_family: Callable, family: str, other: str, disabled: str
) -> None:
    opened = open_family(family)
    page = opened.page
    page.locator("[data-selector-button]").click()
    listbox = page.get_by_role("listbox")
    expect(listbox).to_be_visible()
    greyed = page.locator(f'[role=option][data-checkpoint="{disabled}"]')
    expect(greyed).to_have_attribute("aria-disabled", "true")
    reason = opened.checkpoint(disabled)["reason"]
    expect(greyed).to_contain_text(reason)
    greyed.click(force=True)
    assert disabled not in page.evaluate("decodeURIComponent(location.hash)")
    expect(listbox).to_be_visible()
    page.locator(f'[role=option][data-checkpoint="{other}"]').click()
    assert f"ckpt={other}" in page.evaluate("decodeURIComponent(location.hash)")
    checkpoint = opened.checkpoint(other)
    slider = page.locator("input[data-block-slider]")
    expect(slider).to_have_attribute("max", str(checkpoint["sizes"]["num_layers"] - 1))
    opened.node(SCORES).hover()
    scores = next(value for host in checkpoint["hosts"] for value in host["values"]
                  if value["name"] == "attention_scores")
    expect(page.locator("[data-card-shape]")).to_contain_text(str(scores["shapes"][0]))
    expect(page.locator("#api")).to_contain_text(f"{checkpoint['sizes']['hidden_size']}")
    page.go_back()
    expect(slider).to_have_attribute("max", str(opened.checkpoint()["sizes"]["num_layers"] - 1))
    assert opened.errors == []


def test_the_selector_works_by_keyboard(open_family: Callable) -> None:
    opened = open_family("laguna")
    page = opened.page
    page.locator("[data-selector-button]").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("listbox")).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("listbox")).to_be_hidden()
    second = opened.facts["checkpoints"][1]["id"]
    assert f"ckpt={second}" in page.evaluate("decodeURIComponent(location.hash)")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox")).to_be_hidden()


def test_an_address_opens_the_page_just_so_and_history_moves(open_family: Callable) -> None:
    opened = open_family("laguna", hash="ckpt=poolside/Laguna-S-2.1&block=3&pin=value.self_attn.attention_scores")
    page, card = opened.page, opened.page.locator("[data-card]")
    expect(card).to_have_attribute("data-pinned", SCORES)
    expect(card.locator("[data-card-expression]")).to_contain_text("model.layers[3].self_attn.attention_scores")
    expect(card.locator("[data-card-shape]")).to_contain_text("[1, 72, 8, 8]")
    expect(page.locator("[data-selector-button]")).to_contain_text("Laguna-S-2.1")
    opened.node("value.self_attn.attention_keys").click()
    expect(card).to_have_attribute("data-pinned", "value.self_attn.attention_keys")
    page.go_back()
    expect(card).to_have_attribute("data-pinned", SCORES)
    page.go_forward()
    expect(card).to_have_attribute("data-pinned", "value.self_attn.attention_keys")
    assert opened.errors == []


@pytest.mark.parametrize("hash", [
    "ckpt=nobody/nothing", "block=9999", "block=-3", "block=x", "pin=value.self_attn.nothing", "pin=%E0%A4%A",
    "ckpt=poolside/Laguna-M.1-base", "&&=&", 'pin="]<img src=x onerror=alert(1)>',
])
def test_a_wrong_address_still_shows_the_page(open_family: Callable, engine: Engine, hash: str) -> None:
    opened = open_family("laguna", hash=hash)
    expect(opened.node("stream.input")).to_have_count(1)
    opened.node(SCORES).hover()
    expect(opened.page.locator("[data-card-expression]")).to_contain_text("attention_scores")
    assert opened.errors == [] or (engine is Engine.ZENSICAL and hash in NO_ID)


def test_copying_the_expression(open_family: Callable) -> None:
    opened = open_family("laguna", hash="block=2&pin=value.self_attn.attention_scores")
    opened.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened.page.locator("[data-card] [data-copy]").first.click()
    copied = opened.page.evaluate("navigator.clipboard.readText()")
    assert copied == "model.layers[2].self_attn.attention_scores"


def test_a_row_of_the_table_shows_its_value_in_the_block(open_family: Callable) -> None:
    opened = open_family("laguna")
    row = opened.page.locator("#value-self_attn-attention_keys")
    row.scroll_into_view_if_needed()
    row.locator("[data-show-in-block]").click()
    expect(opened.page.locator("[data-card]")).to_have_attribute("data-pinned", "value.self_attn.attention_keys")
    expect(opened.page.locator("[data-card]")).to_be_in_viewport()


def test_files_of_the_family_are_on_the_site(open_family: Callable) -> None:
    opened = open_family("laguna")
    for link in opened.page.locator(".module-sources a").all():
        address = link.evaluate("link => link.href")
        assert opened.page.request.get(address).ok, address
