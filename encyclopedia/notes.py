"""Notes: a family's Markdown with its facts filled in, and the snippets in it.

Knows neither torch nor HTML, so that a page and whoever runs the snippets read the same text.
"""

from __future__ import annotations

import re
import textwrap
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from jinja2 import Environment, StrictUndefined, TemplateError

from encyclopedia.facts import CheckpointFacts, FamilyFacts
from encyclopedia.measure.records import MeasuredRecord, find_measured, read_measured

#: Languages whose blocks are snippets.
PYTHON = ("python", "py", "python3")


class NotesError(ValueError):
    """A note that cannot be filled in, with the place in its file."""


@dataclass(frozen=True)
class MeasuredNumber:
    """A number that was measured on real weights and cannot be derived here.

    Attributes:
        value: the number as the text shows it.
        of: what was measured.
        on: the checkpoint it was measured on.
        known_from: who measured it.
    """

    value: str
    of: str
    on: str
    known_from: str


@dataclass(frozen=True)
class Snippet:
    """One block of Python in the notes.

    Attributes:
        code: the source, without the indentation of its fence.
        attributes: what its info string says beside the language, such as ``needs-weights``.
        line: the line of its opening fence, counted from 1.
    """

    code: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    line: int = 1

    @property
    def needs_weights(self) -> str | None:
        """Why it cannot run on a small random model, or ``None`` where it can."""
        return self.attributes.get("needs-weights")


Measured = Callable[[MeasuredNumber], str]


class Measurement:
    """A quantity that was measured here, whose numbers carry their provenance into the text.

    ``measure(...)[5]`` is block 5's number, ``measure(...)[-1]`` the last block's, ``measure(...)`` the number itself
    where there is one for the whole model. A format comes after a comma: ``measure(...)[5, "%.0f"]``.

    Attributes:
        values: the bare numbers, for computing with them.
    """

    def __init__(self, record: MeasuredRecord, measured: Measured) -> None:
        self._record = record
        self._measured = measured
        self.values = record.values

    def __getitem__(self, key: int | tuple[int, str]) -> str:
        block, form = key if isinstance(key, tuple) else (key, None)
        values = self._per_block()
        if not -len(values) <= block < len(values):
            raise ValueError(f"{self._record.quantity!r} has no block {block}; there are {len(values)}")
        block %= len(values)
        return self._shown(_formatted(values[block], form), f"block {block}")

    def __str__(self) -> str:
        return self.shown()

    def over(self, start: int, stop: int, form: str | None = None) -> str:
        """The smallest and the largest number on blocks ``start`` to ``stop - 1``, as a range."""
        found = [value for value in self._per_block()[start:stop] if value is not None]
        ends = dict.fromkeys(_formatted(end, form) for end in (min(found), max(found)))
        return self._shown(" to ".join(ends), f"blocks {start} to {stop - 1}")

    def noted(self, text: str) -> str:
        """``text`` with the quantity's provenance, as for the head of a column of :meth:`bare` numbers."""
        return self._shown(text, None)

    def bare(self, block: int, form: str | None = None) -> str:
        """A block's number without its provenance, which stands elsewhere."""
        return _formatted(self._per_block()[block], form)

    def shown(self, form: str | None = None) -> str:
        """The one number for the whole model, or the one text."""
        if isinstance(self.values, list):
            raise ValueError(f"{self._record.quantity!r} has a number per block: say which, as in [0]")
        return self._shown(_formatted(self.values, form), None)

    def _per_block(self) -> list[int | float | None]:
        if not isinstance(self.values, list):
            raise ValueError(f"{self._record.quantity!r} is one number for the whole model, not one per block")
        return self.values

    def _shown(self, text: str, where: str | None) -> str:
        record = self._record
        prompt = textwrap.shorten(record.prompt, 40, placeholder=" …")
        of = ", ".join(part for part in (record.description, where, f"on the prompt “{prompt}”") if part)
        return self._measured(MeasuredNumber(
            text, of, record.checkpoint, f"a run of {record.command} on {record.weights}"))


def _formatted(value: int | float | str | None, form: str | None) -> str:
    if value is None:
        raise ValueError("that block has not got this quantity")
    if isinstance(value, str):
        return value
    if form is not None and value != 0:
        return form % value
    if isinstance(value, int) or value == 0:
        return str(int(value))
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2g}" if abs(value) < 1 else f"{value:.3g}"


