"""What is particular to MiniMax-M2: one norm over all heads, and a selection bias that the mixture keeps."""

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

M2 = "MiniMaxAI/MiniMax-M2.1"


def test_the_notes_run(run_notes):
    for snippet in run_notes("minimax_m2"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


def test_nothing_is_declared():
    declared = family("minimax_m2")
    assert declared == Family("minimax_m2", declared.title, declared.subtitle, declared.hue)


def test_parameters_agree_with_the_published_counts():
    full = build_without_weights(recorded(M2))
    structure = structure_of(full)
    counted = count_parameters(full, structure, family("minimax_m2"))
    assert len(structure.kinds) == 1
    # The published count includes the selection biases, which are buffers here.
    biases = sum(buffer.numel() for name, buffer in full.named_buffers() if name.endswith("e_score_correction_bias"))
    assert counted.total + biases == recorded(M2).published_parameters.total
    # The report's 9.8 billion leave embeddings and head out.
    tables = 2 * full.config.vocab_size * full.config.hidden_size
    assert round((counted.active - tables) / 1e9, 1) == 9.8


def test_its_quirks_are_found():
    full = build_without_weights(recorded(M2), attn_implementation="eager")
    twin = twin_of(recorded(M2))
    run = record_forward(twin, prompt_for(twin, batch=PROMPTS))
    found = set(find_quirks(family("minimax_m2"), structure_of(full), full, twin, run))
    assert {"query-key-norms", "partial-rotary", "sigmoid-routing", "selection-bias", "mixture-of-experts"} <= found
    assert not {"shared-expert", "scaled-routing", "dense-first-blocks", "biased-projections"} & found


@pytest.mark.parametrize("projection", ["q_proj", "k_proj"])
def test_a_head_scaled_in_front_of_the_norm_moves_the_others(small, prompt, projection):
    model = small(M2)
    attn, ids = model.layers[0].self_attn, prompt(model)
    name = {"q_proj": "attention_queries", "k_proj": "attention_keys"}[projection]

    def run(factor: float) -> torch.Tensor:
        with model.trace(ids):
            getattr(attn, projection).output[..., : attn.head_dim] *= factor
            read = getattr(attn, name).save()
        return read

    before, after = run(1), run(10)
    others = after[:, 1:] / before[:, 1:]
    # Every other head shrinks, by one number per token.
    assert (others.amax(dim=(1, 3)) < 1).all()
    torch.testing.assert_close(others.amin(dim=(1, 3)), others.amax(dim=(1, 3)), rtol=1e-3, atol=1e-3)


def test_the_selection_bias_moves_the_choice_and_not_the_weights(small, prompt):
    model = small(M2)
    moe, ids = model.layers[1].mlp, prompt(model)
    with model.trace(ids):
        logits = moe.router_logits.save()
    kept = moe._module.e_score_correction_bias.clone()
    moe._module.e_score_correction_bias[4] = 100
    try:
        with model.trace(ids):
            weights = moe.expert_weights.save()
            indices = moe.expert_indices.save()
    finally:
        moe._module.e_score_correction_bias.copy_(kept)
    assert (indices == 4).any(-1).all()
    chosen = logits.sigmoid().gather(-1, indices)
    torch.testing.assert_close(weights, chosen / chosen.sum(-1, keepdim=True))


def test_router_logits_are_in_the_dtype_of_the_model_and_weights_are_not(prompt):
    model = StandardizedTransformer(twin_of(recorded(M2)).to(torch.bfloat16))
    moe = model.layers[1].mlp
    with model.trace(prompt(model)):
        logits = moe.router_logits.save()
        weights = moe.expert_weights.save()
    assert (logits.dtype, weights.dtype) == (torch.bfloat16, torch.float32)
