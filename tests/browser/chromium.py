"""Finding a Chromium to test with."""

from __future__ import annotations

import shutil

from playwright.sync_api import Browser, Error, Playwright

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync"]

ON_PATH = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def launch(playwright: Playwright) -> Browser:
    """Playwright's own browser where it is installed, else one on the PATH.

    Raises:
        RuntimeError: where there is neither, saying how to get one.
    """
    try:
        return playwright.chromium.launch(args=ARGUMENTS)
    except Error:
        path = next((found for name in ON_PATH if (found := shutil.which(name))), None)
    if path is None:
        raise RuntimeError("no browser to test with: run `playwright install chromium`, or install Chromium or Chrome")
    return playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
