"""Defaults: problems that share an id, but not their text."""

from __future__ import annotations

import polars as pl
import pytest

from ttsframe.defaults import number_by_text, with_own_ids

TEXTS = {
    ("a", "1"): "What is 1 + 1?",
    ("b", "1"): "What is 2 + 2?",
    ("a", "2"): "What is 3?",
    ("b", "2"): "Solve this. What is 3?",
}


@pytest.mark.parametrize("run", ["run", "_id", "own_id", "text", "key0", "shortest", "differ"])
def test_equal_ids_of_other_texts_are_told_apart_whatever_the_run_is_called(run: str) -> None:
    attempts = pl.DataFrame({
        run: [name for name, _ in TEXTS],
        "problem_id": [problem for _, problem in TEXTS],
        "problem": [*TEXTS.values()],
    })
    ids = number_by_text(attempts, [run])
    table = attempts.with_columns(own_id_=pl.lit("kept"), value=pl.int_range(4))
    found = with_own_ids(table, ids)
    assert found.columns == table.columns
    # The second problem of b is that of a within a template.
    assert found["problem_id"].to_list() == ["1 (1)", "1 (2)", "2", "2"]
    assert found.drop("problem_id").equals(table.drop("problem_id"))
