"""What is particular to OPT: two architectures in one class, positions with an offset, queries that carry the scale."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import encyclopedia.model.transformer
from encyclopedia.capture.parameters import count_parameters
from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.checks.claims import BrokenClaim
from encyclopedia.checks.run import check_model
from encyclopedia.families import Declared, Family, family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.structure.derive import structure_of
from encyclopedia.twin import PROMPTS, prompt_for, twin_of

SHOWN = [record.id for record in read_family("opt")[0]]
BEHIND = "facebook/opt-350m"
IN_FRONT = [checkpoint for checkpoint in SHOWN if checkpoint != BEHIND]


def test_the_notes_run(run_notes):
    for snippet in run_notes("opt"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


def test_nothing_is_declared():
    declared = family("opt")
    assert declared == Family("opt", declared.title, declared.subtitle, declared.hue)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_parameters_agree_with_the_published_count(checkpoint):
    record = recorded(checkpoint)
    full = build_without_weights(record)
    counted = count_parameters(full, structure_of(full), family("opt"))
    assert counted.total == counted.active == record.published_parameters.total


@pytest.mark.parametrize("checkpoint", IN_FRONT)
def test_with_norms_in_front_the_block_is_the_plain_sum(small, prompt, checkpoint):
    model = small(checkpoint)
    for block in model.layers:
        with model.trace(prompt(model, batch=2)):
            entering = block.layer_input.save()
            attention = block.self_attn.attention_output.save()
            mlp = block.mlp.mlp_output.save()
            leaving = block.layer_output.save()
        torch.testing.assert_close(entering + attention + mlp, leaving)


def test_with_norms_behind_it_is_no_sum_and_has_no_identity(small, prompt):
    model = small(BEHIND)
    assert [kind.sum for kind in model.structure.kinds] == [None]
    for block in model.layers:
        with model.trace(prompt(model, batch=2)):
            entering = block.layer_input.save()
            attention = block.self_attn.attention_output.save()
            middle = block.layer_mid.save()
            normed = block.mlp_input.save()
            mlp = block.mlp.mlp_output.save()
            leaving = block.layer_output.save()
        native = block._module
        torch.testing.assert_close(entering + attention, middle)
        torch.testing.assert_close(native.self_attn_layer_norm(middle), normed)
        torch.testing.assert_close(native.final_layer_norm(normed + mlp), leaving)
        assert not torch.allclose(middle + mlp, leaving, atol=1e-2)


def test_one_size_has_narrow_tables_and_no_last_norm(small):
    assert [checkpoint for checkpoint in SHOWN if small(checkpoint).stack.norm is None] == [BEHIND]
    for checkpoint in SHOWN:
        config = recorded(checkpoint).config
        assert (config["word_embed_proj_dim"] != config["hidden_size"]) == (checkpoint == BEHIND)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_positions_are_read_two_rows_down(small, prompt, checkpoint):
    model = small(checkpoint)
    ids, decoder = prompt(model), model._module.model.decoder
    with model.trace(ids):
        entering = model.layers[0].layer_input.save()
    tokens = decoder.embed_tokens(ids)
    tokens = tokens if decoder.project_in is None else decoder.project_in(tokens)
    torch.testing.assert_close(entering - tokens, decoder.embed_positions.weight[2 : 2 + ids.shape[1]][None])


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_scores_are_the_bare_products(small, prompt, checkpoint):
    model = small(checkpoint)
    attn, ids = model.layers[0].self_attn, prompt(model)
    with model.trace(ids):
        queries = attn.attention_queries.save()
        keys = attn.attention_keys.save()
        scores = attn.attention_scores.save()
    seen = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
    torch.testing.assert_close(scores[..., seen], (queries @ keys.mT)[..., seen])


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_the_mlp_runs_flat_and_is_served_by_prompt(small, prompt, checkpoint):
    model = small(checkpoint)
    ids, block, flat = prompt(model, batch=2), model.layers[0], []
    hook = block._module.activation_fn.register_forward_hook(lambda *call: flat.append(call[2]))
    with model.trace(ids):
        neurons = block.mlp.mlp_neurons.save()
    hook.remove()
    assert flat[0].shape == (ids.numel(), model.config.ffn_dim)
    assert torch.equal(neurons, flat[0].view(*ids.shape, -1))
    assert (neurons == 0).any()


def test_a_pre_activation_declared_as_neurons_fails_its_check(monkeypatch):
    declared = family("opt")
    wrong = replace(declared, classes={"Linear": Declared(locations={"mlp_activation": "../fc1.output"})})
    monkeypatch.setattr(encyclopedia.model.transformer, "family", lambda model_type: wrong)
    twin = twin_of(recorded(IN_FRONT[0]))
    with pytest.raises(BrokenClaim, match="mlp_activation"):
        check_model(twin, wrong, prompt_for(twin, batch=PROMPTS), writing=False)
