"""A comparison as data."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, JsonValue

from encyclopedia.facts import Versions

#: The sorts of change, in the order in which they are told.
SORTS = {
    "state": "What is verified",
    "module": "Modules",
    "size": "Sizes",
    "parameters": "Parameters",
    "kind": "Kinds of block",
    "value": "Values",
    "location": "Places of values",
    "layout": "Layouts and shapes",
    "condition": "Conditions",
    "identity": "Identities",
    "check": "Checks",
    "quirk": "Quirks",
    "config": "Configs",
}


class Record(BaseModel):
    """Base of what is kept: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Change(Record):
    """One thing that is otherwise."""

    #: A key of :data:`SORTS`.
    sort: str
    #: What it is about, such as ``model.layers[i].self_attn.attention_queries``.
    what: str
    #: As it was; ``None`` where there was nothing.
    old: JsonValue
    #: As it is; ``None`` where there is nothing any more.
    new: JsonValue
    #: Ids of the checkpoints it is true of; empty where it is about the family.
    checkpoints: tuple[str, ...] = ()


class FamilyChanges(Record):
    """What changed in one family that both captures have."""

    model_type: str
    changes: tuple[Change, ...]


class Difference(Record):
    """A comparison of two captures."""

    old: Versions
    new: Versions
    #: Families that only the new one has, and only the old one.
    added: tuple[str, ...]
    removed: tuple[str, ...]
    #: Families of both in which nothing changed.
    unchanged: tuple[str, ...]
    changed: tuple[FamilyChanges, ...]
