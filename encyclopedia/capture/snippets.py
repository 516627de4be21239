"""Running the notes: every Python block, on the small twin of each checkpoint it holds for.

The blocks of one page share a namespace per checkpoint, in page order, as they would for a reader. It starts with
``model`` (the live model over the twin), ``prompt`` (token ids ``[1, PROMPT_LENGTH]``) and ``torch``.
"""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import traceback
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from encyclopedia.capture.numbers import typed_numbers
from encyclopedia.checkpoints import RecordedCheckpoint
from encyclopedia.facts import CheckpointFacts, FamilyFacts, NotesFacts, SnippetFacts
from encyclopedia.model.hosts import Unconfirmed
from encyclopedia.model.transformer import StandardizedTransformer
from encyclopedia.notes import NotesError, Snippet, snippets
from encyclopedia.twin import prompt_for, twin_of

#: Attribute that limits a block to some checkpoints: their ids with commas between, or ``reference``.
CHECKPOINTS = "checkpoints"

#: The largest tolerance of a comparison; with a larger one it would hold whatever the page says.
LOOSEST = 1e-3

#: Functions that compare two tensors, with the arguments that say how closely.
_COMPARISONS = ("assert_close", "allclose", "isclose")
_TOLERANCES = ("rtol", "atol")

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
        NotesError: where an expression in the notes cannot be filled in, or a number of a config is typed in prose.
        BrokenSnippet: at the first block that fails.
    """
    file = f"site_src/notes/{family.model_type if family.annotated else '_derived'}.md"
    for number in typed_numbers(text, family):
        raise NotesError(f"{file}:{number.line}: expected an expression for the number that is {number.keys[0]}, "
                         f"found {number.text} typed in the text")
    available = {checkpoint.id: checkpoint for checkpoint in family.checkpoints if checkpoint.available}
    unconfirmed = {name: _unconfirmed(checkpoint) for name, checkpoint in available.items()}
    tried = [record for record in records if record.reason is not None or record.id in available]
    return NotesFacts(snippets=run_snippets(snippets(text, family), tried, family.reference, file, unconfirmed))


def _unconfirmed(checkpoint: CheckpointFacts) -> Unconfirmed:
    """The values that a checkpoint's live model leaves out, by native class and host."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for value in checkpoint.unconfirmed:
        found.setdefault((value.native, value.host), {})[value.name] = value.reason
    return found


def run_snippets(
    blocks: Sequence[Snippet], records: Sequence[RecordedCheckpoint], reference: str, file: str,
    unconfirmed: Mapping[str, Unconfirmed] | None = None,
) -> list[SnippetFacts]:
    """Run ``blocks`` on the twin of each checkpoint they hold for.

    Args:
        blocks: in page order, with nothing left to fill in.
        records: the family's recorded checkpoints; those with a reason not to be shown are passed over.
        reference: id of the family's reference.
        file: the notes' name in messages.
        unconfirmed: by checkpoint, the values that its live model leaves out.

    Returns:
        For each block the checkpoints it ran on, or why it ran on none.

    Raises:
        BrokenSnippet: at the first block that fails.
    """
    shown = {record.id: record for record in records if record.reason is None}
    known = {record.id for record in records}
    holds = [_holds_for(block, list(shown), known, reference, file) for block in blocks]
    reasons = [_why_not(block, found) for block, found in zip(blocks, holds, strict=True)]
    for block in blocks:
        _check_tolerances(block, file)
    for checkpoint, record in shown.items():
        chosen = [block for block, found, reason in zip(blocks, holds, reasons, strict=True)
                  if reason is None and checkpoint in found]
        if chosen:
            _run_all(chosen, record, file, (unconfirmed or {}).get(checkpoint))
    return [
        SnippetFacts(line=block.line, ran_on=found if reason is None else [], reason=reason)
        for block, found, reason in zip(blocks, holds, reasons, strict=True)
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
    if snippet.needs_weights is not None:
        return snippet.needs_weights or "it needs real weights"
    return None if holds else "no checkpoint that it holds for is shown"


def _check_tolerances(snippet: Snippet, file: str) -> None:
    """Refuse a comparison that is too loose to fail; to say that two tensors differ, a loose one is the stricter.

    Raises:
        BrokenSnippet: naming the line, the tolerance and the largest allowed.
    """
    try:
        tree = ast.parse(snippet.code)
    except SyntaxError:
        return
    denied = {inner for node in ast.walk(tree) if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
              for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or node in denied:
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        for keyword in node.keywords if called in _COMPARISONS else ():
            if keyword.arg in _TOLERANCES and not _is_tight(keyword.value):
                raise BrokenSnippet(f"{file}:{snippet.line + node.lineno}: {called} with {keyword.arg} "
                                    f"{ast.unparse(keyword.value)}: expected a number of at most {LOOSEST}")


def _is_tight(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, int | float) and value.value <= LOOSEST


def _run_all(
    blocks: Sequence[Snippet], record: RecordedCheckpoint, file: str, unconfirmed: Unconfirmed | None
) -> None:
    twin = twin_of(record)
    model = StandardizedTransformer(twin, unconfirmed=unconfirmed)
    namespace: dict[str, Any] = {
        "__name__": "notes", "model": model, "prompt": prompt_for(twin), "torch": torch,
    }
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        for block in blocks:
            _run(block, namespace, record.id, file)


def _run(snippet: Snippet, namespace: dict[str, Any], checkpoint: str, file: str) -> None:
    # Blank lines in front give every statement the line it has in the notes.
    source = "\n" * snippet.line + snippet.code.rstrip("\n") + "\n"
    # nnsight reads the body of a trace from linecache, and once per name: another text needs another name.
    name = f"<{file}, line {snippet.line}, on {checkpoint}, {zlib.crc32(source.encode()):08x}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(source, name, "exec"), namespace)
    except Exception as error:
        line = _line_in(error, name) or snippet.line
        said = _one_line(error) if str(error) else f"{type(error).__name__}: {linecache.getline(name, line).strip()}"
        raise BrokenSnippet(f"{file}:{line}: on the small twin of {checkpoint}: {said}") from error


def _line_in(error: Exception, name: str) -> int | None:
    """The line of the file ``name`` that ``error`` came from, or ``None`` where it did not."""
    if isinstance(error, SyntaxError) and error.filename == name:
        return error.lineno
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == name]
    return lines[-1] if lines else None


def _one_line(error: Exception) -> str:
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {' '.join(said.split())}"
