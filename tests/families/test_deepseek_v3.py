"""What is particular to DeepSeek-V3: latents, a rotary that reorders, and routing within groups."""

from __future__ import annotations

import pytest
import torch

from encyclopedia import StandardizedTransformer
from encyclopedia.capture.parameters import count_parameters
from encyclopedia.capture.quirks import find_quirks
from encyclopedia.checkpoints import recorded
from encyclopedia.families import Family, family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.native import record as record_forward
from encyclopedia.structure.derive import structure_of
from encyclopedia.twin import PROMPTS, prompt_for, twin_of

V3 = "deepseek-ai/DeepSeek-V3"
MOONLIGHT = "moonshotai/Moonlight-16B-A3B"
SHOWN = (MOONLIGHT, V3)


def test_the_notes_run(run_notes):
    for snippet in run_notes("deepseek_v3"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


def test_nothing_is_declared():
    declared = family("deepseek_v3")
    assert declared == Family("deepseek_v3", declared.title, declared.subtitle, declared.hue)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_parameters_agree_with_the_published_counts(checkpoint):
    full = build_without_weights(recorded(checkpoint))
    structure = structure_of(full)
    counted = count_parameters(full, structure, family("deepseek_v3"))
    # Published counts include the selection biases, buffers here, and on Moonlight 64 numbers more per block.
    biases = sum(buffer.numel() for name, buffer in full.named_buffers() if name.endswith("e_score_correction_bias"))
    more = 64 * full.config.num_hidden_layers if checkpoint == MOONLIGHT else 0
    assert counted.total + biases + more == recorded(checkpoint).published_parameters.total


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_its_quirks_are_found(checkpoint):
    full = build_without_weights(recorded(checkpoint), attn_implementation="eager")
    twin = twin_of(recorded(checkpoint))
    run = record_forward(twin, prompt_for(twin, batch=PROMPTS))
    found = set(find_quirks(family("deepseek_v3"), structure_of(full), full, twin, run))
    assert {"latent-attention", "unequal-head-widths", "partial-rotary", "selection-bias", "sigmoid-routing",
            "scaled-routing", "shared-expert", "dense-first-blocks"} <= found
    assert ("group-limited-routing" in found) == ("attention-scale" in found) == (checkpoint == V3)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_an_edit_of_the_latent_reaches_every_head(small, prompt, checkpoint):
    model = small(checkpoint)
    attn, ids = model.layers[0].self_attn, prompt(model)

    def run(factor: float) -> tuple[torch.Tensor, torch.Tensor]:
        with model.trace(ids):
            attn.kv_a_layernorm.output = attn.kv_a_layernorm.output * factor
            keys = attn.attention_keys.save()
            values = attn.attention_values.save()
        return keys, values

    (keys, values), (keys_after, values_after) = run(1), run(2)
    content = attn._module.qk_nope_head_dim
    torch.testing.assert_close(values_after, 2 * values)
    torch.testing.assert_close(keys_after[..., :content], 2 * keys[..., :content])
    assert torch.equal(keys_after[..., content:], keys[..., content:])


def test_router_is_in_float32_on_a_bfloat16_model(prompt):
    model = StandardizedTransformer(twin_of(recorded(V3)).to(torch.bfloat16))
    moe = model.layers[1].mlp
    with model.trace(prompt(model)):
        logits = moe.router_logits.save()
        weights = moe.expert_weights.save()
        slots = moe.expert_outputs.save()
        routed = moe.routed_output.save()
    assert logits.dtype == weights.dtype == slots.dtype == torch.float32
    assert routed.dtype == torch.bfloat16


def test_the_best_expert_of_a_poor_group_is_not_chosen(small, prompt):
    model = small(V3)
    moe, ids = model.layers[1].mlp, prompt(model)
    size = moe.router._module.num_experts // model.config.n_group
    ranked = torch.full((ids.numel(), moe.router._module.num_experts), 0.7)
    ranked[:, :size] = -1
    ranked[:, 0] = 1  # the best of all, and its group the worst
    with model.trace(ids):
        moe.router.source.scores_for_choice_0.output = ranked
        indices = moe.expert_indices.save()
    assert (indices >= size).all()


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_weights_sum_to_the_scaling_factor(small, prompt, checkpoint):
    model = small(checkpoint)
    with model.trace(prompt(model)):
        weights = model.layers[1].mlp.expert_weights.save()
    factor = recorded(checkpoint).config["routed_scaling_factor"]
    torch.testing.assert_close(weights.sum(-1), torch.full(weights.shape[:-1], factor))
