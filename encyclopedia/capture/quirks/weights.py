"""Weights that are one tensor in several places."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from encyclopedia.capture.quirks.evidence import Evidence
from encyclopedia.structure.stack import blocks_of


def tied_embeddings(evidence: Evidence) -> bool:
    """Whether the full model's head and embedding table hold the same parameter."""
    table, head = (evidence.model.get_submodule(path) for path in (evidence.stack.embed_tokens, evidence.stack.lm_head))
    return getattr(table, "weight", None) is getattr(head, "weight", table)


def shared_blocks(evidence: Evidence) -> bool:
    """Whether two blocks of the full model hold the same parameter."""
    seen: set[int] = set()
    for block in blocks_of(evidence.model, evidence.structure.stack):
        own = {id(parameter) for parameter in block.parameters()}
        if own & seen:
            return True
        seen |= own
    return False


DETECTORS: Mapping[str, Callable[[Evidence], bool]] = {
    "tied-embeddings": tied_embeddings,
    "shared-blocks": shared_blocks,
}
