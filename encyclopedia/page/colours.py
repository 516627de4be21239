"""Colours: a family's palette from one hue, in OKLCH, with the contrasts that text and lines need.

Hues and chromas are chosen, lightness is searched: a colour moves away from the paper until it can be read on every
ground it is used on. The stylesheet is the only place that names neutrals and roles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

#: The roles in the order the stylesheet lists them.
ROLES = ("stream", "attention", "mlp", "norm", "mark")

#: WCAG 2.2: the least contrast of text (AA) and of a line that carries meaning.
TEXT_CONTRAST = 4.5
LINE_CONTRAST = 3.0

# Searched values stand this much above the least contrast, so that rounding to 8 bits cannot undercut it.
_MARGIN = 0.08


@dataclass(frozen=True)
class Shade:
    """One role in one scheme, as ``#rrggbb``.

    Attributes:
        line: strong lines and marks, at least 3:1 on paper and card.
        ink: text, at least 4.5:1 on paper, card, wash and ``tint``.
        tint: fill behind ``ink``.
    """

    line: str
    ink: str
    tint: str


@dataclass(frozen=True)
class Scheme:
    """Everything one colour scheme needs: neutrals by name and a shade per role."""

    neutrals: Mapping[str, str]
    roles: Mapping[str, Shade]


@dataclass(frozen=True)
class Palette:
    """A family's colours, light and dark."""

    hue: int
    light: Scheme
    dark: Scheme


@dataclass(frozen=True)
class _Recipe:
    """Where a scheme starts: lightness and chroma of its grounds and of each part of a shade."""

    grounds: Mapping[str, tuple[float, float, float]]
    ink: tuple[float, float, float]
    mute: tuple[float, float, float]
    line: tuple[float, float, float]
    line_strong: tuple[float, float, float]
    role_line: float
    role_ink: float
    tint: tuple[float, float]
    chroma: float
    #: The direction that gains contrast: down on a light ground, up on a dark one.
    step: float


_LIGHT = _Recipe(
    grounds={"paper": (0.984, 0.005, 95), "card": (1.0, 0.0, 95), "wash": (0.960, 0.007, 92)},
    ink=(0.235, 0.012, 275), mute=(0.52, 0.012, 270), line=(0.895, 0.010, 92), line_strong=(0.66, 0.014, 90),
    role_line=0.56, role_ink=0.455, tint=(0.962, 0.55), chroma=1.0, step=-0.004,
)
# A dark room rather than a negative: the paper is warm, cards are lifted from it, colours are lighter and softer.
_DARK = _Recipe(
    grounds={"paper": (0.205, 0.008, 70), "card": (0.245, 0.009, 70), "wash": (0.285, 0.010, 70)},
    ink=(0.925, 0.010, 85), mute=(0.70, 0.014, 80), line=(0.345, 0.011, 72), line_strong=(0.55, 0.014, 75),
    role_line=0.70, role_ink=0.82, tint=(0.300, 0.62), chroma=0.74, step=0.004,
)

# The region of hue and the chroma in which each structural role stays recognisable, whatever the family.
_REGIONS = {"stream": (228.0, 0.095), "attention": (312.0, 0.150), "mlp": (52.0, 0.130), "norm": (132.0, 0.105)}
_MARK_CHROMA = 0.155
_LARGEST_SHIFT = 9.0


def palette(hue: int) -> Palette:
    """The palette of a family whose mark has ``hue``, in degrees of OKLCH (any integer, taken modulo 360)."""
    return Palette(hue=hue % 360, light=_scheme(_LIGHT, hue % 360), dark=_scheme(_DARK, hue % 360))


def sheet_of(hue: int) -> str:
    """Where on the site the sheet of a hue's colours is, from its root."""
    return f"colours/{hue % 360}.css"


def stylesheet(colours: Palette) -> str:
    """``colours`` as CSS custom properties: light on ``:root``, dark under Material's ``slate``."""
    return "\n".join((
        _rule(':root,\n[data-md-color-scheme="default"]', "light", colours.light),
        _rule('[data-md-color-scheme="slate"]', "dark", colours.dark),
    ))


