"""The notes of a family as HTML: quirks first, then the notes' Markdown, then the numbers measured elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.treeprocessors import Treeprocessor
from markupsafe import Markup, escape

from encyclopedia.facts import FamilyFacts
from encyclopedia.notes import PYTHON, MeasuredNumber, Snippet, fences, fill, snippets
from encyclopedia.page.code import VALUE_ROLES, CodeBlock, code_block
from encyclopedia.page.derived import KindOrder, orders_of
from encyclopedia.page.shown import reference_of
from encyclopedia.quirks import QUIRKS, Quirk


@dataclass(frozen=True)
class Heading:
    """A heading of the notes, for the list of contents."""

    id: str
    text: str


@dataclass(frozen=True)
class NotesHtml:
    """The notes for ``notes.html.jinja``.

    Attributes:
        quirks: the family's quirks, in its own order.
        parts: the text in order: prose as HTML, code as blocks.
        headings: the notes' own headings of the first level.
        measured: the numbers measured on real weights, in the order of the text.
        orders: the reference checkpoint's kinds of block in steps, for a family without notes.
    """

    quirks: tuple[Quirk, ...]
    parts: tuple[Markup | CodeBlock, ...]
    headings: tuple[Heading, ...]
    measured: tuple[MeasuredNumber, ...]
    orders: tuple[KindOrder, ...] = ()


# Marks from the private use area stand for what Markdown must leave alone until the page is put together.
_MARK = re.compile("\ue000(measured|code):(\\d+)\ue001")
_CODE_PARAGRAPH = re.compile("(?:<p>)?\ue000code:(\\d+)\ue001(?:</p>)?")


def render_notes(markdown_text: str, family: FamilyFacts) -> NotesHtml:
    """The notes of ``family``.

    Args:
        markdown_text: Markdown with expressions, see :func:`encyclopedia.notes.fill`; HTML in it is shown as text.
        family: the facts its expressions read, and what running its snippets showed.

    Raises:
        NotesError: an expression names something that is not there.
    """
    measured: list[MeasuredNumber] = []

    def mark(number: MeasuredNumber) -> str:
        measured.append(number)
        return f"\ue000measured:{len(measured) - 1}\ue001"

    text = fill(markdown_text, family, mark)
    rendering = _Rendering(text, measured, _Statuses(snippets(markdown_text, family), family), family.annotated)
    parts, headings = rendering.render()
    reference = None if family.annotated and parts else reference_of(family)
    orders = () if reference is None else orders_of(reference)
    return NotesHtml(tuple(QUIRKS[slug] for slug in family.quirks), parts, headings, tuple(measured), orders)


def render_markdown(text: str) -> tuple[Markup | CodeBlock, ...]:
    """Any Markdown of the project, such as a docstring, as prose and blocks of code."""
    return _Rendering(text, [], None, searched=True).render()[0]


class _Statuses:
    """What is said under each snippet."""

    def __init__(self, written: list[Snippet], family: FamilyFacts) -> None:
        self._waiting = list(written)
        self._shown = sum(checkpoint.available for checkpoint in family.checkpoints)
        self._facts = {snippet.line: snippet for snippet in family.notes.snippets}

    def of(self, source: str) -> tuple[str, bool]:
        """The status of the next snippet whose code is ``source``, and whether it tells of a run."""
        at = next(index for index, snippet in enumerate(self._waiting) if snippet.code.strip() == source.strip())
        snippet = self._waiting.pop(at)
        facts = self._facts.get(snippet.line)
        if facts and facts.ran_on:
            return f"ran on the small model of {self._checkpoints(facts.ran_on)}", True
        reason = facts.reason if facts else snippet.needs_weights
        return f"not run: {reason}" if reason else "no run is recorded", False

    def _checkpoints(self, ran_on: Sequence[str]) -> str:
        if 1 < len(ran_on) == self._shown:
            return f"all {self._shown} checkpoints"
        return ", ".join(identifier.rpartition("/")[2] for identifier in ran_on)


class _Rendering:
    """One text on its way through Markdown, with the blocks and numbers it meets."""

    def __init__(self, text: str, measured: list[MeasuredNumber], statuses: _Statuses | None, searched: bool) -> None:
        self._text = text
        self._searched = searched
        self._measured = measured
        self._statuses = statuses
        self._blocks: list[CodeBlock] = []

    def render(self) -> tuple[tuple[Markup | CodeBlock, ...], tuple[Heading, ...]]:
        """The parts of the text and its headings."""
        level = _first_level(self._text)
        markdown = Markdown(
            extensions=["attr_list", "def_list", "sane_lists", "tables", "toc", "pymdownx.superfences",
                        _NotesExtension(self._measured, self._searched)],
            extension_configs={
                "toc": {"permalink": True, "permalink_title": "Link to this note", "baselevel": 4 - level,
                        "slugify": lambda value, separator: f"note-{_slug(value, separator)}"},
                "pymdownx.superfences": {"custom_fences": [
                    {"name": "*", "class": "", "format": self._fence, "validator": _any_attribute}]},
            },
        )
        html = markdown.convert(self._text)
        headings = tuple(Heading(token["id"], token["name"]) for token in markdown.toc_tokens)  # type: ignore[attr-defined]
        return tuple(self._parts(html)), headings

    def _fence(self, source: str, language: str, *args: Any, **kwargs: Any) -> str:
        source = self._plain(source)
        status, ran = self._statuses.of(source) if self._statuses and language in PYTHON else (None, False)
        self._blocks.append(code_block(source, language, status, ran=ran))
        return f"\ue000code:{len(self._blocks) - 1}\ue001"

    def _parts(self, html: str) -> list[Markup | CodeBlock]:
        parts: list[Markup | CodeBlock] = []
        for index, piece in enumerate(_CODE_PARAGRAPH.split(html)):
            if index % 2:
                parts.append(self._blocks[int(piece)])
            elif piece.strip():
                # Markdown has escaped all of it; a number's mark is left only where it stood inside inline code.
                parts.append(Markup(_MARK.sub(lambda mark: str(escape(self._value(mark))), piece)))
        return parts

    def _plain(self, source: str) -> str:
        return _MARK.sub(self._value, source)

    def _value(self, mark: re.Match[str]) -> str:
        return self._measured[int(mark[2])].value


def _first_level(text: str) -> int:
    inside = {line for _, source, _, start in fences(text) for line in range(start, start + source.count("\n") + 2)}
    levels = [len(found[1]) for number, line in enumerate(text.splitlines())
              if number not in inside and (found := re.match(r"(#{1,4}) ", line))]
    return min(levels, default=2)


def _slug(value: str, separator: str) -> str:
    return re.sub(r"[^a-z0-9]+", separator, _MARK.sub("", value).lower()).strip(separator)


def _any_attribute(language: str, inputs: dict[str, str], options: dict[str, Any], attrs: dict[str, Any],
                   md: Markdown) -> bool:
    attrs.update(inputs)
    return True


class _NotesExtension(Extension):
    """HTML as text, measured numbers with their footnote, standard values in the colour of their role."""

    def __init__(self, measured: list[MeasuredNumber], searched: bool) -> None:
        super().__init__()
        self._measured = measured
        self._searched = searched

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Registers the processors."""
        md.preprocessors.deregister("html_block")
        md.inlinePatterns.deregister("html")
        md.inlinePatterns.register(_MeasuredProcessor(self._measured, md), "measured", 175)
        # After the inline patterns, which make the code elements.
        md.treeprocessors.register(_ValueNames(md), "value-names", 15)
        md.treeprocessors.register(_ReachableTables(md), "reachable-tables", 14)
        if not self._searched:
            md.treeprocessors.register(_UnsearchedHeadings(md), "unsearched-headings", 13)


