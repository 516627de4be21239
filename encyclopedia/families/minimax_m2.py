"""MiniMax-M2 (``MiniMaxM2ForCausalLM``): MiniMax's M2, M2.1, M2.5 and M2.7.

Nothing is declared. All blocks are of one kind: full attention and a mixture, each behind an RMSNorm, added as they
are. The departures from a Llama are inside.

- ``q_norm`` and ``k_norm`` run over all heads of a token at once, in front of the split into heads. What one head's
  queries are therefore depends on how large the other heads' projections are. The standard queries and keys are read
  behind norm and rotary, where heads are separate again.
- Half of a head's channels are rotated.
- The router chooses by sigmoids plus a stored bias and weighs by the sigmoids, which it normalises to one: no factor,
  no groups, no shared expert. The bias is a buffer of the mixture, handed to the router's forward as an argument, and
  not of the router as in DeepSeek-V3.

``intermediate_size`` in the config is the width of one expert; there is no dense MLP.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="minimax_m2",
    title="MiniMax-M2",
    subtitle=(
        "One norm over the queries of all heads together and one over the keys, half of each head rotated, and in each "
        "block experts picked by biased sigmoids with none that always runs."
    ),
    hue=318,
)
