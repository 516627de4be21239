"""What a checkpoint is made of, in the words of a table: mixers, positions, norms, activation, experts, windows.

Each function gives every answer that holds for some block, each once, and none where the facts do not tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from encyclopedia.facts import CheckpointFacts, KindFacts, SublayerFacts
from encyclopedia.page.mixers import BOTH, RECURRENT, SOFTMAX, mixer_of

_MIXERS = {SOFTMAX: "softmax", RECURRENT: "recurrent", BOTH: "softmax beside recurrent"}

_RECURRENCES = {"delta-rule": "delta rule", "state-space": "state space", "short-convolution": "short convolution"}

#: Keys under which configs name the MLP's activation function.
_ACTIVATION_KEYS = ("mlp_hidden_act", "hidden_act", "hidden_activation", "activation_function", "activation", "afn")

#: Native classes of activation functions, by what configs call them.
_ACTIVATION_CLASSES = {
    "SiLUActivation": "silu", "SiLU": "silu", "GELUActivation": "gelu", "GELU": "gelu", "NewGELUActivation": "gelu_new",
    "GELUTanh": "gelu_pytorch_tanh", "ReLUSquaredActivation": "relu2", "ReLU": "relu", "XIELUActivation": "xielu",
}

_ACTIVATION_LINE = re.compile(
    r"\(\w*(?:act|act_fn|activation|activation_fn|gelu_impl)\): (\w+)\((?!approximate='tanh')")
_NORM_LINE = re.compile(r"\([\w/.]*\): (\w*Norm)\(")
_ROTARY_KEYS = ("rope_parameters", "rotary_dim", "rope_theta")
_SHARED_KEYS = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts")


def mixers(checkpoint: CheckpointFacts) -> list[str]:
    """What blocks mix tokens with; blocks that mix none, or whose inside is not told apart, add nothing."""
    return _once(_MIXERS[mixer] for kind in checkpoint.kinds if (mixer := mixer_of(kind)) in _MIXERS)


def recurrences(checkpoint: CheckpointFacts) -> list[str]:
    """The sorts of recurrence or convolution that carry tokens' information."""
    return [name for slug, name in _RECURRENCES.items() if slug in checkpoint.quirks]


def attention_sorts(checkpoint: CheckpointFacts) -> list[str]:
    """How query heads share keys and values: ``MHA``, ``GQA``, ``MQA``, or ``latent`` where one vector holds them."""
    every = [kind.sizes for kind in _softmax_kinds(checkpoint)]
    if not every and _is_unknown(checkpoint):
        every = [checkpoint.sizes]
    return _once(_attention_sort(checkpoint, sizes) for sizes in every if {"num_heads", "num_kv_heads"} <= sizes.keys())


def _attention_sort(checkpoint: CheckpointFacts, sizes: dict[str, int]) -> str:
    heads, shared = sizes["num_heads"], sizes["num_kv_heads"]
    if heads == shared:
        return "latent" if "latent-attention" in checkpoint.quirks else "MHA"
    return "MQA" if shared == 1 else "GQA"


def positions(checkpoint: CheckpointFacts) -> list[str]:
    """How the softmax attentions know positions.

    ``rope``; ``learned`` or ``fixed`` embeddings, ``embedding`` where the facts do not tell which; ``alibi`` or
    ``learned bias``, ``bias`` likewise; and ``none`` where some or all blocks know only the order that the causal mask
    gives.
    """
    quirks = set(checkpoint.quirks)
    found = []
    if "position-embeddings" in quirks:
        found.append(_embedding_sort(checkpoint))
    if "position-bias" in quirks:
        found.append(_bias_sort(checkpoint))
    if "attention-free" in quirks:
        return found or ["none"]
    softmax = _softmax_kinds(checkpoint)
    rotates = bool(softmax) or any(checkpoint.config.get(key) for key in _ROTARY_KEYS)
    if rotates and "no-rotary" not in quirks:
        found.append("rope")
    if "rotary-free-blocks" in quirks or (softmax and not found and _enters_as_it_is(checkpoint)):
        found.append("none")
    return found


def _embedding_sort(checkpoint: CheckpointFacts) -> str:
    outside = checkpoint.parameters.outside if checkpoint.parameters is not None else []
    if not outside:
        return "embedding"
    held = sum(part.total for part in outside if part.role in ("embedding", "other"))
    return "learned" if held > checkpoint.sizes["vocab_size"] * checkpoint.sizes["hidden_size"] else "fixed"


def _bias_sort(checkpoint: CheckpointFacts) -> str:
    kinds = _softmax_kinds(checkpoint)
    attention_config = checkpoint.config.get("attn_config")
    of_attention = attention_config if isinstance(attention_config, dict) else {}
    if checkpoint.config.get("alibi") is True or of_attention.get("alibi") is True:
        return "alibi"
    if not any(kind.parameters for kind in kinds):
        return "bias"
    return "alibi" if all(_is_projections_alone(checkpoint, kind) for kind in kinds) else "learned bias"


def _is_projections_alone(checkpoint: CheckpointFacts, kind: KindFacts) -> bool:
    """Whether an attention's weights are its projections and at most their biases: no bias of scores is learned."""
    sizes, hidden = kind.sizes, checkpoint.sizes["hidden_size"]
    weights = sum(part.total for part in kind.parameters if part.role == "attention")
    written = (sizes["num_heads"] + sizes["num_kv_heads"]) * sizes["qk_head_dim"]
    written += sizes["num_kv_heads"] * sizes["head_dim"]
    return weights - hidden * (written + sizes["num_heads"] * sizes["head_dim"]) in (0, written, written + hidden)


