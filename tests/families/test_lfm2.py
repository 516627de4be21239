"""What is particular to LFM2: a gated convolution over a few tokens, and names of its own."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.families import Family, family
from encyclopedia.instantiate import build_without_weights

SMALLEST = "LiquidAI/LFM2-350M"
SHOWN = [record.id for record in read_family("lfm2")[0]]


def test_the_notes_run(run_notes):
    for snippet in run_notes("lfm2"):
        assert snippet.ran_on or "downloads" in snippet.reason, f"line {snippet.line}"


def test_nothing_is_declared():
    declared = family("lfm2")
    assert declared == Family("lfm2", declared.title, declared.subtitle, declared.hue)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_parameters_agree_with_the_published_count(checkpoint):
    full = build_without_weights(recorded(checkpoint))
    assert sum(parameter.numel() for parameter in full.parameters()) == \
        recorded(checkpoint).published_parameters.total


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_first_and_last_block_convolve(checkpoint):
    full = build_without_weights(recorded(checkpoint))
    assert [hasattr(full.model.layers[i], "conv") for i in (0, -1)] == [True, True]


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_contributions_are_what_plain_hooks_see(small, prompt, checkpoint):
    model = small(checkpoint)
    ids = prompt(model, batch=2)
    for block in model.layers:
        native, seen = block._module, {}
        mixer = native.self_attn if native.is_attention_layer else native.conv
        hooks = [module.register_forward_hook(lambda _, inputs, output, name=name, seen=seen: seen.update(
            {name: output[0] if isinstance(output, tuple) else output}))
            for name, module in {"mixer": mixer, "mlp": native.feed_forward}.items()]
        try:
            model._module(ids)
        finally:
            for hook in hooks:
                hook.remove()
        host = block.self_attn if native.is_attention_layer else block.linear_attn
        with model.trace(ids):
            mixed = host.attention_output.save()
            from_mlp = block.mlp.mlp_output.save()
        assert torch.equal(mixed, seen["mixer"])
        assert torch.equal(from_mlp, seen["mlp"])


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_convolution_reaches_a_few_positions_and_keeps_channels_apart(small, prompt, checkpoint):
    model = small(checkpoint)
    mixer, ids = model.layers[0].linear_attn, prompt(model)
    width = model.config.conv_L_cache
    with model.trace(ids):
        clean = mixer.out_proj.input.save()
    with model.trace(ids):
        value = mixer.in_proj.output.clone()
        value[:, 3, 2 * model.config.hidden_size + 5] += 1
        mixer.in_proj.output = value
        edited = mixer.out_proj.input.save()
    moved = (clean != edited)[0].nonzero()
    assert moved[:, 0].tolist() == list(range(3, 3 + width))
    assert set(moved[:, 1].tolist()) == {5}


def test_gates_are_bare_products(small, prompt):
    model = small(SMALLEST)
    block, ids = model.layers[0], prompt(model)
    native = block.linear_attn._module
    with model.trace(ids):
        normed = block.attention_norm_output.save()
        output = block.linear_attn.attention_output.save()
    before, behind, x = native.in_proj(normed).mT.chunk(3, dim=1)
    width = native.conv.kernel_size[0]
    mixed = F.conv1d(F.pad(before * x, (width - 1, 0)), native.conv.weight, groups=x.shape[1])
    torch.testing.assert_close(native.out_proj((behind * mixed).mT), output)


def test_a_cache_holds_the_last_products(small, prompt):
    model = small(SMALLEST)
    ids = prompt(model)
    with model.trace(ids):
        projected = model.layers[0].linear_attn.in_proj.output.save()
    before, _, x = projected.chunk(3, dim=-1)
    held = next(iter(model._module(ids, use_cache=True).cache.layers[0].conv_states.values()))
    torch.testing.assert_close(held, (before * x)[:, -held.shape[-1]:].mT)
    assert held.shape[-1] == model.config.conv_L_cache
