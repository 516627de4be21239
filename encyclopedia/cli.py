"""The command line."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NoReturn
from urllib.parse import urlsplit

import typer
from rich.console import Console
from rich.table import Table

from encyclopedia.build.environments import BrokenEnvironment, capture_with, python_of
from encyclopedia.build.facts import NoFacts, StoredFacts, read_facts, write_facts
from encyclopedia.build.families import Outcome, UnknownFamily, choose_families, family_facts
from encyclopedia.build.lock import only_build
from encyclopedia.build.pages import write_pages
from encyclopedia.build.project import NoProject, Project, find_project
from encyclopedia.build.site import Engine, SiteFailed, build_site
from encyclopedia.checkpoints import BrokenConfig, families_recorded, read_family
from encyclopedia.coverage import all_families
from encyclopedia.diff import NothingToCompare, compare_families, lines_of, write_record
from encyclopedia.files import DISK_FAULTS, CannotWrite
from encyclopedia.page.wording import counted

#: Exit codes: something the command was asked to do failed; the command was called wrongly; it was interrupted.
FAILED, USAGE, INTERRUPTED = 1, 2, 130

# What parameters are refused with is one of the errors of a wrong call, which older releases take from another package.
_CALLED_WRONGLY: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    help="Build and serve the encyclopedia: a page for every family of open language models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
out = Console()
err = Console(stderr=True)

Families = Annotated[list[str] | None, typer.Argument(
    metavar="[FAMILY]...", help="Families by model_type, such as doge; all of them where none is named.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Worker processes.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Capture again what the cache already has.")]

_WORKERS = max(1, min(4, os.cpu_count() or 1))


def _version(asked: bool) -> None:
    if asked:
        out.print(version("encyclopedia"), highlight=False)
        raise typer.Exit


@app.callback()
def _app(
    version_asked: Annotated[bool, typer.Option(
        "--version", is_eager=True, callback=_version, help="Print the version and exit.")] = False,
) -> None:
    pass


@app.command()
def build(
    families: Families = None,
    jobs: Jobs = _WORKERS,
    force: Force = False,
    engine: Annotated[Engine, typer.Option(help="What makes the site from the pages.")] = Engine.MKDOCS,
    site_url: Annotated[str | None, typer.Option(
        "--site-url", help="Where the site will be hosted; its sitemap and its 404.html need it.")] = None,
) -> None:
    """Capture the facts, write the pages and build the site into site/."""
    project = _project()
    address, chosen = _address(site_url), _chosen(families)
    with only_build(project, err):
        outcome = _write(project, chosen, jobs, force)
        try:
            build_site(project, engine, address=address)
        except SiteFailed as error:
            _stop(str(error))
    out.print(f"site: {project.site}", highlight=False, soft_wrap=True)
    _finish(outcome)


@app.command()
def pages(families: Families = None, jobs: Jobs = _WORKERS, force: Force = False) -> None:
    """Capture the facts and write the pages, without building the site."""
    project, chosen = _project(), _chosen(families)
    with only_build(project, err):
        outcome = _write(project, chosen, jobs, force)
    _finish(outcome)


@app.command()
def facts(
    folder: Annotated[Path, typer.Argument(help="Where the facts go.", file_okay=False)],
    families: Families = None,
    jobs: Jobs = _WORKERS,
    force: Force = False,
) -> None:
    """Capture the facts into a folder, without pages; what fails is kept as a failure."""
    outcome = family_facts(_project(), _chosen(families), jobs=jobs, force=force, console=err, keep_broken=True)
    write_facts(folder, outcome)
    _finish(outcome)


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(help="A folder of facts, or of a Python environment to capture them with.")],
    new: Annotated[Path, typer.Argument(help="The same, to compare it with.")],
    families: Families = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
    record: Annotated[bool, typer.Option("--record", help="Keep it in the history that the site shows.")] = False,
) -> None:
    """Compare two captures family by family, such as on two releases of transformers."""
    project = _project()
    try:
        before, after = (_facts_in(project, side, families) for side in (old, new))
        found = compare_families(before.families, after.families, old_failures=before.failures,
                                 new_failures=after.failures)
    except (NoFacts, BrokenEnvironment, NothingToCompare) as error:
        _stop(str(error))
    if record:
        out.print(f"written: {write_record(found)}", highlight=False, soft_wrap=True)
    elif as_json:
        print(found.model_dump_json(indent=1))
    else:
        for line in lines_of(found):
            out.print(line, highlight=False, soft_wrap=True, markup=False)


def _facts_in(project: Project, folder: Path, families: list[str] | None) -> StoredFacts:
    python = python_of(folder)
    if python is None:
        return read_facts(folder).only(families)
    with tempfile.TemporaryDirectory(prefix="facts-") as captured:
        capture_with(python, project, families or [], Path(captured))
        return read_facts(Path(captured))


@app.command()
def serve(
    families: Families = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", "-p", help="Port to listen on.")] = 8000,
    jobs: Jobs = _WORKERS,
    force: Force = False,
) -> None:
    """Build the pages, then serve the site and rebuild it when notes, templates, styles or families change."""
    project, chosen = _project(), _chosen(families)
    _check_free(host, port)
    with only_build(project, err):
        outcome = _write(project, chosen, jobs, force)
    _tell(outcome)
    out.print(f"serving on http://{host}:{port}/", highlight=False)
    command = [sys.executable, "-m", "mkdocs", "serve", "--quiet", "--dev-addr", f"{host}:{port}",
               "--config-file", str(project.root / "mkdocs.yml")]
    os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")
    os.chdir(project.root)
    sys.stdout.flush()
    # The server takes this process's place, so that whoever stops the command stops the server.
    os.execv(sys.executable, command)


@app.command("list")
def list_families() -> None:
    """List the families and their recorded checkpoints."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("family", "checkpoint", "shown"):
        table.add_column(column)
    failed = False
    for name in all_families():
        if name not in families_recorded():
            table.add_row(name, "class defaults", "yes, the reference")
            continue
        try:
            records, broken = read_family(name)
        except BrokenConfig as error:
            records, broken = [], [error]
        for record in records:
            state = "yes, the reference" if record.reference else "yes" if record.reason is None else "no"
            table.add_row(name, record.id, state)
        for problem in broken:
            failed = True
            err.print(str(problem), style="red", highlight=False, soft_wrap=True)
    out.print(table)
    if failed:
        raise typer.Exit(FAILED)


