"""What is particular to Falcon: three blocks, own attention arithmetic, an overwritten MLP output, ALiBi twice."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import encyclopedia.model.transformer
from encyclopedia.capture.parameters import count_parameters
from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.checks.claims import BrokenClaim
from encyclopedia.checks.run import check_model
from encyclopedia.families import family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.structure.derive import structure_of
from encyclopedia.twin import PROMPTS, prompt_for, twin_of

SHOWN = [record.id for record in read_family("falcon")[0]]
SEVEN, RW, FORTY = SHOWN
PARALLEL = (SEVEN, FORTY)


def test_the_notes_run(run_notes):
    for snippet in run_notes("falcon"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_what_is_declared_depends_on_the_flags(small, checkpoint):
    model = small(checkpoint)
    declared = family("falcon").on(model.config).classes["FalconAttention"]
    assert declared.instead == {}
    assert ("query_layer_0" in declared.locations["attention_queries"]) == (checkpoint == RW)
    assert ("attention_keys" in declared.withdrawn) == (checkpoint == FORTY)


def test_parameters_agree_with_the_published_counts():
    def count(checkpoint: str) -> int:
        full = build_without_weights(recorded(checkpoint))
        return count_parameters(full, structure_of(full), family("falcon")).total

    assert count(RW) == recorded(RW).published_parameters.total
    config = recorded(SEVEN).config
    # The hub counts the matrix that embedding and head share twice.
    assert count(SEVEN) + config["vocab_size"] * config["hidden_size"] == 7_217_189_760


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_the_interior_agrees_with_plain_hooks(small, prompt, checkpoint):
    model = small(checkpoint)
    attn, ids = model.layers[0].self_attn, prompt(model, batch=2)
    native, seen = attn._module, {}
    handles = [
        native.dense.register_forward_pre_hook(lambda _, args: seen.update(mixed=args[0])),
        native.register_forward_hook(lambda _, args, output: seen.update(pattern=output[1])),
        native.query_key_value.register_forward_hook(lambda _, args, output: seen.update(fused=output)),
    ]
    try:
        model._module(ids)
    finally:
        for handle in handles:
            handle.remove()
    with model.trace(ids):
        queries = attn.attention_queries.save()
        scores = attn.attention_scores.save()
        pattern = attn.attention_probabilities.save()
        heads = attn.attention_head_outputs.save()
    assert torch.equal(heads.flatten(2), seen["mixed"])
    assert torch.equal(pattern, seen["pattern"])
    torch.testing.assert_close(scores.softmax(-1), pattern)
    raw = native._split_heads(seen["fused"])[0].transpose(1, 2)
    torch.testing.assert_close(queries[:, :, 0], raw[:, :, 0])
    assert torch.equal(queries, raw) == (checkpoint == RW)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_keys_are_served_once_per_head_or_not_at_all(small, prompt, checkpoint):
    model = small(checkpoint)
    attn, ids = model.layers[0].self_attn, prompt(model)
    if checkpoint == FORTY:
        assert "repeats keys and values" in attn.unavailable("attention_keys")
        return
    with model.trace(ids):
        keys = attn.attention_keys.save()
    assert keys.shape[1] == attn.num_kv_heads == (1 if checkpoint == SEVEN else attn.num_heads)
    with torch.no_grad():
        cache = model._module(ids[:, :-1], use_cache=True).cache
    with model.trace(ids[:, -1:], cache=cache, attention_mask=torch.ones_like(ids)):
        step = attn.attention_keys.save()
    torch.testing.assert_close(step, keys)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_a_reference_to_the_mlps_output_is_overwritten_where_sublayers_are_side_by_side(small, prompt, checkpoint):
    model = small(checkpoint)
    block = model.layers[0]
    with model.trace(prompt(model)):
        attention = block.self_attn.attention_output.save()
        neurons = block.mlp.mlp_neurons.save()
        kept = block.mlp.mlp_output.save()
        copied = block.mlp.mlp_output.clone().save()
    torch.testing.assert_close(copied, block.mlp._module.dense_4h_to_h(neurons))
    torch.testing.assert_close(kept, copied + attention if checkpoint in PARALLEL else copied)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_eager_and_sdpa_agree_except_with_alibi(small, prompt, checkpoint):
    eager, default = small(checkpoint), small(checkpoint, attn_implementation="sdpa")
    ids = prompt(eager)
    same = torch.allclose(eager._module(ids).logits, default._module(ids).logits, atol=1e-4)
    assert same == (checkpoint != RW)
    lacking = {name for name, reason in default.layers[0].self_attn.support().items() if reason is not None}
    assert lacking - {"attention_keys", "attention_values"} == {"attention_scores", "attention_probabilities"}


def test_slopes_are_doubled_in_an_eager_load(small, prompt):
    model = small(RW)
    attn = model.layers[0].self_attn
    with model.trace(prompt(model)):
        queries = attn.attention_queries.save()
        keys = attn.attention_keys.save()
        scores = attn.attention_scores.save()
    rest = (scores - queries @ keys.mT * attn.head_dim**-0.5)[0, :, -1]
    slopes = 2 ** (-8 * torch.arange(1, attn.num_heads + 1) / attn.num_heads) * attn.head_dim**-0.5
    torch.testing.assert_close(rest, 2 * slopes[:, None] * torch.arange(rest.shape[1]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("checkpoint", "value", "location"), [
    (SEVEN, "attention_probabilities", "source.F_softmax_0.input"),
    (SEVEN, "attention_keys", "source.layer_past_update_0.output[1]"),
    (FORTY, "attention_queries", "source.query_layer_0.output"),  # not rotated yet
])
def test_a_wrong_place_fails_its_check(monkeypatch, checkpoint, value, location):
    twin = twin_of(recorded(checkpoint))
    declared = family("falcon").on(twin.config)
    attention = declared.classes["FalconAttention"]
    moved = replace(attention, locations={**attention.locations, value: location})
    wrong = replace(declared, classes={"FalconAttention": moved})
    monkeypatch.setattr(encyclopedia.model.transformer, "family", lambda model_type: wrong)
    with pytest.raises(BrokenClaim, match=value):
        check_model(twin, wrong, prompt_for(twin, batch=PROMPTS), writing=False)
