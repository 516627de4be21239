"""A copy of the project whose site is built over and over, so that the old one and the new one can be told apart."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from encyclopedia.build.project import Project

#: The family it is built for, which is derived throughout.
FAMILY = "arcee"

#: How the heading reads.
HEADINGS = (">The block<", ">The block, seen again<")


@dataclass(frozen=True)
class Turning:
    """A copy of the project with a whole site that is built over and over, a heading changed each time.

    Attributes:
        root: the copy.
        sites: the site's digest by how the heading reads.
        seconds: how long a build takes, by whether it captures.
    """

    root: Path
    sites: dict[str, str]
    seconds: dict[bool, float]

    def turn(self, heading: str) -> None:
        """Have the next build make the site with that heading."""
        text = self._template.read_text(encoding="utf-8")
        self._template.write_text(text.replace(self.heading, heading), encoding="utf-8")

    @property
    def heading(self) -> str:
        """How the heading reads now."""
        text = self._template.read_text(encoding="utf-8")
        return next(found for found in self.sites if found in text)

    @property
    def other(self) -> str:
        """How it does not."""
        return next(found for found in self.sites if found != self.heading)

    @property
    def _template(self) -> Path:
        return self.root / "templates" / "page" / "block.html.jinja"

    def forget(self) -> None:
        """Have the next build capture."""
        for entry in self.cache.glob(f"{FAMILY}-*.json"):
            entry.unlink()

    @property
    def cache(self) -> Path:
        return Project(self.root).cache

    @property
    def site(self) -> Path:
        return Project(self.root).site
