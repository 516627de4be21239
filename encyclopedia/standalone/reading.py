"""Reading somebody's config: a folder, a file or a hub id, as a record that may be captured.

Nothing of a checkpoint is run: only the classes of the installed transformers build from what is read here.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from transformers import CONFIG_MAPPING
from transformers.models.auto import modeling_auto

from encyclopedia.checkpoints import BrokenConfig, RecordedCheckpoint, check_config
from encyclopedia.checkpoints.limits import TooMuch, check_amounts, check_depth, entries, named
from encyclopedia.coverage import all_families

#: Bytes of a config that are read; the longest on the hub are under a tenth of it.
LARGEST_FILE = 4_000_000

#: Characters of a message.
LONGEST_LINE = 600

_PRECISIONS = ("float32", "float16", "bfloat16")
_USUAL_PRECISION = "bfloat16"

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)

# Names of files and of code, and settings of a load: none is a property of the model, and some make transformers fetch
# or run what they name.
_SETTINGS = frozenset((
    "auto_map", "trust_remote_code", "custom_code", "custom_pipelines", "quantization_config", "attn_implementation",
    "experts_implementation", "kernel_config", "use_kernels", "torchscript", "pruned_heads", "id2label", "label2id",
    "transformers_version", "name_or_path", "code_revision", "transformers_weights"))


#: What JSON calls the types that Python reads it as.
_JSON_KINDS = {list: "list", str: "string", bool: "truth value", type(None): "null"}


class UnreadableConfig(Exception):
    """A config that no page can be made of: what it is, why, and what to do, on one line."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


@dataclass(frozen=True)
class LocalConfig:
    """A config that was read.

    Attributes:
        record: it as a checkpoint, whose id begins with ``local/`` where it is no hub id.
        model_type: the family it belongs to.
        ignored: the keys that were left out, sorted.
        part_of: the ``model_type`` of the model whose text part this is, or ``None``.
    """

    record: RecordedCheckpoint
    model_type: str
    ignored: tuple[str, ...]
    part_of: str | None = None


def one_line(text: str) -> str:
    """``text`` on one line of printable characters, cut where it is too long for one."""
    line = printable(" ".join(text[:8 * LONGEST_LINE].split()))
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE - 3]}..."


def printable(text: str) -> str:
    """``text`` with a replacement character for whatever is invisible, ends a line or turns the reading direction."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "\ufffd" for char in text)


def read_config(source: str) -> LocalConfig:
    """The config at ``source``.

    Args:
        source: a folder with a ``config.json``, such a file, or a repository id of a hub that can be reached.

    Raises:
        UnreadableConfig: in one line.
    """
    path, identifier = _place(source)
    return config_from(_content(path), identifier, source)


def _place(source: str) -> tuple[Path, str]:
    """The file and the checkpoint's id."""
    address = re.match(r"https?://[^/]+/(?P<id>[^/]+/[^/]+)?", source)
    if address or not source.strip():
        identifier = f", here {address['id']}" if address and address["id"] else ""
        raise UnreadableConfig(f"{source or 'no name'}: no config is at that place; give a folder with a config.json, "
                               f"the file itself, or a hub id such as owner/name{identifier}")
    try:
        path = Path(source)
        if path.is_dir():
            return path / "config.json", _local_id(path.resolve().name)
        if os.path.lexists(path) or not _HUB_ID.fullmatch(source):
            resolved = path.resolve()
            name = resolved.parent.name if path.name == "config.json" else path.stem
            return path, _local_id(name)
    except (OSError, RuntimeError, ValueError) as error:
        raise UnreadableConfig(f"{source}: no path that can be read ({error}); give a folder with a config.json, "
                               "the file itself, or a hub id such as owner/name") from error
    return _from_hub(source), source


def _local_id(name: str) -> str:
    # Addresses and anchors are made of it.
    return f"local/{re.sub(r'[^A-Za-z0-9_.-]+', '-', name)[:80].strip('-.') or 'config'}"


def _from_hub(identifier: str) -> Path:
    from huggingface_hub import hf_hub_download

    from encyclopedia.online import hub_answers

    answers = hub_answers()
    try:
        return Path(hf_hub_download(identifier, "config.json", local_files_only=not answers))
    except Exception as error:
        reason = type(error).__name__ if answers else "no answer"
        raise UnreadableConfig(
            f"{identifier}: no such file or folder here, and the hub did not give its config.json "
            f"({reason}); give a folder with a config.json, or the file itself") from error


def _content(path: Path) -> bytes:
    advice = "give a folder with a config.json, the file itself, or a hub id such as owner/name"
    try:
        # A pipe would be waited for, and a device has no end.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        with os.fdopen(handle, "rb") as stream:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise UnreadableConfig(f"{path}: no regular file; {advice}")
            content = stream.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        raise UnreadableConfig(f"{path}: {getattr(error, 'strerror', None) or error}; {advice}") from error
    if len(content) > LARGEST_FILE:
        raise UnreadableConfig(f"{path}: larger than {LARGEST_FILE:,} bytes, which no config.json is; {advice}")
    return content


