"""Meaning of a recurrent mixer's values: recomputed from what its kernel was called with, and by the recurrence itself.

The kernel's calls are recorded by putting a noting function in its place in the model's file, so a value read at the
wrong operation, argument or axis differs from what the kernel was really given.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from nnsight.intervention.source import decorator_chain
from torch import nn

from encyclopedia.checks import recurrences
from encyclopedia.native import Call
from encyclopedia.structure.kernels import KernelCall, find_kernel_call
from encyclopedia.structure.recurrent import Recurrent

#: A recomputation: the claim in words and the tensor expected.
Expected = tuple[str, torch.Tensor]


@dataclass(frozen=True)
class KernelRun:
    """One call of a kernel: its arguments by parameter, and what it returned."""

    arguments: Mapping[str, Any]
    output: Any

    def tensor(self, parameter: str) -> torch.Tensor:
        """The tensor that the kernel was given as ``parameter``."""
        found = self.arguments[parameter]
        assert isinstance(found, torch.Tensor), f"the kernel was given no tensor as {parameter}"
        return found


@contextmanager
def kernels_recorded(model: nn.Module, mixers: Sequence[str]) -> Iterator[dict[str, list[KernelRun]]]:
    """While open, the kernels of the recurrent mixers under the paths ``mixers`` note their calls, by mixer.

    Args:
        model: a causal model, not wrapped by anything.
        mixers: native paths of its recurrent mixers.
    """
    runs: dict[str, list[KernelRun]] = {}
    running: list[str] = []
    patched: set[tuple[int, str]] = set()
    # Found before any is replaced: a kernel is known by its own parameters.
    found = [(path, find_kernel_call(model.get_submodule(path))) for path in mixers]
    with ExitStack() as stack:
        for path, call in found:
            if call is None:
                continue
            mixer = model.get_submodule(path)
            stack.callback(mixer.register_forward_pre_hook(_entering(running, path)).remove)
            stack.callback(mixer.register_forward_hook(_leaving(running)).remove)
            holder = mixer.get_submodule(call.holder)
            if call.child is not None:
                child = holder.get_submodule(call.child)
                stack.callback(child.register_forward_hook(_noting_module(runs, path), with_kwargs=True).remove)
                continue
            owner, name, original = _place(call, holder)
            if (id(owner), name) not in patched:
                patched.add((id(owner), name))
                _put(owner, name, _noting(original, runs, running))
                stack.callback(_put, owner, name, original)
        yield runs


def _place(call: KernelCall, holder: nn.Module) -> tuple[Any, str, Callable]:
    """Where the forward finds the kernel: the globals of its file, or the holder's class for a method."""
    if call.name.startswith("self_"):
        name = call.name.removeprefix("self_")
        owner = next(klass for klass in type(holder).__mro__ if name in vars(klass))
        return owner, name, vars(owner)[name]
    file = decorator_chain(type(holder).forward)[0].__globals__
    return file, call.name, file[call.name]


def _put(owner: Any, name: str, function: Callable) -> None:
    if isinstance(owner, dict):
        owner[name] = function
    else:
        setattr(owner, name, function)


def _noting(original: Callable, runs: dict[str, list[KernelRun]], running: list[str]) -> Callable:
    def kernel(*arguments: Any, **keywords: Any) -> Any:
        output = original(*arguments, **keywords)
        if running:
            runs.setdefault(running[-1], []).append(_run(original, arguments, keywords, output))
        return output

    return kernel


def _noting_module(runs: dict[str, list[KernelRun]], path: str) -> Callable:
    def hook(module: nn.Module, arguments: tuple, keywords: dict, output: Any) -> None:
        runs.setdefault(path, []).append(_run(module.forward, arguments, keywords, output))

    return hook


def _run(function: Callable, arguments: tuple, keywords: dict, output: Any) -> KernelRun:
    bound = inspect.signature(function).bind(*arguments, **keywords).arguments
    return KernelRun({name: _copied(value) for name, value in bound.items()}, _copied(output))


def _entering(running: list[str], path: str) -> Callable:
    def hook(*_: Any) -> None:
        running.append(path)

    return hook


def _leaving(running: list[str]) -> Callable:
    def hook(*_: Any) -> None:
        running.pop()

    return hook


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return tuple(_copied(each) for each in value) if isinstance(value, tuple | list) else value


