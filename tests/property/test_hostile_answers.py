"""A seeded tenth of ``benchmarks/hostile_answers.py``."""

from __future__ import annotations

import pytest

from benchmarks.hostile_answers import STRINGS, run


@pytest.mark.slow
def test_a_tenth_of_the_hostile_answers() -> None:
    report = run(STRINGS // 10, seed=1, n_timed=2_000, n_kills=3)
    assert report.problems == []
    assert report.n_strings >= 0.99 * STRINGS / 10
