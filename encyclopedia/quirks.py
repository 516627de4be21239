"""The quirks: named departures from a plain pre-norm block, each with a sentence that holds wherever it is carried."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Quirk:
    """One quirk.

    Attributes:
        slug: its name in data and addresses.
        label: its name on a page.
        sentence: what it means for somebody who reads activations.
    """

    slug: str
    label: str
    sentence: str


QUIRKS: dict[str, Quirk] = {
    quirk.slug: quirk
    for quirk in (
        Quirk("per-block-sizes", "Per-block sizes",
              "A head count or width, or an MLP's width, differs from block to block, so tensors that have it as an "
              "axis cannot be stacked over all blocks."),
        Quirk("gated-stream", "Gated stream",
              "The block multiplies the stream it carries by learned numbers of its own, so what an early block adds "
              "arrives rescaled at the last one and the plain sum of contributions is not the block's output."),
        Quirk("scaled-contributions", "Scaled contributions",
              "A constant multiplies what some or all sublayers return on the way to the add, so an edit of their "
              "output reaches the stream scaled."),
        Quirk("normalised-stream", "Normalised stream",
              "In some or all blocks the stream goes on as a norm left it, so what earlier blocks added arrives "
              "rescaled by token and channel."),
        Quirk("parallel-streams", "Several streams",
              "Several residual streams run side by side, and each block reads from and writes to mixtures of them."),
        Quirk("parallel-sublayers", "Parallel sublayers",
              "In some or all blocks attention and MLP read the same stream, so the MLP does not see what the "
              "attention of its own block adds."),
        Quirk("single-sublayer", "One sublayer per block",
              "Some or all blocks add a single contribution, a mixer's or an MLP's, so there is no stream halfway "
              "through them."),
        Quirk("looped-blocks", "Looped blocks",
              "One forward runs some or all blocks more than once, so each of their values exists once per pass."),
        Quirk("uncalled-modules", "Uncalled modules",
              "The blocks hold weights that a forward on token ids alone does not use, such as an attention over an "
              "encoder's output; nothing can be read there."),
        Quirk("post-norms", "Norms behind only",
              "Some or all sublayers read the stream as it is and have their norm behind them; what they add is that "
              "norm's output."),
        Quirk("sandwich-norms", "Sandwich norms",
              "Some or all sublayers have a norm in front and another one behind; what reaches the stream has passed "
              "the second."),
        Quirk("layer-norm", "LayerNorm",
              "Norms of the stream subtract the mean over channels too, so a direction with all its entries alike is "
              "lost in them."),
        Quirk("plus-one-gain", "1 + weight gain",
              "Norms of the stream multiply by one plus their weight; fold or ablate with that sum, for a weight of "
              "zero is a gain of one."),
        Quirk("weightless-norms", "Norms without weights",
              "Norms around some or all sublayers have no parameters, so they have no gain to fold into the layer "
              "that reads them."),
        Quirk("inner-norms", "Inner norms",
              "A norm inside some or all sublayers feeds their last projection, so what one head or neuron adds "
              "depends on how large the others are."),
        Quirk("query-key-norms", "Query/key norms",
              "On some or all blocks queries and keys are normalised before their product; the standard values are "
              "the normalised ones."),
        Quirk("dynamic-mask", "Dynamic mask",
              "The scores carry a learned bias per key that depends on the values; past a set number of keys, those "
              "with the smallest bias are masked."),
        Quirk("output-gate", "Output gate",
              "Between some or all attentions and their output projection the heads are multiplied by a gate, so "
              "attention_premix and attention_head_outputs differ."),
        Quirk("sliding-window", "Sliding window",
              "Some or all blocks attend to the last positions only; earlier keys are masked in their scores."),
        Quirk("chunked-window", "Chunked window",
              "Some or all blocks attend within a fixed stretch of the sequence only, so the first position of a "
              "stretch sees nothing before itself."),
        Quirk("sparse-attention", "Chosen keys",
              "In some or all blocks the tokens themselves decide which earlier keys a query may attend to; the "
              "others are masked in its scores."),
        Quirk("bidirectional", "Sees later positions",
              "A position attends to later ones too, so an edit reaches the positions in front of it."),
        Quirk("attention-sinks", "Attention sinks",
              "On some or all blocks a query can give part of its attention to no position, so a row of "
              "attention_probabilities sums to less than one."),
        Quirk("attention-softcap", "Capped scores",
              "A smooth cap bounds the scores in front of the softmax, so a score is not the scaled product of its "
              "query and key."),
        Quirk("attention-scale", "Own attention scale",
              "On some or all blocks the product of query and key is not divided by the square root of the head's "
              "width; rebuild scores with the module's own factor."),
        Quirk("partial-rotary", "Partial rotary",
              "On some or all blocks only part of a head's channels are rotated by position; the others pass as they "
              "are."),
        Quirk("interleaved-rotary", "Interleaved rotary",
              "Rotary embedding turns a channel together with its neighbour, not with one that is half the rotated "
              "width away."),
        Quirk("rotary-free-blocks", "Blocks without rotary",
              "Some softmax attentions rotate queries and keys by position and others leave them as they are."),
        Quirk("no-rotary", "No rotary",
              "No softmax attention of the model rotates its queries and keys by position."),
        Quirk("position-bias", "Position bias",
              "A term that depends on how far apart query and key are is added to the scores, while queries and keys "
              "themselves carry no position."),
        Quirk("position-embeddings", "Position embeddings",
              "A vector for the position is added to each token's embedding, so what enters the first block tells "
              "both."),
        Quirk("mixture-of-experts", "Mixture of experts",
              "In some or all blocks a few of many experts, chosen per token, make the MLP's output, alone or beside "
              "a part that every token goes through."),
        Quirk("dense-first-blocks", "Dense first blocks",
              "The first blocks have a dense MLP and later ones a mixture, so MLP values differ by block."),
        Quirk("interleaved-mixtures", "Mixtures in between",
              "Blocks with a dense MLP stand behind blocks with a mixture, so which MLP values exist changes more "
              "than once with depth or back again."),
        Quirk("shared-expert", "Shared expert",
              "Beside the experts chosen for it every token goes through a shared one, whose output is part of the "
              "MLP's."),
        Quirk("sigmoid-routing", "Sigmoid routing",
              "An expert's score is a sigmoid of its own router logit, so raising one expert's logit does not by "
              "itself lower the scores of others."),
        Quirk("selection-bias", "Selection bias",
              "The router adds a stored number per expert to its score; it is there to balance which experts are "
              "chosen."),
        Quirk("group-limited-routing", "Group-limited routing",
              "Experts stand in groups, and a token's experts are taken from a few groups only, so a high score "
              "alone does not get an expert chosen."),
        Quirk("scaled-routing", "Scaled routing",
              "The weights of a token's experts sum to a constant that is not one."),
        Quirk("unnormalised-routing", "Unnormalised routing",
              "The weights of a token's experts sum to another number on every token, so how strongly the routed "
              "experts count varies by token."),
        Quirk("multi-query-attention", "Multi-query attention",
              "In some or all blocks all query heads share one key/value head."),
        Quirk("grouped-query-attention", "Grouped-query attention",
              "In some or all blocks several query heads share a key/value head; keys and values are read before "
              "they are repeated."),
        Quirk("unequal-head-widths", "Unequal head widths",
              "On some or all blocks a head's queries and keys have another width than its values and its output."),
        Quirk("latent-attention", "Latent attention",
              "On some or all blocks the values of all heads are unfolded from one vector per token that is narrower "
              "than the stream, so an edit of it reaches every head."),
        Quirk("shared-keys", "Keys of another block",
              "Some blocks attend with the keys and values of an earlier block, so an edit of those reaches several "
              "blocks."),
        Quirk("hybrid", "Hybrid",
              "Some blocks mix positions by softmax attention and others by a recurrence or a convolution alone, so "
              "scores and patterns exist on some blocks only."),
        Quirk("two-mixers", "Two mixers in a block",
              "Some or all blocks hold both a softmax attention and a recurrent mixer."),
        Quirk("attention-free", "No softmax attention",
              "No block has a softmax attention, so there are no scores and no pattern to read."),
        Quirk("delta-rule", "Delta rule",
              "Some or all blocks carry a state from token to token in which a delta rule overwrites what was stored "
              "under a key."),
        Quirk("state-space", "State-space mixer",
              "Some or all blocks carry a state from token to token that decays and takes each token in by a state-"
              "space scan."),
        Quirk("short-convolution", "Short convolution",
              "In some or all blocks a convolution mixes each position with the few before it, so an edit spreads to "
              "the next positions without any attention."),
        Quirk("ungated-mlp", "MLP without a gate",
              "In some or all dense MLPs what the activation returns enters the last layer directly, not multiplied "
              "by a second projection."),
        Quirk("silent-neurons", "Silent neurons",
              "The MLP's activation is exactly zero for every negative number, so many neurons add nothing on a "
              "given token."),
        Quirk("loose-mlp", "No MLP module",
              "The MLP's layers are children of the block, so no module has the MLP's input and output as its own."),
        Quirk("biased-projections", "Biased projections",
              "Some linear layers in attentions or MLPs add a bias, which is part of what the sublayer adds and "
              "belongs to no head or neuron."),
        Quirk("fused-projections", "Fused projections",
              "Some linear layers write several tensors side by side, such as queries, keys and values or an MLP's "
              "two halves; their output has to be split."),
        Quirk("shared-blocks", "Shared block weights",
              "Several blocks hold the same weights, so an edit of one block's weights changes the others."),
        Quirk("per-layer-embeddings", "Second token table",
              "The token ids enter another embedding table too, whose rows reach the stream on a way of their own."),
        Quirk("embedding-scale", "Scaled embeddings",
              "Token embeddings are multiplied by a constant before the first block, so what it reads is not a row "
              "of the table."),
        Quirk("embedding-norm", "Norm on the embeddings",
              "A norm stands between the embeddings and the first block, so the stream does not begin with a row of "
              "the table."),
        Quirk("logit-scale", "Scaled logits",
              "A constant scales the final hidden state or the logits, so the head's product with the final norm's "
              "output is not the logits."),
        Quirk("logit-softcap", "Capped logits",
              "A smooth cap bounds the logits behind the head, so they are not linear in what enters it."),
        Quirk("tied-embeddings", "Tied embeddings",
              "The head's weight is the embedding table: editing one edits the other."),
    )
}