@dataclass(frozen=True)
class MixerRun:
    """What a recurrent mixer's values are recomputed from.

    Attributes:
        mixer: the module.
        recurrent: what was derived for it.
        path: its native path.
        calls: by native path, what plain hooks recorded.
        runs: its kernel's calls in that forward.
        value: reads a standard value of the mixer; it raises where the value was not read.
        before: the state that an earlier call left, ``None`` for a first call.
    """

    mixer: nn.Module
    recurrent: Recurrent
    path: str
    calls: Mapping[str, Sequence[Call]]
    runs: Sequence[KernelRun]
    value: Callable[[str], torch.Tensor]
    before: torch.Tensor | None = None

    @property
    def holder(self) -> nn.Module:
        """The module whose forward runs the recurrence."""
        return self.mixer.get_submodule(self.recurrent.holder)

    @property
    def run(self) -> KernelRun:
        """The kernel's call."""
        return self.runs[-1]

    @property
    def call(self) -> Call:
        """The mixer's own call."""
        return self.calls[self.path][-1]

    @property
    def entering(self) -> torch.Tensor:
        """What entered the mixer."""
        return self.call.keywords.get("hidden_states", self.call.entering)

    def inside(self, child: str) -> Call:
        """The last call of a module inside the holder."""
        parts = (self.path, self.recurrent.holder, child)
        return self.calls[".".join(part for part in parts if part)][-1]

    def writer(self) -> str:
        """The path, from the mixer, of the layer that writes what the mixer returns."""
        for name, module in reversed(list(self.mixer.named_modules())):
            calls = self.calls.get(f"{self.path}.{name}", ())
            if calls and not list(module.children()) and any(each.ndim > 1 for each in module.parameters()):
                output = calls[-1].output
                if isinstance(output, torch.Tensor) and torch.equal(output, self.call.leaving):
                    return name
        raise LookupError(f"no layer of {type(self.mixer).__name__} returns what it does")


Recompute = Callable[[MixerRun], Iterator[Expected]]


def recomputed(here: MixerRun, name: str) -> Iterator[Expected]:
    """The recomputations of the value ``name`` of a recurrent mixer; none for a name that has none."""
    found = RECOMPUTED.get(name)
    if found is not None:
        yield from found(here)


def _given(parameters: Mapping[str, str], arrange: Mapping[str, Callable[[torch.Tensor], torch.Tensor]]) -> Recompute:
    """Recompute a value as the argument its flavour's kernel is given, brought to the standard layout."""

    def recompute(here: MixerRun) -> Iterator[Expected]:
        flavour = here.recurrent.flavour
        if flavour == "lightning":
            yield from _projected(here, parameters["delta"])
            return
        parameter = parameters.get(flavour, parameters["delta"])
        given = here.run.tensor(parameter)
        yield f"the {parameter} that the kernel is called with", arrange.get(flavour, torch.clone)(given)

    return recompute


def _projected(here: MixerRun, which: str) -> Iterator[Expected]:
    mixer: Any = here.holder
    projected = mixer.act_fn(mixer.qkv_proj(here.entering)).unflatten(-1, (here.recurrent.sizes["heads"], -1))
    part = dict(zip(("query", "key", "value"), projected.chunk(3, dim=-1), strict=True))[which]
    yield f"the {which} part of act_fn of qkv_proj of what enters the mixer", part


