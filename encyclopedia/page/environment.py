"""The one Jinja environment: every template is escaped here and nowhere else.

What only a script shows stands in the page as the text of a ``<script type="text/html">``: nothing that reads the page
(a Markdown or search engine, a browser) parses it before it is asked for. :func:`inert` makes such text.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup


@cache
def environment(templates: Path) -> Environment:
    """The environment over the folder ``templates``; a name a template misspells is an error."""
    made = Environment(
        loader=FileSystemLoader(templates),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters["inert"] = inert
    # A page that is one file has no others beside it.
    made.globals["on_site"] = True
    return made


def inert(html: str) -> Markup:
    """``html`` as the text of a script element, from which ``thaw`` in ``assets/js/elements.js`` makes it again.

    Raises:
        ValueError: where it has a comment, which would change how a browser reads the element's end.
    """
    if "<!--" in html:
        raise ValueError("a part of a page that is kept as text has an HTML comment; write it as a template's comment")
    # Markup would escape what it puts in.
    return Markup(str(html).replace("</script", "<\\/script"))
