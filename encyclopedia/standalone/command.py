"""What ``encyclopedia page`` does."""

from __future__ import annotations

from pathlib import Path

from encyclopedia.build.project import Project
from encyclopedia.files import CannotWrite, write_text
from encyclopedia.standalone.capturing import capture_within
from encyclopedia.standalone.page import GENERATOR, page_of
from encyclopedia.standalone.reading import UnreadableConfig, read_config

#: Bytes of a page in which it says what made it.
_HEAD = 4_000


def make_page(
    project: Project, source: str, output: Path | None, *, site: str | None, charts: bool, seconds: float
) -> tuple[Path, str]:
    """Write the page of the config at ``source``; the other arguments are the command's.

    Returns:
        The file that was written, and a line that says what it is about.

    Raises:
        UnreadableConfig: in one line.
    """
    if site is not None and not site.startswith(("https://", "http://")):
        raise UnreadableConfig(f"--site {site}: no address of a site; give one that begins with https://")
    local = read_config(source)
    path = output or Path(f"{local.record.id.rpartition('/')[2]}.html")
    _check_place(path)
    facts = capture_within(local.record, seconds)
    try:
        write_text(path, page_of(local, facts, project, site=site, charts=charts))
    except CannotWrite as error:
        raise _not_there(path, error.reason) from error
    said = f"{local.record.id}, a {local.model_type}"
    return path, f"{said}; left out of its config: {', '.join(local.ignored)}" if local.ignored else said


def _check_place(path: Path) -> None:
    """Refuse a place in a folder that is not there, and one where a file is that this command did not write.

    Raises:
        UnreadableConfig: in one line.
    """
    try:
        if not path.parent.is_dir():
            raise _not_there(path, "there is no such folder")
        if path.is_dir():
            raise _not_there(path, "a folder is there")
        if path.exists() and (not path.is_file() or GENERATOR.encode() not in path.read_bytes()[:_HEAD]):
            raise _not_there(path, "a file is there that is no page of this command")
    except OSError as error:
        raise _not_there(path, error.strerror or str(error)) from error


def _not_there(path: Path, reason: str) -> UnreadableConfig:
    return UnreadableConfig(f"{path}: cannot be written ({reason}); choose another file by --output")
