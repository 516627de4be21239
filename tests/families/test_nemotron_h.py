"""What is particular to Nemotron-H: one sublayer per block, attention without positions, neurons without a gate."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from encyclopedia import StandardizedTransformer, Unavailable
from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.families import Family, family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.twin import twin_of

NANO_2 = "nvidia/NVIDIA-Nemotron-Nano-9B-v2"
NANO_3 = "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"
SHOWN = [record.id for record in read_family("nemotron_h")[0]]
COUNTED = [identifier for identifier in SHOWN if recorded(identifier).published_parameters is not None]


def with_host(model: StandardizedTransformer, host: str):
    """The first block that has ``host``."""
    return next(block for block in model.layers if hasattr(block, host))


def test_the_notes_run(run_notes):
    for snippet in run_notes("nemotron_h"):
        assert snippet.ran_on or "downloads" in snippet.reason, f"line {snippet.line}"


def test_a_quirk_and_nothing_else_is_declared():
    declared = family("nemotron_h")
    assert declared == Family("nemotron_h", declared.title, declared.subtitle, declared.hue, quirks=("inner-norms",))


@pytest.mark.parametrize("checkpoint", COUNTED)
def test_parameters_agree_with_the_published_count(checkpoint):
    full = build_without_weights(recorded(checkpoint))
    assert sum(parameter.numel() for parameter in full.parameters()) == \
        recorded(checkpoint).published_parameters.total


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_one_contribution_is_what_the_one_mixer_returns(small, prompt, checkpoint):
    model = small(checkpoint)
    ids = prompt(model, batch=2)
    names = {"linear_attn": "attention_output", "self_attn": "attention_output", "mlp": "mlp_output"}
    assert {type(block._module.mixer).__name__ for block in model.layers} == {
        type(getattr(with_host(model, host), host)._module).__name__ for host in names}
    for block in model.layers:
        found = []
        hook = block._module.mixer.register_forward_hook(lambda _, inputs, output, found=found: found.append(output))
        try:
            model._module(ids)
        finally:
            hook.remove()
        host = next(name for name in names if hasattr(block, name))
        with model.trace(ids):
            entering = block.layer_input.save()
            added = getattr(getattr(block, host), names[host]).save()
            leaving = block.layer_output.save()
        assert torch.equal(added, found[0][0] if host == "self_attn" else found[0])
        assert torch.equal(entering + added, leaving)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_attention_does_not_know_the_order_of_earlier_tokens(small, prompt, checkpoint):
    model = small(checkpoint)
    block, ids = with_host(model, "self_attn"), prompt(model)
    with model.trace(ids):
        entering = block.attention_norm_output.save()
        clean = block.self_attn.attention_output.save()
    with model.trace(ids):
        block.attention_norm_output = torch.cat([entering[:, :-1].flip(1), entering[:, -1:]], dim=1)
        turned = block.self_attn.attention_output.save()
    torch.testing.assert_close(turned[:, -1], clean[:, -1])
    assert not torch.allclose(turned[:, :-1], clean[:, :-1], atol=1e-3)


def test_scan_clamps_its_step_sizes_and_a_single_step_does_not(small, prompt):
    model = small(NANO_2)
    mixer, ids = with_host(model, "linear_attn").linear_attn, prompt(model)
    native = mixer._module
    least, most = native.time_step_limit
    assert (least, most) == (model.config.time_step_min, float("inf"))
    assert tuple(model.config.time_step_limit) == (0.0, float("inf"))

    def last(first_call: int) -> torch.Tensor:
        """What the mixer adds at the end, with every step size there next to nothing, after so many cached tokens."""
        cache = model._module(ids[:, :first_call], use_cache=True).cache
        with model.trace(ids[:, first_call:], cache=cache, attention_mask=torch.ones_like(ids)):
            shut = mixer.in_proj.output.clone()
            shut[:, -1, -native.num_heads:] = -100
            mixer.in_proj.output = shut
            output = mixer.attention_output[:, -1].save()
        return output

    two, one = ids.shape[1] - 2, ids.shape[1] - 1
    torch.testing.assert_close(last(two), last(two - 1), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(last(one), last(two), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("checkpoint", [NANO_2, "nvidia/Nemotron-H-8B-Base-8K"])
def test_neurons_are_squares_and_the_activation_is_the_neurons(small, prompt, checkpoint):
    model = small(checkpoint)
    mlp = with_host(model, "mlp").mlp
    with model.trace(prompt(model)):
        entering = mlp.up_proj.output.save()
        activation = mlp.mlp_activation.save()
        neurons = mlp.mlp_neurons.save()
    torch.testing.assert_close(neurons, F.relu(entering).square())
    assert torch.equal(activation, neurons)


def test_expert_weights_sum_to_the_scaling_factor(small, prompt):
    model = small(NANO_3)
    moe = with_host(model, "mlp").mlp
    with model.trace(prompt(model, batch=2)):
        weights = moe.expert_weights.save()
        routed = moe.routed_output.save()
        shared = moe.shared_expert_output.save()
        output = moe.mlp_output.save()
    torch.testing.assert_close(weights.sum(-1), torch.full_like(weights[..., 0], model.config.routed_scaling_factor))
    torch.testing.assert_close(routed + shared, output)


def test_logits_are_float32_on_a_bfloat16_load(prompt):
    model = StandardizedTransformer(twin_of(recorded(NANO_2)).to(torch.bfloat16))
    with model.trace(prompt(model)):
        leaving = model.layers[0].layer_output.save()
        head = model.lm_head_output.save()
        logits = model.logits.save()
    assert (leaving.dtype, head.dtype, logits.dtype) == (torch.bfloat16, torch.bfloat16, torch.float32)


def test_no_block_has_a_stream_halfway(small, prompt):
    model = small(NANO_2)
    with pytest.raises(Unavailable), model.trace(prompt(model)):
        model.layers[0].layer_mid.save()
