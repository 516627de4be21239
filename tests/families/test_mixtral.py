"""What is particular to Mixtral: a softmax router over wide experts, and nothing beside them."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from encyclopedia import Unavailable
from encyclopedia.capture.parameters import count_parameters
from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.families import Family, family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.structure.derive import structure_of

SHOWN = [record.id for record in read_family("mixtral")[0]]


def test_the_notes_run(run_notes):
    for snippet in run_notes("mixtral"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


def test_nothing_is_declared():
    declared = family("mixtral")
    assert declared == Family("mixtral", declared.title, declared.subtitle, declared.hue)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_parameters_agree_with_the_published_count(checkpoint):
    record = recorded(checkpoint)
    full = build_without_weights(record)
    counted = count_parameters(full, structure_of(full), family("mixtral"))
    assert counted.total == record.published_parameters.total
    # What a token does not use are whole experts: three matrices each.
    config = record.config
    idle = config["num_local_experts"] - config["num_experts_per_tok"]
    expert = 3 * config["hidden_size"] * config["intermediate_size"]
    assert counted.total - counted.active == config["num_hidden_layers"] * idle * expert


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_every_block_is_a_mixture_of_one_kind(checkpoint):
    kinds = structure_of(build_without_weights(recorded(checkpoint))).kinds
    assert [len(kind.blocks) for kind in kinds] == [recorded(checkpoint).config["num_hidden_layers"]]
    mixture = kinds[0].sublayer("mlp").mixture
    assert (mixture.router, mixture.experts, mixture.shared) == ("gate", "experts", None)


@pytest.mark.parametrize("experts", ["grouped_mm", "batched_mm"])
@pytest.mark.parametrize("checkpoint", SHOWN)
def test_mixture_step_by_step(small, prompt, checkpoint, experts):
    model = small(checkpoint, experts_implementation=experts)
    moe = model.layers[1].mlp
    with model.trace(prompt(model, batch=2)):
        entering = moe.input.save()
        logits = moe.router_logits.save()
        indices = moe.expert_indices.save()
        weights = moe.expert_weights.save()
        slots = moe.expert_outputs.save()
        output = moe.mlp_output.save()
    native = moe._module
    torch.testing.assert_close(logits, entering @ native.gate.weight.T)
    shares = logits.softmax(-1)
    best = shares.topk(native.top_k)
    assert torch.equal(best.indices, indices)
    torch.testing.assert_close(best.values / best.values.sum(-1, keepdim=True), weights)
    expected = torch.zeros_like(slots)
    for expert in range(native.experts.num_experts):
        gate, up = F.linear(entering, native.experts.gate_up_proj[expert]).chunk(2, dim=-1)
        alone = F.linear(F.silu(gate) * up, native.experts.down_proj[expert])
        expected += ((indices == expert) * weights).unsqueeze(-1) * alone.unsqueeze(2)
    torch.testing.assert_close(slots, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(slots.sum(2), output)


def test_the_standard_values_are_what_plain_hooks_see(small, prompt):
    model = small(SHOWN[0])
    ids = prompt(model)
    seen = {}
    native = model.layers[0].mlp._module
    handles = [
        native.gate.register_forward_hook(lambda _, args, output: seen.update(router=output)),
        native.experts.register_forward_hook(lambda _, args, output: seen.update(arguments=args, routed=output)),
    ]
    try:
        model._module(ids)
    finally:
        for handle in handles:
            handle.remove()
    moe = model.layers[0].mlp
    with model.trace(ids):
        logits = moe.router_logits.save()
        indices = moe.expert_indices.save()
        weights = moe.expert_weights.save()
        routed = moe.routed_output.save()
    for found, expected in ((logits, seen["router"][0]), (weights, seen["router"][1]), (indices, seen["router"][2]),
                            (indices, seen["arguments"][1]), (weights, seen["arguments"][2]), (routed, seen["routed"])):
        assert torch.equal(found.flatten(0, 1), expected)


def test_eager_experts_lack_the_slots(small, prompt):
    model = small(SHOWN[0], experts_implementation="eager")
    with pytest.raises(Unavailable, match='experts_implementation="grouped_mm"'), model.trace(prompt(model)):
        model.layers[1].mlp.expert_outputs.save()


def test_a_barred_expert_gives_its_slot_to_the_next(small, prompt):
    model = small(SHOWN[0])
    ids, moe = prompt(model), model.layers[1].mlp
    with model.trace(ids):
        logits = moe.router_logits.save()
        indices = moe.expert_indices.save()
    expert = int(indices[0, 0, 0])
    with model.trace(ids):
        barred = moe.router_logits.clone()
        barred[..., expert] = -torch.inf
        moe.router_logits = barred
        after = moe.expert_indices.save()
    ranked = logits.argsort(dim=-1, descending=True)
    for token in range(ids.shape[1]):
        rest = [int(other) for other in ranked[0, token] if int(other) != expert]
        assert after[0, token].tolist() == rest[: indices.shape[-1]]
