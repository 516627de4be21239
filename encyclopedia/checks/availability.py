"""Availability: what ``support()`` says is what happens, and a value is called missing only where it is."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

from encyclopedia.checks.claims import BrokenClaim, Ledger, said
from encyclopedia.checks.reading import places_of, read_regardless
from encyclopedia.model.envoys import StandardHost
from encyclopedia.model.errors import Unavailable
from encyclopedia.model.readings import Reading, read_all
from encyclopedia.model.transformer import StandardizedTransformer
from encyclopedia.structure.operations import calls_interface

#: The advice in a reason: the argument of the load that changes it.
_REMEDY = re.compile(r'load with (?P<argument>\w+)="(?P<choice>[^"]+)"')

#: Calls whose implementation depends on the load, so that what is inside them does.
_DISPATCHED = ("attention_interface", "experts_forward")

#: Says whether a reading has the layout and the meaning of its value.
Holds = Callable[[Reading], bool]


def check_availability(
    model: StandardizedTransformer, input_ids: torch.Tensor, load: str, layers: list[int], ledger: Ledger, *,
    holds: Holds | None = None, remedied: StandardizedTransformer | None = None,
) -> None:
    """Read every value that ``model`` says it has, and ask for every one it says it lacks.

    Args:
        model: the live model under the load.
        input_ids: ``[batch, seq]``.
        load: the load's name in the claim, such as ``the default load``.
        layers: one block of each kind.
        ledger: where claims that held are noted.
        holds: tells whether a withdrawn value that reads all the same is what its name says.
        remedied: the model under the load that reasons advise.

    Raises:
        BrokenClaim: for a value that was promised and did not read, or the other way round, and for a reason that is
            not one.
    """
    places = places_of(model, layers)
    try:
        read = {(reading.layer, reading.host, reading.name)
                for reading in read_all(model, input_ids, lambda value: None, fake=False, layers=layers)}
    except Exception as error:
        raise _not_read(model, input_ids, load, places, error) from error
    counterparts = dict(zip(_keys(places), places_of(remedied, layers), strict=True)) if remedied is not None else {}
    for layer, host in places:
        for name, reason in StandardHost.support(host).items():
            if name in host.later:
                continue
            if reason is None and (layer, host.host, name) in read:
                ledger.held("availability", host.host, name, f"{load} has it and reads it")
            elif reason is None:
                raise BrokenClaim("availability", name, layer, f"{load} to read it", "no reading")
            else:
                check_refused(host, layer, name, reason)
                if name in host.withdrawn:
                    _check_withdrawn(model, input_ids, host, layer, name, reason, holds)
                elif name in host.locations and name not in host.unconfirmed:
                    _check_condition(model, input_ids, host, layer, name, reason)
                    counterpart = counterparts.get((layer, host.host))
                    if counterpart is not None:
                        check_remedy(counterpart[1], layer, name, reason)
                ledger.held("availability", host.host, name, f"where {load} lacks it, it is refused with the reason")


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
    except Exception as error:
        raise BrokenClaim("availability", name, layer, f"to be refused: {reason}", said(error)) from error
    raise BrokenClaim("availability", name, layer, f"to be refused: {reason}", "an answer")


def check_remedy(remedied: StandardHost, layer: int | None, name: str, reason: str) -> None:
    """Check that the load which ``reason`` advises has the value.

    Args:
        remedied: the same host on a model under that load.
        layer: its block.
        name: the value that another load lacks.
        reason: why, and what to load instead.

    Raises:
        BrokenClaim: where no load is advised, another one than ``remedied`` runs, or one that lacks the value too.
    """
    advice = _advice(layer, name, reason)
    running = _implementation(remedied, advice["argument"])
    if running != advice["choice"]:
        raise BrokenClaim("availability", name, layer, f"{advice[0]} to be the load that has it",
                          f"it on the load with {advice['argument']}={running!r}")
    lacking = remedied.unavailable(name)
    if lacking is not None:
        raise BrokenClaim("availability", name, layer, f"a load that has it, by {advice[0]}", f"there: {lacking}")


def _check_withdrawn(
    model: StandardizedTransformer, input_ids: torch.Tensor, host: StandardHost, layer: int | None, name: str,
    reason: str, holds: Holds | None,
) -> None:
    """A withdrawn value may have a derived place only where what stands there is not the value."""
    if holds is None or name not in host.locations:
        return
    found = read_regardless(model, input_ids, host, name)
    if isinstance(found, torch.Tensor) and holds(Reading(layer, host.host, name, found, host.layout_of(name))):
        raise BrokenClaim("availability", name, layer, f"no such value: {reason}",
                          f"it at {host.locations[name]}, as its name says")


def _check_condition(
    model: StandardizedTransformer, input_ids: torch.Tensor, host: StandardHost, layer: int | None, name: str,
    reason: str,
) -> None:
    """Only what is read at a call that the load dispatches may depend on the load, and the reason names what runs."""
    operations = host.locations[name].operations
    dispatched = bool(operations) and any(calls_interface(operations[0], call) for call in _DISPATCHED)
    if not dispatched and read_regardless(model, input_ids, host, name) is not None:
        raise BrokenClaim("availability", name, layer, f"to be missing: {reason}", f"it at {host.locations[name]}")
    running = _implementation(host, _advice(layer, name, reason)["argument"])
    if str(running) not in _REMEDY.sub("", reason):
        raise BrokenClaim("availability", name, layer, f"the reason to name what this load runs, {running}",
                          repr(reason))


def _advice(layer: int | None, name: str, reason: str) -> re.Match[str]:
    found = _REMEDY.search(reason)
    if found is None:
        raise BrokenClaim("availability", name, layer, 'a reason that says what to load with, as argument="choice"',
                          repr(reason))
    return found


def _implementation(host: StandardHost, argument: str) -> Any:
    return getattr(host.config, f"_{argument}", None)


def _keys(places: list[tuple[int | None, StandardHost]]) -> list[tuple[int | None, str]]:
    return [(layer, host.host) for layer, host in places]


def _not_read(
    model: StandardizedTransformer, input_ids: torch.Tensor, load: str, places: list[tuple[int | None, StandardHost]],
    error: Exception,
) -> BrokenClaim:
    """The claim that broke when not every value could be read."""
    for layer, host in places:
        for name, reason in StandardHost.support(host).items():
            if reason is None and name not in host.later and read_regardless(model, input_ids, host, name) is None:
                return BrokenClaim("availability", name, layer, f"{load} to read it at {host.locations[name]}",
                                   said(error))
    return BrokenClaim("availability", None, None, f"every value that {load} offers to read", said(error))
