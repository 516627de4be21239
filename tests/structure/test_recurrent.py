"""Recurrent mixers: where their values are read, how they are held, and that the recurrence gives the same."""

from __future__ import annotations

import inspect
import sys
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from nnsight import NNsight
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache, PreTrainedModel

from encyclopedia.checks import recurrences
from encyclopedia.checks.claims import TOLERANCE, difference
from encyclopedia.checks.recurrent import RECOMPUTED, MixerRun, kernels_recorded, recomputed
from encyclopedia.location import Location
from encyclopedia.native import NativeRun, record
from encyclopedia.structure.held import axes_of, to_held, to_layout
from encyclopedia.structure.kernels import find_kernel_call
from encyclopedia.structure.recurrent import Recurrent, mixer_sizes, recurrent_values
from encyclopedia.vocabulary import FLAVOURS, HOSTS, VOCABULARY, values_of

HOST = "linear_attn"
BATCH, SEQ = 2, 13

_COMMON: dict[str, Any] = {"vocab_size": 40, "hidden_size": 48, "num_hidden_layers": 2, "pad_token_id": 0}
_HEADS: dict[str, Any] = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12, "intermediate_size": 56}
_DELTA: dict[str, Any] = {
    **_HEADS, "linear_num_value_heads": 6, "linear_num_key_heads": 3, "linear_key_head_dim": 8,
    "linear_value_head_dim": 10, "layer_types": ["linear_attention", "full_attention"],
}
_KIMI: dict[str, Any] = {
    **_HEADS, "num_key_value_heads": 4, "linear_num_heads": 3, "linear_head_dim": 8,
    "layer_types": ["linear_attention", "full_attention"],
    "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8,
    "num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
}
_MAMBA: dict[str, Any] = {"state_size": 6, "conv_kernel": 3, "expand": 2, "time_step_rank": 3, "intermediate_size": 96}
_HYBRID: dict[str, Any] = {
    **_HEADS, "mamba_n_heads": 4, "mamba_d_head": 24, "mamba_d_state": 6, "mamba_n_groups": 2, "mamba_d_conv": 3,
    "mamba_expand": 2, "mamba_chunk_size": 5,
}


@dataclass(frozen=True)
class Small:
    """A small model: its config and where its mixer is."""

    path: str
    config: dict[str, Any]
    flavour: str


