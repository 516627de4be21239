"""What is particular to Gemma 2, on small random models with every parameter moved off its initial value."""

from __future__ import annotations

import pytest
import torch

from encyclopedia.checkpoints import BrokenConfig, read_family, recorded
from encyclopedia.families import Family, family
from encyclopedia.instantiate import build_without_weights

SHOWN = [record.id for record in read_family("gemma2")[0] if record.reason is None]
SMALLEST = "google/gemma-2-2b"


def test_the_notes_run(run_notes):
    for snippet in run_notes("gemma2"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


def test_nothing_is_declared():
    declared = family("gemma2")
    assert declared == Family("gemma2", declared.title, declared.subtitle, declared.hue)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_parameters_agree_with_the_published_count(checkpoint):
    record = recorded(checkpoint)
    counted = sum(parameter.numel() for parameter in build_without_weights(record).parameters())
    assert counted == record.published_parameters.total


def test_contributions_are_the_second_norms_outputs(small, prompt):
    model = small(SMALLEST)
    ids, native = prompt(model), model.layers[1]._module
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
        entering = model.layers[1].layer_input.save()
        attention = model.layers[1].self_attn.attention_output.save()
        mlp = model.layers[1].mlp.mlp_output.save()
        leaving = model.layers[1].layer_output.save()
    torch.testing.assert_close(attention, hooked["post_attention_layernorm"])
    torch.testing.assert_close(mlp, hooked["post_feedforward_layernorm"])
    torch.testing.assert_close(entering + attention + mlp, leaving)
    bare = entering + hooked["self_attn"][0] + hooked["mlp"]
    assert (bare - leaving).abs().max() > 0.1 * leaving.abs().max()


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_scores_are_capped_in_front_of_the_mask(small, prompt, checkpoint):
    model = small(checkpoint)
    attn, ids = model.layers[1].self_attn, prompt(model)
    with model.trace(ids):
        # Products large enough for the cap to be felt.
        attn.attention_queries = attn.attention_queries * 200
        queries = attn.attention_queries.save()
        keys = attn.attention_keys.save()
        scores = attn.attention_scores.save()
    scale = recorded(checkpoint).config["query_pre_attn_scalar"] ** -0.5
    product = queries @ keys.repeat_interleave(attn.num_heads // attn.num_kv_heads, 1).mT * scale
    seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    torch.testing.assert_close(scores[..., seen], 50 * torch.tanh(product / 50)[..., seen])
    assert product[..., seen].abs().max() > 50 >= scores[..., seen].abs().max()
    assert (scores[..., ~seen] < -1e30).all()


def test_the_scale_is_not_the_head_widths_on_27b():
    configs = [recorded(checkpoint).config for checkpoint in SHOWN]
    assert [config["query_pre_attn_scalar"] == config["head_dim"] for config in configs] == [True, True, False]
    largest = configs[-1]
    assert largest["query_pre_attn_scalar"] == largest["hidden_size"] // largest["num_attention_heads"]


def test_windows_alternate_from_the_first_block_on(small, prompt):
    model = small(SMALLEST)
    ids = prompt(model)
    assert model.config.sliding_window < ids.shape[1]
    patterns = []
    with model.trace(ids):
        for block in model.layers:
            patterns.append(block.self_attn.attention_probabilities.save())
    reached = [(pattern[0, 0, -1] > 0).sum().item() for pattern in patterns]
    assert reached == [model.config.sliding_window, ids.shape[1]]
    types = build_without_weights(recorded(SMALLEST)).config.layer_types
    assert set(types[::2]) == {"sliding_attention"}
    assert set(types[1::2]) == {"full_attention"}


def test_logits_are_capped_behind_the_head(small, prompt):
    model = small(SMALLEST)
    with model.trace(prompt(model)):
        model.lm_head_output = model.lm_head_output * 100
        head = model.lm_head_output.save()
        logits = model.logits.save()
    torch.testing.assert_close(30 * torch.tanh(head / 30), logits)
    assert head.abs().max() > 30 >= logits.abs().max()


def test_sdpa_is_refused():
    with pytest.raises(BrokenConfig, match="scaled_dot_product_attention"):
        build_without_weights(recorded(SMALLEST), attn_implementation="sdpa")
    assert build_without_weights(recorded(SMALLEST)).config._attn_implementation == "eager"
