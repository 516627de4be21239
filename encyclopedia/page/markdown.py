"""A family's page as plain Markdown: the same facts, for what reads text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from encyclopedia.facts import CheckpointFacts, FamilyFacts, HostFacts, KindFacts, ValueFacts
from encyclopedia.notes import MeasuredNumber, fill
from encyclopedia.page.api import unconfirmed, value_row
from encyclopedia.page.claims import claims_by_sort
from encyclopedia.page.derived import orders_of, subtitle_of, title_of
from encyclopedia.page.elsewhere import VOCABULARIES, names_elsewhere
from encyclopedia.page.plain import bullets, one_line, shapes, table
from encyclopedia.page.ranges import blocks
from encyclopedia.page.shown import reference_first, reference_of
from encyclopedia.page.wording import counted, error
from encyclopedia.quirks import QUIRKS

#: The file, beside the family's page.
NAME = "llms.txt"

# A fence with attributes, which say when it is run and mean nothing to a reader of plain Markdown.
_FENCE = re.compile(r"^(`{3,}|~{3,}) *\{ *\.(\w+)[^}\n]*\}", re.MULTILINE)


def family_markdown(family: FamilyFacts, notes: str) -> str:
    """The page of ``family`` as Markdown; ``notes`` is the text of its notes file, or an empty string."""
    return "\n\n".join(part.strip("\n") for part in _parts(family, notes) if part.strip()) + "\n"


def _parts(family: FamilyFacts, notes: str) -> Iterator[str]:
    yield f"# {title_of(family)}"
    yield f"> {subtitle_of(family)}"
    yield f"`{family.model_type}` in transformers {family.versions.transformers}."
    if family.failure is not None:
        yield f"Not verified: the {family.failure.step} step failed. {one_line(family.failure.reason)}"
        yield from _checkpoints(family)
        yield from _versions(family)
        return
    if family.quirks:
        yield "## What differs from a plain block"
        yield bullets(f"**{QUIRKS[slug].label}**: {QUIRKS[slug].sentence}" for slug in family.quirks)
    yield from _checkpoints(family)
    shown = reference_first(family)
    for checkpoint in shown:
        yield from _checkpoint(checkpoint, family)
    yield from _notes(family, notes)
    yield from _checks(family, shown)
    yield from _versions(family)


def _checkpoints(family: FamilyFacts) -> Iterator[str]:
    yield "## Checkpoints"
    yield bullets(_about(family, checkpoint) for checkpoint in family.checkpoints)


def _about(family: FamilyFacts, checkpoint: CheckpointFacts) -> str:
    reference = " (the reference)" if checkpoint.id == family.reference and len(family.checkpoints) > 1 else ""
    if not checkpoint.available:
        return f"`{checkpoint.id}`{reference}: not shown, {one_line(checkpoint.reason or 'no reason is recorded')}"
    said = " The defaults of the config class; no public checkpoint is recorded." if checkpoint.is_default else ""
    counts = checkpoint.parameters
    if counts is None:
        return f"`{checkpoint.id}`{reference}.{said}"
    active = f", {counts.active:,} active for a token" if counts.active != counts.total else ""
    return f"`{checkpoint.id}`{reference}: {checkpoint.architecture}, {counts.total:,} parameters{active}.{said}"


def _checkpoint(checkpoint: CheckpointFacts, family: FamilyFacts) -> Iterator[str]:
    yield f"## {checkpoint.id}"
    yield table(("size", "number"), ((name, f"{size}") for name, size in checkpoint.sizes.items()))
    yield "### Kinds of blocks"
    for kind in checkpoint.kinds:
        yield from _kind(kind)
    for host in checkpoint.hosts:
        yield f"### {host.host}"
        yield f"Native: {', '.join(f'`{name}`' for name in host.classes)}. Shapes are for batch 1 and seq 8."
        if host.values:
            yield from _values(host, checkpoint)
        if checkpoint.id == family.reference and host.values:
            yield bullets(_described(value, _names(family, checkpoint, host, value)) for value in host.values)
        for left in unconfirmed(checkpoint, host.name):
            yield (f"Left out on {left.native}, because no run confirmed them: "
                   f"{', '.join(f'`{name}`' for name in left.names)} ({one_line(left.reason)}).")


def _values(host: HostFacts, checkpoint: CheckpointFacts) -> Iterator[str]:
    rows = [value_row(value, host, checkpoint) for value in host.values]
    conditions = list(dict.fromkeys(row.condition for row in rows if row.condition))
    numbers = {condition: f"see {place}" for place, condition in enumerate(conditions, start=1)}
    yield table(("value", "layout", "shape", "read at", "condition"), (
        (f"`{row.name}`", f"{row.layout} [{' '.join(row.dims)}]" if row.layout else "plain Python value",
         shapes(row.shapes), f"`{row.location}`",
         "; ".join(filter(None, (row.present, numbers.get(row.condition or "")))))
        for row in rows))
    if conditions:
        yield "\n".join(f"{place}. {one_line(condition)}." for place, condition in enumerate(conditions, start=1))


def _kind(kind: KindFacts) -> Iterator[str]:
    yield f"**{kind.label}**, {blocks(kind.blocks)}: " + ", ".join(
        f"{name} {size}" for name, size in kind.sizes.items()) + "."
    if kind.identity is None:
        yield "No exact sum of the block’s input and its contributions was found."
    else:
        off = "exact" if not kind.identity_error else f"largest error {error(kind.identity_error)}"
        yield f"```text\n{kind.identity}\n```\n\nMeasured on a small random model: {off}."


def _described(value: ValueFacts, names: str) -> str:
    writing = "" if value.writable else " Read only."
    return f"`{value.name}`: {value.description}. {value.where.capitalize()}.{writing}{names}"


def _names(family: FamilyFacts, checkpoint: CheckpointFacts, host: HostFacts, value: ValueFacts) -> str:
    """What a value is called elsewhere, on the first kind that has it; a hook's code says no more than its place."""
    kind = next((index for index, shape in enumerate(value.shapes) if shape is not None), None)
    found = [] if kind is None else names_elsewhere(family, checkpoint, host.name, value.name, kind)
    said = [f"{VOCABULARIES[name.vocabulary]}: `{name.text}`" + (f" ({name.note})" if name.note else "")
            for name in found if name.text is not None and name.vocabulary != "hook"]
    return f" In {'; in '.join(said)}." if said else ""


