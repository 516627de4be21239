"""Building a native model from a recorded config."""

from __future__ import annotations

import re
from typing import Any

import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, PreTrainedConfig

from encyclopedia.checkpoints import BrokenConfig, RecordedCheckpoint

#: Sizes that a record has to state where the config class has them: a class default in their place would be a lie.
REQUIRED = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")


def config_of(record: RecordedCheckpoint) -> PreTrainedConfig:
    """The transformers config of a recorded checkpoint.

    Raises:
        BrokenConfig: naming the checkpoint and the key.
    """
    keys: dict[str, Any] = {key: value for key, value in record.config.items() if key != "model_type"}
    model_type = record.config["model_type"]
    if model_type not in CONFIG_MAPPING:
        raise BrokenConfig(f"checkpoint {record.id!r}: config key 'model_type': transformers has no {model_type!r}")
    config_class = CONFIG_MAPPING[model_type]
    if record.is_default:
        return _default(config_class, record)
    spelled = {name: config_class.attribute_map.get(name, name) for name in REQUIRED}
    for name, native in spelled.items():
        if native in _fields(config_class) and native not in keys and name not in keys:
            raise BrokenConfig(f"checkpoint {record.id!r}: config key {native!r}: missing")
    for name, native in spelled.items():
        value = keys.get(native, keys.get(name))
        if isinstance(value, int) and value < 1:
            raise BrokenConfig(f"checkpoint {record.id!r}: config key {native!r}: {value} is not positive")
    try:
        return config_class(**keys)
    except Exception as error:
        raise BrokenConfig(f"checkpoint {record.id!r}: {_key_in(str(error), keys)}{_one_line(error)}") from error


def _default(config_class: type[PreTrainedConfig], record: RecordedCheckpoint) -> PreTrainedConfig:
    try:
        return config_class(architectures=record.config["architectures"])
    except Exception as error:
        raise BrokenConfig(f"{record.id}: its config class cannot be built from its defaults: "
                           f"{_one_line(error)}") from error


def build_without_weights(record: RecordedCheckpoint, **kwargs: Any) -> torch.nn.Module:
    """The causal model of a recorded checkpoint, at full size on the meta device.

    Args:
        record: the checkpoint.
        **kwargs: ``attn_implementation``, ``experts_implementation`` or ``dtype`` for the load.

    Raises:
        BrokenConfig: naming the checkpoint, and the key where it is known.
    """
    config = config_of(record)
    if record.is_default:
        # Nothing states a precision, and this is what such models are released in.
        kwargs.setdefault("dtype", torch.bfloat16)
    if "experts_implementation" in kwargs:
        config._experts_implementation = kwargs.pop("experts_implementation")
    try:
        with torch.device("meta"):
            return AutoModelForCausalLM.from_config(config, **kwargs).eval()
    except Exception as error:
        prefix = _key_in(str(error), record.config)
        raise BrokenConfig(f"checkpoint {record.id!r}: {prefix}{_one_line(error)}") from error


def _fields(config_class: type[PreTrainedConfig]) -> set[str]:
    return {name for klass in config_class.__mro__ for name in getattr(klass, "__annotations__", {})}


def _key_in(message: str, keys: dict[str, Any]) -> str:
    named = [key for key in keys if re.search(rf"\b{re.escape(key)}\b", message)]
    return f"config key {max(named, key=len)!r}: " if named else "config: "


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
