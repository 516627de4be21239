"""The page that compares two checkpoints, in a real browser, held against the site's data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.conftest import Opened

LLAMA = "meta-llama/Llama-3.1-8B"
LAGUNA = "poolside/Laguna-XS-2.1"
LAGUNA_M = "poolside/Laguna-M.1"
MAMBA = "AntonV/mamba2-130m-hf"
GEMMA = "google/gemma-2-2b"
FAILED = "blt"

FAMILY_OF = {LLAMA: "llama", LAGUNA: "laguna", LAGUNA_M: "laguna", MAMBA: "mamba2", GEMMA: "gemma2", FAILED: "blt"}

#: Two families, one family, one checkpoint at two depths, softmax and a state.
PAIRS = [(LLAMA, LAGUNA, (0, 3)), (LAGUNA, LAGUNA_M, (0, 5)), (LAGUNA, LAGUNA, (1, 4)), (GEMMA, MAMBA, (1, 0))]

SCORES = "value.self_attn.attention_scores"


@pytest.fixture
def open_pair(open_page: Callable[..., Opened]) -> Callable[..., Page]:
    """Opens a comparison and waits until it is drawn."""

    def opener(a: str, b: str, blocks: tuple[int, int] | None = None, **more: Any) -> Page:
        hash = f"#a={a}&b={b}" + (f"&block={blocks[0]},{blocks[1]}" if blocks else "")
        opened = open_page(f"compare/{hash}", **more)
        expect(opened.page.locator("[data-compare-result]")).to_be_visible()
        assert opened.errors == []
        return opened.page

    return opener


@pytest.fixture(scope="session")
def facts_of(site: Path) -> Callable[[str], dict[str, Any]]:
    """The facts of a checkpoint, from the site's data."""

    def facts(checkpoint: str) -> dict[str, Any]:
        family = json.loads((site / "data" / f"{FAMILY_OF[checkpoint]}.json").read_text(encoding="utf-8"))
        return next(entry for entry in family["checkpoints"] if entry["id"] == checkpoint)

    return facts


def kind_of(facts: dict[str, Any], block: int) -> int:
    return next(index for index, kind in enumerate(facts["kinds"]) if block in kind["blocks"])


def value_of(facts: dict[str, Any], kind: int, node: str) -> tuple | None:
    """What a value's part is compared by, or ``None`` for a part that is no value."""
    sort, _, rest = node.partition(".")
    sublayers = {entry["host"]: entry for entry in facts["kinds"][kind]["sublayers"]}
    host, name = {"value": lambda: tuple(rest.split(".")), "stream": lambda: ("layer", f"layer_{rest}"),
                  "contribution": lambda: (rest, sublayers[rest]["contribution"] if rest in sublayers else None),
                  }.get(sort, lambda: (None, None))()
    found = [value for entry in facts["hosts"] if entry["name"] == host for value in entry["values"]
             if value["name"] == name]
    return seen(found[0], kind) if found else None


def seen(value: dict[str, Any], kind: int) -> tuple:
    place = value["where"] if value["location"] == "derived" else value["location"]
    return (value["layout"], value["dims"], value["shapes"][kind], place, value["condition"])


def states(page: Page) -> list[dict[str, str]]:
    return page.evaluate("""[...document.querySelectorAll("[data-side]")].map(side => Object.fromEntries(
        [...side.querySelectorAll("[data-node]")].map(part => [part.dataset.node, part.dataset.differs])))""")


@pytest.mark.parametrize(("a", "b", "blocks"), PAIRS)
def test_the_parts_that_are_marked_are_those_that_differ(
    open_pair: Callable, facts_of: Callable, a: str, b: str, blocks: tuple[int, int]
) -> None:
    page = open_pair(a, b, blocks)
    facts = facts_of(a), facts_of(b)
    kinds = [kind_of(one, block) for one, block in zip(facts, blocks, strict=True)]
    marked = states(page)
    assert all(marked), "both diagrams have parts"
    compared = 0
    for node in marked[0].keys() | marked[1].keys():
        found = [side[node] for side in marked if node in side]
        values = [value_of(one, kind, node) for one, kind in zip(facts, kinds, strict=True)]
        if len(found) == 1:
            # A norm may have its counterpart under another native name; it is marked all the same.
            assert found[0] == "only" or (node.startswith("norm.") and found[0] == "changed"), node
            continue
        assert found[0] == found[1], node
        if values[0] is None or values[1] is None:
            continue
        compared += 1
        differing = [one != other for one, other in zip(*values, strict=True)]
        resized = differing == [False, False, True, False, False] and all(value[2] for value in values)
        expected = "resized" if resized else "changed" if any(differing) else "equal"
        assert found[0] == expected, (node, values)
    assert compared
    badges = page.locator("[data-side] [data-node]:not([data-differs=equal]) > .compare-badge").count()
    assert badges == page.locator("[data-side] .compare-badge").count()
    assert badges == sum(state != "equal" for side in marked for state in side.values())


