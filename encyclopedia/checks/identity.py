"""The contribution identity: its text, and how exactly it holds on the small twin."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch

from encyclopedia.checks.claims import said
from encyclopedia.families import Family
from encyclopedia.model.readings import Write, read_all
from encyclopedia.model.structure import Sublayer
from encyclopedia.model.transformer import StandardizedTransformer

#: The largest error allowed, in units of the output's largest magnitude.
TOLERANCE = 2e-6

#: What each host adds to the stream.
CONTRIBUTIONS = {"self_attn": "attention_output", "mlp": "mlp_output"}


class BrokenIdentity(Exception):
    """An identity that does not hold on the twin."""


def identity_of(family: Family, sublayers: tuple[Sublayer, ...]) -> str:
    """The equation for ``layer_output``: the family's own, else the plain sum of the contributions."""
    if family.identity is not None:
        return family.identity
    terms = [f"{sublayer.host}.{CONTRIBUTIONS[sublayer.host]}" for sublayer in sublayers]
    return " + ".join(["layers[i].input", *terms]) + " == layer_output"


def measure_identity(
    model: StandardizedTransformer, input_ids: torch.Tensor, identity: str, layer: int, writes: Sequence[Write] = ()
) -> float:
    """The error of ``identity`` on one block of the twin.

    The text itself is evaluated, on values read in a forward and the block's own parameters, so what is measured is
    what is printed.

    Args:
        model: the live model.
        input_ids: ``[batch, seq]``.
        identity: an equation for ``layer_output``.
        layer: the block.
        writes: values replaced in that forward; a contribution set to zero has to leave the rest of the equation.

    Returns:
        The largest difference over the output's largest magnitude.

    Raises:
        BrokenIdentity: where the error is above :data:`TOLERANCE`, or the text names something unknown.
    """
    block = model.layers[layer]
    readings = read_all(model, input_ids, torch.Tensor.clone, fake=False, layers=[layer],
                        names={"layer_input", "layer_output", *CONTRIBUTIONS.values()}, writes=writes)
    values = {(reading.host, reading.name): reading.result for reading in readings if reading.layer == layer}
    names: dict[str, Any] = dict(block._module.named_parameters(recurse=False))
    for host, contribution in CONTRIBUTIONS.items():
        names[host] = SimpleNamespace(**{contribution: values.get((host, contribution))})
    names["layers"] = {layer: SimpleNamespace(input=values.get(("layer", "layer_input")))}
    names["i"] = layer
    claimed, _, named = identity.partition(" == ")
    if named != "layer_output":
        raise BrokenIdentity("it does not end in == layer_output")
    output = values.get(("layer", "layer_output"))
    if output is None:
        raise BrokenIdentity("layer_output is not read on this block")
    try:
        rebuilt = eval(compile(claimed, "<identity>", "eval"), {"__builtins__": {}}, names)
    except Exception as problem:
        raise BrokenIdentity(f"it cannot be evaluated: {said(problem)}") from problem
    if getattr(rebuilt, "shape", None) != output.shape:
        raise BrokenIdentity(f"it gives {rebuilt!r:.60}, not a tensor of the output's shape {list(output.shape)}")
    error = ((rebuilt - output).abs().max() / output.abs().max()).item()
    if not error <= TOLERANCE:
        raise BrokenIdentity(f"off by {error:.2e} of the output's largest magnitude, {TOLERANCE:.0e} allowed")
    return error
