"""Entering a function that a forward calls, so that a value inside it is read in the step it is asked for."""

from __future__ import annotations

from nnsight.intervention.interleaver import Mediator
from nnsight.intervention.source import Source, SourceEnvoy


def enter(operation: SourceEnvoy) -> Source:
    """The operations inside the function that ``operation`` calls, inside a trace.

    nnsight counts the visits of a place from the first one it serves, and it serves nothing inside a called function
    before it was entered. Entered in a later step of a generation, or too late in a step, the function's operations
    would be a step behind; here they are counted as the operation itself is, so that a value is served in its own step
    and one asked for too late is an error.
    """
    interleaver, path = operation.envoy.interleaver, operation.path
    if not interleaver.interleaving or interleaver.sourced.get(path) is not None:
        return operation.source
    mediator = Mediator.current(path)
    if path not in interleaver.sourced:
        _count_from(mediator, f"{path}.fn", mediator.occurrence(f"{path}.skip"))
    inside = operation.source
    step = mediator.occurrence(f"{path}.fn")
    for name in inside.names:
        for handle in ("input", "skip", "output"):
            _count_from(mediator, f"{inside.prefix}.{name}.{handle}", step)
    return inside


def _count_from(mediator: Mediator, location: str, visits: int) -> None:
    mediator.interleaver.counts[location] = mediator.counts_at_start.get(location, 0) + visits
