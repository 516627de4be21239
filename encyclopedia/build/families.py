"""From recorded checkpoints to every chosen family's facts, capturing what the cache has not got."""

from __future__ import annotations

import difflib
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console

from encyclopedia.build.cache import FactsCache, facts_key, snippets_key
from encyclopedia.build.progress import progress
from encyclopedia.build.project import Project
from encyclopedia.build.worker import CaptureTask, NotesTask, Result, Task, died, prepare, run
from encyclopedia.capture.failed import failed
from encyclopedia.capture.family import gather_family
from encyclopedia.checkpoints import BrokenConfig, RecordedCheckpoint, families_recorded, read_family
from encyclopedia.coverage import all_families, default_record
from encyclopedia.facts import CheckpointFacts, FamilyFacts, NotesFacts
from encyclopedia.families import has_module


class UnknownFamily(Exception):
    """A family that the installed transformers does not know and nothing is recorded for."""


@dataclass
class Outcome:
    """What became of the chosen families.

    Attributes:
        families: the facts of those that are whole.
        failures: by ``model_type``, one line for each thing that failed.
        broken: those of the families in ``failures`` that are at fault themselves; of the others nothing is known to be
            wrong, because the machine failed while they were captured.
        warnings: one line for each thing that is worth mending and kept nothing from being done.
        captured: how many checkpoints were captured rather than read from the cache.
    """

    families: list[FamilyFacts] = field(default_factory=list)
    failures: dict[str, list[str]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)
    captured: int = 0

    def fail(self, name: str, line: str, *, passing: bool = False) -> None:
        """Note that something of the family ``name`` failed, or with ``passing`` that the machine did."""
        self.failures.setdefault(name, []).append(line)
        if not passing:
            self.broken.add(name)


def choose_families(names: Sequence[str]) -> list[str]:
    """The families named, or all there are where none is.

    Raises:
        UnknownFamily: with the nearest name.
    """
    known = all_families()
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
            hint = f"the nearest is {near[0]!r}" if near else "there is none"
            raise UnknownFamily(f"no family {name!r}: {hint}; `encyclopedia list` shows all")
    return list(dict.fromkeys(names)) or list(known)


def family_facts(
    project: Project, names: Sequence[str], *, jobs: int, force: bool, console: Console, keep_broken: bool = False
) -> Outcome:
    """The facts of the families ``names``; a family with anything broken is left out and its failures are listed.

    Args:
        project: whose cache and notes are used.
        names: families, each one of :func:`encyclopedia.coverage.all_families`.
        jobs: worker processes.
        force: capture again what the cache has.
        console: where progress is shown.
        keep_broken: give what there is of a family with something broken too; a checkpoint without facts then says
            what failed.
    """
    outcome = Outcome()
    records = _read_records(names, outcome)
    facts = _captured(FactsCache(project.cache, CheckpointFacts), records, outcome, jobs, force, console)
    if keep_broken:
        facts |= {record.id: failed(record, "run", " ".join(outcome.failures[name]))
                  for name, found in records.items() for record in found if record.id not in facts}
    whole = {name: [facts[record.id] for record in found] for name, found in records.items()
             if found and (keep_broken or name not in outcome.failures)}
    notes = _checked_notes(project, whole, records, outcome, jobs, force, console, keep_broken)
    for name, checkpoints in whole.items():
        if keep_broken or name not in outcome.failures:
            outcome.families.append(gather_family(
                name, checkpoints, _shown_first(_reference(records[name]), checkpoints), notes[name]))
    return outcome


def _reference(records: Sequence[RecordedCheckpoint]) -> str:
    """The checkpoint a family's page opens on: the one recorded as its reference, else the first."""
    return next((record.id for record in records if record.reference), records[0].id)


def _shown_first(reference: str, checkpoints: Sequence[CheckpointFacts]) -> str:
    """``reference``, or the first checkpoint that is shown where that one is not."""
    shown = [checkpoint.id for checkpoint in checkpoints if checkpoint.available]
    return reference if reference in shown or not shown else shown[0]


def _read_records(names: Sequence[str], outcome: Outcome) -> dict[str, list[RecordedCheckpoint]]:
    records = {}
    for name in names:
        if name not in families_recorded():
            records[name] = [default_record(name)]
            continue
        try:
            records[name], broken = read_family(name)
        except BrokenConfig as error:
            outcome.fail(name, str(error))
            continue
        for problem in broken:
            outcome.fail(name, str(problem))
    return records