SMALL = {
    "qwen3_next": Small("model.layers.0.linear_attn", {
        **_DELTA, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
        "shared_expert_intermediate_size": 16}, "grouped_delta"),
    "qwen3_5_text": Small("model.layers.0.linear_attn", _DELTA, "grouped_delta"),
    "olmo_hybrid": Small("model.layers.0.linear_attn", {**_DELTA, "linear_num_key_heads": 6}, "delta"),
    "kimi_linear": Small("model.layers.0.self_attn", _KIMI, "key_delta"),
    "mamba": Small("backbone.layers.0.mixer", _MAMBA, "scan"),
    "falcon_mamba": Small("backbone.layers.0.mixer", _MAMBA, "scan"),
    "jamba": Small("model.layers.0.mamba", {
        **_HEADS, "mamba_d_state": 6, "mamba_d_conv": 3, "mamba_dt_rank": 3, "attn_layer_period": 2,
        "attn_layer_offset": 1, "expert_layer_period": 4, "expert_layer_offset": 3}, "scan"),
    "zamba": Small("model.layers.0.mamba", {
        **_HEADS, "n_mamba_heads": 2, "mamba_d_state": 6, "mamba_d_conv": 3, "mamba_dt_rank": 3,
        "num_hidden_layers": 3, "layers_block_type": ["linear_attention", "hybrid", "hybrid"]}, "head_scan"),
    "mamba2": Small("backbone.layers.0.mixer", {
        "num_heads": 4, "head_dim": 24, "state_size": 6, "n_groups": 2, "expand": 2, "conv_kernel": 3,
        "chunk_size": 5}, "ssd"),
    "bamba": Small("model.layers.0.mamba", {**_HYBRID, "attn_layer_indices": [1]}, "ssd"),
    "falcon_h1": Small("model.layers.0.mamba", {**_HYBRID, "mamba_d_ssm": 96, "mamba_rms_norm": False}, "ssd"),
    "granitemoehybrid": Small("model.layers.0.mamba", {
        **_HYBRID, "layer_types": ["linear_attention", "full_attention"], "num_local_experts": 0,
        "shared_intermediate_size": 56}, "ssd"),
    "nemotron_h": Small("model.layers.0.mixer", {
        **_HEADS, "mamba_num_heads": 4, "mamba_head_dim": 24, "ssm_state_size": 6, "n_groups": 2, "conv_kernel": 3,
        "chunk_size": 5, "layers_block_type": ["mamba", "attention"]}, "ssd"),
    "zamba2": Small("model.layers.0.mamba", {
        **_HEADS, "n_mamba_heads": 4, "mamba_headdim": 24, "mamba_d_state": 6, "mamba_ngroups": 2, "mamba_d_conv": 3,
        "mamba_expand": 2, "chunk_size": 5, "num_hidden_layers": 3, "adapter_rank": 4,
        "layers_block_type": ["mamba", "hybrid", "hybrid"]}, "ssd"),
    "lara_mini": Small("model.layers.0.linear_attn", {
        **_DELTA, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
        "shared_expert_intermediate_size": 16}, "grouped_delta"),
    "bailing_hybrid": Small("model.layers.0.self_attn", _KIMI, "key_delta"),
    "qwen4_exp_text": Small("model.layers.0.linear_attn", {
        **_DELTA, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
        "shared_expert_intermediate_size": 16,
        "indexer_n_heads": 2, "indexer_kv_heads": 1, "indexer_head_dim": 12, "indexer_budget": 8,
        "indexer_compress_ratio": 2}, "grouped_delta"),
    "lfm3": Small("model.layers.0.conv", {**_HEADS, "layer_types": ["conv", "full_attention"]}, "convolution"),
    "lfm2": Small("model.layers.0.conv", {**_HEADS, "layer_types": ["conv", "full_attention"]}, "convolution"),
    "minimax": Small("model.layers.1.self_attn", {
        **_HEADS, "block_size": 5, "num_local_experts": 2, "layer_types": ["full_attention", "linear_attention"]},
        "lightning"),
    "recurrent_gemma": Small("model.layers.0.temporal_block", {
        **_HEADS, "lru_width": 48, "attention_window_size": 16, "num_hidden_layers": 3}, "lru"),
    "rwkv": Small("rwkv.blocks.0.attention", {"attention_hidden_size": 48, "intermediate_size": 56}, "wkv"),
    "xlstm": Small("backbone.blocks.0.mlstm_layer", {"num_heads": 4, "hidden_size": 128}, "mlstm"),
}

_MADE: dict[str, PreTrainedModel] = {}


def small(name: str) -> PreTrainedModel:
    """A small random model, one per family; nnsight wraps it in the course of the tests."""
    if name not in _MADE:
        _MADE[name] = plain(name)
    return _MADE[name]


_PLAIN: dict[str, PreTrainedModel] = {}


def plain(name: str) -> PreTrainedModel:
    """The same small model, a new one that nothing wraps; its parameters are off their initial values."""
    if name not in _PLAIN:
        torch.manual_seed(0)
        config = AutoConfig.for_model(name, **{**_COMMON, **SMALL[name].config})
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager").eval()
        for parameter in model.parameters():
            scale = 0.2 if parameter.ndim < 2 else parameter.shape[-1] ** -0.5
            parameter.requires_grad_(False).add_(scale * torch.randn(parameter.shape))
        _PLAIN[name] = model
    return deepcopy(_PLAIN[name])


def ids(batch: int = BATCH, seq: int = SEQ, seed: int = 1) -> torch.Tensor:
    return torch.randint(3, 40, (batch, seq), generator=torch.Generator().manual_seed(seed))


@dataclass
class Seen:
    """A small model's mixer, recorded by hooks and read through nnsight."""

    recurrent: Recurrent
    run: MixerRun
    values: dict[str, torch.Tensor]


_SEEN: dict[str, Seen] = {}


