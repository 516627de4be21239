"""``python -m encyclopedia``."""

from encyclopedia.cli import main

if __name__ == "__main__":
    main()
