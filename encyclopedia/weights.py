"""Real weights: loading them from a folder, a GGUF file, an installed package or a hub, and saying what they are.

Code that comes with a checkpoint is never run.
"""

from __future__ import annotations

from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from encyclopedia.online import hub_answers

#: What reading a GGUF file takes, all in the extra ``weights``.
_NEEDED_FOR_GGUF = ("gguf", "accelerate")
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json")


class WeightsError(Exception):
    """Weights that cannot be loaded, with what to do."""


def load_weights(source: str | Path, **load: Any) -> tuple[PreTrainedModel, Any]:
    """A causal model with real weights, and its tokenizer.

    Args:
        source: a folder with safetensors and a config.json; a folder that holds one GGUF file, or the file itself,
            which is dequantised; the name of an installed package that holds one; or a hub id, where a hub is
            reachable or the checkpoint is in its cache.
        **load: passed on to transformers, such as ``attn_implementation``; ``dtype`` is float32 unless given.

    Returns:
        The model in evaluation mode, and its tokenizer, ``None`` where none comes with the weights.

    Raises:
        WeightsError: one line that says what is missing and what to do.
    """
    if load.pop("trust_remote_code", False):
        raise WeightsError(f"{source}: code that comes with a checkpoint is never run; leave trust_remote_code out")
    load.setdefault("dtype", torch.float32)
    file = _gguf_file(source)
    if file is not None:
        _require_gguf(file)
        return _load(file.parent, file.name, has_tokenizer=True, gguf_file=file.name, **load)
    folder = Path(source)
    if folder.is_dir():
        if not (folder / "config.json").is_file() or not any(folder.glob("*.safetensors")):
            raise WeightsError(f"{source}: holds neither a GGUF file nor a config.json with safetensors; "
                               "name the folder or file that does")
        has_tokenizer = any((folder / name).is_file() for name in _TOKENIZER_FILES)
        return _load(folder, folder.name, has_tokenizer=has_tokenizer, **load)
    if folder.exists() or folder.is_absolute() or str(source).startswith((".", "~")) or folder.suffix == ".gguf":
        raise WeightsError(f"{source}: no folder with safetensors, and no GGUF file; "
                           "name one that is there, or a hub id of the form owner/name")
    if "/" not in str(source):
        raise WeightsError(f"{source}: no folder here and no installed package with a GGUF file; where it is one, "
                           f"pip install --no-deps {source}; a hub id has the form owner/name")
    if "local_files_only" not in load:
        load["local_files_only"] = not hub_answers()
    return _load(str(source), str(source), has_tokenizer=True, **load)


def describe_weights(source: str | Path) -> str:
    """What the weights at ``source`` are, in words that name no folder of this machine.

    Args:
        source: as :func:`load_weights` takes it.
    """
    file = _gguf_file(source)
    if file is not None:
        holder = _package_of(file)
        place = f"from the PyPI package {holder[0]} {holder[1]}" if holder else f"from {file.name}"
        return f"GGUF {_quantisation(file)} {place}, dequantised to float32"
    folder = Path(source)
    if folder.is_dir():
        return f"safetensors from the folder {folder.resolve().name}"
    return f"safetensors from the hub, {source}"


def _gguf_file(source: str | Path) -> Path | None:
    """The GGUF file that ``source`` names, or ``None`` where it names none."""
    path = Path(source)
    if path.is_file() and path.suffix == ".gguf":
        return path
    if path.is_dir():
        files = sorted(path.glob("*.gguf"))
        if len(files) > 1:
            raise WeightsError(f"{source}: holds several GGUF files, name one of {', '.join(f.name for f in files)}")
        return files[0] if files else None
    return None if path.exists() or "/" in str(source) else package_file(str(source))


def package_file(name: str) -> Path | None:
    """The one GGUF file of the installed package ``name``; ``None`` where there is none."""
    # The package's own module imports more than its file takes, so it is found without importing it.
    try:
        files = metadata.files(name) or []
    except (metadata.PackageNotFoundError, ValueError):
        return None
    found = [Path(str(file.locate())) for file in files if file.suffix == ".gguf"]
    return found[0] if len(found) == 1 and found[0].is_file() else None


def _package_of(file: Path) -> tuple[str, str] | None:
    """Name and version of the installed package that ``file`` belongs to."""
    for name in metadata.packages_distributions().get(file.parent.name, []):
        packaged = package_file(name)
        if packaged is not None and packaged.resolve() == file.resolve():
            return name, metadata.version(name)
    return None


def _quantisation(file: Path) -> str:
    """How most of a GGUF file's tensors are stored, such as ``Q4_1``."""
    _require_gguf(file)
    from gguf import GGUFReader, LlamaFileType

    field = GGUFReader(file).get_field("general.file_type")
    return LlamaFileType(field.contents()).name.removeprefix("MOSTLY_") if field is not None else "of no stated type"


def _require_gguf(file: Path) -> None:
    missing = [name for name in _NEEDED_FOR_GGUF if find_spec(name) is None]
    if missing:
        raise WeightsError(f"{file.name}: reading a GGUF file needs {' and '.join(missing)}: "
                           "pip install 'encyclopedia[weights]'")


def _load(place: str | Path, name: str, *, has_tokenizer: bool, **load: Any) -> tuple[PreTrainedModel, Any]:
    own = {key: load[key] for key in ("gguf_file", "local_files_only") if key in load}
    try:
        # Without the model first, a hub that cannot be reached is asked for several files, each with its retries.
        model = AutoModelForCausalLM.from_pretrained(place, trust_remote_code=False, **load)
        tokenizer = AutoTokenizer.from_pretrained(place, trust_remote_code=False, **own) if has_tokenizer else None
    except ImportError as error:
        raise WeightsError(f"{name}: {_first_line(error)}: pip install 'encyclopedia[weights]'") from error
    except OSError as error:
        if Path(place).is_dir():
            raise WeightsError(f"{name}: {_first_line(error)}") from error
        raise WeightsError(f"{name}: neither a folder here nor a checkpoint that a hub or its cache could give: "
                           "download it first and name its folder") from error
    except (ValueError, KeyError, RuntimeError) as error:
        raise WeightsError(f"{name}: cannot be loaded by transformers' own classes: {_first_line(error)}") from error
    return model.eval(), tokenizer


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
