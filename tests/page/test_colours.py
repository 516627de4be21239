"""Every palette can be read, whatever the family's hue."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from encyclopedia.page.colours import LINE_CONTRAST, ROLES, TEXT_CONTRAST, Palette, contrast, oklch, palette, stylesheet

HUES = st.integers(min_value=0, max_value=359)


def schemes(colours: Palette):
    return [("light", colours.light), ("dark", colours.dark)]


def test_contrast_of_known_pairs():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=1e-3)
    assert contrast("#ffffff", "#777777") == contrast("#777777", "#ffffff")
    assert contrast("#123456", "#123456") == 1


def test_oklch_of_known_colours():
    assert oklch(1, 0, 0) == "#ffffff"
    assert oklch(0, 0, 0) == "#000000"
    assert oklch(0.62796, 0.25768, 29.234) == "#ff0000"
    assert oklch(0.45201, 0.31321, 264.052) == "#0000ff"


@given(st.floats(0, 1), st.floats(0, 0.4), st.floats(0, 360))
def test_oklch_is_always_a_colour(lightness, chroma, hue):
    assert re.fullmatch("#[0-9a-f]{6}", oklch(lightness, chroma, hue))


@settings(max_examples=60, deadline=None)
@given(HUES)
def test_inks_are_readable_and_lines_visible(hue):
    for name, scheme in schemes(palette(hue)):
        grounds = [scheme.neutrals[ground] for ground in ("paper", "card", "wash")]
        for role in ROLES:
            shade = scheme.roles[role]
            for ground in (*grounds, shade.tint):
                assert contrast(shade.ink, ground) >= TEXT_CONTRAST, (name, role, hue)
                assert contrast(shade.line, ground) >= LINE_CONTRAST, (name, role, hue)


@settings(max_examples=60, deadline=None)
@given(HUES)
def test_neutral_text_is_readable(hue):
    for _, scheme in schemes(palette(hue)):
        for ground in ("paper", "card", "wash"):
            assert contrast(scheme.neutrals["ink"], scheme.neutrals[ground]) >= 7
            assert contrast(scheme.neutrals["mute"], scheme.neutrals[ground]) >= TEXT_CONTRAST
        for ground in ("paper", "card"):
            assert contrast(scheme.neutrals["line-strong"], scheme.neutrals[ground]) >= LINE_CONTRAST


@settings(max_examples=30, deadline=None)
@given(HUES)
def test_structural_roles_stay_apart(hue):
    for _, scheme in schemes(palette(hue)):
        lines = {scheme.roles[role].line for role in ROLES if role != "mark"}
        assert len(lines) == 4


def test_stylesheet_has_both_schemes_and_every_property():
    css = stylesheet(palette(340))
    assert css.count('[data-md-color-scheme="slate"]') == 1
    for role in ROLES:
        for name in (role, f"{role}-ink", f"{role}-tint"):
            assert len(re.findall(rf"--{name}: #[0-9a-f]{{6}};", css)) == 2
    for name in ("paper", "card", "wash", "ink", "mute", "line", "line-strong"):
        assert len(re.findall(rf"--{name}: #[0-9a-f]{{6}};", css)) == 2


def test_hue_is_a_circle():
    assert palette(380) == palette(20)
    assert stylesheet(palette(0)) != stylesheet(palette(180))
