"""A value's page as plain Markdown: the same view, for what reads text."""

from __future__ import annotations

from collections.abc import Iterator

from encyclopedia.across.values import Part, ValueView
from encyclopedia.page.plain import bullets, one_line, shapes, table


def value_text(view: ValueView) -> str:
    """The page of a value as Markdown."""
    return "\n\n".join(_parts(view)) + "\n"


def _parts(view: ValueView) -> Iterator[str]:
    yield f"# {view.expression}"
    yield f"> {one_line(view.value.description)}."
    yield f"{view.having} of {view.total} verified families have it."
    if view.layouts:
        yield "## Layout"
        yield bullets(f"`{layout.name} [{' '.join(layout.dims)}]`, in {layout.families} families"
                      + (f" ({', '.join(layout.flavours)})" if layout.flavours else "") for layout in view.layouts)
    for title, others in (("Made from", view.made_from), ("Goes into", view.goes_into)):
        if others:
            yield f"{title}: {', '.join(f'`{other.name}`' for other in others)}."
    if view.example is not None:
        yield f"## Example, on `{view.example.checkpoint}`"
        code = [view.example.load, view.example.read, view.example.write]
        yield from (f"```python\n{block.source.strip()}\n```" for block in code if block is not None)
    named = [(line, block) for line, block in view.elsewhere if line.text is not None]
    if named or view.lens:
        yield "## Elsewhere"
        yield bullets([
            *(f"{line.title}: `{line.text}`" for line, block in named if block is None),
            *(f"TransformerLens: `{name.hook}` in {name.families} families" + (f", {name.note}" if name.note else "")
              for name in view.lens)])
    for part in view.parts:
        if part.count:
            yield f"## {part.meaning[:1].upper()}{part.meaning[1:]}: {part.count}"
            yield from _families(part)


def _families(part: Part) -> Iterator[str]:
    for reason in part.reasons:
        if reason.text is not None:
            yield f"{reason.text[:1].upper()}{reason.text[1:]}:"
        if reason.rows:
            yield table(("family", "checkpoint", "read at", "shape at batch 1, seq 8"),
                        [(f"`{row.model_type}`", f"`{row.checkpoint}`", f"`{row.location}`",
                          shapes(row.shapes) + (f" ({row.blocks})" if row.blocks else "")) for row in reason.rows])
        if reason.lacking:
            yield ", ".join(f"`{family.model_type}`" for family in reason.lacking)
