"""What stands around an attention's product and mixing: norms, gates, softcaps, scales, keys of another block."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from encyclopedia.capture.quirks.evidence import Attention, Evidence
from encyclopedia.native import Call
from encyclopedia.structure.block import same
from encyclopedia.structure.stack import is_norm

#: How far a ratio may stray from its mean and still be one number.
_STEADY = 1e-3


def query_key_norms(evidence: Evidence) -> bool:
    """Whether queries and keys are as long, token by token, as what norms inside the attention returned.

    Rotation leaves a length alone, so it does not matter on which side of it the norms stand.
    """
    for attention in evidence.attentions:
        probe = attention.as_recorded
        if probe is None:
            continue
        lengths = [length for call in attention.inside if is_norm(attention.inner(call))
                   if (length := _length(call.leaving, evidence.run.input_ids.shape)) is not None]
        seq = evidence.run.input_ids.shape[1]
        if all(any(_proportional(_token_length(tensor[:, :, :seq]), length) for length in lengths)
               for tensor in (probe.queries, probe.keys)):
            return True
    return False


def output_gate(evidence: Evidence) -> bool:
    """Whether the output projection receives something else than the head outputs, apart from a norm of them.

    A gate leaves the sign of an entry alone; where it does not, the heads were mixed.
    """
    return any(gated for gated, _ in _between(evidence))


def inner_norms(evidence: Evidence) -> bool:
    """Whether what enters a sublayer's last projection is what a norm inside the sublayer returned."""
    return any(normed for _, normed in _between(evidence)) or _normed_neurons(evidence)


def attention_softcap(evidence: Evidence) -> bool:
    """Whether the attention function is told to cap its scores."""
    return any(attention.interface is not None and bool(attention.interface.others.get("softcap"))
               for attention in evidence.attentions)


def attention_scale(evidence: Evidence) -> bool:
    """Whether the full attention's factor on the scores is another than the root of the heads' width.

    Which of its attributes the factor is shows on the twin, where the attention function receives it.
    """
    return any(_other_scale(attention) for attention in evidence.attentions)


def shared_keys(evidence: Evidence) -> bool:
    """Whether two blocks mix with the same keys and values."""
    return any(same(one.key, other.key) and same(one.value, other.value)
               for one, other in itertools.combinations(evidence.run.attention.values(), 2))


def _token_length(tensor: torch.Tensor) -> torch.Tensor:
    """``[batch, seq]`` of ``[batch, heads, seq, width]``."""
    return tensor.double().square().sum(dim=(1, 3)).sqrt()


def _length(tensor: Any, shape: torch.Size) -> torch.Tensor | None:
    """``[batch, seq]``, from a tensor with these two axes and others."""
    if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point():
        return None
    batch, seq = shape
    if tensor.ndim == 4 and tensor.shape[0] == batch and tensor.shape[2] == seq:
        return _token_length(tensor)
    if tensor.numel() % (batch * seq) or tensor.shape[0] not in (batch, batch * seq):
        return None
    return tensor.double().reshape(batch, seq, -1).square().sum(-1).sqrt()


def _proportional(one: torch.Tensor, other: torch.Tensor) -> bool:
    ratio = one / other.clamp(min=1e-12)
    return bool((ratio - ratio.mean()).abs().max() <= _STEADY * ratio.mean().abs())


def _between(evidence: Evidence) -> Iterator[tuple[bool, bool]]:
    """Of each attention, whether its head outputs are gated on the way to the projection, and whether normalised."""
    for attention in evidence.attentions:
        heads, projection = _head_outputs(attention), _projection(attention)
        if heads is None or projection is None:
            continue
        premix = projection.entering.reshape(heads.shape[0], heads.shape[1], -1)
        if premix.shape != heads.shape:
            continue
        norms = [call for call in attention.inside if is_norm(attention.inner(call)) and call.began < projection.began
                 and isinstance(call.leaving, torch.Tensor) and call.leaving.numel() == heads.numel()]
        behind = next((call for call in norms if same(call.leaving.reshape(heads.shape), premix)), None)
        before = next((call for call in norms if same(call.entering.reshape(heads.shape), heads)), None)
        if behind is not None:
            yield _gates(heads, behind.entering.reshape(heads.shape)), True
        elif before is not None:
            yield _gates(before.leaving.reshape(heads.shape), premix), True
        else:
            yield _gates(heads, premix), False


def _gates(heads: torch.Tensor, behind: torch.Tensor) -> bool:
    return not same(heads, behind) and bool((heads * behind >= 0).all())


def _head_outputs(attention: Attention) -> torch.Tensor | None:
    """``[batch, seq, heads * head_dim]``."""
    if attention.interface is not None:
        outputs = attention.interface.outputs
        return outputs.reshape(*attention.block.run.shape[:2], -1)
    probe = attention.as_recorded
    return None if probe is None or probe.mixed is None else probe.mixed.flatten(2)


def _projection(attention: Attention) -> Call | None:
    """The call of the layer that wrote the attention's output."""
    if attention.sublayer is None or not attention.sublayer.projection:
        return None
    path = f"{attention.path}.{attention.sublayer.projection}"
    return next((call for call in reversed(attention.inside) if call.path == path), None)


def _normed_neurons(evidence: Evidence) -> bool:
    for block in evidence.blocks:
        for sublayer in block.sublayers:
            if sublayer.host != "mlp" or not sublayer.projection:
                continue
            path = f"{block.run.path}.{sublayer.name}"
            inside = [call for call in block.run.calls if call.path.startswith(f"{path}.")]
            projection = next((call for call in inside if call.path == f"{path}.{sublayer.projection}"), None)
            if projection is not None and any(
                    is_norm(block.run.module(call)) and same(call.leaving, projection.entering) for call in inside):
                return True
    return False


def _other_scale(attention: Attention) -> bool:
    call = attention.interface
    width = attention.block.kind.sizes.get("qk_head_dim")
    interior = attention.sublayer.interior if attention.sublayer is not None else ""
    if call is None or call.scaling is None or not width:
        return False
    small, full = attention.module.get_submodule(interior), attention.full.get_submodule(interior)
    for name, value in vars(small).items():
        stated = getattr(full, name, None)
        if isinstance(value, float) and math.isclose(value, call.scaling, rel_tol=1e-6) and isinstance(stated, float):
            return not math.isclose(stated, width**-0.5, rel_tol=1e-3)
    return False


DETECTORS: Mapping[str, Callable[[Evidence], bool]] = {
    "query-key-norms": query_key_norms,
    "output-gate": output_gate,
    "inner-norms": inner_norms,
    "attention-softcap": attention_softcap,
    "attention-scale": attention_scale,
    "shared-keys": shared_keys,
}
