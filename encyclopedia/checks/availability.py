"""Availability: what ``support()`` says is what happens."""

from __future__ import annotations

import torch

from encyclopedia.checks.claims import BrokenClaim, Ledger
from encyclopedia.model.envoys import StandardHost
from encyclopedia.model.errors import Unavailable
from encyclopedia.model.readings import read_all
from encyclopedia.model.transformer import StandardizedTransformer


def check_availability(
    model: StandardizedTransformer, input_ids: torch.Tensor, load: str, layers: list[int], ledger: Ledger
) -> None:
    """Read every value that ``model`` says it has, and ask for every one it says it lacks.

    Args:
        model: the live model under the load.
        input_ids: ``[batch, seq]``.
        load: the load's name in the claim, such as ``the default load``.
        layers: one block of each kind.
        ledger: where claims that held are noted.

    Raises:
        BrokenClaim: for a value that was promised and did not read, or the other way round.
    """
    places = [(None, model), *((layer, host) for layer in layers for host in model.hosts(layer))]
    try:
        read = {(reading.layer, reading.host, reading.name)
                for reading in read_all(model, input_ids, lambda value: None, fake=False, layers=layers)}
    except Exception as error:
        raise BrokenClaim("availability", None, None, f"every value that {load} offers to read",
                          f"{type(error).__name__}: {' '.join(str(error).split())}") from error
    for layer, host in places:
        for name, reason in StandardHost.support(host).items():
            if reason is None and (layer, host.host, name) in read:
                ledger.held("availability", host.host, name, f"{load} has it and reads it")
            elif reason is not None:
                check_refused(host, layer, name, reason)
                ledger.held("availability", host.host, name, f"where {load} lacks it, it is refused with the reason")
            else:
                raise BrokenClaim("availability", name, layer, f"{load} to read it", "no reading")


def check_refused(host: StandardHost, layer: int | None, name: str, reason: str) -> None:
    """Ask ``host`` for a value it says it lacks.

    Raises:
        BrokenClaim: where it answers, or refuses for another reason.
    """
    try:
        getattr(host, name)
    except Unavailable as refusal:
        if reason not in str(refusal):
            raise BrokenClaim("availability", name, layer, f"the reason {reason!r}", repr(str(refusal))) from refusal
        return
    raise BrokenClaim("availability", name, layer, f"to be refused: {reason}", "an answer")
