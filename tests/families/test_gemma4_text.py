"""What is particular to Gemma 4, on small random models with every parameter moved off its initial value."""

from __future__ import annotations

import pytest
import torch

from encyclopedia.capture.parameters import count_parameters
from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.families import Family, family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.structure.derive import structure_of

SHOWN = [record.id for record in read_family("gemma4_text")[0] if record.reason is None]
E2B, E4B = "google/gemma-4-E2B", "google/gemma-4-E4B"
MIXTURE, LARGEST = "google/gemma-4-26B-A4B", "google/gemma-4-31B"


def test_the_notes_run(run_notes):
    for snippet in run_notes("gemma4_text"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


def test_nothing_is_declared():
    declared = family("gemma4_text")
    assert declared == Family("gemma4_text", declared.title, declared.subtitle, declared.hue)


def test_idle_experts_are_not_counted_as_active():
    model = build_without_weights(recorded(MIXTURE))
    counted = count_parameters(model, structure_of(model), family("gemma4_text"))
    config = recorded(MIXTURE).config
    idle = config["num_experts"] - config["top_k_experts"]
    each = 3 * config["moe_intermediate_size"] * config["hidden_size"]
    assert counted.total - counted.active == config["num_hidden_layers"] * idle * each
    # Published as 25.2 and 3.8 billion.
    assert (round(counted.total / 1e9, 1), round(counted.active / 1e9, 1)) == (25.2, 3.8)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_every_block_is_a_rescaled_sum(small, checkpoint):
    third = " + post_per_layer_input_norm.output" if checkpoint in (E2B, E4B) else ""
    expected = ("layer_scalar * (layers[i].input + self_attn.attention_output + mlp.mlp_output"
                f"{third}) == layer_output")
    assert {str(kind.sum) for kind in structure_of(small(checkpoint)._module).kinds} == {expected}


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_contributions_are_the_outputs_of_the_closing_norms(small, prompt, checkpoint):
    model = small(checkpoint)
    ids = prompt(model)
    for block in model.layers:
        hooked = {}
        handles = [
            block._module.get_submodule(name).register_forward_hook(
                lambda _module, _arguments, output, name=name, hooked=hooked: hooked.update({name: output}))
            for name in ("post_attention_layernorm", "post_feedforward_layernorm")
        ]
        try:
            model._module(ids)
        finally:
            for handle in handles:
                handle.remove()
        with model.trace(ids):
            attention = block.self_attn.attention_output.save()
            mlp = block.mlp.mlp_output.save()
        torch.testing.assert_close(attention, hooked["post_attention_layernorm"])
        torch.testing.assert_close(mlp, hooked["post_feedforward_layernorm"])


@pytest.mark.parametrize("checkpoint", [E2B, E4B])
def test_the_last_blocks_take_keys_of_earlier_ones(small, prompt, checkpoint):
    model = small(checkpoint)
    own = model.num_layers - model.config.num_kv_shared_layers
    types, keys = model.config.layer_types, []
    with model.trace(prompt(model)):
        for block in model.layers:
            keys.append(block.self_attn.attention_keys.save())
    for index in range(own, model.num_layers):
        giver = max(earlier for earlier in range(own) if types[earlier] == types[index])
        assert torch.equal(keys[index], keys[giver])
    assert not torch.equal(keys[0], keys[2])


@pytest.mark.parametrize("checkpoint", [MIXTURE, LARGEST])
def test_full_blocks_take_their_values_from_the_key_projection(small, prompt, checkpoint):
    model = small(checkpoint)
    attn = model.layers[model.config.layer_types.index("full_attention")].self_attn
    with model.trace(prompt(model)):
        projected = attn.k_proj.output.save()
        values = attn.attention_values.save()
    cut = projected.unflatten(-1, (-1, attn.head_dim)).transpose(1, 2)
    torch.testing.assert_close(values, cut * (cut.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt())


def test_scores_are_not_scaled(small, prompt):
    model = small(LARGEST)
    attn = model.layers[0].self_attn
    with model.trace(prompt(model)):
        queries = attn.attention_queries.save()
        keys = attn.attention_keys.save()
        scores = attn.attention_scores.save()
    product = queries @ keys.repeat_interleave(queries.shape[1] // keys.shape[1], 1).mT
    torch.testing.assert_close(scores.diagonal(dim1=-2, dim2=-1), product.diagonal(dim1=-2, dim2=-1))


def test_the_mixture_is_in_the_contribution(small, prompt):
    model = small(MIXTURE)
    block = model.layers[0]
    with model.trace(prompt(model)):
        dense = block.post_feedforward_layernorm_1.output.save()
        routed = block.post_feedforward_layernorm_2.output.save()
        added = block.mlp.mlp_output.save()
    norm = block._module.post_feedforward_layernorm
    torch.testing.assert_close(added, norm(dense + routed))
    assert not torch.allclose(added, norm(dense), atol=1e-2)


def test_sizes_of_the_two_sorts_of_blocks_at_full_size():
    model = build_without_weights(recorded(LARGEST))
    windowed, full = (model.model.layers[index].self_attn for index in (0, 5))
    assert (windowed.head_dim, full.head_dim) == (256, 512)
    assert (windowed.k_proj.out_features // 256, full.k_proj.out_features // 512) == (16, 4)
