"""The recurrences of recurrent mixers, one token after another, in plain PyTorch and double precision.

They share no code with the models: those run chunks of tokens at once, these the definition. Every function takes
tensors in the standard layouts (:data:`encyclopedia.vocabulary.FLAVOURS`) and returns them so.
"""

from __future__ import annotations

import torch

#: Added to a squared length before a delta rule divides by its root.
NORM_EPSILON = 1e-6


def delta_rule(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, decays: torch.Tensor, betas: torch.Tensor,
    *, unit: bool, state: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """A gated delta rule: decay the state, then move what it returns for the key towards the value.

    Args:
        queries: ``[batch, seq, key_heads, key_dim]``.
        keys: of the same shape.
        values: ``[batch, seq, heads, value_dim]``.
        decays: logarithms, ``[batch, seq, heads]``, or ``[batch, seq, heads, key_dim]`` for one per key channel.
        betas: ``[batch, seq, heads]``.
        unit: whether queries and keys are brought to length one first.
        state: ``[batch, heads, key_dim, value_dim]`` to start from, zeros by default.

    Returns:
        Head outputs like ``values``, and the last state.
    """
    queries, keys, values, decays, betas = (each.double() for each in (queries, keys, values, decays, betas))
    batch, seq, heads, value_dim = values.shape
    queries, keys = (each.repeat_interleave(heads // each.shape[2], dim=2) for each in (queries, keys))
    if unit:
        queries, keys = (each / (each.pow(2).sum(-1, keepdim=True) + NORM_EPSILON).sqrt() for each in (queries, keys))
    factors = (decays if decays.ndim == 4 else decays[..., None]).exp()
    memory = values.new_zeros(batch, heads, keys.shape[-1], value_dim) if state is None else state.double()
    outputs = []
    for token in range(seq):
        key = keys[:, token]
        memory = memory * factors[:, token, :, :, None]
        returned = torch.einsum("bhk,bhkv->bhv", key, memory)
        change = betas[:, token, :, None] * (values[:, token] - returned)
        memory = memory + torch.einsum("bhk,bhv->bhkv", key, change)
        outputs.append(torch.einsum("bhk,bhkv->bhv", queries[:, token], memory) / key.shape[-1] ** 0.5)
    return torch.stack(outputs, 1).float(), memory.float()


def selective_scan(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, steps: torch.Tensor, rates: torch.Tensor,
    skip: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The selective scan of Mamba-1, without its gate.

    Args:
        queries: C, ``[batch, seq, groups, state_dim]``.
        keys: B, of the same shape.
        values: x, ``[batch, seq, channels]``.
        steps: positive step sizes, ``[batch, seq, channels]``.
        rates: A, negative, ``[channels, state_dim]``.
        skip: D, ``[channels]``.

    Returns:
        Outputs like ``values``, and the last state ``[batch, channels, state_dim]``.
    """
    heads, memory = state_space(
        queries, keys, values[..., None], steps, rates[:, None].expand(-1, 1, -1), skip)
    return heads[..., 0], memory[:, :, 0]


def state_space(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, steps: torch.Tensor, rates: torch.Tensor,
    skip: torch.Tensor, state: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The recurrence of a state-space mixer with heads.

    Args:
        queries: C, ``[batch, seq, groups, state_dim]``.
        keys: B, of the same shape.
        values: x, ``[batch, seq, heads, head_dim]``.
        steps: positive step sizes, ``[batch, seq, heads]``.
        rates: A, negative, ``[heads, 1 or head_dim, 1 or state_dim]``.
        skip: D, ``[heads]``.
        state: ``[batch, heads, head_dim, state_dim]`` to start from, zeros by default.

    Returns:
        Head outputs like ``values``, and the last state.
    """
    queries, keys, values, steps, rates, skip = (
        each.double() for each in (queries, keys, values, steps, rates, skip))
    batch, seq, heads, head_dim = values.shape
    queries, keys = (each.repeat_interleave(heads // each.shape[2], dim=2) for each in (queries, keys))
    memory = values.new_zeros(batch, heads, head_dim, keys.shape[-1]) if state is None else state.double()
    outputs = []
    for token in range(seq):
        step = steps[:, token, :, None, None]
        memory = memory * (step * rates).exp() + step * torch.einsum(
            "bhp,bhn->bhpn", values[:, token], keys[:, token])
        outputs.append(torch.einsum("bhn,bhpn->bhp", queries[:, token], memory) + skip[:, None] * values[:, token])
    return torch.stack(outputs, 1).float(), memory.float()


def linear_attention(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, rates: torch.Tensor,
    state: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Linear attention whose state shrinks by a fixed factor per head and token.

    Args:
        queries: ``[batch, seq, heads, key_dim]``.
        keys: of the same shape.
        values: ``[batch, seq, heads, value_dim]``.
        rates: the factors' negated logarithms, ``[heads]``.
        state: ``[batch, heads, key_dim, value_dim]`` to start from, zeros by default.

    Returns:
        Head outputs like ``values``, and the last state.
    """
    queries, keys, values, rates = (each.double() for each in (queries, keys, values, rates))
    batch, seq, heads, value_dim = values.shape
    memory = values.new_zeros(batch, heads, keys.shape[-1], value_dim) if state is None else state.double()
    outputs = []
    for token in range(seq):
        memory = memory * (-rates).exp()[:, None, None] + torch.einsum(
            "bhk,bhv->bhkv", keys[:, token], values[:, token])
        outputs.append(torch.einsum("bhk,bhkv->bhv", queries[:, token], memory))
    return torch.stack(outputs, 1).float(), memory.float()


def matrix_memory(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, inputs: torch.Tensor, forgets: torch.Tensor,
    epsilon: float,
) -> torch.Tensor:
    """The matrix memory of an xLSTM, divided by its normaliser.

    Args:
        queries: ``[batch, seq, heads, key_dim]``.
        keys: of the same shape.
        values: ``[batch, seq, heads, value_dim]``.
        inputs: the logarithm of the input gate, ``[batch, seq, heads]``.
        forgets: what the forget gate is the sigmoid of, of the same shape.
        epsilon: added to the normaliser.

    Returns:
        Head outputs like ``values``.
    """
    queries, keys, values, inputs, forgets = (each.double() for each in (queries, keys, values, inputs, forgets))
    batch, seq, heads, value_dim = values.shape
    memory = values.new_zeros(batch, heads, keys.shape[-1], value_dim)
    total, largest = memory[..., 0], inputs.new_zeros(batch, heads)
    outputs = []
    for token in range(seq):
        kept = torch.nn.functional.logsigmoid(forgets[:, token]) + largest
        largest = torch.maximum(kept, inputs[:, token])
        keep, write = (kept - largest).exp(), (inputs[:, token] - largest).exp()
        memory = keep[..., None, None] * memory + write[..., None, None] * torch.einsum(
            "bhk,bhv->bhkv", keys[:, token], values[:, token])
        total = keep[..., None] * total + write[..., None] * keys[:, token]
        query = queries[:, token] / keys.shape[-1] ** 0.5
        size = torch.maximum((query * total).sum(-1).abs(), (-largest).exp()) + epsilon
        outputs.append(torch.einsum("bhk,bhkv->bhv", query, memory) / size[..., None])
    return torch.stack(outputs, 1).float()


def weighted_average(
    keys: torch.Tensor, values: torch.Tensor, rates: torch.Tensor, bonus: torch.Tensor
) -> torch.Tensor:
    """RWKV's average of the values, weighted by the keys' exponentials.

    Args:
        keys: ``[batch, seq, channels]``.
        values: of the same shape.
        rates: by how much an earlier token's exponent falls per token, ``[channels]``.
        bonus: added to the current token's exponent, ``[channels]``.

    Returns:
        The average, like ``values``.
    """
    keys, values, rates, bonus = (each.double() for each in (keys, values, rates, bonus))
    above, below = torch.zeros_like(values[:, 0]), torch.zeros_like(values[:, 0])
    outputs = []
    for token in range(values.shape[1]):
        key, value = keys[:, token], values[:, token]
        weight = (key + bonus).exp()
        outputs.append((above + weight * value) / (below + weight))
        above = above * (-rates).exp() + key.exp() * value
        below = below * (-rates).exp() + key.exp()
    return torch.stack(outputs, 1).float()


def linear_unit(values: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    """A linear recurrent unit from the first position of a prompt.

    Args:
        values: ``[batch, seq, channels]``.
        factors: what the state is multiplied by at each token, of the same shape.

    Returns:
        The states, like ``values``.
    """
    values, factors = values.double(), factors.double()
    states = [values[:, 0]]
    for token in range(1, values.shape[1]):
        states.append(factors[:, token] * states[-1] + values[:, token])
    return torch.stack(states, 1).float()
