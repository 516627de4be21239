"""Mamba-2 (``Mamba2ForCausalLM``, by Tri Dao and Albert Gu; Codestral Mamba by Mistral AI).

A block is one norm and one ``Mamba2Mixer``, served as ``linear_attn``, whose output is added as it is. Places are all
derived: queries, keys and values (C, B and x) are arguments of ``mamba2_chunk_scan``, head outputs what it returns.

- Against Mamba-1 the decay is one number per head and token, and heads have a width of their own, so a mixer is linear
  attention with heads. Here the gate comes behind the scan and head outputs can be read in front of it.
- Behind the gate stands a norm that spans all channels of a group, and only then ``out_proj``. What a head adds
  therefore depends on the others of its group. The norm is inside the mixer, where no measurement of the block's norms
  looks, so the quirk is declared.
- The scan takes the state that an earlier call left. Calls of any length go on from a cache.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="mamba2",
    title="Mamba-2 and Codestral Mamba",
    subtitle=(
        "One mixer per block and neither attention nor MLP: heads of linear attention that forget by one number per "
        "token, a gate, and a norm over the heads in front of the output projection."
    ),
    hue=112,
    quirks=("inner-norms",),
)
