"""The family module's section: its docstring, its files and which class serves which module."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from encyclopedia.facts import CheckpointFacts, FamilyFacts, SourceLink
from encyclopedia.page.code import CodeBlock
from encyclopedia.page.notes import render_markdown
from encyclopedia.page.shown import shown_of
from encyclopedia.vocabulary import HOSTS


@dataclass(frozen=True)
class SourceView:
    """A file of the project and where the site holds it as text."""

    label: str
    path: str
    url: str


@dataclass(frozen=True)
class ServedClass:
    """A row of the table of classes; ``checkpoints`` is ``None`` where every checkpoint has it."""

    host: str
    native: str
    serves: str
    checkpoints: str | None


@dataclass(frozen=True)
class ModuleView:
    """The section for ``module.html.jinja``."""

    #: The module's file, or ``None`` where the family declares nothing.
    path: str | None
    docstring: tuple[Markup | CodeBlock, ...]
    sources: tuple[SourceView, ...]
    classes: tuple[ServedClass, ...]


def module_view(family: FamilyFacts, folder: str) -> ModuleView:
    """The section of ``family``; ``folder`` is the address of its files' copies, without a slash at the end."""
    return ModuleView(
        path=family.family_module.replace(".", "/") + ".py" if family.annotated else None,
        docstring=render_markdown(_markdown(family.docstring)),
        sources=tuple(SourceView(source.label, source.path, f"{folder}/{source_file(source)}")
                      for source in family.sources),
        classes=served_classes(shown_of(family)),
    )


def files_there(family: FamilyFacts, root: Path) -> FamilyFacts:
    """``family`` without the files that the project at ``root`` does not have, so that no page links to one."""
    there = [source for source in family.sources if (root / source.path).is_file()]
    return family.model_copy(update={"sources": there})


def source_file(source: SourceLink) -> str:
    """The name under which the site holds a copy of ``source``, as text that a browser shows."""
    return f"{source.path.rpartition('/')[2]}.txt"


def served_classes(shown: Sequence[CheckpointFacts]) -> tuple[ServedClass, ...]:
    """The rows of the table of classes of the checkpoints ``shown``, in the order of their hosts."""
    expressions = {host.name: host.host for checkpoint in shown for host in checkpoint.hosts}
    found: dict[tuple[str, str, str], list[str]] = {}
    for checkpoint in shown:
        for row in checkpoint.module_classes:
            found.setdefault((row.host, row.native, row.serves), []).append(checkpoint.id.rpartition("/")[2])
    order = list(expressions)
    rows = sorted(found.items(), key=lambda item: order.index(item[0][0]) if item[0][0] in order else len(order))
    return tuple(ServedClass(expressions.get(host, HOSTS.get(host, host)), native, serves,
                             ", ".join(names) if len(names) < len(shown) else None)
                 for (host, native, serves), names in rows)


def _markdown(docstring: str) -> str:
    """A docstring's markup as Markdown: roles become code, what is indented after ``::`` becomes a block."""
    text = re.sub(r":[\w:]+:`~?([^`]+)`", r"`\1`", docstring)
    return re.sub(r"::\n\n((?: {4}.*(?:\n|$)|\n(?= {4}))+)", _block, text)


def _block(found: re.Match[str]) -> str:
    return f":\n\n```text\n{textwrap.dedent(found[1]).rstrip()}\n```\n"
