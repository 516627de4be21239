"""The values of the whole model."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from encyclopedia.checks.meaning.here import Expected, Root, hidden_states
from encyclopedia.structure.block import same


def at_root(root: Root, name: str) -> Iterator[Expected]:
    """The recomputations of a value of the root."""
    ids = root.native.input_ids
    depth = root.structure.depth
    if name == "input_ids":
        yield "the token ids the model was called with", ids
    elif name == "attention_mask":
        yield "the mask the model was called with", torch.ones_like(ids)
    elif name == "input_size":
        yield "the shape of the token ids", torch.tensor(ids.shape)
    elif name == "token_embeddings":
        yield "the embedding module's output under a plain hook", root.native.calls[root.stack.embed_tokens][-1].output
    elif name == "final_norm_output":
        assert root.stack.norm is not None
        call = root.call(root.stack.norm)
        head, stream = root.call(root.stack.lm_head), root.call(f"{root.stack.layers}.{depth - 1}").leaving
        if same(hidden_states(head), call.leaving):
            yield "what a plain hook sees enter the head", hidden_states(head)
        if same(hidden_states(call), stream):
            last = root.value(depth - 1, "layer", "layer_output")
            yield "the final norm of the last block's layer_output", root.module("norm")(last)
    elif name == "lm_head_output":
        call = root.call(root.stack.lm_head)
        yield "what a plain hook sees leave the head", call.leaving
        if root.stack.norm is not None and same(hidden_states(call), root.call(root.stack.norm).leaving):
            yield "the head of final_norm_output", root.module("lm_head")(
                root.value(None, "model", "final_norm_output"))
    elif name == "logits":
        yield "the logits the model returns when nothing traces it", root.native.output.logits
    elif name == "next_token_probs":
        yield "the softmax of the last position's logits", root.native.output.logits[:, -1].softmax(-1)
