"""The page of what TransformerLens calls the standard values."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from encyclopedia.across.page import render_page
from encyclopedia.facts import FamilyFacts
from encyclopedia.lens import LensName, LensRecord, families_named, lens_record
from encyclopedia.page.claims import Phrase
from encyclopedia.page.code import VALUE_ROLES
from encyclopedia.vocabulary import VOCABULARY

#: The page's path under the site's source folder, and how it gets from there to the root.
PATH, ROOT = "names/transformer-lens/index.md", "../../"

SCORES, PATTERN = "attention_scores", "attention_probabilities"

_NORM_WEIGHT = re.compile(r"(before the weight(?: and bias)?) of \S+")


@dataclass(frozen=True)
class FamilyLink:
    """A family by its ``model_type``, with its page's address where the site has one."""

    model_type: str
    url: str | None


@dataclass(frozen=True)
class HookRow:
    """A value and the hooks that hold it.

    Attributes:
        id: the row's anchor.
        host: the value's host.
        value: its name.
        role: its role.
        hook: the hook that holds it in most families.
        families: those families.
        axes: the order of the hook's axes where it is not the value's, in most of them.
        others: further hooks that hold it, with their families.
    """

    id: str
    host: str
    value: str
    role: str
    hook: str
    families: tuple[FamilyLink, ...]
    axes: str | None
    others: tuple[tuple[str, tuple[FamilyLink, ...]], ...]


@dataclass(frozen=True)
class DifferenceRow:
    """A hook that is taken for a value and holds something else, in the same way in some families."""

    value: str
    role: str
    hook: str
    difference: tuple[Phrase, ...]
    families: tuple[FamilyLink, ...]


@dataclass(frozen=True)
class Trap:
    """Something about hooks that an experiment would not notice, with the families in which a run showed it."""

    said: tuple[Phrase, ...]
    families: tuple[FamilyLink, ...]


@dataclass(frozen=True)
class LensView:
    """Everything the page shows.

    Attributes:
        releases: the releases of TransformerLens and of transformers that were compared.
        families: the families that were.
        values: the values with a hook, in the vocabulary's order.
        traps: what an experiment would not notice.
        differences: names for something else, those of most families first, by value.
    """

    releases: tuple[str, ...]
    families: tuple[FamilyLink, ...]
    values: tuple[HookRow, ...]
    traps: tuple[Trap, ...]
    differences: tuple[DifferenceRow, ...]


def lens_view(records: Mapping[str, LensRecord], on_site: Sequence[str]) -> LensView:
    """The page's views.

    Args:
        records: what was recorded, by family.
        on_site: the families that have a page to link.
    """
    known = set(on_site)

    def links(families: Sequence[str]) -> tuple[FamilyLink, ...]:
        return tuple(FamilyLink(name, f"{ROOT}families/{name}/" if name in known else None)
                     for name in sorted(set(families)))

    return LensView(
        releases=tuple(sorted({f"TransformerLens {record.transformer_lens} on transformers {record.transformers}"
                               for record in records.values()})),
        families=links(list(records)),
        values=_values(records, links),
        traps=_traps(records, links),
        differences=_differences(records, links),
    )


def render_lens(families: Sequence[FamilyFacts], templates: Path) -> str:
    """The page, from the records in the package."""
    records = {name: record for name in families_named() if (record := lens_record(name)) is not None}
    view = lens_view(records, [family.model_type for family in families])
    return render_page("lens", templates, title="What TransformerLens calls it", styles=["lens.css"], lens=view,
                       description="TransformerLens hook names of the standard values, compared by running both.")


Links = Callable[[Sequence[str]], tuple[FamilyLink, ...]]