@app.command()
def check(
    families: Families = None,
    weights: Annotated[str | None, typer.Option(
        "--weights", "-w", help="Check one family on real weights: a folder, a GGUF file, an installed package that "
                                "holds one, or a hub id.")] = None,
    jobs: Jobs = _WORKERS,
    force: Force = False,
) -> None:
    """Run the checks behind the pages and say what they covered, without writing anything but the cache."""
    if weights is not None:
        _check_on_weights(_chosen(families), weights)
        return
    project = _project()
    outcome = family_facts(project, _chosen(families), jobs=jobs, force=force, console=err)
    for family in outcome.families:
        if family.failure is not None:
            out.print(f"{family.model_type}: {family.failure.step}: {family.failure.reason}", highlight=False,
                      soft_wrap=True, markup=False)
        shown = [checkpoint for checkpoint in family.checkpoints if checkpoint.checks is not None]
        for checkpoint in shown:
            assert checkpoint.checks is not None
            checks = checkpoint.checks
            error = checks.identity.max_error
            identity = "no exact identity found" if error is None else (
                f"identity held on {checks.identity.blocks} blocks (largest error {error:.1e})")
            out.print(
                f"{checkpoint.id}: {checks.values.checked} of {checks.values.total} values read, {identity}, "
                f"{checks.snippets.run} of {checks.snippets.total} snippets run",
                highlight=False, soft_wrap=True,
            )
    _finish(outcome)


@app.command()
def page(
    source: Annotated[str, typer.Argument(help="A folder with a config.json, such a file, or a hub id.")],
    output: Annotated[Path | None, typer.Option(
        "--output", "-o", help="The file to write; NAME.html by default.")] = None,
    site: Annotated[str | None, typer.Option(help="The address of a built site for links to its pages.")] = None,
    charts: Annotated[bool, typer.Option(
        "--charts", help="Have the charts in it, for which it is some 5 MB larger.")] = False,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds that the capture may take.")] = 120,
) -> None:
    """Make the page of one's own config as one file that opens from disk; no code of a checkpoint is run."""
    project = _project()
    from encyclopedia.standalone.command import make_page
    from encyclopedia.standalone.reading import UnreadableConfig

    try:
        written, about = make_page(project, source, output, site=site, charts=charts, seconds=timeout)
    except UnreadableConfig as error:
        _stop(str(error))
    err.print(about, style="dim", highlight=False, soft_wrap=True, markup=False)
    out.print(f"written: {written}", highlight=False, soft_wrap=True, markup=False)