@pytest.mark.parametrize(("a", "b", "blocks"), PAIRS)
def test_the_rows_are_those_of_the_data(
    open_pair: Callable, facts_of: Callable, a: str, b: str, blocks: tuple[int, int]
) -> None:
    page = open_pair(a, b, blocks)
    one, other = facts_of(a), facts_of(b)
    kinds = kind_of(one, blocks[0]), kind_of(other, blocks[1])
    hosts = dict.fromkeys([entry["name"] for entry in one["hosts"] + other["hosts"]])
    expected = {}
    for host in hosts:
        left, right = ({value["name"]: seen(value, kind) for entry in facts["hosts"] if entry["name"] == host
                        for value in entry["values"]} for facts, kind in zip((one, other), kinds, strict=True))
        for name in left.keys() | right.keys():
            expected[host, name] = "a" if name not in right else "b" if name not in left else (
                "equal" if left[name] == right[name] else "differs")
    shown = page.evaluate("""[...document.querySelectorAll("[data-compare-values] tr[data-row]")].map(
        row => [row.dataset.row, row.dataset.state.replace(/changed|resized/, "differs")])""")
    assert sorted(map(tuple, shown)) == sorted((name, state) for (_, name), state in expected.items())
    elsewhere = sum(left[3] != right[3] for host, left, right in shared(one, other, kinds))
    total = len(list(shared(one, other, kinds)))
    sentence = page.locator("[data-compare-summary] li").first
    expect(sentence).to_contain_text(f"Of {total} values that both have, {elsewhere or 'none'} ")
    for side, name in (("a", a), ("b", b)):
        alone = sum(state == side for state in expected.values())
        said = page.locator("[data-compare-summary] li").filter(has_text=f"only in {name.split('/')[-1]}:")
        expect(said).to_have_count(int(alone > 0))
        if alone:
            expect(said).to_contain_text(str(alone))


def shared(one: dict[str, Any], other: dict[str, Any], kinds: tuple[int, int]) -> Any:
    for entry in one["hosts"]:
        right = {value["name"]: value for host in other["hosts"] if host["name"] == entry["name"]
                 for value in host["values"]}
        for value in entry["values"]:
            if value["name"] in right:
                yield entry["name"], seen(value, kinds[0]), seen(right[value["name"]], kinds[1])


def flat(config: dict[str, Any], prefix: str = "") -> dict[str, str]:
    rows: dict[str, str] = {}
    for key, value in config.items():
        if isinstance(value, dict) and value:
            rows |= flat(value, f"{prefix}{key}.")
        else:
            # JSON knows one kind of number.
            rows[prefix + key] = json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)
    return rows


@pytest.mark.parametrize(("a", "b"), [(LLAMA, LAGUNA), (LAGUNA, LAGUNA_M)])
def test_config_keys_that_are_equal_are_folded_behind_their_number(
    open_pair: Callable, facts_of: Callable, a: str, b: str
) -> None:
    page = open_pair(a, b)
    one, other = flat(facts_of(a)["config"]), flat(facts_of(b)["config"])
    equal = {key for key in one.keys() & other.keys() if one[key] == other[key]}
    differing = (one.keys() | other.keys()) - equal
    config = page.locator("[data-compare-config]")
    rows = config.locator("tr[data-row]:visible")
    assert set(rows.evaluate_all("rows => rows.map(row => row.dataset.row)")) == differing
    fold = config.get_by_role("button", name=f"{len(equal)} equal key")
    fold.focus()
    page.keyboard.press("Enter")
    expect(fold).to_have_attribute("aria-expanded", "true")
    assert set(rows.evaluate_all("rows => rows.map(row => row.dataset.row)")) == differing | equal
    fold.click()
    expect(rows).to_have_count(len(differing))


def test_quirks_lead_to_their_explanations(open_pair: Callable, facts_of: Callable) -> None:
    page = open_pair(LAGUNA, LAGUNA_M)
    one, other = set(facts_of(LAGUNA)["quirks"]), set(facts_of(LAGUNA_M)["quirks"])
    slugs = "lists => lists.map(list => [...list.querySelectorAll('a')].map(a => a.href.split('#quirk-')[1]))"
    lists = page.locator("[data-compare-quirks] .compare-quirks").evaluate_all(slugs)
    assert [set(entries) for entries in lists] == [one - other, other - one, one & other]
    page.locator("[data-compare-quirks] a").first.click()
    expect(page.locator(":target")).to_be_in_viewport()


