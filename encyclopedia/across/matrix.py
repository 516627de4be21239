"""The index of values: all of them by host, and one matrix of families and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from encyclopedia.across.page import render_page, render_sheet
from encyclopedia.across.presence import MEANINGS, State, Survey, SurveyedFamily, key_of
from encyclopedia.across.values import LayoutLine, layouts_of, place_of
from encyclopedia.page.mixers import GROUPS, Group
from encyclopedia.vocabulary import HOSTS, VOCABULARY, Role, Value

#: The page's generated sheet.
SHEET = "values/columns.css"

#: What a cell says, in a word or two, with what it means; the words are the classes of its mark too.
LEGEND: Mapping[str, str] = {
    "all": MEANINGS[State.EVERYWHERE],
    "some": MEANINGS[State.BLOCKS],
    "if": MEANINGS[State.CONDITION],
    "if some": "both: under a condition, on some blocks only",
    "no": MEANINGS[State.ABSENT],
}
_WORDS = {State.EVERYWHERE: "all", State.BLOCKS: "some", State.CONDITION: "if", State.ABSENT: "no"}


@dataclass(frozen=True)
class Column:
    """A value.

    Attributes:
        position: of its cells in a row, the row's head being the first.
        place: the folder of its page.
        counts: how many families have it in each state.
    """

    value: Value
    position: int
    place: str
    layouts: tuple[LayoutLine, ...]
    counts: Mapping[State, int]
    having: int


@dataclass(frozen=True)
class HostColumns:
    """The values of a host, neighbours in the matrix."""

    host: str
    expression: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Cell:
    """Where a family and a value meet; ``url`` is ``None`` where the family lacks it."""

    word: str
    url: str | None


@dataclass(frozen=True)
class FamilyLine:
    """A row of the matrix; ``url`` is seen from the index of values."""

    model_type: str
    title: str
    url: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class GroupLines:
    """The families of one sort."""

    group: Group
    families: tuple[FamilyLine, ...]


@dataclass(frozen=True)
class MatrixView:
    """The index of values.

    Attributes:
        positions: by role, the positions of the cells that carry its colour.
        unverified: titles and addresses of the families that nothing is known of.
    """

    hosts: tuple[HostColumns, ...]
    groups: tuple[GroupLines, ...]
    positions: Mapping[str, tuple[int, ...]]
    unverified: tuple[tuple[str, str], ...]
    total: int

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns from left to right."""
        return tuple(column for host in self.hosts for column in host.columns)


def matrix_view(found: Survey) -> MatrixView:
    """The index over all families."""
    columns = [_column(position, value, found) for position, value in enumerate(VOCABULARY, start=2)]
    by_group = {group.slug: [family for family in found.families if family.group == group] for group in GROUPS}
    return MatrixView(
        hosts=tuple(HostColumns(host, HOSTS[host], tuple(group))
                    for host, group in groupby(columns, key=lambda column: column.value.host)),
        groups=tuple(GroupLines(group, tuple(_line(family) for family in by_group[group.slug]))
                     for group in GROUPS if by_group[group.slug]),
        positions={role.value: tuple(column.position for column in columns if column.value.role is role)
                   for role in Role},
        unverified=tuple((family.model_type, f"../families/{family.model_type}/") for family in found.unverified),
        total=len(found.families),
    )


def render_matrix(view: MatrixView, templates: Path) -> str:
    """The index of values."""
    return render_page(
        "values", templates, title="Values", scripts=["matrix.js"], styles=["checks.css", "values-across.css"],
        sheets=[SHEET],
        description="Every standard value of a language model's internals, and which families have it.",
        view=view, legend=LEGEND, words=_WORDS)


def matrix_sheet(view: MatrixView, templates: Path) -> str:
    """What :data:`SHEET` says of the columns."""
    return render_sheet("values", templates, view=view)


def _column(position: int, value: Value, found: Survey) -> Column:
    counts = found.counts(key_of(value))
    return Column(value, position, place_of(key_of(value)), layouts_of(value, found), counts,
                  len(found.families) - counts[State.ABSENT])


def _line(family: SurveyedFamily) -> FamilyLine:
    return FamilyLine(family.model_type, family.title, f"../families/{family.model_type}/",
                      tuple(_cell(family, value) for value in VOCABULARY))


def _cell(family: SurveyedFamily, value: Value) -> Cell:
    key = key_of(value)
    presence = family.presences[key]
    if presence.state is State.ABSENT:
        return Cell("no", None)
    partly = " some" if presence.state is State.CONDITION and presence.present is not None else ""
    return Cell(f"{_WORDS[presence.state]}{partly}", f"../{family.address(key)}")
