"""Inputs that nobody means well with, and what is asked of everything that reads them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

#: The same inputs on every run; how long one takes is measured by the tests themselves.
FUZZ = settings(derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck),
                phases=(Phase.explicit, Phase.generate))

HOSTILE = (
    "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "\"><b id=hostile>",
    "' onmouseover='alert(1)",
    "</style><i>", "<!-- ", "-->", "]]>", "&lt;b&gt;", "{{ 7 * 7 }}", "{% raw %}", "{# x #}", "${7*7}",
    "[x](javascript:alert(1))", "![x](https://example.org/x.png)", "<https://example.org>", "**bold**", "`code`",
    "# heading", "\n\n# heading\n\n", "\n```python\nprint(1)\n```\n", "\n~~~\nx\n~~~\n", "\n---\ntitle: x\n---\n",
    "| a | b |",
    "\n\n    indented\n\n", "{: #x onclick=y }", "[TOC]", "\u202egnp.exe", "\u200f", "\u2028", "\x85", "\x00",
    "\x1b[31m",
    "\x02wzxhzdk:0\x03", "\ue000code:0\ue001", "\ue000measured:0\ue001", "a" * 3000, "", " ", "\\", "__import__('os')",
    "../../../etc/passwd", "owner/name--modeling.py", "kernels-community/anything", "𝔘𝔫𝔦", "é", "\ufeff", "\ufffe",
)

texts = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=40),
                  st.lists(st.sampled_from(HOSTILE), max_size=3).map("".join))

numbers = st.one_of(
    st.integers(-3, 70), st.sampled_from([0, -1, 1, 2**31, 2**40, 2**63, 2**64, 10**30, -10**30, 1_000_000, 2_000_001]),
    st.floats(), st.sampled_from([0.0, -0.0, 1e-320, 1e308, float("nan"), float("inf"), float("-inf"), 0.5, 2.5]))

values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)), max_leaves=8)

#: Keys that ask for code, for a file, or for what a load would fetch.
ASKING: dict[str, Any] = {
    "auto_map": {"AutoConfig": "owner/name--configuration.Evil", "AutoModelForCausalLM": "modeling.Evil"},
    "trust_remote_code": True,
    "_attn_implementation": "kernels-community/flash-attn",
    "attn_implementation": "kernels-community/flash-attn",
    "quantization_config": {"quant_method": "gptq", "bits": 4},
    "_name_or_path": "/etc",
    "custom_pipelines": {"x": {"impl": "x.Evil"}},
    "to_dict": "x",
    "get_text_config": 1,
    "_experts_implementation": "evil",
    "torch_dtype": "os",
    "dtype": "load",
}


@st.composite
def mutations(draw: st.DrawFn, config: dict[str, Any], *, most: int = 3) -> dict[str, Any]:
    """``config`` with entries missing, added, of another type or size, or asking for code."""
    changed = json.loads(json.dumps(config))
    for _ in range(draw(st.integers(1, most))):
        key = draw(st.sampled_from(sorted(config)))
        match draw(st.integers(0, 6)):
            case 0:
                changed.pop(key, None)
            case 1:
                changed[draw(texts)] = draw(values)
            case 2:
                changed |= {name: ASKING[name] for name in draw(st.sets(st.sampled_from(sorted(ASKING)), min_size=1))}
            case 3:
                changed[key] = draw(numbers)
            case 4 if isinstance(changed.get(key), int):
                changed[key] = changed[key] * draw(st.sampled_from([0, -1, 2, 3, 7, 1000]))
            case 5:
                changed = {name: value for name, value in changed.items() if name != key} | {key: changed.get(key)}
                changed[key] = [changed[key]] * draw(st.integers(0, 5))
            case _:
                changed[key] = draw(values)
    return changed


def assert_one_line(message: str, *, names: str = "", step: bool = False) -> None:
    """That ``message`` can be printed as one line, is no longer than one, and says what it is about and what to do."""
    assert message.isprintable(), ascii(message)
    assert 0 < len(message) <= 600
    assert "Traceback" not in message
    assert names in message
    assert not step or ";" in message
