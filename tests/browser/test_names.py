"""The vocabulary a page speaks: chosen, remembered, said by card and table, and told alike by server and script."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

VALUES = "value.self_attn.attention_values"
PREMIX = "#value-self_attn-attention_premix"

#: The texts of a row's fold, as they are in the page.
FOLDS = """rows => rows.map(row => [row.id, [...row.querySelectorAll("[data-elsewhere] [data-vocabulary]")].map(line =>
    [line.dataset.vocabulary, line.querySelector("dt").textContent, line.querySelector("dd").textContent,
     line.querySelector(".copy")?.dataset.copy ?? null])])"""


def choose(page: Page, vocabulary: str) -> None:
    page.locator("[data-names-choice]").select_option(vocabulary)


def expression(page: Page) -> str:
    return page.locator("[data-card-expression]").text_content() or ""


def test_the_page_opens_in_standard_names(open_family: Callable) -> None:
    opened = open_family("laguna", hash=f"block=3&pin={VALUES}")
    assert opened.page.locator("[data-names-choice]").input_value() == "standard"
    assert expression(opened.page) == "model.layers[3].self_attn.attention_values"
    assert opened.page.locator(".values-other").count() == 0
    assert opened.errors == []


def test_a_chosen_vocabulary_is_spoken_by_card_and_table(open_family: Callable) -> None:
    opened = open_family("laguna", hash=f"ckpt=poolside/Laguna-XS-2.1&block=3&pin={VALUES}")
    page = opened.page
    before = page.evaluate("location.hash")
    choose(page, "transformers")
    assert expression(page) == "model.model.layers[3].self_attn.v_proj"
    expect(page.locator(".card-note")).to_have_text("its output")
    expect(page.locator(f"{PREMIX} .values-other code")).to_have_text("model.model.layers[0].self_attn.o_proj")
    expect(page.locator(f"{PREMIX} .values-name > code")).to_have_text("attention_premix")
    choose(page, "nnsight")
    assert expression(page) == "model.model.layers[3].self_attn.source.attention_interface_1.inputs[0][3]"
    copied = page.locator(f"{PREMIX} .copy").first
    expect(copied).to_have_attribute("data-copy", "model.model.layers[0].self_attn.o_proj.input")
    choose(page, "standard")
    assert expression(page) == "model.layers[3].self_attn.attention_values"
    assert page.locator(".values-other, .card-note").count() == 0
    expect(copied).to_have_attribute("data-copy", "model.layers[0].self_attn.attention_premix")
    assert page.evaluate("location.hash") == before
    assert opened.errors == []


def test_hovering_and_the_slider_keep_the_vocabulary(open_family: Callable) -> None:
    opened = open_family("laguna")
    page = opened.page
    choose(page, "transformers")
    opened.node("value.mlp.mlp_neurons").hover()
    assert expression(page) == "model.model.layers[0].mlp.down_proj"
    opened.node("norm.input_layernorm").hover()
    assert expression(page) == "model.model.layers[0].input_layernorm"
    page.locator("[data-block-slider]").focus()
    page.keyboard.press("ArrowRight")
    assert expression(page) == "model.model.layers[1].input_layernorm"
    opened.node("part.mlp.experts").hover()
    assert expression(page) == "model.model.layers[1].mlp.experts"


def test_a_name_that_is_not_there_is_said_to_be_missing(open_family: Callable) -> None:
    """The standard one stands in and is marked, whether the vocabulary lacks the name or nothing is known of it."""
    opened = open_family("laguna")
    page = opened.page
    opened.node("strip.layers").click()
    choose(page, "transformer_lens")
    assert expression(page) == "model.layers"
    expect(page.locator(".card-note")).to_contain_text("TransformerLens")


def test_the_choice_is_remembered_on_other_pages_and_checkpoints(open_family: Callable, address: str) -> None:
    opened = open_family("laguna")
    page = opened.page
    choose(page, "nnsight")
    page.goto(f"{address}/families/doge/#block=1&pin=value.self_attn.attention_scores")
    page.wait_for_load_state("load")
    assert page.locator("[data-names-choice]").input_value() == "nnsight"
    assert expression(page).startswith("model.model.layers[1].self_attn.source.")
    page.goto(f"{address}/families/laguna/#ckpt=poolside/Laguna-M.1&block=2&pin=value.mlp.mlp_output")
    page.wait_for_load_state("load")
    expect(page.locator(f"{PREMIX} .values-other code")).to_have_text("model.model.layers[0].self_attn.o_proj.input")


def test_the_choice_is_made_by_keyboard(open_family: Callable) -> None:
    page = open_family("laguna").page
    page.locator("[data-selector-button]").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "names-choice"
    assert page.get_by_label("names").count() == 1
    page.keyboard.press("n")
    expect(page.locator("[data-names-choice]")).to_have_value("nnsight")


def test_all_of_the_fold_can_be_copied(open_family: Callable) -> None:
    opened = open_family("laguna", hash=f"block=3&pin={VALUES}")
    page = opened.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    fold = page.locator("[data-card] [data-elsewhere]")
    fold.locator("summary").click()
    fold.locator("[data-vocabulary=hook] .copy").click()
    expect(page.locator("[data-copy-status]")).to_have_text("Copied the code")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("caught = {}\n\ndef keep(module, args, output):\n")
    assert "model.model.layers[3].self_attn.v_proj.register_forward_hook(keep)" in copied
    assert "unflatten(2, (-1, 128)).transpose(1, 2)" in copied
    fold.locator("[data-vocabulary=nnsight] .copy").click()
    expect(page.locator("[data-copy-status]")).to_contain_text("inputs[0][3]")


@pytest.mark.parametrize("family", ["laguna", "doge", "mamba2"])
def test_scripts_and_server_tell_the_same(open_family: Callable, family: str) -> None:
    """Every value's names as the server wrote them, and as a script writes them where the server did not."""
    rows = "[data-region=api] .values-table tbody tr"
    plain = open_family(family, script=False)
    served = plain.page.locator(rows).evaluate_all(FOLDS)
    opened = open_family(family)
    opened.page.locator(f"{rows} [data-elsewhere]").evaluate_all("folds => folds.forEach(fold => fold.remove())")
    choose(opened.page, "transformers")
    assert opened.page.locator(rows).evaluate_all(FOLDS) == served
    assert sum(len(lines) for _, lines in served) > 2 * len(served)


def test_another_checkpoint_has_its_names_too(open_family: Callable) -> None:
    opened = open_family("laguna", hash="ckpt=poolside/Laguna-M.1")
    folds = opened.page.locator("[data-region=api] .values-table tbody tr").evaluate_all(FOLDS)
    assert all(lines for _, lines in folds)


def test_without_scripts_the_other_names_are_there(open_family: Callable) -> None:
    page = open_family("laguna", script=False).page
    fold = page.locator(f"{PREMIX} [data-elsewhere]")
    fold.locator("summary").click()
    expect(fold.locator("pre")).to_contain_text("register_forward_pre_hook(keep)")
    expect(page.locator("[data-names-choice]")).to_be_hidden()


def test_on_a_phone_nothing_is_wider_than_the_page(open_family: Callable) -> None:
    opened = open_family("laguna", phone=True)
    choose(opened.page, "nnsight")
    for summary in opened.page.locator("[data-region=api] [data-elsewhere] summary").all()[:6]:
        summary.click()
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390
