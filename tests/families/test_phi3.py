"""What is particular to Phi-3: fused projections, partial and length-dependent rotation, one window for all blocks."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from encyclopedia.capture.parameters import count_parameters
from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.families import Family, family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.structure.derive import structure_of

SHOWN = [record.id for record in read_family("phi3")[0]]
MINI, FOUR_MINI, FOUR = SHOWN


def test_the_notes_run(run_notes):
    for snippet in run_notes("phi3"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


def test_nothing_is_declared():
    declared = family("phi3")
    assert declared == Family("phi3", declared.title, declared.subtitle, declared.hue)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_parameters_agree_with_the_published_count(checkpoint):
    record = recorded(checkpoint)
    full = build_without_weights(record)
    counted = count_parameters(full, structure_of(full), family("phi3"))
    assert counted.total == counted.active == record.published_parameters.total


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_queries_keys_and_values_are_in_this_order_in_the_fused_projection(small, prompt, checkpoint):
    model = small(checkpoint)
    attn = model.layers[0].self_attn
    fused = []
    handle = attn._module.qkv_proj.register_forward_hook(lambda _, args, output: fused.append(output))
    try:
        model._module(prompt(model))
    finally:
        handle.remove()
    with model.trace(prompt(model)):
        queries = attn.attention_queries.save()
        keys = attn.attention_keys.save()
        values = attn.attention_values.save()
    widths = [heads * attn.head_dim for heads in (attn.num_heads, attn.num_kv_heads, attn.num_kv_heads)]
    raw = [part.unflatten(-1, (-1, attn.head_dim)).transpose(1, 2) for part in fused[0].split(widths, dim=-1)]
    torch.testing.assert_close(values, raw[2])
    scaling = model._module.model.rotary_emb.attention_scaling
    rotated = 2 * len(model._module.model.rotary_emb.inv_freq)
    for found, made in ((queries, raw[0]), (keys, raw[1])):
        # The first position is not turned, only scaled.
        torch.testing.assert_close(found[:, :, 0, :rotated], made[:, :, 0, :rotated] * scaling)
        torch.testing.assert_close(found[..., rotated:], made[..., rotated:])


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_the_first_half_of_the_fused_mlp_is_the_gate(small, prompt, checkpoint):
    model = small(checkpoint)
    mlp = model.layers[1].mlp
    with model.trace(prompt(model)):
        entering = mlp.input.save()
        activation = mlp.mlp_activation.save()
        neurons = mlp.mlp_neurons.save()
        output = mlp.mlp_output.save()
    native = mlp._module
    gate, up = native.gate_up_proj.weight.chunk(2)
    torch.testing.assert_close(activation, F.silu(entering @ gate.T))
    torch.testing.assert_close(neurons, activation * (entering @ up.T))
    torch.testing.assert_close(output, native.down_proj(neurons))


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_how_much_of_a_head_is_rotated(checkpoint):
    full = build_without_weights(recorded(checkpoint))
    attn = full.model.layers[0].self_attn
    rotated = 2 * full.model.rotary_emb.inv_freq.shape[0]
    assert rotated <= attn.head_dim
    assert (rotated < attn.head_dim) == (checkpoint == FOUR_MINI)


def test_one_position_past_the_trained_length_changes_the_rotation_of_all(small):
    rotary = small(FOUR_MINI)._module.model.rotary_emb
    trained = rotary.config.rope_parameters["original_max_position_embeddings"]
    place = torch.zeros(1, 1, 1)
    within, _ = rotary(place, position_ids=torch.arange(trained)[None])
    beyond, _ = rotary(place, position_ids=torch.arange(trained + 1)[None])
    again, _ = rotary(place, position_ids=torch.arange(trained)[None])
    assert not torch.allclose(within[0, 1], beyond[0, 1], atol=1e-3)
    assert torch.equal(within, again)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_the_window_counts_the_query_itself_and_holds_on_every_block(small, prompt, checkpoint):
    model = small(checkpoint)
    ids = prompt(model)
    seq, window = ids.shape[1], model.config.sliding_window
    age = torch.arange(seq)[:, None] - torch.arange(seq)
    for block in model.layers:
        with model.trace(ids):
            pattern = block.self_attn.attention_probabilities.save()
        assert torch.equal(pattern > 0, ((age >= 0) & (age < (window or seq))).expand_as(pattern))
    assert (window is None) == (checkpoint == FOUR)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_head_is_the_embedding_on_phi_4_mini(small, checkpoint):
    model = small(checkpoint)
    same = model.lm_head._module.weight is model.embed_tokens._module.weight
    assert same == (checkpoint == FOUR_MINI)
