"""View models of the page's head: title, quirks, the selector of checkpoints, and what a checkpoint amounts to."""

from __future__ import annotations

from dataclasses import dataclass

from encyclopedia.facts import CheckpointFacts, FamilyFacts
from encyclopedia.page.claims import claims_address, claims_by_sort
from encyclopedia.page.derived import subtitle_of, title_of
from encyclopedia.page.elsewhere import CHOICES
from encyclopedia.page.shown import reference_of
from encyclopedia.page.wording import amount, counted
from encyclopedia.quirks import QUIRKS


@dataclass(frozen=True)
class Figure:
    """A number with its caption."""

    number: str
    caption: str
    #: The number in full, where it is rounded.
    exact: str | None = None


@dataclass(frozen=True)
class SummaryView:
    """What ``summary.html.jinja`` shows for one checkpoint."""

    #: Its id.
    checkpoint: str
    figures: tuple[Figure, ...]
    #: How many claims were checked, or that none was; the versions complete it.
    claim: str
    versions: tuple[str, ...]
    #: What the claims are; empty where there are none.
    detail: str
    #: Where they are all listed; ``None`` where there are none.
    href: str | None


@dataclass(frozen=True)
class Chip:
    """A quirk in a few words, with the address of its explanation."""

    label: str
    href: str
    sentence: str


@dataclass(frozen=True)
class Option:
    """A checkpoint in the selector; the class's own defaults have no owner and are named so."""

    id: str
    owner: str
    name: str
    #: Its size in a few words, or why it cannot be chosen.
    note: str
    available: bool
    selected: bool


@dataclass(frozen=True)
class HeroView:
    """Everything ``hero.html.jinja`` shows."""

    model_type: str
    title: str
    subtitle: str
    chips: tuple[Chip, ...]
    options: tuple[Option, ...]
    #: ``None`` where no checkpoint is shown.
    summary: SummaryView | None
    #: Slugs and titles of the vocabularies that the page can be had in.
    vocabularies: tuple[tuple[str, str], ...] = tuple(CHOICES.items())
    #: Whether the page opens on the class's default config, no public checkpoint being recorded.
    is_default: bool = False

    @property
    def selected(self) -> Option | None:
        """The reference checkpoint's option, or ``None`` where there is none."""
        return next((option for option in self.options if option.selected), None)


def hero_view(family: FamilyFacts) -> HeroView:
    """The head of the family's page, with its reference checkpoint selected.

    Raises:
        ValueError: where the reference is not among the checkpoints of a family that is shown.
    """
    reference = reference_of(family)
    if reference is None and family.failure is None:
        raise ValueError(f"{family.model_type}: the reference {family.reference} is not among its checkpoints")
    return HeroView(
        model_type=family.model_type,
        title=title_of(family),
        subtitle=subtitle_of(family),
        chips=tuple(Chip(QUIRKS[slug].label, f"#quirk-{slug}", QUIRKS[slug].sentence) for slug in family.quirks),
        options=tuple(_option(checkpoint, family.reference) for checkpoint in family.checkpoints),
        summary=None if reference is None or not reference.kinds else summary_view(reference, family),
        is_default=reference is not None and reference.is_default,
    )


def summary_view(checkpoint: CheckpointFacts, family: FamilyFacts) -> SummaryView:
    """Parameters, blocks and the checked claims of ``checkpoint``."""
    blocks = sum(len(kind.blocks) for kind in checkpoint.kinds)
    figures = []
    if checkpoint.parameters is not None:
        total, active = checkpoint.parameters.total, checkpoint.parameters.active
        figures += [Figure(amount(total), "parameters", f"{total:,}"),
                    Figure(amount(active), "active per token", f"{active:,}")]
    figures.append(Figure(str(blocks), f"blocks, {counted(len(checkpoint.kinds), 'kind')}"))
    counts = claims_by_sort(family, checkpoint)
    total = sum(counts.values())
    versions = family.versions
    return SummaryView(
        checkpoint=checkpoint.id,
        figures=tuple(figures),
        claim=f"{counted(total, 'claim')} checked on" if total else "No claim was checked on",
        versions=(f"transformers {versions.transformers}", f"torch {versions.torch}", f"nnsight {versions.nnsight}"),
        detail=", ".join(f"{sort} {count}" for sort, count in counts.items() if count),
        href=claims_address(checkpoint.id) if total else None,
    )


def _option(checkpoint: CheckpointFacts, reference: str) -> Option:
    owner, slash, name = ("", "", "class defaults") if checkpoint.is_default else checkpoint.id.rpartition("/")
    if checkpoint.available:
        blocks = counted(sum(len(kind.blocks) for kind in checkpoint.kinds), "block")
        size = "" if checkpoint.parameters is None else f"{amount(checkpoint.parameters.total)} parameters, "
        note = f"{size}{blocks}"
    else:
        note = checkpoint.reason or "It cannot be shown."
    return Option(checkpoint.id, owner + slash, name, note, checkpoint.available, checkpoint.id == reference)
