"""What is particular to OLMo 2, on small random models with every parameter moved off its initial value."""

from __future__ import annotations

import pytest
import torch

from encyclopedia import Unavailable
from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.families import Family, family
from encyclopedia.instantiate import build_without_weights

SHOWN = [record.id for record in read_family("olmo2")[0] if record.reason is None]
SMALLEST = "allenai/OLMo-2-0425-1B"


def test_the_notes_run(run_notes):
    for snippet in run_notes("olmo2"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


def test_nothing_is_declared():
    declared = family("olmo2")
    assert declared == Family("olmo2", declared.title, declared.subtitle, declared.hue)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_parameters_agree_with_the_published_count(checkpoint):
    record = recorded(checkpoint)
    counted = sum(parameter.numel() for parameter in build_without_weights(record).parameters())
    assert counted == record.published_parameters.total


def test_sublayers_read_the_stream_and_add_their_norms_output(small, prompt):
    model = small(SMALLEST)
    ids, native = prompt(model), model.layers[1]._module
    hooked, handles = {}, []
    for name, module in native.named_children():
        handles.append(module.register_forward_hook(
            lambda _module, arguments, keywords, output, name=name:
                hooked.update({name: (arguments[0] if arguments else keywords["hidden_states"], output)}),
            with_kwargs=True))
    try:
        model._module(ids)
    finally:
        for handle in handles:
            handle.remove()
    with model.trace(ids):
        entering = model.layers[1].layer_input.save()
        attention = model.layers[1].self_attn.attention_output.save()
        middle = model.layers[1].layer_mid.save()
        mlp = model.layers[1].mlp.mlp_output.save()
        leaving = model.layers[1].layer_output.save()
    torch.testing.assert_close(hooked["self_attn"][0], entering)
    torch.testing.assert_close(hooked["mlp"][0], middle)
    torch.testing.assert_close(hooked["post_attention_layernorm"][1], attention)
    torch.testing.assert_close(hooked["post_feedforward_layernorm"][1], mlp)
    torch.testing.assert_close(entering + attention + mlp, leaving)
    bare = entering + hooked["self_attn"][1][0] + hooked["mlp"][1]
    assert (bare - leaving).abs().max() > 0.1 * leaving.abs().max()


def test_there_is_no_norm_in_front(small, prompt):
    model = small(SMALLEST)
    missing = {name for name, reason in model.layers[0].support().items() if reason is not None}
    assert missing == {"attention_norm_output", "mlp_norm_output"}
    with pytest.raises(Unavailable, match="no place"), model.trace(prompt(model)):
        model.layers[0].mlp_norm_output.save()


@pytest.mark.parametrize("projection", ["q", "k"])
def test_query_and_key_norms_span_all_heads(small, prompt, projection):
    model = small(SMALLEST)
    attn = model.layers[0].self_attn
    with model.trace(prompt(model)):
        projected = getattr(attn, f"{projection}_proj").output.save()
        normed = getattr(attn, f"{projection}_norm").output.save()
    weight = getattr(attn._module, f"{projection}_norm").weight
    over_all = weight * projected * projected.pow(2).mean(-1, keepdim=True).rsqrt()
    cut = projected.unflatten(-1, (-1, attn.head_dim))
    per_head = weight * (cut * cut.pow(2).mean(-1, keepdim=True).rsqrt()).flatten(-2)
    torch.testing.assert_close(normed, over_all, rtol=1e-3, atol=1e-3)
    assert not torch.allclose(normed, per_head, rtol=1e-2, atol=1e-2)


def test_values_are_not_normalised(small, prompt):
    model = small(SMALLEST)
    attn = model.layers[0].self_attn
    with model.trace(prompt(model)):
        projected = attn.v_proj.output.save()
        values = attn.attention_values.save()
    torch.testing.assert_close(values, projected.unflatten(-1, (-1, attn.head_dim)).transpose(1, 2))


def test_the_head_has_its_own_table(small):
    model = small(SMALLEST)
    assert model.lm_head._module.weight is not model.embed_tokens._module.weight