def fill(text: str, family: FamilyFacts, measured: Measured = lambda number: number.value) -> str:
    """``text`` with its expressions evaluated.

    They see ``ref`` (the reference checkpoint), ``ckpt(name)`` (another, by its id or the part after the slash),
    ``family``, ``measured(value, of=..., on=..., known_from=...)`` for a number that somebody else measured, and
    ``measure(quantity, checkpoint)`` for one that was measured here, see :class:`Measurement`.

    Args:
        text: Markdown with Jinja2 expressions.
        family: the facts they read.
        measured: what stands in the text for a measured number.

    Raises:
        NotesError: an expression names something that is not there; the message has the note and the line.
    """

    def note_number(value: str, *, of: str, on: str, known_from: str) -> str:
        return measured(MeasuredNumber(str(value), of, on, known_from))

    def measure(quantity: str, checkpoint: str) -> Measurement:
        return Measurement(find_measured(read_measured(family.model_type), quantity, checkpoint), measured)

    # Jinja's comments begin like a heading's id does, so they get another mark.
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True,
                              comment_start_string="{--", comment_end_string="--}")
    try:
        return environment.from_string(text).render(
            family=family, ref=_checkpoint(family, family.reference), measured=note_number, measure=measure,
            ckpt=lambda name: _checkpoint(family, name))
    except (TemplateError, TypeError, LookupError, ValueError) as error:
        raise NotesError(_message(text, family, error)) from error


def python_blocks(text: str) -> list[Snippet]:
    """The Python blocks of ``text``, in order."""
    return [Snippet(code, attributes, line) for language, code, attributes, line in fences(text) if language in PYTHON]


def snippets(text: str, family: FamilyFacts) -> list[Snippet]:
    """The Python blocks of ``text`` with the facts of ``family`` in them, at their lines in ``text``.

    Raises:
        NotesError: as :func:`fill`.
    """
    filled, written = python_blocks(fill(text, family)), python_blocks(text)
    if len(filled) != len(written):
        return filled
    return [Snippet(snippet.code, snippet.attributes, source.line)
            for snippet, source in zip(filled, written, strict=True)]


_OPENING = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})[ ]*(?P<info>[^`]*)$")
_ATTRIBUTE = re.compile(r"""(?P<key>[\w-]+)=(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^\s}]+))""")
_CLASS = re.compile(r"(?<!\S)\.([\w+-]+)")


def fences(text: str) -> Iterator[tuple[str, str, dict[str, str], int]]:
    """The fenced blocks of ``text``: language, source, attributes and the line of the opening fence."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        opening = _OPENING.match(lines[at])
        at += 1
        if opening is None:
            continue
        start, fence = at, opening["fence"]
        while at < len(lines) and not re.fullmatch(rf" *{fence[0]}{{{len(fence)},}} *", lines[at]):
            at += 1
        language, attributes = _info(opening["info"].strip())
        yield language, textwrap.dedent("\n".join(lines[start:at])), attributes, start
        at += 1


def _info(info: str) -> tuple[str, dict[str, str]]:
    attributes = {match["key"]: match["double"] or match["single"] or match["bare"] or ""
                  for match in _ATTRIBUTE.finditer(info)}
    plain = _ATTRIBUTE.sub("", info)
    # In braces the language is a class; bare, it is the first word.
    named = _CLASS.findall(plain) if "{" in plain else plain.split()
    return next(iter(named), ""), attributes


def _checkpoint(family: FamilyFacts, name: str) -> CheckpointFacts:
    found = [checkpoint for checkpoint in family.checkpoints
             if name in (checkpoint.id, checkpoint.id.rpartition("/")[2])]
    if len(found) != 1:
        known = ", ".join(checkpoint.id for checkpoint in family.checkpoints)
        raise LookupError(f"no single checkpoint is called {name!r}; there are {known}")
    return found[0]


def _message(text: str, family: FamilyFacts, error: Exception) -> str:
    line = getattr(error, "lineno", None) or next(
        (frame.lineno for frame in reversed(traceback.extract_tb(error.__traceback__))
         if frame.filename == "<template>"), None)
    reason = error.args[0] if isinstance(error, LookupError) and error.args else error
    note = _note_at(text, line or 0)
    place = f"the note {note!r}" if note else "the notes"
    return f"{family.model_type}: {place}, line {line}: {reason}"


def _note_at(text: str, line: int) -> str | None:
    headings = [found[1] for row in text.splitlines()[:line] if (found := re.match(r"#+ +(.*?)(?: *\{.*\})? *$", row))]
    return headings[-1] if headings else None