def test_the_address_says_the_pair_and_goes_back_and_forward(open_pair: Callable) -> None:
    page = open_pair(LLAMA, LAGUNA)
    second = page.locator("[data-side-heading]").nth(1)
    assert page.evaluate("location.hash") == f"#a={LLAMA}&b={LAGUNA}&block=0,0"
    page.get_by_role("slider", name="Block of Laguna-XS-2.1").press("ArrowRight")
    expect(page).to_have_url(re.compile("&block=0,1$"))
    choose(page, "second", "mamba2-130m")
    expect(second).to_have_text("mamba2-130m-hf")
    assert page.evaluate("location.hash") == f"#a={LLAMA}&b={MAMBA}&block=0,0"
    page.go_back()
    expect(second).to_have_text("Laguna-XS-2.1")
    expect(page.get_by_role("slider", name="Block of Laguna-XS-2.1")).to_have_value("1")
    page.go_forward()
    expect(second).to_have_text("mamba2-130m-hf")


@pytest.mark.parametrize(("hash", "asked"), [
    ("", set()), (f"#b={LLAMA}", {LLAMA}), (f"#a={LAGUNA}", {LAGUNA}), ("#elsewhere", set()),
])
def test_what_the_address_leaves_open_is_spelled_out(open_page: Callable, hash: str, asked: set[str]) -> None:
    page = open_page(f"compare/{hash}").page
    expect(page.locator("[data-compare-result]")).to_be_visible()
    ids = [page.get_by_role("combobox", name=f"the {which} checkpoint").input_value() for which in ("first", "second")]
    assert ids[0] != ids[1]
    assert asked <= set(ids)
    assert page.evaluate("location.hash").startswith(f"#a={ids[0]}&b={ids[1]}&block=")


def test_the_swap_exchanges_checkpoints_and_blocks(open_pair: Callable) -> None:
    page = open_pair(LLAMA, LAGUNA, (2, 3))
    before = states(page)
    page.get_by_role("button", name="Swap the two").click()
    expect(page.locator("[data-side-heading]").first).to_have_text("Laguna-XS-2.1")
    assert page.evaluate("location.hash") == f"#a={LAGUNA}&b={LLAMA}&block=3,2"
    assert states(page) == before[::-1]


def choose(page: Page, which: str, typed: str) -> None:
    box = page.get_by_role("combobox", name=f"the {which} checkpoint")
    box.focus()
    page.keyboard.type(typed)
    page.keyboard.press("Enter")


def test_a_checkpoint_is_picked_by_keyboard_alone(open_pair: Callable) -> None:
    page = open_pair(LLAMA, LAGUNA)
    box = page.get_by_role("combobox", name="the first checkpoint")
    box.focus()
    page.keyboard.press("ArrowDown")
    listbox = page.get_by_role("listbox", name="Checkpoints by family").first
    expect(listbox).to_be_visible()
    expect(listbox.get_by_role("option", selected=True)).to_contain_text(LLAMA)
    page.keyboard.press("Escape")
    expect(listbox).to_be_hidden()
    expect(box).to_have_value(LLAMA)
    page.keyboard.type("laguna xs")
    options = listbox.get_by_role("option").evaluate_all("options => options.map(option => option.dataset.id)")
    assert options
    assert all("laguna-xs" in option.lower() for option in options)
    page.keyboard.press("ArrowDown")
    active = box.get_attribute("aria-activedescendant")
    assert active == listbox.get_by_role("option").nth(1).get_attribute("id")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(box).to_have_value(options[0])
    expect(listbox).to_be_hidden()
    page.keyboard.type("no such thing")
    expect(listbox).to_contain_text("No checkpoint fits")
    page.keyboard.press("Tab")
    expect(box).to_have_value(options[0])


def test_a_part_pointed_at_is_shown_on_both_sides_with_both_facts(open_pair: Callable, facts_of: Callable) -> None:
    page = open_pair(LLAMA, LAGUNA, (0, 3))
    parts = page.locator(f'[data-node="{SCORES}"]')
    parts.first.hover()
    for part in parts.all():
        assert "is-shown" in part.get_attribute("class")
    facts = page.locator("[data-part-facts]")
    for name, block in ((LLAMA, 0), (LAGUNA, 3)):
        expect(facts).to_contain_text(f"model.layers[{block}].self_attn.attention_scores")
        one = facts_of(name)
        layout, _, shape, place, _ = value_of(one, kind_of(one, block), SCORES)
        for text in (layout, str(shape), place):
            expect(facts).to_contain_text(text)
    page.locator('[data-node="value.mlp.router_logits"]').hover()
    expect(facts).to_contain_text("not in block 0 of Llama-3.1-8B")
    expect(facts).to_be_in_viewport()


