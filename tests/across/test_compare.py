"""The page that compares two checkpoints: what there is to choose from, and what it says where no script runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from encyclopedia.across.compare import PLAIN, compare_view, render_compare
from encyclopedia.page.render import render_family
from encyclopedia.quirks import QUIRKS
from tests.across.test_checks import Unsearched
from tests.page.small_facts import checkpoint, family
from tests.page.test_derived import failed

TEMPLATES = Path(__file__).parents[2] / "templates"


def test_checkpoints_that_are_shown_can_be_chosen_by_family() -> None:
    view = compare_view([family(title="Zeta"), family(model_type="other", title="alpha")])
    assert [choices.title for choices in view.families] == ["alpha", "Zeta"]
    assert [option.id for option in view.families[0].options] == ["maker/Tiny-1", "maker/Tiny-2"]
    assert view.count == 4


def test_a_family_that_failed_can_be_chosen_for_its_config_and_only_with_one() -> None:
    with_config, without = (
        failed(reference="maker/X", checkpoints=[checkpoint("maker/X", available=False, kinds=[], config=config)])
        for config in ({"hidden_size": 4}, {}))
    [choices] = compare_view([with_config]).families
    assert [option.id for option in choices.options] == ["maker/X"]
    assert choices.failed is not None
    assert choices.failed.startswith("structure: ")
    assert compare_view([without]).families == ()


@pytest.mark.parametrize(("others", "opening"), [
    ([("plain", ["hybrid"]), ("odd", ["hybrid", "layer-norm"])], ("maker/odd", "maker/plain")),
    ([("odd", ["hybrid", "layer-norm"]), (PLAIN, [])], ("maker/llama", "maker/odd")),
    ([(PLAIN, [])], ("maker/llama",)),
    ([], ()),
])
def test_the_page_opens_on_the_plain_block_and_what_departs_from_it_most(
    others: list[tuple[str, list[str]]], opening: tuple[str, ...]
) -> None:
    families = [family(model_type=name, reference=f"maker/{name}",
                       checkpoints=[checkpoint(f"maker/{name}", quirks=quirks)]) for name, quirks in others]
    assert compare_view(families).opening == opening


def test_the_page_lists_every_choice_with_its_page_and_says_that_it_needs_a_script() -> None:
    page = render_compare([family(), failed(model_type="broken", reference="maker/B", checkpoints=[
        checkpoint("maker/B", available=False, kinds=[], config={"a": 1})])], TEMPLATES)
    assert 'href="../families/tiny/#ckpt=maker/Tiny-2" data-choice="maker/Tiny-2"' in page
    assert 'href="../families/broken/" data-choice="maker/B" data-note="not verified"' in page
    assert "maker/Tiny-3" not in page
    assert "needs JavaScript" in page
    front_matter = page.split("---")[1]
    assert 'scripts: ["compare.js"]' in front_matter
    assert '"assets/css/compare.css"]' in front_matter


def test_the_page_carries_every_quirks_sentence() -> None:
    page = render_compare([family()], TEMPLATES)
    start = page.index(">", page.index("data-compare-quirk-sentences")) + 1
    carried = json.loads(page[start:page.index("</script>", start)])
    assert {slug: entry["sentence"] for slug, entry in carried.items()} == {
        slug: quirk.sentence for slug, quirk in QUIRKS.items()}


def test_search_leaves_out_the_list_and_the_results() -> None:
    found = Unsearched(render_compare([family()], TEMPLATES))
    assert found.left_out == 4
    assert found.nested == []


def test_each_checkpoints_summary_leads_to_its_comparison() -> None:
    page = render_family(family(), "", TEMPLATES)
    assert page.count('href="../../compare/#a=maker/Tiny-1"') == 1
    assert page.count('href="../../compare/#a=maker/Tiny-2"') == 1
