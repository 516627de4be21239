"""Bring the pins of a constraints file up to the releases that are installed beside this Python.

    python scripts/pins.py [constraints.txt]

A pin of what is not installed here stays as it is, and what is installed and has no pin gets one. Builds of one release
for different machines (`2.13.0+cpu`) are one pin, which every machine can install.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from importlib.metadata import distributions
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

#: What an environment is made with, and the project itself.
UNPINNED = {"encyclopedia", "pip", "setuptools", "wheel"}


def installed() -> dict[str, str]:
    """The public versions of what is installed here, by the name that each gives itself."""
    return {found.name: Version(found.version).public for found in distributions()
            if canonicalize_name(found.name) not in UNPINNED}


def brought_up(text: str, versions: Mapping[str, str]) -> str:
    """A constraints file's text with ``versions`` in it; names are told apart as package indexes do."""
    pins = {canonicalize_name(name): (name, version) for name, _, version in
            (line.partition("==") for line in text.splitlines() if line)}
    for name, version in versions.items():
        key = canonicalize_name(name)
        pins[key] = (pins[key][0] if key in pins else name, version)
    return "".join(f"{name}=={version}\n" for name, version in sorted(pins.values(), key=lambda pin: pin[0].lower()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?", default=Path("constraints.txt"))
    file: Path = parser.parse_args().file
    file.write_text(brought_up(file.read_text(encoding="utf-8"), installed()), encoding="utf-8")
