"""Small sizes for a config's axes: every one different, wherever the structure lets it.

Sizes are told apart by what their keys say (heads, widths, experts, state), not by the family they stand in.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from encyclopedia.twin.prompt import PROMPT_LENGTH, PROMPTS

#: Sizes by key: each value that a key has in the config, its blocks and its nested parts.
Sizes = Mapping[str, set[int]]

#: What a width is a multiple of, for kernels that want rows aligned; counts are no multiples of it.
ALIGNED = 8

#: Counts that no width equals: a prime, and a square for routers that take experts by row and column.
VOCAB_SIZE = 97
NUM_EXPERTS = 36

TOP_K = 3
WINDOW = 5

#: Groups of experts, each with nine of them, of which a router with more groups keeps two.
GROUPS = 4
KEPT_GROUPS = 2

#: Widths of a head, of which a twin takes the first that no other axis has.
HEAD_DIMS = (16, 32, 24, 40, 48, 56, 64, 80, *range(96, 4096, 8))

#: Least width of the stream where heads have a width of their own.
WIDTH = 48

#: Numbers for axes that are no width: state sizes, ranks, groups.
COUNTS = (6, 7, 9, 10, 11, 12, 14, 15, 17, 18, 19, 20, 21, 22, 23, 25, 26, 27, 28, 30)

HEADS = r"(swa_)?num_attention_heads(_per_layer)?|n_heads?|num_heads|(decoder_)?attention_heads"
KV_HEADS = r"(swa_)?num_key_value_heads(_per_layer)?|num_kv_heads|kv_n_heads|n_head_kv|num_query_groups"
HEAD_DIM = r"(swa_|attention_|global_)?head_dim|kv_channels|d_head|dim_head"
HIDDEN = r"hidden_size|n_embd|d_model|embedding_dim"
EXPERTS = r"(moe_)?num_(local_)?experts|n_routed_experts"
ACTIVE_EXPERTS = r"num_experts_per_tok(en)?|moe_(topk|top_k|k)"
EXPERT_GROUPS = r"n_group|num_expert_group"
FEED_FORWARD = r"(\w+_)?(intermediate|ffn_hidden)_size(_mlp|_per_layer)?|(decoder_)?ffn_dim|dff|dim_ff|d_inner|n_inner"
RANKS = r"\w*(lora_rank|gate_rank|norm_rank|adapter_rank|lowrank|laurel_rank)"
STATE = r"(mamba_d_|ssm_)?state(_size)?"
SSM_HEADS = r"mamba_n_heads|mamba_num_heads|n_mamba_heads"
SSM_DIM = r"mamba_d_head|mamba_head_dim|mamba_headdim"
SSM_GROUPS = r"(mamba_)?n_groups|mamba_ngroups"
STEP_RANK = r"time_step_rank|mamba_dt_rank"
FOLLOWERS = r"word_embed_proj_dim|lru_width|attention_hidden_size|ple_embed_dim"

#: Axes that are as short in the checkpoint as in its twin, which no other axis shall equal.
SHORT = r"\w*(conv\w*(kernel|width|cache)\w*|d_conv|kernel_size|kernel_dim|hc_mult|hc_count|num_inputs)|conv_L_cache"

#: Counts of parallel streams, whose mixing weights are as many as their square, or that and two for each.
STREAMS = "hc_|altup"

#: Windows and chunks shorter than the prompt, and tables that only have to be large enough.
BOUNDS = {
    r"vocab_size(_per_layer_input)?": VOCAB_SIZE,
    r"unpadded_vocab_size": VOCAB_SIZE - 6,
    r"(attention_|sliding_)?window(_size)?|sliding_window_size|attention_window_size|attention_chunk_size": WINDOW,
    r"local_attention": 2 * WINDOW,
    r"keep_window_size|index_topk": 7,
    r"indexer_budget": 8,
    r"(mamba_)?chunk_size|block_size": 8,
    r"index_topk_blocks": 3,
    r"index_block_size": 2,
    r"compressed_sparse_attention": 4,
    r"heavily_compressed_attention": 6,
    r"ngram_vocab_size_base": 101,
    r"make_ngram_vocab_size_divisible_by": 8,
    r"split_ngram_parts": 2,
}


class Axes:
    """The sizes given so far, and the numbers that are taken.

    Attributes:
        sizes: the full sizes.
        shares: parts of a head that are rotated.
        tied: whether sizes that are one number in the full model stay one number.
        small: the small size of each key and full size.
        taken: numbers that no further axis gets.
    """

    def __init__(self, sizes: Sizes, shares: Iterable[float], *, tied: bool) -> None:
        self.sizes = sizes
        self.shares = [share for share in shares if 0 < share < 1]
        self.tied = tied
        self.small: dict[tuple[str, int], int] = {}
        self.taken = {PROMPTS, PROMPT_LENGTH}

    def find(self, pattern: str) -> list[tuple[str, int]]:
        """Keys and sizes that ``pattern`` names and that have no small size yet; zeros stay."""
        return [(key, value) for key in self.sizes if re.fullmatch(pattern, key)
                for value in sorted(self.sizes[key]) if value > 0 and (key, value) not in self.small]

    def full(self, pattern: str) -> int:
        """The largest size that ``pattern`` names, or 0."""
        return max((value for key, values in self.sizes.items() if re.fullmatch(pattern, key) for value in values),
                   default=0)

    def put(self, pair: tuple[str, int], small: int) -> None:
        self.small[pair] = small
        self.taken.add(small)

    def pick(self, candidates: Iterable[int], *products: Callable[[int], int]) -> int:
        """The first candidate that is free as its ``products`` are, and takes them.

        Raises:
            ValueError: where none is.
        """
        for number in candidates:
            made = {number, *(product(number) for product in products)}
            if not made & self.taken:
                self.taken |= made
                return number
        raise ValueError("no size is free for an axis of the twin")

    def wide(self, *products: Callable[[int], int], least: int = 16) -> int:
        """A free width."""
        return self.pick(itertools.count(math.ceil(least / ALIGNED) * ALIGNED, ALIGNED), *products)

    def rotates(self, width: int) -> bool:
        """Whether the rotated part of a head of ``width`` is a whole number of pairs."""
        return all(int(width * share) % 2 == 0 and int(width * share) > 0 for share in self.shares)


def small_sizes(sizes: Sizes, shares: Iterable[float] = (), *, tied: bool = False) -> dict[tuple[str, int], int]:
    """A small size for each key and size that names an axis, a window or a chunk.

    Args:
        sizes: the full sizes.
        shares: the parts of a head that are rotated.
        tied: keep the stream as wide as its heads side by side, where it is so in the full sizes.
    """
    axes = Axes(sizes, shares, tied=tied)
    for pattern, bound in BOUNDS.items():
        for key, value in axes.find(pattern):
            axes.small[key, value] = min(value, bound)
            if "vocab" in key or "keep" in key:
                axes.taken.add(min(value, bound))
    for key, value in axes.find(SHORT):
        if value < ALIGNED:
            axes.taken |= {value, value * value, value * (value + 2)} if re.search(STREAMS, key) else {value}
    heads = _heads(axes)
    _experts(axes)
    head_dim = _head_dims(axes, heads)
    _latent(axes, heads)
    hidden = _hidden(axes, heads, head_dim)
    _followers(axes, hidden)
    _linear_attention(axes, heads)
    _state_space(axes, hidden)
    for pair in axes.find(FEED_FORWARD):
        expert = "moe" in pair[0] or "expert" in pair[0]
        axes.put(pair, axes.wide(lambda width: 2 * width, least=24 if expert else 96))
    for pair in axes.find(RANKS):
        axes.put(pair, axes.wide())
    return axes.small


def _heads(axes: Axes) -> dict[str, int]:
    """Counts of heads, largest first: as many queries to a key/value head as before, and two of those, or one."""
    attention = axes.find(KV_HEADS) or not axes.full(STATE)
    heads, kv_heads = (axes.find(HEADS), axes.find(KV_HEADS)) if attention else ([], [])
    counts = [value for _, value in kv_heads or heads]
    if not counts:
        return {}
    shared = 1 if 1 in counts else math.gcd(*counts)
    least = 1 if 1 in counts else 2
    for pair in [*heads, *kv_heads]:
        axes.put(pair, max(pair[1] * least // shared, 1))
    most, fewest = (max((axes.small[pair] for pair in pairs), default=0) for pairs in (heads, kv_heads or heads))
    return {"queries": most or fewest, "keys": fewest, "both": most + 2 * fewest,
            **{f"{key} {value}": axes.small[key, value] for key, value in [*heads, *kv_heads]}}


def _experts(axes: Axes) -> None:
    groups = [pair for pair in axes.find(EXPERT_GROUPS) if pair[1] > 1]
    most = axes.full(EXPERTS)
    for pair in axes.find(ACTIVE_EXPERTS):
        axes.put(pair, TOP_K if pair[1] > 1 and most > TOP_K else pair[1])
    # A router scores a group by the best two of its experts.
    split = max((min(value, GROUPS) for _, value in groups), default=1)
    for pair in axes.find(EXPERTS):
        square = math.isqrt(pair[1]) ** 2 == pair[1]
        axes.put(pair, next((count for count in range(min(pair[1], NUM_EXPERTS), TOP_K, -1)
                             if count % ALIGNED and count not in axes.taken
                             and not count % split and (split == 1 or count >= 2 * split)
                             and (not square or math.isqrt(count) ** 2 == count)), pair[1]))
    for pair in groups:
        axes.put(pair, min(pair[1], GROUPS))
    for pair in axes.find("topk_group"):
        if groups and pair[1] < groups[0][1]:
            axes.small[pair] = min(pair[1], KEPT_GROUPS)
        elif groups:
            axes.small[pair] = axes.small[groups[0]]
    for pair in axes.find("zero_expert_num"):
        axes.put(pair, axes.pick(COUNTS))


def _products(counts: Iterable[int]) -> list[Callable[[int], int]]:
    """What a width becomes, once for each of ``counts``."""
    return [partial(operator.mul, count) for count in counts if count > 1]


def _side_by_side(heads: Mapping[str, int]) -> list[Callable[[int], int]]:
    return _products({*heads.values()})


def _head_dims(axes: Axes, heads: Mapping[str, int]) -> int:
    """Widths of heads, whose rotated part stays a whole number of pairs; the first of them, or 0."""
    if not heads or axes.full("qk_rope_head_dim"):
        return 0
    rotary = axes.find("rotary_dim")
    whole = axes.full(HEAD_DIM) or axes.full(HIDDEN) // max(axes.full(HEADS), 1)
    axes.shares += [value / whole for _, value in rotary if value < whole]
    widths: dict[int, int] = {}
    for pair in axes.find(HEAD_DIM):
        if pair[1] not in widths:
            widths[pair[1]] = axes.pick(filter(axes.rotates, HEAD_DIMS), *_side_by_side(heads))
        axes.put(pair, widths[pair[1]])
    if axes.full(HEAD_DIM):
        head_dim = widths[axes.full(HEAD_DIM)]
    else:
        head_dim = axes.pick(filter(axes.rotates, HEAD_DIMS), *_side_by_side(heads))
    for pair in rotary:
        axes.small[pair] = pair[1] * head_dim // whole
    for pair in axes.find(r"(swa_)?v_head_dim"):
        axes.put(pair, axes.wide(*_side_by_side(heads)))
    return head_dim if axes.full(HEAD_DIM) else -head_dim


def _latent(axes: Axes, heads: Mapping[str, int]) -> None:
    """Latent attention: rotated and plain parts of a query head, the value's width and the ranks, all different."""
    rope = axes.full("qk_rope_head_dim")
    if not rope:
        return
    many = heads.get("queries", 1)
    whole = axes.full("head_dim")
    part = next((share for share in axes.shares if share * whole == rope), None)
    turned = axes.pick((8, 16, 24)) if part is None or part >= 1 / 4 else 4
    for pair in axes.find("qk_rope_head_dim"):
        axes.put(pair, turned)
    for pair in axes.find("qk_nope_head_dim"):
        summed = int(turned / part) - turned if part is not None and pair[1] + rope == whole else None
        axes.put(pair, summed or axes.wide(lambda width: width + turned, lambda width: (width + turned) * many))
    plain = {value: axes.small["qk_nope_head_dim", value] for value in axes.sizes.get("qk_nope_head_dim", ())}
    for pair in axes.find("head_dim|qk_head_dim"):
        if pair[1] == rope:
            axes.small[pair] = turned
        elif pair[1] - rope in plain:
            axes.small[pair] = plain[pair[1] - rope] + turned
        else:
            axes.put(pair, int(turned / part) if part else axes.wide(*_side_by_side(heads)))
    for pair in axes.find(r"(swa_)?v_head_dim"):
        sums: list[Callable[[int], int]] = [lambda width, size=size: (width + size) * many  # type: ignore[misc]
                                            for size in plain.values()]
        axes.put(pair, axes.wide(*_side_by_side(heads), *sums))
    for pair in axes.find("kv_lora_rank"):
        axes.put(pair, axes.wide(lambda width: width + turned, least=32))
    for pair in axes.find(RANKS):
        axes.put(pair, axes.wide(lambda width: 2 * width))
    for pair in axes.find("o_groups"):
        axes.small[pair] = min(pair[1], 2)


