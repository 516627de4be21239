"""The cache: whole entries, and keys that follow what facts depend on."""

from __future__ import annotations

from pathlib import Path

from encyclopedia.build.cache import FactsCache, facts_key, snippets_key
from encyclopedia.checkpoints import recorded
from encyclopedia.facts import NotesFacts, SnippetFacts

FACTS = NotesFacts(snippets=[SnippetFacts(line=3, ran_on=["a/b"], reason=None)])


def test_what_is_put_comes_back(tmp_path: Path) -> None:
    store = FactsCache(tmp_path, NotesFacts)
    assert store.get("key") is None
    store.put("key", FACTS)
    assert store.get("key") == FACTS
    assert [path.name for path in tmp_path.iterdir()] == ["key.json"]


def test_an_entry_cut_short_counts_as_missing(tmp_path: Path) -> None:
    store = FactsCache(tmp_path, NotesFacts)
    store.put("key", FACTS)
    path = tmp_path / "key.json"
    path.write_text(path.read_text()[:-5])
    assert store.get("key") is None


def test_a_key_follows_the_record_and_the_notes() -> None:
    record = recorded("SmallDoge/Doge-20M")
    other = record.model_copy(update={"config": {**record.config, "num_hidden_layers": 9}})
    assert facts_key("doge", record) == facts_key("doge", record)
    assert facts_key("doge", record) != facts_key("doge", other)
    assert facts_key("doge", record) != facts_key("laguna", record)
    assert snippets_key("doge", [record], "a") != snippets_key("doge", [record], "b")
