"""The front page: every family as a card, and what they are searched and filtered by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from encyclopedia.across.facets import DENSE, MIXTURE, Facets, facets_of
from encyclopedia.across.page import render_page
from encyclopedia.facts import FamilyFacts, ParameterCounts
from encyclopedia.page.derived import subtitle_of, title_of
from encyclopedia.page.mixers import BOTH, NEITHER, RECURRENT, SOFTMAX, UNKNOWN, Group, by_group, mixers_of
from encyclopedia.page.shown import shown_of
from encyclopedia.page.tally import state_of, tally
from encyclopedia.page.wording import amount, counted
from encyclopedia.quirks import QUIRKS

#: How many quirks a card names; the others are counted.
MOST_CHIPS = 4

#: Where the front page leads beside the families: address, name, and what is there in a few words.
WAYS = (
    ("models/", "Models", "every checkpoint in one table"),
    ("values/", "Values", "each standard value across families"),
    ("compare/", "Compare", "two models side by side"),
    ("names/transformer-lens/", "Names", "what TransformerLens calls them"),
    ("releases/", "Releases", "what a new transformers changed"),
    ("machines/", "Data", "the facts as JSON, with a schema"),
)

#: Bounds offered for the number of parameters.
AMOUNTS = ("30M", "100M", "300M", "1B", "3B", "10B", "30B", "100B", "300B", "1T")

_MIXERS = {SOFTMAX.slug: "Softmax attention", RECURRENT.slug: "Recurrent", BOTH.slug: "Softmax and recurrent",
           UNKNOWN.slug: "Not told apart", NEITHER.slug: "None found"}
_MLPS = {DENSE: "Dense", MIXTURE: "Mixture of experts"}


@dataclass(frozen=True)
class Size:
    """A size over the shown checkpoints, as a range where they differ."""

    caption: str
    text: str


@dataclass(frozen=True)
class Card:
    """A family on the front page.

    Attributes:
        step: the step that failed, or ``None``.
        reason: what it said.
        chips: labels of its first quirks.
        more: how many more it has.
        facts: how much of it is shown and was checked, in phrases.
    """

    model_type: str
    title: str
    subtitle: str
    step: str | None
    reason: str | None
    chips: tuple[str, ...]
    more: tuple[str, ...]
    sizes: tuple[Size, ...]
    facts: tuple[str, ...]


@dataclass(frozen=True)
class CardGroup:
    """Families of one sort."""

    group: Group
    cards: tuple[Card, ...]


@dataclass(frozen=True)
class Choice:
    """What a filter offers, and how many families have it."""

    value: str
    label: str
    count: int


@dataclass(frozen=True)
class Filter:
    """A filter of the front page.

    Attributes:
        key: its name in the address.
        label: its name on the page.
        choices: what it offers.
        many: whether several choices hold at once.
    """

    key: str
    label: str
    choices: tuple[Choice, ...]
    many: bool = False


@dataclass(frozen=True)
class IndexView:
    """Everything the front page shows.

    Attributes:
        filters: those that choose among names; bounds for the parameters are ``amounts``.
        data: what scripts find and filter families by.
    """

    groups: tuple[CardGroup, ...]
    verified: int
    total: int
    claims: int
    ways: tuple[tuple[str, str, str], ...]
    filters: tuple[Filter, ...]
    amounts: tuple[str, ...]
    data: dict


def index_view(families: Sequence[FamilyFacts]) -> IndexView:
    """The front page about ``families``."""
    facets = {family.model_type: facets_of(family) for family in families}
    groups = by_group(families)
    return IndexView(
        groups=tuple(CardGroup(group, tuple(sorted((_card(family, facets[family.model_type]) for family in found),
                                                   key=lambda card: card.title.lower())))
                     for group, found in groups),
        verified=sum(family.failure is None for family in families),
        total=len(families),
        claims=sum(tally(family).claims for family in families),
        ways=WAYS,
        filters=_filters(groups, facets),
        amounts=AMOUNTS,
        data=_data(groups, facets),
    )


def render_index(families: Sequence[FamilyFacts], templates: Path) -> str:
    """The front page: every family with its sentence, sorted by how its blocks are made."""
    return render_page("index", templates, title="Overview", scripts=["index.js"], styles=["index.css"],
                       index=index_view(families))


def index_data(family: FamilyFacts) -> dict:
    """A family's entry in ``data/index.json``."""
    facets = facets_of(family)
    [(group, _)] = by_group([family])
    return {
        "model_type": family.model_type,
        "title": title_of(family),
        "subtitle": subtitle_of(family),
        "state": state_of(family),
        "annotated": family.annotated,
        "group": group.slug,
        "quirks": family.quirks,
        "mixers": list(dict.fromkeys(slug for entry in shown_of(family) for slug in mixers_of(entry))),
        "mlps": list(facets.mlps),
        "architectures": list(facets.architectures),
        "checkpoints": [checkpoint.id for checkpoint in family.checkpoints],
        "parameters": _ranges([entry.parameters for entry in shown_of(family)
                               if entry.parameters is not None]),
        "values": list(facets.values),
        "counts": tally(family).published(),
        "versions": family.versions.model_dump(),
    }


