"""Capture: every fact comes from the model, and a claim that fails its check stops it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from encyclopedia.capture.checkpoint import capture_checkpoint
from encyclopedia.capture.family import gather_family, installed_versions
from encyclopedia.capture.shapes import BATCH, SEQ
from encyclopedia.checkpoints import BrokenConfig, families_recorded, read_family, recorded
from encyclopedia.checks.claims import BrokenClaim
from encyclopedia.checks.identity import TOLERANCE, BrokenIdentity, identity_of, measure_identity
from encyclopedia.checks.layout import Seen, check_layout
from encyclopedia.facts import SCHEMA, FamilyFacts, NotesFacts
from encyclopedia.families import family
from encyclopedia.location import Location
from encyclopedia.model.kinds import find_kinds
from encyclopedia.model.readings import Reading
from encyclopedia.model.structure import blocks_of, find_stack, find_sublayers
from encyclopedia.quirks import QUIRKS
from encyclopedia.vocabulary import HOSTS, values_of

RECORDS = {record.id: record for name in families_recorded() for record in read_family(name)[0]}
SHOWN = [name for name, record in RECORDS.items() if record.reason is None]
LISTED = [name for name, record in RECORDS.items() if record.reason is not None]
DOGE, LAGUNA = "SmallDoge/Doge-260M", "poolside/Laguna-XS-2.1"

EVERY_DOGE = ["gated-stream", "query-key-norms", "dynamic-mask", "tied-embeddings"]
EVERY_LAGUNA = ["query-key-norms", "output-gate", "mixture-of-experts", "dense-first-blocks", "grouped-query-attention"]
BY_BLOCK = ["per-block-sizes", "sliding-window", "partial-rotary"]
CARRIED = {
    DOGE: {*EVERY_DOGE, "grouped-query-attention"},
    "SmallDoge/Doge-20M": {*EVERY_DOGE, "multi-query-attention"},
    "SmallDoge/Doge-40M": {*EVERY_DOGE, "multi-query-attention"},
    "SmallDoge/Doge-40M-MoE": {*EVERY_DOGE, "multi-query-attention", "mixture-of-experts"},
    "SmallDoge/Doge-180M-MoE": {*EVERY_DOGE, "grouped-query-attention", "mixture-of-experts"},
    LAGUNA: {*EVERY_LAGUNA, *BY_BLOCK},
    "poolside/Laguna-XS.2": {*EVERY_LAGUNA, *BY_BLOCK},
    "poolside/Laguna-S-2.1": {*EVERY_LAGUNA, *BY_BLOCK},
    "poolside/Laguna-M.1": set(EVERY_LAGUNA),
}
KINDS = {
    DOGE: [("full · dense MLP", 24)],
    LAGUNA: [("full · dense MLP", 1), ("sliding 512 · mixture", 30), ("full · mixture", 9)],
    "poolside/Laguna-XS.2": [("full · dense MLP", 1), ("sliding 512 · mixture", 30), ("full · mixture", 9)],
    "poolside/Laguna-S-2.1": [("full · dense MLP", 1), ("sliding 512 · mixture", 36), ("full · mixture", 11)],
    "poolside/Laguna-M.1": [("full · dense MLP", 3), ("full · mixture", 67)],
}


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_every_value_was_read(captured: Any, checkpoint: str) -> None:
    facts = captured(checkpoint)
    values = [value for host in facts.hosts for value in host.values]
    assert all(value.checked for value in values)
    assert facts.checks.values.checked == facts.checks.values.total == len(values)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_every_kind_has_shapes_of_its_own_sizes(captured: Any, checkpoint: str) -> None:
    facts = captured(checkpoint)
    for host in facts.hosts:
        for value in host.values:
            assert len(value.shapes) == len(facts.kinds)
            assert any(shape is not None for shape in value.shapes), value.name
            for kind, shape in zip(facts.kinds, value.shapes, strict=True):
                if shape is None or value.layout is None:
                    continue
                sizes = {**facts.sizes, **kind.sizes, "batch": BATCH, "seq": SEQ, "query": SEQ, "key": SEQ}
                if host.name == "model":
                    sizes |= facts.sizes
                assert shape == [sizes[axis] for axis in value.dims], (value.name, kind.label)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_facts_say_what_the_vocabulary_says(captured: Any, checkpoint: str) -> None:
    for host in captured(checkpoint).hosts:
        table = values_of(host.name)
        assert host.host == HOSTS[host.name]
        for value in host.values:
            known = table[value.name]
            assert (value.role, value.part, value.description, value.writable) == (
                known.role, known.part, known.description, known.writable)
            assert str(Location.parse(value.location)) == value.location
            whole = (value.layout, tuple(value.dims))
            assert whole == ((known.layout.name, known.layout.dims) if known.layout else (None, ()))
            if known.layout is not None and known.layout.dtype == "int":
                assert value.dtype.startswith("int")


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_kinds_share_out_the_blocks(captured: Any, checkpoint: str) -> None:
    facts = captured(checkpoint)
    blocks = [block for kind in facts.kinds for block in kind.blocks]
    assert sorted(blocks) == list(range(facts.sizes["num_layers"]))
    assert [kind.blocks[0] for kind in facts.kinds] == sorted(kind.blocks[0] for kind in facts.kinds)
    if checkpoint in KINDS:
        assert [(kind.label, len(kind.blocks)) for kind in facts.kinds] == KINDS[checkpoint]


def test_the_kinds_of_laguna(captured: Any) -> None:
    dense, sliding, full = captured(LAGUNA).kinds
    assert (dense.blocks, sliding.blocks[:4], full.blocks) == ([0], [1, 2, 3, 5], list(range(4, 40, 4)))
    assert (dense.sizes["num_heads"], sliding.sizes["num_heads"], full.sizes["num_heads"]) == (48, 64, 48)
    assert dense.sizes["intermediate_size"] == 8192
    assert "intermediate_size" not in sliding.sizes
    for kind in (sliding, full):
        assert {name: kind.sizes[name] for name in (
            "num_experts", "top_k", "expert_intermediate_size", "shared_intermediate_size")} == {
            "num_experts": 256, "top_k": 8, "expert_intermediate_size": 512, "shared_intermediate_size": 512}
    assert sliding.sizes["sliding_window"] == 512
    assert "sliding_window" not in full.sizes


@pytest.mark.parametrize("checkpoint", CARRIED)
def test_the_quirks_of_a_checkpoint(captured: Any, checkpoint: str) -> None:
    found = captured(checkpoint).quirks
    assert set(found) == CARRIED[checkpoint]
    assert found == [slug for slug in QUIRKS if slug in found]


@pytest.mark.parametrize("checkpoint", [name for name in SHOWN if RECORDS[name].published_parameters is not None])
def test_parameters_are_the_published_ones(captured: Any, checkpoint: str) -> None:
    found, published = captured(checkpoint).parameters, RECORDS[checkpoint].published_parameters
    assert found.total == pytest.approx(published.total, rel=0.005)
    if published.active is not None:
        assert found.active == pytest.approx(published.active, rel=0.06)
    assert 0 < found.active <= found.total


def test_exact_parameter_counts(captured: Any) -> None:
    assert captured(LAGUNA).parameters.total == 33442617088
    assert captured("poolside/Laguna-S-2.1").parameters.total == 117561977600


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_the_identity_was_measured_on_every_kind(captured: Any, checkpoint: str) -> None:
    facts = captured(checkpoint)
    assert all(kind.identity_error <= TOLERANCE for kind in facts.kinds)
    assert facts.checks.identity.max_error == max(kind.identity_error for kind in facts.kinds)
    assert facts.checks.identity.blocks >= len(facts.kinds)


def test_the_identities(captured: Any) -> None:
    assert {kind.identity for kind in captured(LAGUNA).kinds} == {
        "layers[i].input + self_attn.attention_output + mlp.mlp_output == layer_output"}
    assert {kind.identity for kind in captured(DOGE).kinds} == {
        "post_attention_residual * (input_residual * layers[i].input + self_attn.attention_output) + mlp.mlp_output"
        " == layer_output"}


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_support_by_load(captured: Any, checkpoint: str) -> None:
    facts = captured(checkpoint)
    interior = {"attention_queries", "attention_keys", "attention_values", "attention_scores",
                "attention_probabilities", "attention_head_outputs"}
    attention = facts.support["default"]["model.layers[i].self_attn"]
    assert set(attention) == interior
    assert all('attn_implementation="eager"' in reason for reason in attention.values())
    assert "model.layers[i].self_attn" not in facts.support["eager"]
    marked = {value.name for host in facts.hosts for value in host.values if value.condition is not None}
    lacking = {name for rows in facts.support["default"].values() for name in rows}
    served = {value.name for host in facts.hosts for value in host.values}
    assert marked == lacking & served


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_sublayers_show_each_interior_value_once(captured: Any, checkpoint: str) -> None:
    facts = captured(checkpoint)
    for kind in facts.kinds:
        assert [sublayer.host for sublayer in kind.sublayers] == ["self_attn", "mlp"]
        for sublayer in kind.sublayers:
            assert sublayer.contribution not in sublayer.values
            assert len(set(sublayer.values)) == len(sublayer.values)
            shown = {*sublayer.values, sublayer.contribution}
            assert {name for edge in sublayer.edges for name in (edge.source, edge.target)} <= shown
            assert {name for part in sublayer.parts for name in part.values} <= shown
            assert (sublayer.sort == "mixture") == bool(sublayer.parts) or "CDMoE" in sublayer.class_name
            assert kind.modules[sublayer.host] == sublayer.class_name


def test_interior_values_stand_in_forward_order(captured: Any) -> None:
    for checkpoint in (DOGE, LAGUNA):
        for kind in captured(checkpoint).kinds:
            assert kind.sublayers[0].values == [
                "attention_queries", "attention_keys", "attention_values", "attention_scores",
                "attention_probabilities", "attention_head_outputs", "attention_premix"]
    mixture = captured(LAGUNA).kinds[1].sublayers[1]
    assert [part.name for part in mixture.parts] == ["router", "experts", "shared"]
    assert [part.module for part in mixture.parts] == ["gate", "experts", "shared_experts"]
    assert mixture.values.index("router_logits") < mixture.values.index("expert_outputs")


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_each_config_entry_has_a_source_or_is_a_default(captured: Any, checkpoint: str) -> None:
    facts, record = captured(checkpoint), RECORDS[checkpoint]
    assert set(facts.config_known_from) <= set(record.config)
    for key, value in record.config.items():
        if key in facts.config and isinstance(value, int | str | bool):
            assert facts.config[key] == value, key


@pytest.mark.parametrize("checkpoint", LISTED)
def test_a_checkpoint_that_is_not_shown_keeps_its_reason(checkpoint: str) -> None:
    facts = capture_checkpoint(RECORDS[checkpoint])
    assert not facts.available
    assert facts.reason == RECORDS[checkpoint].reason
    assert facts.kinds == []
    assert facts.hosts == []
    assert facts.checks is None


@pytest.mark.parametrize("checkpoint", [DOGE, LAGUNA])
def test_capturing_twice_gives_the_same_facts(captured: Any, checkpoint: str) -> None:
    assert capture_checkpoint(RECORDS[checkpoint]) == captured(checkpoint)


@pytest.mark.parametrize(("name", "reference"), [("doge", DOGE), ("laguna", LAGUNA)])
def test_a_family_comes_back_from_its_json(captured: Any, name: str, reference: str) -> None:
    notes = NotesFacts(snippets=[])
    facts = gather_family(name, [captured(reference), capture_checkpoint(RECORDS[LISTED[0]])], reference, notes)
    text = facts.model_dump_json(by_alias=True)
    assert FamilyFacts.model_validate_json(text) == facts
    assert json.loads(text)["schema"] == SCHEMA
    assert facts.quirks == [slug for slug in QUIRKS if slug in captured(reference).quirks]
    assert facts.versions == installed_versions()
    assert facts.docstring


def test_a_plain_sum_does_not_pass_for_doge(doge: Any, prompt: torch.Tensor) -> None:
    plain = "layers[i].input + self_attn.attention_output + mlp.mlp_output == layer_output"
    for layer in range(doge.num_layers):
        with pytest.raises(BrokenIdentity, match="off by"):
            measure_identity(doge, prompt, plain, layer)


@pytest.mark.parametrize("claim", [
    "layers[i].input + self_attn.attention_output == layer_output",
    "layers[i].input + mlp.mlp_output == layer_output",
    "1.001 * layers[i].input + self_attn.attention_output + mlp.mlp_output == layer_output",
    "layers[i].input * float('nan') == layer_output",
    "layers[i].input + linear_attn.attention_output == layer_output",
    "layers[i].input + self_attn.attention_premix == layer_output",
    "no_such_gate * layers[i].input == layer_output",
    "__import__('os') == layer_output",
])
def test_a_wrong_identity_is_refused(laguna: Any, prompt: torch.Tensor, claim: str) -> None:
    with pytest.raises(BrokenIdentity):
        measure_identity(laguna, prompt, claim, 1)


def test_an_identity_is_derived_where_none_is_declared(laguna: Any) -> None:
    derived = identity_of(family("laguna"), find_sublayers(laguna.layers[0]._module))
    assert measure_identity(laguna, torch.arange(8, 20).view(1, 12), derived, 0) <= TOLERANCE


@pytest.mark.parametrize(("seen", "says"), [
    (Seen((1, 8, 48), "float32"), "expected the axes Queries"),
    (Seen((1, 12, 8, 16), "int64"), "expected float numbers, found int64"),
    (Seen((1, 12, 8, 16), None), "expected float numbers, found None"),
    (Seen((1, 16, 8, 16), "float32"), "the axis num_heads to be 12 long, found 16"),
    (Seen((1, 12, 16, 8), "float32"), "the axis seq to be 8 long, found 16"),
    (Seen((2, 12, 8, 16), "float32"), "the axis batch to be 1 long, found 2"),
])
def test_a_tensor_that_is_not_its_layout_is_refused(seen: Seen, says: str) -> None:
    with pytest.raises(BrokenClaim, match=says) as error:
        check_layout(Reading(3, "self_attn", "attention_queries", seen), {"num_heads": 12, "qk_head_dim": 16},
                     BATCH, SEQ)
    assert "self_attn.attention_queries on block 3" in str(error.value)


def test_an_axis_that_nothing_measures_is_refused() -> None:
    reading = Reading(0, "self_attn", "attention_queries", Seen((1, 12, 8, 16), "bfloat16"))
    with pytest.raises(BrokenClaim, match="the axis num_heads to be None long"):
        check_layout(reading, {"qk_head_dim": 16}, BATCH, SEQ)


def test_a_layout_that_fits_passes() -> None:
    sizes = {"num_heads": 12, "qk_head_dim": 16}
    check_layout(Reading(0, "self_attn", "attention_queries", Seen((1, 12, 8, 16), "bfloat16")), sizes, BATCH, SEQ)
    check_layout(Reading(None, "model", "input_size", Seen((1, 8), None)), {}, BATCH, SEQ)


def test_blocks_that_differ_in_one_width_are_two_kinds(plain_twin: Any) -> None:
    model = plain_twin(DOGE)
    blocks = list(blocks_of(model, find_stack(model, model.config)))
    assert len(find_kinds(blocks, model.config)) == 1
    blocks[1].mlp.up_proj = torch.nn.Linear(model.config.hidden_size, 100, bias=False)
    assert [kind.blocks for kind in find_kinds(blocks, model.config)] == [(0,), (1,)]


def test_a_config_that_does_not_build_is_named() -> None:
    broken = recorded(LAGUNA).model_copy(deep=True)
    broken.config["layer_types"] = broken.config["layer_types"][:3]
    with pytest.raises(BrokenConfig, match=r"Laguna-XS-2\.1"):
        capture_checkpoint(broken)
