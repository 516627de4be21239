"""What has to hold on every family: one suite over every recorded checkpoint that is shown, on its small twin.

A value is compared with what plain PyTorch hooks, or raw nnsight inside a forward, see on a second, unwrapped twin that
has the same parameters.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import nnsight
import pytest
import torch

from encyclopedia import StandardizedTransformer, Unavailable
from encyclopedia.checkpoints import families_recorded, read_family
from encyclopedia.checks.identity import TOLERANCE, identity_of, measure_identity
from encyclopedia.families import family
from encyclopedia.model.envoys import StandardHost
from encyclopedia.model.structure import find_sublayers
from encyclopedia.twin import PROMPT_LENGTH, prompt_for
from encyclopedia.vocabulary import HOSTS, VOCABULARY, Value

BATCH = 2
SHOWN = [record.id for name in families_recorded() for record in read_family(name)[0] if record.reason is None]

pytestmark = pytest.mark.parametrize("checkpoint", SHOWN)


@dataclass
class Place:
    """One value on one host of one block; ``layer`` is ``None`` for the root."""

    layer: int | None
    host: StandardHost
    value: Value

    def __str__(self) -> str:
        return f"{self.host.path}.{self.value.name}"


def places(model: StandardizedTransformer, *, available: bool = True) -> Iterator[Place]:
    """Every value on every host, those this load has or those it lacks."""
    hosts = [(None, model), *((layer, host) for layer in range(model.num_layers) for host in model.hosts(layer))]
    for layer, host in hosts:
        for name, value in host.values().items():
            if (host.unavailable(name) is None) == available:
                yield Place(layer, host, value)


def read(model: StandardizedTransformer, ids: torch.Tensor, place: Place, **call: Any) -> Any:
    """One value, read alone."""
    with model.trace(ids, **call):
        found = nnsight.save(getattr(place.host, place.value.name))
    return found


def logits_with(
    model: StandardizedTransformer, ids: torch.Tensor, place: Place, change: Any, **call: Any
) -> torch.Tensor:
    """The logits after ``change`` of one value is assigned to it."""
    with model.trace(ids, **call):
        setattr(place.host, place.value.name, change(getattr(place.host, place.value.name)))
        logits = model.logits.save()
    return logits


@pytest.fixture
def model(twin: Any, checkpoint: str) -> StandardizedTransformer:
    return twin(checkpoint)


@pytest.fixture
def ids(model: StandardizedTransformer) -> torch.Tensor:
    return prompt_for(model._module, batch=BATCH)


@dataclass
class Seen:
    """What hooks saw in one forward of a plain model."""

    inputs: dict[str, tuple] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    #: By attention module: the interface's arguments and its result.
    interface: dict[int, tuple[tuple, dict, Any]] = field(default_factory=dict)


def watch(plain: Any, ids: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Run ``plain`` under PyTorch's own hooks, and with its eager attention function watched."""
    seen = Seen()
    for path, module in plain.named_modules():
        def before(module: Any, arguments: tuple, keywords: dict, path: str = path) -> None:
            seen.inputs[path] = (arguments, keywords)

        def after(module: Any, arguments: tuple, output: Any, path: str = path) -> None:
            seen.outputs[path] = output

        module.register_forward_pre_hook(before, with_kwargs=True)
        module.register_forward_hook(after)
    source = sys.modules[type(plain).__module__]
    eager = source.eager_attention_forward

    def watched(module: Any, *arguments: Any, **keywords: Any) -> Any:
        result = eager(module, *arguments, **keywords)
        seen.interface[id(module)] = (arguments, keywords, result)
        return result

    monkeypatch.setattr(source, "eager_attention_forward", watched)
    plain(input_ids=ids)
    return seen


