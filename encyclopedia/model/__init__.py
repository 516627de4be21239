"""The live model with standard names."""

from encyclopedia.model.errors import NoWeights, Unavailable
from encyclopedia.model.transformer import StandardizedTransformer
from encyclopedia.structure.stack import UnknownStructure

__all__ = ["NoWeights", "StandardizedTransformer", "Unavailable", "UnknownStructure"]
