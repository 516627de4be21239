"""Where the native model has what the standard names read: paths without aliases, and hooks that see the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from encyclopedia.facts import HookFacts, NativePlace
from encyclopedia.location import Location
from encyclopedia.model.envoys import RecurrentMixer, StandardHost
from encyclopedia.model.readings import Reading
from encyclopedia.model.transformer import StandardizedTransformer
from encyclopedia.model.value import CallArgument
from encyclopedia.native import Call, NativeRun
from encyclopedia.structure.held import to_layout

NO_MODULE = (
    "read inside the forward of {native}, at an operation that no module makes: hooks see only what modules take and "
    "give"
)
CALLED_AGAIN = "the module is called {times} times in a forward, and a hook keeps what the last call had"
NOT_CALLED = "no call of the module goes through its hooks"
HELD_OTHERWISE = "what a hook sees there is not the value's layout laid out otherwise"


@dataclass(frozen=True)
class Placed:
    """A reading and where the native model has it; the place's ``kinds`` are left empty."""

    reading: Reading
    place: NativePlace


def native_path(model: StandardizedTransformer, path: str, layer: int | None) -> str:
    """A module's path as an expression over a transformers model called ``model``, with ``[i]`` for its block.

    Args:
        model: the live model.
        path: the native path from the causal model.
        layer: the block that ``[i]`` stands for.
    """
    stack = model.stack.layers
    steps = []
    for position, step in enumerate(path.split(".") if path else []):
        here = ".".join(path.split(".")[:position]) == stack and layer is not None and step == str(layer)
        steps.append("[i]" if here else f"[{step}]" if step.isdigit() else f".{step}")
    return "model" + "".join(steps)


def native_places(model: StandardizedTransformer, native: NativeRun, readings: Sequence[Reading]) -> list[Placed]:
    """Where the native model has each of ``readings``; those that are computed from others are left out.

    Args:
        model: the live model.
        native: a forward of it as plain hooks recorded it, on what ``readings`` were read on.
        readings: values with their tensors.
    """
    paths = {id(module): path for path, module in model._module.named_modules()}
    found = []
    for reading in readings:
        host: Any = model if reading.layer is None else model.host_at(reading.layer, reading.host)
        location = host.locations.get(reading.name)
        if location is None or location.handle == "derived" or not isinstance(reading.result, torch.Tensor):
            continue
        found.append(Placed(reading, _place(model, native, paths, host, reading, location)))
    return found


def place_of_later(model: StandardizedTransformer, host: StandardHost, name: str) -> NativePlace:
    """Where the native model has a value that a first call lacks, which therefore nothing was compared with."""
    path, inside = _steps(host, host.locations[name])
    native = type(model._module.get_submodule(path)).__name__
    return NativePlace(
        kinds=[], module=native_path(model, path, host.layer), location=str(inside), held=None, hook=None,
        no_hook=NO_MODULE.format(native=native),
        no_nnsight="a first call has not got the value, and only first calls were compared")


def ways_held(raw: torch.Tensor, reading: Reading, known: str | None) -> list[str | None]:
    """The patterns by which ``raw``, as a model holds it, has the shape of what was read; ``None`` where as it is.

    Args:
        raw: what the model holds.
        reading: the value as it is served.
        known: a pattern that is known to be tried too.
    """
    return [held for held in _patterns(reading, known) if _laid_out(raw, held, reading, compare=False)]


def _steps(host: StandardHost, location: Location) -> tuple[str, Location]:
    """The native path of the module that ``location`` is read on or inside of, and the location from there."""
    envoy: Any = host
    for step in location.modules:
        envoy = envoy.parent if step == ".." else getattr(envoy, step)
    rest = location.steps[len(location.modules):]
    return envoy.path.removeprefix(host.root.path).lstrip("."), Location(
        rest, location.handle, location.index, location.field)