def _ranges(counts: Sequence[ParameterCounts]) -> dict[str, list[int]] | None:
    """Fewest and most parameters, in all and active; ``None`` where nothing was counted."""
    if not counts:
        return None
    totals, active = [count.total for count in counts], [count.active for count in counts]
    return {"total": [min(totals), max(totals)], "active": [min(active), max(active)]}


def _card(family: FamilyFacts, facets: Facets) -> Card:
    labels = tuple(QUIRKS[slug].label for slug in facets.quirks)
    failure = family.failure
    return Card(
        model_type=family.model_type,
        title=title_of(family),
        subtitle=subtitle_of(family, quirks=False),
        step=None if failure is None else failure.step,
        reason=None if failure is None else failure.reason,
        chips=labels[:MOST_CHIPS],
        more=labels[MOST_CHIPS:],
        sizes=tuple(Size(caption, over(numbers, text)) for caption, numbers, text in (
            ("parameters", facets.parameters, amount),
            ("blocks", facets.blocks, str),
            ("hidden size", facets.hidden_sizes, "{:,}".format)) if numbers),
        facts=() if failure is not None else tuple(_facts(family)),
    )


def over(numbers: Iterable[int], text: Callable[[int], str]) -> str:
    """``numbers`` as one text where they read alike, else the least and the most of them: ``13.1–268 M``, ``8–24``."""
    numbers = tuple(numbers)
    low, high = text(min(numbers)), text(max(numbers))
    if low == high:
        return low
    number, _, unit = low.partition(" ")
    if unit and unit != high.partition(" ")[2]:
        return f"{low} – {high}"
    return f"{number}–{high}"


def _facts(family: FamilyFacts) -> Iterable[str]:
    shown, claims = shown_of(family), tally(family).claims
    if all(checkpoint.is_default for checkpoint in shown):
        yield "the class’s defaults"
    else:
        yield counted(len(shown), "checkpoint")
    yield f"{counted(claims, 'claim')} checked" if claims else "no claim checked"
    if family.annotated:
        yield "notes"


def _filters(
    groups: Sequence[tuple[Group, list[FamilyFacts]]], facets: dict[str, Facets]
) -> tuple[Filter, ...]:
    quirks = Counter(slug for found in facets.values() for slug in found.quirks)
    values = Counter(name for found in facets.values() for name in _names(found))
    mixers = Counter(found.mixer for found in facets.values())
    mlps = Counter(slug for found in facets.values() for slug in found.mlps)
    return (
        Filter("quirk", "Quirk", tuple(sorted(
            (Choice(slug, QUIRKS[slug].label, count) for slug, count in quirks.items()),
            key=lambda choice: choice.label.lower())), many=True),
        Filter("value", "Value", tuple(Choice(name, name, count) for name, count in sorted(values.items())),
               many=True),
        Filter("mixer", "Mixer", _choices(_MIXERS, mixers)),
        Filter("mlp", "MLP", _choices(_MLPS, mlps)),
        Filter("group", "Structure", tuple(Choice(group.slug, group.title, len(found)) for group, found in groups)),
    )


def _choices(labels: dict[str, str], counts: Counter) -> tuple[Choice, ...]:
    return tuple(Choice(slug, label, counts[slug]) for slug, label in labels.items() if counts[slug])


def _names(facets: Facets) -> set[str]:
    return {value.rpartition(".")[2] for value in facets.values}


def _data(groups: Sequence[tuple[Group, list[FamilyFacts]]], facets: dict[str, Facets]) -> dict:
    """Values stand once, in order, and families refer to them by position."""
    found = [(group, family, facets[family.model_type]) for group, families in groups for family in families]
    values = list(dict.fromkeys(value for *_, facet in found for value in facet.values))
    position = {value: index for index, value in enumerate(values)}
    return {
        "values": values,
        "quirks": {slug: QUIRKS[slug].label for *_, facet in found for slug in facet.quirks},
        "families": [{
            "type": family.model_type,
            "title": title_of(family),
            "architectures": facet.architectures,
            "checkpoints": facet.checkpoints,
            "quirks": facet.quirks,
            "values": [position[value] for value in facet.values],
            "mixer": facet.mixer,
            "mlps": facet.mlps,
            "parameters": facet.parameters,
            "group": group.slug,
            "annotated": family.annotated and family.failure is None,
        } for group, family, facet in found],
    }
