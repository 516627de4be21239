"""A family small enough to read, built by hand."""

from pathlib import Path

from encyclopedia.build.project import Project, find_project
from encyclopedia.facts import (
    CheckpointFacts,
    Checks,
    ClaimFacts,
    FamilyFacts,
    HostFacts,
    IdentityCheck,
    KindFacts,
    Measured,
    ModuleClass,
    NotesFacts,
    ParameterCounts,
    SnippetCheck,
    SnippetFacts,
    SourceLink,
    SublayerFacts,
    ValueFacts,
    Versions,
)

CONDITION = 'read in the eager attention: load with attn_implementation="eager"'


def value(name: str, role: str, shapes: list, **changes) -> ValueFacts:
    return ValueFacts(**{
        "name": name, "layout": "Residual", "dims": ["batch", "seq", "hidden_size"], "role": role, "part": None,
        "location": "output", "where": "the output of the module itself", "condition": None,
        "description": f"What {name} is", "shapes": shapes, "dtype": "float32", "writable": True, "checked": True,
        **changes})


def claim(host: str, name: str | None, sort: str, text: str, error: float | None = None, runs: int = 4) -> ClaimFacts:
    return ClaimFacts(sort=sort, host=host, value=name, text=text, runs=runs, error=error)


CLAIMS = [
    claim("self_attn", "attention_scores", "layout", "each axis has the size that its name has"),
    claim("self_attn", "attention_scores", "meaning", "query · key, scaled, plus the mask", 3.1e-8),
    claim("self_attn", "attention_output", "layout", "each axis has the size that its name has"),
    claim("self_attn", "attention_output", "meaning", "what a plain hook sees leave the attention", 0.0),
    claim("mlp", "router_logits", "layout", "each axis has the size that its name has", runs=2),
    claim("mlp", "mlp_output", "layout", "each axis has the size that its name has"),
    claim("mlp", "mlp_output", "meaning", "what a plain hook sees leave the MLP", 0.0),
    claim("mlp", "mlp_output", "meaning", "weighted by router_logits", 2e-8, runs=2),
    claim("mlp", "mlp_output", "writing", "written back unchanged, it changes nothing"),
    claim("layer", None, "identity", "layers[i].input + mlp.mlp_output == layer_output", 0.0),
]


def sublayer(host: str, sort: str, contribution: str, values: list[str]) -> SublayerFacts:
    return SublayerFacts(host=host, sort=sort, class_name="Native", norm="input_layernorm", post_norm=None,
                         contribution=contribution, stream_gate=None, values=values, edges=[], parts=[])


def kind(blocks: list[int], label: str, **sizes: int) -> KindFacts:
    return KindFacts(
        blocks=blocks, label=label, attention_type="full_attention", modules={"layer": "Block"}, sizes=sizes,
        identity="layers[i].input + self_attn.attention_output + mlp.mlp_output == layer_output", identity_error=0.0,
        sublayers=[sublayer("self_attn", "attention", "attention_output", ["attention_scores"]),
                   sublayer("mlp", "mlp", "mlp_output", [])])


def checkpoint(identifier: str = "maker/Tiny-1", **changes) -> CheckpointFacts:
    return CheckpointFacts(**{
        "id": identifier, "available": True, "reason": None, "architecture": "TinyForCausalLM",
        "config_source": "The file at https://example.org/config.json.", "quirks": [],
        "sizes": {"num_layers": 4, "num_heads": 2, "vocab_size": 10},
        "config": {"num_hidden_layers": 4, "hidden_act": "silu", "heads_per_layer": [2, 3, 3, 2, 3, 3, 2, 3, 3],
                   "rope_parameters": {"full": {"theta": 10000.0}}, "use_cache": True},
        "config_known_from": {"num_hidden_layers": "the file", "heads_per_layer": "the file", "hidden_act": "a page"},
        "parameters": ParameterCounts(total=1234, active=1000),
        "kinds": [kind([0, 2], "dense", num_heads=2, head_dim=8), kind([1, 3], "mixture", num_heads=3, head_dim=8)],
        "hosts": [
            HostFacts(name="self_attn", host="model.layers[i].self_attn", classes=["TinyAttention"], values=[
                value("attention_scores", "attention", [[1, 2, 8, 8], [1, 3, 8, 8]], layout="Pattern",
                      dims=["batch", "num_heads", "query", "key"], condition=CONDITION),
                value("attention_output", "attention", [[1, 8, 4], [1, 8, 4]])]),
            HostFacts(name="mlp", host="model.layers[i].mlp", classes=["Dense", "Mixture"], values=[
                value("router_logits", "mlp", [None, [1, 8, 6]], checked=False),
                value("mlp_output", "mlp", [[1, 8, 4], [1, 8, 4]])]),
        ],
        "module_classes": [ModuleClass(host="mlp", native="Dense", serves="Mlp")],
        "printout": ["TinyForCausalLM(", "  (layers): ModuleList(", "    (0-3): 4 x Block(",
                     "      (mlp): Dense(in_features=<4>", "        (mlp_output) -> Residual [batch seq hidden_size]: "
                     "What it adds", "      )", "    )", "  )", ")"],
        "support": {"eager": {"model.layers[i].mlp": {"expert_outputs": "no experts module",
                                                      "expert_weights": "no experts module"}}, "default": {}},
        "claims": CLAIMS,
        "checks": Checks(values=Measured(checked=1, total=2), identity=IdentityCheck(blocks=4, max_error=0.0),
                         snippets=SnippetCheck(run=0, total=0)),
        **changes})


def family(**changes) -> FamilyFacts:
    return FamilyFacts(**{
        "model_type": "tiny", "title": "Tiny", "subtitle": "A block.", "hue": 120, "quirks": ["output-gate"],
        "reference": "maker/Tiny-1", "family_module": "encyclopedia.families.tiny",
        "docstring": "Tiny (``TinyForCausalLM``).\n\n- ``o_proj`` <b>\n\nSo::\n\n    out = x\n",
        "sources": [SourceLink(label="family module", path="encyclopedia/families/tiny.py")],
        "notes": NotesFacts(snippets=[
            SnippetFacts(line=5, ran_on=["maker/Tiny-1"], reason=None),
            SnippetFacts(line=11, ran_on=["maker/Tiny-1", "maker/Tiny-2"], reason=None),
            SnippetFacts(line=15, ran_on=[], reason="only trained ones show it")]),
        "versions": Versions(transformers="5", torch="2", nnsight="0.8", encyclopedia="0"),
        "checkpoints": [checkpoint(), checkpoint("maker/Tiny-2"),
                        checkpoint("maker/Tiny-3", available=False, reason="no config")],
        **changes})


def empty_project(folder: Path) -> Project:
    """A project in ``folder`` with the templates and the config of this one, and nothing written."""
    root = find_project(Path(__file__).parent).root
    for name in ("templates", "mkdocs.yml"):
        (folder / name).symlink_to(root / name)
    return Project(folder)
