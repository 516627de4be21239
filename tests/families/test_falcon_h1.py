"""What is particular to Falcon-H1: two mixers side by side, and constants nearly everywhere."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

import encyclopedia.model.transformer
from encyclopedia.checkpoints import recorded
from encyclopedia.checks.claims import BrokenClaim
from encyclopedia.checks.run import check_model
from encyclopedia.families import Declared, family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.twin import PROMPTS, prompt_for, twin_of

SHOWN = "tiiuae/Falcon-H1-0.5B-Instruct"


def test_the_notes_run(run_notes):
    for snippet in run_notes("falcon_h1"):
        assert snippet.ran_on or "downloads" in snippet.reason, f"line {snippet.line}"


def test_every_constant_of_the_config_is_another_than_one_on_the_twin(small):
    config = small(SHOWN).config
    constants = [getattr(config, key) for key in (
        "embedding_multiplier", "lm_head_multiplier", "key_multiplier", "attention_out_multiplier",
        "attention_in_multiplier", "ssm_in_multiplier", "ssm_out_multiplier")]
    for constant in (*constants, *config.ssm_multipliers, *config.mlp_multipliers):
        assert constant != 1


def test_mixers_add_side_by_side_times_their_constants(small, prompt):
    model = small(SHOWN)
    ids = prompt(model, batch=2)
    for block in model.layers:
        native, seen = block._module, {}
        hooks = [native.mamba.register_forward_hook(lambda _, i, output, seen=seen: seen.update(mamba=output)),
                 native.self_attn.register_forward_hook(lambda _, i, output, seen=seen: seen.update(attn=output[0])),
                 native.pre_ff_layernorm.register_forward_hook(lambda _, i, o, seen=seen: seen.update(mid=i[0]))]
        try:
            model._module(ids)
        finally:
            for hook in hooks:
                hook.remove()
        with model.trace(ids):
            entering = block.layer_input.save()
            from_mamba = block.linear_attn.attention_output.save()
            from_attention = block.self_attn.attention_output.save()
            middle = block.layer_mid.save()
        assert torch.equal(from_mamba, seen["mamba"])
        assert torch.equal(from_attention, seen["attn"])
        assert torch.equal(middle, seen["mid"])
        added = model.config.ssm_out_multiplier * from_mamba + model.config.attention_out_multiplier * from_attention
        torch.testing.assert_close(entering + added, middle)
        assert not torch.allclose(entering + from_mamba + from_attention, middle, atol=1e-2)


def test_one_norm_feeds_both_mixers(small, prompt):
    model = small(SHOWN)
    block, ids = model.layers[0], prompt(model)
    with model.trace(ids):
        block.attention_norm_output = torch.zeros_like(block.attention_norm_output)
        read_by_mamba = block.linear_attn.in_proj.input.save()
        read_by_attention = block.self_attn.q_proj.input.save()
    assert read_by_mamba.abs().max() == read_by_attention.abs().max() == 0


def test_neurons_and_activation_have_the_first_constant_in_them(small, prompt):
    model = small(SHOWN)
    block = model.layers[1]
    before, after = model.config.mlp_multipliers
    with model.trace(prompt(model)):
        gate = block.mlp.gate_proj.output.save()
        activation = block.mlp.mlp_activation.save()
        neurons = block.mlp.mlp_neurons.save()
        output = block.mlp.mlp_output.save()
    torch.testing.assert_close(activation, F.silu(gate * before))
    torch.testing.assert_close(output, block.mlp.down_proj._module(neurons) * after)


def test_ablating_a_recurrent_head_takes_its_term_away_and_nothing_else(small, prompt):
    model = small(SHOWN)
    mixer, ids = model.layers[0].linear_attn, prompt(model)
    native = mixer._module
    with model.trace(ids):
        before = mixer.out_proj.input.save()
    with model.trace(ids):
        fewer = mixer.attention_head_outputs.clone()
        fewer[:, :, 1] = 0
        mixer.attention_head_outputs = fewer
        after = mixer.out_proj.input.save()
    changed = (before != after).unflatten(-1, (native.num_heads, native.head_dim)).flatten(0, 1).any(0).any(-1)
    assert changed.nonzero().flatten().tolist() == [1]


def test_logits_are_the_heads_product_times_a_constant(small, prompt):
    model = small(SHOWN)
    with model.trace(prompt(model)):
        head = model.lm_head_output.save()
        logits = model.logits.save()
    torch.testing.assert_close(head * model.config.lm_head_multiplier, logits)


@pytest.mark.parametrize(("native", "value", "place"), [
    ("FalconH1MLP", "mlp_neurons", "act_fn.output"),
    ("FalconH1DecoderLayer", "layer_mid", "input"),
    ("FalconH1DecoderLayer", "attention_norm_output", "self_attn.q_proj.input"),
])
def test_a_wrong_place_breaks_its_check(monkeypatch, native, value, place):
    declared = family("falcon_h1")
    wrong = replace(declared, classes={**declared.classes, native: Declared(locations={value: place})})
    monkeypatch.setattr(encyclopedia.model.transformer, "family", lambda model_type: wrong)
    twin = twin_of(recorded(SHOWN))
    with pytest.raises(BrokenClaim, match=value):
        check_model(twin, wrong, prompt_for(twin, batch=PROMPTS), writing=False)


def test_name_of_the_checkpoint_is_its_size():
    full = build_without_weights(recorded(SHOWN))
    total = sum(parameter.numel() for parameter in full.parameters())
    assert round(total / 1e9, 1) == 0.5
