"""What is particular to Mamba: one mixer per block, a state that a longer call drops, a float32 stream."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from encyclopedia import StandardizedTransformer, Unavailable
from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.families import Family, family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.twin import twin_of

SHOWN = [record.id for record in read_family("mamba")[0]]
SMALLEST = "state-spaces/mamba-130m-hf"


def test_the_notes_run(run_notes):
    for snippet in run_notes("mamba"):
        assert snippet.ran_on or "downloads" in snippet.reason, f"line {snippet.line}"


def test_nothing_is_declared():
    declared = family("mamba")
    assert declared == Family("mamba", declared.title, declared.subtitle, declared.hue)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_parameters_agree_with_the_published_count(checkpoint):
    record = recorded(checkpoint)
    full = build_without_weights(record)
    assert sum(parameter.numel() for parameter in full.parameters()) == record.published_parameters.total


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_values_are_what_plain_hooks_see_enter_and_leave_the_parts(small, prompt, checkpoint):
    model = small(checkpoint)
    ids = prompt(model, batch=2)
    seen = {}
    native = model._module.backbone.layers[1].mixer
    hooks = [module.register_forward_hook(lambda _, inputs, output, name=name: seen.update({name: (inputs[0], output)}))
             for name, module in native.named_children()]
    try:
        model._module(ids)
    finally:
        for hook in hooks:
            hook.remove()
    mixer = model.layers[1].linear_attn
    with model.trace(ids):
        values = mixer.attention_values.save()
        keys = mixer.attention_keys.save()
        queries = mixer.attention_queries.save()
        output = mixer.attention_output.save()
    assert torch.equal(values, seen["x_proj"][0])
    _, written, read = seen["x_proj"][1].split([native.time_step_rank, *[native.ssm_state_size] * 2], dim=-1)
    assert torch.equal(keys.squeeze(2), written)
    assert torch.equal(queries.squeeze(2), read)
    assert torch.equal(output, seen["out_proj"][1])


def test_gate_is_inside_the_scan_so_no_head_outputs_are_served(small, prompt):
    model = small(SMALLEST)
    mixer = model.layers[0].linear_attn
    with model.trace(prompt(model)):
        projected = mixer.in_proj.output.save()
        scanned = mixer.source.mamba_selective_scan_0.output[0].save()
        entering = mixer.out_proj.input.save()
    torch.testing.assert_close(scanned.mT, entering)
    closed = F.silu(projected.chunk(2, dim=-1)[1]).abs() < 1e-3
    assert (entering[closed].abs() <= 0.05 * entering.abs().max()).all()
    with pytest.raises((AttributeError, Unavailable)), model.trace(prompt(model)):
        mixer.attention_head_outputs.save()


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_going_on_from_a_cache_is_right_one_token_at_a_time_only(small, prompt, checkpoint):
    model = small(checkpoint)
    native, ids = model._module, prompt(model)
    whole = native(ids).logits
    cache = native(ids[:, :6], use_cache=True).cache
    stepped = native(ids[:, 6:7], cache=cache, use_cache=True).logits
    torch.testing.assert_close(stepped, whole[:, 6:7], rtol=1e-4, atol=1e-4)
    cache = native(ids[:, :6], use_cache=True).cache
    at_once = native(ids[:, 6:], cache=cache, use_cache=True).logits
    assert (at_once - whole[:, 6:]).abs().max() > 0.05 * whole.abs().max()


def test_a_longer_call_keeps_the_convolutions_past_and_starts_the_scan_from_zero(small, prompt):
    model = small(SMALLEST)
    ids = prompt(model)
    mixer = model.layers[0].linear_attn
    with model.trace(ids):
        values = mixer.attention_values.save()
    cache = model._module(ids[:, :6], use_cache=True).cache
    with model.trace(ids[:, 6:], cache=cache):
        later_values = mixer.attention_values.save()
        later_state = mixer.state_output.save()
    torch.testing.assert_close(later_values, values[:, 6:])
    native = mixer._module
    keys = native.x_proj(later_values)[..., native.time_step_rank:][..., :native.ssm_state_size]
    steps = F.softplus(native.dt_proj(native.x_proj(later_values)[..., :native.time_step_rank]))
    state = torch.zeros_like(later_state)
    for t in range(later_values.shape[1]):
        decay = (-native.A_log.exp() * steps[:, t, :, None]).exp()
        state = decay * state + (steps * later_values)[:, t, :, None] * keys[:, t, None]
    torch.testing.assert_close(later_state, state)


def test_padded_positions_write_nothing_where_a_mask_says_so(small, prompt):
    model = small(SMALLEST)
    native, ids = model._module, prompt(model)
    padded = torch.cat([ids[:, :4], ids], dim=1)
    mask = torch.ones_like(padded)
    mask[:, :4] = 0
    alone = native(ids).logits
    torch.testing.assert_close(native(padded, attention_mask=mask).logits[:, 4:], alone, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(native(padded).logits[:, 4:], alone, atol=1e-2)


def test_stream_of_a_bfloat16_load_is_float32(prompt):
    model = StandardizedTransformer(twin_of(recorded(SMALLEST)).to(torch.bfloat16))
    with model.trace(prompt(model)):
        embedded = model.token_embeddings.save()
        added = model.layers[0].linear_attn.attention_output.save()
        leaving = model.layers[0].layer_output.save()
    assert (embedded.dtype, added.dtype, leaving.dtype) == (torch.bfloat16, torch.bfloat16, torch.float32)


def test_a_written_state_is_used_by_the_step_and_does_not_reach_the_cache(small, prompt):
    model = small(SMALLEST)
    ids = prompt(model)
    mixer = model.layers[1].linear_attn

    def state(cache) -> torch.Tensor:
        return next(iter(cache.layers[1].recurrent_states.values())).clone()

    def step(factor: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        cache = model._module(ids[:, :6], use_cache=True).cache
        before = state(cache)
        with model.trace(ids[:, 6:7], cache=cache):
            if factor != 1:
                mixer.state_input = mixer.state_input * factor
            output = mixer.attention_output.save()
        return before, state(cache), output

    before, after, clean = step(1)
    assert not torch.allclose(before, after, atol=1e-3)
    before, after, emptied = step(0)
    assert torch.equal(before, after)
    assert not torch.allclose(emptied, clean, atol=1e-3)