def contrast(first: str, second: str) -> float:
    """The WCAG contrast ratio of two ``#rrggbb`` colours, from 1 to 21."""
    lighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def oklch(lightness: float, chroma: float, hue: float) -> str:
    """The colour as ``#rrggbb``; chroma is lowered as far as sRGB requires, lightness and hue stay."""
    channels = _linear_srgb(lightness, chroma, hue)
    if not _in_gamut(channels):
        low, high = 0.0, chroma
        for _ in range(24):
            middle = (low + high) / 2
            low, high = (middle, high) if _in_gamut(_linear_srgb(lightness, middle, hue)) else (low, middle)
        channels = _linear_srgb(lightness, low, hue)
    return "#" + "".join(f"{round(255 * _encoded(min(max(channel, 0.0), 1.0))):02x}" for channel in channels)


def _scheme(recipe: _Recipe, hue: int) -> Scheme:
    grounds = {name: oklch(*colour) for name, colour in recipe.grounds.items()}
    neutrals = {
        **grounds,
        "ink": _legible(recipe.ink, grounds.values(), 7.0, recipe.step),
        "mute": _legible(recipe.mute, grounds.values(), TEXT_CONTRAST, recipe.step),
        "line": oklch(*recipe.line),
        "line-strong": _legible(recipe.line_strong, (grounds["paper"], grounds["card"]), LINE_CONTRAST, recipe.step),
    }
    return Scheme(neutrals, {role: _shade(recipe, grounds, *_hue_and_chroma(role, hue)) for role in ROLES})


def _hue_and_chroma(role: str, family_hue: int) -> tuple[float, float]:
    if role == "mark":
        return float(family_hue), _MARK_CHROMA
    hue, chroma = _REGIONS[role]
    distance = math.radians(family_hue - hue)
    # Sine and cosine shift without a jump: nothing at the opposite hue, most a quarter of the circle away.
    return hue + _LARGEST_SHIFT * math.sin(distance), chroma * (1 + 0.10 * math.cos(distance))


def _shade(recipe: _Recipe, grounds: Mapping[str, str], hue: float, chroma: float) -> Shade:
    tint_lightness, tint_chroma = recipe.tint
    tint = oklch(tint_lightness, chroma * tint_chroma * 0.28, hue)
    soft = chroma * recipe.chroma
    return Shade(
        line=_legible((recipe.role_line, soft, hue), (*grounds.values(), tint), LINE_CONTRAST, recipe.step),
        ink=_legible((recipe.role_ink, soft, hue), (*grounds.values(), tint), TEXT_CONTRAST, recipe.step),
        tint=tint,
    )


def _legible(colour: tuple[float, float, float], grounds: Iterable[str], least: float, step: float) -> str:
    lightness, chroma, hue = colour
    grounds = tuple(grounds)
    while 0 <= lightness <= 1:
        found = oklch(lightness, chroma, hue)
        if all(contrast(found, ground) >= least + _MARGIN for ground in grounds):
            return found
        lightness += step
    raise ValueError(f"no lightness of hue {hue:g} reaches {least}:1 on {', '.join(grounds)}")


def _rule(selector: str, scheme_name: str, scheme: Scheme) -> str:
    properties = dict(scheme.neutrals)
    for role, shade in scheme.roles.items():
        properties |= {role: shade.line, f"{role}-ink": shade.ink, f"{role}-tint": shade.tint}
    lines = [f"  --{name}: {value};" for name, value in properties.items()]
    return "\n".join((f"{selector} {{", f"  color-scheme: {scheme_name};", *lines, "}"))


def _linear_srgb(lightness: float, chroma: float, hue: float) -> tuple[float, float, float]:
    # Björn Ottosson's OKLab, whose matrices CSS Color 4 also prints.
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )


def _in_gamut(channels: Iterable[float]) -> bool:
    return all(-1e-4 <= channel <= 1 + 1e-4 for channel in channels)


def _encoded(channel: float) -> float:
    return 12.92 * channel if channel <= 0.0031308 else 1.055 * channel ** (1 / 2.4) - 0.055


def _decoded(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


def _luminance(colour: str) -> float:
    red, green, blue = (_decoded(int(colour[start:start + 2], 16) / 255) for start in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
