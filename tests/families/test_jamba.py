"""What is particular to Jamba: norms in front of a Mamba's scan, attention without positions, bare softmax weights."""

from __future__ import annotations

import pytest
import torch

from encyclopedia.capture.parameters import count_parameters
from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.families import Family, family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.structure.derive import structure_of

MINI = "ai21labs/Jamba-v0.1"
SHOWN = [record.id for record in read_family("jamba")[0]]


def test_the_notes_run(run_notes):
    for snippet in run_notes("jamba"):
        assert snippet.ran_on or "downloads" in snippet.reason, f"line {snippet.line}"


def test_nothing_is_declared():
    declared = family("jamba")
    assert declared == Family("jamba", declared.title, declared.subtitle, declared.hue)


def test_counts_agree_with_what_is_said_of_the_large_model():
    full = build_without_weights(recorded(MINI))
    counted = count_parameters(full, structure_of(full), family("jamba"))
    # Published as 52B in all and 12B active.
    assert round(counted.total / 1e9) == 52
    assert round(counted.active / 1e9) == 12


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_attention_stands_where_period_and_offset_say(checkpoint):
    full = build_without_weights(recorded(checkpoint))
    period, offset = full.config.attn_layer_period, full.config.attn_layer_offset
    attending = [i for i, block in enumerate(full.model.layers) if hasattr(block, "self_attn")]
    assert attending == [i for i in range(len(full.model.layers)) if i % period == offset]
    mixed = [i for i, block in enumerate(full.model.layers) if hasattr(block.feed_forward, "experts")]
    every, start = full.config.expert_layer_period, full.config.expert_layer_offset
    expected = [i for i in range(len(full.model.layers)) if i % every == start]
    assert mixed == (expected if full.config.num_experts > 1 else [])


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_keys_and_queries_are_what_plain_hooks_see_leave_the_norms(small, prompt, checkpoint):
    model = small(checkpoint)
    ids = prompt(model, batch=2)
    block = next(block for block in model.layers if hasattr(block, "linear_attn"))
    native, seen = block.linear_attn._module, {}
    hooks = [native.get_submodule(name).register_forward_hook(
        lambda _, inputs, output, name=name: seen.update({name: output})) for name in ("b_layernorm", "c_layernorm")]
    try:
        model._module(ids)
    finally:
        for hook in hooks:
            hook.remove()
    with model.trace(ids):
        keys = block.linear_attn.attention_keys.save()
        queries = block.linear_attn.attention_queries.save()
    assert torch.equal(keys.squeeze(2), seen["b_layernorm"])
    assert torch.equal(queries.squeeze(2), seen["c_layernorm"])


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_attention_does_not_know_the_order_of_earlier_tokens(small, prompt, checkpoint):
    model = small(checkpoint)
    block, ids = next(block for block in model.layers if hasattr(block, "self_attn")), prompt(model)
    with model.trace(ids):
        entering = block.attention_norm_output.save()
        clean = block.self_attn.attention_output.save()
    with model.trace(ids):
        block.attention_norm_output = torch.cat([entering[:, :-1].flip(1), entering[:, -1:]], dim=1)
        turned = block.self_attn.attention_output.save()
    torch.testing.assert_close(turned[:, -1], clean[:, -1])


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_a_longer_call_drops_the_cached_states(small, prompt, checkpoint):
    model = small(checkpoint)
    native, ids = model._module, prompt(model)
    whole = native(ids).logits
    cache = native(ids[:, :6], use_cache=True).cache
    torch.testing.assert_close(
        native(ids[:, 6:7], cache=cache, use_cache=True).logits, whole[:, 6:7], rtol=1e-4, atol=1e-4)
    cache = native(ids[:, :6], use_cache=True).cache
    at_once = native(ids[:, 6:], cache=cache, use_cache=True).logits
    assert not torch.allclose(at_once, whole[:, 6:], atol=1e-2)


def test_expert_weights_are_shares_of_a_softmax_over_all(small, prompt):
    model = small(MINI)
    moe = next(block for block in model.layers if hasattr(block.mlp, "router")).mlp
    with model.trace(prompt(model, batch=2)):
        logits = moe.router_logits.save()
        weights = moe.expert_weights.save()
    torch.testing.assert_close(weights, logits.softmax(-1).topk(weights.shape[-1]).values)
    assert (weights.sum(-1) < 1).all()
