"""Every selector has its own color, which is legible on white and distinct from the others."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest

import ttsframe as tts
from ttsframe import charts
from ttsframe.charts.style import FALLBACK_COLORS, selector_colors

# Machado et al. 2009, doi:10.1109/TVCG.2009.113, table 1 at severity 1, on linear RGB.
VIEWS = {
    "all cones": np.eye(3),
    "protanopia": np.array([
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ]),
    "deuteranopia": np.array([
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ]),
}


def linear(color: str) -> np.ndarray:
    rgb = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    to_xyz = np.array([
        [0.4124, 0.3576, 0.1805],
        [0.2126, 0.7152, 0.0722],
        [0.0193, 0.1192, 0.9505],
    ])
    xyz = to_xyz @ np.clip(rgb, 0, 1) / to_xyz.sum(axis=1)
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast_to_white(color: str) -> float:
    luminance = np.array([0.2126, 0.7152, 0.0722]) @ linear(color)
    return float(1.05 / (luminance + 0.05))


@pytest.mark.parametrize("name", [*tts.SELECTORS, "a_new_selector"])
def test_a_selector_has_the_same_color_in_every_chart_and_reads_on_white(name: str) -> None:
    (alone,) = selector_colors([name]).values()
    assert selector_colors([*tts.SELECTORS, name])[name] == alone
    assert contrast_to_white(alone) > 4.5


@pytest.mark.parametrize("view", VIEWS)
def test_colors_are_told_apart_under_every_common_vision(view: str) -> None:
    colors = selector_colors(list(tts.SELECTORS))
    # One new selector at a time is told apart from all that have a color of their own.
    colors |= {color: color for color in FALLBACK_COLORS if color not in colors.values()}
    for (one, first), (other, second) in itertools.combinations(colors.items(), 2):
        distance = np.linalg.norm(
            lab(VIEWS[view] @ linear(first)) - lab(VIEWS[view] @ linear(second))
        )
        assert distance > (25.0 if view == "all cones" else 9.0), (one, other)


def test_new_selectors_have_colors_of_their_own_until_the_palette_is_used_up() -> None:
    names = [f"new {i}" for i in range(len(FALLBACK_COLORS))]
    colors = selector_colors([*names, *tts.SELECTORS])
    assert {colors[name] for name in names} == set(FALLBACK_COLORS)
    assert selector_colors(names[::-1]) == {name: colors[name] for name in names}
    assert all(contrast_to_white(color) > 4.5 for color in FALLBACK_COLORS)
    assert len(selector_colors([*names, "one more"])) == len(names) + 1


def test_runs_that_bear_the_name_of_a_selector_have_its_color() -> None:
    rows = {"selector": "weighted_vote", "reduction": "last", "budget": [4, 16], "accuracy": 0.5}
    curve = pl.concat([
        pl.DataFrame(rows).with_columns(policy=pl.lit(name)) for name in ("best_of_n", "beam")
    ])
    scale = charts.scaling_curve(curve).to_dict()
    assert selector_colors(["best_of_n"])["best_of_n"] in str(scale)