def _place(
    model: StandardizedTransformer, native: NativeRun, paths: dict[int, str], host: StandardHost, reading: Reading,
    location: Location,
) -> NativePlace:
    path, inside = _steps(host, location)
    descriptor = vars(type(host)).get(reading.name) or getattr(type(host), reading.name)
    if isinstance(descriptor, CallArgument):
        inside = Location((), "inputs", descriptor.argument)
    module = model._module.get_submodule(path)
    calls = native.calls.get(paths[id(module)], [])
    known = host.recurrent.held.get(reading.name) if isinstance(host, RecurrentMixer) else None
    place = NativePlace(kinds=[], module=native_path(model, path, reading.layer), location=str(inside), held=None,
                        hook=None, no_hook=None, no_nnsight=None)
    if inside.steps:
        hook = _same_tensor(model, native, path, reading)
        return place.model_copy(update={
            "held": known, "hook": hook,
            "no_hook": NO_MODULE.format(native=type(module).__name__) if hook is None else None})
    if len(calls) != 1:
        reason = CALLED_AGAIN.format(times=len(calls)) if calls else NOT_CALLED
        return place.model_copy(update={"held": known, "no_hook": reason})
    tensor = _spelled(inside, calls[0])
    raw = dict(_tensors(calls[0])).get(tensor)
    if inside.field is not None:
        raw = getattr(calls[0].output, inside.field)
    fitting = [] if raw is None else ways_held(raw, reading, known)
    if not fitting:
        return place.model_copy(update={"held": known, "no_hook": HELD_OTHERWISE})
    hook = HookFacts(module=place.module, tensor=tensor, held=fitting[0])
    return place.model_copy(update={"held": fitting[0], "hook": hook})


def _spelled(inside: Location, call: Call) -> str:
    """What of the call a location on the module is, as ``HookFacts.tensor`` spells it."""
    if inside.handle == "output":
        return f"output.{inside.field}" if inside.field else "output" if inside.index is None \
            else f"output[{inside.index}]"
    index = inside.index
    if index is None:
        index = 0 if call.arguments else next(iter(call.keywords))
    return f"args[{index}]" if isinstance(index, int) else f"kwargs[{index}]"


def _tensors(call: Call) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors of a call that a hook sees, each as ``HookFacts.tensor`` spells it, outputs first."""
    several = isinstance(call.output, tuple | list)
    named = [(f"output[{k}]", each) for k, each in enumerate(call.output)] if several else [("output", call.output)]
    named += [(f"args[{k}]", each) for k, each in enumerate(call.arguments)]
    named += [(f"kwargs[{name}]", each) for name, each in call.keywords.items()]
    yield from ((name, each) for name, each in named if isinstance(each, torch.Tensor))


def _same_tensor(
    model: StandardizedTransformer, native: NativeRun, path: str, reading: Reading
) -> HookFacts | None:
    """A hook that sees, to the last bit, what is read inside a forward: on that module, in it, or beside it."""
    block = "" if reading.layer is None else f"{model.stack.layers}.{reading.layer}"
    around = [call for call in native.under(block) if len(native.calls[call.path]) == 1]
    nearest = sorted(around, key=lambda call: (call.path != path, not call.path.startswith(f"{path}.")))
    for call in nearest:
        for tensor, raw in _tensors(call):
            for held in _patterns(reading, None):
                if _laid_out(raw, held, reading, compare=True):
                    return HookFacts(module=native_path(model, call.path, reading.layer), tensor=tensor, held=held)
    return None


def _patterns(reading: Reading, known: str | None) -> list[str | None]:
    """How a model may hold a value: as it is served, as ``known``, flat over tokens or heads, heads behind tokens."""
    dims = list(reading.layout.dims) if reading.layout is not None else []
    orders = [dims]
    if "seq" in dims and dims[1] != "seq":
        orders.append(["batch", "seq", *(axis for axis in dims[1:] if axis != "seq")])
    elif len(dims) == 4 and dims[1] == "seq":
        orders.append([dims[0], dims[2], dims[1], dims[3]])
    found: list[str | None] = [None, *([known] if known else [])]
    for order in orders:
        if order != dims:
            found.append(" ".join(order))
        if order[:2] != ["batch", "seq"]:
            continue
        flat = [f"({order[-2]} {order[-1]})"] if len(order) == 4 else []
        found += [" ".join(["(batch seq)", *order[2:]])]
        if flat:
            found += [" ".join(["batch seq", *flat]), " ".join(["(batch seq)", *flat])]
    return found


def _laid_out(raw: torch.Tensor, held: str | None, reading: Reading, *, compare: bool) -> bool:
    """Whether ``raw``, held as ``held``, has the shape of what was read, and with ``compare`` all of its numbers."""
    expected: torch.Tensor = reading.result
    if raw.numel() != expected.numel():
        return False
    tensor = raw
    if held is not None:
        assert reading.layout is not None
        sizes = dict(zip(reading.layout.dims, expected.shape, strict=True))
        try:
            tensor = to_layout(raw, held, reading.layout.dims, sizes)
        except (ValueError, RuntimeError):
            return False
    if tensor.shape != expected.shape:
        return False
    return not compare or (tensor.dtype == expected.dtype and torch.equal(tensor, expected))
