"""Examples: code that reads a value, and code that writes it where that makes sense."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from encyclopedia.facts import CheckpointFacts, HostFacts, ValueFacts

#: What an edit sets to zero, by the axes of the layout; the first entry whose axes are all there is taken.
_EDITS: tuple[tuple[frozenset[str], str, str], ...] = (
    (frozenset({"num_heads", "query", "key"}), "[:, 0, -1]", "head 0, last query"),
    (frozenset({"num_heads", "seq", "qk_head_dim"}), "[:, 0]", "head 0"),
    (frozenset({"num_kv_heads", "seq"}), "[:, 0]", "key/value head 0"),
    (frozenset({"batch", "seq"}), "[:, -1]", "the last token"),
    (frozenset({"batch", "heads"}), "[:, 0]", "head 0’s state"),
    (frozenset({"batch", "channels"}), "[:, 0]", "channel 0’s state"),
)

#: Edits of values that zero would not be a value of, as code and as a phrase.
_OTHER_EDITS: Mapping[str, tuple[str, str]] = {
    "expert_indices": ("edited = edited.flip(-1)", "the experts of its slots swapped, their weights not"),
    "attention_mask": ("edited[:, 0] = 0", "the first token is padding now"),
}


@dataclass(frozen=True)
class Example:
    """Code about one value of one checkpoint.

    Attributes:
        checkpoint: the id of the model it is written for.
        load: code that loads it and makes a prompt, giving ``model`` and ``prompt``.
        read: code that reads the value.
        write: code that edits it, or ``None`` where nothing can be assigned.
    """

    checkpoint: str
    load: str
    read: str
    write: str | None


def example_of(checkpoint: CheckpointFacts, host: HostFacts, value: ValueFacts) -> Example:
    """The example for ``value``, which ``host`` of ``checkpoint`` serves."""
    first = min((kind.blocks[0] for kind, shape in zip(checkpoint.kinds, value.shapes, strict=True)
                 if shape is not None), default=checkpoint.kinds[0].blocks[0])
    module = host.host.replace("[i]", f"[{first}]")
    return Example(checkpoint.id, _load(checkpoint, value), _read(module, value),
                   _write(module, value) if value.writable and value.layout is not None else None)


def _load(checkpoint: CheckpointFacts, value: ValueFacts) -> str:
    eager = ', attn_implementation="eager"' if "attn_implementation" in (value.condition or "") else ""
    return (f"import torch\n\n"
            f"from encyclopedia import StandardizedTransformer\n\n"
            f'model = StandardizedTransformer("{checkpoint.id}"{eager})\n'
            f'prompt = model.tokenizer("The quick brown fox jumps over", return_tensors="pt").input_ids\n')


#: Code that keeps the cache of a first call, and the arguments of a call that goes on from it.
_KEEP = ('name = "cache" if "cache" in first else "past_key_values"\n'
         "cache = {name: first[name]}\n"
         "mask = torch.ones_like(prompt)\n\n")
_FIRST = "prompt[:, :-2], use_cache=True"
_NEXT = "prompt[:, -2:], attention_mask=mask, **cache"


def _goes_on(value: ValueFacts) -> bool:
    return "goes on from a cache" in (value.condition or "")


def _call(value: ValueFacts) -> tuple[str, str]:
    """Code in front of the call that has the value, and the call's arguments."""
    if _goes_on(value):
        return f"with model.trace({_FIRST}):\n    first = model.output.save()\n{_KEEP}", _NEXT
    return "", "prompt, use_cache=True" if _is_kept(value) else "prompt"


def _is_kept(value: ValueFacts) -> bool:
    """Whether it is what a call leaves for the next one, which alone shows an edit of it."""
    return value.name == "state_output"


def _read(module: str, value: ValueFacts) -> str:
    before, arguments = _call(value)
    if value.layout is None:
        return (f"import nnsight\n\n{before}with model.trace({arguments}):\n"
                f"    {value.name} = nnsight.save({module}.{value.name})\n\nprint({value.name})\n")
    return (f"{before}with model.trace({arguments}):\n    {value.name} = {module}.{value.name}.save()\n\n"
            f"print({value.name}.shape)  # {value.layout} [{' '.join(value.dims)}]\n")


def _write(module: str, value: ValueFacts) -> str:
    before, arguments = _call(value)
    if value.name in _OTHER_EDITS:
        edit, said = _OTHER_EDITS[value.name]
    else:
        place, said = next((place, said) for axes, place, said in _EDITS if axes <= set(value.dims))
        edit = f"edited{place} = 0"
    edits = (f"    edited = {module}.{value.name}.clone()\n"
             f"    {edit}  # {said}\n"
             f"    {module}.{value.name} = edited\n")
    shows = "    logits = model.logits.save()\n"
    if _is_kept(value):
        return (f"with model.trace({_FIRST}):\n{edits}    first = model.output.save()\n{_KEEP}"
                f"with model.trace({_NEXT}):\n{shows}")
    return f"{before}with model.trace({arguments}):\n{edits}{shows}"


def best_checkpoint(candidates: Sequence[tuple[bool, CheckpointFacts]]) -> CheckpointFacts:
    """The one to write an example for: with notes by people, public, and small.

    Args:
        candidates: checkpoints that have the value, each with whether its family has notes by people.
    """
    def rank(candidate: tuple[bool, CheckpointFacts]) -> tuple[bool, bool, int]:
        annotated, checkpoint = candidate
        return not annotated, checkpoint.is_default, checkpoint.parameters.total if checkpoint.parameters else 0

    return min(candidates, key=rank)[1]
