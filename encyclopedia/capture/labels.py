"""Short names for kinds of blocks, such as ``sliding 512 · mixture``."""

from __future__ import annotations

from collections.abc import Sequence

from encyclopedia.structure.parts import Kind
from encyclopedia.structure.recurrent import recurrent_values

#: What a recurrent mixer is called, by the flavour of its values.
RECURRENT = {
    "delta": "delta rule",
    "grouped_delta": "delta rule",
    "key_delta": "delta rule",
    "lightning": "lightning attention",
    "mlstm": "mLSTM",
    "scan": "Mamba",
    "head_scan": "Mamba",
    "ssd": "Mamba-2",
    "wkv": "RWKV",
    "lru": "RG-LRU",
    "convolution": "convolution",
    "other": "recurrent",
}


#: Longest text of flags in a label.
LONGEST = 32


def labels_of(kinds: Sequence[Kind]) -> list[str]:
    """A label for each kind; where two would be alike, they name what tells them apart."""
    plain = [_label(kind) for kind in kinds]
    flags = [_flags(kind) for kind in kinds]
    told = [f"{label} · {flag}" for label, flag in zip(plain, flags, strict=True)]
    return [
        label if plain.count(label) == 1
        else named if flag and told.count(named) == 1 and len(flag) <= LONGEST
        else f"{label} · from block {kind.blocks[0]}"
        for kind, label, flag, named in zip(kinds, plain, flags, told, strict=True)
    ]


def _label(kind: Kind) -> str:
    mixers = []
    for sublayer in kind.sublayers:
        if sublayer.host == "self_attn":
            attention = kind.attention_type.removesuffix("_attention")
            window = kind.sizes.get("sliding_window")
            mixers.append(attention if window is None else f"{attention} {window}")
        elif sublayer.host == "linear_attn":
            mixers.append(RECURRENT[recurrent_values(sublayer.module).flavour])
    mlp = kind.sublayer("mlp")
    has_experts = "num_experts" in kind.sizes or (mlp is not None and mlp.mixture is not None)
    parts = [" + ".join(mixers)] if mixers else []
    if mlp is not None:
        parts.append("mixture" if has_experts else "dense MLP")
    return " · ".join(parts) or "block"


def _flags(kind: Kind) -> str:
    """The flags that set a kind apart from others."""
    return ", ".join(f"{name.rpartition('.')[2]} {str(value).lower()}" for name, value in kind.switches.items()
                     if isinstance(value, bool))
