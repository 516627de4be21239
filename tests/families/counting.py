"""Counting a native model's parameters in a test."""

from __future__ import annotations

from torch import nn

from encyclopedia.capture.parameters import count_parameters
from encyclopedia.facts import ParameterCounts
from encyclopedia.families import family
from encyclopedia.structure.derive import structure_of


def counted_in(model: nn.Module, model_type: str) -> ParameterCounts:
    """The parameters of a native model of the family ``model_type``."""
    return count_parameters(model, structure_of(model), family(model_type))
