"""What is particular to OLMoE, on small random models with every parameter moved off its initial value."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from encyclopedia import Unavailable
from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.families import Family, family
from encyclopedia.instantiate import build_without_weights

RECORDS = [record for record in read_family("olmoe")[0] if record.reason is None]
REFERENCE = "allenai/OLMoE-1B-7B-0924"


def test_the_notes_run(run_notes):
    for snippet in run_notes("olmoe"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


def test_nothing_is_declared():
    declared = family("olmoe")
    assert declared == Family("olmoe", declared.title, declared.subtitle, declared.hue)


@pytest.mark.parametrize("record", [record for record in RECORDS if record.published_parameters], ids=lambda r: r.id)
def test_parameters_agree_with_the_published_count(record):
    counted = sum(parameter.numel() for parameter in build_without_weights(record).parameters())
    assert counted == record.published_parameters.total


@pytest.mark.parametrize("experts", ["grouped_mm", "batched_mm"])
def test_mixture_step_by_step(small, prompt, experts):
    model = small(REFERENCE, experts_implementation=experts)
    moe = model.layers[1].mlp
    with model.trace(prompt(model, batch=2)):
        entering = moe.input.save()
        logits = moe.router_logits.save()
        weights = moe.expert_weights.save()
        indices = moe.expert_indices.save()
        slots = moe.expert_outputs.save()
        routed = moe.routed_output.save()
        output = moe.mlp_output.save()
    native = moe._module
    torch.testing.assert_close(logits, entering @ native.gate.weight.T)
    best = logits.softmax(-1).topk(native.gate.top_k)
    assert torch.equal(indices, best.indices)
    torch.testing.assert_close(weights, best.values)
    for row, position, slot in [(0, 0, 0), (1, 5, 2)]:
        expert = indices[row, position, slot]
        gate, up = (native.experts.gate_up_proj[expert] @ entering[row, position]).chunk(2)
        alone = native.experts.down_proj[expert] @ (F.silu(gate) * up)
        torch.testing.assert_close(
            slots[row, position, slot], weights[row, position, slot] * alone, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(slots.sum(2), routed)
    assert torch.equal(routed, output)


def test_weights_do_not_sum_to_one(small, prompt):
    assert all(record.config["norm_topk_prob"] is False for record in RECORDS)
    model = small(REFERENCE)
    with model.trace(prompt(model)):
        sums = model.layers[0].mlp.expert_weights.sum(-1).save()
    assert sums.max() < 0.99
    assert sums.std() > 0.001


def test_router_and_experts_are_read_where_plain_hooks_find_them(small, prompt):
    model = small(REFERENCE)
    ids, native = prompt(model, batch=2), model.layers[0]._module.mlp
    seen = {}
    handle = native.gate.register_forward_hook(lambda _module, _arguments, output: seen.update(gate=output))
    try:
        model._module(ids)
    finally:
        handle.remove()
    with model.trace(ids):
        logits = model.layers[0].mlp.router_logits.save()
        weights = model.layers[0].mlp.expert_weights.save()
        indices = model.layers[0].mlp.expert_indices.save()
    for served, hooked in zip((logits, weights, indices), seen["gate"], strict=True):
        torch.testing.assert_close(served.flatten(0, 1), hooked)


def test_a_mixture_has_no_neurons_of_its_own(small, prompt):
    model = small(REFERENCE)
    for name in ("mlp_neurons", "mlp_activation", "shared_expert_output"):
        with pytest.raises(Unavailable), model.trace(prompt(model)):
            getattr(model.layers[0].mlp, name).save()


def test_query_norm_spans_all_heads(small, prompt):
    model = small(REFERENCE)
    attn = model.layers[0].self_attn
    with model.trace(prompt(model)):
        projected = attn.q_proj.output.save()
        normed = attn.q_norm.output.save()
    weight = attn._module.q_norm.weight
    assert weight.shape == (attn.num_heads * attn.head_dim,)
    over_all = weight * projected * (projected.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt()
    torch.testing.assert_close(normed, over_all)
    assert recorded(REFERENCE).config["clip_qkv"] is None