def seen(name: str) -> Seen:
    """The mixer of a small model: recorded on one that nothing wraps, read on the other."""
    if name not in _SEEN:
        model, path = plain(name), SMALL[name].path
        mixer = model.get_submodule(path)
        recurrent = recurrent_values(mixer)
        with kernels_recorded(model, [path]) as runs:
            native: NativeRun = record(model, ids())
        wanted = [value for value in recurrent.locations if value not in recurrent.later]
        values = read_all(small(name), path, recurrent, wanted)
        _SEEN[name] = Seen(recurrent, MixerRun(
            mixer, recurrent, path, native.calls, runs.get(path, []), values.__getitem__), values)
    return _SEEN[name]


def read(model: nn.Module, path: str, recurrent: Recurrent, name: str, **call: Any) -> torch.Tensor:
    """A value at its location, in its layout."""
    return laid_out(recurrent, name, raw(model, path, recurrent.locations[name], **call))


def read_all(model: nn.Module, path: str, recurrent: Recurrent, names: list[str]) -> dict[str, torch.Tensor]:
    """Values in one forward, each read by a reader of its own."""
    net = NNsight(model)
    places = [(name, *place(net, path, recurrent.locations[name])) for name in names]
    found: dict[str, torch.Tensor] = {}
    with torch.no_grad(), net.trace() as tracer:
        with tracer.invoke(input_ids=ids()):
            pass
        for name, target, location in places:
            with tracer.invoke():
                found[name] = pick(location, target.output if location.handle == "output" else target.inputs).clone()
    return {name: laid_out(recurrent, name, held) for name, held in found.items()}


def laid_out(recurrent: Recurrent, name: str, held: torch.Tensor) -> torch.Tensor:
    layout = values_of(HOST, recurrent.flavour)[name].layout
    assert layout is not None
    return to_layout(held, recurrent.held.get(name, " ".join(layout.dims)), layout.dims, recurrent.sizes)


def place(net: NNsight, path: str, text: str) -> tuple[Any, Location]:
    """What nnsight serves a location at, instrumented before the trace."""
    location = Location.parse(text)
    target: Any = net
    for step in (*path.split("."), *location.steps):
        target = target[int(step)] if step.isdigit() else getattr(target, step)
    return target, location


def pick(location: Location, served: Any) -> torch.Tensor:
    if location.handle == "output":
        return served if location.index is None else served[location.index]
    positional, keywords = served
    return positional[location.index] if isinstance(location.index, int) else keywords[location.index]


def raw(model: nn.Module, path: str, text: str, written: torch.Tensor | None = None, **call: Any) -> torch.Tensor:
    """What nnsight serves at a location; the model's logits instead where ``written`` is put there first."""
    net = NNsight(model)
    target, location = place(net, path, text)
    found = []
    with torch.no_grad(), net.trace(**{"input_ids": ids(), **call}):
        if location.handle == "output":
            # A cache overwrites its state in place before the call is over.
            found.append(pick(location, target.output).clone())
        else:
            positional, keywords = target.inputs
            found.append(pick(location, (positional, keywords)).clone())
        if written is not None:
            assert location.handle == "inputs"
            if isinstance(location.index, int):
                positional = (*positional[: location.index], written, *positional[location.index + 1:])
            else:
                keywords = {**keywords, location.index: written}
            target.inputs = (positional, keywords)
            found.append(net.output.logits)
    return found[-1]


@pytest.mark.parametrize("name", SMALL)
def test_every_value_is_where_and_what_it_says(name: str) -> None:
    there = seen(name)
    assert there.recurrent.flavour == SMALL[name].flavour
    for value, found in there.values.items():
        checks = list(recomputed(there.run, value))
        assert checks, f"{value} has no recomputation"
        for text, expected in checks:
            error = difference(expected, found)
            assert error <= TOLERANCE, f"{value}: {text}, off by {error:.2e}"


@pytest.mark.parametrize("name", SMALL)
def test_every_layout_has_the_sizes_that_the_mixer_states(name: str) -> None:
    there = seen(name)
    sizes = {**there.recurrent.sizes, "batch": BATCH, "seq": SEQ, "hidden_size": small(name).config.hidden_size}
    for value, found in there.values.items():
        layout = values_of(HOST, there.recurrent.flavour)[value].layout
        assert layout is not None
        assert list(found.shape) == [sizes[axis] for axis in layout.dims], value


