"""The one Jinja environment: every template is escaped here and nowhere else."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


@cache
def environment(templates: Path) -> Environment:
    """The environment over the folder ``templates``; a name a template misspells is an error."""
    return Environment(
        loader=FileSystemLoader(templates),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