class _MeasuredProcessor(InlineProcessor):
    def __init__(self, measured: list[MeasuredNumber], md: Markdown) -> None:
        super().__init__("\ue000measured:(\\d+)\ue001", md)
        self._measured = measured

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[ElementTree.Element, int, int]:  # type: ignore[override]  # noqa: N802
        index = int(m[1])
        number = self._measured[index]
        span = ElementTree.Element("span", {
            "class": "notes-measured", "title": f"{number.of}, on {number.on}; {number.known_from}"})
        span.text = number.value
        note = ElementTree.SubElement(span, "sup")
        link = ElementTree.SubElement(note, "a", {
            "href": f"#measured-{index + 1}", "id": f"measured-from-{index + 1}",
            "aria-label": f"measured number {index + 1}"})
        link.text = str(index + 1)
        return span, m.start(0), m.end(0)


class _ValueNames(Treeprocessor):
    def run(self, root: ElementTree.Element) -> None:
        """Gives inline code that names a standard value the class of its role."""
        for element in root.iter("code"):
            role = VALUE_ROLES.get(re.split(r"[.\s]", element.text or "")[-1])
            if role:
                element.set("class", f"code-value role-{role}")


class _ReachableTables(Treeprocessor):
    def run(self, root: ElementTree.Element) -> None:
        """Lets the keyboard reach tables, which scroll sideways where they are too wide."""
        for element in root.iter("table"):
            element.set("tabindex", "0")


class _UnsearchedHeadings(Treeprocessor):
    def run(self, root: ElementTree.Element) -> None:
        """Keeps sections out of search that a hundred families share word for word."""
        for element in root.iter():
            if re.fullmatch("h[1-6]", element.tag):
                element.set("data-search-exclude", "")