def _values(records: Mapping[str, LensRecord], links: Links) -> tuple[HookRow, ...]:
    rows = []
    for value in VOCABULARY:
        found = [(family, name) for family, record in records.items() for name in record.names
                 if name.same and (name.host, name.value) == (value.host, value.name)]
        by_hook: dict[str, list[str]] = defaultdict(list)
        for family, name in found:
            by_hook[name.hook].append(family)
        if not by_hook:
            continue
        hook, *others = sorted(by_hook, key=lambda hook: (-len(by_hook[hook]), hook))
        lying = Counter(name.difference for _, name in found if name.hook == hook)
        axes = lying.most_common(1)[0][0]
        rows.append(HookRow(f"{value.host}.{value.name}", value.host, value.name, value.role.value, hook,
                             links(by_hook[hook]), None if axes is None else axes.removeprefix("axes "),
                             tuple((other, links(by_hook[other])) for other in others)))
    return tuple(rows)


def _differences(records: Mapping[str, LensRecord], links: Links) -> tuple[DifferenceRow, ...]:
    order = {(value.host, value.name): place for place, value in enumerate(VOCABULARY)}
    found: dict[tuple[str, str, str, str], list[str]] = defaultdict(list)
    for family, record in records.items():
        for name in record.names:
            if not name.same:
                found[name.host, name.value, name.hook, _without_norm(name.difference or "")].append(family)
    ranked = sorted(found, key=lambda key: (order[key[0], key[1]], -len(found[key]), key))
    return tuple(DifferenceRow(value, VALUE_ROLES[value], hook, _phrases(text), links(found[host, value, hook, text]))
                 for host, value, hook, text in ranked)


def _without_norm(difference: str) -> str:
    """The sentence without the norm's own name, which is every family's."""
    return _NORM_WEIGHT.sub(r"\1 of the norm", difference)


def _traps(records: Mapping[str, LensRecord], links: Links) -> tuple[Trap, ...]:
    """In words, what holds in some family; nothing that holds in none."""
    def where(holds: Callable[[LensName], bool]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for family, record in records.items():
            for hook in dict.fromkeys(name.hook for name in record.names if holds(name)):
                found[hook].append(family)
        return found

    taken = where(lambda name: name.value == SCORES and not name.same and name.difference == PATTERN)
    idle = where(lambda name: name.acts is False)
    broken = where(lambda name: name.acts is None)
    eager: dict[str, list[str]] = defaultdict(list)
    for family, record in records.items():
        for hook in record.eager_only:
            eager[hook].append(family)
    sentences = [
        *((f"{hooks} holds {PATTERN}, after the softmax", families) for hooks, families in _together(taken)),
        *((f"An edit of {hooks} changes no logit: it can be read, and patching it does nothing", families)
          for hooks, families in _together(idle)),
        *((f"An edit of {hooks} makes the bridge fail", families) for hooks, families in _together(broken)),
        *((f"Only a model loaded with attn_implementation=\"eager\" has {hooks} in the cache", families)
          for hooks, families in _together(eager, "and")),
    ]
    return tuple(Trap(_phrases(text), links(families)) for text, families in sentences)


def _together(families: Mapping[str, list[str]], word: str = "or") -> list[tuple[str, list[str]]]:
    """Hooks of the same families in one phrase, those of most families first."""
    hooks: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for hook, found in families.items():
        hooks[tuple(sorted(found))].append(hook)
    ranked = sorted(hooks, key=lambda found: (-len(found), hooks[found]))
    return [(f" {word} ".join(sorted(hooks[found])), list(found)) for found in ranked]


def _phrases(text: str) -> tuple[Phrase, ...]:
    """``text`` with its names set apart: hooks, values, modules, axes."""
    found, end = [], 0
    for match in re.finditer(r"blocks\.\{i\}\.[\w.]+|attn_implementation=\"eager\"|\[[^\]]*\]|[A-Za-z]\w*_\w+(?:\.\w+)*"
                             r"|\b\w+\.\w+[\w.]*|sqrt\(\w+\)", text):
        if match.start() > end:
            found.append(Phrase(text[end:match.start()]))
        found.append(Phrase(match[0], code=True, role=VALUE_ROLES.get(match[0])))
        end = match.end()
    return (*found, Phrase(text[end:])) if end < len(text) else tuple(found)
