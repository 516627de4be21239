"""What is particular to GPT-2: position vectors in the stream, transposed and fused projections, biases that stay."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import encyclopedia.model.transformer
from encyclopedia import StandardizedTransformer
from encyclopedia.capture.checkpoint import capture_checkpoint
from encyclopedia.capture.parameters import count_parameters
from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.checks.claims import BrokenClaim
from encyclopedia.checks.run import check_model
from encyclopedia.families import Declared, Family, family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.structure.derive import structure_of
from encyclopedia.twin import PROMPTS, prompt_for, twin_of

SHOWN = [record.id for record in read_family("gpt2")[0]]
SMALL = "openai-community/gpt2"


def test_the_notes_run(run_notes):
    for snippet in run_notes("gpt2"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


def test_a_config_that_no_one_answers_for_has_what_a_run_does_not_confirm_left_out():
    """Its eager attention is a function of its own, in which the shared one's names are not."""
    record = recorded(SMALL)
    own = record.model_copy(update={"id": "local/own", "config": {**record.config, "reorder_and_upcast_attn": True}})
    with pytest.raises(BrokenClaim):
        capture_checkpoint(own)
    facts = capture_checkpoint(own, lenient=True)
    left_out = {(value.host, value.name) for value in facts.unconfirmed}
    served = {(host.name, value.name) for host in facts.hosts for value in host.values}
    assert ("self_attn", "attention_queries") in left_out
    assert ("self_attn", "attention_output") in served
    assert not left_out & served
    assert facts.checks.identity.max_error is not None


def test_nothing_is_declared():
    declared = family("gpt2")
    assert declared == Family("gpt2", declared.title, declared.subtitle, declared.hue)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_parameters_agree_with_the_published_count(checkpoint):
    record = recorded(checkpoint)
    full = build_without_weights(record)
    counted = count_parameters(full, structure_of(full), family("gpt2"))
    assert counted.total == counted.active == record.published_parameters.total


def test_position_vectors_enter_between_the_table_and_the_first_block(small, prompt):
    model = small(SMALL)
    ids = prompt(model)
    tables = model._module.transformer
    with model.trace(ids):
        tokens = model.token_embeddings.save()
        entering = model.layers[0].layer_input.save()
    assert torch.equal(tokens, tables.wte(ids))
    assert torch.equal(entering, tokens + tables.wpe.weight[: ids.shape[1]])
    assert not torch.allclose(entering, tokens, atol=1e-2)


def test_interior_agrees_with_a_plain_hook(small, prompt):
    model = small(SMALL)
    ids, attn = prompt(model), model.layers[1].self_attn
    found = {}
    hooks = [
        attn._module.c_attn.register_forward_hook(lambda module, args, output: found.update(fused=output)),
        attn._module.c_proj.register_forward_hook(lambda module, args, output: found.update(premix=args[0])),
        attn._module.register_forward_hook(lambda module, args, output: found.update(returned=output)),
    ]
    model._module(ids)
    for hook in hooks:
        hook.remove()
    with model.trace(ids):
        values = attn.attention_values.save()
        pattern = attn.attention_probabilities.save()
        premix = attn.attention_premix.save()
        output = attn.attention_output.save()
    third = found["fused"].chunk(3, dim=-1)[2]
    assert torch.equal(values, third.unflatten(-1, (attn.num_heads, attn.head_dim)).transpose(1, 2))
    assert torch.equal(premix.flatten(2), found["premix"])
    assert torch.equal(output, found["returned"][0])
    assert torch.equal(pattern, found["returned"][1])


def test_a_linear_reading_of_the_projection_is_wrong_without_an_error(small, prompt):
    attn = small(SMALL).layers[0].self_attn
    model = small(SMALL)
    with model.trace(prompt(model)):
        premix = attn.attention_premix.save()
        output = attn.attention_output.save()
    projection = attn._module.c_proj
    torch.testing.assert_close(premix.flatten(2) @ projection.weight + projection.bias, output)
    assert not torch.allclose(premix.flatten(2) @ projection.weight.T + projection.bias, output, atol=1e-2)


def test_without_heads_the_projections_bias_stays(small, prompt):
    model = small(SMALL)
    attn = model.layers[0].self_attn
    with model.trace(prompt(model)):
        attn.attention_head_outputs = torch.zeros_like(attn.attention_head_outputs)
        output = attn.attention_output.save()
    torch.testing.assert_close(output, attn._module.c_proj.bias.expand_as(output))


def test_scores_of_a_block_are_divided_by_its_number_where_a_config_says_so(prompt):
    record = recorded(SMALL)
    divided = record.model_copy(update={"config": {**record.config, "scale_attn_by_inverse_layer_idx": True}})
    model = StandardizedTransformer(twin_of(divided))
    attn, ids = model.layers[1].self_attn, prompt(model)
    with model.trace(ids):
        queries = attn.attention_queries.save()
        keys = attn.attention_keys.save()
        scores = attn.attention_scores.save()
    seen = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
    torch.testing.assert_close(scores[..., seen], (queries @ keys.mT / attn.head_dim**0.5 / 2)[..., seen])


def test_neurons_declared_in_front_of_the_activation_fail_their_check(monkeypatch):
    declared = family("gpt2")
    wrong = replace(declared, classes={"GPT2MLP": Declared(locations={"mlp_neurons": "c_fc.output"})})
    monkeypatch.setattr(encyclopedia.model.transformer, "family", lambda model_type: wrong)
    twin = twin_of(recorded(SMALL))
    with pytest.raises(BrokenClaim, match="mlp_neurons"):
        check_model(twin, wrong, prompt_for(twin, batch=PROMPTS), writing=False)
