"""Claims in words: what a page says about a check, and where the page of checks says all about it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from encyclopedia.facts import CheckpointFacts, ClaimFacts, FamilyFacts, ValueFacts
from encyclopedia.page.code import VALUE_ROLES
from encyclopedia.page.wording import counted, error
from encyclopedia.vocabulary import HOSTS

#: The page of checks, seen from the family's page.
CHECKS = "checks/"

#: What is said of a value that no run has confirmed.
NOT_CHECKED = "not checked"

#: What is said of a claim that either holds or does not.
HOLDS = "holds"

_NAME = re.compile(r"[A-Za-z_][\w.\[\]]*")
#: Sorts of claim in the order in which a page lists them; the last is not in the facts' claims.
SORTS = ("layout", "meaning", "identity", "writing", "availability", "elsewhere", "snippets")

# Modules of a block that a claim names.
_MODULES = frozenset(path.rpartition(".")[2] for path in HOSTS.values() if path.startswith("model.layers[i]."))

_NATIVE = re.compile(r"\w+_\w+")


@dataclass(frozen=True)
class Phrase:
    """A stretch of a sentence: prose, or a name with the role of the value it names."""

    text: str
    code: bool = False
    role: str | None = None


@dataclass(frozen=True)
class HowChecked:
    """How a value was checked, in a line.

    Attributes:
        claim: what it was found equal to; names stand between backticks.
        figure: how exactly.
        more: how many further claims about it were run, as the words of a link.
        href: the place where they are all listed, seen from the family's page.
    """

    claim: str
    figure: str
    more: str
    href: str

    @property
    def text(self) -> str:
        """The line, with names between backticks."""
        return f"equals {self.claim} ({self.figure})"

    @property
    def plain(self) -> str:
        """The line without any mark-up."""
        return self.text.replace("`", "")


def figure(claim: ClaimFacts) -> str:
    """The claim's error for reading: ``exact`` where nothing differs, :data:`HOLDS` where there is none to measure."""
    if claim.error is None:
        return HOLDS
    return "exact" if claim.error == 0.0 else error(claim.error)


def claims_anchor(checkpoint: str, host: str | None = None, value: str | None = None) -> str:
    """The id, on the page of checks, of a checkpoint, or of a value of it (``None`` on a host for the block)."""
    path = [checkpoint] if host is None else [checkpoint, host, value or "block"]
    return re.sub(r"[^\w./-]", "-", "/".join(path))


def claims_address(checkpoint: str, host: str | None = None, value: str | None = None) -> str:
    """The address of :func:`claims_anchor`, seen from the family's page."""
    return f"{CHECKS}#{claims_anchor(checkpoint, host, value)}"


def snippets_run(family: FamilyFacts, checkpoint: str) -> int:
    """How many of the notes' snippets ran on the checkpoint's twin."""
    return sum(checkpoint in snippet.ran_on for snippet in family.notes.snippets)


def claims_by_sort(family: FamilyFacts, checkpoint: CheckpointFacts) -> dict[str, int]:
    """How many claims about the checkpoint held, for each of :data:`SORTS`.

    Raises:
        ValueError: for a claim of another sort, which no page would explain or count.
    """
    found = Counter(claim.sort for claim in checkpoint.claims)
    if unknown := found.keys() - set(SORTS):
        raise ValueError(f"{checkpoint.id} has claims of a sort that the page does not explain: {sorted(unknown)}")
    found["snippets"] = snippets_run(family, checkpoint.id)
    return {sort: found[sort] for sort in SORTS}


def claims_checked(family: FamilyFacts, checkpoint: CheckpointFacts) -> int:
    """How many claims about the checkpoint held, snippets among them."""
    return sum(claims_by_sort(family, checkpoint).values())


def phrases(text: str) -> Iterator[Phrase]:
    """``text`` in prose and names: standard values with their role, and what is written as a native module is."""
    prose = 0
    for found in _NAME.finditer(text):
        name = found[0].rstrip(".")
        role = "stream" if name == "layers[i].input" else VALUE_ROLES.get(name.rpartition(".")[2])
        if role is None and name not in _MODULES and not _NATIVE.search(name):
            continue
        if found.start() > prose:
            yield Phrase(text[prose:found.start()])
        yield Phrase(name, code=True, role=role)
        prose = found.start() + len(name)
    if prose < len(text):
        yield Phrase(text[prose:])


def how_checked(
    checkpoint: CheckpointFacts, host: str, value: ValueFacts, kind: int | None = None
) -> HowChecked | None:
    """The strongest recomputation of ``value`` and how far it was off; ``None`` where the value was not checked.

    Args:
        checkpoint: whose claims are looked through.
        host: the host's name, such as ``self_attn``.
        value: one of the host's.
        kind: position in ``checkpoint.kinds``; where given, a claim that is peculiar to that kind may be chosen, and
            else only one that was run everywhere the value is read.
    """
    about = [claim for claim in checkpoint.claims if (claim.host, claim.value) == (host, value.name)]
    meanings = [claim for claim in about if claim.sort == "meaning"]
    if not value.checked or not meanings:
        return None
    everywhere = max(claim.runs for claim in meanings)
    presence = _presence(checkpoint)
    having = {index for index, shape in enumerate(value.shapes) if shape is not None}

    def named(claim: ClaimFacts) -> list[str]:
        return [name for name in _NAME.findall(claim.text) if name in presence and name != value.name]

    def said_here(claim: ClaimFacts) -> bool:
        kinds = having.intersection(*(presence[name] for name in named(claim)))
        return claim.runs == everywhere if kinds == having or kind is None else kind in kinds

    # Naming another value ties the two together, which a hook at the same place does not. Of several such claims it is
    # the first, whatever its error, so that the line does not depend on rounding.
    best = max(filter(said_here, meanings), key=lambda claim: bool(named(claim)), default=None)
    if best is None:
        return None
    off = figure(best)
    further = len(about) - 1
    return HowChecked(
        claim="".join(f"`{phrase.text}`" if phrase.code else phrase.text for phrase in phrases(best.text)),
        figure=off if off in ("exact", HOLDS) else f"error {off}",
        more=f"and {counted(further, 'more claim')}" if further else "see how",
        href=claims_address(checkpoint.id, host, value.name),
    )


def _presence(checkpoint: CheckpointFacts) -> dict[str, set[int]]:
    """By value name: the kinds that have it."""
    found: dict[str, set[int]] = {}
    for value in (value for host in checkpoint.hosts for value in host.values):
        found.setdefault(value.name, set()).update(
            index for index, shape in enumerate(value.shapes) if shape is not None)
    return found
