"""Facts: everything captured about a family, as typed data.

Capture fills these models, pages and ``data/*.json`` read them. They know neither torch nor HTML. The published
JSON keeps the field names below; a renamed one needs a new :data:`SCHEMA`.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, JsonValue

#: Version of the published data. Keys may be added under one number; renaming or removing one needs the next.
SCHEMA = 1


class Fact(BaseModel):
    """Base of all facts: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Versions(Fact):
    """What the facts were captured with."""

    transformers: str
    torch: str
    nnsight: str
    encyclopedia: str


class HookFacts(Fact):
    """A plain PyTorch hook that reads a value."""

    #: Path of the module that is hooked, from a transformers model called ``model``; ``[i]`` stands for the block.
    module: str
    #: What of the call it is: ``output``, ``output[0]``, ``output.logits``, ``args[1]`` or ``kwargs[hidden_states]``.
    tensor: str
    #: How the model holds it, axis by axis, those that lie flat in one in parentheses; ``None`` where as the layout.
    held: str | None


class NativePlace(Fact):
    """Where a transformers model that knows no standard names has a value, on blocks of some kinds."""

    #: Positions in ``CheckpointFacts.kinds``.
    kinds: list[int]
    #: The module it is read on or inside of, as in :class:`HookFacts`.
    module: str
    #: Where, from that module, in the location grammar.
    location: str
    #: How the model holds it there, as in :class:`HookFacts`.
    held: str | None
    hook: HookFacts | None
    #: Why no hook reads it; ``None`` where one does.
    no_hook: str | None
    #: Why nnsight without standard names is not said to read it there; ``None`` where it does.
    no_nnsight: str | None


class LensFacts(Fact):
    """A TransformerLens hook that holds a value, or that may be taken for it."""

    host: str
    value: str
    #: The hook's name, ``{i}`` standing for the block's index.
    hook: str
    #: Whether its tensor is the value, up to the order of the axes.
    same: bool
    #: How the tensors differ; ``None`` where they do not.
    difference: str | None
    #: Whether an edit of its tensor changes the logits; ``None`` where TransformerLens fails on one.
    acts: bool | None = True


class ValueFacts(Fact):
    """One standard value on one host of a checkpoint."""

    name: str
    #: Layout name; ``None`` for a plain Python value.
    layout: str | None
    #: Axis names in order.
    dims: list[str]
    role: str
    #: The mixture's part it belongs to: router, experts or shared.
    part: str | None
    #: Where it is read, in the location grammar.
    location: str
    #: The same place as a phrase in English.
    where: str
    #: Why some block or the default load has not got it; ``None`` where every load has it.
    condition: str | None
    description: str
    #: Per kind, in the order of ``CheckpointFacts.kinds``: the shape at batch 1, seq 8, or ``None`` where absent.
    shapes: list[list[int] | None]
    #: The torch dtype at the checkpoint's own precision, such as ``bfloat16``; ``None`` for a plain Python value.
    dtype: str | None
    #: Whether assigning to it inside a trace makes sense.
    writable: bool
    #: Whether a run has confirmed its location and layout.
    checked: bool
    #: Where a model without standard names has it; empty for one that is computed from others.
    native: list[NativePlace] = []


class HostFacts(Fact):
    """The values that one kind of host carries."""

    #: ``model``, ``layer``, ``self_attn``, ``linear_attn`` or ``mlp``.
    name: str
    #: The expression that reaches it: ``model.layers[i].self_attn``.
    host: str
    #: Native classes that stand there, over all blocks.
    classes: list[str]
    values: list[ValueFacts]
    #: Per kind: its path from a transformers model called ``model``, or ``None`` where it is not there.
    native: list[str | None] = []


class EdgeFacts(Fact):
    """One arrow of the diagram: a value that another is computed from."""

    source: str
    target: str
    #: The operation on the way, such as ``softmax``; ``None`` for a plain arrow.
    label: str | None


class PartFacts(Fact):
    """A panel of a mixture."""

    #: router, experts or shared.
    name: str
    #: Native child name, such as ``shared_experts``.
    module: str
    class_name: str
    #: Standard values in it, in forward order.
    values: list[str]


