"""The hosts of a model and their values as facts: where each is read, with which shape, and what lacks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from encyclopedia.capture.elsewhere import Places, host_paths
from encyclopedia.capture.shapes import BATCH
from encyclopedia.checks.layout import Seen
from encyclopedia.facts import HostFacts, ValueFacts
from encyclopedia.location import Location
from encyclopedia.model.envoys import StandardHost
from encyclopedia.model.readings import Reading
from encyclopedia.model.transformer import StandardizedTransformer
from encyclopedia.structure.parts import Kind
from encyclopedia.vocabulary import HOSTS, values_of

#: By load (``eager``, ``default``), host expression and value: why the load lacks it, or ``None``.
Support = Mapping[str, Mapping[str, Mapping[str, str | None]]]


def hosts_of(
    model: StandardizedTransformer, kinds: Sequence[Kind], readings: Sequence[Reading], support: Support,
    sure: set[tuple[str, str]], native: Places,
) -> list[HostFacts]:
    """The hosts that ``model`` has, with the values that each carries.

    Args:
        model: the model at full size.
        kinds: its kinds of blocks.
        readings: what was read at the root and on the first block of each kind.
        support: what each load lacks.
        sure: host and name of the values that a run has confirmed.
        native: where a run confirmed that values are without standard names.
    """
    seen: dict[tuple[str, str], dict[int | None, Seen]] = {}
    for reading in readings:
        seen.setdefault((reading.host, reading.name), {})[reading.layer] = reading.result
    layers = [kind.blocks[0] for kind in kinds]
    found = []
    for host, expression in HOSTS.items():
        standing = [model] if host == "model" else [
            there for layer in layers for there in model.hosts(layer) if there.host == host]
        if not standing:
            continue
        carried = {name: value for there in reversed(standing) for name, value in there.values().items()}
        places = _places(standing)
        values = []
        for name in values_of(host):
            if name not in carried or name not in places:
                continue
            value, layout = carried[name], carried[name].layout
            shapes = _shapes(model, layers, host, name, seen.get((host, name), {}))
            values.append(ValueFacts(
                name=name,
                layout=None if layout is None else layout.name,
                dims=[] if layout is None else list(layout.dims),
                role=value.role,
                part=value.part,
                location=str(places[name]),
                where=_where(name, places[name]),
                condition=_condition(support, expression, name, standing),
                description=value.description,
                shapes=[None if shape is None else list(shape.shape) for shape in shapes],
                dtype=next((shape.dtype for shape in shapes if shape is not None), None),
                writable=value.writable,
                checked=(host, name) in sure,
                native=native.get((host, name), []),
            ))
        classes = list(dict.fromkeys(type(there._module).__name__ for there in standing))
        found.append(HostFacts(name=host, host=expression, classes=classes, values=values,
                               native=host_paths(model, host, kinds)))
    return found


def _shapes(
    model: StandardizedTransformer, layers: Sequence[int], host: str, name: str, by_layer: Mapping[int | None, Seen]
) -> list[Seen | None]:
    """What a value is on each of ``layers``; one of the root is the same on all."""
    if host == "model":
        return [by_layer.get(None) for _ in layers]
    return [by_layer.get(layer) or _later(model, layer, host, name) for layer in layers]


def _later(model: StandardizedTransformer, layer: int, host: str, name: str) -> Seen | None:
    """What a value of a later call is at full size, from the sizes of its axes; a first call has not got it."""
    there = next((found for found in model.hosts(layer) if found.host == host), None)
    if there is None or name not in there.later or there.unavailable(name) is not None:
        return None
    layout = there.layout_of(name)
    sizes = {"batch": BATCH, **there.axes}
    if layout is None or not all(axis in sizes for axis in layout.dims):
        return None
    return Seen(tuple(sizes[axis] for axis in layout.dims), None)


def _condition(
    support: Support, expression: str, name: str, standing: Sequence[StandardHost]
) -> str | None:
    """Why some block, the default load or some call has not got a value; ``None`` where every one has it."""
    lacking = support["eager"][expression].get(name)
    by_default = support["default"][expression].get(name)
    if lacking is None and by_default is not None:
        return f"the default load lacks it: {by_default}"
    return lacking or next((there.calls[name] for there in standing if name in there.calls), None)


def _places(standing: Sequence[StandardHost]) -> dict[str, Location]:
    """Where each value is read, from the first host that serves it."""
    served: dict[str, Location] = {}
    for there in reversed(standing):
        served |= {name: place for name, place in there.locations.items()
                   if name not in there.withdrawn and name not in there.unconfirmed}
    return served


def _where(name: str, location: Location) -> str:
    if name == "attention_mask":
        return "the argument attention_mask of the module itself"
    return location.phrase()
