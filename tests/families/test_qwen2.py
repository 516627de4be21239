"""What is particular to Qwen2: biases on queries, keys and values, and a window that is there and switched off."""

from __future__ import annotations

import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from encyclopedia.capture.parameters import count_parameters
from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.families import Family, family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.structure.derive import structure_of

RECORDS = read_family("qwen2")[0]
SHOWN = [record.id for record in RECORDS if record.reason is None]
SMALLEST = "Qwen/Qwen2.5-0.5B"


def test_the_notes_run(run_notes):
    for snippet in run_notes("qwen2"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


def test_nothing_is_declared():
    declared = family("qwen2")
    assert declared == Family("qwen2", declared.title, declared.subtitle, declared.hue)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_parameters_agree_with_the_published_count(checkpoint):
    record = recorded(checkpoint)
    full = build_without_weights(record)
    counted = count_parameters(full, structure_of(full), family("qwen2"))
    assert counted.total == counted.active == record.published_parameters.total


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_three_projections_of_a_block_have_a_bias_and_no_other(small, checkpoint):
    for block in small(checkpoint)._module.model.layers:
        biased = {name for name, parameter in block.named_parameters() if name.endswith("bias")}
        assert biased == {f"self_attn.{name}_proj.bias" for name in "qkv"}


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_the_standard_values_have_the_biases_in_them(small, prompt, checkpoint):
    model = small(checkpoint)
    attn, native = model.layers[1].self_attn, model._module.model.layers[1].self_attn
    ids, projected = prompt(model), {}
    hooks = [getattr(native, f"{name}_proj").register_forward_hook(
        lambda module, inputs, output, name=name: projected.update({name: output})) for name in "qkv"]
    model._module(ids)
    for hook in hooks:
        hook.remove()
    with model.trace(ids):
        queries = attn.attention_queries.save()
        keys = attn.attention_keys.save()
        values = attn.attention_values.save()
    split = {name: tensor.unflatten(-1, (-1, native.head_dim)).transpose(1, 2) for name, tensor in projected.items()}
    torch.testing.assert_close(values, split["v"])
    # The first position is not turned.
    torch.testing.assert_close(queries[:, :, 0], split["q"][:, :, 0])
    torch.testing.assert_close(keys[:, :, 0], split["k"][:, :, 0])
    assert native.q_proj.bias.abs().max() > 0.1


def test_scores_keep_a_term_by_distance_where_there_is_no_content(small, prompt):
    model = small(SMALLEST)
    attn = model.layers[0].self_attn
    with model.trace(prompt(model)):
        model.layers[0].attention_norm_output = torch.zeros_like(model.layers[0].attention_norm_output)
        scores = attn.attention_scores.save()
        output = attn.attention_output.save()
    length = scores.shape[-1]
    for distance in range(length):
        along = scores.diagonal(-distance, dim1=-2, dim2=-1)
        torch.testing.assert_close(along, along[..., :1].expand_as(along))
    seen = torch.ones(length, length, dtype=torch.bool).tril()
    assert scores[..., seen].std() > 0.01
    # Values that are the bias alone make one vector on every position.
    torch.testing.assert_close(output, output[:, :1].expand_as(output))
    assert output.abs().max() > 0.01


@pytest.mark.parametrize("switched_on", [False, True])
def test_the_window_is_for_the_later_blocks_and_off_unless_asked_for(prompt, switched_on):
    config = Qwen2Config(vocab_size=97, hidden_size=32, intermediate_size=40, num_hidden_layers=2, sliding_window=4,
                         num_attention_heads=4, num_key_value_heads=2, max_window_layers=1, pad_token_id=0,
                         use_sliding_window=switched_on, attn_implementation="eager")
    native = Qwen2ForCausalLM(config).eval()
    ids = torch.arange(8, 20)[None]
    patterns = native(ids, output_attentions=True).attentions
    age = torch.arange(12)[:, None] - torch.arange(12)
    assert torch.equal(patterns[0] > 0, (age >= 0).expand_as(patterns[0]))
    seen = (age >= 0) & (age < 4) if switched_on else age >= 0
    assert torch.equal(patterns[1] > 0, seen.expand_as(patterns[1]))


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_head_is_the_embedding_where_the_config_ties_them(small, checkpoint):
    model = small(checkpoint)
    same = model.lm_head._module.weight is model.embed_tokens._module.weight
    assert same == recorded(checkpoint).config["tie_word_embeddings"] == (not checkpoint.endswith("7B"))
