"""Small twins of every family's default config, and what a caller may ask of a twin."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, PreTrainedModel
from transformers.models.auto import modeling_auto

from encyclopedia.checkpoints import recorded
from encyclopedia.instantiate import build_without_weights
from encyclopedia.structure.kinds import group_blocks, switches_of
from encyclopedia.structure.stack import UnknownStructure, blocks_of, find_stack
from encyclopedia.twin import PROMPT_LENGTH, PROMPTS, NoTwin, blocks_kept, prompt_for, twin_of, twin_of_model

LAGUNA = "poolside/Laguna-XS-2.1"

FAMILIES = sorted(
    set(modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    - set(modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES)
    - set(modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES)
    - set(modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES))

#: More than one list of blocks.
WITHOUT_A_STACK = {"blt", "hrm_text"}

#: Models that a prompt alone does not run: a default without a top-k, a drafter that reads another model's states.
NOT_RUN_BY_A_PROMPT = {"deepseek_v2", "gemma4_unified_assistant"}

#: A block that has a list of adapters, one for each block that shares its weights.
LISTS_AS_LONG_AS_THE_STACK = {"zamba2"}

#: Families whose class does not build from its own default config.
WITHOUT_A_DEFAULT = {
    "cohere_compass_text", "dbrx", "dots1", "gemma4_assistant", "hunyuan_v1_dense", "hunyuan_v1_moe", "lfm2_moe",
    "ministral", "musicgen", "musicgen_melody", "nemotron", "qwen4_exp_text"}

SHRUNK = [name for name in FAMILIES if name not in WITHOUT_A_STACK | NOT_RUN_BY_A_PROMPT | WITHOUT_A_DEFAULT]


@cache
def built(model_type: str) -> PreTrainedModel:
    """The family's model at its default size on the meta device."""
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(CONFIG_MAPPING[model_type]()).eval()


@cache
def twin(model_type: str) -> PreTrainedModel:
    return twin_of_model(built(model_type))


def blocks(model: PreTrainedModel) -> list[torch.nn.Module]:
    return list(blocks_of(model, find_stack(model)))


def logits_of(model: PreTrainedModel) -> torch.Tensor:
    prompt = prompt_for(model, batch=PROMPTS)
    with torch.no_grad():
        return model(input_ids=prompt, attention_mask=torch.ones_like(prompt), use_cache=False).logits


@pytest.mark.parametrize("model_type", sorted(WITHOUT_A_DEFAULT))
def test_a_family_left_out_has_no_default_model(model_type: str) -> None:
    with pytest.raises(Exception, match=r"\w"):
        built(model_type)


@pytest.mark.parametrize("model_type", SHRUNK)
def test_a_family_shrinks_and_keeps_its_kinds_of_blocks(model_type: str) -> None:
    full, small = built(model_type), twin(model_type)
    kept = blocks_kept(full)
    assert kept == sorted(set(kept))
    assert len(kept) == len(blocks(small)) >= min(2, len(blocks(full)))
    kinds = group_blocks(full, find_stack(full))
    assert all(set(kind) & set(kept) for kind in kinds)
    if model_type in LISTS_AS_LONG_AS_THE_STACK:
        return
    assert len(group_blocks(small, find_stack(small))) == len(kinds)
    for index, little in zip(kept, blocks(small), strict=True):
        large = blocks(full)[index]
        assert [(path, type(module)) for path, module in large.named_modules()] == [
            (path, type(module)) for path, module in little.named_modules()]
        assert switches_of(large) == switches_of(little)


@pytest.mark.parametrize("model_type", SHRUNK)
def test_a_small_family_runs_in_float32(model_type: str) -> None:
    small = twin(model_type)
    assert {parameter.dtype for parameter in small.parameters()} == {torch.float32}
    logits = logits_of(small)
    assert logits.shape[:2] == (PROMPTS, PROMPT_LENGTH)
    assert logits.isfinite().all()
    assert 0.01 < logits.std() < 100


@pytest.mark.parametrize("model_type", SHRUNK)
def test_everything_of_a_small_family_has_moved(model_type: str) -> None:
    for name, parameter in twin(model_type).named_parameters():
        assert not ((parameter == 0) | (parameter == 1)).any(), name
        assert parameter.isfinite().all(), name