@app.command()
def sync(
    families: Families = None,
    write: Annotated[bool, typer.Option("--write", help="Put what the hub says into the records.")] = False,
) -> None:
    """Compare the recorded configs with the hub's, where one is reachable; only --write changes anything."""
    from encyclopedia.checkpoints.hub import HubUnreachable, KeyDifference, compare_with_hub, take_over
    from encyclopedia.online import hub_answers, no_answer

    chosen = _chosen(families)
    if not hub_answers():
        _stop(no_answer())
    failed = False
    for name in chosen:
        found: list[KeyDifference] = []
        for record in read_family(name)[0] if name in families_recorded() else []:
            if record.reason is not None:
                continue
            try:
                differences = compare_with_hub(record)
            except (BrokenConfig, HubUnreachable) as error:
                failed = True
                err.print(str(error), style="red", highlight=False, soft_wrap=True, markup=False)
                continue
            found += differences
            for line in differences:
                err.print(str(line), style="red", highlight=False, soft_wrap=True, markup=False)
            if not differences:
                out.print(f"{record.id}: as on the hub", highlight=False, soft_wrap=True)
        if found and write:
            source = f"the hub's config.json, read on {date.today().isoformat()}"
            out.print(f"written: {take_over(name, found, source=source)}", highlight=False, soft_wrap=True)
        failed |= bool(found) and not write
    if failed:
        raise typer.Exit(FAILED)


def _check_on_weights(families: list[str], weights: str) -> None:
    if len(families) != 1:
        _stop("--weights checks one family: name it, such as `encyclopedia check llama --weights PATH`", USAGE)
    from transformers.utils.logging import disable_progress_bar

    from encyclopedia.checks.claims import BrokenClaim
    from encyclopedia.checks.weights import check_weights
    from encyclopedia.weights import WeightsError

    disable_progress_bar()
    try:
        checked = check_weights(families[0], weights)
    except (BrokenClaim, WeightsError) as error:
        _stop(f"{families[0]}: {error}")
    for sort in dict.fromkeys(claim.sort for claim in checked.claims):
        claims = [claim for claim in checked.claims if claim.sort == sort]
        errors = [claim.error for claim in claims if claim.error is not None]
        figure = f", largest error {max(errors):.1e}" if errors else ""
        out.print(f"{sort}: {len(claims)} claims held in {sum(claim.runs for claim in claims)} runs{figure}",
                  highlight=False)


@app.command()
def new(
    family: Annotated[str, typer.Argument(help="A family without a module, by model_type, such as olmo3.")],
) -> None:
    """Start a family's own module and notes, filled with what was derived and with what is left to say."""
    project = _project()
    _chosen([family])
    from encyclopedia.build.worker import prepare
    from encyclopedia.scaffold import CannotStart, start_family

    prepare(worker=False)
    try:
        started = start_family(project, family)
    except CannotStart as error:
        _stop(str(error))
    for path in started.files:
        out.print(f"written: {path}", highlight=False, soft_wrap=True)
    out.print("left to do:", highlight=False)
    for line in started.left:
        out.print(f"  {line}", highlight=False, soft_wrap=True)


@app.command()
def measure(
    family: Annotated[str, typer.Argument(help="The family by model_type, such as llama.")],
    weights: Annotated[str, typer.Option(
        "--weights", "-w", help="A folder, a GGUF file, an installed package that holds one, or a hub id.")],
    checkpoint: Annotated[str | None, typer.Option(
        help="Which recorded checkpoint they are; found by their sizes where it is not said.")] = None,
) -> None:
    """Measure on real weights what the notes quote, and write encyclopedia/measured/FAMILY.json."""
    _chosen([family])
    from transformers.utils.logging import disable_progress_bar

    from encyclopedia.measure.run import MeasureError, measure_family
    from encyclopedia.weights import WeightsError

    disable_progress_bar()
    try:
        path, records = measure_family(family, weights, checkpoint)
    except (MeasureError, WeightsError) as error:
        _stop(str(error))
    for record in records:
        values = record.values
        shown = f"{len(values)} blocks, the last {values[-1]}" if isinstance(values, list) else repr(values)
        out.print(f"{record.quantity}: {shown}", highlight=False, soft_wrap=True)
    out.print(f"written: {path}", highlight=False, soft_wrap=True)


