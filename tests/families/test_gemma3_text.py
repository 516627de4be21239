"""What is particular to Gemma 3, on small random models with every parameter moved off its initial value."""

from __future__ import annotations

import pytest
import torch

from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.families import Family, family
from encyclopedia.instantiate import build_without_weights

RECORDS = [record for record in read_family("gemma3_text")[0] if record.reason is None]
SHOWN = [record.id for record in RECORDS]
REFERENCE = "google/gemma-3-1b-pt"
STRETCHED = {"google/gemma-3-4b-pt", "google/gemma-3-12b-pt"}


def test_the_notes_run(run_notes):
    for snippet in run_notes("gemma3_text"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


def test_nothing_is_declared():
    declared = family("gemma3_text")
    assert declared == Family("gemma3_text", declared.title, declared.subtitle, declared.hue)


@pytest.mark.parametrize("record", [record for record in RECORDS if record.published_parameters], ids=lambda r: r.id)
def test_parameters_agree_with_the_published_count(record):
    counted = sum(parameter.numel() for parameter in build_without_weights(record).parameters())
    assert counted == record.published_parameters.total


def test_contributions_are_the_second_norms_outputs(small, prompt):
    model = small(REFERENCE)
    ids, native = prompt(model), model.layers[0]._module
    hooked = {}
    handles = [
        module.register_forward_hook(lambda _module, _arguments, output, name=name: hooked.update({name: output}))
        for name, module in native.named_children()
    ]
    try:
        model._module(ids)
    finally:
        for handle in handles:
            handle.remove()
    with model.trace(ids):
        entering = model.layers[0].layer_input.save()
        attention = model.layers[0].self_attn.attention_output.save()
        mlp = model.layers[0].mlp.mlp_output.save()
        leaving = model.layers[0].layer_output.save()
    torch.testing.assert_close(attention, hooked["post_attention_layernorm"])
    torch.testing.assert_close(mlp, hooked["post_feedforward_layernorm"])
    torch.testing.assert_close(entering + attention + mlp, leaving)
    bare = entering + hooked["self_attn"][0] + hooked["mlp"]
    assert (bare - leaving).abs().max() > 0.1 * leaving.abs().max()


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_keys_are_normalised_per_head_with_one_plus_the_weight(small, prompt, checkpoint):
    attn = small(checkpoint).layers[1].self_attn
    model = small(checkpoint)
    with model.trace(prompt(model)):
        projected = attn.k_proj.output.save()
        keys = attn.attention_keys.save()
    cut = projected.unflatten(-1, (-1, attn.head_dim)).transpose(1, 2)
    unit = cut * cut.pow(2).mean(-1, keepdim=True).rsqrt()
    weight = attn.k_norm._module.weight
    # The first position is not turned.
    torch.testing.assert_close(keys[:, :, 0], (unit * (1 + weight))[:, :, 0], rtol=1e-4, atol=1e-4)
    assert not torch.allclose(keys[:, :, 0], (unit * weight)[:, :, 0], atol=1e-1)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_full_blocks_rotate_more_slowly(small, checkpoint):
    rotary = small(checkpoint)._module.model.rotary_emb
    windowed, full = rotary.sliding_attention_inv_freq, rotary.full_attention_inv_freq
    assert (full[1:] < windowed[1:]).all()
    assert windowed[0] / full[0] == pytest.approx(8 if checkpoint in STRETCHED else 1)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_every_sixth_block_sees_everything(checkpoint):
    types = build_without_weights(recorded(checkpoint)).config.layer_types
    full = [index for index, sort in enumerate(types) if sort == "full_attention"]
    assert full == list(range(5, len(types), 6))


def test_nothing_is_capped(small, prompt):
    model = small(REFERENCE)
    attn, ids = model.layers[1].self_attn, prompt(model)
    with model.trace(ids):
        scores = attn.attention_scores.save()
    with model.trace(ids):
        attn.attention_queries = attn.attention_queries * 1000
        larger = attn.attention_scores.save()
        head = model.lm_head_output.save()
        logits = model.logits.save()
    seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    torch.testing.assert_close(larger[..., seen], 1000 * scores[..., seen], rtol=1e-4, atol=1e-2)
    assert torch.equal(head, logits)
