"""Sizes of one block by standard name, read off its modules.

Families spell a count or a width differently. On the small twin, where no two axes are alike, a recorded forward shows
the number, and so which spelling states it; the same spelling is then read on the full model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from encyclopedia.native import NativeRun
from encyclopedia.structure.parts import Sublayer

#: Spellings by standard name, the usual ones first.
SPELLINGS = {
    "num_heads": ("num_heads", "num_attention_heads", "n_heads", "n_head", "num_query_heads", "attention_heads"),
    "num_kv_heads": ("num_key_value_heads", "num_kv_heads", "kv_heads", "num_heads", "num_attention_heads", "n_heads",
                     "n_head"),
    "head_dim": ("v_head_dim", "head_dim", "head_size", "attention_head_size", "d_head"),
    "qk_head_dim": ("qk_head_dim", "head_dim", "head_size", "attention_head_size", "d_head"),
    "num_experts": ("num_experts", "n_routed_experts", "num_local_experts", "num_routed_experts", "moe_num_experts"),
    "top_k": ("top_k", "num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "moe_top_k",
              "top_k_experts"),
    "expert_intermediate_size": ("intermediate_dim", "intermediate_size", "expert_dim", "moe_intermediate_size",
                                 "ffn_dim", "expert_ffn_hidden_size"),
}

#: Reads one number from a module of the block, or says by ``None`` that it states none.
Source = Callable[[nn.Module, Any], int | None]


@dataclass(frozen=True)
class SizeSources:
    """How each size of a kind of block is read, by host and standard name."""

    by_host: Mapping[str, Mapping[str, Source]]

    def read(self, sublayers: tuple[Sublayer, ...], config: Any) -> dict[str, int]:
        """The sizes of a block with these sublayers."""
        found = {}
        for sublayer in sublayers:
            for name, source in self.by_host.get(sublayer.host, {}).items():
                number = source(sublayer.module, config)
                if number is not None:
                    found[name] = number
        return found


def find_sources(
    sublayers: tuple[Sublayer, ...], path: str, recording: NativeRun, config: Any
) -> SizeSources:
    """How the sizes of a block are read, from a recorded forward of the small twin.

    Args:
        sublayers: of the twin's block.
        path: the block's path.
        recording: the forward.
        config: the twin's config.
    """
    found: dict[str, dict[str, Source]] = {}
    for sublayer in sublayers:
        measured = _measured(sublayer, f"{path}.{sublayer.name}", recording)
        sources = found.setdefault(sublayer.host, {})
        for name in _names(sublayer):
            matching = next((source for source in _sources(name, sublayer)
                             if (number := source(sublayer.module, config)) is not None
                             and measured.get(name, number) == number), None)
            if matching is not None:
                sources[name] = matching
            elif name == "top_k" and name in measured:
                # A router may choose a number of experts that nothing states.
                sources[name] = _constant(measured[name])
    return SizeSources(found)


def _names(sublayer: Sublayer) -> tuple[str, ...]:
    if sublayer.host == "self_attn":
        return "num_heads", "num_kv_heads", "head_dim", "qk_head_dim"
    if sublayer.host == "linear_attn":
        return ()
    if sublayer.mixture is None:
        return "intermediate_size", "num_experts", "top_k"
    return "num_experts", "top_k", "expert_intermediate_size", "shared_intermediate_size"


def _measured(sublayer: Sublayer, path: str, recording: NativeRun) -> dict[str, int]:
    """The sizes that the forward itself showed."""
    interior = f"{path}.{sublayer.interior}" if sublayer.interior else path
    call = recording.attention.get(interior)
    if call is not None:
        return {"num_heads": call.query.shape[1], "num_kv_heads": call.key.shape[1], "head_dim": call.value.shape[-1],
                "qk_head_dim": call.query.shape[-1]}
    if sublayer.mixture is None:
        return {}
    experts = recording.calls.get(f"{path}.{sublayer.mixture.experts}", [])
    indices = [tensor for tensor in experts[-1].tensors if not tensor.is_floating_point() and tensor.ndim == 2] \
        if experts else []
    return {"top_k": indices[0].shape[-1]} if indices else {}


def _sources(name: str, sublayer: Sublayer) -> Iterator[Source]:
    """The ways in which a size may be stated, the likeliest first."""
    if name == "intermediate_size":
        yield _written_from(sublayer.projection)
        return
    if name == "shared_intermediate_size":
        assert sublayer.mixture is not None
        if sublayer.mixture.shared is not None:
            yield _shared_width(sublayer.mixture.shared)
        return
    spellings = SPELLINGS[name]
    holders = [""] if sublayer.mixture is None else [sublayer.mixture.experts, sublayer.mixture.router, ""]
    if sublayer.interior:
        holders.append(sublayer.interior)
    for spelling in spellings:
        for holder in holders:
            yield _attribute(holder, spelling)
    if name == "num_kv_heads":
        for spelling in SPELLINGS["num_heads"]:
            yield _grouped(spelling)
    if name in ("num_heads", "num_kv_heads"):
        for width in SPELLINGS["head_dim"]:
            yield _per_head(sublayer.projection if name == "num_heads" else "k_proj", width, name == "num_heads")
    if sublayer.mixture is None and sublayer.host == "mlp":
        # A dense MLP of a model that has experts elsewhere has none itself.
        return
    for spelling in spellings:
        yield _in_config(spelling)
    if name in ("head_dim", "qk_head_dim"):
        yield _share_of_stream


def _constant(number: int) -> Source:
    return lambda module, config: number


def _attribute(holder: str, spelling: str) -> Source:
    return lambda module, config: _number(getattr(module.get_submodule(holder), spelling, None))


def _in_config(spelling: str) -> Source:
    return lambda module, config: _number(stated(config, spelling))


def stated_of_mixture(config: Any) -> dict[str, int]:
    """How many experts a config states, and how many a token is sent to."""
    found = {name: next(filter(None, (_number(stated(config, spelling)) for spelling in SPELLINGS[name])), None)
             for name in ("num_experts", "top_k")}
    return {name: number for name, number in found.items() if number is not None}


def stated(config: Any, spelling: str) -> Any:
    """What a config states, or ``None``; also where it states it per block only."""
    try:
        return getattr(config, spelling, None)
    except Exception:
        return None


def _grouped(spelling: str) -> Source:
    def read(module: nn.Module, config: Any) -> int | None:
        heads = _number(getattr(module, spelling, None)) or _number(stated(config, spelling))
        groups = _number(getattr(module, "num_key_value_groups", None))
        return heads // groups if heads and groups else None

    return read


def _per_head(path: str | None, width: str, entering: bool) -> Source:
    def read(module: nn.Module, config: Any) -> int | None:
        head_dim = _number(getattr(module, width, None)) or _number(stated(config, width))
        if path is None or not head_dim:
            return None
        try:
            layer = module.get_submodule(path)
        except AttributeError:
            return None
        features = fan_in(layer) if entering else _number(getattr(layer, "out_features", None))
        return None if features is None or features % head_dim else features // head_dim

    return read


def _written_from(path: str | None) -> Source:
    return lambda module, config: None if path is None else fan_in(module.get_submodule(path))


def _shared_width(path: str) -> Source:
    def read(module: nn.Module, config: Any) -> int | None:
        layers = [layer for layer in module.get_submodule(path).modules() if fan_in(layer) is not None]
        return fan_in(layers[-1]) if layers else None

    return read


def _share_of_stream(module: nn.Module, config: Any) -> int | None:
    heads = _number(stated(config, "num_attention_heads"))
    return config.hidden_size // heads if heads else None


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def fan_in(layer: nn.Module) -> int | None:
    """How many numbers per position enter a linear layer; ``None`` where it states none."""
    for name in ("in_features", "nx"):
        number = _number(getattr(layer, name, None))
        if number is not None:
            return number
    return None
