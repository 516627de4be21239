"""The live model with standard names."""

from encyclopedia.model.errors import NoWeights, Unavailable, UnknownStructure
from encyclopedia.model.transformer import StandardizedTransformer

__all__ = ["NoWeights", "StandardizedTransformer", "Unavailable", "UnknownStructure"]
