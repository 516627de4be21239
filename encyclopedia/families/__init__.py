"""The families, one module each.

A module here defines ``FAMILY`` and a docstring that says why it declares what it declares.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache

from encyclopedia.families.base import Declared, Family

__all__ = ["Declared", "Family", "docstring", "family", "has_module", "model_types"]


@cache
def model_types() -> tuple[str, ...]:
    """The ``model_type`` of every family with a module, sorted."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name != "base"))


def has_module(model_type: str) -> bool:
    """Whether people wrote a module for the family ``model_type``."""
    return model_type in model_types()


@cache
def family(model_type: str) -> Family:
    """The family of ``model_type``; one that declares nothing where there is no module for it."""
    if not has_module(model_type):
        return Family(model_type, title=model_type, subtitle="", hue=sum(model_type.encode()) * 37 % 360)
    return importlib.import_module(f"{__name__}.{model_type}").FAMILY


def docstring(model_type: str) -> str:
    """The docstring of the family's module; empty where there is none."""
    if not has_module(model_type):
        return ""
    return inspect.getdoc(importlib.import_module(f"{__name__}.{model_type}")) or ""
