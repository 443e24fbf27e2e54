"""A seeded twentieth of ``benchmarks/answer_rewrites.py``: rewritings keep keys, neighbours change them."""

from __future__ import annotations

import pytest

from benchmarks.answer_rewrites import KINDS, PAIRS, failures


@pytest.mark.parametrize("kind", KINDS)
def test_every_pair_has_the_keys_that_the_oracle_expects(kind: str) -> None:
    assert failures(kind, PAIRS // 20, seed=1) == []