def config_from(content: bytes, identifier: str, source: str) -> LocalConfig:
    """The config whose file has ``content``.

    Args:
        content: JSON.
        identifier: the checkpoint's id.
        source: what messages call it.

    Raises:
        UnreadableConfig: in one line.
    """
    source = one_line(source)[:200]
    config = _parsed(content, source)
    try:
        check_depth(config)
        config, part_of = _text_part(config, source)
        model_type = config["model_type"]
        check_amounts(config, usual=_usual(model_type))
    except TooMuch as error:
        raise UnreadableConfig(f"{source}: {error}; correct the config.json") from error
    kept, ignored = _kept(config, model_type)
    _state_precision(kept, ignored)
    kept["architectures"] = [modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[model_type]]
    try:
        record = RecordedCheckpoint(
            id=identifier, reference=True, reason=None, published_parameters=None,
            config_source="The config.json that this page was made from.", config=kept)
        check_config(record)
    except ValidationError as error:
        raise UnreadableConfig(f"{source}: {error.errors()[0]['msg']}; correct the config.json") from error
    except BrokenConfig as error:
        raise UnreadableConfig(f"{source}: {one_line(str(error))[:400]}; correct the config.json") from error
    return LocalConfig(record, model_type, tuple(sorted(ignored)), part_of)


def _parsed(content: bytes, source: str) -> dict[str, Any]:
    try:
        config = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_unique, parse_constant=_constant)
    except UnreadableConfig as error:
        raise UnreadableConfig(f"{source}: {error}; correct the config.json") from error
    except RecursionError as error:
        raise UnreadableConfig(f"{source}: nested too deep to be a config; give a model's config.json") from error
    except ValueError as error:
        raise UnreadableConfig(f"{source}: not JSON in UTF-8 ({error}); give a model's config.json") from error
    if not isinstance(config, dict):
        kind = _JSON_KINDS.get(type(config), "number")
        raise UnreadableConfig(f"{source}: no JSON object but a {kind}; give a model's config.json")
    return config


def _unique(pairs: list[tuple[str, Any]]) -> Any:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise UnreadableConfig(f"key {named(key)}: given twice")
        found[key] = value
    # transformers writes {"__float__": "Infinity"} for a number that JSON does not have.
    return _constant(found["__float__"]) if list(found) == ["__float__"] else found


def _constant(name: Any) -> Any:
    """The number that JSON has no name for; which of them a config may have is another question."""
    if name not in ("Infinity", "-Infinity"):
        raise UnreadableConfig(f"{one_line(str(name))[:60]} is no number of JSON")
    return float(name)


def _usual(model_type: str) -> set[tuple[str, Any]]:
    """The numbers that a class has by default, with their keys, such as the endless limit of a state space's steps."""
    return {(key, value) for key, value in entries(CONFIG_MAPPING[model_type]().to_dict())
            if isinstance(value, int | float)}


def _text_part(config: dict[str, Any], source: str) -> tuple[dict[str, Any], str | None]:
    """The config of the text decoder: the whole, or the part of a model that does more than text."""
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or not model_type:
        raise UnreadableConfig(f"{source}: key 'model_type': missing, or not a string; "
                               "add the model_type of a family that `encyclopedia list` shows")
    families = all_families()
    if _known(model_type):
        return config, None
    part = config.get("text_config")
    if isinstance(part, dict):
        for name in (part.get("model_type"), f"{model_type}_text"):
            if isinstance(name, str) and _known(name):
                # A precision said for the whole is the part's too, and the whole decides whether the head is tied.
                said = {key: config[key] for key in ("dtype", "torch_dtype") if key in config}
                tied = {key: config[key] for key in ("tie_word_embeddings",) if key in config}
                return {**said, **part, **tied, "model_type": name}, printable(model_type)[:60]
    near = difflib.get_close_matches(model_type[:60], families, n=1)
    nearest = f"the nearest is {near[0]!r}, and " if near else ""
    code = " (its auto_map names code, which is never run)" if config.get("auto_map") else ""
    raise UnreadableConfig(f"{source}: key 'model_type': transformers has no text decoder {named(model_type)}{code}; "
                           f"{nearest}`encyclopedia list` shows all that are known")


def _known(model_type: str) -> bool:
    return (model_type in all_families() and model_type in CONFIG_MAPPING
            and model_type in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def _state_precision(config: dict[str, Any], ignored: set[str]) -> None:
    """Make the config say one precision that its model runs in without weights."""
    stated = {key: config.pop(key) for key in ("dtype", "torch_dtype") if key in config}
    found = stated.get("dtype") or stated.get("torch_dtype")
    # Where nothing is stated, what such models are released in; torch multiplies grouped experts in no other.
    mixture = any("expert" in key for key, _ in entries(config))
    runs = isinstance(found, str) and found in _PRECISIONS and not (mixture and found != _USUAL_PRECISION)
    config["dtype"] = found if runs else _USUAL_PRECISION
    if stated and not runs:
        ignored.update(stated)


def _kept(config: Mapping[str, Any], model_type: str) -> tuple[dict[str, Any], set[str]]:
    """The keys that describe the model, without what they must not be, at every depth; and those left out."""
    config_class = CONFIG_MAPPING[model_type]
    ignored: set[str] = set()

    def kept(entries: Mapping[str, Any]) -> dict[str, Any]:
        found = {}
        for name, value in entries.items():
            key = printable(name)[:120]
            # A key that is the name of a method would take its place.
            if key in _SETTINGS or key.startswith("_") or callable(getattr(config_class, key, None)):
                ignored.add(key)
            else:
                found[key] = plain(value)
        return found

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return kept(value)
        if isinstance(value, list):
            return [plain(entry) for entry in value]
        return printable(value) if isinstance(value, str) else value

    return kept(config), ignored
