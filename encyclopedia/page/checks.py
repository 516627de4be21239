"""View models of a family's page of checks: how claims are checked, and every one of them with its figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from encyclopedia.facts import CheckpointFacts, ClaimFacts, FamilyFacts, SnippetFacts
from encyclopedia.notes import fences
from encyclopedia.page.api import LeftOut, unconfirmed
from encyclopedia.page.claims import SORTS, Phrase, claims_anchor, claims_by_sort, figure, phrases, snippets_run
from encyclopedia.page.code import VALUE_ROLES
from encyclopedia.page.derived import title_of
from encyclopedia.page.module import source_file
from encyclopedia.page.notes import Heading
from encyclopedia.page.shown import reference_first
from encyclopedia.page.wording import counted, error
from encyclopedia.vocabulary import HOSTS

#: The largest error that a recomputation, and that an identity, may have.
RECOMPUTATION_TOLERANCE = 1e-5
IDENTITY_TOLERANCE = 2e-6


@dataclass(frozen=True)
class Sort:
    """A sort of claim.

    Attributes:
        name: one of :data:`encyclopedia.page.claims.SORTS`.
        run: what is run, in words.
        excludes: what cannot be wrong once it has held.
    """

    name: str
    run: str
    excludes: str


#: What each sort of claim is, in their order.
EXPLAINED = (
    Sort("layout",
         "The tensor at the stated place has the rank, the sort of number and, axis by axis, the size that its layout "
         "names. Once on the twin, with axes of different sizes, and once at full size.",
         "Two axes swapped; a place that gives a tensor of another shape; a size taken from the wrong config entry."),
    Sort("meaning",
         "The value is had a second time by another way: computed from other values with the model’s own modules, or "
         "caught by a plain PyTorch hook while nothing traces the model. Both tensors are compared.",
         "The right shape with the wrong contents: scores before the mask, a pattern that is not the one the values "
         "are mixed with, a place one operation too early."),
    Sort("identity",
         "The equation is evaluated as it is printed, on values read in one forward and the block’s own parameters, "
         "on every block of the twin.",
         "A gate left out, a term missing or counted twice, a tensor in front of a norm taken for the one behind it."),
    Sort("writing",
         "Each value is written back as it was read, then changed; a contribution is set to zero, and a single head. "
         "What was read before the place that is written may not change, and the logits have to.",
         "Edits that act on a copy, edits that reach back to what came before, and a read that disturbs the model."),
    Sort("availability",
         "Under eager attention and under the default load, every value on offer is read and every value said to be "
         "missing is asked for.",
         "A value promised on a load that has not got it, and one refused without the reason that the page gives."),
    Sort("elsewhere",
         "The PyTorch hook that a page prints is executed, letter for letter, on a transformers model without standard "
         "names, and nnsight’s own expression is read on one. Both tensors are compared with what the standard name "
         "read.",
         "A module path of another release, the wrong element of a tuple, a reshape that swaps heads and their width."),
    Sort("snippets",
         "Every block of Python in the notes runs in page order and one namespace, on the twin of each checkpoint it "
         "is meant for.",
         "An example that fails on this release, and an equality that it asserts and that does not hold."),
)


@dataclass(frozen=True)
class ClaimLine:
    """A claim as a line: its words, in how many places it was run, and how far off it was."""

    phrases: tuple[Phrase, ...]
    runs: int
    figure: str


@dataclass(frozen=True)
class SortLines:
    """The claims of one sort about one value."""

    sort: str
    lines: tuple[ClaimLine, ...]


@dataclass(frozen=True)
class Subject:
    """A value, or with the name ``None`` a block, and all claims about it."""

    id: str
    name: str | None
    role: str
    sorts: tuple[SortLines, ...]

    @property
    def count(self) -> int:
        """How many claims there are about it."""
        return sum(len(sort.lines) for sort in self.sorts)


@dataclass(frozen=True)
class HostClaims:
    """The claims about one host's values."""

    expression: str
    subjects: tuple[Subject, ...]

    @property
    def count(self) -> int:
        """How many claims there are about its values."""
        return sum(subject.count for subject in self.subjects)


@dataclass(frozen=True)
class CheckpointClaims:
    """Every claim about one checkpoint.

    Attributes:
        counts: how many claims of each of :data:`EXPLAINED`, in that order.
        runs: in how many places they were run, all together.
        largest: the largest error among those that have one.
        twin: the twin in a few words, or an empty string.
        unchecked: values that the page shows and no run has confirmed.
        left_out: by host, values that it does not show because no run confirmed them.
    """

    id: str
    owner: str
    name: str
    opened: bool
    counts: tuple[int, ...]
    runs: int
    largest: str
    twin: str
    unchecked: tuple[str, ...]
    left_out: tuple[tuple[str, tuple[LeftOut, ...]], ...]
    hosts: tuple[HostClaims, ...]

    @property
    def total(self) -> int:
        """How many claims there are, snippets among them."""
        return sum(self.counts)


@dataclass(frozen=True)
class SnippetLine:
    """A block of the notes: its note, its line in the notes file, where it ran or why it did not."""

    line: int
    note: Heading | None
    ran_on: str
    reason: str | None


@dataclass(frozen=True)
class ChecksView:
    """Everything ``checks.html.jinja`` shows."""

    model_type: str
    title: str
    sorts: tuple[Sort, ...]
    recomputation: str
    identity: str
    versions: tuple[tuple[str, str], ...]
    checkpoints: tuple[CheckpointClaims, ...]
    snippets: tuple[SnippetLine, ...]
    notes_path: str | None
    notes_url: str | None

    @property
    def total(self) -> int:
        """How many claims there are on the page, snippets among them."""
        return sum(checkpoint.total for checkpoint in self.checkpoints)

    @property
    def run(self) -> int:
        """How many snippets ran somewhere."""
        return sum(not snippet.reason for snippet in self.snippets)