@pytest.mark.parametrize("name", SMALL)
def test_a_value_is_served_or_a_reason_says_why_not(name: str) -> None:
    recurrent = recurrent_values(small(name).get_submodule(SMALL[name].path))
    assert set(recurrent.locations) == set(FLAVOURS[recurrent.flavour])
    assert set(recurrent.locations) | set(recurrent.withdrawn) == set(values_of(HOST))
    assert not set(recurrent.locations) & set(recurrent.withdrawn)
    assert set(recurrent.conditions) <= set(recurrent.locations)
    for location in recurrent.locations.values():
        assert str(Location.parse(location)) == location
    for reason in (*recurrent.withdrawn.values(), *recurrent.conditions.values()):
        assert "{" not in reason
        assert not reason.endswith(".")


#: Mixers whose second call can go on from the first one's cache with several tokens, and that then use the state.
GOING_ON = ("qwen3_next", "olmo_hybrid", "kimi_linear", "bamba", "falcon_h1", "minimax")


@pytest.mark.parametrize("name", GOING_ON)
def test_a_call_goes_on_from_the_state_the_last_one_left(name: str) -> None:
    path, there = SMALL[name].path, seen(name)
    again = {"input_ids": ids(seq=4, seed=2)}
    native = plain(name)
    cache = native(input_ids=ids(), use_cache=True).cache
    with kernels_recorded(native, [path]) as runs:
        native(cache=deepcopy(cache), **again)

    def reread(value: str) -> torch.Tensor:
        return read(small(name), path, there.recurrent, value, cache=deepcopy(cache), **again)

    left = there.values["state_output"]
    later = replace(there.run, before=left, value=reread, runs=runs.get(path, []))
    for value in ("state_input", "attention_head_outputs", "state_output"):
        checks = list(recomputed(later, value))
        assert checks
        for text, expected in checks:
            assert difference(expected, reread(value)) <= TOLERANCE, f"{value}: {text}"
    *_, (_, forgetful) = recomputed(replace(later, before=None), "attention_head_outputs")
    assert difference(forgetful, reread("attention_head_outputs")) > TOLERANCE


def test_a_selective_scan_over_several_tokens_ignores_the_state_it_is_left() -> None:
    path, there = SMALL["mamba"].path, seen("mamba")
    assert "starts from zero" in there.recurrent.conditions["state_input"]
    native = plain("mamba")
    cache = native(input_ids=ids(), use_cache=True).cache
    with kernels_recorded(native, [path]) as runs:
        native(cache=deepcopy(cache), input_ids=ids(seq=4, seed=2))

    def reread(value: str) -> torch.Tensor:
        return read(small("mamba"), path, there.recurrent, value, cache=deepcopy(cache), input_ids=ids(seq=4, seed=2))

    assert difference(there.values["state_output"], reread("state_input")) <= TOLERANCE
    (_, expected), = recomputed(replace(there.run, value=reread, runs=runs[path]), "state_output")
    assert difference(expected, reread("state_output")) <= TOLERANCE


@pytest.mark.parametrize("name", ["qwen3_next", "mamba", "mamba2"])
def test_a_step_of_one_token_runs_the_other_kernel(name: str) -> None:
    model, path, there = small(name), SMALL[name].path, seen(name)
    step = {"input_ids": ids(seq=1), "cache": plain(name)(input_ids=ids(), use_cache=True).cache}
    found = read(model, path, there.recurrent, "state_input", **deepcopy(step))
    assert difference(there.values["state_output"], found) <= TOLERANCE
    call = find_kernel_call(model.get_submodule(path))
    assert call is not None
    assert call.step is not None
    for value in ("attention_queries", "attention_values"):
        assert call.step in there.recurrent.conditions[value]
        with pytest.raises(Exception, match=str(there.recurrent.kernel)):
            raw(model, path, there.recurrent.locations[value], **deepcopy(step))