def test_parts_are_reached_and_pinned_by_keyboard(open_pair: Callable) -> None:
    page = open_pair(LLAMA, LAGUNA, (0, 3))
    page.get_by_role("slider", name="Block of Llama-3.1-8B").focus()
    page.keyboard.press("Tab")
    reached = [page.evaluate("document.activeElement.dataset.node")]
    facts = page.locator("[data-part-facts]")
    expect(facts).to_contain_text("layer_input")
    page.keyboard.press("Enter")
    expect(facts).to_contain_text("pinned")
    inside = page.locator("[data-side]").first.locator("[data-node]")
    for _ in range(inside.count() - 1):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.dataset.node"))
    assert reached == inside.evaluate_all("parts => parts.map(part => part.dataset.node)")
    expect(facts).to_contain_text("layer_input")
    page.keyboard.press("Escape")
    expect(facts).not_to_contain_text("pinned")
    names = page.locator("[data-side]").nth(1).get_by_role("button", name="only in Laguna-XS-2.1")
    assert names.count() == sum(state == "only" for state in states(page)[1].values())


def test_an_unknown_checkpoint_is_named_and_the_nearest_offered(open_page: Callable) -> None:
    opened = open_page(f"compare/#a=poolside/Laguna-XS-2&b={LLAMA}")
    message = opened.page.locator("[data-compare-message]")
    expect(message).to_contain_text("There is no checkpoint poolside/Laguna-XS-2 here")
    expect(opened.page.locator("[data-compare-result]")).to_be_hidden()
    message.get_by_role("link", name=LAGUNA).click()
    expect(opened.page.locator("[data-side-heading]").first).to_have_text("Laguna-XS-2.1")
    assert opened.errors == []


def test_a_family_that_failed_says_why_and_its_config_is_compared(open_pair: Callable, site: Path) -> None:
    page = open_pair(FAILED, LAGUNA)
    reason = json.loads((site / "data" / "blt.json").read_text(encoding="utf-8"))["failure"]["reason"]
    expect(page.locator("[data-side]").first).to_contain_text(f"No diagram: {reason}")
    assert page.locator("[data-side]").nth(1).locator("[data-node]").count()
    expect(page.locator("[data-compare-values]")).to_contain_text("Nothing about blt could be verified")
    assert page.locator("[data-compare-config] tr[data-row]").count()


def test_a_fetch_that_fails_says_what_to_do_and_can_be_tried_again(open_pair: Callable) -> None:
    page = open_pair(LLAMA, MAMBA)
    expect(page.locator("[data-compare-result]")).to_be_visible()
    page.route("**/data/laguna.json", lambda route: route.abort())
    choose(page, "second", LAGUNA)
    expect(page.locator("[data-compare-message]")).to_contain_text("data/laguna.json could not be read")
    expect(page.locator("[data-compare-result]")).to_be_hidden()
    page.unroute("**/data/laguna.json")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("[data-side-heading]").nth(1)).to_have_text("Laguna-XS-2.1")


def test_without_script_every_checkpoint_is_listed_with_its_page(open_page: Callable, site: Path) -> None:
    page = open_page("compare/", script=False).page
    expect(page.get_by_text("needs JavaScript")).to_be_visible()
    expect(page.locator("[data-compare-pickers]")).to_be_hidden()
    index = json.loads((site / "data" / "index.json").read_text(encoding="utf-8"))["families"]
    listed = set(page.locator("[data-choice]").evaluate_all("links => links.map(link => link.dataset.choice)"))
    assert {LLAMA, LAGUNA, MAMBA} <= listed <= {name for family in index for name in family["checkpoints"]}
    page.locator(f'[data-choice="{LAGUNA}"]').click()
    expect(page.locator("h1")).to_contain_text("Laguna")


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_nothing_scrolls_sideways(open_pair: Callable, scheme: str, phone: bool) -> None:
    page = open_pair(LLAMA, LAGUNA, (0, 3), scheme=scheme, phone=phone)
    page.locator("[data-compare-sizes] .compare-fold").click()
    page.get_by_role("combobox", name="the first checkpoint").click()
    page.keyboard.type("laguna")
    expect(page.get_by_role("option").first).to_contain_text("Laguna")
    widths = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth, window.innerWidth]")
    assert widths[0] <= widths[1] <= widths[2]
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()


