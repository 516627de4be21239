"""The families that cannot be verified, with the step that stops each, and those without the stream of a block."""

from __future__ import annotations

#: By ``model_type``: ``config``, ``structure``, ``run`` or ``check``.
FAILED: dict[str, str] = {
    "blt": "structure",
    "gemma4_assistant": "structure",
    "gemma4_unified_assistant": "structure",
    "hrm_text": "structure",
    "inkling2_loop_text": "check",
    "inkling2_text": "check",
    "musicgen": "config",
    "musicgen_melody": "config",
    "xlstm": "check",
}

#: Families that are verified, but whose blocks take or return something else than the stream in its usual layout.
STREAMLESS = ("cpmant", "dory", "gemma3n_text", "qwen4_exp_text", "xlnet")