class SublayerFacts(Fact):
    """One row of the block's diagram."""

    #: ``self_attn``, ``linear_attn`` or ``mlp``.
    host: str
    #: ``attention``, ``recurrent``, ``mlp`` or ``mixture``.
    sort: str
    #: Native class of the module.
    class_name: str
    #: Native name of the norm in front of it, or ``None``.
    norm: str | None
    #: Native name of the norm behind it, or ``None``.
    post_norm: str | None
    #: The value it adds to the stream, such as ``attention_output``.
    contribution: str
    #: What multiplies the stream before the add, by the parameter's native name, or ``None``.
    stream_gate: str | None
    #: Interior values (the contribution is not among them), in forward order.
    values: list[str]
    edges: list[EdgeFacts]
    parts: list[PartFacts]


class RoleParameters(Fact):
    """The parameters of one role in a block, or outside the blocks; tied ones count where they stand first.

    A norm is one wherever it stands. What several blocks share stands outside, as ``other``.
    """

    #: In a block: ``attention``, ``recurrent``, ``mlp``, ``router``, ``experts``, ``shared``, ``norm`` or ``other``.
    #: Outside: ``embedding``, ``norm``, ``head`` or ``other``.
    role: str
    total: int
    #: Those a token's forward multiplies with.
    active: int


class KindFacts(Fact):
    """Blocks with the same modules, classes, sizes and attention type."""

    blocks: list[int]
    #: Short and readable: ``sliding 512 · mixture``.
    label: str
    attention_type: str
    #: Native class by host: ``layer``, ``self_attn``, ``mlp``.
    modules: dict[str, str]
    #: Sizes of this kind: num_heads, num_kv_heads, head_dim, qk_head_dim, intermediate_size or num_experts, top_k,
    #: expert_intermediate_size, shared_intermediate_size, and sliding_window where there is one.
    sizes: dict[str, int]
    #: The equation that gives ``layer_output``; ``None`` where no exact one was found.
    identity: str | None
    #: Largest error over the blocks measured, in units of the output's largest magnitude.
    identity_error: float | None
    sublayers: list[SublayerFacts]
    #: Of one block, by role; their totals sum to the block's own parameters.
    parameters: list[RoleParameters] = []


class ParameterCounts(Fact):
    """Parameters of the built model, tied ones once."""

    total: int
    #: Those a token's forward multiplies with: the experts not routed to are left out.
    active: int
    #: What stands outside the blocks, by role.
    outside: list[RoleParameters] = []


class Cost(Fact):
    """A figure, with the formula it was computed by."""

    amount: int
    #: In words and symbols, with the checkpoint's own numbers in it.
    formula: str


class CacheEntry(Fact):
    """What the blocks of one kind keep from one call to the next, on a load in 16 bits: the checkpoint's own precision,
    and bfloat16 for one in float32.
    """

    #: Position in ``CheckpointFacts.kinds``.
    kind: int
    #: How many blocks keep it; a model that goes through its blocks several times counts each time.
    blocks: int
    #: What it is, such as ``keys`` or ``recurrent_states``.
    name: str
    #: Bytes in one block for each token kept; where one entry stands for several tokens, the share of one.
    bytes_per_token: int
    #: Bytes in one block however long the text is.
    bytes_fixed: int
    #: Most tokens kept, or ``None`` where all are; an attention with a window of N keeps N - 1 beside the next token.
    window: int | None
    #: What its elements are, such as ``bfloat16``; recurrent states are kept in ``float32`` by many on any load.
    dtype: str


class CacheCosts(Fact):
    """The cache at any length: over its entries, ``blocks * (bytes_fixed + bytes_per_token * min(length, window))``."""

    #: Measured on the cache object that a forward fills.
    kept: list[CacheEntry]
    #: What the architecture needs; as ``kept`` where nothing less would do.
    needed: list[CacheEntry]
    #: Why less would do, in one sentence; ``None`` where nothing less would.
    saving: str | None
    #: Bytes of ``kept`` that one more token adds while no window is full.
    per_token: Cost


class Costs(Fact):
    """What a checkpoint takes to hold and to run."""

    #: Bytes of all weights by dtype: ``float32``, ``bfloat16``, ``float16``, ``int8``, and ``int4`` at two to a byte.
    weight_bytes: dict[str, Cost]
    #: ``None`` where a forward fills no cache.
    cache: CacheCosts | None
    #: Why there is none; ``None`` where there is.
    cache_reason: str | None = None
    #: Of one token in a forward over a text, two for each multiply-add of a matrix product, without those whose size
    #: depends on the length of the text. The formula says what is left out, such as recurrences.
    flops_per_token: Cost
    #: What each earlier token that is attended to adds to ``flops_per_token``, over all blocks.
    flops_per_token_of_context: Cost