def checks_view(family: FamilyFacts, notes: str, headings: Sequence[Heading], folder: str) -> ChecksView:
    """The page of checks of ``family``.

    Args:
        family: its facts.
        notes: the text of its notes file, or an empty string.
        headings: the notes' own headings of the first level, in the order of the text.
        folder: the address of its files' copies, without a slash at the end.
    """
    shown = reference_first(family)
    source = next((source for source in family.sources if source.path.endswith(".md")), None)
    return ChecksView(
        model_type=family.model_type,
        title=title_of(family),
        sorts=EXPLAINED,
        recomputation=_power(RECOMPUTATION_TOLERANCE),
        identity=_power(IDENTITY_TOLERANCE),
        versions=tuple(family.versions.model_dump().items()),
        checkpoints=tuple(_checkpoint(checkpoint, family) for checkpoint in shown),
        snippets=tuple(_snippet(snippet, _note(snippet.line, notes, headings), len(shown))
                       for snippet in family.notes.snippets),
        notes_path=None if source is None else source.path,
        notes_url=None if source is None else f"{folder}/{source_file(source)}",
    )


def _power(tolerance: float) -> str:
    return f"{tolerance:.0e}".replace("e-0", "e-")


def _checkpoint(checkpoint: CheckpointFacts, family: FamilyFacts) -> CheckpointClaims:
    owner, slash, name = checkpoint.id.rpartition("/")
    ran = snippets_run(family, checkpoint.id)
    errors = [claim.error for claim in checkpoint.claims if claim.error is not None]
    blocks = checkpoint.checks.identity.blocks if checkpoint.checks else 0
    return CheckpointClaims(
        id=claims_anchor(checkpoint.id),
        owner=owner + slash,
        name=name,
        opened=checkpoint.id == family.reference,
        counts=tuple(claims_by_sort(family, checkpoint).values()),
        runs=ran + sum(claim.runs for claim in checkpoint.claims),
        largest=(error(max(errors)) if max(errors) else "exact") if errors else "none",
        twin=f"twin of {counted(blocks, 'block')}" if blocks else "",
        unchecked=tuple(f"{host.host}.{value.name}" for host in checkpoint.hosts for value in host.values
                        if not value.checked),
        left_out=tuple((HOSTS.get(name, name), unconfirmed(checkpoint, name))
                       for name in dict.fromkeys(left.host for left in checkpoint.unconfirmed)),
        hosts=tuple(_hosts(checkpoint)),
    )


def _hosts(checkpoint: CheckpointFacts) -> Iterator[HostClaims]:
    """The claims by host and value, in the order of the page's tables."""
    order = {(host.name, value.name): value.role for host in checkpoint.hosts for value in host.values}
    expressions = {**HOSTS, **{host.name: host.host for host in checkpoint.hosts}}
    claims: dict[str, dict[str | None, list[ClaimFacts]]] = {host.name: {} for host in checkpoint.hosts}
    places = list(order)
    for claim in sorted(checkpoint.claims, key=lambda claim: _place(claim, places)):
        claims.setdefault(claim.host, {}).setdefault(claim.value, []).append(claim)
    for host, subjects in claims.items():
        if subjects:
            yield HostClaims(expressions.get(host, host), tuple(
                Subject(claims_anchor(checkpoint.id, host, name), name,
                        order.get((host, name or ""), VALUE_ROLES.get(name or "", "stream")), _by_sort(about))
                for name, about in subjects.items()))


def _place(claim: ClaimFacts, places: Sequence[tuple[str, str]]) -> int:
    place = (claim.host, claim.value or "")
    return places.index(place) if place in places else len(places)


def _by_sort(claims: Iterable[ClaimFacts]) -> tuple[SortLines, ...]:
    lines: dict[str, list[ClaimLine]] = {sort: [] for sort in SORTS}
    for claim in claims:
        said = tuple(phrases(claim.text)) if claim.sort != "identity" else tuple(_equation(claim.text))
        lines[claim.sort].append(ClaimLine(said, claim.runs, figure(claim)))
    return tuple(SortLines(sort, tuple(found)) for sort, found in lines.items() if found)


def _equation(text: str) -> Iterator[Phrase]:
    """An equation is code from end to end."""
    for phrase in phrases(text):
        yield Phrase(phrase.text, code=True, role=phrase.role)


def _snippet(snippet: SnippetFacts, note: Heading | None, shown: int) -> SnippetLine:
    names = ", ".join(identifier.rpartition("/")[2] for identifier in snippet.ran_on)
    ran_on = f"all {shown} checkpoints" if 1 < len(snippet.ran_on) == shown else names
    reason = None if snippet.ran_on else snippet.reason or "no run is recorded"
    return SnippetLine(snippet.line, note, ran_on, reason)


def _note(line: int, notes: str, headings: Sequence[Heading]) -> Heading | None:
    """The note that the given line of the file is in."""
    code = {number for _, source, _, start in fences(notes)
            for number in range(start, start + source.count("\n") + 2)}
    marks = [(number, text.partition(" ")[0]) for number, text in enumerate(notes.splitlines())
             if number not in code and text.startswith("#")]
    first = min((mark for _, mark in marks), key=len, default="")
    before = sum(mark == first and number < line for number, mark in marks)
    return headings[before - 1] if 0 < before <= len(headings) else None
