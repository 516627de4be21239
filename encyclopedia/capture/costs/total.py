"""All the costs of a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn
from transformers import PreTrainedModel

from encyclopedia.capture.costs.cache import NotMeasured, cache_of, laws, layers_of, windows_of
from encyclopedia.capture.costs.flops import flops
from encyclopedia.capture.costs.kept import cache_costs, left_out_of_context
from encyclopedia.capture.costs.running import Ran, Subject, run, subject_of, whole
from encyclopedia.facts import CacheCosts, Cost, Costs
from encyclopedia.structure.parts import Structure

#: Lengths of the short texts: three, which tell what grows with a text's length from what grows with its square.
SHORT = (4, 8, 16)

#: A long text is about this long at least, one short of a power of two: an entry for several tokens then lacks one.
LONG = 1024

#: Bytes of an element by dtype; of ``int4``, two elements share one.
_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "int8": 1}


def costs_of(full: PreTrainedModel, structure: Structure) -> Costs:
    """What the model of a checkpoint takes to hold and to run.

    Args:
        full: the native model without weights.
        structure: what it is made of.

    Raises:
        Exception: whatever a forward without weights raises, where the model does not run so.
    """
    subject = subject_of(full, structure)
    short = run(subject, SHORT)
    several = any(calls > 1 for calls in short[0].counted.calls.values()) or _layers(short[-1]) > subject.blocks
    if several and subject.blocks < structure.depth:
        # Blocks that are alike need not be gone through equally often, nor keep equally many layers of the cache.
        subject = whole(full, structure)
        short = run(subject, SHORT)
    per_token, of_context = flops(full, structure, subject, short)
    cache, reason, left_out = measure_cache(subject, structure, short)
    of_context = of_context.model_copy(update={"formula": of_context.formula + left_out})
    return Costs(weight_bytes=weight_bytes(full), cache=cache, cache_reason=reason, flops_per_token=per_token,
                 flops_per_token_of_context=of_context)


def weight_bytes(model: nn.Module) -> dict[str, Cost]:
    """Bytes of all parameters, tied ones once, by the dtype they may be held in."""
    count = sum(parameter.numel() for parameter in model.parameters())
    found = {dtype: Cost(amount=count * size, formula=f"{count:,} parameters * {size} byte{'s' * (size != 1)}")
             for dtype, size in _BYTES.items()}
    return {**found, "int4": Cost(amount=(count + 1) // 2, formula=f"{count:,} parameters / 2 to a byte")}


def measure_cache(
    subject: Subject, structure: Structure, short: Sequence[Ran]
) -> tuple[CacheCosts | None, str | None, str]:
    """The cache's costs, or why there are none; and what a step from it takes that a forward over a text does not."""
    cache = cache_of(short[-1].output)
    if cache is None or not any(layers_of(cache).values()):
        return None, "a forward with use_cache=True returns no cache object", ""
    try:
        found = laws(short[-2:], _long(subject, cache))
        costs = cache_costs(structure, subject, found)
    except NotMeasured as error:
        return None, str(error), ""
    if costs is None:
        return None, "the cache that a forward returns stays empty", ""
    return costs, None, left_out_of_context(structure, costs, found)


def _layers(ran: Ran) -> int:
    cache = cache_of(ran.output)
    return 0 if cache is None else len(layers_of(cache))


def _long(subject: Subject, cache: object) -> list[Ran]:
    """Two texts longer than every window of the cache; none where it states no window."""
    windows = windows_of(cache)
    if not windows:
        return []
    length = LONG
    while length <= max(windows) + 1:
        length *= 2
    return run(subject, (length - 1, 2 * length - 1), count=False)