def _notes(family: FamilyFacts, notes: str) -> Iterator[str]:
    numbers: list[MeasuredNumber] = []

    def kept(number: MeasuredNumber) -> str:
        numbers.append(number)
        return number.value

    text = _FENCE.sub(r"\1\2", fill(notes, family, kept)).strip()
    reference = None if family.annotated and text else reference_of(family)
    orders = () if reference is None else orders_of(reference)
    if text or orders:
        yield "## Notes"
    for order in orders:
        yield f"**{order.label}**, {order.blocks}:"
        yield "\n".join(f"{place}. {step}" for place, step in enumerate(order.steps, start=1))
    yield text
    if numbers:
        yield "### Measured on real weights"
        yield bullets(f"{number.value} {number.of}, on {number.on}; known from {number.known_from}."
                    for number in numbers)


def _checks(family: FamilyFacts, shown: Iterable[CheckpointFacts]) -> Iterator[str]:
    yield "## Checks"
    lines = []
    for checkpoint in shown:
        found = claims_by_sort(family, checkpoint)
        claims = ", ".join(f"{count} about {sort}" for sort, count in found.items() if count)
        lines.append(f"`{checkpoint.id}`: {counted(sum(found.values()), 'claim')} held ({claims}).")
    yield bullets(lines)


def _versions(family: FamilyFacts) -> Iterator[str]:
    yield "## Versions"
    yield ", ".join(f"{name} {version}" for name, version in family.versions.model_dump().items()) + "."
