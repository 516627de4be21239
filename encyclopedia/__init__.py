"""The encyclopedia: what every internal tensor of a language model is called, its shape, and where it is read.

``StandardizedTransformer`` is the live model with standard names. It is imported on first use, so that facts and pages
can be read without torch.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from encyclopedia.model import NoWeights, StandardizedTransformer, Unavailable

__all__ = ["NoWeights", "StandardizedTransformer", "Unavailable", "__version__"]

try:
    __version__ = version("encyclopedia")
except PackageNotFoundError:
    __version__ = "0"


def __getattr__(name: str) -> Any:
    if name in ("NoWeights", "StandardizedTransformer", "Unavailable"):
        from encyclopedia import model

        return getattr(model, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