def _captured(
    store: FactsCache[CheckpointFacts], records: dict[str, list[RecordedCheckpoint]], outcome: Outcome, jobs: int,
    force: bool, console: Console,
) -> dict[str, CheckpointFacts]:
    facts: dict[str, CheckpointFacts] = {}
    tasks = {}
    for name, found in records.items():
        for record in found:
            key = facts_key(name, record)
            stored = None if force else store.get(key)
            if stored is not None and stored.id == record.id:
                facts[record.id] = stored
            else:
                tasks[record.id] = (name, key, CaptureTask(record))
    for result in _run_all("capturing", [task for _, _, task in tasks.values()], jobs, console):
        name, key, task = tasks[result.name]
        if isinstance(result.facts, CheckpointFacts):
            store.put(key, result.facts)
            facts[result.name] = result.facts
            outcome.captured += 1
        elif result.passing:
            outcome.fail(name, result.failure or "no facts", passing=True)
        elif not has_module(name):
            # Nobody answers for the family: that it cannot be shown is what its page says.
            facts[result.name] = failed(task.record, "run", result.failure or "no facts")
            store.put(key, facts[result.name])
        else:
            outcome.fail(name, result.failure or "no facts")
    _warn_of(store, outcome)
    return facts


def _warn_of(store: FactsCache[Any], outcome: Outcome) -> None:
    # Facts and notes lie in one folder: what is wrong with it is told once.
    if store.trouble is not None and not outcome.warnings:
        outcome.warnings.append(store.trouble)


def _checked_notes(
    project: Project, whole: dict[str, list[CheckpointFacts]], records: dict[str, list[RecordedCheckpoint]],
    outcome: Outcome, jobs: int, force: bool, console: Console, keep_broken: bool,
) -> dict[str, NotesFacts]:
    store = FactsCache(project.cache, NotesFacts)
    checked: dict[str, NotesFacts] = {}
    tasks = {}
    for name, checkpoints in whole.items():
        path = project.notes_of(name)
        if path is None or not any(checkpoint.available for checkpoint in checkpoints):
            checked[name] = NotesFacts(snippets=[])
            continue
        text = path.read_text(encoding="utf-8")
        key = snippets_key(name, records[name], text)
        stored = None if force else store.get(key)
        if stored is not None:
            checked[name] = stored
            continue
        draft = gather_family(name, checkpoints, _shown_first(_reference(records[name]), checkpoints),
                              NotesFacts(snippets=[]))
        tasks[name] = (key, NotesTask(text, draft, records[name]))
    for result in _run_all("checking notes", [task for _, task in tasks.values()], jobs, console):
        if isinstance(result.facts, NotesFacts):
            store.put(tasks[result.name][0], result.facts)
            checked[result.name] = result.facts
        else:
            outcome.fail(result.name, result.failure or "notes not checked", passing=result.passing)
            if keep_broken:
                checked[result.name] = NotesFacts(snippets=[])
    _warn_of(store, outcome)
    return checked


def _run_all(title: str, tasks: Sequence[Task], jobs: int, console: Console) -> Iterator[Result]:
    """Run ``tasks`` side by side in processes of their own and yield each result as it comes.

    A process that dies takes its pool with it: what may have been running is then run alone, and the rest goes on.
    """
    if not tasks:
        return
    left = {task.name: task for task in tasks}
    with progress(title, len(tasks), console) as report:
        while left:
            for result in _run_in_pool(list(left.values()), jobs):
                del left[result.name]
                report(result.name)
                yield result
            for task in list(left.values())[: jobs + 1]:
                alone = next(_run_in_pool([task], 1), None)
                del left[task.name]
                report(task.name)
                yield alone or died(task.name)


def _run_in_pool(tasks: Sequence[Task], jobs: int) -> Iterator[Result]:
    """What came of ``tasks``, or of those that finished before a process died."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=context, initializer=prepare)
    try:
        for future in as_completed([pool.submit(run, task) for task in tasks]):
            if not isinstance(future.exception(), BrokenProcessPool):
                yield future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
