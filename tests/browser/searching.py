"""Searching a site as its readers do, in the theme of either engine."""

from __future__ import annotations

from playwright.sync_api import Locator, Page


def finds(page: Page, query: str) -> Locator:
    """The links to what a search for ``query`` finds, of which there are none before it has."""
    page.keyboard.press("/")
    dialog = page.get_by_role("dialog", name="Search").filter(has=page.locator("input"))
    dialog.locator("input").first.fill(query)
    # Material's search listens to keys.
    page.keyboard.press("End")
    return dialog.locator("a[href]")
