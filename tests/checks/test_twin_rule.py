"""The one rule that makes small twins: what it keeps, what it moves, and that no two axes can be mistaken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest
import torch
from transformers import LlamaConfig

from encyclopedia.checkpoints import families_recorded, read_family, recorded
from encyclopedia.instantiate import build_without_weights
from encyclopedia.structure.kinds import group_blocks, sliding_window, switches_of
from encyclopedia.structure.stack import blocks_of, find_stack
from encyclopedia.twin import PROMPT_LENGTH, PROMPTS, NoTwin, blocks_kept, prompt_for, shrink, twin_of, twin_of_model

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

#: Families whose model reads another model's states, so that a prompt alone does not run it.
DRAFTERS = {"gemma4_assistant"}

#: Families whose blocks have a list of adapters, one for each block that shares their weights.
LISTS_AS_LONG_AS_THE_STACK = {"zamba2"}

RECORDS = [(name, record) for name in families_recorded() for record in read_family(name)[0] if record.reason is None]
EACH = pytest.mark.parametrize("checkpoint", [record.id for name, record in RECORDS if name not in DRAFTERS])
EXACT = pytest.mark.parametrize("checkpoint", [
    record.id for name, record in RECORDS if name not in DRAFTERS | LISTS_AS_LONG_AS_THE_STACK])
DRAFTER = pytest.mark.parametrize("checkpoint", [record.id for name, record in RECORDS if name in DRAFTERS])

FACTORS = ("_scaling_factor", "_multiplier", "_multipliers", "_scaling")


@cache
def pair(checkpoint: str) -> tuple[PreTrainedModel, PreTrainedModel]:
    """The model without weights and its twin."""
    full = build_without_weights(recorded(checkpoint))
    return full, twin_of_model(full)


@cache
def kept(checkpoint: str) -> list[int]:
    return blocks_kept(pair(checkpoint)[0])


def block_pairs(checkpoint: str) -> Iterator[tuple[torch.nn.Module, torch.nn.Module]]:
    """Each kept block of the full model, and the twin's block that stands for it."""
    full, small = pair(checkpoint)
    large = list(blocks_of(full, find_stack(full)))
    for index, little in zip(kept(checkpoint), blocks_of(small, find_stack(small)), strict=True):
        yield large[index], little


def entries(config: PreTrainedConfig) -> Iterator[tuple[str, Any]]:
    """Keys and values of a config and of its parts."""
    parts = [config.to_dict()]
    while parts:
        for key, value in parts.pop().items():
            if isinstance(value, dict):
                parts.append(value)
            yield str(key), value


def number(config: PreTrainedConfig, *names: str) -> int:
    """The first of ``names`` that the config states as a positive whole number, or 0."""
    found = dict(entries(config))
    return next((found[name] for name in names if isinstance(found.get(name), int) and found[name] > 0), 0)


@EXACT
def test_every_kind_of_block_stands_in_the_twin(checkpoint: str) -> None:
    full, small = pair(checkpoint)
    kinds = group_blocks(full, find_stack(full))
    assert len(group_blocks(small, find_stack(small))) == len(kinds)
    assert all(set(kind) & set(kept(checkpoint)) for kind in kinds)
    for large, little in block_pairs(checkpoint):
        assert [(path, type(module)) for path, module in large.named_modules()] == [
            (path, type(module)) for path, module in little.named_modules()]
        assert switches_of(large) == switches_of(little)
        # A window that no text outgrows counts as none, and its small one may be outgrown.
        assert sliding_window(large, full.config) is None or sliding_window(little, small.config) is not None


@EACH
def test_parameters_have_the_full_model_s_names_and_axes(checkpoint: str) -> None:
    for large, little in block_pairs(checkpoint):
        shapes = {name: parameter.ndim for name, parameter in large.named_parameters()}
        for name, parameter in little.named_parameters():
            assert shapes[name] == parameter.ndim, name


@EACH
def test_queries_stay_grouped(checkpoint: str) -> None:
    for large, little in block_pairs(checkpoint):
        groups = {path: module.num_key_value_groups for path, module in large.named_modules()
                  if isinstance(getattr(module, "num_key_value_groups", None), int)}
        for path, many in groups.items():
            assert little.get_submodule(path).num_key_value_groups == many, path


