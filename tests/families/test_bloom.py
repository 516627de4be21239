"""What is particular to BLOOM: sublayers that add themselves to the stream, ALiBi, a norm behind the embedding."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import encyclopedia.model.transformer
from encyclopedia.capture.parameters import count_parameters
from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.checks.claims import BrokenClaim
from encyclopedia.checks.run import check_model
from encyclopedia.families import family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.structure.derive import structure_of
from encyclopedia.twin import PROMPTS, prompt_for, twin_of

SHOWN = [record.id for record in read_family("bloom")[0]]
SMALL = "bigscience/bloom-560m"


def test_the_notes_run(run_notes):
    for snippet in run_notes("bloom"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_parameters_agree_with_the_published_count(checkpoint):
    record = recorded(checkpoint)
    full = build_without_weights(record)
    counted = count_parameters(full, structure_of(full), family("bloom"))
    assert counted.total == counted.active == record.published_parameters.total


def test_what_the_sublayers_return_is_the_stream(small, prompt):
    model = small(SMALL)
    block, returned = model.layers[1], {}
    hooks = [
        block._module.self_attention.register_forward_hook(lambda *call: returned.update(attention=call[2][0])),
        block._module.mlp.register_forward_hook(lambda *call: returned.update(mlp=call[2])),
    ]
    with model.trace(prompt(model)):
        entering = block.layer_input.save()
        attention = block.self_attn.attention_output.save()
        mlp = block.mlp.mlp_output.save()
        leaving = block.layer_output.save()
    for hook in hooks:
        hook.remove()
    assert torch.equal(returned["attention"], entering + attention)
    assert torch.equal(returned["mlp"], leaving)
    torch.testing.assert_close(entering + attention + mlp, leaving)


def test_declared_interior_agrees_with_plain_hooks(small, prompt):
    model = small(SMALL)
    attn, found = model.layers[1].self_attn, {}
    native = attn._module
    hooks = [
        native.query_key_value.register_forward_hook(lambda *call: found.update(fused=call[2])),
        native.attention_dropout.register_forward_hook(lambda *call: found.update(pattern=call[1][0])),
        native.dense.register_forward_hook(lambda *call: found.update(mixed=call[1][0])),
    ]
    model._module(prompt(model))
    for hook in hooks:
        hook.remove()
    with model.trace(prompt(model)):
        queries = attn.attention_queries.save()
        keys = attn.attention_keys.save()
        values = attn.attention_values.save()
        pattern = attn.attention_probabilities.save()
        heads = attn.attention_head_outputs.save()
    by_head = found["fused"].unflatten(-1, (attn.num_heads, 3, attn.head_dim))
    for role, value in enumerate((queries, keys, values)):
        assert torch.equal(value, by_head[..., role, :].transpose(1, 2))
    assert torch.equal(pattern, found["pattern"])
    assert torch.equal(heads.flatten(2), found["mixed"])


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_scores_grow_along_the_keys_by_the_slope_of_their_head(small, prompt, checkpoint):
    model = small(checkpoint)
    attn, ids = model.layers[0].self_attn, prompt(model)
    with model.trace(ids):
        queries = attn.attention_queries.save()
        keys = attn.attention_keys.save()
        scores = attn.attention_scores.save()
    positions = torch.arange(ids.shape[1])
    rest = (scores - queries @ keys.mT / attn.head_dim**0.5)[..., -1, :]
    slopes = 2.0 ** (-8 / attn.num_heads * torch.arange(1, attn.num_heads + 1))
    torch.testing.assert_close(rest, (slopes[:, None] * positions).expand_as(rest), rtol=1e-4, atol=1e-4)


def test_keys_hold_earlier_positions_when_they_are_cached(small, prompt):
    model = small(SMALL)
    attn, ids = model.layers[0].self_attn, prompt(model)
    with model.trace(ids):
        whole = attn.attention_keys.save()
    with torch.no_grad():
        cache = model._module(ids[:, :-1], use_cache=True).cache
    with model.trace(ids[:, -1:], cache=cache, attention_mask=torch.ones_like(ids)):
        queries = attn.attention_queries.save()
        keys = attn.attention_keys.save()
    assert queries.shape[2] == 1
    torch.testing.assert_close(keys, whole)


def test_a_norm_stands_between_the_table_and_the_first_block(small, prompt):
    model = small(SMALL)
    with model.trace(prompt(model)):
        tokens = model.token_embeddings.save()
        entering = model.layers[0].layer_input.save()
    torch.testing.assert_close(model._module.transformer.word_embeddings_layernorm(tokens), entering)
    assert not torch.allclose(tokens, entering, atol=1e-2)


@pytest.mark.parametrize(("value", "location"), [
    ("attention_scores", "source.attn_weights_0.output"),  # without the mask
    ("attention_keys", "source.self__reshape_0.output[0]"),  # the queries
    ("attention_head_outputs", "query_key_value.output"),
])
def test_a_wrong_place_fails_its_check(monkeypatch, value, location):
    declared = family("bloom")
    attention = declared.classes["BloomAttention"]
    moved = replace(attention, locations={**attention.locations, value: location})
    wrong = replace(declared, classes={**declared.classes, "BloomAttention": moved})
    monkeypatch.setattr(encyclopedia.model.transformer, "family", lambda model_type: wrong)
    twin = twin_of(recorded(SMALL))
    with pytest.raises(BrokenClaim, match=value):
        check_model(twin, wrong, prompt_for(twin, batch=PROMPTS), writing=False)
