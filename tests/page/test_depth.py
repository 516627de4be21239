"""The charts over the depth: what is said of each kind of block, and what they are drawn from."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from encyclopedia.facts import CheckpointFacts, KindFacts, ParameterCounts, RoleParameters
from encyclopedia.page.depth import DepthView, depth_view
from encyclopedia.page.render import render_family
from tests.page.small_facts import checkpoint, family, kind

ROOT = Path(__file__).parents[2]


def part(role: str, total: int, active: int | None = None) -> RoleParameters:
    return RoleParameters(role=role, total=total, active=total if active is None else active)


def block(blocks: list[int], label: str, parts: list[RoleParameters], **sizes: int) -> KindFacts:
    return kind(blocks, label, **sizes).model_copy(update={"parameters": parts})


DENSE = [part("attention", 300), part("mlp", 600), part("norm", 20)]
MIXTURE = [part("attention", 400), part("router", 16), part("experts", 3200, 800), part("shared", 100),
           part("norm", 20)]


def laguna_like(**changes: object) -> CheckpointFacts:
    return checkpoint(**{
        "kinds": [block([1, 3], "sliding 8 · mixture", MIXTURE, num_heads=6, head_dim=8, num_experts=4, top_k=1,
                        sliding_window=8),
                  block([0, 2], "dense", DENSE, num_heads=4, head_dim=8, intermediate_size=50)],
        "parameters": ParameterCounts(total=10_000, active=5_200, outside=[
            part("embedding", 644, 20), part("norm", 20), part("head", 24)]),
        **changes})


def uniform() -> CheckpointFacts:
    return checkpoint(hosts=[], kinds=[block([0, 1, 2], "full", DENSE, num_heads=2)],
                      parameters=ParameterCounts(total=3000, active=3000, outside=[part("embedding", 240)]))


def view_of(facts: CheckpointFacts) -> DepthView:
    view = depth_view(facts)
    assert view is not None
    return view


def test_a_row_says_what_a_block_of_the_kind_has() -> None:
    view = view_of(laguna_like())
    assert view.roles == ("attention", "MLP", "shared expert", "router", "routed experts", "norms")
    dense, mixture = view.rows
    assert (dense.label, dense.where, dense.first, dense.total.total) == ("dense", "0, 2", 0, "920")
    assert [cell and cell.total for cell in dense.cells] == ["300", "600", None, None, None, "20"]
    experts = mixture.cells[4]
    assert experts is not None
    assert (experts.total, experts.active) == ("3,200", "800")
    assert (mixture.total.total, mixture.total.active) == ("3,736", "1,336")
    # Two blocks of 3,736 in 10,000.
    assert mixture.share == "74.7%"


def test_what_stands_outside_and_the_sum_end_the_table() -> None:
    rest = view_of(laguna_like()).rest
    assert [(row.label, row.total.total, row.share) for row in rest] == [
        ("embedding", "644", "6.4%"), ("final norm", "20", "0.2%"), ("head", "24", "0.2%"), ("all", "10,000", "100%")]


def test_shares_of_the_blocks_and_of_the_rest_are_all() -> None:
    view = view_of(laguna_like())
    shares = [float(row.share.rstrip("%")) for row in (*view.rows, *view.rest[:-1])]
    assert sum(shares) == pytest.approx(100, abs=0.05 * len(shares))


def test_the_legend_tells_of_block_0_and_of_experts_not_routed_to() -> None:
    view = view_of(laguna_like())
    assert {segment.slug: segment.shown for segment in view.segments} == {
        "attention": "300", "mlp": "600", "shared": "–", "router": "–", "experts": "–", "idle": "–", "norm": "20"}
    assert [segment.label for segment in view.segments][-2] == "experts not routed to"
    assert view.here == "dense: 920 parameters"


def test_parameters_left_idle_beside_experts_are_not_called_experts() -> None:
    other = block([0], "one", [part("attention", 10), part("other", 8, 2)])
    view = view_of(checkpoint(kinds=[other], parameters=ParameterCounts(total=18, active=12)))
    assert [(segment.label, segment.shown) for segment in view.segments] == [
        ("attention", "10"), ("other", "2"), ("not used by a token", "6")]


def test_the_caption_says_what_the_chart_shows() -> None:
    assert view_of(laguna_like()).caption == (
        "A block has from 920 parameters (dense) to 3.7 K (sliding 8 · mixture); a token uses 920 to 1.3 K of them. "
        "The blocks hold 93.1% of all 10.0 K.")
    assert view_of(uniform()).caption == (
        "Each of the 3 blocks has 920 parameters, 65.2% of them in the MLP. The blocks hold 92.0% of all 3.0 K.")


def test_sizes_that_differ_are_rows_and_those_that_vary_together_are_one() -> None:
    view = view_of(laguna_like())
    assert view.names == ("num_heads", "num_experts", "top_k", "sliding_window", "intermediate_size")
    assert [(row.lines, row.role, row.values) for row in view.variations] == [
        (("num_heads",), "attention", (6, 4)),
        (("num_experts 4 · top_k 1",), "mlp", (1, None)),
        (("sliding_window 8",), "attention", (1, None)),
        (("intermediate_size 50",), "mlp", (None, 1))]
    assert view.rows[1].sizes == (6, 4, 1, 8, None)
    assert view.variation_caption == (
        "5 sizes differ between the 2 kinds of blocks; a gap is a block that has no such size.")


def test_a_size_that_every_block_has_leaves_no_gap() -> None:
    kinds = [block([0], "one", DENSE, num_heads=2), block([1], "two", DENSE, num_heads=3)]
    view = view_of(checkpoint(kinds=kinds))
    assert view.variation_caption == "1 size differs between the 2 kinds of blocks."


def test_nothing_varies_where_all_blocks_are_alike() -> None:
    view = view_of(uniform())
    assert (view.variations, view.names, view.variation_caption, view.split) == ((), (), "", False)


def test_a_chart_is_published_as_numbers_by_kind() -> None:
    facts = view_of(laguna_like()).facts
    assert facts["kinds"][0] == {
        "blocks": [1, 3], "label": "sliding 8 · mixture",
        "parameters": {"attention": [400, 400], "router": [16, 16], "experts": [3200, 800], "shared": [100, 100],
                       "norm": [20, 20]}}
    assert facts["variations"][0] == {"label": 1, "role": "attention", "values": [6, 4]}


def test_without_parameters_by_block_there_is_no_chart() -> None:
    assert depth_view(checkpoint()) is None
    assert depth_view(checkpoint(parameters=None)) is None


def test_the_script_draws_with_the_heights_that_are_reserved() -> None:
    script = (ROOT / "site_src" / "assets" / "js" / "depth.js").read_text(encoding="utf-8")
    pixels = {name: int(value) for name, value in re.findall(r"^const ([A-Z_]+) = (\d+);", script, re.MULTILINE)}
    sheet = (ROOT / "site_src" / "assets" / "css" / "depth.css").read_text(encoding="utf-8")
    rules = dict(re.findall(r"^\.(?:page-body \.)?(depth-\S+) \{([^}]*)\}", sheet, re.MULTILINE))
    for name, said in {"depth-row-panel": f"height: {pixels['PANEL']}px",
                       "depth-row-bars": f"padding-bottom: {pixels['BAR_ROW']}px",
                       "depth-row-strip": f"padding-bottom: {pixels['STRIP_ROW']}px",
                       "depth-row": f"line-height: {pixels['LINE']}px",
                       "depth-chart": f"padding-bottom: {pixels['AXIS']}px"}.items():
        assert f"{said};" in rules[name], name
    assert f"100% - {pixels['LEFT'] + pixels['RIGHT']}px" in sheet
    assert f"calc({pixels['LEFT']}px + var(--column) * var(--block)" in sheet


def test_the_page_has_the_tables_of_every_checkpoint() -> None:
    facts = family(checkpoints=[laguna_like(), uniform().model_copy(update={"id": "maker/Tiny-2"}),
                                checkpoint("maker/Tiny-3")])
    page = render_family(facts, "", ROOT / "templates")
    shown, *others = re.split(r'<script type="text/html" data-checkpoint-depth="', page)
    assert [re.match(r'[^"]+', other)[0] for other in others] == ["maker/Tiny-2", "maker/Tiny-3"]
    assert shown.count('class="depth-table"') == 2
    assert '<a href="#ckpt=maker/Tiny-1&amp;block=1" data-depth-go="1">' in shown
    assert others[0].count('class="depth-table"') == 1
    assert "were not counted by block" in others[1]
    [first, second] = re.findall(r"data-depth-facts>(.*?)<", page)
    assert json.loads(first)["kinds"][1]["blocks"] == [0, 2]
    assert json.loads(second)["variations"] == []
