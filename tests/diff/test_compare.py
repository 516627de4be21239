"""Comparing two captures: every sort of change is found, told once and told where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from encyclopedia.across.releases import release_view
from encyclopedia.build.facts import NoFacts, read_facts, write_facts
from encyclopedia.build.families import Outcome
from encyclopedia.cli import app
from encyclopedia.diff import Difference, NothingToCompare, compare_families, lines_of
from encyclopedia.diff.compare import changes_of
from encyclopedia.diff.records import SORTS
from encyclopedia.facts import CheckpointFacts, FamilyFacts, HostFacts, UnconfirmedValue, ValueFacts
from tests.page.small_facts import checkpoint, family
from tests.page.test_derived import failed

OLD = family()


def with_checkpoint(**changes) -> FamilyFacts:
    """The small family with both of its shown checkpoints changed."""
    return OLD.model_copy(update={"checkpoints": [
        entry.model_copy(update=changes) if entry.available else entry for entry in OLD.checkpoints]})


def with_value(name: str, **changes) -> FamilyFacts:
    """The small family with one value changed wherever it is."""
    def changed(value: ValueFacts) -> ValueFacts:
        return value.model_copy(update=changes) if value.name == name else value

    def hosts(facts: CheckpointFacts) -> list[HostFacts]:
        return [host.model_copy(update={"values": [changed(value) for value in host.values]}) for host in facts.hosts]

    return with_checkpoint(hosts=hosts(OLD.checkpoints[0]))


KINDS = OLD.checkpoints[0].kinds
CHANGED = {
    "state": failed(model_type=OLD.model_type),
    "module": with_checkpoint(kinds=[kind.model_copy(update={"modules": {"layer": "Other"}}) for kind in KINDS]),
    "size": with_checkpoint(sizes={**OLD.checkpoints[0].sizes, "num_heads": 7}),
    "parameters": with_checkpoint(parameters=None),
    "kind": with_checkpoint(kinds=[kind.model_copy(update={"sizes": {"head_dim": 9}}) for kind in KINDS]),
    "value": with_checkpoint(hosts=OLD.checkpoints[0].hosts[:1]),
    "location": with_value("attention_scores", location="input"),
    "layout": with_value("attention_scores", shapes=[[1, 2, 9, 9], [1, 3, 9, 9]]),
    "condition": with_value("attention_scores", condition=None),
    "identity": with_checkpoint(kinds=[kind.model_copy(update={"identity": None}) for kind in KINDS]),
    "check": with_checkpoint(unconfirmed=[UnconfirmedValue(host="mlp", native="Dense", name="x", reason="differs")]),
    "quirk": with_checkpoint(quirks=["output-gate"]),
    "config": with_checkpoint(config={**OLD.checkpoints[0].config, "hidden_act": "gelu"}),
}


def test_the_same_facts_have_no_changes() -> None:
    found = compare_families([OLD], [OLD])
    assert (found.unchanged, found.changed) == (("tiny",), ())


@pytest.mark.parametrize("sort", SORTS)
def test_every_sort_of_change_is_found(sort: str) -> None:
    assert sort in {change.sort for change in changes_of(OLD, CHANGED[sort])}


@pytest.mark.parametrize("sort", sorted(set(SORTS) - {"state"}))
def test_nothing_else_is_told_and_it_is_told_once(sort: str) -> None:
    found = changes_of(OLD, CHANGED[sort])
    assert {change.sort for change in found} == {sort}
    assert len({(change.sort, change.what) for change in found}) == len(found)
    assert all(change.checkpoints == ("maker/Tiny-1", "maker/Tiny-2") for change in found)


def test_lines_of_the_printout_that_tell_values_are_no_change_of_modules() -> None:
    printout = [line for line in OLD.checkpoints[0].printout if ") -> " not in line]
    assert changes_of(OLD, with_checkpoint(printout=printout)) == ()
    change, = changes_of(OLD, with_checkpoint(printout=[*printout, "  (extra): New()"]))
    assert (change.old, change.new) == ([], ["(extra): New()"])


def test_families_that_came_and_went_and_failures() -> None:
    found = compare_families([OLD, family(model_type="old")], [OLD, family(model_type="new")],
                             new_failures={"tiny": ["notes: line 3 fails"]})
    assert (found.added, found.removed) == (("new",), ("old",))
    change, = found.changed[0].changes
    assert (change.sort, change.what, change.new) == ("check", "began to fail", "notes: line 3 fails")
    text = "\n".join(lines_of(found))
    assert "came: new" in text
    assert "checks: began to fail: nothing -> notes: line 3 fails" in text


def test_an_empty_side_is_an_error() -> None:
    with pytest.raises(NothingToCompare, match="old facts have none of the families"):
        compare_families([], [OLD])


def test_the_page_tells_every_change() -> None:
    found = compare_families([OLD], [CHANGED["location"]])
    view = release_view(found, ["tiny"])
    assert view.totals == (("Places of values", 1),)
    line, = view.families[0].sorts[0].lines
    assert line.startswith("model.layers[i].self_attn.attention_scores: ")
    assert line.endswith("input [maker/Tiny-1, maker/Tiny-2]")


def test_folders_of_facts_are_compared_from_the_command_line(tmp_path: Path) -> None:
    write_facts(tmp_path / "old", Outcome(families=[OLD]))
    write_facts(tmp_path / "new", Outcome(families=[CHANGED["size"]], failures={"other": ["it broke"]}))
    assert read_facts(tmp_path / "new").failures == {"other": ["it broke"]}
    assert read_facts(tmp_path / "old").families == [OLD]
    told = CliRunner().invoke(app, ["diff", str(tmp_path / "old"), str(tmp_path / "new")])
    assert told.exit_code == 0, told.output
    assert "sizes: num_heads: 2 -> 7 [maker/Tiny-1, maker/Tiny-2]" in told.output
    data = CliRunner().invoke(app, ["diff", "--json", str(tmp_path / "old"), str(tmp_path / "new")])
    assert Difference.model_validate_json(data.output) == compare_families([OLD], [CHANGED["size"]])


@pytest.mark.parametrize(("content", "said"), [
    (None, "index.json"), ("{", "no index of facts"), (json.dumps({"families": [{"model_type": "gone"}]}), "gone.json"),
    (json.dumps({"families": []}), "lists no family"),
    (json.dumps({"families": [{"model_type": "binary"}]}), "binary.json: no facts of this version"),
])
def test_a_folder_without_facts_is_an_error(tmp_path: Path, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / "index.json").write_text(content)
    (tmp_path / "binary.json").write_bytes(b"\xff\x00{")
    with pytest.raises(NoFacts, match=said):
        read_facts(tmp_path)
    told = CliRunner().invoke(app, ["diff", str(tmp_path), str(tmp_path)])
    assert told.exit_code == 1
    assert checkpoint().id not in told.output
