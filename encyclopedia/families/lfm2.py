"""LFM2 (``Lfm2ForCausalLM``, by Liquid AI).

Llama's block with a gated short convolution in the place of most attentions. Nothing is declared; what differs shows in
the modules.

- ``Lfm2ShortConv`` is served as ``linear_attn``. It carries no state but its last inputs, so it has a contribution and
  none of the other values of a recurrent mixer: no keys, no queries, nothing to read out of. The notes show the places
  of its gates in the forward's own operations.
- Norms and projections have names of their own: ``operator_norm`` and ``ffn_norm`` in front, ``w1``, ``w3``, ``w2`` in
  the MLP, ``out_proj`` behind the attention, ``embedding_norm`` for the norm in front of the head.
- The MLP calls ``silu`` as a function. Neurons are read where they enter ``w2``; the activation has no module and no
  standard place.
"""

from encyclopedia.families.base import Family

FAMILY = Family(
    model_type="lfm2",
    title="LFM2",
    subtitle=(
        "Most blocks mix positions by a gated convolution over three tokens only; a few attentions with normalised "
        "queries and keys reach further."
    ),
    hue=296,
)