@EACH
def test_partial_rotary_stays_partial(checkpoint: str) -> None:
    full, small = (model.config for model in pair(checkpoint))

    def shares(config: PreTrainedConfig) -> list[float]:
        return sorted(value for key, value in entries(config)
                      if key == "partial_rotary_factor" and isinstance(value, float))

    assert shares(full) == shares(small)
    head_dim = number(small, "head_dim")
    if head_dim:
        assert all(int(share * head_dim) % 2 == 0 and int(share * head_dim) > 0 for share in shares(small))


@EACH
def test_what_is_shorter_than_the_prompt_or_fewer_stays_so(checkpoint: str) -> None:
    full, small = (model.config for model in pair(checkpoint))
    for names in (["sliding_window"], ["keep_window_size"], ["attention_chunk_size"], ["chunk_size"],
                  ["mamba_chunk_size"], ["index_topk"]):
        assert (number(full, *names) > 0) == (number(small, *names) > 0), names
        if number(small, *names):
            assert 1 < number(small, *names) < PROMPT_LENGTH, names
    experts, active = (["num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"],
                       ["num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_top_k", "moe_k"])
    if number(full, *experts) > 1 and number(full, *active):
        assert 0 < number(small, *active) < number(small, *experts)
        assert (number(full, *active) > 1) == (number(small, *active) > 1)
    groups, kept_groups = ["n_group", "num_expert_group"], ["topk_group"]
    if number(full, *groups) > 1:
        assert number(small, *experts) % number(small, *groups) == 0
        assert (number(full, *kept_groups) < number(full, *groups)) == (
            number(small, *kept_groups) < number(small, *groups))


@EACH
def test_what_is_no_size_stays_as_it_is(checkpoint: str) -> None:
    full, small = (dict(entries(model.config)) for model in pair(checkpoint))
    for key in ("hidden_act", "rms_norm_eps", "tie_word_embeddings", "norm_topk_prob", "attn_logit_softcapping",
                "final_logit_softcapping", "query_pre_attn_scalar", "use_qk_norm", "parallel_attn", "alibi"):
        assert full.get(key) == small.get(key), key


@EACH
def test_tied_embeddings_stay_tied(checkpoint: str) -> None:
    full, small = pair(checkpoint)
    tied = [model.get_input_embeddings().weight is model.get_output_embeddings().weight for model in (full, small)]
    assert tied[0] == tied[1]


@EACH
def test_it_is_small(checkpoint: str) -> None:
    _, small = pair(checkpoint)
    assert sum(parameter.numel() for parameter in small.parameters()) < 10_000_000


@EACH
def test_no_factor_in_the_block_is_one(checkpoint: str) -> None:
    """A factor of one would hide whether it was applied."""
    full, small = (dict(entries(model.config)) for model in pair(checkpoint))
    for key, value in small.items():
        if key.endswith(FACTORS) and isinstance(value, float) and "dim" not in key:
            assert value != 1.0, key
            assert value == full[key] or full[key] == 1.0, key


@EACH
def test_axes_that_could_be_mistaken_differ(checkpoint: str) -> None:
    """No axis of a prompt, a head, the stream, an expert or the vocabulary is as long as another."""
    full, small = (model.config for model in pair(checkpoint))
    axes = {
        "batch": PROMPTS, "seq": PROMPT_LENGTH,
        "stream": number(small, "hidden_size", "n_embd", "d_model"),
        "heads": number(small, "num_attention_heads", "n_head", "n_heads"),
        "head": number(small, "qk_nope_head_dim", "head_dim"),
        "rotated part of a head": number(small, "qk_rope_head_dim"),
        "value of a head": number(small, "v_head_dim"),
        "feed-forward": number(small, "intermediate_size", "ffn_dim"),
        "expert": number(small, "moe_intermediate_size"),
        "shared expert": number(small, "shared_expert_intermediate_size"),
        "experts": number(small, "num_experts", "num_local_experts", "n_routed_experts"),
        "active experts": number(small, "num_experts_per_tok"),
        "vocabulary": number(small, "vocab_size"),
        "state": number(small, "state_size", "mamba_d_state", "ssm_state_size"),
        "query rank": number(small, "q_lora_rank"), "key rank": number(small, "kv_lora_rank"),
        "recurrent key": number(small, "linear_key_head_dim"),
        "recurrent value": number(small, "linear_value_head_dim"),
    }
    present = {name: size for name, size in axes.items() if size > 1}
    for first, second in combinations(present, 2):
        if {first, second} == {"heads", "active experts"} and number(full, "num_experts_per_tok") == 2:
            continue
        assert present[first] != present[second], (first, second)


