"""The small twin: a small random float32 model of the same structure as a checkpoint's.

One rule shrinks every config: it keeps one block of each kind (two blocks at least), the ratio of query to key/value
heads, partial rotary, and the order of prompt, window and expert counts; it makes the axes different in size, so that
two of them cannot be mistaken for one another. Every parameter is then moved off its initial value, because a gate at
one or a bias at zero would hide the very term to be checked.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel

from encyclopedia.checkpoints import RecordedCheckpoint
from encyclopedia.model.build import build_without_weights
from encyclopedia.model.kinds import Kind, find_kinds
from encyclopedia.model.structure import blocks_of, find_stack

#: Length of the prompt a twin is checked on: longer than its windows, and a prime, so that no head count equals it.
PROMPT_LENGTH = 13

#: Prompts in a call that checks a twin; no other axis is as long.
PROMPTS = 5

VOCAB_SIZE = 96
NUM_EXPERTS = 64
TOP_K = 3
WINDOW = 5
KEPT_KEYS = 7

#: Widths of a head, of which a twin takes the first that no other axis has.
HEAD_DIMS = (16, 32, 80)

#: Least width of the stream where heads have a width of their own; some classes want a multiple of the heads.
WIDTH = 48

#: What a width is a multiple of, for kernels that want rows aligned.
ALIGNED = 8

#: What a factor of one becomes: at one it would hide whether it was applied.
MOVED_FACTOR = 1.25

#: Widths by config key; the numbers differ so that axes do.
WIDTHS = {
    "intermediate_size": 112,
    "moe_intermediate_size": 24,
    "shared_expert_intermediate_size": 40,
}

COUNTS = {
    "num_experts": NUM_EXPERTS,
    "num_local_experts": NUM_EXPERTS,
    "n_routed_experts": NUM_EXPERTS,
    "num_experts_per_tok": TOP_K,
    "sliding_window": WINDOW,
    "keep_window_size": KEPT_KEYS,
    "vocab_size": VOCAB_SIZE,
}

#: Ends of the config keys whose number multiplies something in the block.
FACTORS = ("_scaling_factor", "_multiplier")


def chosen_blocks(kinds: list[Kind], depth: int) -> list[int]:
    """The blocks a twin keeps: the first of each kind, and a second where there is one kind only."""
    firsts = sorted(kind.blocks[0] for kind in kinds)
    return firsts if len(firsts) > 1 else sorted({*firsts, min(1, depth - 1)})


def blocks_kept(full: PreTrainedModel) -> list[int]:
    """The blocks of ``full`` that its twin keeps, in order."""
    kinds = find_kinds(list(blocks_of(full, find_stack(full, full.config))), full.config)
    return chosen_blocks(kinds, full.config.num_hidden_layers)


def shrink(config: PreTrainedConfig, blocks: list[int]) -> PreTrainedConfig:
    """``config`` made small, with one entry per kept block wherever it has one entry per block.

    Args:
        config: a full-size config.
        blocks: indices of the blocks kept, in order.
    """
    full = config.to_dict()
    depth = config.num_hidden_layers
    heads, kv_heads = config.num_attention_heads, getattr(config, "num_key_value_heads", None) or None
    per_kv = heads // (kv_heads or heads)
    small_kv = 2 if kv_heads != 1 else 1

    def small_heads(count: int) -> int:
        return count * small_kv // (kv_heads or heads)

    changed: dict[str, Any] = {}
    for key, value in full.items():
        if isinstance(value, list) and len(value) == depth:
            changed[key] = [value[index] for index in blocks]
            if "heads" in key:
                changed[key] = [small_heads(count) for count in changed[key]]
        elif isinstance(value, int) and not isinstance(value, bool):
            if key in WIDTHS:
                changed[key] = WIDTHS[key]
            elif key in COUNTS and value > 0:
                changed[key] = min(value, COUNTS[key])
            elif key.endswith("_token_id"):
                changed[key] = value % VOCAB_SIZE
        elif isinstance(value, float) and value == 1.0 and key.endswith(FACTORS):
            changed[key] = MOVED_FACTOR
        elif key.endswith("_token_id") and isinstance(value, list):
            changed[key] = [number % VOCAB_SIZE for number in value]
    changed |= {
        "num_hidden_layers": len(blocks),
        "num_attention_heads": small_kv * per_kv,
        "dtype": "float32",
    }
    if kv_heads is not None:
        changed["num_key_value_heads"] = small_kv
    heads_by_block = [changed[key] for key in changed if "heads" in key and isinstance(changed[key], list)]
    counts = {small_kv, changed["num_attention_heads"], *itertools.chain(*heads_by_block)}
    changed |= _widths(counts, changed["num_attention_heads"], own_head_dim=full.get("head_dim") is not None)
    small = {**full, **changed}
    for key in ("model_type", "transformers_version"):
        small.pop(key, None)
    return type(config)(**small)


def _widths(counts: set[int], heads: int, *, own_head_dim: bool) -> dict[str, int]:
    """Widths of the stream and of a head that differ from each other and from every other axis.

    Args:
        counts: head counts of all blocks.
        heads: the config's own count of query heads.
        own_head_dim: whether the config states a head's width; else it is the stream's over ``heads``.
    """
    taken = {PROMPTS, PROMPT_LENGTH, *counts, *WIDTHS.values(), *COUNTS.values()}
    head_dim = next(width for width in HEAD_DIMS if not taken & {width, *(count * width for count in counts)})
    if not own_head_dim:
        return {"hidden_size": head_dim * heads}
    taken |= {head_dim, *(count * head_dim for count in counts)}
    step = math.lcm(heads, ALIGNED)
    first = math.ceil(WIDTH / step) * step
    return {"head_dim": head_dim, "hidden_size": next(width for width in itertools.count(first, step)
                                                      if width not in taken)}


def twin_of(record: RecordedCheckpoint, *, seed: int = 0, **kwargs: Any) -> PreTrainedModel:
    """The small twin of a recorded checkpoint; the same seed gives the same model.

    Args:
        record: the checkpoint.
        seed: of the parameters' draw.
        **kwargs: ``attn_implementation`` or ``experts_implementation`` for the load, eager attention by default.

    Returns:
        A float32 causal model in evaluation mode.
    """
    full = build_without_weights(record)
    return twin_of_model(full, seed=seed, **kwargs)


def twin_of_model(full: PreTrainedModel, *, seed: int = 0, **kwargs: Any) -> PreTrainedModel:
    """The small twin of a model built without weights; see :func:`twin_of`."""
    small = shrink(full.config, blocks_kept(full))
    experts = kwargs.pop("experts_implementation", None)
    if experts is not None:
        small._experts_implementation = experts
    kwargs.setdefault("attn_implementation", "eager")
    model = AutoModelForCausalLM.from_config(small, dtype=torch.float32, **kwargs).eval()
    randomize(model, seed)
    return model


def randomize(model: nn.Module, seed: int) -> None:
    """Move every parameter of ``model``, and every buffer that is saved with it, off its initial value.

    Matrices are drawn so that a unit input gives a unit output; vectors (gains, gates, biases) keep their initial
    value as the mean.
    """
    generator = torch.Generator().manual_seed(seed)
    saved = set(model.state_dict())
    tensors = [*model.named_parameters(), *((name, buffer) for name, buffer in model.named_buffers() if name in saved)]
    with torch.no_grad():
        for _, tensor in tensors:
            if not tensor.is_floating_point():
                continue
            noise = torch.randn(tensor.shape, generator=generator)
            if tensor.ndim < 2:
                tensor.add_(0.3 * noise)
            else:
                tensor.copy_(noise / math.sqrt(tensor.shape[-1]))


def prompt_for(model: PreTrainedModel, *, seed: int = 0, batch: int = 1) -> torch.Tensor:
    """Token ids ``[batch, PROMPT_LENGTH]`` for a twin, clear of its special tokens where they are low."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(8, model.config.vocab_size, (batch, PROMPT_LENGTH), generator=generator)
