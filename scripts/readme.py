"""Write the table of families by sort into the README, from the data of the built site.

    python scripts/readme.py [--check]

With ``--check`` nothing is written, and a table that is not the site's ends in an error.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from encyclopedia.across.sorts_table import sorts_table
from encyclopedia.build.facts import families_in

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BETWEEN = re.compile(r"(?<=<!-- families by sort -->\n).*?(?=<!-- end -->)", re.DOTALL)


def table() -> str:
    """The table over every family in the site's data."""
    return sorts_table(families_in(ROOT / "site_src" / "data"))


def main() -> int:
    """Write the table, or compare it."""
    text = README.read_text(encoding="utf-8")
    written, tables = BETWEEN.subn(lambda _: table(), text)
    if tables != 1:
        print("README.md: no table of families stands between its two marks: put them back, then run scripts/readme.py")
        return 1
    if "--check" in sys.argv[1:]:
        if written != text:
            print("README.md: its table of families by sort is not the built site's: run scripts/readme.py")
            return 1
        return 0
    README.write_text(written, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
