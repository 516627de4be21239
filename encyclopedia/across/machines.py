"""The page about the data: its files, every key in a line, and code that loads it."""

from __future__ import annotations

import ast
import inspect
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from encyclopedia import facts
from encyclopedia.across.page import render_page
from encyclopedia.across.presence import key_of
from encyclopedia.across.values import place_of
from encyclopedia.facts import SCHEMA, Fact, FamilyFacts
from encyclopedia.page.code import CodeBlock, code_block
from encyclopedia.page.derived import title_of
from encyclopedia.page.markdown import NAME
from encyclopedia.page.versions import versions_of
from encyclopedia.vocabulary import VOCABULARY

#: Keys of the facts whose declarations say no more than their names.
PLAIN: Mapping[str, Mapping[str, str]] = {
    "FamilyFacts": {
        "schema": "the number of this format",
        "model_type": "the family's name in transformers",
        "title": "the family's name on its page",
        "subtitle": "one sentence on what differs from a plain Llama block",
        "reference": "id of the checkpoint that the page opens with",
        "family_module": "the Python module that declares what could not be derived",
        "sources": "the project's files about the family",
        "versions": "what the facts were captured with",
        "notes": "what running the notes showed",
        "checkpoints": "the family's checkpoints, those that are not shown among them",
    },
    "Versions": {
        "transformers": "version of transformers", "torch": "version of PyTorch", "nnsight": "version of nnsight",
        "encyclopedia": "version of this project",
    },
    "CheckpointFacts": {
        "id": "id on the Hugging Face hub, or the model_type where no public checkpoint is recorded",
        "available": "whether it is shown",
        "architecture": "the native class of the whole model",
        "config_source": "where the recorded config is from",
        "sizes": "sizes by name; what differs between blocks stands with the kinds",
        "config": "the config's entries",
        "parameters": "how many parameters it has",
        "kinds": "sorts of blocks, each with what its blocks have in common",
        "hosts": "the values, by the module that carries them",
        "module_classes": "which of this project's classes serves which native one",
        "checks": "how much of the page was run",
    },
    "KindFacts": {
        "blocks": "indices of the blocks",
        "attention_type": "the name that the config gives the blocks' attention",
        "sublayers": "the block's sublayers in forward order",
    },
    "HostFacts": {"values": "the values it carries"},
    "ValueFacts": {
        "name": "the attribute that reads it inside a trace",
        "role": "stream, attention, mlp or norm",
        "description": "what it is, in one sentence without a full stop",
    },
    "NativePlace": {"hook": "the plain PyTorch hook that reads it there"},
    "LensFacts": {"host": "name of the host", "value": "the standard value"},
    "SublayerFacts": {
        "edges": "which of its values are made from which",
        "parts": "a mixture's panels; empty elsewhere",
    },
    "EdgeFacts": {"source": "the value that is read", "target": "the value that is made from it"},
    "PartFacts": {"class_name": "native class of the child"},
    "ModuleClass": {
        "host": "name of the host", "native": "the class in transformers", "serves": "the class of this project",
    },
    "Checks": {
        "values": "values confirmed and values served", "identity": "how the block's equation held",
        "snippets": "the notes' blocks of code",
    },
    "Measured": {"checked": "how many were run", "total": "how many there are"},
    "IdentityCheck": {
        "blocks": "on how many blocks it was measured",
        "max_error": "largest error over them, in units of the output's largest magnitude",
    },
    "SnippetCheck": {"run": "how many ran", "total": "how many there are"},
    "UnconfirmedValue": {"name": "the value", "reason": "what a run expected there and what it found"},
    "Failure": {"reason": "what it said"},
    "SourceLink": {"label": "what it is", "path": "its path in the project"},
    "RoleParameters": {"total": "how many parameters"},
    "ParameterCounts": {"total": "all parameters, tied ones once"},
    "Cost": {"amount": "the figure"},
    "CacheEntry": {"blocks": "how many blocks keep it"},
    "NotesFacts": {"snippets": "the notes' Python blocks, in page order"},
}

#: Keys of ``data/index.json`` and of its entries, those that stand there.
INDEX: Mapping[str, str] = {
    "schema": "the number of the format of the families' files",
    "families[]": "an entry per family",
    "families[].model_type": "the family's name in transformers, and the name of its file",
    "families[].title": "its name on its page",
    "families[].subtitle": "its sentence",
    "families[].state": "verified, or failed where nothing about it could be verified",
    "families[].annotated": "whether people wrote a module and notes for it",
    "families[].group": "its sort on the front page, by how the blocks of its reference checkpoint are made",
    "families[].quirks": "slugs of what departs from a plain block",
    "families[].mixers": "what its blocks mix tokens with: softmax, recurrent, both, none or unknown",
    "families[].mlps": "whether its checkpoints have a mixture of experts: dense, mixture, or both where they differ",
    "families[].architectures": "classes that its checkpoints are loaded as",
    "families[].checkpoints": "ids of its checkpoints",
    "families[].parameters": "fewest and most parameters of the checkpoints shown, in all and those a token uses",
    "families[].values": "names of the standard values that any checkpoint shown has",
    "families[].counts": "what was checked, over the checkpoints shown; the keys are those of the page of checks",
    "families[].versions": "what its facts were captured with",
}


@dataclass(frozen=True)
class Key:
    """A key of the data.

    Attributes:
        path: from the file's root; ``[]`` stands for each entry of a list and ``{}`` for each of a mapping.
        kind: its JSON type, in a word or two.
        said: what it is.
    """

    path: str
    kind: str
    said: str


