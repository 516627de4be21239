"""What is particular to Granite 4.0 hybrids: a constant on every contribution, and a shared MLP beside the mixture."""

from __future__ import annotations

import pytest
import torch

from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.families import Family, family
from encyclopedia.instantiate import build_without_weights

SMALLEST = "ibm-granite/granite-4.0-h-350m"
TINY = "ibm-granite/granite-4.0-h-tiny"
SHOWN = [record.id for record in read_family("granitemoehybrid")[0]]
MILLIONS = {SMALLEST: 340, "ibm-granite/granite-4.0-h-1b": 1500, TINY: 7000}


def test_the_notes_run(run_notes):
    for snippet in run_notes("granitemoehybrid"):
        assert snippet.ran_on or "downloads" in snippet.reason, f"line {snippet.line}"


def test_a_quirk_and_nothing_else_is_declared():
    declared = family("granitemoehybrid")
    assert declared == Family(
        "granitemoehybrid", declared.title, declared.subtitle, declared.hue, quirks=("inner-norms",))


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_parameters_agree_with_the_size_that_is_said(checkpoint):
    full = build_without_weights(recorded(checkpoint))
    total = sum(parameter.numel() for parameter in full.parameters())
    assert total / 1e6 == pytest.approx(MILLIONS[checkpoint], rel=0.03)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_contributions_are_what_plain_hooks_see_and_enter_times_the_constant(small, prompt, checkpoint):
    model = small(checkpoint)
    ids, factor = prompt(model, batch=2), model.config.residual_multiplier
    for block in model.layers:
        native, seen = block._module, {}
        mixer = native.mamba if native.mamba is not None else native.self_attn
        mlp = native.block_sparse_moe if native.has_experts else native.shared_mlp
        hooks = [module.register_forward_hook(lambda _, inputs, output, name=name, seen=seen: seen.update(
            {name: output[0] if isinstance(output, tuple) else output}))
            for name, module in {"mixer": mixer, "mlp": mlp, "shared": native.shared_mlp}.items()]
        try:
            model._module(ids)
        finally:
            for hook in hooks:
                hook.remove()
        host = block.linear_attn if native.mamba is not None else block.self_attn
        with model.trace(ids):
            entering = block.layer_input.save()
            mixed = host.attention_output.save()
            middle = block.layer_mid.save()
            from_mlp = block.mlp.mlp_output.save()
            leaving = block.layer_output.save()
        assert torch.equal(mixed, seen["mixer"])
        assert torch.equal(from_mlp, seen["mlp"])
        torch.testing.assert_close(entering + factor * mixed, middle)
        beside = seen["shared"] if native.has_experts else 0
        torch.testing.assert_close(middle + factor * (from_mlp + beside), leaving)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_scores_have_a_scale_of_their_own_and_no_positions(small, prompt, checkpoint):
    model = small(checkpoint)
    attn = next(block for block in model.layers if block._module.self_attn is not None).self_attn
    ids = prompt(model)
    with model.trace(ids):
        projected = attn.k_proj.output.save()
        queries = attn.attention_queries.save()
        keys = attn.attention_keys.save()
        scores = attn.attention_scores.save()
    torch.testing.assert_close(projected.unflatten(-1, (attn.num_kv_heads, -1)).transpose(1, 2), keys)
    product = queries @ keys.repeat_interleave(attn.num_heads // attn.num_kv_heads, dim=1).mT
    seen = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
    torch.testing.assert_close(scores[..., seen], (product * model.config.attention_multiplier)[..., seen])
    assert not torch.allclose(scores[..., seen], (product * queries.shape[-1] ** -0.5)[..., seen], atol=1e-3)


def test_a_silenced_recurrent_head_makes_the_others_louder(small, prompt):
    model = small(SMALLEST)
    mixer, ids = model.layers[0].linear_attn, prompt(model)
    native = mixer._module
    with model.trace(ids):
        before = mixer.out_proj.input.save()
    with model.trace(ids):
        fewer = mixer.attention_head_outputs.clone()
        fewer[:, :, 0] = 0
        mixer.attention_head_outputs = fewer
        after = mixer.out_proj.input.save()
    others = slice(native.head_dim, None)
    assert (after[..., others].abs() >= before[..., others].abs()).all()
    assert (after[..., others].abs() > before[..., others].abs()).any()


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_constants_at_both_ends(small, prompt, checkpoint):
    model = small(checkpoint)
    with model.trace(prompt(model)):
        rows = model.token_embeddings.save()
        entering = model.layers[0].layer_input.save()
        head = model.lm_head_output.save()
        logits = model.logits.save()
    torch.testing.assert_close(rows * model.config.embedding_multiplier, entering)
    torch.testing.assert_close(head / model.config.logits_scaling, logits)
