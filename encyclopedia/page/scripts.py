"""The modules that pages load in a browser, and what they import from one another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

#: An import of a neighbour: the word that its name follows, and the name.
IMPORT = re.compile(r"""(\bfrom|\bimport)\s+["']\./([\w-]+\.js)["']""")

_FOLDER = Path(__file__).resolve().parents[2] / "site_src" / "assets" / "js"


def imported(scripts: Sequence[str]) -> list[str]:
    """The modules that ``scripts`` import, directly or not, so that a page can ask for all of them at once.

    Raises:
        FileNotFoundError: for a script or an import that is not under ``site_src/assets/js``.
    """
    found = list(scripts)
    for name in found:
        found += [other for other in _neighbours(name) if other not in found]
    return found[len(scripts):]


@cache
def _neighbours(name: str) -> tuple[str, ...]:
    """What one module imports, each once; hundreds of pages ask for the same few."""
    text = (_FOLDER / name).read_text(encoding="utf-8")
    return tuple(dict.fromkeys(other for _, other in IMPORT.findall(text)))
