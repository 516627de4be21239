"""Facts in a folder of their own: written without pages, and read back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from encyclopedia.facts import SCHEMA, FamilyFacts
from encyclopedia.files import write_text

if TYPE_CHECKING:
    from encyclopedia.build.families import Outcome

_INDEX = "index.json"

#: Names of the files beside the families' own in a site's data.
_OTHERS = ("index", "models", "schema")


class NoFacts(Exception):
    """A folder that holds no facts, or facts that are not whole."""


@dataclass(frozen=True)
class StoredFacts:
    """What a folder holds.

    Attributes:
        families: the facts of each family.
        failures: by ``model_type``, one line for each thing that failed while they were captured.
    """

    families: list[FamilyFacts]
    failures: dict[str, list[str]]

    def only(self, names: Sequence[str] | None) -> StoredFacts:
        """Those of the families ``names``, or all where none is named."""
        if not names:
            return self
        return StoredFacts([family for family in self.families if family.model_type in names],
                           {name: lines for name, lines in self.failures.items() if name in names})


def facts_text(family: FamilyFacts) -> str:
    """The file of a family."""
    return family.model_dump_json(by_alias=True, indent=1) + "\n"


def families_in(data: Path) -> list[FamilyFacts]:
    """The families whose files are in a site's folder of data, by ``model_type``, whatever its index lists.

    Raises:
        NoFacts: naming the file that is broken.
    """
    return [_family_in(path) for path in sorted(data.glob("*.json")) if path.stem not in _OTHERS]


def _family_in(path: Path) -> FamilyFacts:
    try:
        return FamilyFacts.model_validate_json(path.read_bytes())
    except OSError as error:
        raise NoFacts(f"{path}: {error.strerror}; remove it and run `encyclopedia build {path.stem}`") from error
    except ValidationError as error:
        raise NoFacts(f"{path}: no facts of this version of the project; remove it, or run "
                      f"`encyclopedia build {path.stem}`") from error


def write_facts(folder: Path, outcome: Outcome) -> None:
    """Write the facts of an outcome into ``folder``, a file per family and an index."""
    for family in outcome.families:
        write_text(folder / f"{family.model_type}.json", facts_text(family))
    index = {"schema": SCHEMA, "families": [{"model_type": family.model_type} for family in outcome.families],
             "failures": outcome.failures}
    write_text(folder / _INDEX, json.dumps(index, indent=1) + "\n")


def read_facts(folder: Path) -> StoredFacts:
    """The facts in ``folder``, such as the ``data`` of a built site.

    Raises:
        NoFacts: naming the file that is missing or broken.
    """
    try:
        index = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
        names = [str(entry["model_type"]) for entry in index["families"]]
        families = [_stored(folder / f"{name}.json") for name in names]
    except OSError as error:
        raise NoFacts(f"{error.filename}: {error.strerror}; a folder of facts is a built site's data, or what "
                      "`encyclopedia facts` wrote") from error
    except (KeyError, TypeError, ValueError) as error:
        raise NoFacts(f"{folder / _INDEX}: no index of facts; capture them again") from error
    if not families:
        raise NoFacts(f"{folder / _INDEX}: it lists no family; capture them again")
    return StoredFacts(families, dict(index.get("failures", {})))


def _stored(path: Path) -> FamilyFacts:
    try:
        return FamilyFacts.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise NoFacts(f"{path}: no facts of this version of the project; capture them again") from error