def _enters_as_it_is(checkpoint: CheckpointFacts) -> bool:
    """Whether the token table is as wide as the stream; else no run tells what else enters the first block."""
    hidden = checkpoint.sizes.get("hidden_size")
    return checkpoint.config.get("word_embed_proj_dim", hidden) == hidden


def norms(checkpoint: CheckpointFacts) -> list[str]:
    """The sort of the norms on the stream: ``RMSNorm`` or ``LayerNorm``."""
    if "layer-norm" in checkpoint.quirks:
        return ["LayerNorm"]
    if any(sublayer.norm or sublayer.post_norm for sublayer in _sublayers(checkpoint)):
        return ["RMSNorm"]
    # A class of the family's own called LayerNorm need not be one; PyTorch's is.
    classes = _once(found[1] for line in checkpoint.printout if (found := _NORM_LINE.search(line)))
    return _once("LayerNorm" if name == "LayerNorm" else "RMSNorm" for name in classes
                 if name == "LayerNorm" or name.endswith("RMSNorm"))


def norm_placements(checkpoint: CheckpointFacts) -> list[str]:
    """Where norms stand: ``pre``, ``post`` or ``sandwich`` of sublayers, and ``stream`` where the stream passes one."""
    found = _once("sandwich" if sublayer.norm and sublayer.post_norm else "pre" if sublayer.norm else "post"
                  for sublayer in _sublayers(checkpoint) if sublayer.norm or sublayer.post_norm)
    if "sandwich-norms" in checkpoint.quirks and "sandwich" not in found:
        found = ["sandwich" if name == "pre" else name for name in found]
    return found + (["stream"] if "normalised-stream" in checkpoint.quirks else [])


def activation(checkpoint: CheckpointFacts) -> str | None:
    """The MLP's activation function as configs call it; a recurrent mixer's where there is no MLP.

    The class that stands in the model says it where there is one only, else the config, else the class's own name.
    """
    classes = _once(found[1] for line in checkpoint.printout if (found := _ACTIVATION_LINE.search(line)))
    known = _once(_ACTIVATION_CLASSES[name] for name in classes if name in _ACTIVATION_CLASSES)
    if len(known) == 1 and len(classes) == 1:
        return known[0]
    named = (checkpoint.config.get(key) for key in _ACTIVATION_KEYS)
    return next((name for name in named if isinstance(name, str)), classes[0] if len(classes) == 1 else None)


def attention_sizes(checkpoint: CheckpointFacts, name: str) -> list[int]:
    """A size of the softmax attentions, such as ``num_heads``: all that occur, least first."""
    found = {kind.sizes[name] for kind in _softmax_kinds(checkpoint) if name in kind.sizes}
    if not found and _is_unknown(checkpoint) and name in checkpoint.sizes:
        found = {checkpoint.sizes[name]}
    return sorted(found)


def mlp_widths(checkpoint: CheckpointFacts) -> list[int]:
    """The widths of the MLPs that every token goes through, least first."""
    found = sizes_of_kinds(checkpoint, "intermediate_size")
    sorts = {sublayer.sort for sublayer in _sublayers(checkpoint)}
    known_from_config = "mlp" in sorts or ("mixture" not in sorts and sorts != {"recurrent"})
    if not found and known_from_config and "intermediate_size" in checkpoint.sizes:
        return [checkpoint.sizes["intermediate_size"]]
    return found


def sizes_of_kinds(checkpoint: CheckpointFacts, *names: str) -> list[int]:
    """What the kinds of block have under any of ``names``, least first."""
    return sorted({kind.sizes[name] for kind in checkpoint.kinds for name in names if name in kind.sizes})


def windowed_blocks(checkpoint: CheckpointFacts) -> int:
    """How many blocks attend within a window."""
    return sum(len(kind.blocks) for kind in checkpoint.kinds if "sliding_window" in kind.sizes)


def softmax_blocks(checkpoint: CheckpointFacts) -> int | None:
    """How many blocks have a softmax attention; ``None`` where blocks are not told apart."""
    return None if _is_unknown(checkpoint) else sum(len(kind.blocks) for kind in _softmax_kinds(checkpoint))


def shared_experts(checkpoint: CheckpointFacts) -> int | None:
    """How many experts every token goes through beside those chosen for it; ``None`` without a mixture."""
    if not sizes_of_kinds(checkpoint, "num_experts"):
        return None
    has_part = any(part.name == "shared" for sublayer in _sublayers(checkpoint) for part in sublayer.parts)
    if not has_part and "shared-expert" not in checkpoint.quirks:
        return 0
    counts = (checkpoint.config.get(key) for key in _SHARED_KEYS)
    # One module of several experts' width is what most families build; the config then says for how many it stands.
    return next((count for count in counts if isinstance(count, int) and count > 0), 1)


def _softmax_kinds(checkpoint: CheckpointFacts) -> list[KindFacts]:
    return [kind for kind in checkpoint.kinds if any(sublayer.sort == "attention" for sublayer in kind.sublayers)]


def _is_unknown(checkpoint: CheckpointFacts) -> bool:
    """Whether there may be a softmax attention that was not told apart."""
    return not _softmax_kinds(checkpoint) and "attention-free" not in checkpoint.quirks


def _sublayers(checkpoint: CheckpointFacts) -> Iterator[SublayerFacts]:
    for kind in checkpoint.kinds:
        yield from kind.sublayers


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
