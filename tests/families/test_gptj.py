"""What is particular to GPT-J: one norm for two sublayers, a rotary of neighbours, a bias on the head."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import encyclopedia.model.transformer
from encyclopedia import Unavailable
from encyclopedia.capture.parameters import count_parameters
from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.checks.claims import BrokenClaim
from encyclopedia.checks.run import check_model
from encyclopedia.families import Declared, Family, family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.structure.derive import structure_of
from encyclopedia.twin import PROMPTS, prompt_for, twin_of

SHOWN = [record.id for record in read_family("gptj")[0] if record.reason is None]
GPTJ = "EleutherAI/gpt-j-6b"


def test_the_notes_run(run_notes):
    for snippet in run_notes("gptj"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


def test_nothing_is_declared():
    declared = family("gptj")
    assert declared == Family("gptj", declared.title, declared.subtitle, declared.hue)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_parameters_agree_with_the_published_count(checkpoint):
    record = recorded(checkpoint)
    full = build_without_weights(record)
    counted = count_parameters(full, structure_of(full), family("gptj"))
    assert counted.total == counted.active == record.published_parameters.total


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_one_norm_feeds_both_sublayers(small, prompt, checkpoint):
    model = small(checkpoint)
    block = model.layers[1]
    read = {}
    hooks = [
        block._module.attn.register_forward_pre_hook(
            lambda module, args, kwargs: read.update(attention=kwargs["hidden_states"]), with_kwargs=True),
        block._module.mlp.register_forward_pre_hook(lambda module, args: read.update(mlp=args[0])),
    ]
    with model.trace(prompt(model)):
        entering = block.layer_input.save()
        for_attention = block.attention_norm_output.save()
        for_mlp = block.mlp_input.save()
    for hook in hooks:
        hook.remove()
    assert read["attention"] is read["mlp"]
    assert torch.equal(for_attention, read["attention"])
    assert torch.equal(for_mlp, read["mlp"])
    torch.testing.assert_close(block._module.ln_1(entering), for_mlp)


def test_there_is_no_stream_between_them(small, prompt):
    model = small(GPTJ)
    with pytest.raises(Unavailable, match="no place where layer_mid"), model.trace(prompt(model)):
        model.layers[0].layer_mid.save()


def test_rotary_keeps_the_norm_of_every_pair_of_neighbours(small, prompt):
    model = small(GPTJ)
    attn, rotated = model.layers[0].self_attn, model.config.rotary_dim
    with model.trace(prompt(model)):
        projected = attn.k_proj.output.save()
        keys = attn.attention_keys.save()
    plain = projected.unflatten(-1, (attn.num_heads, attn.head_dim)).transpose(1, 2)
    pairs = [tensor[..., :rotated].unflatten(-1, (-1, 2)).norm(dim=-1) for tensor in (plain, keys)]
    torch.testing.assert_close(*pairs)
    halves = [tensor[..., :rotated].unflatten(-1, (2, -1)).norm(dim=-2) for tensor in (plain, keys)]
    assert not torch.allclose(*halves, atol=1e-2)
    assert torch.equal(keys[..., rotated:], plain[..., rotated:])


def test_the_heads_bias_is_in_the_logits(small, prompt):
    model = small(GPTJ)
    with model.trace(prompt(model)):
        normed = model.final_norm_output.save()
        logits = model.logits.save()
    head = model.lm_head._module
    assert head.bias.abs().min() > 0
    torch.testing.assert_close(logits - normed @ head.weight.T, head.bias.expand_as(logits), rtol=1e-4, atol=1e-4)


def test_neurons_declared_in_front_of_the_activation_fail_their_check(monkeypatch):
    declared = family("gptj")
    wrong = replace(declared, classes={"GPTJMLP": Declared(locations={"mlp_neurons": "fc_in.output"})})
    monkeypatch.setattr(encyclopedia.model.transformer, "family", lambda model_type: wrong)
    twin = twin_of(recorded(GPTJ))
    with pytest.raises(BrokenClaim, match="mlp_neurons"):
        check_model(twin, wrong, prompt_for(twin, batch=PROMPTS), writing=False)