@dataclass(frozen=True)
class MachinesView:
    """The page for ``machines.html.jinja``; ``family`` and ``value`` are those whose files it links to."""

    schema: int
    family: str
    title: str
    value: str
    markdown: str
    families: int
    example: CodeBlock
    index: tuple[Key, ...]
    keys: tuple[Key, ...]
    versions: Mapping[str, tuple[str, ...]]


def machines_view(families: Sequence[FamilyFacts], index: Mapping[str, Any]) -> MachinesView:
    """The page over all families.

    Args:
        families: all of them.
        index: what ``data/index.json`` holds.

    Raises:
        ValueError: where there is no family, or a key that nothing describes.
    """
    if not families:
        raise ValueError("no family's data is there to document; build one first, as `encyclopedia build doge` does")
    shown = max(families, key=lambda family: (family.failure is None, family.annotated, len(family.checkpoints)))
    return MachinesView(
        schema=SCHEMA,
        family=shown.model_type,
        title=title_of(shown),
        value=place_of(key_of(VOCABULARY[0])),
        markdown=NAME,
        families=len(families),
        example=code_block(example(shown.model_type), "python"),
        index=tuple(_index_keys(index)),
        keys=tuple(keys_of(FamilyFacts)),
        versions=versions_of(families),
    )


def render_machines(families: Sequence[FamilyFacts], index: Mapping[str, Any], templates: Path) -> str:
    """The page about the data; ``index`` is what ``data/index.json`` holds."""
    return render_page("machines", templates, title="Data for programs", styles=["checks.css", "values-across.css"],
                       description="The facts as JSON with a schema, and every page as Markdown.",
                       view=machines_view(families, index))


def _index_keys(index: Mapping[str, Any]) -> Iterator[Key]:
    entries = dict.fromkeys(key for family in index["families"] for key in family)
    for path in [*(f"{key}[]" if key == "families" else key for key in index),
                 *(f"families[].{key}" for key in entries)]:
        if path not in INDEX:
            raise ValueError(f"data/index.json: {path} has no description: "
                             f"put one in INDEX of encyclopedia/across/machines.py")
        yield Key(path, "", INDEX[path][:1].upper() + INDEX[path][1:])


def example(model_type: str, root: str = "data") -> str:
    """Three lines that load the values of a family's checkpoints as a table.

    Args:
        model_type: the family.
        root: address of the folder of data.
    """
    return (f'import pandas\n'
            f'family = pandas.read_json("{root}/{model_type}.json", typ="series").to_dict()\n'
            f'values = pandas.json_normalize(family["checkpoints"], ["hosts", "values"], ["id", ["hosts", "host"]])\n')


def keys_of(model: type[Fact], path: str = "") -> Iterator[Key]:
    """Every key of ``model`` with those of what stands under it, in the order of the data.

    Raises:
        ValueError: for a key that neither its declaration nor :data:`PLAIN` describes.
    """
    declared = _declared(model.__name__)
    for field, about in model.model_fields.items():
        name = about.alias or field
        said = declared.get(field) or PLAIN.get(model.__name__, {}).get(name)
        if said is None:
            raise ValueError(f"{model.__name__}.{name} has no description: put one above it in encyclopedia/facts.py "
                             f"(#: ...) or in PLAIN of encyclopedia/across/machines.py")
        inner, kind, marks = _type(about)
        here = f"{path}.{name}" if path else name
        yield Key(f"{here}{marks}", kind, said[:1].upper() + said[1:])
        if inner is not None:
            yield from keys_of(inner, f"{here}{marks}")


def _declared(class_name: str) -> dict[str, str]:
    """The comments above a class's fields, by field."""
    source = inspect.getsource(facts)
    lines = source.splitlines()
    tree = next(node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == class_name)
    found: dict[str, str] = {}
    for node in tree.body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        said: list[str] = []
        at = node.lineno - 2
        while lines[at].strip().startswith("#:"):
            said.insert(0, lines[at].strip().removeprefix("#:").strip())
            at -= 1
        if said:
            found[node.target.id] = _readable(" ".join(said))
    return found


def _readable(comment: str) -> str:
    """A comment of the facts as a line about the JSON."""
    text = re.sub(r":\w+:`([^`]+)`", r"`\1`", comment.replace("``", "`")).replace("`None`", "`null`")
    return re.sub(r"`\w+Facts\.(\w+)`", r"`\1`", text).rstrip(".")


def _type(about: FieldInfo) -> tuple[type[Fact] | None, str, str]:
    """The facts that a field holds, if it does, its JSON type in words, and ``[]`` or ``{}`` for what it is in."""
    options = [option for option in _options(about.annotation) if option is not type(None)]
    nullable = " or null" if len(options) < len(_options(about.annotation)) else ""
    inner, kind, marks = _named(options[0])
    return inner, kind + nullable, marks


_WORDS = {str: "text", int: "integer", float: "number", bool: "true or false"}


def _named(annotation: Any) -> tuple[type[Fact] | None, str, str]:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is list:
        inner, kind, marks = _named(next(option for option in _options(arguments[0]) if option is not type(None)))
        return inner, "list" if inner else f"list of {kind}", f"[]{marks}"
    if origin is dict:
        inner, kind, marks = _named(arguments[1])
        return inner, "mapping" if inner else f"mapping to {kind}", "{}" + marks
    if isinstance(annotation, type) and issubclass(annotation, Fact):
        return annotation, "object", ""
    return None, _WORDS.get(annotation, "any"), ""


def _options(annotation: Any) -> tuple[Any, ...]:
    union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    return typing.get_args(annotation) if union else (annotation,)
