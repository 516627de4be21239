"""The contribution identity: its text, and how exactly it holds on the small twin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import torch

from encyclopedia.checks.claims import said
from encyclopedia.families import Family
from encyclopedia.model.readings import Write, read_all
from encyclopedia.model.transformer import StandardizedTransformer
from encyclopedia.structure.parts import CONTRIBUTIONS, Kind

#: The largest error allowed, in units of the output's largest magnitude.
TOLERANCE = 2e-6


class BrokenIdentity(Exception):
    """An identity that does not hold on the twin."""


def identity_of(family: Family, kind: Kind) -> str | None:
    """The equation for ``layer_output``: the family's own, else the sum that was found; ``None`` where none was."""
    if family.identity is not None:
        return family.identity
    return None if kind.sum is None else str(kind.sum)


def stream_gates(family: Family, kind: Kind) -> Mapping[str, str]:
    """By host, what multiplies the stream before that sublayer's add: as declared, else as found."""
    if family.stream_gates:
        return family.stream_gates
    gates = None if kind.sum is None else kind.sum.gates
    if gates is None or len(kind.sublayers) != 2:
        return {}
    return {sublayer.host: gate for sublayer, gate in zip(kind.sublayers, gates, strict=True)}


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
    kind = model.structure.kind_of(layer)
    own = [] if kind.sum is None else [(term.path, term.location) for term in kind.sum.terms if term.host is None]
    own += [(name, "output") for name, _ in block._module.named_children()
            if f"{name}.output" in identity and name not in dict(own)]
    values, outputs = _read(model, input_ids, layer, own, writes)
    names = _Names(dict(block._module.named_parameters()) | dict(block._module.named_buffers()))
    for (path, location), own_output in outputs.items():
        names.put(f"{path}.output", (own_output,) if location == "output[0]" else own_output)
    for host, contribution in CONTRIBUTIONS.items():
        names.put(f"{host}.{contribution}", values.get((host, contribution)))
    numbers = {name: number for name, number in vars(block._module).items() if isinstance(number, float)}
    names["layers"] = {layer: SimpleNamespace(input=values.get(("layer", "layer_input")), **numbers)}
    names["config"] = SimpleNamespace(**model.config.to_dict())
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


def _read(
    model: StandardizedTransformer, input_ids: torch.Tensor, layer: int, own: Sequence[tuple[str, str]],
    writes: Sequence[Write],
) -> tuple[dict[tuple[str, str], torch.Tensor], dict[tuple[str, str], torch.Tensor | tuple[torch.Tensor, ...]]]:
    """The block's input, output and contributions by host and name, and modules' own outputs by path and location."""
    outputs: dict[tuple[str, str], torch.Tensor | tuple[torch.Tensor, ...]] = {}
    handles = []
    for path, location in own:
        def keep(module: Any, arguments: tuple, output: Any, key: tuple[str, str] = (path, location)) -> None:
            kept = output[0] if key[1] == "output[0]" else output
            outputs[key] = tuple(map(torch.Tensor.clone, kept)) if isinstance(kept, tuple) else kept.clone()

        handles.append(model.layers[layer]._module.get_submodule(path).register_forward_hook(keep))
    try:
        readings = read_all(model, input_ids, torch.Tensor.clone, fake=False, layers=[layer],
                            names={"layer_input", "layer_output", *CONTRIBUTIONS.values()}, writes=writes)
    finally:
        for handle in handles:
            handle.remove()
    values = {(reading.host, reading.name): reading.result for reading in readings if reading.layer == layer}
    return values, outputs


class _Names(dict):
    """Names for an identity: what stands at a dotted path is reached by attributes, a number in it by an index."""

    def __init__(self, paths: Mapping[str, Any]) -> None:
        super().__init__()
        for path, value in paths.items():
            self.put(path, value)

    def put(self, path: str, value: Any) -> None:
        """Make ``path`` read ``value``."""
        first, *rest = path.split(".")
        if not rest:
            self[first] = value
        else:
            self.setdefault(first, _Names({})).put(".".join(rest), value)

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError as missing:
            raise AttributeError(name) from missing

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(str(key) if isinstance(key, int) else key)
