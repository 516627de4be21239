"""``llms.txt``: what the site is and where its text is, for language models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from encyclopedia.across.presence import key_of
from encyclopedia.across.values import place_of
from encyclopedia.facts import FamilyFacts
from encyclopedia.page.derived import subtitle_of, title_of
from encyclopedia.page.markdown import NAME
from encyclopedia.page.mixers import by_group
from encyclopedia.vocabulary import HOSTS, VOCABULARY

_SUMMARY = ("What every internal tensor of an open language model is called, its shape in each block, and where it is "
            "read with nnsight. Every claim was checked by running it.")


def llms_text(families: Sequence[FamilyFacts]) -> str:
    """The file, with a line per family that leads to its page as Markdown."""
    return "\n\n".join(_parts(families)) + "\n"


def _parts(families: Sequence[FamilyFacts]) -> Iterator[str]:
    yield "# the encyclopedia"
    yield f"> {_SUMMARY}"
    yield ("A family is one `model_type` of transformers. Values have the same names in every family and are read "
           "inside `with model.trace(prompt):` on a `StandardizedTransformer`, as in "
           "`model.layers[3].self_attn.attention_scores.save()`. Addresses are seen from this file.")
    yield "## About all families"
    yield _list((
        ("Values", "values/", "every standard value and which families have it"),
        ("Models", "data/models.csv", "a row of sizes per checkpoint, as a table"),
        ("TransformerLens", "names/transformer-lens/", "what it calls the values, and where the tensors differ"),
        ("Releases", "releases/", "what releases of transformers changed in each family"),
        ("Data", "machines/", "the facts as JSON, key by key"),
        ("Index", "data/index.json", "all families with their checkpoints and counts"),
        ("Schema", "data/schema.json", "the JSON Schema of a family’s facts"),
        ("Checks", "checks/", "what was checked over the whole site"),
    ))
    for group, found in by_group(families):
        yield f"## Families: {group.title}"
        yield _list((title_of(family), f"families/{family.model_type}/{NAME}",
                     f"`{family.model_type}`. {subtitle_of(family)}") for family in found)
    for host, expression in HOSTS.items():
        yield f"## Values of {expression}"
        yield _list((value.name, f"values/{place_of(key_of(value))}/{NAME}",
                     f"{value.layout or 'a plain Python value'}. {value.description}.")
                    for value in VOCABULARY if value.host == host)


def _list(entries: Iterable[tuple[str, str, str]]) -> str:
    return "\n".join(f"- [{name}]({address}): {' '.join(said.split())}" for name, address, said in entries)