class Measured(Fact):
    """How many of a sort of claim there are and how many were run."""

    checked: int
    total: int


class IdentityCheck(Fact):
    """How the identity held on the small random model; no block where none was found."""

    blocks: int
    max_error: float | None


class SnippetCheck(Fact):
    """The notes' code blocks."""

    run: int
    total: int


class ClaimFacts(Fact):
    """A claim that was run and held."""

    #: ``layout``, ``meaning``, ``writing``, ``identity``, ``availability`` or ``elsewhere``.
    sort: str
    #: The host's name, such as ``self_attn``.
    host: str
    #: The value it is about; ``None`` for one about the block.
    value: str | None
    #: The claim in words.
    text: str
    #: In how many places (blocks, loads) it was run.
    runs: int
    #: Largest error over them, in units of the largest magnitude expected; ``None`` where it either holds or not.
    error: float | None


class Checks(Fact):
    """What was run to confirm the page."""

    values: Measured
    identity: IdentityCheck
    snippets: SnippetCheck


class UnconfirmedValue(Fact):
    """A value that has a place by derivation, and that a run there did not confirm; the live model refuses it."""

    #: ``self_attn``, ``mlp`` and so on.
    host: str
    #: The native class it would be read on.
    native: str
    name: str
    reason: str


class ModuleClass(Fact):
    """Which host class of ours serves which native class, and where it stands."""

    host: str
    native: str
    serves: str


class Failure(Fact):
    """Why something could not be verified: the step that failed, and what it said."""

    #: ``config``, ``build``, ``structure``, ``run`` or ``check``.
    step: str
    reason: str


class CheckpointFacts(Fact):
    """Everything about one checkpoint."""

    id: str
    available: bool
    #: Why it is not shown; ``None`` where it is.
    reason: str | None
    architecture: str | None
    config_source: str | None
    #: Slugs of :mod:`encyclopedia.quirks` that this checkpoint carries.
    quirks: list[str]
    sizes: dict[str, int]
    config: dict[str, JsonValue]
    #: Where each recorded key is known from; a key that is not here has its class default.
    config_known_from: dict[str, str]
    parameters: ParameterCounts | None
    kinds: list[KindFacts]
    hosts: list[HostFacts]
    module_classes: list[ModuleClass]
    #: ``print(model)``, line by line.
    printout: list[str]
    #: Reasons by load (``eager``, ``default``), host and value; only values that the load lacks.
    support: dict[str, dict[str, dict[str, str]]]
    checks: Checks | None
    #: Every claim that was run, in words and with its figure.
    claims: list[ClaimFacts] = []
    #: Values left out because no run confirmed them.
    unconfirmed: list[UnconfirmedValue] = []
    #: Whether the config is the class's own default, where no public checkpoint is recorded.
    is_default: bool = False
    #: What failed where it could not be verified; ``None`` where it is, or was not tried.
    failure: Failure | None = None
    #: ``None`` where it is not shown, or where its model does not run without weights.
    costs: Costs | None = None


class SourceLink(Fact):
    """A file of the project that belongs to the family."""

    label: str
    path: str


class SnippetFacts(Fact):
    """One Python block of the notes: where it was run."""

    #: The line of the notes file it starts on.
    line: int
    #: Ids of the checkpoints on whose small twin it ran.
    ran_on: list[str]
    #: Why it cannot run on a twin; ``None`` where it ran.
    reason: str | None


class NotesFacts(Fact):
    """What running a family's notes showed, in the order of the page."""

    snippets: list[SnippetFacts]


class FamilyFacts(Fact):
    """One family: its page and its ``data/<model_type>.json``."""

    schema_: int = Field(default=SCHEMA, alias="schema")
    model_type: str
    title: str
    subtitle: str
    #: Hue of the family mark in degrees.
    hue: int
    #: Slugs of :mod:`encyclopedia.quirks`, those of every checkpoint shown.
    quirks: list[str]
    reference: str
    family_module: str
    #: The family module's docstring; empty where the family has no module of its own.
    docstring: str
    #: Whether people wrote a module and notes for it; else all of its page is derived.
    annotated: bool = True
    #: Why nothing of it could be verified; ``None`` where its page is.
    failure: Failure | None = None
    sources: list[SourceLink]
    versions: Versions
    notes: NotesFacts
    checkpoints: list[CheckpointFacts]
    #: What TransformerLens calls its values, where that was compared.
    transformer_lens: list[LensFacts] = []
