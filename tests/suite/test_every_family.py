"""What has to hold on every family: one suite over the reference checkpoint of each, on its small twin.

A value is compared with what plain PyTorch hooks, or raw nnsight inside a forward, see on a second, unwrapped twin that
has the same parameters. Nothing here goes through the checks that the pages rest on, but for which values a family
without a module of its own serves at all.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import nnsight
import pytest
import torch

from encyclopedia import StandardizedTransformer, Unavailable
from encyclopedia.capture.parameters import count_parameters
from encyclopedia.checkpoints import RecordedCheckpoint, families_recorded, read_family
from encyclopedia.checks.confirming import confirm
from encyclopedia.checks.identity import identity_of
from encyclopedia.coverage import all_families, default_record
from encyclopedia.families import Family, family, has_module
from encyclopedia.instantiate import build_without_weights
from encyclopedia.model.envoys import StandardHost
from encyclopedia.model.readings import Write, read_all
from encyclopedia.structure.derive import structure_of
from encyclopedia.structure.parts import CONTRIBUTIONS, Kind
from encyclopedia.twin import PROMPT_LENGTH, prompt_for, twin_of_model
from encyclopedia.vocabulary import HOSTS
from tests.suite.failed import FAILED, STREAMLESS

BATCH = 2

#: Largest error of an identity, in units of the output's largest magnitude.
EXACT = 2e-6

Key = tuple[int | None, str, str]


def reference(name: str) -> RecordedCheckpoint:
    """The family's reference checkpoint, or its config class's defaults where none is recorded."""
    if name not in families_recorded():
        return default_record(name)
    shown = [record for record in read_family(name)[0] if record.reason is None]
    return next((record for record in shown if record.reference), shown[0]) if shown else read_family(name)[0][0]


@dataclass
class Call:
    """One call of a module as hooks saw it, tensors copied."""

    arguments: tuple
    keywords: dict[str, Any]
    output: Any = None


@dataclass
class Seen:
    """What hooks saw in one forward of a plain model."""

    output: Any = None
    #: By path, the module's calls.
    calls: dict[str, list[Call]] = field(default_factory=dict)
    #: By attention module: the eager function's arguments and its result.
    interface: dict[int, tuple[tuple, dict, Any]] = field(default_factory=dict)


def copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    return tuple(map(copied, value)) if type(value) is tuple else value


def watch(plain: Any, ids: torch.Tensor) -> Seen:
    """Run ``plain`` under PyTorch's own hooks, and with its eager attention functions watched."""
    seen, handles, patch = Seen(), [], pytest.MonkeyPatch()
    running: list[Call] = []
    for path, module in plain.named_modules():
        def before(module: Any, arguments: tuple, keywords: dict) -> None:
            running.append(Call(copied(arguments), {name: copied(value) for name, value in keywords.items()}))

        def after(module: Any, arguments: tuple, output: Any, path: str = path) -> None:
            call = running.pop()
            call.output = copied(output)
            seen.calls.setdefault(path, []).append(call)

        handles += [module.register_forward_pre_hook(before, with_kwargs=True), module.register_forward_hook(after)]
    for name in {type(module).__module__ for module in plain.modules()}:
        eager = getattr(sys.modules[name], "eager_attention_forward", None)
        if eager is None:
            continue

        def watched(module: Any, *arguments: Any, eager: Any = eager, **keywords: Any) -> Any:
            result = eager(module, *arguments, **keywords)
            seen.interface[id(module)] = (arguments, keywords, result)
            return result

        patch.setattr(sys.modules[name], "eager_attention_forward", watched)
    try:
        with torch.no_grad():
            seen.output = plain(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False)
    finally:
        patch.undo()
        for handle in handles:
            handle.remove()
    return seen


