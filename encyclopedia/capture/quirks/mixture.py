"""Mixtures of experts: where they stand, what goes beside them, and how a router weighs its experts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from encyclopedia.capture.quirks.evidence import Evidence
from encyclopedia.native import Call

_aten = torch.ops.aten

#: How far the sums of a router's weights may differ and still be one number.
_STEADY = 1e-4


def mixture_of_experts(evidence: Evidence) -> bool:
    """Whether a kind of block has a mixture, by its parts or as the family declares."""
    return bool(_blocks(evidence))


def dense_first_blocks(evidence: Evidence) -> bool:
    """Whether every block with a dense MLP stands in front of every block with a mixture."""
    mixtures, dense = _blocks(evidence), _dense(evidence)
    return bool(mixtures and dense) and max(dense) < min(mixtures)


def interleaved_mixtures(evidence: Evidence) -> bool:
    """Whether a block with a dense MLP stands behind one with a mixture."""
    mixtures, dense = _blocks(evidence), _dense(evidence)
    return bool(mixtures and dense) and max(dense) > min(mixtures)


def shared_expert(evidence: Evidence) -> bool:
    """Whether a mixture has a child beside its experts that every token goes through."""
    return any(sublayer.mixture is not None and sublayer.mixture.shared is not None
               for kind in evidence.structure.kinds for sublayer in kind.sublayers)


def unnormalised_routing(evidence: Evidence) -> bool:
    """Whether the weights that the experts are called with sum to something else for every token."""
    return any((sums - sums.mean()).abs().max() > _STEADY * sums.mean().abs() for sums in _weights(evidence))


def scaled_routing(evidence: Evidence) -> bool:
    """Whether those weights sum to one constant that is not one."""
    for sums in _weights(evidence):
        mean = float(sums.mean())
        steady = (sums - mean).abs().max() <= _STEADY * abs(mean)
        if steady and abs(mean - 1) > _STEADY and not evidence.is_moved(mean):
            return True
    return False


def sigmoid_routing(evidence: Evidence) -> bool:
    """Whether a forward of the mixture takes a sigmoid of a number per expert."""
    return any(watching.sigmoid for watching in _watched(evidence))


def group_limited_routing(evidence: Evidence) -> bool:
    """Whether a forward of the mixture picks some of several groups of experts.

    How many groups there are, and how many are kept, is the full config's: the twin's may be cut short.
    """
    groups = _stated(evidence, "n_group", "num_expert_group", "n_groups")
    kept = _stated(evidence, "topk_group", "topk_groups", "limited_group")
    return groups is not None and kept is not None and kept < groups and any(
        watching.grouped for watching in _watched(evidence))


def selection_bias(evidence: Evidence) -> bool:
    """Whether a mixture has a tensor of one number per expert whose name says that it corrects the scores."""
    return any(tensor.numel() == watching.experts and "correction" in name.rpartition(".")[2]
               for watching in _watched(evidence) for name, tensor in watching.tensors)


def _blocks(evidence: Evidence) -> set[int]:
    return {index for kind in evidence.structure.kinds for index in kind.blocks
            if "num_experts" in kind.sizes or any(
                sublayer.mixture is not None or evidence.is_declared_mixture(sublayer) for sublayer in kind.sublayers)}


def _dense(evidence: Evidence) -> set[int]:
    return {index for kind in evidence.structure.kinds for index in kind.blocks
            if index not in _blocks(evidence) and kind.sublayer("mlp") is not None}


def _stated(evidence: Evidence, *names: str) -> int | None:
    return next((value for name in names if isinstance(value := getattr(evidence.model.config, name, None), int)), None)


def _weights(evidence: Evidence) -> Iterator[torch.Tensor]:
    """``[tokens]``, the sum of each token's weights, of every mixture whose experts are handed indices and weights."""
    for block, sublayer in evidence.mixtures:
        assert sublayer.mixture is not None
        calls = evidence.run.calls.get(f"{block.run.path}.{sublayer.name}.{sublayer.mixture.experts}", [])
        indices = [tensor for tensor in calls[-1].tensors if not tensor.is_floating_point()] if calls else []
        for tensor in calls[-1].tensors if calls else []:
            if tensor.is_floating_point() and indices and tensor.shape == indices[0].shape:
                yield tensor.double().sum(-1)


class _Watching(TorchDispatchMode):
    """Notes whether a sigmoid is taken of a number per expert, and whether groups of experts are picked.

    A router may score shared experts beside the others, so ``scored`` has more than one count.
    """

    def __init__(self, experts: int, scored: set[int], tensors: list[tuple[str, torch.Tensor]]) -> None:
        super().__init__()
        self.experts = experts
        self.scored = scored
        self.tensors = tensors
        self.sigmoid = False
        self.grouped = False

    def __torch_dispatch__(self, operation: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        packet = operation.overloadpacket
        if packet is _aten.sigmoid and arguments[0].shape[-1] in self.scored:
            self.sigmoid = True
        if packet is _aten.topk and 1 < arguments[0].shape[-1] < self.experts \
                and self.experts % arguments[0].shape[-1] == 0:
            self.grouped = True
        return operation(*arguments, **(keywords or {}))


def _watched(evidence: Evidence) -> list[_Watching]:
    """A forward of each mixture, watched."""
    found = []
    for block, sublayer in evidence.mixtures:
        assert sublayer.mixture is not None
        call = block.call_of(sublayer)
        experts = sublayer.module.get_submodule(sublayer.mixture.experts)
        router = sublayer.module.get_submodule(sublayer.mixture.router)
        stacks = [parameter for parameter in experts.parameters() if parameter.ndim == 3]
        if call is None or not stacks:
            continue
        scored = {stacks[0].shape[0], *(matrix.shape[0] for matrix in router.parameters() if matrix.ndim == 2)}
        tensors = [*sublayer.module.named_parameters(), *sublayer.module.named_buffers()]
        watching = _Watching(stacks[0].shape[0], scored - {1}, tensors)
        if _runs(sublayer.module, call, watching):
            found.append(watching)
    return found


def _runs(module: Any, call: Call, watching: _Watching) -> bool:
    try:
        with torch.no_grad(), watching:
            module(*call.arguments, **call.keywords)
    except Exception:
        # A mixture that wants more than its arguments shows nothing.
        return False
    return True


DETECTORS: Mapping[str, Callable[[Evidence], bool]] = {
    "mixture-of-experts": mixture_of_experts,
    "dense-first-blocks": dense_first_blocks,
    "interleaved-mixtures": interleaved_mixtures,
    "shared-expert": shared_expert,
    "unnormalised-routing": unnormalised_routing,
    "scaled-routing": scaled_routing,
    "sigmoid-routing": sigmoid_routing,
    "group-limited-routing": group_limited_routing,
    "selection-bias": selection_bias,
}