@EXACT
def test_axes_that_differ_in_an_attention_or_a_feed_forward_differ_in_the_twin(checkpoint: str) -> None:
    """Within one matrix, two axes that are told apart by their length in the checkpoint are so in its twin."""
    for large, little in block_pairs(checkpoint):
        shapes = {name: parameter.shape for name, parameter in large.named_parameters()}
        for name, parameter in little.named_parameters():
            for first, second in combinations(range(parameter.ndim), 2):
                if shapes[name][first] != shapes[name][second]:
                    assert parameter.shape[first] != parameter.shape[second], name


@EACH
def test_everything_that_training_moves_has_moved(checkpoint: str) -> None:
    """Against the same twin as it is initialised: no entry of any parameter or saved vector is where it was."""
    _, small = pair(checkpoint)
    with torch.random.fork_rng():
        # Two draws of a matrix may meet in an entry by chance; a seed keeps the chance from changing.
        torch.manual_seed(0)
        initial = type(small)(small.config)
    saved = small.state_dict()
    assert saved.keys() == initial.state_dict().keys()
    tables = {name for name, buffer in small.named_buffers() if buffer.ndim > 1}
    for name, before in initial.state_dict().items():
        if before.is_floating_point():
            assert saved[name].dtype == torch.float32, name
            assert (saved[name] == before).all() if name in tables else (saved[name] != before).all(), name
            assert saved[name].isfinite().all(), name


@pytest.mark.parametrize("checkpoint", [
    record.id for name, record in RECORDS if record.reference and name not in DRAFTERS])
def test_a_seed_gives_the_same_bytes_and_another_seed_others(checkpoint: str) -> None:
    def raw(seed: int) -> dict[str, bytes]:
        return {name: tensor.numpy().tobytes()
                for name, tensor in twin_of(recorded(checkpoint), seed=seed).state_dict().items()
                if tensor.is_floating_point()}

    torch.manual_seed(1)
    first = raw(3)
    torch.manual_seed(2)
    assert first == raw(3)
    other = raw(4)
    assert all(first[name] != other[name] for name in first)


@EACH
def test_a_twin_runs_its_prompt_with_sums_that_mean_something(checkpoint: str) -> None:
    _, small = pair(checkpoint)
    prompt = prompt_for(small, batch=PROMPTS)
    with torch.no_grad():
        logits = small(input_ids=prompt, attention_mask=torch.ones_like(prompt), use_cache=False).logits
    assert logits.shape[:2] == (PROMPTS, PROMPT_LENGTH)
    assert logits.isfinite().all()
    assert 0.01 < logits.std() < 100


@DRAFTER
def test_a_drafter_has_no_twin(checkpoint: str) -> None:
    with pytest.raises(NoTwin, match="does not run"):
        twin_of(recorded(checkpoint))


@pytest.mark.parametrize(("heads", "kv_heads"), [
    (2, 1), (16, 1), (71, 1), (12, 12), (8, 4), (32, 8), (64, 8), (128, 8), (48, 4), (96, 8), (80, 10), (56, 8)])
@pytest.mark.parametrize("own_head_dim", [True, False])
def test_head_counts_never_meet_a_width(heads: int, kv_heads: int, own_head_dim: bool) -> None:
    config = LlamaConfig(num_attention_heads=heads, num_key_value_heads=kv_heads, hidden_size=heads * 64,
                         num_hidden_layers=4, head_dim=64 if own_head_dim else None)
    if not own_head_dim:
        config.head_dim = None
    small = shrink(config, [0, 1])
    head_dim: Any = small.head_dim
    found = [small.num_attention_heads, head_dim, small.hidden_size, small.intermediate_size, small.vocab_size,
             PROMPTS, PROMPT_LENGTH]
    assert len(set(found)) == len(found)
    assert small.num_key_value_heads not in found[1:]
    assert small.num_attention_heads * kv_heads == heads * small.num_key_value_heads


def test_a_factor_of_one_is_moved_and_a_switch_is_not() -> None:
    make: Callable[..., PreTrainedConfig] = LlamaConfig
    config = make(num_hidden_layers=2, own_scaling_factor=1.0, own_multiplier=0.5, is_multiplier=True)
    small = shrink(config, [0, 1])
    assert small.own_scaling_factor not in (0.0, 1.0)
    assert small.own_multiplier == 0.5
    assert small.is_multiplier is True
