"""Capture: every fact comes from the model, and a claim that fails its check stops it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import torch

from encyclopedia.capture.checkpoint import capture_checkpoint, capture_or_fail
from encyclopedia.capture.family import gather_family, installed_versions
from encyclopedia.capture.shapes import BATCH, SEQ
from encyclopedia.checkpoints import BrokenConfig, families_recorded, read_family, recorded
from encyclopedia.checks.claims import BrokenClaim
from encyclopedia.checks.identity import TOLERANCE, BrokenIdentity, identity_of, measure_identity
from encyclopedia.checks.layout import Seen, check_layout
from encyclopedia.facts import SCHEMA, FamilyFacts, NotesFacts
from encyclopedia.families import family
from encyclopedia.location import Location
from encyclopedia.model.readings import Reading
from encyclopedia.quirks import QUIRKS
from encyclopedia.structure.kinds import group_blocks
from encyclopedia.structure.stack import find_stack
from encyclopedia.vocabulary import HOSTS, values_of

RECORDS = {record.id: record for name in families_recorded() for record in read_family(name)[0]}
LISTED = [name for name, record in RECORDS.items() if record.reason is not None]
DOGE, LAGUNA = "SmallDoge/Doge-260M", "poolside/Laguna-XS-2.1"


def reference(name: str) -> str:
    """The id of the checkpoint that the family's page opens on."""
    return next(record.id for record in read_family(name)[0] if record.reference)


GEMMA2, OLMO2, COHERE, BLOOM, GRANITE, MAMBA2, GRIFFIN = map(
    reference, ("gemma2", "olmo2", "cohere", "bloom", "granite", "mamba2", "recurrent_gemma"))
#: All of two families, and one checkpoint of every sort of block.
SHOWN = [*(name for name, record in RECORDS.items()
           if record.reason is None and record.config["model_type"] in ("doge", "laguna")),
         GEMMA2, OLMO2, COHERE, BLOOM, GRANITE, MAMBA2, GRIFFIN]

EVERY_DOGE = ["gated-stream", "query-key-norms", "dynamic-mask", "sparse-attention", "tied-embeddings"]
EVERY_LAGUNA = ["query-key-norms", "output-gate", "mixture-of-experts", "dense-first-blocks", "shared-expert",
                "sigmoid-routing", "selection-bias", "grouped-query-attention"]
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
    GEMMA2: {"sandwich-norms", "plus-one-gain", "sliding-window", "attention-softcap", "grouped-query-attention",
             "embedding-scale", "logit-softcap", "tied-embeddings"},
    OLMO2: {"post-norms", "query-key-norms"},
    COHERE: {"parallel-sublayers", "layer-norm", "interleaved-rotary", "logit-scale", "tied-embeddings"},
    BLOOM: {"layer-norm", "no-rotary", "position-bias", "ungated-mlp", "biased-projections", "fused-projections",
            "embedding-norm", "tied-embeddings"},
    GRANITE: {"scaled-contributions", "attention-scale", "grouped-query-attention", "embedding-scale", "logit-scale",
              "tied-embeddings"},
    MAMBA2: {"single-sublayer", "inner-norms", "attention-free", "state-space", "short-convolution", "tied-embeddings"},
    GRIFFIN: {"plus-one-gain", "sliding-window", "partial-rotary", "multi-query-attention", "hybrid",
              "short-convolution", "biased-projections", "embedding-scale", "logit-softcap", "tied-embeddings"},
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
                for axis, length in zip(value.dims, shape, strict=True):
                    assert length == sizes.get(axis, length), (value.name, kind.label, axis)
                assert host.name == "linear_attn" or set(value.dims) <= set(sizes), value.name


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
            expected = (known.layout.name, known.layout.dims) if known.layout else (None, ())
            # A recurrent mixer has the layouts of its own recurrence.
            assert whole == expected or host.name == "linear_attn", value.name
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
    assert all(kind.identity.endswith(" == layer_output") for kind in facts.kinds)
    assert all(kind.identity_error <= TOLERANCE for kind in facts.kinds)
    assert facts.checks.identity.max_error == max(kind.identity_error for kind in facts.kinds)
    assert facts.checks.identity.blocks >= len(facts.kinds)


PLAIN = "layers[i].input + self_attn.attention_output + mlp.mlp_output == layer_output"
IDENTITIES = {
    LAGUNA: {PLAIN},
    DOGE: {"post_attention_residual * (input_residual * layers[i].input + self_attn.attention_output) + mlp.mlp_output"
           " == layer_output"},
    GEMMA2: {PLAIN},
    OLMO2: {PLAIN},
    COHERE: {PLAIN},
    BLOOM: {PLAIN},
    GRANITE: {"layers[i].input + layers[i].residual_multiplier * self_attn.attention_output"
              " + layers[i].residual_multiplier * mlp.mlp_output == layer_output"},
    MAMBA2: {"layers[i].input + linear_attn.attention_output == layer_output"},
    GRIFFIN: {PLAIN, PLAIN.replace("self_attn", "linear_attn")},
}


@pytest.mark.parametrize("checkpoint", IDENTITIES)
def test_the_identities(captured: Any, checkpoint: str) -> None:
    assert {kind.identity for kind in captured(checkpoint).kinds} == IDENTITIES[checkpoint]


