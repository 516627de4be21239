"""What is particular to MPT: its own attention arithmetic, ALiBi, and an MLP that returns the stream."""

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

SHOWN = [record.id for record in read_family("mpt")[0]]
BASE, STORY, LARGE = SHOWN
INTERIOR = ("attention_queries", "attention_keys", "attention_values", "attention_scores", "attention_probabilities",
            "attention_head_outputs")


@pytest.fixture(scope="module")
def interior(small, prompt):
    """The attention's interior on the last block."""

    def read(checkpoint: str, ids: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        model = small(checkpoint)
        found = {}
        with model.trace(prompt(model, batch=2) if ids is None else ids):
            for name in INTERIOR:
                found[name] = getattr(model.layers[-1].self_attn, name).save()
        return found

    return read


def test_the_notes_run(run_notes):
    for snippet in run_notes("mpt"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_parameters_are_the_matrices_the_config_describes(checkpoint):
    config = recorded(checkpoint).config
    full = build_without_weights(recorded(checkpoint))
    width, blocks = config["d_model"], config["n_layers"]
    block = 4 * width * width + 2 * config["expansion_ratio"] * width * width + 2 * width
    expected = config["vocab_size"] * width + blocks * block + width
    assert count_parameters(full, structure_of(full), family("mpt")).total == expected


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_declared_places_rebuild_the_attention(small, prompt, interior, checkpoint):
    attn = small(checkpoint).layers[-1].self_attn
    seen = []
    handles = [attn._module.Wqkv.register_forward_hook(lambda _, args, output: seen.append(output)),
               attn._module.out_proj.register_forward_pre_hook(lambda _, args: seen.append(args[0]))]
    try:
        small(checkpoint)._module(prompt(small(checkpoint), batch=2))
    finally:
        for handle in handles:
            handle.remove()
    found = interior(checkpoint)
    clip = attn._module.clip_qkv
    fused = seen[0].clamp(-clip, clip) if clip else seen[0]
    parts = [part.unflatten(-1, (attn.num_heads, attn.head_dim)).transpose(1, 2) for part in fused.chunk(3, dim=-1)]
    for part, name in zip(parts, INTERIOR, strict=False):
        assert torch.equal(part, found[name])
    assert torch.equal(found["attention_head_outputs"].flatten(2), seen[1])
    torch.testing.assert_close(found["attention_scores"].softmax(-1), found["attention_probabilities"])
    mixed = found["attention_probabilities"] @ found["attention_values"]
    torch.testing.assert_close(mixed.transpose(1, 2), found["attention_head_outputs"])


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_slopes_are_those_of_a_maximum_of_eight_whatever_the_config_says(small, interior, checkpoint):
    attn = small(checkpoint).layers[-1].self_attn
    found = interior(checkpoint)
    product = found["attention_queries"] @ found["attention_keys"].mT * attn.head_dim**-0.5
    seq = product.shape[-1]
    seen = torch.ones(seq, seq, dtype=torch.bool).tril()
    slopes = 2 ** (-8 * torch.arange(1, attn.num_heads + 1) / attn.num_heads)
    bias = (slopes[:, None, None] * (torch.arange(seq) - (seq - 1))).expand(attn.num_heads, seq, seq)
    rest = found["attention_scores"] - product
    torch.testing.assert_close(rest[:, :, seen], bias[None, :, seen].expand(2, -1, -1), rtol=1e-4, atol=1e-5)
    assert (small(checkpoint).config.attn_config.alibi_bias_max == 8) == (checkpoint != STORY)


def test_scores_depend_on_what_follows_and_the_pattern_does_not(small, prompt, interior):
    ids = prompt(small(BASE))
    whole, part = interior(BASE, ids), interior(BASE, ids[:, :-1])
    seen = torch.ones(ids.shape[1] - 1, ids.shape[1] - 1, dtype=torch.bool).tril()
    gap = (part["attention_scores"] - whole["attention_scores"][..., :-1, :-1])[..., seen]
    assert (gap > 0).all()
    torch.testing.assert_close(part["attention_probabilities"], whole["attention_probabilities"][..., :-1, :-1])


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_the_mlp_module_returns_the_stream(small, prompt, checkpoint):
    model = small(checkpoint)
    block, ids = model.layers[0], prompt(model)
    with model.trace(ids):
        middle = block.layer_mid.save()
        added = block.mlp.mlp_output.save()
        returned = block.mlp.output.save()
        leaving = block.layer_output.save()
    assert torch.equal(returned, leaving)
    torch.testing.assert_close(middle + added, leaving)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_head_is_the_embedding_and_no_norm_has_a_bias(small, checkpoint):
    model = small(checkpoint)
    assert model.lm_head._module.weight is model.embed_tokens._module.weight
    assert [name for name, _ in model._module.named_parameters() if name.endswith("bias")] == []


def test_in_a_step_with_a_cache_keys_are_the_new_tokens_and_the_pattern_is_wide(small, prompt):
    model = small(BASE)
    attn, ids = model.layers[0].self_attn, prompt(model)
    assert not model.config.use_cache
    with model.trace(ids):
        whole = attn.attention_keys.save()
        rows = attn.attention_probabilities.save()
    with torch.no_grad():
        cache = model._module(ids[:, :-1], use_cache=True).cache
    with model.trace(ids[:, -1:], cache=cache, attention_mask=torch.ones_like(ids)):
        keys = attn.attention_keys.save()
        pattern = attn.attention_probabilities.save()
    torch.testing.assert_close(keys, whole[:, :, -1:])
    torch.testing.assert_close(pattern, rows[:, :, -1:])


@pytest.mark.parametrize(("value", "location"), [
    ("attention_scores", "source.attention_scores_1.output"),  # without the mask
    ("attention_probabilities", "source.nn_functional_softmax_0.input"),
    ("attention_keys", "source.query_states_0.output"),
])
def test_a_wrong_place_fails_its_check(monkeypatch, value, location):
    declared = family("mpt")
    attention = declared.classes["MptAttention"]
    moved = replace(attention, locations={**attention.locations, value: location})
    wrong = replace(declared, classes={"MptAttention": moved})
    monkeypatch.setattr(encyclopedia.model.transformer, "family", lambda model_type: wrong)
    twin = twin_of(recorded(BASE))
    with pytest.raises(BrokenClaim, match=value):
        check_model(twin, wrong, prompt_for(twin, batch=PROMPTS), writing=False)
