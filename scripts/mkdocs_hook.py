"""MkDocs hook: write the pages before the site is built, and rebuild when what they are made from changes.

Only MkDocs runs it; a site engine without hooks builds from pages that ``encyclopedia build`` has written.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from encyclopedia.build.site import PAGES_WRITTEN

ROOT = Path(__file__).resolve().parent.parent

serving = False

log = logging.getLogger("mkdocs.hooks.encyclopedia")


def on_startup(command: str, dirty: bool) -> None:
    """Remember whether the site is served while it is written."""
    global serving
    serving = command == "serve"


def on_config(config: Any) -> Any:
    """Serve without the policy: the script by which MkDocs reloads a page stands in it, which the policy forbids."""
    if serving:
        config.extra.pop("policy", None)
    return config


def on_pre_build(config: Any) -> None:
    """Bring the pages up to date in a process of its own, so that changed code is read afresh."""
    if os.environ.get(PAGES_WRITTEN):
        return
    result = subprocess.run([sys.executable, "-m", "encyclopedia", "pages"], cwd=ROOT, check=False)
    if result.returncode:
        log.warning("some pages were not written (see above); the site is built from the others")


def on_serve(server: Any, config: Any, builder: Any) -> Any:
    """Watch what pages are made from, beside the documents that MkDocs watches itself."""
    for folder in ("templates", "encyclopedia"):
        server.watch(str(ROOT / folder))
    return server
