"""What linear layers of a block write: with a bias, several tensors at once, from a narrow vector."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import nn
from transformers.activations import ACT2CLS

from encyclopedia.capture.quirks.evidence import Attention, Evidence, TwinBlock
from encyclopedia.capture.quirks.probe import Probe
from encyclopedia.native import Call
from encyclopedia.structure.sizes import fan_in
from encyclopedia.structure.stack import is_norm

_ACTIVATIONS = tuple({each if isinstance(each, type) else each[0] for each in ACT2CLS.values()})


def biased_projections(evidence: Evidence) -> bool:
    """Whether a layer with a weight matrix, in an attention or an MLP of the full model, has a bias."""
    for kind in evidence.structure.kinds:
        for sublayer in kind.sublayers:
            holders = dict.fromkeys((sublayer.first, sublayer.name)) if sublayer.host != "linear_attn" else {}
            router = sublayer.mixture.router if sublayer.mixture is not None else None
            for name in holders:
                for path, module in kind.block.get_submodule(name).named_modules():
                    if (router is None or path.split(".")[0] != router) and _has_bias(module):
                        return True
    return False


def fused_projections(evidence: Evidence) -> bool:
    """Whether a layer's output has all numbers of a tensor that is used by itself, and others.

    Looked for are an attention's values, its queries and keys at the first position, which rotation leaves alone, what
    enters its norms, and what enters an MLP's activation.
    """
    return any(_is_fused(attention) for attention in evidence.attentions) or any(
        _is_fused_mlp(block) for block in evidence.blocks)


def latent_attention(evidence: Evidence) -> bool:
    """Whether the layer that writes an attention's values reads less than the stream's width, inside the attention."""
    for attention in evidence.attentions:
        probe = attention.as_recorded
        if probe is None or probe.values is None:
            continue
        row = _values(attention, probe)[0, :, -1]
        for call in _layers(attention):
            path = attention.block.run.relative(call)
            read = fan_in(attention.block.kind.block.get_submodule(path))
            if read is not None and read < evidence.model.config.hidden_size \
                    and _written(call, attention.block.run.shape, -1, row):
                return True
    return False


def _has_bias(module: nn.Module) -> bool:
    own = dict(module.named_parameters(recurse=False))
    matrix = any(name.endswith("weight") and parameter.ndim == 2 for name, parameter in own.items()) \
        and "bias" in own
    return matrix or any(name.endswith("_bias") and parameter.ndim == 2 and parameter.shape[-1] > 1
                         for name, parameter in own.items())


def _is_fused(attention: Attention) -> bool:
    probe = attention.as_recorded
    tensors = []
    if probe is not None:
        tensors += [(0, probe.queries[0, :, 0]), (0, probe.keys[0, :, 0])]
        if probe.values is not None:
            tensors.append((-1, _values(attention, probe)[0, :, -1]))
    shape = attention.block.run.shape
    for call in attention.inside:
        entering = call.entering if call.arguments else None
        if is_norm(attention.inner(call)) and isinstance(entering, torch.Tensor) and entering.ndim in (3, 4) \
                and entering.shape[1] == shape[1]:
            tensors.append((0, entering[0, 0]))
    return any(_written(call, shape, position, row) and call.leaving.shape[-1] > row.unique().numel()
               for call in _layers(attention) for position, row in tensors)


def _is_fused_mlp(block: TwinBlock) -> bool:
    layers = [call for call in block.run.calls if fan_in(block.run.module(call)) is not None]
    activations = [call for call in block.run.calls if isinstance(block.run.module(call), _ACTIVATIONS)
                   and isinstance(call.entering, torch.Tensor)]
    return any(layer.leaving.shape[-1] > activation.entering.shape[-1]
               and _written(layer, block.run.shape, 0, activation.entering.flatten(0, -2)[0])
               for layer in layers for activation in activations if layer.ended < activation.began)


def _values(attention: Attention, probe: Probe) -> torch.Tensor:
    """``[batch, heads, seq, width]``, as the attention function got them where it is called."""
    assert probe.values is not None
    return probe.values if attention.interface is None else attention.interface.value


def _layers(attention: Attention) -> Iterator[Call]:
    return (call for call in attention.inside if fan_in(attention.inner(call)) is not None)


def _written(layer: Call, shape: Sequence[int], position: int, row: torch.Tensor) -> bool:
    """Whether every number in ``row`` is in what ``layer`` returned for the first prompt's token at ``position``."""
    leaving = layer.leaving
    if not isinstance(leaving, torch.Tensor) or leaving.shape[:-1].numel() != shape[0] * shape[1]:
        return False
    written = leaving.reshape(shape[0], shape[1], -1)[0, position]
    return bool(row.numel()) and bool(torch.isin(row, written).all())


DETECTORS: Mapping[str, Callable[[Evidence], bool]] = {
    "biased-projections": biased_projections,
    "fused-projections": fused_projections,
    "latent-attention": latent_attention,
}
