"""The front page: cards, filters, what scripts find families by, and the same in the published index."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from encyclopedia.across.facets import facets_of
from encyclopedia.across.index import MOST_CHIPS, Card, index_data, index_view, over, render_index
from encyclopedia.facts import FamilyFacts, ParameterCounts
from encyclopedia.page.tally import tally
from encyclopedia.page.wording import amount
from encyclopedia.quirks import QUIRKS
from tests.across.test_checks import of_kinds
from tests.page.small_facts import checkpoint, family
from tests.page.test_course import BOTH, checkpoint_of
from tests.page.test_derived import bare, failed
from tests.page.test_diagram import KINDS, attention, dense, kind, mixture, recurrent

TEMPLATES = Path(__file__).parents[2] / "templates"


def card_of(facts: FamilyFacts) -> Card:
    [group] = index_view([facts]).groups
    [card] = group.cards
    return card


def sized(identifier: str, total: int, blocks: int, width: int):
    made = checkpoint(identifier)
    return made.model_copy(update={
        "parameters": ParameterCounts(total=total, active=total), "sizes": {"hidden_size": width},
        "kinds": [made.kinds[0].model_copy(update={"blocks": list(range(blocks))})]})


@pytest.mark.parametrize(("numbers", "text", "said"), [
    ([13_100_000, 268_000_000], amount, "13.1–268 M"),
    ([340_000_000, 6_900_000_000], amount, "340 M – 6.9 B"),
    ([7_010_000_000, 7_020_000_000], amount, "7.0 B"),
    ([24, 8, 12], str, "8–24"),
    ([4096], "{:,}".format, "4,096"),
    ([1024, 2048], "{:,}".format, "1,024–2,048"),
])
def test_sizes_are_said_as_ranges(numbers: list[int], text, said: str) -> None:
    assert over(numbers, text) == said


def test_a_card_says_what_the_shown_checkpoints_are() -> None:
    facts = family(quirks=list(QUIRKS)[:MOST_CHIPS + 2], checkpoints=[
        sized("maker/Tiny-20M", 20_000_000, 4, 64), sized("maker/Tiny-300M", 300_000_000, 12, 256),
        checkpoint("maker/Tiny-9T", available=False, reason="no config")])
    card = card_of(facts)
    assert [(size.caption, size.text) for size in card.sizes] == [
        ("parameters", "20.0–300 M"), ("blocks", "4–12"), ("hidden size", "64–256")]
    assert card.facts == ("2 checkpoints", f"{tally(facts).claims} claims checked", "notes")
    assert (len(card.chips), len(card.more), card.step) == (MOST_CHIPS, 2, None)


def test_a_class_default_is_no_checkpoint() -> None:
    facts = bare(checkpoint("tiny").model_copy(update={"is_default": True}))
    assert card_of(facts).facts[0] == "the class’s defaults"
    assert facets_of(facts).checkpoints == ()
    assert facets_of(facts).values


def test_a_derived_sentence_leaves_the_quirks_to_the_chips() -> None:
    facts = bare(checkpoint_of(KINDS["three"], *BOTH)).model_copy(update={"quirks": ["output-gate"]})
    assert card_of(facts).subtitle.endswith(".")
    assert "output gate" not in card_of(facts).subtitle.lower()
    assert card_of(facts).chips == ("Output gate",)


@pytest.mark.parametrize(("facts", "mixer", "mlps"), [
    (of_kinds(kind(attention(), dense())), "softmax", ("dense",)),
    (of_kinds(kind(attention(), mixture()), kind(attention(), dense())), "softmax", ("mixture",)),
    (of_kinds(kind(recurrent()), kind(attention())), "both", ("dense",)),
    (of_kinds(KINDS["three"]), "both", ("dense",)),
    (of_kinds(kind(recurrent()), kind(dense())), "recurrent", ("dense",)),
    (of_kinds(kind(dense())), "none", ("dense",)),
    (of_kinds(kind()), "unknown", ("dense",)),
    (failed(), None, ()),
])
def test_facets_tell_mixers_and_mixtures(facts: FamilyFacts, mixer: str | None, mlps: tuple[str, ...]) -> None:
    assert (facets_of(facts).mixer, facets_of(facts).mlps) == (mixer, mlps)


def test_filters_offer_what_families_have_and_count_them() -> None:
    view = index_view([family(), family(model_type="other", quirks=["output-gate", "hybrid"]),
                       failed(model_type="broken")])
    filters = {entry.key: {choice.value: choice.count for choice in entry.choices} for entry in view.filters}
    assert filters["quirk"] == {"hybrid": 1, "output-gate": 2}
    assert filters["value"]["router_logits"] == 2
    assert filters["group"] == {"parallel": 2, "failed": 1}
    assert filters["mixer"] == {"softmax": 2}


def test_scripts_get_every_name_that_a_family_is_found_by() -> None:
    data = index_view([family(), failed(model_type="broken")]).data
    tiny, broken = data["families"]
    assert [data["values"][position] for position in tiny["values"]] == [
        "self_attn.attention_scores", "self_attn.attention_output", "mlp.router_logits", "mlp.mlp_output"]
    assert tiny["checkpoints"] == ("maker/Tiny-1", "maker/Tiny-2", "maker/Tiny-3")
    assert tiny["architectures"] == ("TinyForCausalLM",)
    assert tiny["parameters"] == (1234, 1234)
    assert data["quirks"]["output-gate"] == "Output gate"
    assert (broken["type"], broken["group"], broken["values"]) == ("broken", "failed", [])
    json.dumps(data)


def test_the_page_has_every_family_without_a_script_and_marks_what_failed() -> None:
    page = render_index([family(), failed(model_type="broken")], TEMPLATES)
    assert page.index('id="parallel"') < page.index('id="failed"')
    assert page.count('class="index-failed"') == 1
    assert "failed at the structure step: TinyForCausalLM: &lt;blocks&gt; were not found" in page
    assert "1 of 2 families verified" in page
    for address in ("families/tiny/", "families/broken/", "models/", "values/", "compare/", "machines/"):
        assert f'href="{address}"' in page
    assert 'scripts: ["index.js"]' in page
    assert page.count("data-find data-search-exclude hidden") == 1


def test_the_index_data_says_the_state_the_counts_and_the_facets() -> None:
    entry = index_data(bare(checkpoint_of(KINDS["three"], *BOTH)))
    assert (entry["state"], entry["annotated"], entry["mixers"]) == ("verified", False, ["both"])
    assert entry["title"] == "Tiny"
    assert entry["counts"]["identities"] == 1
    entry = index_data(family())
    assert entry["parameters"] == {"total": [1234, 1234], "active": [1000, 1000]}
    assert (entry["group"], entry["mlps"]) == ("parallel", ["dense"])
    assert "mlp.router_logits" in entry["values"]
    entry = index_data(failed())
    assert (entry["state"], entry["parameters"], entry["values"]) == ("failed", None, [])
