"""Entry point: the command line, where everything that it imports is installed."""

from __future__ import annotations

import sys

from encyclopedia.requirements import unmet_requirements


def main() -> None:
    """Run the command line, or end with one line that says what is to be installed first."""
    problem = unmet_requirements()
    if problem is not None:
        print(problem, file=sys.stderr)
        sys.exit(1)
    from encyclopedia.cli import main as run

    run()


if __name__ == "__main__":
    main()
