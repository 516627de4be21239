"""Reading, with an error that says which value could not be read and where it was looked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from encyclopedia.checks.claims import BrokenClaim, said
from encyclopedia.checks.patched import patched
from encyclopedia.model.envoys import StandardHost
from encyclopedia.model.readings import Reading, read_all
from encyclopedia.model.transformer import StandardizedTransformer

Place = tuple[int | None, StandardHost]


def places_of(model: StandardizedTransformer, layers: Sequence[int]) -> list[Place]:
    """The root and every host of ``layers``, each with its block."""
    return [(None, model), *((layer, host) for layer in layers for host in model.hosts(layer))]


def read_or_blame(
    model: StandardizedTransformer, input_ids: torch.Tensor, make: Callable[[Any], Any], *, fake: bool,
    layers: Sequence[int] | None = None,
) -> list[Reading]:
    """As :func:`encyclopedia.model.readings.read_all`, for every available value.

    Raises:
        BrokenClaim: naming the first value that cannot be read.
    """
    try:
        return read_all(model, input_ids, make, fake=fake, layers=layers)
    except Exception as error:
        for layer, host in places_of(model, range(model.num_layers) if layers is None else layers):
            for name, reason in StandardHost.support(host).items():
                if reason is None and name not in host.later:
                    _read_alone(model, input_ids, layer, host, name, fake)
        raise BrokenClaim("location", None, None, "all values to be read in one forward", said(error)) from error


def read_regardless(
    model: StandardizedTransformer, input_ids: torch.Tensor, host: StandardHost, name: str
) -> Any:
    """A value that ``host`` says it lacks, read at the place it has for it; ``None`` where that does not work."""
    try:
        with patched(StandardHost, "require", lambda host, name: None):
            return _read(model, input_ids, host, name, fake=False)
    except Exception:
        return None


def _read_alone(
    model: StandardizedTransformer, input_ids: torch.Tensor, layer: int | None, host: StandardHost, name: str,
    fake: bool,
) -> None:
    try:
        _read(model, input_ids, host, name, fake)
    except Exception as error:
        raise BrokenClaim("location", f"{host.host}.{name}", layer, f"to be read at {host.locations.get(name)}",
                          said(error)) from error


def _read(model: StandardizedTransformer, input_ids: torch.Tensor, host: StandardHost, name: str, fake: bool) -> Any:
    found: list[Any] = []
    with (model.scan if fake else model.trace)(input_ids):
        found.append(getattr(host, name))
    return found[0].clone() if isinstance(found[0], torch.Tensor) else found[0]