def test_a_linear_unit_keeps_its_state_on_the_module() -> None:
    model, path, there = small("recurrent_gemma"), SMALL["recurrent_gemma"].path, seen("recurrent_gemma")
    cache = DynamicCache()
    model(input_ids=ids(), cache=cache)
    found = read(model, path, there.recurrent, "state_input", input_ids=ids(seq=1), cache=cache)
    assert "given none" in there.recurrent.conditions["state_input"]
    assert not read(model, path, there.recurrent, "state_input").any()
    assert difference(there.values["state_output"], found) <= TOLERANCE


@pytest.mark.parametrize("name", ["qwen3_next", "mamba", "mamba2", "minimax"])
def test_without_a_cache_no_state_is_kept(name: str) -> None:
    model, path = small(name), SMALL[name].path
    recurrent = recurrent_values(model.get_submodule(path))
    assert "use_cache" in recurrent.conditions["state_output"]
    with pytest.raises(Exception, match=r"cache_(?:update|set)_"):
        raw(model, path, recurrent.locations["state_output"], use_cache=False)


@pytest.mark.parametrize("name", ["qwen3_next", "mamba", "mamba2", "jamba"])
@pytest.mark.parametrize("value", ["attention_queries", "attention_keys", "attention_values"])
def test_a_write_in_the_layout_reaches_the_kernel(name: str, value: str) -> None:
    model, path = small(name), SMALL[name].path
    there = seen(name)
    layout = values_of(HOST, there.recurrent.flavour)[value].layout
    assert layout is not None
    pattern = there.recurrent.held.get(value, " ".join(layout.dims))
    edited = there.values[value].clone()
    edited[:, 3] = edited[:, 3] * 2 + 0.5
    held = to_held(edited, pattern, layout.dims)
    before = model(input_ids=ids()).logits
    after = raw(model, path, there.recurrent.locations[value], written=held)
    expected = _with_argument(name, value, held)
    assert torch.equal(before[:, :3], after[:, :3])
    assert not torch.allclose(before[:, 3:], after[:, 3:])
    assert torch.allclose(expected, after, atol=1e-6)


def _with_argument(name: str, value: str, held: torch.Tensor) -> torch.Tensor:
    """The logits with the first mixer's kernel given ``held``, by a function in the kernel's place."""
    model = plain(name)
    mixer = model.get_submodule(SMALL[name].path)
    call = find_kernel_call(mixer)
    assert call is not None
    parameter = call.kernel.arguments[value][0]
    file = sys.modules[type(mixer).__module__]
    given = []

    def kernel(*arguments: Any, **keywords: Any) -> Any:
        bound = inspect.signature(call.function).bind(*arguments, **keywords)
        if not given:
            bound.arguments[parameter] = held
        given.append(parameter)
        return call.function(*bound.args, **bound.kwargs)

    original = vars(file)[call.name]
    setattr(file, call.name, kernel)
    try:
        with torch.no_grad():
            return model(input_ids=ids()).logits
    finally:
        setattr(file, call.name, original)


