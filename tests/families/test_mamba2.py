"""What is particular to Mamba-2: heads of linear attention behind a norm, and a state that every call goes on from."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from encyclopedia import StandardizedTransformer
from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.families import Family, family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.twin import twin_of

REFERENCE = "AntonV/mamba2-130m-hf"
CODESTRAL = "mistralai/Mamba-Codestral-7B-v0.1"
SHOWN = [record.id for record in read_family("mamba2")[0]]


def test_the_notes_run(run_notes):
    for snippet in run_notes("mamba2"):
        assert snippet.ran_on or "downloads" in snippet.reason, f"line {snippet.line}"


def test_a_quirk_and_nothing_else_is_declared():
    declared = family("mamba2")
    assert declared == Family("mamba2", declared.title, declared.subtitle, declared.hue, quirks=("inner-norms",))


def test_parameters_agree_with_the_published_count():
    full = build_without_weights(recorded(CODESTRAL))
    assert sum(parameter.numel() for parameter in full.parameters()) == \
        recorded(CODESTRAL).published_parameters.total


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_heads_are_what_a_plain_hook_sees_enter_the_norm(small, prompt, checkpoint):
    model = small(checkpoint)
    ids = prompt(model, batch=2)
    seen = {}
    native = model._module.backbone.layers[1].mixer
    hooks = [native.norm.register_forward_hook(lambda _, inputs, output: seen.update(norm=(inputs, output))),
             native.out_proj.register_forward_hook(lambda _, inputs, output: seen.update(out=(inputs, output)))]
    try:
        model._module(ids)
    finally:
        for hook in hooks:
            hook.remove()
    mixer = model.layers[1].linear_attn
    with model.trace(ids):
        heads = mixer.attention_head_outputs.save()
        output = mixer.attention_output.save()
    (entering, gate), normed = seen["norm"]
    assert torch.equal(heads.flatten(2), entering)
    assert gate.shape == entering.shape
    assert torch.equal(seen["out"][0][0], normed)
    assert torch.equal(output, seen["out"][1])


def test_the_norm_ties_a_head_to_its_group_and_to_no_other(small, prompt):
    model = small(CODESTRAL)
    mixer = model.layers[0].linear_attn
    native, ids = mixer._module, prompt(model)
    assert native.n_groups > 1
    with model.trace(ids):
        before = mixer.out_proj.input.save()
    with model.trace(ids):
        fewer = mixer.attention_head_outputs.clone()
        fewer[:, :, 0] = 0
        mixer.attention_head_outputs = fewer
        after = mixer.out_proj.input.save()
    changed = (before != after).unflatten(-1, (native.num_heads, native.head_dim)).any(-1).flatten(0, 1).any(0)
    assert changed.nonzero().flatten().tolist() == list(range(native.num_heads // native.n_groups))


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_calls_of_any_length_go_on_from_a_cache(small, prompt, checkpoint):
    model = small(checkpoint)
    native, ids = model._module, prompt(model)
    whole = native(ids).logits
    cache = native(ids[:, :4], use_cache=True).cache
    parts = [native(part, cache=cache, use_cache=True).logits for part in (ids[:, 4:9], ids[:, 9:10], ids[:, 10:])]
    torch.testing.assert_close(torch.cat(parts, 1), whole[:, 4:], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_each_head_forgets_by_one_number_per_token(small, prompt, checkpoint):
    model = small(checkpoint)
    mixer = model.layers[0].linear_attn
    native, ids = mixer._module, prompt(model)
    cache = model._module(ids[:, :5], use_cache=True).cache
    with model.trace(ids[:, 5:7], cache=cache):
        steps = mixer.source.mamba2_chunk_scan_0.inputs[0][1].save()
        clean = mixer.state_output.save()
    cache = model._module(ids[:, :5], use_cache=True).cache
    with model.trace(ids[:, 5:7], cache=cache):
        before = mixer.state_input.save()
        mixer.state_input = torch.zeros_like(mixer.state_input)
        emptied = mixer.state_output.save()
    left = (-native.A_log.exp() * F.softplus(steps + native.dt_bias).sum(1)).exp()
    torch.testing.assert_close(clean - emptied, left[..., None, None] * before, rtol=1e-4, atol=1e-5)


def test_stream_of_a_bfloat16_load_is_float32(prompt):
    model = StandardizedTransformer(twin_of(recorded(REFERENCE)).to(torch.bfloat16))
    with model.trace(prompt(model)):
        added = model.layers[0].linear_attn.attention_output.save()
        leaving = model.layers[0].layer_output.save()
    assert (added.dtype, leaving.dtype) == (torch.bfloat16, torch.float32)