@pytest.mark.parametrize("model_type", ["llama", "minimax", "mamba2", "rwkv", "qwen3_next", "deepseek_v4", "xlstm"])
def test_a_token_moves_the_logits_after_it_and_none_before(model_type: str) -> None:
    """So decays are neither saturated, which would hide the state, nor out of order."""
    small, position = twin(model_type), 2
    prompt = prompt_for(small)
    other = prompt.clone()
    other[:, position] = (prompt[:, position] + 1) % 50 + 20
    with torch.no_grad():
        before, after = (small(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits
                         for ids in (prompt, other))
    moved = (before - after).abs().amax(dim=(0, 2))
    assert (moved[:position] < 1e-4).all()
    assert (moved[position:] > 1e-3 * before.std()).all()


@pytest.mark.parametrize("model_type", sorted(WITHOUT_A_STACK))
def test_two_lists_of_blocks_have_no_twin(model_type: str) -> None:
    with pytest.raises(UnknownStructure, match="several lists of blocks"):
        twin_of_model(built(model_type))


@pytest.mark.parametrize("model_type", sorted(NOT_RUN_BY_A_PROMPT))
def test_a_model_that_a_prompt_does_not_run_has_no_twin(model_type: str) -> None:
    with pytest.raises(NoTwin, match="does not run"):
        twin_of_model(built(model_type))


@pytest.mark.parametrize("model_type", ["llama", "qwen3_next", "jamba", "deepseek_v3", "gemma3n_text", "mamba2"])
def test_the_class_s_own_attention_gives_the_same_logits(model_type: str) -> None:
    other = twin_of_model(built(model_type), attn_implementation=None)
    torch.testing.assert_close(logits_of(other), logits_of(twin(model_type)), atol=1e-3, rtol=1e-3)


def test_periods_become_those_of_the_kept_blocks() -> None:
    config: Any = twin("jamba").config
    assert [type(block).__name__ for block in blocks(twin("jamba"))] == [
        type(blocks(built("jamba"))[index]).__name__ for index in (0, 1, 4)]
    assert config.num_hidden_layers == 3


def test_every_run_of_blocks_that_a_config_counts_keeps_one() -> None:
    config: Any = twin("dory").config
    assert [config.n_input_layers, config.n_recurrent_layers, config.n_output_layers] == [2, 1, 1]


def test_shared_weights_stay_shared() -> None:
    small = twin("zamba")
    shared: list[Any] = [block.shared_transf for block in blocks(small) if hasattr(block, "shared_transf")]
    assert len(shared) > 1
    for name, parameter in shared[0].named_parameters():
        assert all(other.get_parameter(name) is parameter for other in shared[1:]), name


def test_groups_of_experts_leave_some_out() -> None:
    config: Any = twin("deepseek_v3").config
    assert 1 < config.topk_group < config.n_group
    assert config.n_routed_experts % config.n_group == 0
    assert config.num_experts_per_tok < config.n_routed_experts // config.n_group * config.topk_group


@pytest.mark.parametrize(("experts", "groups", "kept"), [(8, 2, 1), (16, 4, 2), (24, 3, 2), (64, 8, 3), (160, 8, 4)])
def test_few_experts_stay_in_groups_of_two_at_least(experts: int, groups: int, kept: int) -> None:
    config: Any = CONFIG_MAPPING["deepseek_v3"](
        n_routed_experts=experts, n_group=groups, topk_group=kept, num_experts_per_tok=2, num_hidden_layers=2,
        first_k_dense_replace=1)
    with torch.device("meta"):
        full = AutoModelForCausalLM.from_config(config).eval()
    small = twin_of_model(full)
    assert small.config.n_routed_experts % small.config.n_group == 0
    assert small.config.n_routed_experts >= 2 * small.config.n_group
    assert logits_of(small).isfinite().all()


def test_the_widths_of_latent_attention_differ() -> None:
    config: Any = twin("deepseek_v3").config
    widths = [config.q_lora_rank, config.kv_lora_rank, config.qk_rope_head_dim, config.qk_nope_head_dim,
              config.v_head_dim, config.hidden_size, config.qk_head_dim]
    assert len(set(widths)) == len(widths)
    assert config.qk_head_dim == config.qk_rope_head_dim + config.qk_nope_head_dim
    assert config.head_dim == config.qk_rope_head_dim


def test_the_widths_of_a_delta_rule_differ() -> None:
    config: Any = twin("qwen3_next").config
    widths = [config.linear_num_key_heads, config.linear_num_value_heads, config.linear_key_head_dim,
              config.linear_value_head_dim, config.linear_conv_kernel_dim, config.hidden_size]
    assert len(set(widths)) == len(widths)
    assert config.linear_num_value_heads == 2 * config.linear_num_key_heads


def test_a_prompt_is_longer_than_a_state_space_s_chunk() -> None:
    for model_type in ("mamba2", "bamba", "nemotron_h"):
        config: Any = twin(model_type).config
        chunk = getattr(config, "chunk_size", None) or config.mamba_chunk_size
        assert 1 < chunk < PROMPT_LENGTH


def test_a_seed_gives_one_model() -> None:
    torch.manual_seed(1)
    same = twin_of(recorded(LAGUNA), seed=1)
    torch.manual_seed(2)
    again, other = (twin_of(recorded(LAGUNA), seed=seed) for seed in (1, 2))
    for (name, one), two, three in zip(same.named_parameters(), again.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two), name
        assert not torch.equal(one, three), name


def test_the_draw_leaves_the_caller_s_generator_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    twin_of(recorded(LAGUNA))
    assert torch.equal(torch.rand(2), expected)


def test_a_twin_is_not_in_training() -> None:
    assert not twin_of(recorded(LAGUNA)).training


def test_the_load_can_be_chosen() -> None:
    record = recorded(LAGUNA)
    assert twin_of(record).config._attn_implementation == "eager"
    chosen = twin_of(record, attn_implementation="sdpa", experts_implementation="batched_mm")
    assert chosen.config._attn_implementation == "sdpa"
    assert chosen.config._experts_implementation == "batched_mm"


def test_the_full_model_is_left_alone() -> None:
    full: Any = build_without_weights(recorded(LAGUNA))
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
    config = model.config
    for special in (config.bos_token_id, config.eos_token_id, config.pad_token_id):
        for token in special if isinstance(special, list) else [special]:
            assert token is None or token < prompt.min()
    assert torch.equal(prompt, prompt_for(model, batch=3))
