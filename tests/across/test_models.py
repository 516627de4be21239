"""The table of models: what its rows say of known checkpoints, and its page, CSV and JSON."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path

import pytest

from encyclopedia.across import architecture
from encyclopedia.across.models import COLUMNS, Table, answers, model_table, number, written
from encyclopedia.across.models_page import models_view, render_models, table_csv, table_json
from encyclopedia.build.cache import FactsCache, facts_key
from encyclopedia.build.project import find_project
from encyclopedia.capture.checkpoint import capture_checkpoint
from encyclopedia.checkpoints import recorded
from encyclopedia.facts import CheckpointFacts, Cost, Costs, ParameterCounts, RoleParameters
from encyclopedia.page.costs import byte_size
from tests.across.test_checks import Unsearched
from tests.page.small_facts import checkpoint, family, kind
from tests.page.test_derived import failed

TEMPLATES = Path(__file__).parents[2] / "templates"

#: Cells by checkpoint, as their configs, papers and code have them; keys that a checkpoint has not are empty.
KNOWN: dict[str, tuple[str, dict]] = {
    "meta-llama/Llama-3.1-8B": ("llama", {
        "parameters_total": 8_030_261_248, "parameters_active": 8_030_261_248, "num_layers": 32, "hidden_size": 4096,
        "num_heads": 32, "num_kv_heads": 8, "head_dim": 128, "qk_head_dim": 128, "intermediate_size": 14336,
        "vocab_size": 128256, "context": 131072, "mixer": "softmax", "attention": "GQA", "positions": "rope",
        "window": None, "norm": "RMSNorm", "norm_placement": "pre", "activation": "silu", "num_experts": None,
        "top_k": None, "shared_experts": None, "head": "own", "config": "public checkpoint", "verified": "all"}),
    "mistralai/Mixtral-8x7B-v0.1": ("mixtral", {
        "parameters_total": 46_702_792_704, "parameters_active": 12_879_925_248, "num_layers": 32,
        "intermediate_size": None, "context": 32768, "attention": "GQA", "positions": "rope", "window": None,
        "norm": "RMSNorm", "activation": "silu", "num_experts": 8, "top_k": 2, "expert_width": 14336,
        "shared_experts": 0}),
    "deepseek-ai/DeepSeek-V3": ("deepseek_v3", {
        "parameters_total": 671_026_404_352, "num_layers": 61, "hidden_size": 7168, "num_heads": 128,
        "num_kv_heads": 128, "head_dim": 128, "qk_head_dim": 192, "intermediate_size": 18432, "context": 163840,
        "attention": "latent", "positions": "rope", "norm": "RMSNorm", "norm_placement": "pre", "num_experts": 256,
        "top_k": 8, "expert_width": 2048, "shared_experts": 1, "kinds": 2}),
    "AntonV/mamba2-130m-hf": ("mamba2", {
        "num_layers": 24, "hidden_size": 768, "num_heads": None, "head_dim": None, "intermediate_size": None,
        "context": None, "mixer": "recurrent", "attention": None, "positions": "none", "softmax_blocks": 0,
        "recurrence": ["state space", "short convolution"], "state_dim": 128, "norm": "RMSNorm",
        "norm_placement": "pre", "activation": "silu"}),
    "openai-community/gpt2": ("gpt2", {
        "parameters_total": 124_439_808, "num_layers": 12, "num_heads": 12, "num_kv_heads": 12, "head_dim": 64,
        "intermediate_size": 3072, "vocab_size": 50257, "context": 1024, "attention": "MHA", "norm": "LayerNorm",
        "norm_placement": "pre", "activation": "gelu_new", "head": "tied"}),
    "google/gemma-2-9b": ("gemma2", {
        "num_layers": 42, "hidden_size": 3584, "num_heads": 16, "num_kv_heads": 8, "head_dim": 256,
        "attention": "GQA", "positions": "rope", "window": 4096, "windowed_blocks": 21, "softmax_blocks": 42,
        "norm": "RMSNorm", "norm_placement": "sandwich", "activation": "gelu_pytorch_tanh", "head": "tied"}),
    "poolside/Laguna-XS-2.1": ("laguna", {
        "num_heads": [48, 64], "num_kv_heads": 8, "attention": "GQA", "window": 512, "num_experts": 256,
        "shared_experts": 1, "kinds": 3}),
}


def facts_of(identifier: str) -> CheckpointFacts:
    """As a build has them: from the cache, or captured."""
    record, model_type = recorded(identifier), KNOWN[identifier][0]
    cached = FactsCache(find_project(Path(__file__).parent).cache, CheckpointFacts).get(facts_key(model_type, record))
    return cached or capture_checkpoint(record)


def rows_of(table: Table) -> list[dict]:
    return json.loads(table_json(table))["rows"]


@pytest.mark.parametrize("identifier", KNOWN)
def test_a_known_checkpoint_has_its_numbers(identifier: str) -> None:
    model_type, cells = KNOWN[identifier]
    [row] = rows_of(model_table([family(model_type=model_type, checkpoints=[facts_of(identifier)])]))
    assert row["checkpoint"] == identifier
    assert row["model_type"] == model_type
    assert {key: row[key] for key in cells} == cells


def test_learned_positions_are_told_from_fixed_ones_by_the_weights_in_front_of_the_blocks() -> None:
    gpt2 = facts_of("openai-community/gpt2")

    def with_outside(total: int) -> CheckpointFacts:
        part = RoleParameters(role="embedding", total=total, active=total)
        return gpt2.model_copy(update={"parameters": ParameterCounts(total=1, active=1, outside=[part])})

    assert architecture.positions(with_outside((50257 + 1024) * 768)) == ["learned"]
    assert architecture.positions(with_outside(50257 * 768)) == ["fixed"]


@pytest.mark.parametrize(("extra", "sort"), [(0, "alibi"), (16 + 16 + 16 + 16, "alibi"), (300, "learned bias")])
def test_a_bias_that_an_attention_has_no_weights_for_is_alibi(extra: int, sort: str) -> None:
    part = RoleParameters(role="attention", total=4 * 16 * 16 + extra, active=1)
    plain = kind([0], "dense", num_heads=2, num_kv_heads=2, head_dim=8, qk_head_dim=8)
    facts = checkpoint(quirks=["position-bias", "no-rotary"], sizes={"hidden_size": 16, "vocab_size": 10},
                       kinds=[plain.model_copy(update={"parameters": [part]})])
    assert architecture.positions(facts) == [sort]


def test_heads_are_sorted_by_how_they_share_keys() -> None:
    def sorts(*sizes: tuple[int, int], quirks: tuple[str, ...] = ()) -> list[str]:
        return architecture.attention_sorts(checkpoint(quirks=list(quirks), kinds=[
            kind([place], "dense", num_heads=heads, num_kv_heads=shared)
            for place, (heads, shared) in enumerate(sizes)]))

    assert sorts((8, 8)) == ["MHA"]
    assert sorts((8, 2)) == ["GQA"]
    assert sorts((8, 1)) == ["MQA"]
    assert sorts((8, 8), quirks=("latent-attention",)) == ["latent"]
    assert sorts((8, 2), (8, 8), (16, 4)) == ["GQA", "MHA"]


def test_norms_stand_where_sublayers_and_quirks_say() -> None:
    def placed(*norms: tuple[str | None, str | None], quirks: tuple[str, ...] = ()) -> list[str]:
        one = kind([0], "dense")
        sublayers = [one.sublayers[0].model_copy(update={"norm": norm, "post_norm": post}) for norm, post in norms]
        return architecture.norm_placements(checkpoint(
            quirks=list(quirks), kinds=[one.model_copy(update={"sublayers": sublayers})]))

    assert placed(("a", None), (None, None)) == ["pre"]
    assert placed((None, "a"), ("b", "c")) == ["post", "sandwich"]
    assert placed(("a", None), quirks=("sandwich-norms",)) == ["sandwich"]
    assert placed(("a", None), quirks=("normalised-stream",)) == ["pre", "stream"]


@pytest.mark.parametrize(("lines", "config", "name"), [
    (["(act_fn): SiLUActivation()"], {}, "silu"),
    (["(act): NewGELUActivation()"], {"afn": "gelu"}, "gelu_new"),
    (["(act): SiLUActivation()", "(act_fn): ReLUSquaredActivation()"], {"mlp_hidden_act": "relu2"}, "relu2"),
    (["(act): GELU(approximate='none')"], {}, "gelu"),
    (["(gelu_impl): OwnGelu()"], {}, "OwnGelu"),
    ([], {}, None),
])
def test_the_activation_is_the_models_then_the_configs(lines: list[str], config: dict, name: str | None) -> None:
    assert architecture.activation(checkpoint(printout=lines, config=config)) == name


def test_only_what_is_shown_has_a_row() -> None:
    table = model_table([failed(model_type="broken"), family()])
    assert [row["checkpoint"] for row in rows_of(table)] == ["maker/Tiny-1", "maker/Tiny-2"]


def test_costs_have_columns_where_a_checkpoint_has_them() -> None:
    cost = Cost(amount=16_060_522_496, formula="2 * 8030261248")
    costs = Costs(weight_bytes={"bfloat16": cost}, cache=None, flops_per_token=cost, flops_per_token_of_context=cost)
    with_costs = model_table([family(checkpoints=[checkpoint(costs=costs)])])
    keys = [column.key for column in with_costs.columns]
    assert {"weight_bytes", "flops"} <= set(keys)
    assert "cache_bytes" not in keys
    assert not {"weight_bytes", "flops"} & {column.key for column in model_table([family()]).columns}
    column = with_costs.columns[keys.index("weight_bytes")]
    assert written(column, with_costs.rows[0].cells[keys.index("weight_bytes")]) == "16.1 GB"
    assert column.heading == "weights [bytes]"
    assert written(with_costs.columns[keys.index("flops")], 131_072) == "131 kFLOP"
    assert written(column, 131_072) == byte_size(131_072)


@pytest.mark.parametrize(("value", "text"), [
    (999, "999"), (1000, "1 K"), (124_439_808, "124 M"), (8_030_261_248, "8.03 B"), (1_572_997_179_491, "1.57 T"),
    (999_999, "1000 K")])
def test_short_numbers_keep_three_digits(value: int, text: str) -> None:
    column = next(column for column in COLUMNS if column.key == "parameters_total")
    assert number(column, value) == text


def test_the_page_the_csv_and_the_json_have_the_same_cells() -> None:
    table = model_table([family(checkpoints=[checkpoint("maker/Tiny, 1", quirks=["layer-norm", "hybrid"]),
                                             checkpoint("maker/Tiny-2")])])
    published = json.loads(table_json(table))
    header, *lines = list(csv.reader(io.StringIO(table_csv(table))))
    assert header == [column["heading"] for column in published["columns"]]
    assert len(lines) == len(published["rows"]) == 2
    for line, row in zip(lines, published["rows"], strict=True):
        assert line == ["; ".join(str(value) for value in answers(row[column["key"]]))
                        for column in published["columns"]]
    assert lines[0][header.index("quirks")] == "LayerNorm; Hybrid"
    assert published["rows"][0]["num_heads"] == [2, 3]
    page = render_models(models_view(table), TEMPLATES)
    assert '<a href="../families/tiny/#ckpt=maker/Tiny%2C%201&amp;block=0"><span>maker/</span>Tiny, 1</a>' in page
    assert '<td class="n">2 / 3</td>' in page


def test_search_leaves_the_table_out() -> None:
    found = Unsearched(render_models(models_view(model_table([family()])), TEMPLATES))
    assert found.left_out
    assert found.nested == []


def test_a_page_of_the_sites_size_is_small() -> None:
    many = [checkpoint(f"maker/Tiny-{place}", parameters=ParameterCounts(total=place * 7919, active=place * 6841),
                       sizes={"num_layers": place % 91, "hidden_size": 64 * (place % 83), "vocab_size": 1009 * place},
                       quirks=["layer-norm", "hybrid", "no-rotary"]) for place in range(252)]
    page = render_models(models_view(model_table([family(checkpoints=many)])), TEMPLATES)
    assert len(gzip.compress(page.encode())) < 60_000


def test_every_column_says_what_it_is() -> None:
    assert len({column.key for column in COLUMNS}) == len(COLUMNS)
    for column in COLUMNS:
        assert column.about
        assert (column.unit is None) == (column.sort == "text")
