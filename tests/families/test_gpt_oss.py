"""What is particular to gpt-oss: the sinks, the windows, and experts with clamps and biases."""

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

SMALL = "openai/gpt-oss-20b"
SHOWN = (SMALL, "openai/gpt-oss-120b")


def test_the_notes_run(run_notes):
    for snippet in run_notes("gpt_oss"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


def test_nothing_is_declared():
    declared = family("gpt_oss")
    assert declared == Family("gpt_oss", declared.title, declared.subtitle, declared.hue)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_parameters_agree_with_the_published_counts(checkpoint):
    record = recorded(checkpoint)
    full = build_without_weights(record)
    counted = count_parameters(full, structure_of(full), family("gpt_oss"))
    assert counted.total == record.published_parameters.total
    # The model card's active counts, in billions, leave the embedding table out.
    table = record.config["vocab_size"] * record.config["hidden_size"]
    assert round((counted.active - table) / 1e9, 2) == {SMALL: 3.61, SHOWN[1]: 5.13}[checkpoint]


def test_its_quirks_are_found():
    full = build_without_weights(recorded(SMALL), attn_implementation="eager")
    twin = twin_of(recorded(SMALL))
    run = record_forward(twin, prompt_for(twin, batch=PROMPTS))
    found = find_quirks(family("gpt_oss"), structure_of(full), full, twin, run)
    assert {"sliding-window", "attention-sinks", "mixture-of-experts", "biased-projections"} <= set(found)
    assert not {"shared-expert", "dense-first-blocks", "tied-embeddings", "selection-bias"} & set(found)


@pytest.mark.parametrize("layer", [0, 1])
def test_the_sinks_column_is_in_neither_scores_nor_probabilities(small, prompt, layer):
    model = small(SMALL)
    attn, ids = model.layers[layer].self_attn, prompt(model, batch=2)
    with model.trace(ids):
        scores = attn.attention_scores.save()
        pattern = attn.attention_probabilities.save()
    assert scores.shape == pattern.shape == (2, attn.num_heads, ids.shape[1], ids.shape[1])
    # A softmax with one more logit, written as the sum of exponentials it is.
    exponentials = scores.double().exp()
    total = exponentials.sum(-1, keepdim=True) + attn._module.sinks.double().exp().view(1, -1, 1, 1)
    torch.testing.assert_close(pattern.double(), exponentials / total, rtol=1e-4, atol=1e-6)
    assert (pattern.sum(-1) < 1).float().mean() > 0.9
    assert pattern.sum(-1).min() < 0.5


def test_the_default_load_is_eager():
    model = build_without_weights(recorded(SMALL))
    assert model.config._attn_implementation == "eager"


@pytest.mark.parametrize("experts", ["grouped_mm", "batched_mm"])
def test_experts_interleave_clamp_and_carry_biases(small, prompt, experts):
    model = small(SMALL, experts_implementation=experts)
    moe, ids = model.layers[1].mlp, prompt(model)
    native = moe.experts._module
    with model.trace(ids):
        # Far enough out for the clamps to matter.
        model.layers[1].mlp.input = model.layers[1].mlp.input * 20
        entering = moe.input.save()
        weights = moe.expert_weights.save()
        indices = moe.expert_indices.save()
        slots = moe.expert_outputs.save()
    clamped = 0
    for place in range(4):
        for slot in range(indices.shape[-1]):
            expert = indices[0, place, slot]
            both = native.gate_up_proj[expert].T @ entering[0, place] + native.gate_up_proj_bias[expert]
            gate, up = both.unflatten(0, (-1, 2)).unbind(1)
            clamped += int(((gate > native.limit) | (up.abs() > native.limit)).sum())
            gate = torch.minimum(gate, torch.tensor(native.limit))
            neurons = gate * torch.sigmoid(native.alpha * gate) * (1 + up.clip(-native.limit, native.limit))
            expected = native.down_proj[expert].T @ neurons + native.down_proj_bias[expert]
            torch.testing.assert_close(
                slots[0, place, slot], weights[0, place, slot] * expected, rtol=1e-4, atol=1e-4)
    assert clamped


def test_the_mixture_returns_weights_beside_its_output(small, prompt):
    model = small(SMALL)
    seen: list[tuple[torch.Tensor, ...]] = []
    hook = model._module.model.layers[1].mlp.register_forward_hook(lambda *call: seen.append(call[-1]))
    with model.trace(prompt(model)):
        weights = model.layers[1].mlp.expert_weights.save()
        output = model.layers[1].mlp.mlp_output.save()
    hook.remove()
    assert torch.equal(seen[-1][0], output)
    assert torch.equal(seen[-1][1].view_as(weights), weights)
