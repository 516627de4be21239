"""What a value is called where no standard names are known: on a transformers model, to nnsight, to TransformerLens."""

from __future__ import annotations

from dataclasses import dataclass

from encyclopedia.facts import CheckpointFacts, FamilyFacts, NativePlace, ValueFacts
from encyclopedia.hooks import hook_snippet, nnsight_expression, tensor_phrase

#: The vocabularies beside the standard one: slug and title, in the order a page lists them. ``hook`` is the code that
#: reads the value named by ``transformers``.
VOCABULARIES = {
    "transformers": "transformers",
    "hook": "PyTorch hook",
    "nnsight": "nnsight",
    "transformer_lens": "TransformerLens",
}

#: The vocabularies in which a reader can have a page, by slug; a hook is code and no name.
CHOICES = {"standard": "standard", **{slug: title for slug, title in VOCABULARIES.items() if slug != "hook"}}

#: What is said of a hook that sees, on another module, the tensor that is read inside a forward.
FIRST_CALL = "the same tensor in a first call; one that goes on from a cache was not compared"

#: What is said of a TransformerLens hook whose edits do not act.
_EDITS = {False: "an edit of it does not reach the logits", None: "TransformerLens fails where it is edited"}


@dataclass(frozen=True)
class ElsewhereName:
    """What a value is called in one vocabulary.

    Attributes:
        vocabulary: a key of :data:`VOCABULARIES`.
        text: the name or the code, ``[i]`` (in a hook of TransformerLens ``{i}``) standing for the block and
            ``{head_dim}`` for an axis's length; ``None`` where there is none. See :func:`encyclopedia.hooks.filled`.
        note: what to know with it, or why there is none, as a phrase without a full stop.
    """

    vocabulary: str
    text: str | None
    note: str | None


def names_elsewhere(
    family: FamilyFacts, checkpoint: CheckpointFacts, host: str, value: str, kind: int
) -> tuple[ElsewhereName, ...]:
    """The other names of a value, one for each of :data:`VOCABULARIES` that says anything about it.

    Args:
        family: whose checkpoint it is.
        checkpoint: one that is available.
        host: the host's name, such as ``self_attn``.
        value: the value's name.
        kind: position in ``checkpoint.kinds``.

    Returns:
        Nothing where blocks of that kind have no such value.
    """
    carried = next((found for found in checkpoint.hosts if found.name == host), None)
    facts = next((found for found in carried.values if found.name == value), None) if carried else None
    if facts is None or facts.shapes[kind] is None:
        return ()
    place = next((found for found in facts.native if kind in found.kinds), None)
    return (*_native(facts, place), *_lens(family, host, value))


def _native(value: ValueFacts, place: NativePlace | None) -> tuple[ElsewhereName, ...]:
    if place is None:
        if value.location != "derived":
            return ()
        said = "computed from other values, so no module gives it"
        return (ElsewhereName("transformers", None, said), ElsewhereName("nnsight", None, said))
    if place.hook is None:
        path, where = place.module, "inside its forward" if "source" in place.location else place.location
        hook = ElsewhereName("hook", None, place.no_hook)
    else:
        path, where = place.hook.module, tensor_phrase(place.hook.tensor)
        beside = "source" in place.location
        hook = ElsewhereName("hook", hook_snippet(value.name, place.hook, value.dims).text,
                             FIRST_CALL if beside else None)
    expression = nnsight_expression(place.module, place.location) if place.no_nnsight is None else None
    return (
        ElsewhereName("transformers", path, where),
        hook,
        ElsewhereName("nnsight", expression, place.no_nnsight or _held(place.held)),
    )


def _held(held: str | None) -> str | None:
    return None if held is None else f"held there as [{held}]"


def _lens(family: FamilyFacts, host: str, value: str) -> tuple[ElsewhereName, ...]:
    if not family.transformer_lens:
        return ()
    found = [name for name in family.transformer_lens if (name.host, name.value) == (host, value)]
    if not found:
        return (ElsewhereName("transformer_lens", None, "no such name in TransformerLens"),)
    best = min(found, key=lambda name: not name.same)
    differs = best.difference if best.same else f"not the same: {best.difference or 'other numbers'}"
    said = [differs, None if best.acts else _EDITS[best.acts]]
    return (ElsewhereName("transformer_lens", best.hook, "; ".join(filter(None, said)) or None),)
