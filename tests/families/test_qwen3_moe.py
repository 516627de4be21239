"""What is particular to Qwen3's mixture: a softmax router, no shared expert, and experts in stacked parameters."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from encyclopedia import Unavailable
from encyclopedia.capture.parameters import count_parameters
from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.checks.claims import BrokenClaim
from encyclopedia.checks.run import check_model
from encyclopedia.families import Declared, Family, family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.structure.derive import structure_of
from encyclopedia.twin import PROMPTS, prompt_for, twin_of

SHOWN = [record.id for record in read_family("qwen3_moe")[0] if record.reason is None]
SMALLER = "Qwen/Qwen3-30B-A3B"


def test_the_notes_run(run_notes):
    for snippet in run_notes("qwen3_moe"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


def test_nothing_is_declared():
    declared = family("qwen3_moe")
    assert declared == Family("qwen3_moe", declared.title, declared.subtitle, declared.hue)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_parameters_agree_with_the_published_count(checkpoint):
    record = recorded(checkpoint)
    full = build_without_weights(record)
    counted = count_parameters(full, structure_of(full), family("qwen3_moe"))
    assert counted.total == record.published_parameters.total
    config = record.config
    idle = config["num_experts"] - config["num_experts_per_tok"]
    expert = 3 * config["hidden_size"] * config["moe_intermediate_size"]
    assert counted.total - counted.active == config["num_hidden_layers"] * idle * expert


@pytest.mark.parametrize("experts", ["grouped_mm", "batched_mm"])
@pytest.mark.parametrize("checkpoint", SHOWN)
def test_the_mixture_step_by_step_against_plain_hooks(small, prompt, checkpoint, experts):
    model = small(checkpoint, experts_implementation=experts)
    ids, native, seen = prompt(model, batch=2), model._module.model.layers[1].mlp, {}
    hooks = [native.gate.register_forward_hook(lambda module, inputs, output: seen.update(router=output)),
             native.register_forward_hook(lambda module, inputs, output: seen.update(input=inputs[0], output=output))]
    model._module(ids)
    for hook in hooks:
        hook.remove()
    moe = model.layers[1].mlp
    with model.trace(ids):
        logits = moe.router_logits.save()
        weights = moe.expert_weights.save()
        indices = moe.expert_indices.save()
        slots = moe.expert_outputs.save()
        output = moe.mlp_output.save()
    torch.testing.assert_close(logits.flatten(0, 1), seen["router"][0])
    torch.testing.assert_close(weights.flatten(0, 1), seen["router"][1])
    assert torch.equal(indices.flatten(0, 1), seen["router"][2])
    torch.testing.assert_close(output, seen["output"])

    probabilities = logits.softmax(-1)
    best = probabilities.topk(model.config.num_experts_per_tok)
    assert torch.equal(indices, best.indices)
    torch.testing.assert_close(weights, best.values / best.values.sum(-1, keepdim=True))
    gate, up = torch.einsum("bsh,bskih->bski", seen["input"], native.experts.gate_up_proj[indices]).chunk(2, dim=-1)
    by_hand = torch.einsum("bski,bskhi->bskh", F.silu(gate) * up, native.experts.down_proj[indices])
    torch.testing.assert_close(slots, weights.unsqueeze(-1) * by_hand, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(output, slots.sum(2))


def test_weights_do_not_depend_on_the_experts_left_out(small, prompt):
    model = small(SMALLER)
    moe = model.layers[0].mlp
    with model.trace(prompt(model)):
        weights = moe.expert_weights.save()
        indices = moe.expert_indices.save()
    with model.trace(prompt(model)):
        chosen = torch.zeros_like(moe.router_logits, dtype=torch.bool).scatter(-1, indices, True)
        moe.router_logits = moe.router_logits.masked_fill(~chosen, -torch.inf)
        alone = moe.expert_weights.save()
    torch.testing.assert_close(alone, weights)


def test_eager_experts_lack_the_slots_and_compute_the_same(small, prompt):
    model, default = small(SMALLER, experts_implementation="eager"), small(SMALLER)
    ids = prompt(model)
    with pytest.raises(Unavailable, match='experts_implementation="grouped_mm"'), model.trace(ids):
        model.layers[0].mlp.expert_outputs.save()
    torch.testing.assert_close(model._module(ids).logits, default._module(ids).logits, rtol=1e-4, atol=1e-4)


def test_a_mixture_has_no_shared_expert(small, prompt):
    model = small(SMALLER)
    for name in ("shared_expert_output", "mlp_neurons"):
        with pytest.raises(Unavailable), model.trace(prompt(model)):
            getattr(model.layers[0].mlp, name).save()


@pytest.mark.parametrize(("value", "location"), [
    ("router_logits", "router.output[1]"),
    ("expert_weights", "router.output[0]"),
    ("routed_output", "experts.inputs[0]"),
])
def test_a_wrong_place_fails_its_check(monkeypatch, value, location):
    wrong = replace(family("qwen3_moe"), classes={"Qwen3MoeSparseMoeBlock": Declared(locations={value: location})})
    monkeypatch.setattr("encyclopedia.model.transformer.family", lambda model_type: wrong)
    twin = twin_of(recorded(SMALLER))
    with pytest.raises(BrokenClaim, match=value):
        check_model(twin, wrong, prompt_for(twin, batch=PROMPTS), writing=False)
