"""Which families have which standard values: on the blocks of each family's reference checkpoint, and when."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from encyclopedia.facts import CheckpointFacts, FamilyFacts, HostFacts, ValueFacts
from encyclopedia.page.api import ValueRow, value_row
from encyclopedia.page.derived import title_of
from encyclopedia.page.mixers import Group, group_of
from encyclopedia.page.shown import reference_of
from encyclopedia.vocabulary import HOSTS, VOCABULARY, Value

#: A value's host and name.
Key = tuple[str, str]


class State(StrEnum):
    """How far a family has a value."""

    EVERYWHERE = "everywhere"
    BLOCKS = "blocks"
    CONDITION = "condition"
    ABSENT = "absent"


#: What each state means, in the order in which pages list them.
MEANINGS: Mapping[State, str] = {
    State.EVERYWHERE: "on every block, load and call",
    State.BLOCKS: "on some blocks only",
    State.CONDITION: "under a condition of the load or the call",
    State.ABSENT: "not there",
}

#: Why no block has a host.
_HOSTLESS = {
    "self_attn": "no block has softmax attention",
    "linear_attn": "no block has a recurrent mixer",
    "mlp": "no block has an MLP that was told apart",
}

# What capture puts behind a reason that holds for some of the blocks.
_SOME_BLOCKS = re.compile(r" \(on \d+ of \d+ blocks?, the first is \d+\)$")


@dataclass(frozen=True)
class Presence:
    """A value in a family.

    Attributes:
        state: how far the reference checkpoint has it.
        reason: the condition, or why some or all blocks lack it; ``None`` where there is nothing to say.
        row: the value as the family's page shows it; ``None`` where it is absent.
    """

    state: State
    reason: str | None
    row: ValueRow | None = None

    @property
    def present(self) -> str | None:
        """On which blocks it is; ``None`` where on all or on none."""
        return None if self.row is None else self.row.present


@dataclass(frozen=True)
class SurveyedFamily:
    """A verified family, its reference checkpoint and its values, by host and name."""

    facts: FamilyFacts
    title: str
    group: Group
    checkpoint: CheckpointFacts
    presences: Mapping[Key, Presence]

    @property
    def model_type(self) -> str:
        """Its name in transformers."""
        return self.facts.model_type

    def address(self, key: Key) -> str:
        """The page's address from the site's root, with the value pinned where the diagram has a part for it."""
        row = self.presences[key].row
        place = "" if row is None else row.address or f"#{row.id}"
        return f"families/{self.model_type}/{place}"


@dataclass(frozen=True)
class Survey:
    """All families; those that could not be verified have no values to tell of."""

    families: tuple[SurveyedFamily, ...]
    unverified: tuple[FamilyFacts, ...]

    @cached_property
    def layouts(self) -> Mapping[Key, Mapping[tuple[str, tuple[str, ...]], int]]:
        """By value: how many families serve it in each layout, by its name and axes."""
        found: dict[Key, Counter[tuple[str, tuple[str, ...]]]] = {}
        for family in self.families:
            for key, presence in family.presences.items():
                if presence.row is not None and presence.row.layout is not None:
                    found.setdefault(key, Counter())[presence.row.layout, presence.row.dims] += 1
        return found

    def counts(self, key: Key) -> dict[State, int]:
        """How many families have a value in each state."""
        states = [family.presences[key].state for family in self.families]
        return {state: states.count(state) for state in State}


def key_of(value: Value) -> Key:
    """The host and the name of ``value``."""
    return value.host, value.name


def survey(families: Sequence[FamilyFacts]) -> Survey:
    """What the reference checkpoints of ``families`` have, the families by title."""
    ordered = sorted(families, key=lambda family: (title_of(family).lower(), family.model_type))
    return Survey(
        tuple(_surveyed(family) for family in ordered if family.failure is None),
        tuple(family for family in ordered if family.failure is not None),
    )


def _surveyed(family: FamilyFacts) -> SurveyedFamily:
    reference = reference_of(family)
    if reference is None:
        raise ValueError(f"{family.model_type}: the reference {family.reference} is not among its checkpoints")
    return SurveyedFamily(family, title_of(family), group_of(family), reference,
                          {key_of(value): presence_of(reference, value) for value in VOCABULARY})


def presence_of(checkpoint: CheckpointFacts, value: Value) -> Presence:
    """How far ``checkpoint`` has ``value``."""
    host = next((host for host in checkpoint.hosts if host.name == value.host), None)
    served = None if host is None else next((found for found in host.values if found.name == value.name), None)
    if host is None or served is None:
        return Presence(State.ABSENT, _why_absent(checkpoint, value, host))
    row = value_row(served, host, checkpoint)
    if _depends(checkpoint, host, served):
        state = State.CONDITION
    else:
        state = State.EVERYWHERE if row.present is None else State.BLOCKS
    return Presence(state, _plain(served.condition), row)


def _depends(checkpoint: CheckpointFacts, host: HostFacts, value: ValueFacts) -> bool:
    """Whether a load or a call lacks the value on a block that has it elsewhere."""
    if value.condition is None:
        return False
    # What eager attention lacks, a block lacks for good; a condition that says no more than that is about blocks.
    lacking = checkpoint.support.get("eager", {}).get(host.host, {}).get(value.name)
    by_default = checkpoint.support.get("default", {}).get(host.host, {}).get(value.name)
    return lacking is None or by_default not in (None, lacking)


def _why_absent(checkpoint: CheckpointFacts, value: Value, host: HostFacts | None) -> str:
    left_out = next((left.reason for left in checkpoint.unconfirmed
                     if (left.host, left.name) == (value.host, value.name)), None)
    if left_out is not None:
        # What the run expected and what it found instead stand on the family's page.
        return left_out.partition(": ")[0].rstrip(".")
    lacking = checkpoint.support.get("eager", {}).get(HOSTS[value.host], {}).get(value.name)
    if lacking is not None:
        return _plain(lacking) or lacking
    if host is None:
        return _HOSTLESS.get(value.host, "its host was not found")
    sublayers = [sublayer for kind in checkpoint.kinds for sublayer in kind.sublayers if sublayer.host == value.host]
    if value.part is not None and not any(sublayer.parts for sublayer in sublayers):
        return "no block has a mixture of experts"
    return f"{' and '.join(host.classes)} {'has' if len(host.classes) == 1 else 'have'} no such value"


def _plain(reason: str | None) -> str | None:
    """A reason without the blocks it is about, which a page says beside it."""
    return None if reason is None else _SOME_BLOCKS.sub("", reason)
