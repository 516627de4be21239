"""What is particular to Qwen3-Next: delta rules and gated attention, and gates between values."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from encyclopedia.capture.parameters import count_parameters
from encyclopedia.checkpoints import recorded
from encyclopedia.checks.claims import BrokenClaim
from encyclopedia.checks.run import check_model
from encyclopedia.families import Declared, family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.structure.derive import structure_of
from encyclopedia.twin import PROMPTS, prompt_for, twin_of

NEXT = "Qwen/Qwen3-Next-80B-A3B-Instruct"


def test_the_notes_run(run_notes):
    for snippet in run_notes("qwen3_next"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


def test_only_words_on_arrows_are_declared():
    declared = family("qwen3_next")
    assert not declared.classes
    assert declared.identity is None
    assert set(declared.arrows.values()) == {"sigmoid gate", "norm, gate"}


def test_kinds_and_parameters_at_full_size():
    record = recorded(NEXT)
    full = build_without_weights(record)
    structure = structure_of(full)
    delta, attention = structure.kinds
    assert attention.blocks == tuple(range(3, 48, 4))
    assert len(delta.blocks) == 36
    counted = count_parameters(full, structure, family("qwen3_next"))
    tables = 2 * record.config["vocab_size"] * record.config["hidden_size"]
    # 80B-A3B, the active ones as its name counts them, without both tables.
    assert round(counted.total / 1e9) == 80
    assert round((counted.active - tables) / 1e9) == 3


def test_the_second_half_of_every_head_in_q_proj_is_its_gate(small, prompt):
    model = small(NEXT)
    attn, native, seen = model.layers[1].self_attn, model._module.model.layers[1].self_attn, {}
    hooks = [native.q_proj.register_forward_hook(lambda module, inputs, output: seen.update(projected=output)),
             native.o_proj.register_forward_hook(lambda module, inputs, output: seen.update(premix=inputs[0]))]
    model._module(prompt(model))
    for hook in hooks:
        hook.remove()
    with model.trace(prompt(model)):
        heads = attn.attention_head_outputs.save()
        premix = attn.attention_premix.save()
    torch.testing.assert_close(premix.flatten(2), seen["premix"])
    gate = seen["projected"].unflatten(-1, (attn.num_heads, 2, attn.head_dim))[..., 1, :].sigmoid()
    torch.testing.assert_close(heads * gate, premix)
    halves = seen["projected"].chunk(2, dim=-1)[1].unflatten(-1, (attn.num_heads, attn.head_dim)).sigmoid()
    assert not torch.allclose(heads * halves, premix, atol=1e-2)


def test_head_outputs_are_what_the_gated_norm_is_given(small, prompt):
    model = small(NEXT)
    native, seen = model._module.model.layers[0].linear_attn, {}
    hook = native.norm.register_forward_hook(
        lambda module, inputs, output: seen.update(heads=inputs[0], gate=inputs[1], normed=output))
    model._module(prompt(model))
    hook.remove()
    with model.trace(prompt(model)):
        heads = model.layers[0].linear_attn.attention_head_outputs.save()
        output = model.layers[0].linear_attn.attention_output.save()
    torch.testing.assert_close(heads.reshape(seen["heads"].shape), seen["heads"])
    torch.testing.assert_close(native.out_proj(seen["normed"].view(*output.shape[:2], -1)), output)
    # Its gain is its weight, unlike that of the stream's norms.
    root = (seen["heads"].pow(2).mean(-1, keepdim=True) + native.norm.variance_epsilon).sqrt()
    by_hand = native.norm.weight * seen["heads"] / root * torch.nn.functional.silu(seen["gate"])
    torch.testing.assert_close(by_hand, seen["normed"])


def test_a_key_head_serves_neighbouring_value_heads(small, prompt):
    model = small(NEXT)
    lin, ids = model.layers[0].linear_attn, prompt(model)
    with model.trace(ids):
        keys = lin.attention_keys.save()
        heads = lin.attention_head_outputs.save()
    with model.trace(ids):
        turned = lin.attention_keys.clone()
        turned[:, :, 1] = turned[:, :, 1].roll(1, dims=-1)
        lin.attention_keys = turned
        after = lin.attention_head_outputs.save()
    group = heads.shape[2] // keys.shape[2]
    assert group > 1
    moved = (after != heads).any(-1).any(1)[0].nonzero().flatten().tolist()
    assert moved == list(range(group, 2 * group))


def test_a_second_call_goes_on_from_the_state_that_was_written(small, prompt):
    model = small(NEXT)
    lin, ids = model.layers[0].linear_attn, prompt(model)
    with model.trace(ids[:, :-2]):
        lin.state_output = torch.zeros_like(lin.state_output)
        cache = model.output["cache"].save()
    with model.trace(ids[:, -2:], cache=cache, attention_mask=torch.ones_like(ids)):
        found = lin.state_input.save()
        forgetful = model.logits.save()
    with model.trace(ids):
        whole = model.logits.save()
    assert (found == 0).all()
    assert not torch.allclose(forgetful, whole[:, -2:], atol=1e-2)


def test_the_shared_expert_is_scaled_behind_its_standard_value(small, prompt):
    model = small(NEXT)
    moe, native, seen = model.layers[1].mlp, model._module.model.layers[1].mlp, {}
    hook = native.shared_expert_gate.register_forward_hook(lambda module, inputs, output: seen.update(gate=output))
    model._module(prompt(model))
    hook.remove()
    with model.trace(prompt(model)):
        shared = moe.shared_expert_output.save()
        routed = moe.routed_output.save()
        output = moe.mlp_output.save()
    opening = seen["gate"].sigmoid().view(1, -1, 1)
    torch.testing.assert_close(routed + opening * shared, output)
    assert (1 - opening).min() > 0.01


@pytest.mark.parametrize(("native", "value", "location"), [
    ("Qwen3NextGatedDeltaNet", "attention_queries", "source.torch_chunk_gated_delta_rule_0.inputs[1]"),
    ("Qwen3NextSparseMoeBlock", "shared_expert_output", "shared_expert.input"),
])
def test_a_wrong_place_fails_its_check(monkeypatch, native, value, location):
    wrong = replace(family("qwen3_next"), classes={native: Declared(locations={value: location})})
    monkeypatch.setattr("encyclopedia.model.transformer.family", lambda model_type: wrong)
    twin = twin_of(recorded(NEXT))
    with pytest.raises(BrokenClaim, match=value):
        check_model(twin, wrong, prompt_for(twin, batch=PROMPTS), writing=False)