def _swapped(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.transpose(1, 2)


def _swapped_in_one_group(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.transpose(1, 2)[:, :, None]


def _softplus_steps(run: KernelRun, bias: torch.Tensor | None) -> torch.Tensor:
    """The step sizes ``[batch, seq, channels]`` of a selective scan."""
    steps = run.tensor("dt").transpose(1, 2).double()
    return F.softplus(steps if bias is None else steps + bias.double())


def _scanned(here: MixerRun) -> tuple[torch.Tensor, torch.Tensor]:
    """A Mamba-1's gated outputs and last state, from its own parameters."""
    mixer: Any = here.holder
    run = here.run
    keys, queries, values = (here.value(f"attention_{name}") for name in ("keys", "queries", "values"))
    steps = _softplus_steps(run, mixer.dt_proj.bias)
    outputs, state = recurrences.selective_scan(queries, keys, values, steps, -mixer.A_log.exp(), mixer.D)
    return outputs * F.silu(run.tensor("z").transpose(1, 2)), state


def _scanned_by_head(here: MixerRun) -> tuple[torch.Tensor, torch.Tensor]:
    """A Zamba's gated outputs and last states, one scan after the other."""
    mixer: Any = here.holder
    outputs, states = [], []
    for head, run in enumerate(here.runs):
        found, state = recurrences.selective_scan(
            _swapped_in_one_group(run.tensor("C")), _swapped_in_one_group(run.tensor("B")),
            _swapped(run.tensor("hidden_states")), _softplus_steps(run, mixer.dt_proj_bias[head]),
            -mixer.A_log[head].exp(), mixer.D[head])
        outputs.append(found * F.silu(run.tensor("z").transpose(1, 2)))
        states.append(state)
    return torch.cat(outputs, -1), torch.stack(states, 1)


def _recurred(here: MixerRun) -> tuple[str, torch.Tensor | None, torch.Tensor | None]:
    """The recurrence in words, the head outputs and the last state, from the values that were read."""
    flavour, mixer = here.recurrent.flavour, here.holder
    parameters: Any = mixer
    if flavour == "lru":
        states = recurrences.linear_unit(here.value("attention_values"), here.value("decays"))
        return "attention_values and decays, token by token", None, states[:, -1]
    if flavour in ("scan", "head_scan"):
        _, state = _scanned(here) if flavour == "scan" else _scanned_by_head(here)
        return "the selective scan, token by token", None, state
    keys, values = here.value("attention_keys"), here.value("attention_values")
    if flavour == "wkv":
        average = recurrences.weighted_average(keys, values, parameters.time_decay.exp(), parameters.time_first)
        return "the average of attention_values weighted by attention_keys, token by token", average, None
    queries = here.value("attention_queries")
    if flavour.endswith("delta"):
        outputs, state = recurrences.delta_rule(
            queries, keys, values, here.value("decays"), here.value("betas"),
            unit=bool(here.run.arguments.get("use_qk_l2norm_in_kernel")), state=here.before)
        return "the delta rule on the values read, token by token", outputs, state
    if flavour == "ssd":
        steps = F.softplus(here.run.tensor("dt").double() + parameters.dt_bias.double())
        steps = steps.clamp(*here.run.arguments.get("dt_limit", (0.0, float("inf"))))
        outputs, state = recurrences.state_space(
            queries, keys, values, steps, -parameters.A_log.exp()[:, None, None], parameters.D, here.before)
        return "the state-space recurrence on the values read, token by token", outputs, state
    if flavour == "lightning":
        outputs, state = recurrences.linear_attention(queries, keys, values, parameters.slope_rate.flatten(),
                                                      here.before)
        return "linear attention on the values read, token by token", outputs, state
    if flavour == "mlstm":
        inputs, forgets = here.run.tensor("igate").transpose(1, 2), here.run.tensor("fgate").transpose(1, 2)
        outputs = recurrences.matrix_memory(queries, keys, values, inputs, forgets, parameters.config.eps)
        return "the matrix memory on the values read, token by token", outputs, None
    raise LookupError(f"no recurrence is known for the flavour {flavour}")


def _head_outputs(here: MixerRun) -> Iterator[Expected]:
    flavour = here.recurrent.flavour
    if flavour != "lightning":
        output = here.run.output[0] if isinstance(here.run.output, tuple) else here.run.output
        yield "what the kernel returns", _swapped(output) if flavour == "mlstm" else output
    text, outputs, _ = _recurred(here)
    if outputs is not None:
        yield text, outputs


def _states(here: MixerRun) -> Iterator[Expected]:
    yield "what the kernel returns", here.run.output[0]
    yield ("decays times the state before plus attention_values, token by token",
           recurrences.linear_unit(here.value("attention_values"), here.value("decays")))


def _state_output(here: MixerRun) -> Iterator[Expected]:
    text, _, state = _recurred(here)
    if state is not None:
        yield f"the last state of {text}", state


def _state_input(here: MixerRun) -> Iterator[Expected]:
    if here.before is not None:
        yield "the state_output of the call before", here.before


def _attention_output(here: MixerRun) -> Iterator[Expected]:
    yield "what a plain hook sees leave the mixer", here.call.leaving
    if here.recurrent.flavour == "other":
        return
    writer = here.writer()
    premix = PREMIXES.get(here.recurrent.flavour, _normed)(here)
    if premix is not None:
        text, tensor = premix
        expected: torch.Tensor = here.mixer.get_submodule(writer)(tensor)
        yield f"{writer} of {text}", expected


def _normed(here: MixerRun) -> Expected | None:
    """The head outputs through the norm and its gate; nothing where the mixer has none."""
    heads = here.value("attention_head_outputs")
    for name, norm in here.holder.named_children():
        if "norm" not in type(norm).__name__.lower():
            continue
        call = here.inside(name)
        if call.entering.numel() == heads.numel():
            normed = norm(heads.reshape(call.entering.shape), *call.arguments[1:], **call.keywords)
            return f"{name} of attention_head_outputs under its gate", normed.reshape(*heads.shape[:2], -1)
    return None


def _unnormed_scan(here: MixerRun) -> Expected:
    return "the gated selective scan, token by token", _scanned(here)[0]


def _unnormed_head_scan(here: MixerRun) -> Expected:
    return "the gated selective scans of the heads, token by token", _scanned_by_head(here)[0]


def _lightning_premix(here: MixerRun) -> Expected:
    mixer: Any = here.holder
    gate = mixer.output_gate(here.entering).sigmoid()
    normed = mixer.norm(here.value("attention_head_outputs").flatten(-2))
    return "the norm of attention_head_outputs times the sigmoid of output_gate", gate * normed


def _mlstm_premix(here: MixerRun) -> Expected:
    mixer: Any = here.holder
    gate = mixer.ogate_act_fn(mixer.ogate_preact(here.entering))
    heads = mixer.multihead_norm(here.value("attention_head_outputs"))
    return "multihead_norm of attention_head_outputs times the output gate", gate * heads.flatten(2)


def _wkv_premix(here: MixerRun) -> Expected:
    gate = here.inside("receptance").output.sigmoid()
    return "attention_head_outputs times the sigmoid of receptance", gate * here.value("attention_head_outputs")


def _lru_premix(here: MixerRun) -> Expected:
    mixer: Any = here.mixer
    gate = mixer.act_fn(mixer.linear_y(here.call.entering))
    return "states times act_fn of linear_y of what enters the mixer", gate * here.value("states")


def _convolved(here: MixerRun) -> Expected:
    """The gated short convolution, one tap after another."""
    mixer: Any = here.holder
    before, after, values = mixer.in_proj(here.entering).chunk(3, dim=-1)
    written = before * values
    taps = mixer.conv.weight[:, 0].flip(-1)
    total = torch.zeros_like(written) if mixer.conv.bias is None else mixer.conv.bias.expand_as(written).clone()
    for back in range(min(taps.shape[-1], written.shape[1])):
        total[:, back:] = total[:, back:] + taps[:, back] * written[:, : written.shape[1] - back]
    return "the gated inputs convolved tap by tap and gated again", after * total


#: By flavour, what the mixer's last projection is given.
PREMIXES: dict[str, Callable[[MixerRun], Expected | None]] = {
    "scan": _unnormed_scan,
    "head_scan": _unnormed_head_scan,
    "lightning": _lightning_premix,
    "mlstm": _mlstm_premix,
    "wkv": _wkv_premix,
    "lru": _lru_premix,
    "convolution": _convolved,
}

RECOMPUTED: dict[str, Recompute] = {
    "attention_queries": _given(
        {"delta": "query", "scan": "C", "ssd": "C"}, {"scan": _swapped_in_one_group, "mlstm": _swapped}),
    "attention_keys": _given(
        {"delta": "key", "scan": "B", "ssd": "B"}, {"scan": _swapped_in_one_group, "mlstm": _swapped}),
    "attention_values": _given(
        {"delta": "value", "scan": "hidden_states", "ssd": "hidden_states", "lru": "hidden_states"},
        {"scan": _swapped, "mlstm": _swapped}),
    "decays": _given({"delta": "g", "lru": "recurrent_gate"}, {}),
    "betas": _given({"delta": "beta"}, {}),
    "state_input": _state_input,
    "states": _states,
    "state_output": _state_output,
    "attention_head_outputs": _head_outputs,
    "attention_output": _attention_output,
}