#: Native norm in front of, and behind, each sublayer of the first block, and where its contribution is read.
AROUND = {
    LAGUNA: {"self_attn": ("input_layernorm", None, "output[0]"), "mlp": ("post_attention_layernorm", None, "output")},
    GEMMA2: {"self_attn": ("input_layernorm", "post_attention_layernorm", "../post_attention_layernorm.output"),
             "mlp": ("pre_feedforward_layernorm", "post_feedforward_layernorm",
                     "../post_feedforward_layernorm.output")},
    OLMO2: {"self_attn": (None, "post_attention_layernorm", "../post_attention_layernorm.output"),
            "mlp": (None, "post_feedforward_layernorm", "../post_feedforward_layernorm.output")},
    COHERE: {"self_attn": ("input_layernorm", None, "output[0]"), "mlp": ("input_layernorm", None, "output")},
    MAMBA2: {"linear_attn": ("norm", None, "output")},
}


@pytest.mark.parametrize("checkpoint", AROUND)
def test_norms_and_contributions_stand_where_the_block_has_them(captured: Any, checkpoint: str) -> None:
    facts = captured(checkpoint)
    places = {(host.name, value.name): value.location for host in facts.hosts for value in host.values}
    found = {sublayer.host: (sublayer.norm, sublayer.post_norm, places[sublayer.host, sublayer.contribution])
             for sublayer in facts.kinds[0].sublayers}
    assert found == AROUND[checkpoint]


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_support_by_load(captured: Any, checkpoint: str) -> None:
    facts = captured(checkpoint)
    lacking: dict[str, dict[str, dict[str, str]]] = {
        load: {host: facts.support[load].get(f"model.layers[i].{host}", {}) for host in HOSTS} for load in facts.support
    }
    only_default = {(host, name): reason for host, rows in lacking["default"].items() for name, reason in rows.items()
                    if name not in lacking["eager"][host]}
    assert all(re.search(r'load with \w+="\w+"', reason) for reason in only_default.values())
    assert all(host in ("self_attn", "mlp") for host, _ in only_default)
    if checkpoint in (DOGE, LAGUNA, COHERE, GRANITE):
        assert {name for host, name in only_default if host == "self_attn"} == {
            "attention_queries", "attention_keys", "attention_values", "attention_scores", "attention_probabilities",
            "attention_head_outputs"}
        assert not lacking["eager"]["self_attn"]
    marked = {(host.name, value.name) for host in facts.hosts for value in host.values if value.condition is not None}
    served = {(host.name, value.name) for host in facts.hosts for value in host.values}
    assert marked >= set(only_default) & served


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_sublayers_show_each_interior_value_once(captured: Any, checkpoint: str) -> None:
    facts = captured(checkpoint)
    for kind in facts.kinds:
        assert [sublayer.host for sublayer in kind.sublayers] in (
            ["self_attn", "mlp"], ["linear_attn", "mlp"], ["linear_attn"])
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
    derived = identity_of(family("laguna"), laguna.structure.kind_of(0))
    assert derived is not None
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
        check_layout(queries(seen, 3), {"num_heads": 12, "qk_head_dim": 16}, BATCH, SEQ)
    assert "self_attn.attention_queries on block 3" in str(error.value)


def queries(seen: Seen, layer: int = 0) -> Reading:
    """A reading of queries that had this shape."""
    return Reading(layer, "self_attn", "attention_queries", seen, values_of("self_attn")["attention_queries"].layout)


def test_an_axis_that_nothing_measures_is_refused() -> None:
    with pytest.raises(BrokenClaim, match="the axis num_heads to be None long"):
        check_layout(queries(Seen((1, 12, 8, 16), "bfloat16")), {"qk_head_dim": 16}, BATCH, SEQ)


def test_a_layout_that_fits_passes() -> None:
    sizes = {"num_heads": 12, "qk_head_dim": 16}
    check_layout(queries(Seen((1, 12, 8, 16), "bfloat16")), sizes, BATCH, SEQ)
    check_layout(Reading(None, "model", "input_size", Seen((1, 8), None), None), {}, BATCH, SEQ)


def test_blocks_that_differ_in_one_width_are_two_kinds(plain_twin: Any) -> None:
    model = plain_twin(DOGE)
    stack = find_stack(model)
    assert len(group_blocks(model, stack)) == 1
    model.model.layers[1].mlp.up_proj = torch.nn.Linear(model.config.hidden_size, 100, bias=False)
    assert group_blocks(model, stack) == [(0,), (1,)]


def test_a_config_that_does_not_build_is_named() -> None:
    broken = recorded(LAGUNA).model_copy(deep=True)
    broken.config["layer_types"] = broken.config["layer_types"][:3]
    with pytest.raises(BrokenConfig, match=r"Laguna-XS-2\.1"):
        capture_checkpoint(broken)


def test_a_failure_is_a_fact_where_nobody_answers_for_the_family(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = recorded(GEMMA2).model_copy(deep=True)
    broken.config["hidden_size"] = 0
    monkeypatch.setattr("encyclopedia.capture.checkpoint.has_module", lambda model_type: False)
    facts = capture_or_fail(broken)
    assert not facts.available
    assert facts.failure is not None
    assert facts.failure.step == "config"
    assert GEMMA2 in facts.failure.reason
    assert "hidden_size" in facts.failure.reason
    assert facts.reason == facts.failure.reason
    gathered = gather_family("gemma2", [facts], GEMMA2, NotesFacts(snippets=[]))
    assert gathered.failure == facts.failure


def test_a_failure_is_an_error_where_the_family_has_a_module() -> None:
    broken = recorded(DOGE).model_copy(deep=True)
    broken.config["hidden_size"] = 0
    with pytest.raises(BrokenConfig, match="hidden_size"):
        capture_or_fail(broken)
