"""What is particular to DeepSeek-V4: streams, compressed keys, and experts by token id."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from encyclopedia.capture.parameters import count_parameters
from encyclopedia.checkpoints import recorded
from encyclopedia.checks.identity import TOLERANCE, BrokenIdentity, measure_identity
from encyclopedia.families import family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.structure.derive import structure_of

FLASH = "deepseek-ai/DeepSeek-V4-Flash"
PRO = "deepseek-ai/DeepSeek-V4-Pro"
SHOWN = (FLASH, PRO)
COMPRESSED = ("attention_keys", "attention_values", "attention_scores", "attention_probabilities")


def test_the_notes_run(run_notes):
    for snippet in run_notes("deepseek_v4"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_the_identity_holds_over_all_streams(small, prompt, checkpoint):
    model = small(checkpoint)
    identity = family("deepseek_v4").identity
    for layer in range(model.num_layers):
        assert measure_identity(model, prompt(model, batch=2), identity, layer) <= TOLERANCE


def test_mixing_by_the_matrix_itself_is_another_equation(small, prompt):
    model = small(FLASH)
    identity = family("deepseek_v4").identity
    assert identity.count(".mT") == 2
    with pytest.raises(BrokenIdentity):
        measure_identity(model, prompt(model), identity.replace(".mT", ""), 1)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_keys_are_withdrawn_where_entries_are_compressed_and_nowhere_else(small, prompt, checkpoint):
    model = small(checkpoint)
    for block in model.layers:
        attn = block.self_attn
        compresses = attn._module.compressor is not None
        for name in COMPRESSED:
            reason = attn.unavailable(name)
            assert ("compress" in reason) if compresses else reason is None
    assert {block.self_attn._module.compressor is None for block in model.layers} == ({False} if checkpoint == PRO
                                                                                     else {True, False})


def test_token_ids_choose_the_experts_on_the_first_blocks(small, prompt):
    model = small(FLASH)
    moe, ids = model.layers[0].mlp, prompt(model)
    with model.trace(ids):
        indices = moe.expert_indices.save()
    with model.trace(ids.flip(1)):
        flipped = moe.expert_indices.save()
    with model.trace(ids):
        moe.router_logits = -moe.router_logits
        unmoved = moe.expert_indices.save()
        weights = moe.expert_weights.save()
    assert torch.equal(indices, moe.router._module.tid2eid[ids])
    assert torch.equal(flipped, indices.flip(1))
    assert torch.equal(unmoved, indices)
    torch.testing.assert_close(weights.sum(-1), torch.full(ids.shape, model.config.routed_scaling_factor))


def test_a_contribution_reaches_each_stream_by_its_own_share(small, prompt):
    model = small(FLASH)
    block, ids = model.layers[-1], prompt(model)
    with model.trace(ids):
        post = block.ffn_hc.output[0].save()
        output = block.mlp.mlp_output.save()
        leaving = block.layer_output.save()
    with model.trace(ids):
        block.mlp.mlp_output = torch.zeros_like(block.mlp.mlp_output)
        without = block.layer_output.save()
    torch.testing.assert_close(leaving - without, post.unsqueeze(-1) * output.unsqueeze(2), rtol=1e-4, atol=1e-4)
    assert (post.amax(-1) - post.amin(-1)).min() > 1e-3


def test_parameters_are_those_of_the_checkpoints_names():
    for checkpoint, published, active in ((FLASH, 284e9, 13e9), (PRO, 1.6e12, 49e9)):
        full = build_without_weights(recorded(checkpoint))
        counted = count_parameters(full, structure_of(full), replace(family("deepseek_v4")))
        assert abs(counted.total / published - 1) < 0.02
        assert abs(counted.active - active) < 1e9