def test_on_a_phone_a_tap_shows_both_and_the_second_is_one_tap_away(open_pair: Callable) -> None:
    page = open_pair(LLAMA, LAGUNA, (0, 3), phone=True)
    page.locator(f'[data-node="{SCORES}"]').first.tap()
    facts = page.locator("[data-part-facts]")
    expect(facts).to_be_in_viewport()
    expect(facts).to_contain_text("model.layers[3].self_attn.attention_scores")
    page.get_by_role("button", name="Laguna-XS-2.1", exact=True).tap()
    expect(page.locator("[data-side]").nth(1)).to_be_in_viewport(ratio=0.1)
    expect(page.get_by_role("button", name="Laguna-XS-2.1", exact=True)).to_have_attribute("aria-pressed", "true")


def test_a_familys_page_leads_to_the_comparison_of_the_checkpoint_chosen_there(open_family: Callable) -> None:
    opened = open_family("laguna", hash=f"ckpt={LAGUNA_M}")
    opened.page.get_by_role("link", name="Compare it with another checkpoint").click()
    expect(opened.page.locator("[data-side-heading]").first).to_have_text("Laguna-M.1")
    assert opened.errors == []


def call(page: Page, name: str, *arguments: Any) -> Any:
    """What a function of the comparison's module returns, called in the page."""
    return page.evaluate("""async ([name, given]) => {
        const module = await import(new URL("../assets/js/comparison.js", location.href));
        return module[name](...given);
    }""", [name, arguments])


def test_blocks_are_aligned_by_mixer_then_attention_then_mlp(open_page: Callable, facts_of: Callable) -> None:
    page = open_page("compare/").page
    llama, laguna, gemma, mamba = (facts_of(name) for name in (LLAMA, LAGUNA, GEMMA, MAMBA))
    assert call(page, "align", llama, laguna) == [0, 0]
    full = next(kind["blocks"][0] for kind in gemma["kinds"] if kind["attention_type"] == "full_attention")
    assert call(page, "align", gemma, laguna) == [full, 0]
    assert call(page, "align", mamba, laguna) == [0, 0]
    hybrid = {"kinds": [mamba["kinds"][0] | {"blocks": [0, 1]}, llama["kinds"][0] | {"blocks": [2]}]}
    assert call(page, "align", hybrid, llama) == [2, 0]
    assert call(page, "align", hybrid, mamba) == [0, 0]
    assert call(page, "align", {"kinds": []}, llama) == [0, 0]


def test_the_modules_small_functions(open_page: Callable) -> None:
    page = open_page("compare/").page
    assert call(page, "flat", {"a": 1, "b": {"c": [1], "d": {}}}) == {"a": 1, "b.c": [1], "b.d": {}}
    rows = call(page, "records", {"x": 1, "y": [1, 2], "z": None}, {"y": [1, 2], "z": 0, "w": 2})
    assert {row["name"]: row["state"] for row in rows} == {"x": "a", "y": "equal", "z": "changed", "w": "b"}
    assert [call(page, "ratio", *pair) for pair in ((2, 3), (4096, 2048), (7, 7), (0, 4), ("a", "b"))] == [
        "×1.5", "×0.5", "", "", ""]
    assert call(page, "nearest", "Laguna-XS", ["maker/Tiny", "poolside/Laguna-XS-2.1", "poolside/Laguna-M.1"]) == [
        "poolside/Laguna-XS-2.1", "poolside/Laguna-M.1"]
    assert call(page, "nearest", "zzz", ["maker/Tiny"]) == []


def test_costs_are_rows_where_the_facts_have_them(open_page: Callable) -> None:
    page = open_page("compare/").page
    cost = {"amount": 16, "formula": "2 × 8"}
    facts = {"parameters": {"total": 9, "active": 8}, "sizes": {"num_layers": 2}, "kinds": [],
             "costs": {"weight_bytes": {"bfloat16": cost}, "cache": {"per_token": cost}, "flops_per_token": cost,
                       "flops_per_token_of_context": cost}}
    rows = call(page, "modelFacts", facts)
    assert rows == {"parameters": 9, "active per token": 8, "num_layers": 2, "bytes of weights, bfloat16": 16,
                    "bytes of cache per token": 16, "operations per token": 16, "operations per token attended to": 16}
    assert "operations per token" not in call(page, "modelFacts", facts | {"costs": None})
