"""What a sublayer's last layer is given, and what the sublayer adds to the stream."""

from __future__ import annotations

from collections.abc import Iterator

from encyclopedia.checks.meaning.here import Expected, Here, NotRead, Recomputation, hidden_states
from encyclopedia.families import Declared
from encyclopedia.location import Location
from encyclopedia.native import Call
from encyclopedia.structure.block import same


def module_at(path: str, location: str) -> str:
    """The path of the module that a location of the host at ``path`` names."""
    steps = path.split(".")
    for step in Location.parse(location).modules:
        steps = steps[:-1] if step == ".." else [*steps, step]
    return ".".join(steps)


def writing_layer(here: Here, name: str) -> tuple[str, Call]:
    """The layer that writes the sublayer's output, which ``name`` enters: its name and its call."""
    assert here.sublayer is not None
    declared = here.family.classes.get(type(here.module).__name__, Declared()).locations.get(name)
    if declared is not None and declared.endswith(".input"):
        path = module_at(here.path, declared)
        return path.rpartition(".")[2], here.root.call(path)
    if here.sublayer.projection is None:
        raise NotRead("the output projection")
    path = f"{here.path}.{here.sublayer.projection}" if here.sublayer.projection else here.path
    return path.rpartition(".")[2], here.root.call(path)


def contribution(written_from: str) -> Recomputation:
    """What a sublayer adds: as a hook sees it, and rebuilt from what enters its writing layer."""

    def recompute(here: Here) -> Iterator[Expected]:
        assert here.sublayer is not None
        module = module_at(here.path, here.sublayer.contribution)
        yield "what a plain hook sees leave it", here.root.call(module).leaving
        host = here.sublayer.host
        writer = here.sublayer.on(here.block).writer
        if writer is not None and here.has(host, written_from) and not _declared_mixture(here) and _alone(here):
            entering = here.value(host, written_from)
            entering = entering.flatten(-2) if entering.ndim == 4 else entering
            rebuilt = writer(entering)
            post_norm = here.sublayer.post_norm
            behind = f", through {post_norm}" if post_norm is not None else ""
            rebuilt = rebuilt if post_norm is None else here.block.get_submodule(post_norm)(rebuilt)
            yield f"{writing_layer(here, written_from)[0]} of {written_from}{behind}", rebuilt

    return recompute


def _alone(here: Here) -> bool:
    """Whether the norm behind the sublayer reads what the sublayer returned and nothing besides."""
    assert here.sublayer is not None
    if here.sublayer.post_norm is None:
        return True
    behind = here.root.call(f"{here.path.rpartition('.')[0]}.{here.sublayer.post_norm}")
    return same(hidden_states(behind), here.root.call(here.path).leaving)


def _declared_mixture(here: Here) -> bool:
    declared = here.family.classes.get(type(here.module).__name__)
    return declared is not None and declared.like == "mixture"
