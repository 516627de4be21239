"""Starting a family: a module and a notes file, filled with what was derived and with what is left to say."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from encyclopedia.build.project import Project
from encyclopedia.capture.checkpoint import capture_checkpoint
from encyclopedia.checkpoints import RecordedCheckpoint
from encyclopedia.coverage import reference_record
from encyclopedia.facts import CheckpointFacts
from encyclopedia.families import family
from encyclopedia.files import write_text
from encyclopedia.page.derived import KindOrder, orders_of, title_from
from encyclopedia.quirks import QUIRKS

#: Width of the text that is written.
WIDTH = 116


class CannotStart(Exception):
    """A family that cannot be started: it has files already, or its model gives nothing to start from."""


@dataclass(frozen=True)
class Started:
    """What was written, and what people have to add.

    Attributes:
        files: the new files.
        left: what is left to do, a sentence each.
    """

    files: tuple[Path, ...]
    left: tuple[str, ...]


def start_family(project: Project, model_type: str) -> Started:
    """Write the module and the notes of a family that has none.

    Args:
        project: the folder to write into.
        model_type: a family of :func:`encyclopedia.coverage.all_families`.

    Raises:
        CannotStart: where one of the files is there, or nothing can be derived.
    """
    module = project.root / "encyclopedia" / "families" / f"{model_type}.py"
    notes = project.notes / f"{model_type}.md"
    for path in (module, notes):
        if path.exists():
            raise CannotStart(f"{path.relative_to(project.root)} exists already: edit it, or delete it to start again")
    if not model_type.isidentifier():
        raise CannotStart(f"{model_type!r} is no name for a Python module: a family like this stays derived")
    record = reference_record(model_type)
    try:
        facts = capture_checkpoint(record)
    except Exception as error:
        raise CannotStart(f"{model_type}: nothing to start from: {' '.join(str(error).split())}") from error
    words = _words(model_type, facts)
    templates = Environment(loader=FileSystemLoader(project.templates / "new"), undefined=StrictUndefined,
                            trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    templates.globals |= {"paragraph": partial(textwrap.fill, width=WIDTH), "bullet": _bullet}
    write_text(module, templates.get_template("family.py.jinja").render(words))
    write_text(notes, templates.get_template("notes.md.jinja").render(words))
    return Started((module, notes), tuple(_left(model_type, record, facts)))


def _bullet(order: KindOrder) -> str:
    """A kind of block in a list, without the numbers that its facts state: typed here, they would outlive them."""
    label = re.sub(r" \d+", "", order.label)
    steps = (re.sub(r"\(([^,()]*),[^()]*\)", r"(\1)", step).replace("`", "``") for step in order.steps)
    return textwrap.fill(f"- {label}: {' '.join(steps)}", width=WIDTH, subsequent_indent="  ",
                         break_long_words=False, break_on_hyphens=False)


def _words(model_type: str, facts: CheckpointFacts) -> dict:
    withdrawn: dict[str, dict[str, str]] = {}
    for value in facts.unconfirmed:
        withdrawn.setdefault(value.native, {})[value.name] = value.reason
    return {
        "model_type": model_type,
        "title": title_from(model_type, facts.architecture),
        "facts": facts,
        "orders": orders_of(facts),
        "quirks": [QUIRKS[slug] for slug in facts.quirks],
        "withdrawn": withdrawn,
        "identities": list(dict.fromkeys(kind.identity for kind in facts.kinds if kind.identity is not None)),
        "hue": family(model_type).hue,
    }


def _left(model_type: str, record: RecordedCheckpoint, facts: CheckpointFacts) -> list[str]:
    module = f"encyclopedia/families/{model_type}.py"
    left = [f"{module}: write the subtitle, and the docstring's reasons"]
    if facts.unconfirmed:
        left.append(f"{module}: {len(facts.unconfirmed)} values were confirmed by no run: "
                    "declare where they are, or say why they are withdrawn")
    if any(kind.identity is None for kind in facts.kinds):
        left.append(f"{module}: no exact sum was found for every block; declare identity= "
                    "if there is one")
    if record.is_default:
        left.append(f"encyclopedia/checkpoints/{model_type}.json: record a public checkpoint, with its sources")
    left.append(f"site_src/notes/{model_type}.md: write what to know before an experiment")
    left.append(f"tests/families/test_{model_type}.py: test what is particular to the family")
    return left
