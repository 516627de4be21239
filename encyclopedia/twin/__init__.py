"""The small twin: a small random float32 model of the same structure as a checkpoint's.

One rule shrinks every config: it keeps one block of each kind (two blocks at least), the ratio of query to key/value
heads, partial rotary, and the order of prompt, window and expert counts; it makes the axes different in size, so that
two of them cannot be mistaken for one another. Every parameter is then moved off its initial value, because a gate at
one or a bias at zero would hide the very term to be checked.
"""

from encyclopedia.twin.build import (
           NoTwin,
           blocks_kept,
           cut_from,
           cut_model,
           rebuilt,
           redrawn,
           twin_of,
           twin_of_model,
           twinned,
)
from encyclopedia.twin.config import shrink
from encyclopedia.twin.parameters import randomize
from encyclopedia.twin.prompt import PROMPT_LENGTH, PROMPTS, prompt_for

__all__ = ["PROMPTS", "PROMPT_LENGTH", "NoTwin", "blocks_kept", "cut_from", "cut_model", "prompt_for", "randomize",
           "rebuilt", "redrawn", "shrink", "twin_of", "twin_of_model", "twinned"]
