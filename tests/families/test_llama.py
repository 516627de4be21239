"""What is particular to Llama: nothing in the block, and what differs from checkpoint to checkpoint."""

from __future__ import annotations

import pytest
import torch

from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.families import Family, family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.measure.records import find_measured, read_measured
from encyclopedia.structure.derive import structure_of
from tests.families.counting import counted_in

SHOWN = [record.id for record in read_family("llama")[0]]
OWN_KEYS_PER_HEAD = {"HuggingFaceTB/SmolLM2-1.7B-Instruct", "meta-llama/Llama-2-7b-hf", "meta-llama/Llama-2-13b-hf"}
STRETCHED = {identifier for identifier in SHOWN if "Llama-3" in identifier}
TIED = {identifier for identifier in SHOWN if "SmolLM2" in identifier or "Llama-3.2" in identifier}

SMOLLM2 = "HuggingFaceTB/SmolLM2-135M-Instruct"


def test_the_notes_run(run_notes):
    for snippet in run_notes("llama"):
        assert snippet.ran_on or snippet.reason, f"line {snippet.line}"


def test_nothing_is_declared():
    declared = family("llama")
    assert declared == Family("llama", declared.title, declared.subtitle, declared.hue)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_parameters_agree_with_the_published_count(checkpoint):
    record = recorded(checkpoint)
    counted = counted_in(build_without_weights(record), "llama")
    assert counted.total == counted.active == record.published_parameters.total


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_every_recorded_key_says_where_it_is_known_from(checkpoint):
    record = recorded(checkpoint)
    assert record.config_source
    assert [key for key in record.config if record.source_of(key) is None] == []


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_heads_at_full_size_and_on_the_twin(small, checkpoint):
    config = recorded(checkpoint).config
    full = build_without_weights(recorded(checkpoint))
    sizes = structure_of(full).kinds[-1].sizes
    heads, kv_heads = sizes["num_heads"], sizes["num_kv_heads"]
    assert (heads, kv_heads) == (config["num_attention_heads"], config["num_key_value_heads"])
    assert (heads == kv_heads) == (checkpoint in OWN_KEYS_PER_HEAD)
    attn = small(checkpoint).layers[0].self_attn
    assert attn.num_heads // attn.num_kv_heads == heads // kv_heads


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_keys_and_values_have_their_own_heads(small, prompt, checkpoint):
    model = small(checkpoint)
    attn = model.layers[0].self_attn
    native = attn._module
    with model.trace(prompt(model)):
        normed = model.layers[0].attention_norm_output.save()
        keys = attn.attention_keys.save()
        values = attn.attention_values.save()
        pattern = attn.attention_probabilities.save()
        heads = attn.attention_head_outputs.save()
    assert keys.shape[1] == values.shape[1] == native.k_proj.out_features // native.head_dim
    torch.testing.assert_close(values, native.v_proj(normed).unflatten(-1, (-1, native.head_dim)).transpose(1, 2))
    group = attn.num_heads // attn.num_kv_heads
    for head in range(attn.num_heads):
        torch.testing.assert_close(heads[:, :, head], pattern[:, head] @ values[:, head // group])


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_block_is_the_plain_sum(small, prompt, checkpoint):
    model = small(checkpoint)
    ids = prompt(model, batch=2)
    for block in model.layers:
        with model.trace(ids):
            entering = block.layer_input.save()
            attention = block.self_attn.attention_output.save()
            middle = block.layer_mid.save()
            mlp = block.mlp.mlp_output.save()
            leaving = block.layer_output.save()
        assert torch.equal(entering + attention, middle)
        assert torch.equal(middle + mlp, leaving)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_head_is_the_embedding_where_the_config_ties_them(small, checkpoint):
    model = small(checkpoint)
    same = model.lm_head._module.weight is model.embed_tokens._module.weight
    assert same == (checkpoint in TIED)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_rotary_is_stretched_on_llama_3(small, checkpoint):
    rotary = small(checkpoint)._module.model.rotary_emb
    base, width = rotary.config.rope_parameters["rope_theta"], rotary.config.head_dim
    plain = base ** (-torch.arange(0, width, 2) / width)
    ratio = plain / rotary.inv_freq
    if checkpoint in STRETCHED:
        assert ratio[0] == pytest.approx(1)
        assert ratio[-1] == pytest.approx(rotary.config.rope_parameters["factor"])
        assert (ratio[1:] >= ratio[:-1] - 1e-5).all()
    else:
        torch.testing.assert_close(ratio, torch.ones_like(ratio))


@pytest.fixture(scope="module")
def on_smollm2():
    """The measured values of a quantity."""
    records = read_measured("llama")
    return lambda quantity: find_measured(records, quantity, SMOLLM2).values


def test_what_the_notes_say_of_the_sink(on_smollm2):
    sink, first, rest = map(on_smollm2, ("first-token-attention", "residual-norm-first", "residual-norm-rest"))
    assert max(sink[:2] + sink[10:12]) < 0.11
    assert min(sink[3:9]) > 0.5
    assert sink[24] == max(sink)
    # A block attends to the first position where the one before it left that position's norm standing out.
    stands_out = [norm > 2 * others for norm, others in zip(first, rest, strict=True)]
    assert stands_out == [share > 0.2 for share in [*sink[1:], 1]]


def test_what_the_notes_say_of_the_massive_channel(on_smollm2):
    channel, position, value = map(
        on_smollm2, ("largest-channel", "largest-channel-position", "largest-channel-value"))
    assert len(set(channel[1:])) == 1
    assert sum(place != 0 for place in position) == 2
    assert max(range(1, 30), key=lambda block: value[block] / value[block - 1]) == 11
    assert min(value[11:28]) > 0.98 * value[11]
    assert value[27] > 2 * value[28] > 4 * value[29]


def test_what_the_notes_say_of_the_lens(on_smollm2):
    entropy = on_smollm2("lens-entropy")
    assert on_smollm2("lens-settles") == 29
    assert entropy[19] == min(entropy)
    assert entropy[28] == max(entropy)
    assert on_smollm2("next-token") == " Paris"
