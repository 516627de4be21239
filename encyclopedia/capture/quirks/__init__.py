"""Which quirks a checkpoint carries, measured on its small twin and read off its full-size modules and its config.

A detector per quirk, in a module per part of the model. Each looks at the :class:`Evidence` and says whether the
checkpoint carries its quirk; what a model lacks it does not carry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import nn

from encyclopedia.capture.quirks import (
    attention,
    ends,
    heads,
    mixture,
    neurons,
    norms,
    positions,
    projections,
    recurrence,
    stream,
    visible,
    weights,
)
from encyclopedia.capture.quirks.evidence import Evidence
from encyclopedia.families import Family
from encyclopedia.native import NativeRun
from encyclopedia.quirks import QUIRKS
from encyclopedia.structure.parts import Structure

__all__ = ["DETECTORS", "Evidence", "find_quirks"]

Detector = Callable[[Evidence], bool]

#: The detector of every quirk that a model can show; a quirk without one is a family's to declare.
DETECTORS: Mapping[str, Detector] = {
    **stream.DETECTORS,
    **norms.DETECTORS,
    **heads.DETECTORS,
    **attention.DETECTORS,
    **positions.DETECTORS,
    **visible.DETECTORS,
    **recurrence.DETECTORS,
    **mixture.DETECTORS,
    **neurons.DETECTORS,
    **projections.DETECTORS,
    **weights.DETECTORS,
    **ends.DETECTORS,
}


def find_quirks(
    family: Family, structure: Structure, model: nn.Module, twin: nn.Module, recording: NativeRun
) -> list[str]:
    """The slugs a checkpoint carries, in the order of :data:`encyclopedia.quirks.QUIRKS`.

    Args:
        family: what the family declares.
        structure: what the full model is made of.
        model: the native full model, without weights.
        twin: its native small twin, not wrapped by anything.
        recording: a forward of the twin.
    """
    evidence = Evidence(family, structure, model, twin, recording)
    return [slug for slug in QUIRKS
            if slug in family.quirks or (slug in DETECTORS and DETECTORS[slug](evidence))]