@dataclass
class Subject:
    """One family's twin, wrapped and plain, and what was read and seen on them."""

    record: RecordedCheckpoint
    declared: Family
    full: Any
    model: StandardizedTransformer
    plain: Any
    ids: torch.Tensor
    seen: Seen
    values: dict[Key, Any]

    def places(self, *, available: bool = True) -> Iterator[tuple[int | None, StandardHost, str]]:
        """Every value on every host, those this load has or those it lacks."""
        for layer, host in hosts_of(self.model):
            for name in host.values():
                if (host.unavailable(name) is None) == available:
                    yield layer, host, name

    @property
    def serves_stream(self) -> bool:
        """Whether the stream behind each block is served."""
        return all((layer, "layer", "layer_output") in self.values for layer in range(self.model.num_layers))

    def path(self, host: StandardHost) -> str:
        """The path of a host as the native model spells it."""
        return host.path.removeprefix("model").removeprefix(".")


def hosts_of(model: StandardizedTransformer) -> list[tuple[int | None, StandardHost]]:
    return [(None, model), *((layer, host) for layer in range(model.num_layers) for host in model.hosts(layer))]


def kept(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def read_every(model: StandardizedTransformer, ids: torch.Tensor, **more: Any) -> dict[Key, Any]:
    with torch.no_grad():
        readings = read_all(model, ids, kept, fake=False, **more)
    return {(reading.layer, reading.host, reading.name): reading.result for reading in readings}


@pytest.fixture(scope="module", params=[name for name in all_families() if name not in FAILED])
def subject(request: pytest.FixtureRequest) -> Subject:
    """One family after another; a test of the next begins when all of this one's are done."""
    record, declared = reference(request.param), family(request.param)
    full = build_without_weights(record)
    if has_module(request.param):
        model = StandardizedTransformer(twin_of_model(full), unconfirmed={})
    else:
        model = confirm(lambda: twin_of_model(full), declared, None, writing=False)[0].model
    plain = twin_of_model(full)
    ids = prompt_for(plain, batch=BATCH)
    return Subject(record, declared, full, model, plain, ids, watch(plain, ids), read_every(model, ids))


def flat(arguments: tuple, keywords: dict[str, Any]) -> list[Any]:
    return [*arguments, *keywords.values()]


def interior(seen: Seen, module: Any) -> dict[str, torch.Tensor]:
    """The attention interior, computed by hand from what the eager function was called with."""
    arguments, keywords, (mixed, pattern) = seen.interface[id(module)]
    queries, keys, values = arguments[:3]
    found = {"attention_queries": queries, "attention_keys": keys, "attention_values": values,
             "attention_head_outputs": mixed, "attention_probabilities": pattern}
    mask = arguments[3] if len(arguments) > 3 else keywords["attention_mask"]
    sinks = keywords.get("s_aux", getattr(module, "sinks", None))
    if set(keywords) <= {"attention_mask", "scaling", "dropout", "softcap", "s_aux", "sliding_window", "is_causal",
                         "use_cache", "position_ids", "output_attentions", "position_embeddings"}:
        repeated = keys.repeat_interleave(queries.shape[1] // keys.shape[1], dim=1)
        scores = queries @ repeated.transpose(-1, -2) * keywords.get("scaling", queries.shape[-1] ** -0.5)
        if keywords.get("softcap"):
            scores = (scores / keywords["softcap"]).tanh() * keywords["softcap"]
        found["attention_scores"] = scores if mask is None else scores + mask[..., : keys.shape[-2]]
        if sinks is None:
            found["attention_probabilities"] = found["attention_scores"].softmax(dim=-1)
    return found


def at_location(seen: Seen, host_path: str, text: str) -> list[Any]:
    """The tensors that the location ``text`` names, one per call of its module; the text is read here anew."""
    *steps, last = re.findall(r"\.\.|[^./]+", text)
    path = [] if host_path == "" else host_path.split(".")
    if steps and steps[-1] == "output":
        return [getattr(seen.calls[".".join(path)][-1].output, last)]
    for step in steps:
        path = path[:-1] if step == ".." else [*path, step]
    handle, _, index = last.rstrip("]").partition("[")
    found = []
    for call in seen.calls[".".join(path)]:
        if handle == "output":
            found.append(call.output[int(index)] if index else call.output)
        elif index and not index.isdigit():
            found.append(call.keywords[index])
        else:
            found.append(flat(call.arguments, call.keywords)[int(index or 0)])
    return found


def native_names(subject: Subject, layer: int | None, host: StandardHost, location: str) -> str:
    """``location`` with the root's parts and a mixture's router as the native model spells them."""
    stack = subject.model.stack
    first, dot, rest = location.partition(".")
    if layer is None:
        for part in ("embed_tokens", "norm", "lm_head"):
            native = getattr(stack, part)
            if first == part and native is not None and not location.startswith(f"{native}."):
                return f"{native}{dot}{rest}"
    if first == "router" and host.host == "mlp":
        assert layer is not None
        sublayer = subject.model.structure.kind_of(layer).sublayer("mlp")
        assert sublayer is not None
        assert sublayer.mixture is not None
        return f"{sublayer.mixture.router}{dot}{rest}"
    return location


def raw_reads(plain: Any, ids: torch.Tensor, wanted: dict[Key, list[str]]) -> dict[Key, Any]:
    """Values inside a forward, by nnsight alone, all in one."""
    raw = nnsight.NNsight(plain)

    def reached(steps: list[str]) -> Any:
        target = raw
        for step in steps:
            name, _, index = step.rstrip("]").partition("[")
            target = getattr(target, name)
            if index:
                target = target[0][int(index)] if index.isdigit() and name == "inputs" else (
                    target[1][index] if name == "inputs" else target[int(index)])
        return target

    for steps in wanted.values():
        _ = reached(steps[: steps.index("source") + 1])
    found: dict[Key, Any] = {}
    with torch.no_grad(), raw.trace() as tracer:
        with tracer.invoke(input_ids=ids, attention_mask=torch.ones_like(ids)):
            pass
        for key, steps in wanted.items():
            with tracer.invoke():
                found[key] = reached(steps).clone()
    return found


def test_a_value_is_the_tensor_at_its_location(subject: Subject) -> None:
    inside: dict[Key, list[str]] = {}
    expected: dict[Key, list[Any]] = {}
    for layer, host, name in subject.places():
        location = str(host.locations.get(name, "derived"))
        key = (layer, host.host, name)
        if location == "derived" or name in ("input_ids", "attention_mask") or name in getattr(host, "later", ()):
            continue
        path = subject.path(host)
        native = native_names(subject, layer, host, location)
        if "source.attention_interface" in location:
            inner = native.split("source.")[0].rstrip(".")
            by_hand = interior(subject.seen, subject.plain.get_submodule(f"{path}.{inner}" if inner else path))
            assert by_hand.keys() >= {"attention_queries", "attention_probabilities"}
            if by_hand.get(name) is not None:
                expected[key] = [by_hand[name]]
        elif "source." in location:
            inside[key] = [*path.split("."), *native.split(".")]
        else:
            expected[key] = at_location(subject.seen, path, native)
    if inside:
        expected |= {key: [value] for key, value in raw_reads(subject.plain, subject.ids, inside).items()}
    for key, candidates in expected.items():
        found = subject.values[key]
        assert any(alike(key, found, value) for value in candidates), (
            f"{key}: {list(found.shape)} is none of {[list(value.shape) for value in candidates]}")
    assert len(expected) >= (4 * subject.model.num_layers + 3 if subject.serves_stream else 2)


def alike(key: Key, found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether the numbers are the same; those of a recurrent mixer may have their axes in another order."""
    if found.numel() != expected.numel():
        return False
    one, other = found.flatten(), expected.flatten().to(found.dtype)
    if key[1] == "linear_attn" and found.shape != expected.shape:
        one, other = one.sort().values, other.sort().values
    return torch.allclose(one, other, rtol=1e-4, atol=1e-5)


def test_axes_have_the_sizes_their_names_say(subject: Subject) -> None:
    model = subject.model
    alike = {"batch": BATCH, "seq": PROMPT_LENGTH, "query": PROMPT_LENGTH, "key": PROMPT_LENGTH,
             "hidden_size": subject.plain.config.get_text_config().hidden_size,
             "vocab_size": subject.seen.output.logits.shape[-1]}
    for layer, host, name in subject.places():
        value, layout = subject.values.get((layer, host.host, name)), host.layout_of(name)
        if value is None:
            assert name in getattr(host, "later", ())
            continue
        if layout is None:
            assert value == torch.Size([BATCH, PROMPT_LENGTH])
            continue
        own = dict(alike)
        if host.host == "self_attn":
            attention = next((found for path, found in (
                (path, subject.seen.interface.get(id(module))) for path, module in subject.plain.named_modules()
                if path == subject.path(host) or path.startswith(f"{subject.path(host)}.")) if found), None)
            if attention is not None:
                queries, keys, values = attention[0][:3]
                own |= {"num_heads": queries.shape[1], "qk_head_dim": queries.shape[-1],
                        "num_kv_heads": keys.shape[1], "head_dim": values.shape[-1]}
            said = {"num_heads": host.num_heads, "num_kv_heads": host.num_kv_heads, "head_dim": host.head_dim,
                    "qk_head_dim": host.qk_head_dim} if attention is not None else {}
            assert said.items() <= own.items(), (layer, said, own)
        for axis, length in zip(layout.dims, value.shape, strict=True):
            assert own.setdefault(axis, length) == length, (layer, name, axis)
        assert value.is_floating_point() == (layout.dtype == "float"), (layer, name)
    for layer in range(model.num_layers):
        by_host: dict[str, dict[str, int]] = {}
        for (at, host_name, name), value in subject.values.items():
            if at != layer or not isinstance(value, torch.Tensor):
                continue
            axes = by_host.setdefault(host_name, {})
            layout = model.host_at(layer, host_name).layout_of(name)
            assert layout is not None
            for axis, length in zip(layout.dims, value.shape, strict=True):
                assert axes.setdefault(axis, length) == length, (layer, name, axis)


def test_the_stream_is_served(subject: Subject) -> None:
    assert subject.serves_stream == (subject.declared.model_type not in STREAMLESS), (
        "the list of families whose stream is not confirmed is out of date")
    if subject.declared.model_type in STREAMLESS:
        reason = subject.model.layers[0].unavailable("layer_output")
        assert reason is not None
        assert reason.startswith("no run confirmed it")


def test_the_call_is_served_as_it_was_made(subject: Subject) -> None:
    assert torch.equal(subject.values[None, "model", "input_ids"], subject.ids)
    assert torch.equal(subject.values[None, "model", "attention_mask"], torch.ones_like(subject.ids))
    assert subject.values[None, "model", "input_size"] == subject.ids.shape


def test_writing_unchanged_values_changes_nothing(subject: Subject) -> None:
    writes = [Write(host, name, torch.clone) for _, host, name in subject.places()
              if host.values()[name].writable and name not in ("input_ids", "attention_mask", *host.later)]
    after = read_every(subject.model, subject.ids, writes=writes, names={"logits"}, layers=[])
    assert torch.equal(after[None, "model", "logits"], subject.values[None, "model", "logits"])
    assert len(writes) >= (3 * subject.model.num_layers if subject.serves_stream else 1)


def test_a_changed_stream_changes_what_comes_after_it_alone(subject: Subject) -> None:
    model, clean = subject.model, subject.values
    last = model.num_layers - 1
    if not subject.serves_stream:
        with pytest.raises(Unavailable, match="layer_output is not available"):
            read_every(model, subject.ids, writes=[Write(model.layers[last], "layer_output", torch.zeros_like)])
        return
    before = {key: value for key, value in clean.items() if key[0] in range(last) and key[1] == "layer"}
    write = Write(model.layers[last], "layer_output", lambda value: value * 0.5 + 0.1)
    after = read_every(model, subject.ids, writes=[write])
    assert all(torch.equal(after[key], value) for key, value in before.items())
    assert torch.equal(after[last, "layer", "layer_output"], clean[last, "layer", "layer_output"] * 0.5 + 0.1)
    logits = after[None, "model", "logits"]
    assert logits.isfinite().all()
    assert not torch.equal(logits, clean[None, "model", "logits"])


class Dotted:
    """What stands at dotted paths, for an identity's text: ``a.b[0].c`` reads the value put at ``a.b.0.c``."""

    def __init__(self, values: dict[str, Any], at: str = "") -> None:
        self._values, self._at = values, at

    def _below(self, step: str) -> Any:
        path = f"{self._at}.{step}" if self._at else step
        return self._values[path] if path in self._values else Dotted(self._values, path)

    def __getattr__(self, name: str) -> Any:
        return self._below(name)

    def __getitem__(self, step: Any) -> Any:
        return self._below(str(step))


def rebuilt(subject: Subject, identity: str, kind: Kind, layer: int, values: dict[Key, Any]) -> torch.Tensor:
    """The left side of a block's identity, on what was read and what hooks saw on the plain twin."""
    path = f"{subject.model.stack.layers}.{layer}"
    block = subject.plain.get_submodule(path)
    known: dict[str, Any] = {**dict(block.named_parameters()), **dict(block.named_buffers())}
    for inner, calls in subject.seen.calls.items():
        if inner.startswith(f"{path}."):
            known[f"{inner.removeprefix(f'{path}.')}.output"] = calls[-1].output
    for host, contribution in CONTRIBUTIONS.items():
        if (layer, host, contribution) in values:
            known[f"{host}.{contribution}"] = values[layer, host, contribution]
    numbers = {name: value for name, value in vars(block).items() if isinstance(value, float)}
    stream = values[layer, "layer", "layer_input"]
    names = {"layers": {layer: SimpleNamespace(input=stream, **numbers)}, "i": layer,
             "config": SimpleNamespace(**subject.plain.config.to_dict())}
    left, _, right = identity.partition(" == ")
    assert right == "layer_output"
    firsts = {name.split(".")[0] for name in known}
    scope = {first: known[first] if first in known else Dotted(known, first) for first in firsts}
    return eval(left, {"__builtins__": {}}, {**scope, **names})


def identities(subject: Subject) -> Iterator[tuple[int, Kind, str]]:
    for kind in subject.model.structure.kinds:
        identity = identity_of(subject.declared, kind)
        for layer in kind.blocks:
            served = all((layer, "layer", name) in subject.values for name in ("layer_input", "layer_output"))
            added = all((layer, host, name) in subject.values for host, name in CONTRIBUTIONS.items()
                        if identity is not None and f"{host}.{name}" in identity)
            if identity is not None and served and added:
                yield layer, kind, identity


def error(claimed: torch.Tensor, output: torch.Tensor) -> float:
    return ((claimed - output).abs().max() / output.abs().max()).item()


def test_the_identity_holds_on_every_block(subject: Subject) -> None:
    held = 0
    for layer, kind, identity in identities(subject):
        with torch.no_grad():
            left = rebuilt(subject, identity, kind, layer, subject.values)
        assert error(left, subject.values[layer, "layer", "layer_output"]) <= EXACT, (layer, identity)
        held += 1
    without = [kind for kind in subject.model.structure.kinds if identity_of(subject.declared, kind) is None]
    assert held or without


def test_what_a_sublayer_adds_is_what_its_absence_takes_away(subject: Subject) -> None:
    """Contributions set to zero leave the rest of the identity, so each is read exactly where it enters the stream."""
    for layer, kind, identity in identities(subject):
        if layer != kind.blocks[0] or kind.sum is None or any(term.host is None for term in kind.sum.terms):
            continue
        for host in subject.model.hosts(layer):
            contribution = CONTRIBUTIONS.get(host.host, "")
            if f"{host.host}.{contribution}" not in identity:
                continue
            after = read_every(subject.model, subject.ids, layers=[layer], names={
                "layer_input", "layer_output", *CONTRIBUTIONS.values()},
                writes=[Write(host, contribution, torch.zeros_like)])
            assert (after[layer, host.host, contribution] == 0).all()
            with torch.no_grad():
                left = rebuilt(subject, identity, kind, layer, after)
            assert error(left, after[layer, "layer", "layer_output"]) <= EXACT, (layer, host.host)


def test_the_attention_interior_adds_up(subject: Subject) -> None:
    for layer, host in hosts_of(subject.model):
        if host.host != "self_attn":
            continue
        found = {name: value for (at, on, name), value in subject.values.items() if (at, on) == (layer, "self_attn")}
        pattern = found.get("attention_probabilities")
        if pattern is None:
            continue
        assert (pattern >= 0).all()
        assert (pattern.sum(-1) <= 1 + 1e-5).all()
        if "attention_scores" in found:
            weights = found["attention_scores"].float().softmax(dim=-1)
            # A sink takes its share of every row, and leaves the others in proportion.
            torch.testing.assert_close(weights * pattern.sum(-1, keepdim=True), pattern, atol=1e-5, rtol=1e-4)
        if "attention_values" in found and "attention_head_outputs" in found:
            repeated = found["attention_values"].repeat_interleave(
                pattern.shape[1] // found["attention_values"].shape[1], dim=1)
            torch.testing.assert_close((pattern @ repeated).transpose(1, 2), found["attention_head_outputs"],
                                       atol=1e-5, rtol=1e-4)


def test_the_readout_adds_up(subject: Subject) -> None:
    model, values = subject.model, subject.values
    assert torch.equal(values[None, "model", "logits"], subject.seen.output.logits)
    probabilities = values[None, "model", "logits"][:, -1].softmax(dim=-1)
    assert torch.equal(values[None, "model", "next_token_probs"], probabilities)
    torch.testing.assert_close(probabilities.sum(dim=-1), torch.ones(BATCH))
    head = subject.seen.calls[model.stack.lm_head][-1]
    if (None, "model", "lm_head_output") in values:
        assert torch.equal(values[None, "model", "lm_head_output"], head.output)
    last = subject.seen.calls[f"{model.stack.layers}.{model.num_layers - 1}"][-1].output
    last = last[0] if isinstance(last, tuple) else last
    norm = model.stack.norm
    normed = None if norm is None else subject.seen.calls[norm][-1]
    entering = flat(head.arguments, head.keywords)[0]
    plain_readout = normed is not None and torch.equal(flat(normed.arguments, normed.keywords)[0], last) \
        and torch.equal(entering, normed.output)
    if plain_readout and (None, "model", "final_norm_output") in values:
        assert torch.equal(values[None, "model", "final_norm_output"], normed.output)
        with torch.no_grad():
            assert torch.equal(model.project_on_vocab(last), head.output)


def test_support_says_what_a_load_serves(subject: Subject) -> None:
    model = subject.model
    for _, host, name in subject.places(available=False):
        reason = host.unavailable(name)
        assert reason
        with pytest.raises(Unavailable, match=re.escape(reason)):
            getattr(host, name)
    served = {(layer, host.host, name) for layer, host, name in subject.places() if name not in host.later}
    assert served == set(subject.values)
    overall = model.support()
    for layer in range(model.num_layers):
        table = model.support(layer=layer)
        assert set(table) <= set(HOSTS.values())
        for host in model.hosts(layer):
            assert table[HOSTS[host.host]] == host.support()
            for name, reason in host.support().items():
                assert reason is None or overall[HOSTS[host.host]][name] is not None


def test_the_printout_names_every_value_with_its_layout(subject: Subject) -> None:
    lines = {line.strip() for line in repr(subject.model).split("\n")}
    for _, host in hosts_of(subject.model):
        for name, value in host.values().items():
            layout = f" -> {value.layout}" if value.layout is not None else ""
            assert f"({name}){layout}: {value.description}" in lines


def test_its_numbers_at_full_size(subject: Subject) -> None:
    """The reference's published parameters, and the twin's kinds of blocks."""
    structure = structure_of(subject.full)
    found = count_parameters(subject.full, structure, subject.declared)
    agrees_with_published(subject.record, found)
    assert [kind.sum for kind in structure.kinds] == [kind.sum for kind in subject.model.structure.kinds]
    blocks = [block for kind in structure.kinds for block in kind.blocks]
    assert sorted(blocks) == list(range(structure.depth))


def agrees_with_published(record: RecordedCheckpoint, found: Any) -> None:
    assert 0 < found.active <= found.total
    published = record.published_parameters
    if published is not None:
        assert found.total == pytest.approx(published.total, rel=0.02), record.id
        if published.active is not None:
            assert found.active == pytest.approx(published.active, rel=0.12), record.id
