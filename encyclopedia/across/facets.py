"""What families can be found and filtered by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from encyclopedia.facts import CheckpointFacts, FamilyFacts
from encyclopedia.page.mixers import BOTH, NEITHER, RECURRENT, SOFTMAX, UNKNOWN, has_mixture, mixers_of
from encyclopedia.page.shown import shown_of

DENSE, MIXTURE = "dense", "mixture"


@dataclass(frozen=True)
class Facets:
    """What the shown checkpoints of a family are, taken together; empty where none is shown.

    Attributes:
        architectures: native classes of whole models, of all its checkpoints.
        checkpoints: ids of all its checkpoints; the class's own defaults are no checkpoint.
        parameters: the total of each shown checkpoint.
        blocks: the number of blocks of each.
        hidden_sizes: the width of the residual stream of each.
        quirks: slugs of :mod:`encyclopedia.quirks`.
        values: hosts and names of the standard values that some checkpoint serves, such as ``mlp.router_logits``.
        mixer: the slug of one of :mod:`encyclopedia.page.mixers`, for all blocks; ``None`` where nothing is shown.
        mlps: :data:`DENSE`, :data:`MIXTURE`, or both where checkpoints differ.
    """

    architectures: tuple[str, ...]
    checkpoints: tuple[str, ...]
    parameters: tuple[int, ...]
    blocks: tuple[int, ...]
    hidden_sizes: tuple[int, ...]
    quirks: tuple[str, ...]
    values: tuple[str, ...]
    mixer: str | None
    mlps: tuple[str, ...]


def facets_of(family: FamilyFacts) -> Facets:
    """The facets of ``family``."""
    shown = shown_of(family)
    return Facets(
        architectures=_once(entry.architecture for entry in family.checkpoints if entry.architecture),
        checkpoints=_once(entry.id for entry in family.checkpoints if not entry.is_default),
        parameters=tuple(entry.parameters.total for entry in shown if entry.parameters is not None),
        blocks=tuple(sum(len(kind.blocks) for kind in entry.kinds) for entry in shown),
        hidden_sizes=tuple(entry.sizes["hidden_size"] for entry in shown if "hidden_size" in entry.sizes),
        quirks=tuple(family.quirks) if shown else (),
        values=_once(f"{host.name}.{value.name}" for entry in shown for host in entry.hosts for value in host.values),
        mixer=_mixer(shown),
        mlps=_once(MIXTURE if has_mixture(entry) else DENSE for entry in shown),
    )


def _mixer(checkpoints: Iterable[CheckpointFacts]) -> str | None:
    found = {slug for checkpoint in checkpoints for slug in mixers_of(checkpoint)}
    if BOTH.slug in found or {SOFTMAX.slug, RECURRENT.slug} <= found:
        return BOTH.slug
    return next((mixer.slug for mixer in (SOFTMAX, RECURRENT, UNKNOWN, NEITHER) if mixer.slug in found), None)


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
