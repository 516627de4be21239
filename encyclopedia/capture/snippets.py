"""Running the notes: every Python block, on the small twin of each checkpoint it holds for.

The blocks of one page share a namespace per checkpoint, in page order, as a reader's session would. It starts with
``model`` (the live model over the twin), ``prompt`` (token ids ``[1, PROMPT_LENGTH]``) and ``torch``.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import traceback
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import jinja2
import torch

from encyclopedia.checkpoints import RecordedCheckpoint
from encyclopedia.facts import CheckpointFacts, FamilyFacts, NotesFacts, SnippetFacts
from encyclopedia.model.transformer import StandardizedTransformer
from encyclopedia.notes import Snippet, python_blocks
from encyclopedia.twin import prompt_for, twin_of

#: Attribute that limits a block to some checkpoints: their ids with commas between, or ``reference``.
CHECKPOINTS = "checkpoints"

#: Attribute of a block that no twin can run, with why.
NEEDS_WEIGHTS = "needs-weights"

#: Seed of torch's generator when a checkpoint's first block begins.
SEED = 0


class BrokenSnippet(Exception):
    """A block of the notes that fails, naming the file, the line, the checkpoint and the error."""


def check_notes(text: str, family: FamilyFacts, records: Sequence[RecordedCheckpoint]) -> NotesFacts:
    """Run the notes of a family.

    Args:
        text: the notes file, before anything in it is filled in.
        family: the family's facts, for what the blocks take from them.
        records: the family's recorded checkpoints.

    Raises:
        BrokenSnippet: at the first block that fails.
    """
    facts = {checkpoint.id: checkpoint for checkpoint in family.checkpoints}
    file = f"site_src/notes/{family.model_type}.md"
    return NotesFacts(snippets=run_snippets(python_blocks(text), records, facts, family.reference, file))


def run_snippets(
    snippets: Sequence[Snippet],
    records: Sequence[RecordedCheckpoint],
    facts: Mapping[str, CheckpointFacts],
    reference: str,
    file: str,
) -> list[SnippetFacts]:
    """Run ``snippets`` on the twin of each checkpoint they hold for.

    Args:
        snippets: in page order.
        records: the family's recorded checkpoints; those with a reason not to be shown are passed over.
        facts: by checkpoint id, for expressions in the code (``ref`` and ``ckpt(id)``).
        reference: id of the family's reference.
        file: the notes' name in messages.

    Returns:
        For each snippet the checkpoints it ran on, or why it ran on none.

    Raises:
        BrokenSnippet: at the first snippet that fails.
    """
    shown = {record.id: record for record in records if record.reason is None}
    holds = [_holds_for(snippet, list(shown), {record.id for record in records}, reference, file)
             for snippet in snippets]
    reasons = [_why_not(snippet, found) for snippet, found in zip(snippets, holds, strict=True)]
    codes = [_filled_in(snippet, facts, reference, file) if reason is None else ""
             for snippet, reason in zip(snippets, reasons, strict=True)]
    for checkpoint, record in shown.items():
        chosen = [position for position, reason in enumerate(reasons)
                  if reason is None and checkpoint in holds[position]]
        if not chosen:
            continue
        twin = twin_of(record)
        namespace = {"model": StandardizedTransformer(twin), "prompt": prompt_for(twin), "torch": torch,
                     "__name__": "notes"}
        with torch.random.fork_rng():
            torch.manual_seed(SEED)
            for position in chosen:
                _run(codes[position], snippets[position].line, namespace, file, checkpoint)
    return [
        SnippetFacts(line=snippet.line, ran_on=found if reason is None else [], reason=reason)
        for snippet, found, reason in zip(snippets, holds, reasons, strict=True)
    ]


def _holds_for(snippet: Snippet, shown: list[str], known: set[str], reference: str, file: str) -> list[str]:
    """Ids of the shown checkpoints that ``snippet`` holds for."""
    if CHECKPOINTS not in snippet.attributes:
        return shown
    named = [name.strip() for name in snippet.attributes[CHECKPOINTS].split(",") if name.strip()]
    named = [reference if name == "reference" else name for name in named]
    unknown = [name for name in named if name not in known]
    if unknown or not named:
        said = ", ".join(unknown) or "nothing"
        raise BrokenSnippet(f"{file}:{snippet.line}: its {CHECKPOINTS} names {said}, which is not recorded")
    return [name for name in shown if name in named]


def _why_not(snippet: Snippet, holds: list[str]) -> str | None:
    if NEEDS_WEIGHTS in snippet.attributes:
        return snippet.attributes[NEEDS_WEIGHTS] or "it needs real weights"
    return None if holds else "no checkpoint that it holds for is shown"


def _filled_in(snippet: Snippet, facts: Mapping[str, CheckpointFacts], reference: str, file: str) -> str:
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    names = {"ref": facts.get(reference), "ckpt": facts.__getitem__}
    try:
        return environment.from_string(snippet.code).render(names)
    except (jinja2.TemplateError, KeyError) as error:
        raise BrokenSnippet(f"{file}:{snippet.line}: {_one_line(error)}") from error


def _run(code: str, line: int, namespace: dict[str, Any], file: str, checkpoint: str) -> None:
    # Blank lines in front give every statement the line it has in the notes.
    source = "\n" * line + code.rstrip("\n") + "\n"
    # nnsight reads the body of a trace from linecache, and once per name: another text needs another name.
    name = f"<{file} on {checkpoint}, {line}-{zlib.crc32(source.encode()):08x}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(source, name, "exec"), namespace)
    except Exception as error:
        at = _line_in(error, name) or line
        said = _one_line(error) if str(error) else f"{type(error).__name__}: {linecache.getline(name, at).strip()}"
        raise BrokenSnippet(f"{file}:{at}: on the small twin of {checkpoint}: {said}") from error


def _line_in(error: Exception, name: str) -> int | None:
    """The line of the file ``name`` that ``error`` came from, or ``None`` where it did not."""
    if isinstance(error, SyntaxError) and error.filename == name:
        return error.lineno
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == name]
    return lines[-1] if lines else None


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
