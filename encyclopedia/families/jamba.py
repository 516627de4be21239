"""Jamba (``JambaForCausalLM``, by AI21 Labs).

The block is Llama's: a mixer and an MLP, each behind an RMSNorm, added as they are. Nothing is declared, because each
of the three choices a block makes shows in its modules.

- The mixer is a Mamba-1 (``mamba``, served as ``linear_attn``) on most blocks and a softmax attention on one in eight
  or fewer. The two have block classes of their own.
- The Mamba has norms on the low-rank step size, on B and on C. Keys and queries are arguments of the scan and are read
  behind those norms.
- The MLP is dense or a mixture without shared expert; a checkpoint with a single expert has no mixture anywhere.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="jamba",
    title="Jamba",
    subtitle=(
        "Most blocks mix positions by a Mamba with normalised keys and queries, a few by an attention without "
        "positions, and in the large models every other MLP is a mixture."
    ),
    hue=146,
)
