"""Small twins: the structure of the checkpoint, in axes that cannot be mistaken for one another."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from encyclopedia.checkpoints import families_recorded, read_family, recorded
from encyclopedia.model.build import build_without_weights
from encyclopedia.model.kinds import find_kinds
from encyclopedia.model.structure import blocks_of, find_stack
from encyclopedia.twin import PROMPT_LENGTH, prompt_for, twin_of, twin_of_model

SHOWN = [record.id for name in families_recorded() for record in read_family(name)[0] if record.reason is None]
LAGUNA = "poolside/Laguna-XS-2.1"


def kinds_of(model: Any) -> list[Any]:
    return find_kinds(list(blocks_of(model, find_stack(model, model.config))), model.config)


def structure(module: torch.nn.Module) -> list[tuple[str, str]]:
    return [(name, type(child).__name__) for name, child in module.named_modules()]


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_a_twin_has_every_kind_of_block(checkpoint: str) -> None:
    full, small = build_without_weights(recorded(checkpoint)), twin_of(recorded(checkpoint))
    full_kinds, small_kinds = kinds_of(full), kinds_of(small)
    assert [kind.attention_type for kind in small_kinds] == [kind.attention_type for kind in full_kinds]
    for large, little in zip(full_kinds, small_kinds, strict=True):
        assert structure(large.block) == structure(little.block)
    assert small.config.num_hidden_layers == max(len(full_kinds), 2)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_a_twin_keeps_the_ratios_that_matter(checkpoint: str) -> None:
    full, small = build_without_weights(recorded(checkpoint)).config, twin_of(recorded(checkpoint)).config
    assert full.num_attention_heads * small.num_key_value_heads == small.num_attention_heads * full.num_key_value_heads
    for key in ("hidden_act", "rms_norm_eps", "tie_word_embeddings", "gating", "is_moe", "norm_topk_prob"):
        assert getattr(small, key, None) == getattr(full, key, None), key
    if getattr(full, "sliding_window", None):
        assert 0 < small.sliding_window < PROMPT_LENGTH
    if getattr(full, "num_experts", None):
        assert 1 < small.num_experts_per_tok < small.num_experts


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_the_axes_of_a_twin_differ(checkpoint: str) -> None:
    model = twin_of(recorded(checkpoint))
    config = model.config
    heads = {block.self_attn.q_proj.out_features // block.self_attn.head_dim
             for block in model.get_submodule("model.layers")}
    widths = [2, PROMPT_LENGTH, config.hidden_size, config.vocab_size, config.intermediate_size]
    if getattr(config, "moe_intermediate_size", None) and hasattr(config, "mlp_layer_types"):
        widths += [config.num_experts_per_tok, config.moe_intermediate_size, config.shared_expert_intermediate_size]
    assert len(set(widths)) == len(widths)
    assert config.hidden_size not in heads
    assert config.num_key_value_heads not in heads or heads == {config.num_key_value_heads}


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_every_parameter_has_left_its_initial_value(checkpoint: str) -> None:
    model = twin_of(recorded(checkpoint))
    for name, parameter in model.named_parameters():
        assert parameter.dtype == torch.float32
        for plain in (0.0, 1.0):
            assert (parameter != plain).all(), name


def test_a_seed_gives_one_model() -> None:
    same, again, other = (twin_of(recorded(LAGUNA), seed=seed) for seed in (1, 1, 2))
    for (name, one), two, three in zip(same.named_parameters(), again.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two), name
        assert not torch.equal(one, three), name


def test_a_twin_is_not_in_training() -> None:
    assert not twin_of(recorded(LAGUNA)).training


def test_the_load_can_be_chosen() -> None:
    record = recorded(LAGUNA)
    assert twin_of(record).config._attn_implementation == "eager"
    chosen = twin_of(record, attn_implementation="sdpa", experts_implementation="batched_mm")
    assert chosen.config._attn_implementation == "sdpa"
    assert chosen.config._experts_implementation == "batched_mm"


def test_the_full_model_is_left_alone() -> None:
    full = build_without_weights(recorded(LAGUNA))
    before = full.config.to_dict()
    twin_of_model(full)
    assert full.config.to_dict() == before
    assert all(parameter.is_meta for parameter in full.parameters())


def test_a_prompt_is_longer_than_the_window_and_clear_of_special_tokens() -> None:
    model = twin_of(recorded(LAGUNA))
    prompt = prompt_for(model, batch=3)
    assert prompt.shape == (3, PROMPT_LENGTH)
    assert model.config.sliding_window < PROMPT_LENGTH
    assert prompt.max() < model.config.vocab_size
    assert prompt.min() >= 8
    assert torch.equal(prompt, prompt_for(model, batch=3))
