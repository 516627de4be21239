"""Standard values over families: which have them, what their pages say, and their examples, run."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from encyclopedia.across.example import best_checkpoint, example_of
from encyclopedia.across.presence import Presence, State, key_of, presence_of, survey
from encyclopedia.across.values import FLAVOUR_NAMES, render_value, value_view
from encyclopedia.capture.snippets import run_snippets
from encyclopedia.checkpoints import recorded
from encyclopedia.facts import CheckpointFacts, FamilyFacts, HostFacts, LensFacts, NativePlace, UnconfirmedValue
from encyclopedia.notes import Snippet
from encyclopedia.vocabulary import FLAVOURS, HOSTS, VOCABULARY, Value, values_of
from tests.page.small_facts import CONDITION, checkpoint, family, kind, value
from tests.page.test_derived import failed

TEMPLATES = Path(__file__).parents[2] / "templates"

CACHE = "only in a call that keeps a cache (use_cache=True)"
LATER = "only in a call that goes on from a cache; the first call finds none"


def of(host: str, name: str) -> Value:
    return values_of(host)[name]


def with_value(facts: CheckpointFacts, host: str, **changes) -> CheckpointFacts:
    """``facts`` with its first value of ``host`` changed."""
    hosts = [entry if entry.name != host else
             entry.model_copy(update={"values": [entry.values[0].model_copy(update=changes), *entry.values[1:]]})
             for entry in facts.hosts]
    return facts.model_copy(update={"hosts": hosts})


def presence(host: str, name: str, facts: CheckpointFacts | None = None) -> Presence:
    return presence_of(facts or checkpoint(), of(host, name))


def test_a_value_of_every_block_is_everywhere() -> None:
    found = presence("self_attn", "attention_output")
    assert (found.state, found.reason, found.present) == (State.EVERYWHERE, None, None)


def test_a_value_of_one_kind_is_on_some_blocks() -> None:
    found = presence("mlp", "router_logits")
    assert (found.state, found.reason, found.present) == (State.BLOCKS, None, "on blocks 1, 3")


def test_a_load_that_lacks_a_value_is_a_condition() -> None:
    assert presence("self_attn", "attention_scores").state is State.CONDITION
    lacking = {"default": {"model.layers[i].self_attn": {"attention_scores": CONDITION}}, "eager": {}}
    found = presence("self_attn", "attention_scores", checkpoint(support=lacking))
    assert (found.state, found.reason) == (State.CONDITION, CONDITION)


def test_a_condition_that_is_about_blocks_is_none_of_the_load() -> None:
    said = "a mixture has no such value (on 2 of 4 blocks, the first is 1)"
    facts = with_value(checkpoint(), "self_attn", condition=said, shapes=[[1, 2, 8, 8], None])
    lacking = {"model.layers[i].self_attn": {"attention_scores": said}}
    facts = facts.model_copy(update={"support": {"eager": lacking, "default": lacking}})
    found = presence("self_attn", "attention_scores", facts)
    assert (found.state, found.reason, found.present) == (
        State.BLOCKS, "a mixture has no such value", "on blocks 0, 2")


@pytest.mark.parametrize(("host", "name", "reason"), [
    ("mlp", "expert_outputs", "no experts module"),
    ("linear_attn", "betas", "no block has a recurrent mixer"),
    ("mlp", "shared_expert_output", "no block has a mixture of experts"),
    ("self_attn", "attention_keys", "TinyAttention has no such value"),
    ("model", "logits", "its host was not found"),
    ("layer", "layer_mid", "no run confirmed it"),
])
def test_what_is_absent_says_why(host: str, name: str, reason: str) -> None:
    facts = checkpoint(unconfirmed=[UnconfirmedValue(
        host="layer", native="Block", name="layer_mid", reason="no run confirmed it: expected one, found two")])
    found = presence(host, name, facts)
    assert (found.state, found.reason, found.row) == (State.ABSENT, reason, None)


def test_every_family_is_in_every_values_parts_once() -> None:
    families = [family(), family(model_type="other", title="Other", reference="maker/Tiny-2"), failed(model_type="no")]
    found = survey(families)
    assert [entry.model_type for entry in found.families] == ["other", "tiny"]
    assert [entry.model_type for entry in found.unverified] == ["no"]
    for entry in VOCABULARY:
        view = value_view(entry, found)
        named = [row.model_type for part in view.parts for reason in part.reasons
                 for row in (*reason.rows, *reason.lacking)]
        assert sorted(named) == ["other", "tiny"]
        assert view.having + view.count["absent"] == view.total == 2


def test_the_page_links_to_the_pinned_part() -> None:
    undrawn = render_value(value_view(of("mlp", "router_logits"), survey([family()])), TEMPLATES)
    assert 'href="../../families/tiny/#value-mlp-router_logits"' in undrawn
    scores = render_value(value_view(of("self_attn", "attention_scores"), survey([family()])), TEMPLATES)
    pinned = "#ckpt=maker/Tiny-1&amp;block=0&amp;pin=value.self_attn.attention_scores"
    assert f'href="../../families/tiny/{pinned}"' in scores
    assert 'href="../../families/tiny/checks/#maker/Tiny-1/self_attn/attention_scores"' in scores
    assert "1 × 2 × 8 × 8" in scores
    assert "1 × 3 × 8 × 8" in scores


def test_the_page_says_the_reason_of_those_that_lack_it() -> None:
    page = render_value(value_view(of("linear_attn", "betas"), survey([family()])), TEMPLATES)
    assert "no block has a recurrent mixer" in page
    assert "In code" not in page
    assert 'title: "betas on linear_attn"' in page


def test_values_lead_to_each_other() -> None:
    found = survey([family()])
    view = value_view(of("self_attn", "attention_scores"), found)
    assert [other.name for other in view.made_from] == ["attention_queries", "attention_keys"]
    assert [other.url for other in view.goes_into] == ["../self_attn.attention_probabilities/"]
    assert value_view(of("linear_attn", "attention_keys"), found).twin.url == "../self_attn.attention_keys/"
    assert value_view(of("mlp", "mlp_output"), found).twin is None


def test_a_recurrent_value_lists_its_layouts_by_mixer() -> None:
    assert FLAVOUR_NAMES.keys() == FLAVOURS.keys()
    lines = {line.name: line for line in value_view(of("linear_attn", "attention_keys"), survey([family()])).layouts}
    assert lines["ScanQK"].dims == ("batch", "seq", "groups", "state_dim")
    assert lines["ScanQK"].flavours == ("selective scan (Mamba-1)",)
    assert {name for line in lines.values() for name in line.flavours} == {
        FLAVOUR_NAMES[flavour] for flavour, layouts in FLAVOURS.items() if "attention_keys" in layouts}


def test_the_page_says_the_names_elsewhere() -> None:
    place = NativePlace(kinds=[0, 1], module="model.h[i].attn", location="source.softmax_0.input", held=None, hook=None,
                        no_hook="no module has it alone", no_nnsight=None)
    facts = with_value(checkpoint(), "self_attn", native=[place])
    named = [LensFacts(host="self_attn", value="attention_scores", hook="blocks.{i}.attn.hook_attn_scores", same=False,
                       difference="before the mask"),
             LensFacts(host="mlp", value="mlp_output", hook="blocks.{i}.hook_mlp_out", same=True, difference=None)]
    families = [family(checkpoints=[facts], transformer_lens=named), family(model_type="other", checkpoints=[facts])]
    scores = of("self_attn", "attention_scores")
    view = value_view(scores, survey(families))
    lens, = view.lens
    assert (lens.hook, lens.families) == ("blocks.{i}.attn.hook_attn_scores", 1)
    assert "before the mask" in (lens.note or "")
    assert {line.title for line, _ in view.elsewhere} >= {"transformers", "PyTorch hook", "nnsight"}
    page = render_value(value_view(scores, survey(families)), TEMPLATES)
    assert "Without these names" in page
    assert "no module has it alone" in page
    assert "hook_attn_scores</code>" in page
    betas = value_view(of("linear_attn", "betas"), survey(families))
    assert "Without these names" not in render_value(betas, TEMPLATES)


def test_an_example_is_of_the_smallest_with_notes() -> None:
    defaults = checkpoint("defaults", is_default=True)
    assert best_checkpoint([(False, defaults), (False, checkpoint("a/b"))]).id == "a/b"
    assert best_checkpoint([(False, checkpoint("a/b")), (True, defaults)]).id == "defaults"


#: Where each value's example is run: a checkpoint, a block of it, and a recurrent mixer's flavour.
RUN_ON: dict[tuple[str, int, str | None], list[tuple[str, str]]] = {
    ("openai-community/gpt2", 0, None): [
        *((entry.host, entry.name) for entry in VOCABULARY if entry.host in ("model", "layer", "self_attn")),
        ("mlp", "mlp_activation"), ("mlp", "mlp_neurons"), ("mlp", "mlp_output")],
    ("poolside/Laguna-XS-2.1", 1, None): [
        (entry.host, entry.name) for entry in VOCABULARY if entry.part is not None],
    ("AntonV/mamba2-130m-hf", 0, "ssd"): [("linear_attn", name) for name in FLAVOURS["ssd"]],
    ("Qwen/Qwen3.5-0.8B", 0, "grouped_delta"): [("linear_attn", name) for name in FLAVOURS["grouped_delta"]],
    ("google/recurrentgemma-2b", 0, "lru"): [("linear_attn", "states")],
}

CONDITIONS = {"attention_queries": CONDITION, "attention_keys": CONDITION, "attention_values": CONDITION,
              "attention_scores": CONDITION, "attention_probabilities": CONDITION, "attention_head_outputs": CONDITION,
              "state_output": CACHE, "state_input": LATER}


def test_every_value_has_an_example_that_is_run() -> None:
    assert {key for keys in RUN_ON.values() for key in keys} == {key_of(entry) for entry in VOCABULARY}


@pytest.mark.parametrize(("place", "keys"), RUN_ON.items(), ids=[place[0] for place in RUN_ON])
def test_the_examples_run(place: tuple[str, int, str | None], keys: list[tuple[str, str]]) -> None:
    name, block, flavour = place
    facts = checkpoint(name, kinds=[kind([block], "a kind")])
    blocks = [Snippet("with model.trace(prompt):\n    plain = model.logits.save()\n", {}, 1)]
    for host, value_name in keys:
        about = values_of(host, flavour if host == "linear_attn" else None)[value_name]
        layout = about.layout
        served = value(value_name, "stream", [[1]], layout=layout and layout.name,
                       dims=list(layout.dims if layout else ()), condition=CONDITIONS.get(value_name),
                       writable=about.writable)
        example = example_of(facts, HostFacts(name=host, host=HOSTS[host], classes=[], values=[served]), served)
        ast.parse(example.load)
        assert ('attn_implementation="eager"' in example.load) == (CONDITIONS.get(value_name) == CONDITION)
        assert (example.write is not None) == about.writable
        length = 2 if value_name == "state_input" else "prompt.shape[1]"
        checks = [f"assert tuple({value_name}) == tuple(prompt.shape)"] if layout is None else [
            f"assert {value_name}.dim() == {len(layout.dims)}",
            *(f"assert {value_name}.shape[{axis}] == {length}"
              for axis, size in enumerate(layout.dims) if size in ("seq", "query", "key"))]
        blocks.append(Snippet(f"{example.read}\n" + "\n".join(checks), {}, 1))
        if example.write is not None:
            blocks.append(Snippet(f"{example.write}\nassert not torch.equal(logits[:, -1], plain[:, -1])", {}, 1))
    ran = run_snippets(blocks, [recorded(name)], name, "examples.md")
    assert all(snippet.ran_on == [name] for snippet in ran)


def test_a_family_that_serves_nothing_is_absent_everywhere() -> None:
    bare: FamilyFacts = family(checkpoints=[checkpoint(hosts=[], kinds=[])])
    states = {entry.state for entry in survey([bare]).families[0].presences.values()}
    assert states == {State.ABSENT}
