"""Mamba (``MambaForCausalLM``, by Albert Gu and Tri Dao).

Nothing is declared. Where a Llama block has an attention and an MLP, this one has a single ``MambaMixer`` behind a
single norm, and what the mixer returns is added to the stream as it is. A gate inside the mixer does an MLP's work.

- The mixer is served as ``linear_attn``. Its queries, keys and values (C, B and x of the paper) are arguments of
  ``mamba_selective_scan``, held there with the sequence last; the standard values have it second.
- The scan multiplies by the gate before it returns. So there is no place where the heads' outputs could be read, and
  ``attention_head_outputs`` is not among the values; with one step size per channel there are no heads either.
- Decays are made inside the scan, out of ``A_log`` and the step size, for every channel and state entry at once.
  The notes show how to make them outside.
- ``state_input`` is what the cache hands over. The scan does not take it: a call of more than one token starts from
  nothing, whatever an earlier call left.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="mamba",
    title="Mamba",
    subtitle=(
        "One mixer per block and neither attention nor MLP: a short convolution and a selective scan, whose state of "
        "fixed size is all that a position knows of those before it."
    ),
    hue=96,
)
