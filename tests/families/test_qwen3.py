"""What is particular to Qwen3: norms on queries and keys, and heads of a width of their own."""

from __future__ import annotations

import pytest
import torch

from encyclopedia.capture.parameters import count_parameters
from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.families import Family, family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.structure.derive import structure_of

SHOWN = [record.id for record in read_family("qwen3")[0] if record.reason is None]
SMALLEST = "Qwen/Qwen3-0.6B"
WIDER_THAN_THE_STREAM = {SMALLEST, "Qwen/Qwen3-4B"}


def test_the_notes_run(run_notes):
    for snippet in run_notes("qwen3"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


def test_nothing_is_declared():
    declared = family("qwen3")
    assert declared == Family("qwen3", declared.title, declared.subtitle, declared.hue)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_parameters_agree_with_the_published_count(checkpoint):
    record = recorded(checkpoint)
    full = build_without_weights(record)
    counted = count_parameters(full, structure_of(full), family("qwen3"))
    assert counted.total == counted.active == record.published_parameters.total


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_queries_and_keys_are_read_behind_norm_and_rotation(small, prompt, checkpoint):
    model = small(checkpoint)
    attn, native = model.layers[1].self_attn, model._module.model.layers[1].self_attn
    ids, normed = prompt(model), {}
    hooks = [getattr(native, name).register_forward_hook(
        lambda module, inputs, output, name=name: normed.update({name: output})) for name in ("q_norm", "k_norm")]
    model._module(ids)
    for hook in hooks:
        hook.remove()
    with model.trace(ids):
        queries = attn.attention_queries.save()
        keys = attn.attention_keys.save()
    for name, value in (("q_norm", queries), ("k_norm", keys)):
        before = normed[name].transpose(1, 2)
        torch.testing.assert_close(value.norm(dim=-1), before.norm(dim=-1))
        torch.testing.assert_close(value[:, :, 0], before[:, :, 0])
        assert not torch.allclose(value[:, :, 1:], before[:, :, 1:], atol=1e-2)
        gain = getattr(native, name).weight
        root_mean_square = (before / gain).pow(2).mean(-1).sqrt()
        torch.testing.assert_close(root_mean_square, torch.ones_like(root_mean_square), rtol=1e-3, atol=1e-3)


def test_the_length_of_a_projected_key_does_not_matter(small, prompt):
    model = small(SMALLEST)
    attn = model.layers[0].self_attn
    with model.trace(prompt(model)):
        pattern = attn.attention_probabilities.save()
    with model.trace(prompt(model)):
        attn.k_proj.output = attn.k_proj.output * 100
        scaled = attn.attention_probabilities.save()
    with model.trace(prompt(model)):
        attn.k_proj.output = attn.k_proj.output + 1
        turned = attn.attention_probabilities.save()
    torch.testing.assert_close(scaled, pattern, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(turned, pattern, atol=1e-2)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_no_layer_of_a_block_has_a_bias(small, checkpoint):
    assert not [name for name, _ in small(checkpoint)._module.model.layers.named_parameters() if name.endswith("bias")]


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_heads_have_their_own_width_at_full_size_and_on_the_twin(small, checkpoint):
    config = recorded(checkpoint).config
    wide = config["num_attention_heads"] * config["head_dim"] > config["hidden_size"]
    assert wide == (checkpoint in WIDER_THAN_THE_STREAM)
    attn = small(checkpoint).layers[0].self_attn
    # The twin keeps the stream and the heads apart, so that no value can be read on the wrong axis unnoticed.
    assert attn.num_heads * attn.head_dim != small(checkpoint).hidden_size


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_head_is_the_embedding_where_the_config_ties_them(small, checkpoint):
    model = small(checkpoint)
    same = model.lm_head._module.weight is model.embed_tokens._module.weight
    assert same == recorded(checkpoint).config["tie_word_embeddings"] == (not checkpoint.endswith("8B"))
