"""Putting a page's sheets, modules and links into the page itself."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, urljoin

from markupsafe import Markup, escape

from encyclopedia.build.vendor import folders_of
from encyclopedia.page.scripts import IMPORT

_LINK = re.compile(r'(<a\b[^>]*?) href="([^"]*)"')
#: What modules are called in the page: a name without a path, which an import map may explain.
_PREFIX = "page/"


class CannotInline(Exception):
    """A file that cannot stand inside a page."""


def sheets(paths: Sequence[Path]) -> Markup:
    """The text of a ``<style>``: the sheets, one after another.

    Raises:
        CannotInline: where one would ask for a further file, or end the element.
    """
    texts = []
    for path in paths:
        text = re.sub(r"/\*# sourceMappingURL=.*?\*/", "", path.read_text(encoding="utf-8")).strip()
        outside = [found for found in re.findall(r"""url\(\s*["']?([^"')]*)|@import""", text)
                   if not found.startswith(("data:", "#"))]
        if outside or "</style" in text.lower():
            raise CannotInline(f"{path.name}: it asks for {outside[0] or 'another sheet'}" if outside
                               else f"{path.name}: it ends the element it stands in")
        texts.append(text)
    return Markup("\n".join(texts))


def material_sheets() -> list[Path]:
    """The sheets of the installed Material for MkDocs.

    Raises:
        CannotInline: where it has none.
    """
    for root in folders_of("material"):
        folder = root / "templates" / "assets" / "stylesheets"
        found = [path for name in ("main", "palette") for path in sorted(folder.glob(f"{name}.*.min.css"))]
        if found:
            return found
    raise CannotInline("mkdocs-material: the installed package has no stylesheets; install the requirements again")


def modules(names: Sequence[str], folder: Path, *, instead: dict[str, Path] | None = None) -> tuple[Markup, Markup]:
    """The import map and the script that load modules from the page itself.

    Args:
        names: modules of ``folder`` to run, in order.
        folder: where they are.
        instead: by name, a file that takes a module's place.

    Returns:
        The text of a ``<script type="importmap">`` and of a ``<script type="module">``.
    """
    waiting, found = list(names), {}
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        text = (instead or {}).get(name, folder / name).read_text(encoding="utf-8")
        waiting += [imported for _, imported in IMPORT.findall(text)]
        rewritten = IMPORT.sub(rf'\1 "{_PREFIX}\2"', text)
        if "import.meta.url" in text or re.search(r"""(from|import)\s+["']\.""", rewritten):
            raise CannotInline(f"{name}: it asks for a file beside it")
        found[name] = f"data:text/javascript;charset=utf-8,{quote(rewritten)}"
    table = {"imports": {f"{_PREFIX}{name}": found[name] for name in sorted(found)}}
    start = "\n".join(f'import "{_PREFIX}{name}";' for name in names)
    return json_text(json.dumps(table, indent=0)), Markup(start)


def json_text(text: str) -> Markup:
    """JSON as the text of a script element, which nothing in it can end."""
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def script_text(text: str) -> str:
    """A classic script as the text of its element, which nothing in it can end."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def relinked(html: str, address: str | None) -> str:
    """``html`` with no link to a file beside it.

    Args:
        html: a family's page, the page of its checks among it.
        address: the address on a site that its links are relative to; without one, a link elsewhere is none.
    """
    # The checks stand on the same page.
    html = html.replace('"checks/#', '"#')

    def link(found: re.Match[str]) -> str:
        start, href = found.groups()
        if href.startswith("#") or re.match(r"https?://", href):
            return found[0]
        return f'{start} href="{escape(urljoin(address, href))}"' if address else start

    return _LINK.sub(link, html)
