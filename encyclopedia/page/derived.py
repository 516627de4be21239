"""What a page says of itself where nobody has written a module or notes for the family."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from encyclopedia.facts import CheckpointFacts, FamilyFacts, KindFacts
from encyclopedia.page.course import Course, course_of
from encyclopedia.page.mixers import Mixer, mixer_of
from encyclopedia.page.ranges import blocks
from encyclopedia.page.shown import reference_of
from encyclopedia.page.wording import counted, sizes_of, sublayer_title
from encyclopedia.quirks import QUIRKS

#: How many quirks a derived sentence names.
MOST_QUIRKS = 4


def title_from(model_type: str, class_name: str | None = None) -> str:
    """A headline made of a ``model_type``, in the capitals of its native class.

    ``gpt_neox`` with ``GPTNeoXForCausalLM`` becomes ``GPT NeoX``.
    """
    rest, words = class_name or "", []
    for piece in filter(None, re.split(r"[_\s-]+", model_type)):
        if rest.lower().startswith(piece.lower()):
            words.append(rest[:len(piece)])
            rest = rest[len(piece):]
        else:
            words.append(piece[:1].upper() + piece[1:])
    return " ".join(words)


def title_of(family: FamilyFacts) -> str:
    """The family's title; where people gave none, one made of its ``model_type``."""
    if family.title not in ("", family.model_type):
        return family.title
    classes = (checkpoint.architecture for checkpoint in family.checkpoints if checkpoint.architecture)
    return title_from(family.model_type, next(classes, None))


def subtitle_of(family: FamilyFacts, *, quirks: bool = True) -> str:
    """The family's sentence; where people wrote none, one made of its blocks and, if asked for, its first quirks."""
    if family.subtitle:
        return family.subtitle
    if family.failure is not None:
        return "Nothing about its blocks could be verified, so no page about them is shown."
    reference = reference_of(family)
    if reference is None or not reference.kinds:
        return ""
    made = _blocks(reference)
    named = [_inside(QUIRKS[slug].label) for slug in family.quirks[:MOST_QUIRKS]] if quirks else []
    return f"{made}; {_listed(named)}." if named else f"{made}."


def _inside(label: str) -> str:
    """``label`` inside a sentence; words such as MLP keep their capitals."""
    first, space, rest = label.partition(" ")
    return (first.lower() if first == first.capitalize() else first) + space + rest


def _blocks(checkpoint: CheckpointFacts) -> str:
    """The stack in a few words: ``36 blocks with recurrent mixers and 12 with softmax attention``."""
    total = sum(len(kind.blocks) for kind in checkpoint.kinds)
    found: dict[Mixer, int] = {}
    for kind in checkpoint.kinds:
        mixer = mixer_of(kind)
        found[mixer] = found.get(mixer, 0) + len(kind.blocks)
    ranked = sorted(found.items(), key=lambda item: -item[1])
    if len(ranked) == 1:
        return f"{counted(total, 'block').capitalize()} {ranked[0][0].phrase}{_order(checkpoint.kinds)}"
    counts = [f"{count} {mixer.phrase}" for mixer, count in ranked]
    return f"{counted(total, 'block').capitalize()}: {_listed(counts)}"


def _order(kinds: Iterable[KindFacts]) -> str:
    without = all(kind.sublayers and all(sublayer.norm is None and sublayer.post_norm is not None
                                         for sublayer in kind.sublayers) for kind in kinds)
    return ", normed only behind their sublayers" if without else ""


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


@dataclass(frozen=True)
class KindOrder:
    """One kind of block as steps, in which backticks set code."""

    label: str
    blocks: str
    steps: tuple[str, ...]


def orders_of(checkpoint: CheckpointFacts) -> tuple[KindOrder, ...]:
    """Every kind of block of ``checkpoint`` in steps."""
    return tuple(KindOrder(kind.label, blocks(kind.blocks), tuple(_steps(kind, course_of(checkpoint, index))))
                 for index, kind in enumerate(checkpoint.kinds))


def _steps(kind: KindFacts, way: Course) -> Iterator[str]:
    for row in way.rows:
        for lane, sublayer in enumerate(row):
            sizes = "; ".join(sizes_of(sublayer, kind.sizes))
            title = sublayer_title(sublayer, kind.sizes)
            title = title if title == "MLP" else title.lower()
            reads = "the stream" if sublayer.norm is None else f"the stream through `{sublayer.norm}`"
            beside = f"Beside it, `{sublayer.host}`" if lane else f"`{sublayer.host}`"
            behind = "" if sublayer.post_norm is None else f", passes it through `{sublayer.post_norm}`"
            factor = way.factors.get(sublayer.host)
            times = "" if factor is None else f" times `{factor}`"
            joins = f"and adds `{sublayer.contribution}`{times} to the stream" if sublayer.host in way.stated else \
                f"and gives `{sublayer.contribution}`; no exact sum says how that joins the stream"
            yield f"{beside} ({title}{f', {sizes}' if sizes else ''}) reads {reads}{behind} {joins}."
    for name in way.loose:
        yield f"`{name}`, a native module’s own output, is added to the stream."
