"""Libraries that pages load in a browser, copied from the installed Python packages that carry them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from encyclopedia.files import copy_file

#: By the name it has on the site: the package that carries it, and where it lies in that package.
LIBRARIES = {
    "plotly.min.js": ("plotly", "package_data/plotly.min.js"),
}


class MissingLibrary(Exception):
    """A package that carries a library is not installed, or has it no more where it was."""


def copy_libraries(folder: Path) -> None:
    """Copy every library into ``folder``; one that is there already and as large is left as it is.

    Raises:
        MissingLibrary: naming the package to install.
        CannotWrite: naming the file.
    """
    for name in LIBRARIES:
        source = library(name)
        target = folder / name
        if not target.is_file() or target.stat().st_size != source.stat().st_size:
            copy_file(source, target)


def library(name: str) -> Path:
    """The installed file of the library ``name``.

    Raises:
        MissingLibrary: naming the package to install.
    """
    package, place = LIBRARIES[name]
    for folder in folders_of(package):
        if (folder / place).is_file():
            return folder / place
    raise MissingLibrary(f"{package}: the installed package has no {place}; install the project's requirements again")


def folders_of(package: str) -> list[Path]:
    """Where an installed package lies; nothing where it is not installed."""
    spec = find_spec(package)
    return [] if spec is None else [Path(root) for root in spec.submodule_search_locations or []]
