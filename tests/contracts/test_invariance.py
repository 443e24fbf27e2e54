"""Results do not depend on the order of rows, the engine, the threads or how files are split.

Picks and counts are identical; other numbers are equal within 1e-12.
"""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from contract_analysis import __file__ as script
from contract_analysis import analyse
from contract_registry import (
    ENGINES,
    FRAME_FUNCTIONS,
    FrameFunction,
    ids,
    run,
)
from polars.testing import assert_frame_equal

ORDER_MATTERS_BY_PROMISE = {"renumber_attempts", "drop_duplicate_completions", "Identity"}
"""They keep the rows in their order; what they make of each row does not depend on it."""


def as_set(frame: pl.DataFrame) -> pl.DataFrame:
    """Bring rows into an order that rounding does not change: floats come last in it."""
    flat = [name for name, dtype in frame.schema.items() if not isinstance(dtype, pl.List)]
    return frame.sort(sorted(flat, key=lambda name: frame.schema[name].is_float()))


def assert_same(found: pl.DataFrame, expected: pl.DataFrame, *, ordered: bool = True) -> None:
    """Compare exactly what is exact, and numbers to the tolerance."""
    if not ordered:
        found, expected = as_set(found), as_set(expected)
    # Rows, order, dtypes and everything that is no float are compared exactly.
    assert_frame_equal(found, expected, rel_tol=1e-12, abs_tol=1e-13)


@cache
def expected() -> dict[str, pl.DataFrame]:
    return {name: plan.collect(engine="in-memory") for name, plan in analyse(run().lazy()).items()}


@pytest.mark.parametrize("engine", ENGINES)
def test_shuffled_rows_give_the_same_tables(engine: pl.Engine) -> None:
    shuffled = run().sample(fraction=1.0, shuffle=True, seed=0).lazy()
    for name, plan in analyse(shuffled).items():
        assert_same(plan.collect(engine=engine), expected()[name])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n_parts", [1, 7])
def test_a_run_split_over_files_gives_the_same_tables(
    n_parts: int, engine: pl.Engine, tmp_path: Path
) -> None:
    rows = run().sample(fraction=1.0, shuffle=True, seed=n_parts)
    draws = random.Random(n_parts)
    ends = [0, *sorted(draws.sample(range(1, rows.height), n_parts - 1)), rows.height]
    for part, (start, end) in enumerate(itertools.pairwise(ends)):
        rows[start:end].write_parquet(tmp_path / f"{part}.parquet", row_group_size=5)
    for name, plan in analyse(pl.scan_parquet(tmp_path / "*.parquet")).items():
        assert_same(plan.collect(engine=engine), expected()[name])


@pytest.mark.parametrize("engine", ENGINES)
def test_chunked_columns_give_the_same_tables(engine: pl.Engine) -> None:
    chunked = pl.concat([run()[i : i + 7] for i in range(0, run().height, 7)], rechunk=False)
    assert chunked.n_chunks() > 10
    for name, plan in analyse(chunked.lazy()).items():
        assert_same(plan.collect(engine=engine), expected()[name])


@pytest.mark.parametrize("n_threads", ["1", "4"])
def test_any_number_of_threads_gives_the_same_tables(n_threads: str, tmp_path: Path) -> None:
    source = tmp_path / "run.parquet"
    run().sample(fraction=1.0, shuffle=True, seed=9).write_parquet(source, row_group_size=10)
    subprocess.run(
        [sys.executable, script, str(source), str(tmp_path), *ENGINES],
        env={**os.environ, "POLARS_MAX_THREADS": n_threads},
        cwd=Path(__file__).parents[2],
        check=True,
        timeout=300,
    )
    for engine, (name, table) in itertools.product(ENGINES, expected().items()):
        assert_same(pl.read_parquet(tmp_path / f"{engine} {name}.parquet"), table)


def test_the_same_query_twice_gives_the_same_bits() -> None:
    for name, plan in analyse(run().lazy()).items():
        exact = pl.all().exclude(pl.Float64)
        first, second = (plan.collect(engine="streaming") for _ in range(2))
        assert first.select(exact).equals(second.select(exact)), name


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("function", FRAME_FUNCTIONS, ids=ids(FRAME_FUNCTIONS))
def test_every_function_is_unchanged_by_order_and_engine(
    function: FrameFunction, engine: pl.Engine
) -> None:
    frame = function.make_frame()
    expected_rows = function.call(frame)
    for seed in range(2):
        shuffled = frame.sample(fraction=1.0, shuffle=True, seed=seed)
        found = function.call(shuffled.lazy()).collect(engine=engine)
        assert_same(found, expected_rows, ordered=False)
    if function.name in ORDER_MATTERS_BY_PROMISE:
        again = function.call(frame.lazy()).collect(engine=engine)
        assert_same(again, expected_rows)


@cache
def tied() -> pl.DataFrame:
    """Return a hundred problems in which every answer ties with every other, in votes and weights."""
    draws = random.Random(0)
    rows = [
        {"problem_id": p, "attempt": a, "answer_key": key, "score": 0.1, "is_correct": key == "a"}
        for p in range(100)
        for a, key in enumerate(draws.sample("aabbccdd", 8))
    ]
    return pl.DataFrame(rows).with_columns(
        step_scores=pl.concat_list("score", "score"), reduction=pl.lit("x")
    )


@cache
def expected_of_tied() -> dict[str, pl.DataFrame]:
    return {name: plan.collect(engine="in-memory") for name, plan in analyse(tied().lazy()).items()}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_tie_in_every_vote_is_broken_alike_in_any_order(engine: pl.Engine) -> None:
    shuffled = tied().sample(fraction=1.0, shuffle=True, seed=0).lazy()
    for name, plan in analyse(shuffled).items():
        assert_same(plan.collect(engine=engine), expected_of_tied()[name])