@app.command()
def names(families: Families = None) -> None:
    """Find what TransformerLens calls the values, by running its bridge, and write encyclopedia/lens/FAMILY.json."""
    chosen = _chosen(families)
    from encyclopedia.build.worker import prepare
    from encyclopedia.lens.bridge import NoBridge
    from encyclopedia.lens.compare import compare_family
    from encyclopedia.lens.records import write_names
    from encyclopedia.structure.stack import UnknownStructure
    from encyclopedia.twin import NoTwin

    prepare(worker=False)
    failed = False
    for family in chosen:
        try:
            record = compare_family(family)
        except (NoBridge, NoTwin, UnknownStructure) as error:
            failed = True
            err.print(f"{family}: {error}", style="red", highlight=False, soft_wrap=True, markup=False)
            continue
        write_names(family, record)
        same = sum(name.same for name in record.names)
        out.print(f"{family}: {same} values found, {counted(len(record.names) - same, 'name')} for something else",
                  highlight=False)
    if failed and families:
        raise typer.Exit(FAILED)


def main() -> None:
    """Run the command line; a file that cannot be written ends it with one line, an interruption quietly."""
    if not err.is_terminal:
        os.environ.setdefault("TQDM_DISABLE", "1")
    try:
        sys.exit(app(standalone_mode=False))
    except typer.Abort:
        _interrupted()
    except _CALLED_WRONGLY as error:
        _end_usage(error)
    except CannotWrite as error:
        _end(str(error))
    except OSError as error:
        if error.errno not in DISK_FAULTS:
            raise
        _end(str(CannotWrite(error.filename or "a file", error.errno, error.strerror or str(error))))
    except KeyboardInterrupt:
        _interrupted()


def _interrupted() -> NoReturn:
    err.print("interrupted; what was finished is kept")
    # Workers may be in the middle of a capture that nobody waits for.
    os._exit(INTERRUPTED)


def _end_usage(error: Any) -> NoReturn:
    """End a command that was called wrongly; one without any argument has shown its help already."""
    said = error.format_message().rstrip(".").replace("Value error, ", "")
    if not said or type(error).__name__ == "NoArgsIsHelpError":
        sys.exit(USAGE)
    command = error.ctx.info_name if error.ctx is not None and error.ctx.parent is not None else None
    asked = f"encyclopedia {command}" if command else "encyclopedia"
    _end(f"{said}; `{asked} --help` shows what there is", USAGE)


def _end(message: str, code: int = FAILED) -> NoReturn:
    err.print(message, style="red", highlight=False, soft_wrap=True, markup=False)
    sys.exit(code)


def _project() -> Project:
    try:
        return find_project(Path.cwd())
    except NoProject as error:
        _stop(str(error), USAGE)


def _address(text: str | None) -> str | None:
    """The address of a site, with the slash at its end that relative addresses need."""
    if text is None:
        return None
    try:
        parts = urlsplit(text)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        _stop(f"--site-url {text!r}: no address of a site; give one such as https://example.org/encyclopedia/", USAGE)
    return text.rstrip("/") + "/"


def _chosen(families: list[str] | None) -> list[str]:
    try:
        return choose_families(families or [])
    except UnknownFamily as error:
        _stop(str(error), USAGE)


def _check_free(host: str, port: int) -> None:
    """Stop where nobody can listen on a port, before anything is captured for it."""
    try:
        socket.create_server((host, port)).close()
    except (OSError, OverflowError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).rstrip(".")
        _stop(f"{host}:{port}: nothing can listen there ({reason[:1].lower()}{reason[1:]}); choose another by --port")


def _write(project: Project, chosen: list[str], jobs: int, force: bool) -> Outcome:
    outcome = family_facts(project, chosen, jobs=jobs, force=force, console=err)
    try:
        write_pages(project, outcome.families, sorted(outcome.broken))
    except NoFacts as error:
        _stop(str(error))
    err.print(f"{counted(len(outcome.families), 'page')} written, "
              f"{counted(outcome.captured, 'checkpoint')} captured", style="dim", highlight=False)
    return outcome


def _failure_lines(outcome: Outcome) -> list[str]:
    return [line if line.startswith(f"{name}: ") else f"{name}: {line}"
            for name, lines in outcome.failures.items() for line in lines]


def _tell(outcome: Outcome) -> None:
    for line in outcome.warnings:
        err.print(line, style="yellow", highlight=False, soft_wrap=True, markup=False)
    for line in _failure_lines(outcome):
        err.print(line, style="red", highlight=False, soft_wrap=True, markup=False)


def _finish(outcome: Outcome) -> None:
    _tell(outcome)
    if outcome.failures:
        raise typer.Exit(FAILED)


def _stop(message: str, code: int = FAILED) -> NoReturn:
    err.print(message, style="red", highlight=False, soft_wrap=True, markup=False)
    raise typer.Exit(code)
