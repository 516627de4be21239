"""Facts full of hostile text: none of it becomes markup, on a page, after Markdown or in a page that is one file."""

from __future__ import annotations

import itertools
import json
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown import Markdown
from mkdocs.utils.meta import get_data

from encyclopedia.build.project import Project
from encyclopedia.facts import FamilyFacts
from encyclopedia.page.document import document
from encyclopedia.page.markdown import family_markdown
from encyclopedia.page.render import render_checks, render_family
from encyclopedia.standalone.page import page_of
from encyclopedia.standalone.reading import config_from
from tests.fuzz.inputs import FUZZ, HOSTILE, texts
from tests.fuzz.tiny import TINY
from tests.page.small_facts import family

ROOT = Path(__file__).parents[2]
PROJECT = Project(ROOT)
NOTES = (PROJECT.notes / "_derived.md").read_text(encoding="utf-8")

#: Facts that are free text: from a config or from a class. A docstring is Markdown of the project's own.
FREE = frozenset((
    "title", "subtitle", "config_source", "reason", "architecture", "label", "attention_type", "class_name",
    "description", "where", "condition", "text", "classes", "printout", "native", "serves", "config", "dtype",
    "location", "config_known_from", "path", "layout", "dims"))

#: The tag of what a script element holds.
_TEXT, _DATA = "text/html", "application/json"


class _Markup(HTMLParser):
    """The markup of a page: every pair of an element and one of its attributes, and scripts by what they are."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: set[tuple[str, str]] = set()
        self.comments: list[str] = []
        self._held = ""
        self._type: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add((tag, ""))
        self.found |= {(tag, name) for name, _ in attrs}
        if tag == "a":
            address = dict(attrs).get("href") or ""
            assert ":" not in address.split("/")[0] or address.startswith(("https://", "http://", "#")), address
        if tag == "script":
            self._type = dict(attrs).get("type") or ""
            self._held = ""

    def handle_data(self, data: str) -> None:
        if self._type is not None:
            self._held += data

    def handle_endtag(self, tag: str) -> None:
        if tag != "script" or self._type is None:
            return
        if self._type == _TEXT:
            self.found |= markup(self._held.replace("<\\/script", "</script"))
        elif self._type == _DATA:
            json.loads(self._held)
        self._type = None

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


def markup(html: str) -> set[tuple[str, str]]:
    parser = _Markup()
    parser.feed(html)
    parser.close()
    assert not parser.comments
    return parser.found


def through_markdown(content: str) -> str:
    settings_of = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    extensions = ["toc", "tables", "fenced_code", *(name for name in settings_of["markdown_extensions"]
                                                    if isinstance(name, str))]
    return Markdown(extensions=extensions).convert(content)


def replaced(value: Any, draw: Any, free: bool = False) -> Any:
    """``value`` with its free text replaced by what ``draw`` gives."""
    if isinstance(value, dict):
        return {(draw() if free and isinstance(entry, dict | list) else key): replaced(entry, draw, free or key in FREE)
                for key, entry in value.items()}
    if isinstance(value, list):
        return [replaced(entry, draw, free) for entry in value]
    return draw() if free and isinstance(value, str) else value


def family_with(draw: Any) -> FamilyFacts:
    facts = family().model_dump(by_alias=True)
    for index, checkpoint in enumerate(facts["checkpoints"]):
        checkpoint["id"] = f"{index}{draw()}" if index else facts["reference"]
    return FamilyFacts.model_validate(replaced(facts, draw))


@cache
def allowed(render: Any) -> frozenset[tuple[str, str]]:
    """The markup that templates write around text without any."""
    found = markup(render(family(), NOTES, PROJECT.templates))
    for words in (("word",), ("one", "two"), ("one", "two", "three", "four"), ("",), ("w" * 3000,),
                  ("owner/name", "router_logits", "`c`"), ("`router_logits`",),
                  ("Name(", "(name): Name(one=1)", ")"), ("call('x')",), ("(name) -> Layout [a b]: text",)):
        turn = itertools.cycle(words)
        found |= markup(render(family_with(lambda turn=turn: next(turn)), NOTES, PROJECT.templates))
    return frozenset(found)


def pages(facts: FamilyFacts) -> None:
    for render in (render_family, render_checks):
        page = render(facts, NOTES, PROJECT.templates)
        content, meta = get_data(page)
        assert meta["template"] == "family.html"
        assert set(meta) <= {"title", "description", "template", "hide", "scripts", "styles", "modules", "early",
                             "first_view", "search"}
        written = markup(content)
        assert written <= allowed(render), written - allowed(render)
        assert markup(through_markdown(content)) == written


@settings(FUZZ, max_examples=150)
@given(data=st.data())
def test_a_page_has_the_markup_of_its_templates_and_no_more(data):
    few = data.draw(st.lists(texts, min_size=1, max_size=4))
    turn = itertools.cycle(few)
    pages(family_with(lambda: next(turn)))


def test_every_hostile_text_on_its_own_place():
    for text in HOSTILE:
        pages(family_with(lambda text=text: text))


@settings(FUZZ, max_examples=500)
@given(title=texts, description=texts)
def test_the_front_matter_stays_whole(title, description):
    content, meta = get_data(document("<p>x</p>", hue=0, title=title, description=description))
    assert content.strip() == "<p>x</p>"
    assert meta["template"] == "family.html"
    for said in (meta.get("title", ""), meta.get("description", "")):
        assert markup(f'<meta content="{said}">') == {("meta", ""), ("meta", "content")}
        assert markup(f"<title>{said}</title>") == {("title", "")}


@settings(FUZZ, max_examples=60)
@given(text=texts)
def test_markdown_for_machines_is_written(text):
    assert family_markdown(family_with(lambda: text), NOTES).endswith("\n")


@cache
def facts_of_llama() -> Any:
    from encyclopedia.standalone.capturing import captured

    return captured(config_from(json.dumps(TINY["llama"]).encode(), "local/tiny", "config.json").record)[0]


def one_file(said: str) -> str:
    local = config_from(json.dumps({**TINY["llama"], "said": said, "more": {said: [said]}}).encode(), "local/tiny", "x")
    told = {key: local.record.config[key] for key in ("said", "more")}
    facts = facts_of_llama()
    return page_of(local, facts.model_copy(update={"config": facts.config | told}), PROJECT)


@settings(FUZZ, max_examples=40)
@given(said=texts)
def test_one_file_has_the_markup_of_its_templates_and_asks_for_nothing(said):
    page = one_file(said)
    assert markup(page) <= markup(one_file("word"))
    page.encode("utf-8")
    assert "\x00" not in page
