"""The panel of costs: its numbers, at the length it opens with, and how they are written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from encyclopedia.facts import CacheCosts, CacheEntry, CheckpointFacts, Cost, Costs, ParameterCounts
from encyclopedia.page.context import context_of
from encyclopedia.page.costs import (
    LENGTH,
    CostsView,
    Group,
    byte_size,
    cache_bytes,
    costs_view,
    flop_size,
)
from encyclopedia.page.render import render_family
from tests.page.small_facts import checkpoint, family
from tests.page.test_depth import laguna_like

TEMPLATES = Path(__file__).parents[2] / "templates"


def entry(kind: int, blocks: int, name: str, each: int, fixed: int = 0, window: int | None = None) -> CacheEntry:
    return CacheEntry(kind=kind, blocks=blocks, name=name, bytes_per_token=each, bytes_fixed=fixed, window=window,
                      dtype="bfloat16")


FULL = [entry(0, 2, "keys", 100), entry(0, 2, "values", 100), entry(1, 2, "recurrent_states", 0, 5000)]
WINDOWED = [entry(0, 2, "keys", 100, window=8), entry(0, 2, "values", 100, window=8), FULL[2]]


def costs(cache: bool = True, saving: str | None = "A window needs its last tokens only.") -> Costs:
    return Costs(
        weight_bytes={name: Cost(amount=int(10_000 * each), formula=f"10,000 * {each} bytes")
                      for name, each in (("float32", 4), ("bfloat16", 2), ("float16", 2), ("int8", 1), ("int4", 0.5))},
        cache=CacheCosts(kept=FULL, needed=FULL if saving is None else WINDOWED, saving=saving,
                         per_token=Cost(amount=400, formula="2 blocks * (100 keys + 100 values)")) if cache else None,
        cache_reason=None if cache else "a forward returns none",
        flops_per_token=Cost(amount=10_400, formula="2 * 5,200"),
        flops_per_token_of_context=Cost(amount=30, formula="2 * 15"))


def costly(found: Costs | None = None, **changes: object) -> CheckpointFacts:
    return laguna_like(costs=found or costs(), **changes)


def view_of(facts: CheckpointFacts) -> CostsView:
    view = costs_view(facts)
    assert view is not None
    return view


def group(view: CostsView, title: str) -> Group:
    return next(group for group in (*view.held, *view.at_length) if group.title == title)


@pytest.mark.parametrize(("count", "text"), [
    (512, "512 B"), (131_072, "131 kB"), (1_342_177_280, "1.3 GB"), (66_885_234_176, "66.9 GB"), (0, "0 B"),
    (1_342_052_808_704, "1.3 TB")])
def test_bytes_are_written_for_reading(count: int, text: str) -> None:
    assert byte_size(count) == text


def test_operations_are_written_for_reading() -> None:
    assert flop_size(6_034_271_744) == "6.0 GFLOP"
    assert flop_size(999) == "999 FLOP"


def test_a_window_keeps_no_more_than_its_tokens() -> None:
    assert cache_bytes(FULL, 50) == 2 * 100 * 50 + 2 * 100 * 50 + 2 * 5000
    assert cache_bytes(WINDOWED, 50) == 2 * 100 * 8 + 2 * 100 * 8 + 2 * 5000
    assert cache_bytes(WINDOWED, 3) == cache_bytes(FULL, 3)


def test_parameters_are_the_sum_that_is_written_out() -> None:
    parameters = group(view_of(costly()), "Parameters")
    assert [(line.number, line.exact) for line in parameters.heads] == [("10.0 K", "10,000"), ("5.2 K", "5,200")]
    everything, active = (formula.text for formula in parameters.formulas)
    assert everything == "2 blocks * 3,736 + 2 blocks * 920 + embedding 644 + final norm 20 + head 24"
    assert value_of(everything) == 10_000
    assert active == "2 blocks * 1,336 + 2 blocks * 920 + embedding 20 + final norm 20 + head 24"


def value_of(formula: str) -> int:
    terms = [[int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", term)] for term in formula.split("+")]
    return sum(term[0] * term[1] if len(term) > 1 else term[0] for term in terms)


def test_the_checkpoints_own_dtype_heads_its_weights() -> None:
    weights = group(view_of(costly(config={"dtype": "float32"})), "Weights")
    assert [line.label for line in (*weights.heads, *weights.lines)] == ["float32", "bfloat16, float16", "int8", "int4"]
    weights = group(view_of(costly(config={})), "Weights")
    assert (weights.heads[0].label, weights.heads[0].exact) == ("bfloat16, float16", "20,000 bytes")
    assert [formula.text for formula in weights.formulas] == [
        "10,000 * 4 bytes", "10,000 * 2 bytes", "10,000 * 1 bytes", "10,000 * 0.5 bytes"]


def test_the_cache_stands_beside_what_is_needed_where_that_is_less() -> None:
    cache = group(view_of(costly()), "Cache")
    assert [(line.slot, line.exact) for line in cache.heads] == [
        ("kept", f"{cache_bytes(FULL, LENGTH):,} bytes"), ("needed", f"{cache_bytes(WINDOWED, LENGTH):,} bytes")]
    assert cache.note == "A window needs its last tokens only."
    assert [line.exact for line in cache.lines] == ["400 bytes"]
    assert [(entry.name, entry.label, entry.blocks, entry.per_token) for entry in cache.entries][2] == (
        "recurrent states", "dense", 2, "0")


def test_nothing_is_said_of_a_need_that_is_the_same() -> None:
    view = view_of(costly(costs(saving=None)))
    assert [line.slot for line in group(view, "Cache").heads] == ["kept"]
    assert "needed" not in view.facts


def test_a_forward_without_a_cache_says_so() -> None:
    view = view_of(costly(costs(cache=False)))
    assert [group.title for group in view.at_length] == ["Forward of one token"]
    assert view.no_cache == "No figure for the cache: a forward returns none."
    assert view.facts == {"flops": [10_400, 30], "window": 8}


def test_a_forward_grows_with_the_context_and_a_window_bounds_it() -> None:
    forward = group(view_of(costly()), "Forward of one token")
    assert forward.heads[0].exact == f"{10_400 + 30 * LENGTH:,}"
    assert forward.heads[0].label == "at most"
    assert forward.note == "Past 8 tokens it is less: blocks with a window attend to no more."
    windowless = checkpoint(costs=costs(), parameters=ParameterCounts(total=10, active=10))
    forward = group(view_of(windowless), "Forward of one token")
    assert (forward.heads[0].label, forward.note) == ("", None)


@pytest.mark.parametrize(("config", "limit", "length", "presets"), [
    ({}, None, LENGTH, (1024, 8192, 32768, 131072)),
    ({"n_positions": 1024}, 1024, 1024, (1024,)),
    ({"max_position_embeddings": 40_960}, 40_960, LENGTH, (1024, 8192, 32768, 40_960)),
    ({"max_position_embeddings": True, "max_seq_len": None}, None, LENGTH, (1024, 8192, 32768, 131072))])
def test_the_panel_opens_within_what_the_checkpoint_is_made_for(
    config: dict, limit: int | None, length: int, presets: tuple[int, ...],
) -> None:
    facts = costly(config=config)
    view = view_of(facts)
    assert (context_of(facts), view.length, view.presets) == (limit, length, presets)


def test_costs_that_were_not_computed_are_not_shown() -> None:
    assert costs_view(checkpoint()) is None
    page = render_family(family(), "", TEMPLATES)
    assert page.count("No costs were computed: the model does not run without weights.") == 2
    assert "data-costs" not in page


def test_the_page_has_the_figures_without_a_script() -> None:
    page = render_family(family(checkpoints=[costly()]), "", TEMPLATES)
    assert f'<b data-cost="kept">{byte_size(cache_bytes(FULL, LENGTH))}</b>' in page
    assert "2 blocks * (100 keys + 100 values)" in page
    assert f'value="{LENGTH}" disabled' in page
