"""What a dense MLP does between its layers, measured on the recorded forward and by calling its activation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch

from encyclopedia.capture.quirks.evidence import Evidence, TwinBlock
from encyclopedia.native import Call
from encyclopedia.structure.block import same
from encyclopedia.structure.parts import Sublayer


def ungated_mlp(evidence: Evidence) -> bool:
    """Whether what an activation returned is what enters an MLP's last layer."""
    for block, sublayer, activation in _activations(evidence):
        last = _last_layer(block, sublayer)
        if last is not None and isinstance(last.entering, torch.Tensor) \
                and last.entering.numel() == activation.leaving.numel() \
                and same(last.entering.reshape(activation.leaving.shape), activation.leaving):
            return True
    return False


def silent_neurons(evidence: Evidence) -> bool:
    """Whether an MLP's activation returned zero for every negative number that entered it."""
    for _, _, activation in _activations(evidence):
        negative = activation.entering < 0
        if negative.any() and not activation.leaving[negative].any():
            return True
    return False


def loose_mlp(evidence: Evidence) -> bool:
    """Whether an MLP's first layer is a child of the block, and so no module is the MLP."""
    return any(sublayer.host == "mlp" and sublayer.first != sublayer.name
               for kind in evidence.structure.kinds for sublayer in kind.sublayers)


def _activations(evidence: Evidence) -> Iterator[tuple[TwinBlock, Sublayer, Call]]:
    """The activation of each MLP that has one module for it, called once, with what it was called on."""
    for block in evidence.blocks:
        for sublayer in block.sublayers:
            if sublayer.host != "mlp" or sublayer.activation is None:
                continue
            place = sublayer.activation.removesuffix(".output")
            path = place.removeprefix("../") if place.startswith("../") else f"{sublayer.name}.{place}"
            call = next((call for call in block.run.calls if block.run.relative(call) == path), None)
            if call is not None and isinstance(call.entering, torch.Tensor):
                yield block, sublayer, call


def _last_layer(block: TwinBlock, sublayer: Sublayer) -> Call | None:
    if sublayer.projection is None:
        return None
    path = f"{sublayer.name}.{sublayer.projection}" if sublayer.projection else sublayer.name
    return next((call for call in block.run.calls if block.run.relative(call) == path), None)


DETECTORS: Mapping[str, Callable[[Evidence], bool]] = {
    "ungated-mlp": ungated_mlp,
    "silent-neurons": silent_neurons,
    "loose-mlp": loose_mlp,
}
