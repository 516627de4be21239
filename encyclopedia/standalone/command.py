"""What ``encyclopedia page`` does."""

from __future__ import annotations

from pathlib import Path

from encyclopedia.build.project import Project
from encyclopedia.files import CannotWrite, write_text
from encyclopedia.standalone.capturing import capture_within
from encyclopedia.standalone.page import page_of
from encyclopedia.standalone.reading import UnreadableConfig, read_config


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
    facts = capture_within(local.record, seconds)
    path = output or Path(f"{local.record.id.rpartition('/')[2]}.html")
    try:
        if path.is_file():
            path.read_text(encoding="utf-8")
        write_text(path, page_of(local, facts, project, site=site, charts=charts))
    except (CannotWrite, OSError, UnicodeDecodeError) as error:
        reason = (error.reason if isinstance(error, CannotWrite) else getattr(error, "strerror", None)
                  or "it is there already, and no page")
        raise UnreadableConfig(f"{path}: cannot be written ({reason}); choose another file by --output") from error
    said = f"{local.record.id}, a {local.model_type}"
    return path, f"{said}; left out of its config: {', '.join(local.ignored)}" if local.ignored else said
