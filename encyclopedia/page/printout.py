"""The printout: ``print(model)`` as a tree whose equal blocks are shown once.

Lines become entries by their indentation, entries of an indexed list that have the same text become one
:class:`Repeated`, and both steps can be undone: :func:`unfold` and :func:`lines_of` give back the lines exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from encyclopedia.facts import CheckpointFacts
from encyclopedia.page.drawing import HOST_ROLES
from encyclopedia.page.ranges import Span, ranges


@dataclass(frozen=True)
class Entry:
    """One line of the printout with what is indented under it.

    Attributes:
        line: the line as printed, indentation included.
        children: the entries under it.
        closing: the line with the closing parenthesis, or ``None`` where there is none.
    """

    line: str
    children: tuple[Node, ...] = ()
    closing: str | None = None


@dataclass(frozen=True)
class Repeated:
    """Entries of an indexed list that differ only in their index.

    Attributes:
        spans: the indices as they were printed, ascending, each ``(first, last)``.
        indent: the whitespace in front of each.
        text: the line after index and count, such as ``LagunaDecoderLayer(``.
        children: what each of them holds.
        closing: the line that closes each of them.
    """

    spans: tuple[Span, ...]
    indent: str
    text: str
    children: tuple[Node, ...] = ()
    closing: str | None = None


Node = Entry | Repeated

_INDEXED = re.compile(r"( *)\((\d+)(?:-(\d+))?\): (?:(\d+) x )?(.*)", re.DOTALL)


def parse(lines: Sequence[str]) -> tuple[Entry, ...]:
    """The entries of ``lines``; any lines can be parsed, and :func:`lines_of` gives them back."""
    entries: list[Entry] = []
    at = 0
    while at < len(lines):
        line, indent = lines[at], _indent(lines[at])
        end = at + 1
        while end < len(lines) and _indent(lines[end]) > indent:
            end += 1
        closed = end < len(lines) and line.endswith("(") and lines[end] == " " * indent + ")"
        entries.append(Entry(line, parse(lines[at + 1:end]), lines[end] if closed else None))
        at = end + closed
    return tuple(entries)


def lines_of(nodes: Sequence[Node]) -> Iterator[str]:
    """The printed lines of ``nodes``, unfolded."""
    for node in unfold(nodes):
        yield node.line
        yield from lines_of(node.children)
        if node.closing is not None:
            yield node.closing


def fold(entries: Sequence[Entry]) -> tuple[Node, ...]:
    """``entries`` with the equal items of every indexed list gathered, at every depth."""
    folded = [replace(entry, children=fold(_entries(entry.children))) for entry in entries]
    items = [(position, item) for position, entry in enumerate(folded) if (item := _item(entry))]
    if not items or not _list_like([position for position, _ in items], [item.spans[0] for _, item in items]):
        return tuple(folded)
    groups: dict[tuple[object, ...], Repeated] = {}
    for _, item in items:
        key = (item.indent, item.text, item.children, item.closing)
        groups[key] = replace(item, spans=groups[key].spans + item.spans) if key in groups else item
    first, last = items[0][0], items[-1][0]
    return (*folded[:first], *groups.values(), *folded[last + 1:])


def unfold(nodes: Sequence[Node]) -> tuple[Entry, ...]:
    """The entries that :func:`fold` was given."""
    entries: list[Entry] = []
    items: list[tuple[Span, Entry]] = []
    for node in nodes:
        if isinstance(node, Repeated):
            items.extend((span, Entry(node.indent + _head(span) + node.text, unfold(node.children), node.closing))
                         for span in node.spans)
            continue
        entries.extend(_in_order(items))
        items = []
        entries.append(replace(node, children=unfold(node.children)))
    return (*entries, *_in_order(items))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _entries(nodes: Sequence[Node]) -> tuple[Entry, ...]:
    return tuple(node for node in nodes if isinstance(node, Entry))


def _item(entry: Entry) -> Repeated | None:
    match = _INDEXED.fullmatch(entry.line)
    if match is None:
        return None
    indent, first, last, _, text = match.groups()
    span = (int(first), int(last if last is not None else first))
    # Only the form torch prints can be put together again from its parts.
    if indent + _head(span) + text != entry.line:
        return None
    return Repeated((span,), indent, text, entry.children, entry.closing)


def _head(span: Span) -> str:
    first, last = span
    return f"({first}): " if first == last else f"({first}-{last}): {last - first + 1} x "


def _list_like(positions: Sequence[int], found: Sequence[Span]) -> bool:
    together = positions[-1] - positions[0] + 1 == len(positions)
    return together and all(before[1] < after[0] for before, after in pairwise(found))


def _in_order(items: Sequence[tuple[Span, Entry]]) -> list[Entry]:
    return [entry for _, entry in sorted(items, key=lambda item: item[0])]


@dataclass(frozen=True)
class Line:
    """One line of the folded view.

    Attributes:
        sort: ``module``, ``value`` or ``text`` (a line that is neither).
        name: the name it goes by, or the indices of a repeated block; the whole line for ``text``.
        native: the module's own name where ``name`` is the standard one, else ``None``.
        count: how many blocks the line stands for, or ``None``.
        class_name: the module's class, or the value's layout with its axes.
        rest: a module's arguments, a value's description.
        path: the expression that reaches it, in the first block it stands for.
        role: the role of the subtree, or ``None``.
        anchor: for a value, the id of its row in the tables, else ``None``.
        open: whether its children are shown at first.
    """

    sort: str
    name: str
    native: str | None = None
    count: int | None = None
    class_name: str | None = None
    rest: str | None = None
    path: str | None = None
    role: str | None = None
    anchor: str | None = None
    children: tuple[Line, ...] = ()
    open: bool = True


@dataclass(frozen=True)
class PrintoutView:
    """The printout for its template: the folded lines and the exact text."""

    lines: tuple[Line, ...]
    text: str
    exact_count: int
    folded_count: int


_ROOT = re.compile(r"([\w.]+)(\(.*)")
_MODULE = re.compile(r"\(([^()]+)\): ([\w.]+)(\(.*)")
_VALUE = re.compile(r"\((\w+)\)(?: -> (\w+ \[[^\]]*\]))?: (.*)")


@dataclass(frozen=True)
class _Reader:
    """What is known about names: which role a module or a value has, and which values each host's table lists."""

    module_roles: Mapping[str, str]
    value_roles: Mapping[str, str]
    listed: frozenset[tuple[str, str]] = frozenset()

    def line(self, node: Node, path: str, role: str | None, *, opened: bool = True) -> Line:
        """``node`` as a line of the view; ``path`` and ``role`` are its parent's."""
        if isinstance(node, Repeated):
            return self._repeated(node, path, role, opened=opened)
        text = node.line.strip(" ")
        value = _VALUE.fullmatch(text)
        if value and not node.children and (value[2] or value[1] in self.value_roles):
            return self._value(*value.groups(), path=path)
        module = _MODULE.fullmatch(text)
        if module:
            name, _, native = module[1].partition("/")
            role = self._module_role(name, native, role)
            path = f"{path}[{name}]" if name.isdecimal() else f"{path}.{name}"
            return Line("module", name, native or None, class_name=module[2], rest=_arguments(module[3]), path=path,
                        role=role, children=self.lines(node.children, path, role), open=opened)
        root = _ROOT.fullmatch(text)
        if root and not path:
            return Line("module", "model", class_name=root[1], rest=_arguments(root[2]), path="model",
                        children=self.lines(node.children, "model", role))
        return Line("text", text, role=role, children=self.lines(node.children, path, role))

    def lines(self, nodes: Sequence[Node], path: str, role: str | None) -> tuple[Line, ...]:
        """``nodes`` as lines; of several kinds of block only the first is open."""
        first = next((node for node in nodes if isinstance(node, Repeated)), None)
        return tuple(self.line(node, path, role, opened=not isinstance(node, Repeated) or node is first)
                     for node in nodes)

    def _repeated(self, node: Repeated, path: str, role: str | None, *, opened: bool) -> Line:
        numbers = [number for first, last in node.spans for number in range(first, last + 1)]
        path = f"{path}[{numbers[0]}]"
        class_name, _, rest = node.text.partition("(")
        return Line("module", ranges(numbers), count=len(numbers) if len(numbers) > 1 else None, class_name=class_name,
                    rest=_arguments("(" + rest), path=path, role=role,
                    children=self.lines(node.children, path, role), open=opened)

    def _value(self, name: str, layout: str | None, description: str, *, path: str) -> Line:
        host = "layer" if path.endswith("]") else path.rpartition(".")[2]
        return Line("value", name, class_name=layout, rest=description, path=f"{path}.{name}",
                    role=self.value_roles.get(name),
                    anchor=f"value-{host}-{name}" if (host, name) in self.listed else None)

    def _module_role(self, name: str, native: str, inherited: str | None) -> str | None:
        if inherited:
            return inherited
        found = self.module_roles.get(name) or self.module_roles.get(native)
        return found or ("norm" if "norm" in (native or name) else None)


def printout_view(checkpoint: CheckpointFacts) -> PrintoutView:
    """The printout of ``checkpoint`` for ``printout.html.jinja``."""
    nodes = fold(parse(checkpoint.printout))
    lines = _reader(checkpoint).lines(nodes, "", None)
    return PrintoutView(lines, "\n".join(checkpoint.printout), len(checkpoint.printout), sum(map(_count, lines)))


def _reader(checkpoint: CheckpointFacts) -> _Reader:
    module_roles = {"embed_tokens": "stream", "lm_head": "stream", "norm": "norm"}
    for kind in checkpoint.kinds:
        for sublayer in kind.sublayers:
            module_roles[sublayer.host] = HOST_ROLES.get(sublayer.host, "attention")
            module_roles |= {norm: "norm" for norm in (sublayer.norm, sublayer.post_norm) if norm}
    values = [(host.name, value) for host in checkpoint.hosts for value in host.values]
    return _Reader(module_roles, {value.name: value.role for _, value in values},
                   frozenset((host, value.name) for host, value in values))


def _arguments(text: str) -> str | None:
    return text if text not in ("(", "()") else None


def _count(line: Line) -> int:
    return 1 + sum(map(_count, line.children))