BROKEN = {
    "queries and keys swapped": ("qwen3_next", "attention_queries", lambda places: places["attention_keys"]),
    "a gate for the other": ("qwen3_next", "decays", lambda places: places["betas"]),
    "the projection for the kernel": ("qwen3_next", "attention_output", lambda places: "out_proj.inputs[0]"),
    "B for C": ("mamba2", "attention_queries", lambda places: places["attention_keys"]),
    "the keys of a per-channel rule": ("kimi_linear", "attention_keys", lambda places: places["attention_queries"]),
    "the gate's states for the outputs": ("recurrent_gemma", "states", lambda places: places["attention_values"]),
    "what the norm returns": ("bamba", "attention_head_outputs", lambda places: "norm.output"),
    "B for C in a scan": ("mamba", "attention_queries", lambda places: places["attention_keys"]),
    "the values' head by head": ("minimax", "attention_keys", lambda places: places["attention_queries"]),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_value_read_elsewhere_is_noticed(broken: str) -> None:
    name, value, elsewhere = BROKEN[broken]
    there = seen(name)
    moved = replace(there.recurrent, locations={
        **there.recurrent.locations, value: elsewhere(there.recurrent.locations)})
    found = read(small(name), SMALL[name].path, moved, value)
    wrong = {**there.values, value: found}
    run = replace(there.run, value=wrong.__getitem__)
    assert any(not difference(expected, found) <= TOLERANCE for _, expected in recomputed(run, value))


@pytest.mark.parametrize(("name", "value", "pattern"), [
    ("mamba", "attention_values", "batch seq channels"),
    ("mamba2", "attention_head_outputs", "batch seq (head_dim heads)"),
    ("xlstm", "attention_queries", "batch seq heads key_dim"),
])
def test_an_axis_taken_for_another_is_noticed(name: str, value: str, pattern: str) -> None:
    there = seen(name)
    other = replace(there.recurrent, held={**there.recurrent.held, value: pattern})
    found = read(small(name), SMALL[name].path, other, value)
    assert any(not difference(expected, found) <= TOLERANCE for _, expected in recomputed(there.run, value))


@pytest.mark.parametrize("change", ["decays", "betas", "attention_keys"])
def test_the_recurrence_feels_every_value_it_is_made_of(change: str) -> None:
    there = seen("qwen3_next")
    values = {**there.values, change: there.values[change] * 1.01}
    *_, (_, expected) = recomputed(replace(there.run, value=values.__getitem__), "attention_head_outputs")
    error = difference(expected, there.values["attention_head_outputs"])
    # Keys are brought to length one, so a factor common to them is the one change that nothing can see.
    assert (error <= TOLERANCE) == (change == "attention_keys")


def test_a_scan_by_head_calls_its_kernel_for_each() -> None:
    there = seen("zamba")
    assert len(there.run.runs) == there.recurrent.sizes["heads"] == 2
    assert "once per head" in there.recurrent.withdrawn["attention_queries"]


@pytest.mark.parametrize("name", ["mamba", "jamba", "falcon_mamba"])
def test_a_selective_scan_is_given_the_gate(name: str) -> None:
    call = find_kernel_call(small(name).get_submodule(SMALL[name].path))
    assert call is not None
    assert call.argument("z") == "inputs[z]"
    assert "gate" in seen(name).recurrent.withdrawn["attention_head_outputs"]


def test_a_module_without_a_recurrence_has_its_output_alone() -> None:
    recurrent = recurrent_values(nn.Linear(3, 3))
    assert recurrent.flavour == "other"
    assert dict(recurrent.locations) == {"attention_output": "output"}
    assert recurrent.withdrawn["states"].startswith("Linear calls no recurrence")


def test_a_mixer_inside_a_wrapper_is_found_there() -> None:
    recurrent = recurrent_values(small("zamba2").model.layers[0])
    assert (recurrent.flavour, recurrent.holder) == ("ssd", "mamba")
    assert recurrent.locations["attention_values"] == "mamba.source.mamba2_chunk_scan_0.inputs[0]"
    assert recurrent.sizes == seen("zamba2").recurrent.sizes


def test_sizes_come_from_the_mixer_and_not_from_widths_of_the_same_name() -> None:
    mixer = small("qwen3_next").get_submodule(SMALL["qwen3_next"].path)
    sizes = mixer_sizes(mixer, mixer)
    assert mixer.key_dim == 24
    assert {axis: sizes[axis] for axis in ("heads", "key_heads", "key_dim", "value_dim")} == {
        "heads": 6, "key_heads": 3, "key_dim": 8, "value_dim": 10}


def test_a_recording_puts_every_kernel_back() -> None:
    model = small("qwen3_next")
    file = sys.modules[type(model).__module__]
    kernel = file.torch_chunk_gated_delta_rule
    with kernels_recorded(model, [SMALL["qwen3_next"].path]):
        assert file.torch_chunk_gated_delta_rule is not kernel
        with pytest.raises(TypeError):
            model(input_ids="no tensor")
    assert file.torch_chunk_gated_delta_rule is kernel


@pytest.mark.parametrize(("pattern", "dims", "shape"), [
    ("batch channels seq", ("batch", "seq", "channels"), (2, 5, 7)),
    ("batch state_dim seq", ("batch", "seq", "groups", "state_dim"), (2, 5, 7)),
    ("batch seq (heads head_dim)", ("batch", "seq", "heads", "head_dim"), (2, 5, 12)),
    ("(heads head_dim) batch", ("batch", "heads", "head_dim"), (12, 5)),
])
def test_held_and_laid_out_are_one_storage(pattern: str, dims: tuple[str, ...], shape: tuple[int, ...]) -> None:
    tensor = torch.arange(float(torch.tensor(shape).prod())).view(shape)
    found = to_layout(tensor, pattern, dims, {"head_dim": 4})
    assert found.ndim == len(dims)
    assert torch.equal(to_held(found, pattern, dims), tensor)
    found[0] = -1.0
    assert (tensor == -1.0).sum() == found[0].numel()


def test_a_pattern_says_which_axes_lie_flat() -> None:
    assert axes_of("batch (heads head_dim) seq") == (("batch",), ("heads", "head_dim"), ("seq",))
    with pytest.raises(ValueError, match="axes batch seq channels"):
        to_layout(torch.zeros(2, 3), "batch seq channels", ("batch", "seq", "channels"), {})


def test_a_delta_rule_overwrites_and_reads_back() -> None:
    keys = torch.eye(4)[None, :, None]
    values = torch.randn(1, 4, 1, 3)
    open_gates = torch.zeros(1, 4, 1)
    outputs, state = recurrences.delta_rule(keys, keys, values, open_gates, open_gates + 1, unit=False)
    assert torch.allclose(outputs, values / 2)
    assert torch.allclose(state[0, 0], values[0, :, 0])
    _, again = recurrences.delta_rule(keys, keys, 3 * values, open_gates, open_gates + 1, unit=False, state=state)
    assert torch.allclose(again, 3 * state)


def test_a_state_space_forgets_at_its_rate() -> None:
    ones = torch.ones(1, 3, 1, 1)
    values = torch.tensor([1.0, 0.0, 0.0]).view(1, 3, 1, 1)
    rates, skip = torch.full((1, 1, 1), -0.5), torch.tensor([2.0])
    outputs, state = recurrences.state_space(ones, ones, values, torch.ones(1, 3, 1), rates, skip)
    assert torch.allclose(outputs.flatten(), torch.tensor([1 + 2.0, 0.5**0 * torch.e**-0.5, torch.e**-1.0]))
    assert state.item() == pytest.approx(torch.e**-1.0)


def test_a_weighted_average_of_equal_keys_is_the_mean() -> None:
    values = torch.tensor([1.0, 3.0, 8.0]).view(1, 3, 1)
    average = recurrences.weighted_average(torch.zeros(1, 3, 1), values, torch.zeros(1), torch.zeros(1))
    assert average.flatten().tolist() == pytest.approx([1.0, 2.0, 4.0])


def test_flavours_name_known_values_in_layouts_that_start_with_the_batch() -> None:
    table = values_of(HOST)
    assert HOSTS[HOST] == "model.layers[i].linear_attn"
    for flavour, layouts in FLAVOURS.items():
        found = values_of(HOST, flavour)
        assert list(found) == [name for name in table if name in layouts]
        assert "attention_output" in found
        for value in found.values():
            assert value.layout is layouts[value.name]
            assert value.description == table[value.name].description
            assert value.layout.dims[0] == "batch"
            assert set(value.made_from) <= set(found)
    every = {layout.name: layout for layouts in FLAVOURS.values() for layout in layouts.values()}
    assert str(every["LinearQK"]) == "LinearQK [batch seq heads key_dim]"
    assert str(every["State"]) == "State [batch heads key_dim value_dim]"
    assert str(every["ScanState"]) == "ScanState [batch channels state_dim]"
    assert all(every[value.layout.name] == value.layout for value in VOCABULARY
               if value.host == HOST and value.layout is not None and value.name != "states")


def test_what_a_flavour_lacks_is_made_from_what_that_is_made_from() -> None:
    assert values_of(HOST, "scan")["attention_output"].made_from == (
        "attention_queries", "attention_keys", "attention_values", "state_input")
    assert values_of(HOST, "lru")["attention_output"].made_from == ("states",)
    assert "betas" in values_of(HOST, "delta")["attention_head_outputs"].made_from
    with pytest.raises(KeyError):
        values_of(HOST, "no such flavour")


def test_every_value_of_every_flavour_can_be_recomputed() -> None:
    assert set(RECOMPUTED) == set(values_of(HOST))
