"""The headers that a host sends with every page, as the file that Netlify, Cloudflare Pages and others read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

#: Its place on the site.
HEADERS = "_headers"

#: What only a header can say: that no page of another site may frame these.
_HEADER_ALONE = "frame-ancestors 'none'"


def headers_text(config: Path) -> str:
    """The text of :data:`HEADERS`: the policy that pages carry as an element too, and what only headers say.

    Args:
        config: the site engine's config, whose ``extra.policy`` is the policy.
    """
    settings: dict[str, Any] = yaml.safe_load(config.read_text(encoding="utf-8"))
    policy = settings["extra"]["policy"]
    return "\n".join((
        "/*",
        f"  Content-Security-Policy: {policy}; {_HEADER_ALONE}",
        "  X-Content-Type-Options: nosniff",
        "  Referrer-Policy: strict-origin-when-cross-origin",
    )) + "\n"
