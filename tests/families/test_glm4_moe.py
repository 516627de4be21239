"""What is particular to GLM-4.5 and its successors: half a rotary, biases and norms of queries and keys, the router."""

from __future__ import annotations

import pytest
import torch

from encyclopedia.capture.parameters import count_parameters
from encyclopedia.capture.quirks import find_quirks
from encyclopedia.checkpoints import recorded
from encyclopedia.families import Family, family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.native import record as record_forward
from encyclopedia.structure.derive import structure_of
from encyclopedia.twin import PROMPTS, prompt_for, twin_of

AIR = "zai-org/GLM-4.5-Air"
LARGE = "zai-org/GLM-4.7"
SHOWN = (AIR, LARGE)


def test_the_notes_run(run_notes):
    for snippet in run_notes("glm4_moe"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


def test_nothing_is_declared():
    declared = family("glm4_moe")
    assert declared == Family("glm4_moe", declared.title, declared.subtitle, declared.hue)


def test_active_parameters_are_the_rows_of_the_chosen_experts():
    full = build_without_weights(recorded(AIR))
    counted = count_parameters(full, structure_of(full), family("glm4_moe"))
    config = full.config
    mixtures = config.num_hidden_layers - config.first_k_dense_replace
    one = 3 * config.hidden_size * config.moe_intermediate_size
    assert counted.total - counted.active == mixtures * (config.n_routed_experts - config.num_experts_per_tok) * one
    # Its name among the published sizes is 106B.
    assert abs(counted.total - 106e9) < 1e9


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_its_quirks_are_found(checkpoint):
    full = build_without_weights(recorded(checkpoint), attn_implementation="eager")
    twin = twin_of(recorded(checkpoint))
    run = record_forward(twin, prompt_for(twin, batch=PROMPTS))
    found = set(find_quirks(family("glm4_moe"), structure_of(full), full, twin, run))
    assert {"partial-rotary", "biased-projections", "grouped-query-attention", "selection-bias", "sigmoid-routing",
            "shared-expert", "dense-first-blocks"} <= found
    assert "group-limited-routing" not in found
    assert ("query-key-norms" in found) == ("scaled-routing" in found) == (checkpoint == LARGE)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_queries_against_plain_hooks(small, prompt, checkpoint):
    model = small(checkpoint)
    attn, native = model.layers[0].self_attn, model._module.model.layers[0].self_attn
    seen: list[torch.Tensor] = []
    source = native.q_norm if native.use_qk_norm else native.q_proj
    hook = source.register_forward_hook(lambda *call: seen.append(call[-1]))
    rotary = model._module.model.rotary_emb.inv_freq
    ids = prompt(model)
    with model.trace(ids):
        queries = attn.attention_queries.save()
    hook.remove()
    plain = seen[-1].view(1, ids.shape[1], -1, native.head_dim).transpose(1, 2)
    width = 2 * len(rotary)
    assert width == native.head_dim // 2
    pairs = torch.complex(plain[..., : width // 2], plain[..., width // 2: width])
    angles = torch.arange(ids.shape[1])[:, None] * rotary
    turned = pairs * torch.polar(torch.ones_like(angles), angles)
    expected = torch.cat([turned.real, turned.imag, plain[..., width:]], dim=-1)
    torch.testing.assert_close(queries, expected)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_weights_sum_to_the_scaling_factor(small, prompt, checkpoint):
    model = small(checkpoint)
    with model.trace(prompt(model)):
        weights = model.layers[1].mlp.expert_weights.save()
    # A twin's factor is never one, so that a missing multiplication shows.
    factor = model.config.routed_scaling_factor
    assert factor != 1
    torch.testing.assert_close(weights.sum(-1), torch.full(weights.shape[:-1], factor))


def test_heads_are_edited_one_at_a_time_at_the_projection(small, prompt):
    model = small(LARGE)
    attn, ids = model.layers[1].self_attn, prompt(model)
    with model.trace(ids):
        queries = attn.attention_queries.save()
    with model.trace(ids):
        attn.q_proj.output[..., : attn.head_dim] *= -1
        edited = attn.attention_queries.save()
    assert not torch.allclose(edited[:, 0], queries[:, 0], atol=1e-2)
    assert torch.equal(edited[:, 1:], queries[:, 1:])
