"""Putting a family's facts together from its checkpoints'."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import encyclopedia
from encyclopedia.facts import CheckpointFacts, FamilyFacts, SourceLink, Versions
from encyclopedia.families import docstring, family
from encyclopedia.quirks import QUIRKS


def installed_versions() -> Versions:
    """What this installation would capture with."""
    return Versions(
        transformers=version("transformers"),
        torch=version("torch").partition("+")[0],
        nnsight=version("nnsight"),
        encyclopedia=encyclopedia.__version__,
    )


def gather_family(model_type: str, checkpoints: Sequence[CheckpointFacts], reference: str) -> FamilyFacts:
    """The facts of a family.

    Args:
        model_type: its transformers ``model_type``.
        checkpoints: in the order they are listed.
        reference: the id the page opens on.
    """
    declared = family(model_type)
    carried = {slug for checkpoint in checkpoints for slug in checkpoint.quirks}
    return FamilyFacts(
        model_type=model_type,
        title=declared.title,
        subtitle=declared.subtitle,
        quirks=[slug for slug in QUIRKS if slug in carried],
        reference=reference,
        family_module=f"encyclopedia.families.{model_type}",
        docstring=docstring(model_type),
        sources=[
            SourceLink(label="family module", path=f"encyclopedia/families/{model_type}.py"),
            SourceLink(label="its tests", path=f"tests/families/test_{model_type}.py"),
            SourceLink(label="recorded checkpoints", path=f"encyclopedia/checkpoints/{model_type}.json"),
            SourceLink(label="notes", path=f"site_src/notes/{model_type}.md"),
        ],
        versions=installed_versions(),
        checkpoints=list(checkpoints),
    )


def notes_path(model_type: str, root: Path) -> Path:
    """The family's notes file under the project's ``root``."""
    return root / "site_src" / "notes" / f"{model_type}.md"