def interior(seen: Seen, module: Any) -> dict[str, torch.Tensor]:
    """The attention interior, computed by hand from what the interface was called with."""
    arguments, keywords, (mixed, _) = seen.interface[id(module)]
    queries, keys, values = arguments[:3]
    mask = arguments[3] if len(arguments) > 3 else keywords["attention_mask"]
    repeated = keys.repeat_interleave(queries.shape[1] // keys.shape[1], dim=1)
    scores = queries @ repeated.transpose(-1, -2) * keywords["scaling"]
    if mask is not None:
        scores = scores + mask[..., : keys.shape[-2]]
    return {
        "attention_queries": queries,
        "attention_keys": keys,
        "attention_values": values,
        "attention_scores": scores,
        "attention_probabilities": scores.softmax(dim=-1),
        "attention_head_outputs": mixed,
    }


def at_location(seen: Seen, plain: Any, host_path: str, text: str) -> Any:
    """The tensor that the location ``text`` names, from the hooks; the text is read here anew."""
    steps, _, last = text.rpartition(".")
    if last == "logits":
        steps, _, last = "", "", "output.logits"
    path = ".".join(step for step in (host_path, steps) if step)
    if last == "output.logits":
        return seen.outputs[path].logits
    if last.startswith("output"):
        output = seen.outputs[path]
        return output[int(last[7:-1])] if "[" in last else output
    arguments, keywords = seen.inputs[path]
    flat = [*arguments, *keywords.values()]
    return flat[int(last[7:-1])] if "[" in last else flat[0]


def natively(path: str, model: StandardizedTransformer) -> str:
    """The path of a host as the native model spells it."""
    return path.removeprefix("model").removeprefix(".")


def test_a_value_is_the_tensor_at_its_location(
    model: StandardizedTransformer, ids: torch.Tensor, plain_twin: Any, checkpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = plain_twin(checkpoint)
    with monkeypatch.context() as patched:
        seen = watch(plain, ids, patched)
    compared = 0
    for place in places(model):
        name, location = place.value.name, str(place.host.locations[place.value.name])
        if location == "derived" or name in ("input_ids", "attention_mask"):
            continue
        path = natively(place.host.path, model)
        if location.startswith("source.attention_interface"):
            expected = interior(seen, plain.get_submodule(path))[name]
        elif "source." in location:
            expected = raw_read(plain, ids, path, native_names(model, location, place))
        else:
            expected = at_location(seen, plain, path, native_names(model, location, place))
        found = read(model, ids, place)
        assert found.numel() == expected.numel(), place
        torch.testing.assert_close(
            found.flatten(), expected.flatten(), msg=lambda text, place=place: f"{place}: {text}")
        compared += 1
    assert compared >= 20


def native_names(model: StandardizedTransformer, location: str, place: Place) -> str:
    """``location`` with the standard names of the root's children and of the router as the native model spells them."""
    first, dot, rest = location.partition(".")
    if place.layer is None and hasattr(model.stack, first):
        return f"{getattr(model.stack, first)}{dot}{rest}"
    if first == "router":
        router = next(sublayer.mixture.router for sublayer in find_sublayers(model.layers[place.layer]._module)
                      if sublayer.mixture is not None)
        return f"{router}{dot}{rest}"
    return location


def raw_read(plain: Any, ids: torch.Tensor, path: str, location: str) -> torch.Tensor:
    """The value at a location inside a forward, by nnsight alone."""
    raw = nnsight.NNsight(plain)
    steps = [*path.split("."), *location.split(".")]
    module = raw
    for step in steps[: steps.index("source")]:
        module = getattr(module, step)
    _ = module.source
    with raw.trace(input_ids=ids):
        target = raw
        for step in steps:
            target = getattr(target, step)
        found = nnsight.save(target)
    return found


def test_axes_have_the_sizes_their_names_say(model: StandardizedTransformer, ids: torch.Tensor) -> None:
    config = model._module.config
    for place in places(model):
        layout = place.value.layout
        if layout is None:
            assert read(model, ids, place) == torch.Size([BATCH, PROMPT_LENGTH])
            continue
        sizes = {"batch": BATCH, "seq": PROMPT_LENGTH, "query": PROMPT_LENGTH, "key": PROMPT_LENGTH,
                 "hidden_size": config.hidden_size, "vocab_size": config.vocab_size}
        if place.host.host == "self_attn":
            attention = place.host._module
            sizes |= {"num_heads": attention.q_proj.out_features // attention.head_dim,
                      "num_kv_heads": attention.k_proj.out_features // attention.head_dim,
                      "head_dim": attention.head_dim, "qk_head_dim": attention.head_dim}
        if place.host.host == "mlp":
            sizes |= {"intermediate_size": config.intermediate_size,
                      "num_experts": getattr(config, "num_experts", None),
                      "top_k": getattr(config, "num_experts_per_tok", None)}
        found = read(model, ids, place, attention_mask=torch.ones_like(ids))
        assert list(found.shape) == [sizes[axis] for axis in layout.dims], place
        assert found.is_floating_point() == (layout.dtype == "float"), place


def test_the_call_is_served_as_it_was_made(model: StandardizedTransformer, ids: torch.Tensor) -> None:
    mask = torch.ones_like(ids)
    mask[0, :4] = 0
    with model.trace(ids, attention_mask=mask):
        size = nnsight.save(model.input_size)
        token_ids = model.input_ids.save()
        served = model.attention_mask.save()
    assert size == ids.shape
    assert torch.equal(token_ids, ids)
    assert torch.equal(served, mask)


def test_writing_an_unchanged_value_changes_nothing(model: StandardizedTransformer, ids: torch.Tensor) -> None:
    with model.trace(ids):
        clean = model.logits.save()
    for place in places(model):
        if place.value.writable:
            assert torch.equal(logits_with(model, ids, place, lambda value: value), clean), place
            if place.value.layout is not None:
                assert torch.equal(logits_with(model, ids, place, torch.clone), clean), place


def changed(value: torch.Tensor, name: str) -> torch.Tensor:
    if name == "attention_mask":
        return value.masked_fill(torch.arange(value.shape[1]) < 4, 0)
    if name == "input_ids":
        return value.flip(dims=(1,))
    if name == "expert_indices":
        return (value + 1) % (value.max() + 1)
    return value * 0.5


def test_writing_a_changed_value_changes_the_logits(model: StandardizedTransformer, ids: torch.Tensor) -> None:
    mask = torch.ones_like(ids)
    with model.trace(ids, attention_mask=mask):
        clean = model.logits.save()
    for place in places(model):
        if place.value.writable:
            found = logits_with(model, ids, place, lambda value, name=place.value.name: changed(value, name),
                                attention_mask=mask)
            assert found.shape == clean.shape
            assert found.isfinite().all(), place
            assert not torch.equal(found, clean), place


def test_a_value_computed_from_others_refuses_a_write(model: StandardizedTransformer, ids: torch.Tensor) -> None:
    for place in places(model):
        if not place.value.writable:
            with pytest.raises(TypeError, match=f"{place.value.name} is computed"):
                logits_with(model, ids, place, lambda value: value)


def attentions(model: StandardizedTransformer) -> Iterator[StandardHost]:
    for layer in range(model.num_layers):
        yield from (host for host in model.hosts(layer) if host.host == "self_attn")


def test_the_attention_interior_adds_up(model: StandardizedTransformer, ids: torch.Tensor) -> None:
    for attention in attentions(model):
        with model.trace(ids):
            values = attention.attention_values.save()
            scores = attention.attention_scores.save()
            probabilities = attention.attention_probabilities.save()
            heads = attention.attention_head_outputs.save()
            premix = attention.attention_premix.save()
            output = attention.attention_output.save()
        torch.testing.assert_close(scores.softmax(dim=-1), probabilities)
        repeated = values.repeat_interleave(attention.num_heads // attention.num_kv_heads, dim=1)
        torch.testing.assert_close((probabilities @ repeated).transpose(1, 2), heads)
        torch.testing.assert_close(attention._module.o_proj(premix.flatten(-2)), output)
        assert (scores.softmax(dim=-1).triu(diagonal=1) == 0).all()


def test_the_readout_adds_up(model: StandardizedTransformer, ids: torch.Tensor) -> None:
    last = model.layers[model.num_layers - 1]
    with model.trace(ids):
        stream = last.layer_output.save()
        inside = model.project_on_vocab(last.layer_output).save()
        normed = model.final_norm_output.save()
        head = model.lm_head_output.save()
        logits = model.logits.save()
        probabilities = model.next_token_probs.save()
    stack, native = model.stack, model._module
    by_hand = native.get_submodule(stack.lm_head)(native.get_submodule(stack.norm)(stream))
    assert torch.equal(normed, native.get_submodule(stack.norm)(stream))
    assert torch.equal(by_hand, head)
    assert torch.equal(inside, head)
    assert torch.equal(model.project_on_vocab(stream), head)
    assert torch.equal(logits, head)
    assert torch.equal(probabilities, logits[:, -1].softmax(dim=-1))
    torch.testing.assert_close(probabilities.sum(dim=-1), torch.ones(BATCH))


def test_each_block_reads_what_the_one_before_it_wrote(model: StandardizedTransformer, ids: torch.Tensor) -> None:
    with model.trace(ids):
        streams = [].save()
        for layer in range(model.num_layers):
            streams.append(model.layers[layer].layer_input)
            streams.append(model.layers[layer].layer_output)
    for before, after in zip(streams[1:-1:2], streams[2::2], strict=True):
        assert torch.equal(before, after)


def test_the_identity_holds_on_every_block(model: StandardizedTransformer, ids: torch.Tensor) -> None:
    declared = family(model._module.config.model_type)
    for layer in range(model.num_layers):
        identity = identity_of(declared, find_sublayers(model.layers[layer]._module))
        assert measure_identity(model, ids, identity, layer) <= TOLERANCE


@pytest.mark.parametrize("load", ["eager", "sdpa"])
def test_support_says_what_a_load_serves(twin: Any, checkpoint: str, load: str) -> None:
    model = twin(checkpoint, attn_implementation=load)
    ids = prompt_for(model._module, batch=BATCH)
    interior_lacking = set()
    for place in places(model):
        found = read(model, ids, place)
        assert found is not None, place
    for place in places(model, available=False):
        reason = place.host.unavailable(place.value.name)
        with pytest.raises(Unavailable) as outside:
            getattr(place.host, place.value.name)
        with pytest.raises(Unavailable) as inside:
            read(model, ids, place)
        assert str(outside.value) == str(inside.value)
        assert reason in str(inside.value)
        if "attn_implementation" in reason:
            interior_lacking.add(place.value.name)
    attention = {value.name for value in VOCABULARY if value.host == "self_attn"}
    assert interior_lacking == (attention - {"attention_premix", "attention_output"} if load == "sdpa" else set())


def test_support_is_the_table_of_the_hosts(model: StandardizedTransformer) -> None:
    for layer in range(model.num_layers):
        table = model.support(layer=layer)
        assert set(table) <= set(HOSTS.values())
        for host in model.hosts(layer):
            assert table[HOSTS[host.host]] == host.support()
    overall = model.support()
    for expression, rows in overall.items():
        for name, reason in rows.items():
            by_block = [model.support(layer=layer).get(expression, {}).get(name) for layer in range(model.num_layers)]
            assert (reason is not None) == any(found is not None for found in by_block), (expression, name)


def test_the_printout_names_every_value_with_its_layout(model: StandardizedTransformer) -> None:
    lines = {line.strip() for line in repr(model).split("\n")}
    hosts = [model, *(host for layer in range(model.num_layers) for host in model.hosts(layer))]
    for host in hosts:
        for name, value in host.values().items():
            layout = f" -> {value.layout}" if value.layout is not None else ""
            assert f"({name}){layout}: {value.description}" in lines
