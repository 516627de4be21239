"""The project's folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class NoProject(Exception):
    """No project folder was found."""


@dataclass(frozen=True)
class Project:
    """Where things are, from the project's root.

    Attributes:
        root: the folder that holds ``mkdocs.yml``.
    """

    root: Path

    @property
    def source(self) -> Path:
        """What the site engine reads: hand-written notes and assets, and the generated pages."""
        return self.root / "site_src"

    @property
    def templates(self) -> Path:
        """Templates of pages and of the theme."""
        return self.root / "templates"

    @property
    def notes(self) -> Path:
        """One Markdown file per family."""
        return self.source / "notes"

    def notes_of(self, model_type: str) -> Path | None:
        """The notes of a family: its own, else those that every family without its own shares, if there are any."""
        return next((path for path in (self.notes / f"{model_type}.md", self.notes / "_derived.md") if path.is_file()),
                    None)

    @property
    def cache(self) -> Path:
        """Captured facts, by what they depend on."""
        return self.root / ".cache" / "facts"

    @property
    def site(self) -> Path:
        """The finished site."""
        return self.root / "site"

    @property
    def lock(self) -> Path:
        """What the one process holds that writes pages and site."""
        return self.root / "site.lock"

    @property
    def builder(self) -> Path:
        """Says which process holds or last held :attr:`lock`."""
        return self.root / "site.builder"


def find_project(start: Path | None = None) -> Project:
    """The project around ``start`` (the working folder by default), else the one this package was installed from.

    Raises:
        NoProject: where neither is one.
    """
    here = (start or Path.cwd()).resolve()
    installed = Path(__file__).resolve().parents[2]
    for folder in (here, *here.parents, installed):
        if (folder / "mkdocs.yml").is_file() and (folder / "site_src").is_dir():
            return Project(folder)
    raise NoProject(f"no mkdocs.yml with a site_src folder in {here} or above it: run this inside the project")
