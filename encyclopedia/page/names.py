"""View models of names elsewhere: a value's lines in a fold, and the table from which a script shows all others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from encyclopedia.facts import CheckpointFacts, FamilyFacts
from encyclopedia.hooks import filled
from encyclopedia.page.cards import cards_of
from encyclopedia.page.elsewhere import VOCABULARIES, ElsewhereName, names_elsewhere
from encyclopedia.page.shown import shown_of


@dataclass(frozen=True)
class NameLine:
    """A name elsewhere, for one block.

    Attributes:
        vocabulary: a key of :data:`encyclopedia.page.elsewhere.VOCABULARIES`.
        title: what that is called.
        text: the name or the code, or ``None``.
        note: what to know with it, or why there is none; or ``None``.
    """

    vocabulary: str
    title: str
    text: str | None
    note: str | None


def name_lines(
    family: FamilyFacts, checkpoint: CheckpointFacts, expression: str, kind: int, block: int
) -> tuple[NameLine, ...]:
    """The other names of what ``expression`` reads on ``block``.

    Args:
        family: whose checkpoint it is.
        checkpoint: one that is available.
        expression: a value's, with ``[i]`` for the block; anything else has no lines.
        kind: the block's kind, as a position in ``checkpoint.kinds``.
        block: its index.
    """
    host_expression, _, name = expression.rpartition(".")
    host = next((host for host in checkpoint.hosts if host.host == host_expression), None)
    value = next((value for value in host.values if value.name == name), None) if host else None
    shape = value.shapes[kind] if value else None
    if host is None or value is None or shape is None:
        return ()
    sizes = dict(zip(value.dims, shape, strict=False))
    return tuple(
        NameLine(found.vocabulary, VOCABULARIES[found.vocabulary],
                 None if found.text is None else filled(found.text, block, sizes), found.note)
        for found in names_elsewhere(family, checkpoint, host.name, name, kind))


def names_table(family: FamilyFacts) -> dict[str, Any]:
    """Every other name on a family's page, once for all checkpoints and kinds that agree.

    Returns:
        ``checkpoints``: ids; ``titles``: pairs of vocabulary and title; ``names``: by standard expression, the
        variants, each with a pair of text and note by vocabulary and, unless it is the only one, ``at``: pairs of a
        checkpoint's position and the kinds it is true on. Texts are as :func:`encyclopedia.hooks.filled` takes them.
    """
    shown = shown_of(family)
    variants: dict[str, dict[tuple[ElsewhereName, ...], dict[int, list[int]]]] = {}
    for position, checkpoint in enumerate(shown):
        for expression, kind, names in _all_names(family, checkpoint):
            if names:
                variants.setdefault(expression, {}).setdefault(names, {}).setdefault(position, []).append(kind)
    return {
        "checkpoints": [checkpoint.id for checkpoint in shown],
        "titles": list(VOCABULARIES.items()),
        "names": {expression: [_variant(names, at if len(found) > 1 else {}) for names, at in found.items()]
                  for expression, found in variants.items()},
    }


def _all_names(
    family: FamilyFacts, checkpoint: CheckpointFacts
) -> list[tuple[str, int, tuple[ElsewhereName, ...]]]:
    """Expression, kind and other names of every value, and of every module that has a card."""
    kinds = range(len(checkpoint.kinds))
    values = {f"{host.host}.{value.name}": (host.name, value.name) for host in checkpoint.hosts
              for value in host.values}
    found = [(expression, kind, names_elsewhere(family, checkpoint, host, name, kind))
             for expression, (host, name) in values.items() for kind in kinds]
    modules = dict.fromkeys((card.expression, kind) for card in cards_of(checkpoint) for kind in card.kinds
                            if card.expression not in values)
    return [*found, *((expression, kind, _module(checkpoint, expression, kind)) for expression, kind in modules)]


def _module(checkpoint: CheckpointFacts, expression: str, kind: int) -> tuple[ElsewhereName, ...]:
    """The names of a module: its own native path, or that of the host it is in and its native name there."""
    if expression == "model.layers":
        block = _module(checkpoint, "model.layers[i]", kind)
        return tuple(ElsewhereName(name.vocabulary, (name.text or "").removesuffix("[i]"), None) for name in block)
    for host in sorted(checkpoint.hosts, key=lambda host: -len(host.host)):
        native = host.native[kind] if kind < len(host.native) else None
        inside = expression.removeprefix(host.host)
        if native is not None and expression.startswith(host.host) and inside[:1] in ("", ".") and host.name != "model":
            return tuple(ElsewhereName(slug, f"{native}{inside}", None) for slug in ("transformers", "nnsight"))
    return ()


def _variant(names: tuple[ElsewhereName, ...], at: Mapping[int, list[int]]) -> dict[str, Any]:
    said = {name.vocabulary: [name.text] if name.note is None else [name.text, name.note] for name in names}
    return {**said, **({"at": [[position, kinds] for position, kinds in at.items()]} if at else {})}
