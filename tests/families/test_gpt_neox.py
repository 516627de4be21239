"""What is particular to GPT-NeoX: sublayers side by side, projections fused by head, a rotary on part of a head."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import encyclopedia.model.transformer
from encyclopedia import StandardizedTransformer, Unavailable
from encyclopedia.capture.parameters import count_parameters
from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.checks.claims import BrokenClaim
from encyclopedia.checks.run import check_model
from encyclopedia.families import Declared, Family, family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.structure.derive import structure_of
from encyclopedia.twin import PROMPTS, prompt_for, twin_of

SHOWN = [record.id for record in read_family("gpt_neox")[0]]
PYTHIA = "EleutherAI/pythia-70m"


def test_the_notes_run(run_notes):
    for snippet in run_notes("gpt_neox"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


def test_nothing_is_declared():
    declared = family("gpt_neox")
    assert declared == Family("gpt_neox", declared.title, declared.subtitle, declared.hue)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_parameters_agree_with_the_published_count(checkpoint):
    record = recorded(checkpoint)
    full = build_without_weights(record)
    counted = count_parameters(full, structure_of(full), family("gpt_neox"))
    assert counted.total == counted.active == record.published_parameters.total


def test_both_sublayers_read_the_blocks_input(small, prompt):
    model = small(PYTHIA)
    block = model.layers[1]
    read = {}
    hooks = [
        getattr(block._module, name).register_forward_hook(
            lambda module, args, output, name=name: read.update({name: args[0]}))
        for name in ("input_layernorm", "post_attention_layernorm")
    ]
    with model.trace(prompt(model)):
        entering = block.layer_input.save()
    for hook in hooks:
        hook.remove()
    assert torch.equal(read["input_layernorm"], entering)
    assert torch.equal(read["post_attention_layernorm"], entering)


def test_there_is_no_stream_between_them(small, prompt):
    model = small(PYTHIA)
    with pytest.raises(Unavailable, match="no place where layer_mid"), model.trace(prompt(model)):
        model.layers[0].layer_mid.save()


def test_a_sequential_config_has_the_stream_between_them(prompt):
    record = recorded(PYTHIA)
    sequential = record.model_copy(update={"config": {**record.config, "use_parallel_residual": False}})
    model = StandardizedTransformer(twin_of(sequential))
    block = model.layers[1]
    with model.trace(prompt(model)):
        entering = block.layer_input.save()
        attention = block.self_attn.attention_output.save()
        middle = block.layer_mid.save()
        mlp = block.mlp.mlp_output.save()
        leaving = block.layer_output.save()
    torch.testing.assert_close(entering + attention, middle)
    torch.testing.assert_close(middle + mlp, leaving)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_projections_are_fused_by_head(small, prompt, checkpoint):
    model = small(checkpoint)
    attn = model.layers[0].self_attn
    with model.trace(prompt(model)):
        fused = attn.query_key_value.output.save()
        queries = attn.attention_queries.save()
        values = attn.attention_values.save()
    by_head = fused.unflatten(-1, (attn.num_heads, 3, attn.head_dim))
    assert torch.equal(values, by_head[..., 2, :].transpose(1, 2))
    rotated = attn._module.rotary_ndims
    assert 0 < rotated < attn.head_dim
    assert torch.equal(queries[..., rotated:], by_head[..., 0, :].transpose(1, 2)[..., rotated:])


def test_neurons_declared_in_front_of_the_activation_fail_their_check(monkeypatch):
    declared = family("gpt_neox")
    wrong = replace(declared, classes={"GPTNeoXMLP": Declared(locations={"mlp_neurons": "dense_h_to_4h.output"})})
    monkeypatch.setattr(encyclopedia.model.transformer, "family", lambda model_type: wrong)
    twin = twin_of(recorded(PYTHIA))
    with pytest.raises(BrokenClaim, match="mlp_neurons"):
        check_model(twin, wrong, prompt_for(twin, batch=PROMPTS), writing=False)
