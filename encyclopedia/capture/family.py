"""Putting a family's facts together from its checkpoints'."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

import encyclopedia
from encyclopedia.checkpoints import families_recorded
from encyclopedia.facts import (
    CheckpointFacts,
    Failure,
    FamilyFacts,
    LensFacts,
    NotesFacts,
    SnippetCheck,
    SourceLink,
    Versions,
)
from encyclopedia.families import docstring, family, has_module
from encyclopedia.lens import lens_names
from encyclopedia.measure.records import read_measured
from encyclopedia.quirks import QUIRKS


def installed_versions() -> Versions:
    """What this installation would capture with."""
    return Versions(
        transformers=version("transformers"),
        torch=version("torch").partition("+")[0],
        nnsight=version("nnsight"),
        encyclopedia=encyclopedia.__version__,
    )


def gather_family(
    model_type: str, checkpoints: Sequence[CheckpointFacts], reference: str, notes: NotesFacts
) -> FamilyFacts:
    """The facts of a family.

    Args:
        model_type: its transformers ``model_type``.
        checkpoints: in the order they are listed.
        reference: the id the page opens on.
        notes: what running its notes showed.
    """
    declared = family(model_type)
    carried = {slug for checkpoint in checkpoints for slug in checkpoint.quirks}
    return FamilyFacts(
        model_type=model_type,
        title=declared.title,
        subtitle=declared.subtitle,
        hue=declared.hue,
        quirks=[slug for slug in QUIRKS if slug in carried],
        reference=reference,
        family_module=f"encyclopedia.families.{model_type}" if has_module(model_type) else "",
        docstring=docstring(model_type),
        annotated=has_module(model_type),
        failure=_failure(checkpoints, reference),
        sources=_sources(model_type),
        versions=installed_versions(),
        notes=notes,
        checkpoints=[_with_snippets(checkpoint, notes) for checkpoint in checkpoints],
        transformer_lens=[LensFacts(**name.model_dump(include=set(LensFacts.model_fields)))
                          for name in lens_names(model_type)],
    )


def _sources(model_type: str) -> list[SourceLink]:
    files: dict[str, str] = {}
    if has_module(model_type):
        files |= {
            "family module": f"encyclopedia/families/{model_type}.py",
            "its tests": f"tests/families/test_{model_type}.py",
            "notes": f"site_src/notes/{model_type}.md",
        }
    if model_type in families_recorded():
        files["recorded checkpoints"] = f"encyclopedia/checkpoints/{model_type}.json"
    if read_measured(model_type):
        files["measured on real weights"] = f"encyclopedia/measured/{model_type}.json"
    return [SourceLink(label=label, path=path) for label, path in files.items()]


def _failure(checkpoints: Sequence[CheckpointFacts], reference: str) -> Failure | None:
    """Why no checkpoint is shown, where none is: what failed on the reference, else on the first."""
    if any(checkpoint.available for checkpoint in checkpoints):
        return None
    failed = sorted(checkpoints, key=lambda checkpoint: checkpoint.id != reference)
    return next((checkpoint.failure for checkpoint in failed if checkpoint.failure is not None), None)


def _with_snippets(checkpoint: CheckpointFacts, notes: NotesFacts) -> CheckpointFacts:
    if checkpoint.checks is None:
        return checkpoint
    ran = sum(checkpoint.id in snippet.ran_on for snippet in notes.snippets)
    cannot = sum(snippet.reason is not None for snippet in notes.snippets)
    snippets = SnippetCheck(run=ran, total=ran + cannot)
    return checkpoint.model_copy(update={"checks": checkpoint.checks.model_copy(update={"snippets": snippets})})
