"""Whether a hub can be reached, asked once: its client asks again and again, and writes a line each time."""

from __future__ import annotations

from huggingface_hub import constants
from huggingface_hub.utils import get_session

#: Seconds that a hub has to answer.
PATIENCE = 10


def hub_answers() -> bool:
    """Whether the hub of this environment (``HF_ENDPOINT``) answers anything at all."""
    try:
        get_session().head(constants.ENDPOINT, timeout=PATIENCE)
    # What it raises without a network is of types that differ from release to release of the client.
    except Exception:
        return False
    return True


def no_answer() -> str:
    """What to say where none does, and what to do."""
    return (f"{constants.ENDPOINT}: no answer (no network, or HF_HUB_OFFLINE is set); connect, or name a mirror by "
            "HF_ENDPOINT")
