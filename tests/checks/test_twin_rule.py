"""The one rule that makes small twins: what it keeps, what it moves, and that no two axes can be mistaken."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest
import torch
from transformers import LlamaConfig

from encyclopedia.checkpoints import families_recorded, read_family, recorded
from encyclopedia.model.build import build_without_weights
from encyclopedia.model.kinds import find_kinds, sizes_of
from encyclopedia.model.structure import blocks_of, find_stack
from encyclopedia.twin import PROMPT_LENGTH, PROMPTS, prompt_for, shrink, twin_of, twin_of_model

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

SHOWN = [record.id for name in families_recorded() for record in read_family(name)[0] if record.reason is None]
EACH = pytest.mark.parametrize("checkpoint", SHOWN)

#: Names that may be one number in the model itself, so also in its twin.
ALIKE = [{"head_dim", "qk_head_dim"}, {"num_heads", "num_kv_heads"}]


@cache
def pair(checkpoint: str) -> tuple[PreTrainedModel, PreTrainedModel]:
    """The model without weights and its twin."""
    full = build_without_weights(recorded(checkpoint))
    return full, twin_of_model(full)


def sizes(model: PreTrainedModel) -> list[dict[str, int]]:
    """The sizes of each kind of block."""
    kinds = find_kinds(list(blocks_of(model, find_stack(model, model.config))), model.config)
    return [sizes_of(kind, model.config) for kind in kinds]


@EACH
def test_heads_stay_grouped_on_every_kind_of_block(checkpoint: str) -> None:
    full, small = (sizes(model) for model in pair(checkpoint))
    assert len(full) == len(small)
    for large, little in zip(full, small, strict=True):
        assert large["num_heads"] * little["num_kv_heads"] == little["num_heads"] * large["num_kv_heads"]
        assert (large["num_kv_heads"] == 1) == (little["num_kv_heads"] == 1)
    for first, second in combinations(range(len(full)), 2):
        differ = [found[first]["num_heads"] != found[second]["num_heads"] for found in (full, small)]
        assert differ[0] == differ[1]


@EACH
def test_partial_rotary_stays_partial(checkpoint: str) -> None:
    full, small = (model.config for model in pair(checkpoint))
    assert partial(full) == partial(small)
    for factor in partial(small):
        assert factor * small.head_dim % 2 == 0 if factor < 1 else True


def partial(config: PreTrainedConfig) -> list[float]:
    parameters = getattr(config, "rope_parameters", None) or {}
    nested = [value for value in parameters.values() if isinstance(value, dict)] or [parameters]
    return [entry.get("partial_rotary_factor", 1.0) for entry in nested]


@EACH
def test_what_is_shorter_than_the_prompt_or_fewer_stays_so(checkpoint: str) -> None:
    full, small = (model.config for model in pair(checkpoint))
    for key in ("sliding_window", "keep_window_size"):
        assert bool(getattr(full, key, None)) == bool(getattr(small, key, None)), key
        if getattr(full, key, None):
            assert 1 < getattr(small, key) < PROMPT_LENGTH, key
    if getattr(full, "num_experts", None) and getattr(full, "num_experts_per_tok", None):
        assert 0 < small.num_experts_per_tok < small.num_experts
        assert (full.num_experts_per_tok > 1) == (small.num_experts_per_tok > 1)


@EACH
def test_it_is_small(checkpoint: str) -> None:
    _, small = pair(checkpoint)
    assert sum(parameter.numel() for parameter in small.parameters()) < 5_000_000


@EACH
def test_no_factor_in_the_block_is_one(checkpoint: str) -> None:
    """A factor of one would hide whether it was applied."""
    full, small = pair(checkpoint)
    for key, value in small.config.to_dict().items():
        if key.endswith(("_scaling_factor", "_multiplier")) and isinstance(value, float):
            assert value != 1.0, key
            original = getattr(full.config, key)
            assert value == original or original == 1.0, key


@EACH
def test_axes_that_could_be_mistaken_differ(checkpoint: str) -> None:
    """Of a block's axes no two are as long, but where they are one number in the checkpoint too."""
    full, small = pair(checkpoint)
    for large, little in zip(sizes(full), sizes(small), strict=True):
        axes = {name: size for name, size in little.items() if name != "sliding_window"}
        axes |= {"batch": PROMPTS, "seq": PROMPT_LENGTH, "vocab_size": small.config.vocab_size,
                 "heads side by side": axes["num_heads"] * axes["head_dim"]}
        large = {**large, "heads side by side": large["num_heads"] * large["head_dim"]}
        for first, second in combinations(axes, 2):
            if axes[first] == axes[second]:
                assert {first, second} in ALIKE or {first, second} == {"hidden_size", "heads side by side"}
                assert large[first] == large[second], (first, second)


@EACH
def test_everything_that_training_moves_has_moved(checkpoint: str) -> None:
    """Against the same twin as it is initialised: no entry of any parameter or saved buffer is where it was."""
    _, small = pair(checkpoint)
    with torch.random.fork_rng():
        # Two draws of a matrix may meet in an entry by chance; a seed keeps the chance from changing.
        torch.manual_seed(0)
        initial = type(small)(small.config)
    saved = small.state_dict()
    assert saved.keys() == initial.state_dict().keys()
    for name, before in initial.state_dict().items():
        if before.is_floating_point():
            assert (saved[name] != before).all(), name
            assert saved[name].isfinite().all(), name


@pytest.mark.parametrize("checkpoint", [
    next(record.id for record in read_family(name)[0] if record.reference) for name in families_recorded()])
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
    with torch.no_grad():
        logits = small(input_ids=prompt_for(small, batch=PROMPTS)).logits
    assert logits.isfinite().all()
    assert 0.1 < logits.std() < 100


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