def _hidden(axes: Axes, heads: Mapping[str, int], head_dim: int) -> int:
    """The stream's width: its heads side by side where they have no width of their own."""
    found = axes.find(HIDDEN)
    if not found:
        return 0
    many = heads.get("queries", 1)
    full = max(value for _, value in found)
    side_by_side = axes.full(HEAD_DIM) * axes.full(HEADS) == full
    if head_dim < 0 or (axes.tied and head_dim and side_by_side):
        hidden = abs(head_dim) * many
    else:
        step = math.lcm(many, ALIGNED)
        hidden = axes.pick(itertools.count(math.ceil(WIDTH / step) * step, step), lambda width: 2 * width)
    for pair in found:
        axes.small[pair] = max(pair[1] * hidden // full, ALIGNED)
    axes.taken.add(hidden)
    return hidden


def _followers(axes: Axes, hidden: int) -> None:
    """Widths that are a multiple or a part of the stream's, and the sizes of side tables and indexers."""
    full = axes.full(HIDDEN)
    for pair in axes.find(FOLLOWERS):
        if full and pair[1] * hidden % full == 0:
            axes.small[pair] = pair[1] * hidden // full
    for pair in axes.find("attention_head_dim"):
        if axes.full(HEADS) and full and pair[1] * axes.full(HEADS) % full == 0:
            axes.small[pair] = pair[1] * axes.full(HEADS) // full * hidden // axes.small[axes.find(HEADS)[0]]
    for pair in axes.find(r"hidden_size_per_layer_input|router_hidden_size|d_rel|index(er)?_head_dim"):
        axes.put(pair, axes.wide(least=32 if "index" in pair[0] else 16))
    for pair in axes.find(r"index(er)?_n_heads|rel_extent"):
        axes.put(pair, axes.pick((6, 10, 12, 14, 18)))


def _linear_attention(axes: Axes, heads: Mapping[str, int]) -> None:
    """Heads and widths of a delta rule: as many value heads to a key head as before."""
    for pair in axes.find("linear_num_key_heads"):
        ratio = max(axes.full("linear_num_value_heads") // pair[1], 1)
        count = axes.pick(COUNTS, *_products({ratio}))
        axes.put(pair, count)
        for values in axes.find("linear_num_value_heads"):
            axes.put(values, count * ratio)
    for pair in axes.find("linear_num_heads"):
        axes.put(pair, axes.pick(COUNTS))
    counts = {value for (key, _), value in axes.small.items() if re.fullmatch(r"linear_num_(\w+_)?heads", key)}
    for pair in axes.find(r"linear_(key_|value_)?head_dim"):
        axes.put(pair, axes.wide(*_products({*counts, *heads.values()})))


def _state_space(axes: Axes, hidden: int) -> None:
    """State spaces: heads that make up the expanded stream where they do so, groups that split the heads."""
    attention = axes.full(KV_HEADS)
    heads = axes.find(SSM_HEADS if attention else f"{SSM_HEADS}|num_heads")[:1]
    widths = axes.find(SSM_DIM if attention else f"{SSM_DIM}|head_dim")[:1]
    whole = axes.full("(mamba_)?expand") * hidden
    expanded = axes.full("(mamba_)?expand") * axes.full(HIDDEN)
    for pair in heads:
        if not widths or pair[1] * widths[0][1] == expanded:
            count = next((count for count in (6, 12, 10, 14, 4, 8, 16, 3, 2) if count <= pair[1]
                          and whole % count == 0 and not {count, whole // count} & axes.taken), min(pair[1], 2))
            width = whole // count
        else:
            count = axes.pick((6, 12, 10, 14, 18))
            width = axes.wide(*_products({count}))
        axes.put(pair, count)
        axes.taken.add(width)
        for other in widths:
            axes.put(other, width)
        for inner in axes.find("mamba_d_ssm"):
            axes.put(inner, count * width)
        for groups in axes.find(SSM_GROUPS):
            axes.small[groups] = min(groups[1], 2)
    for pair in axes.find(STATE):
        axes.put(pair, axes.pick((12, 20, 28, 36, 44)))
    for pair in axes.find(STEP_RANK):
        axes.put(pair, axes.pick(COUNTS))
