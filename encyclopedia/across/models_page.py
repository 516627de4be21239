"""The table of models as a page, as CSV and as JSON, from the same rows."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from encyclopedia.across.models import Cell, Column, Filter, Table, answers, number, written
from encyclopedia.across.page import render_page, render_sheet
from encyclopedia.facts import SCHEMA

#: The page's generated sheet.
SHEET = "models/columns.css"

#: What the family's page leaves as it is in an address.
_LEFT = "/!*'()~"

#: A column is as wide as its longest text, in characters, and no wider than this.
_WIDEST = 36
_NARROWEST = 7


@dataclass(frozen=True)
class HtmlCell:
    """A cell as the page has it."""

    text: str
    number: bool


@dataclass(frozen=True)
class HtmlRow:
    """A row as the page has it."""

    url: str
    #: What stands before the name of a public repository, or nothing.
    maker: str
    name: str
    cells: tuple[HtmlCell, ...]


@dataclass(frozen=True)
class HtmlColumn:
    """A column as the page has it."""

    column: Column
    #: Its place, from 1.
    place: int
    #: In characters.
    width: int


@dataclass(frozen=True)
class Range:
    """A filter's numbers as the page writes them."""

    filter: Filter
    least: str
    most: str


@dataclass(frozen=True)
class ModelsView:
    """The table as the page and its sheet have it."""

    table: Table
    rows: tuple[HtmlRow, ...]
    columns: tuple[HtmlColumn, ...]


def models_view(table: Table) -> ModelsView:
    """The table with its cells as texts and its columns as wide as these."""
    rows = tuple(_html_row(table, index) for index in range(len(table.rows)))
    return ModelsView(table, rows, _html_columns(table, rows))


def render_models(view: ModelsView, templates: Path) -> str:
    """The page of the table."""
    table, columns = view.table, view.columns
    groups = list(dict.fromkeys(column.group for column in table.columns))
    return render_page(
        "models", templates, title="Models", scripts=["models.js"], styles=["models.css"], sheets=[SHEET],
        description="Every checkpoint with its sizes, its attention, its positions, norms and mixtures, in one table.",
        rows=view.rows, columns=columns, groups=[(group, [entry for entry in columns if entry.column.group == group])
                                            for group in groups],
        ranges=[Range(entry, number(entry.column, entry.least), number(entry.column, entry.most))
                for entry in table.filters if not entry.choices],
        choices=[entry for entry in table.filters if entry.choices])


def models_sheet(view: ModelsView, templates: Path) -> str:
    """What :data:`SHEET` says of the columns."""
    return render_sheet("models", templates, columns=view.columns)


def table_json(table: Table) -> str:
    """``data/models.json``: the columns with their units, and the rows by column key."""
    columns = [{"key": column.key, "title": column.title, "heading": column.heading, "unit": column.unit,
                "about": column.about, "sort": column.sort, "shown": column.shown, "every": column.every}
               for column in table.columns]
    rows = (json.dumps(dict(zip((column.key for column in table.columns), row.cells, strict=True)), ensure_ascii=False)
            for row in table.rows)
    # A line for each row, so that two versions can be compared.
    return (f'{{"schema": {SCHEMA},\n"columns": {json.dumps(columns, ensure_ascii=False)},\n"rows": [\n'
            + ",\n".join(rows) + "\n]}\n")


def table_csv(table: Table) -> str:
    """``data/models.csv``: titles with units, then a line for each row; several answers are parted by ``; ``."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([column.heading for column in table.columns])
    for row in table.rows:
        lines.writerow([_in_csv(cell) for cell in row.cells])
    return text.getvalue()


def _in_csv(cell: Cell) -> str:
    return "; ".join(str(value) for value in answers(cell))


def _html_row(table: Table, index: int) -> HtmlRow:
    row = table.rows[index]
    header, *cells = (HtmlCell(written(column, cell), column.sort == "number")
                      for column, cell in zip(table.columns, row.cells, strict=True))
    address = f"../families/{row.model_type}/#ckpt={quote(header.text, safe=_LEFT)}&block=0"
    maker, _, own = header.text.rpartition("/")
    return HtmlRow(address, maker, own, tuple(cells))


def _html_columns(table: Table, rows: Sequence[HtmlRow]) -> tuple[HtmlColumn, ...]:
    return tuple(_html_column(table, rows, index) for index in range(len(table.columns)))


def _html_column(table: Table, rows: Sequence[HtmlRow], index: int) -> HtmlColumn:
    column = table.columns[index]
    texts = [row.cells[index - 1].text if index else f"{row.maker}/{row.name}" for row in rows]
    # A heading stands on two lines, beside the arrow of its order.
    heading = max(max(len(word) for word in column.title.split()), (len(column.title) + 1) // 2, len(column.unit or ""))
    longest = max([heading + 2, _NARROWEST, *map(len, texts)])
    return HtmlColumn(column, index + 1, min(longest, _WIDEST))
