"""A column of `by` may have any name that is no column of the result, also one that the code writes itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import polars as pl
import pytest
from contract_registry import (
    COSTS,
    FRAME_FUNCTIONS,
    PROBLEMS_SCHEMA,
    allocation,
    problems,
    rollouts,
    run,
    run_levels,
    texts,
)
from package_source import modules
from polars.testing import assert_frame_equal

import ttsframe as tts
from ttsframe.errors import ParameterError
from ttsframe.schema import TRAJECTORY_COLUMNS

PARTS = ("_exprs.py", "schema.py", "votes", "estimators", "statistics", "curves", "verifier")
PARTS += ("process", "validation")
READ = {
    *TRAJECTORY_COLUMNS,
    *PROBLEMS_SCHEMA,
    *COSTS,
    "level",
    "fold",
    "is_sampled",
    "extraction_rule",
}
"""Columns that some function reads where a table has them."""

GROUP = "group column "
GROUP_0 = f"{GROUP}0"


class Case(NamedTuple):
    name: str
    call: Callable[..., Any]
    make_frame: Callable[[], pl.DataFrame]


def with_groups(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    return frame.with_columns(pl.lit("x").alias(name) for name in names)


def broken_run() -> pl.DataFrame:
    """Return a run in which every rule about the attempts at a problem is broken."""
    repeated = run().head(3).with_columns(problem=pl.lit("other"), gold=pl.lit("other"))
    whole = pl.concat([run(), repeated], how="diagonal_relaxed")
    return whole.filter(pl.col("attempt") != 1).with_columns(
        completion=pl.lit("text"), is_correct=pl.int_range(pl.len()) % 2 == 0
    )


def labeled_steps() -> pl.DataFrame:
    steps = tts.process.estimate_steps(rollouts(), n_rollouts=[1])
    return steps.with_columns(score=pl.col("soft").fill_null(0.5))


CASES = [
    *[Case(row.name, row.call, row.make_frame) for row in FRAME_FUNCTIONS if row.takes_by],
    Case("validate_trajectories", tts.validate_trajectories, broken_run),
    Case("verifier_report", tts.verifier_report, run),
    Case("step_agreement", tts.process.step_agreement, labeled_steps),
    Case("fit_pass_at_k", tts.fit_pass_at_k, run),
    Case(
        "check_extrapolation",
        partial(tts.statistics.check_extrapolation, models="beta_binomial"),
        run,
    ),
    Case("best_trajectories", partial(tts.votes.best_trajectories, n_per_problem=2), run),
    Case("halve_attempts", tts.curves.halve_attempts, run),
    Case("renumber_attempts", tts.renumber_attempts, run),
    Case("drop_duplicate_completions", tts.drop_duplicate_completions, texts),
    Case(
        "add_costs",
        lambda frame, by: tts.curves.add_costs(frame, trajectories=with_groups(run(), by), by=by),
        problems,
    ),
    Case(
        "select_allocated",
        lambda frame, by: tts.curves.select_allocated(
            frame, allocation=with_groups(allocation(), by), by=by
        ),
        run,
    ),
    Case(
        "level_curve with levels by group",
        lambda frame, by: tts.level_curve(
            frame, levels=with_groups(run_levels(), by), by=by, include="available"
        ),
        problems,
    ),
]


@cache
def internal_names() -> frozenset[str]:
    """Return every name of a column that the source could write: its short strings and keywords."""
    names = {f"{prefix}{i}" for prefix in ("key", "seed", "part", "column_") for i in range(3)}
    names |= {f"{name}_right" for name in names} | {"literal", "len", "count", "index"}
    for path, tree in modules().items():
        if path.startswith(PARTS):
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    names.add(node.value)
                elif isinstance(node, ast.keyword) and node.arg:
                    names.add(node.arg)
    return frozenset(name for name in names if re.fullmatch("[a-z_][a-z_0-9@]{0,29}", name))


def tables(result: object, names: Sequence[str]) -> list[pl.DataFrame]:
    """Return the tables of a result, with the columns of `by` named alike."""
    if isinstance(result, tts.ValidationReport):
        found = [(each.code, each.count, len(each.examples)) for each in result.findings]
        return [pl.DataFrame(found, schema=["code", "count", "n_examples"], orient="row")]
    if isinstance(result, pl.DataFrame):
        numbered = {name: f"{GROUP}{i}" for i, name in enumerate(names)}
        return [result.rename(numbered, strict=False)]
    parts = [getattr(result, name) for name in getattr(result, "__annotations__", {})]
    return [table for part in parts if part is not None for table in tables(part, names)]


def call_with_many(case: Case, names: Sequence[str]) -> tuple[list[str], Any]:
    """Call with all names that the function does not refuse as columns of its result."""
    allowed = list(names)
    while True:
        try:
            return allowed, case.call(with_groups(case.make_frame(), allowed), by=allowed)
        except ParameterError as error:
            listed = re.search(r"names (\[.*?\]), which are columns of the result", str(error))
            if listed is None:
                raise
            refused = ast.literal_eval(listed[1])
            if not set(refused) & set(allowed):
                raise
            allowed = [name for name in allowed if name not in refused]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_group_may_have_the_name_of_an_internal_column(case: Case) -> None:
    frame = case.make_frame()
    names = sorted(internal_names() - READ - set(frame.columns))
    names, result = call_with_many(case, names)
    assert len(names) > 400
    found = tables(result, names)
    # Draws depend on the values of all groups, so that one group does not give the same.
    plain = [f"plain {i}" for i in range(len(names) if case.name == "expected_accuracy" else 1)]
    expected = tables(case.call(with_groups(frame, plain), by=plain), plain)
    assert found
    for table, other in zip(found, expected, strict=True):
        groups = [name for name in table.columns if name.startswith(GROUP)]
        assert len(groups) == (len(names) if GROUP_0 in other.columns else 0)
        assert all(table[name].equals(other[GROUP_0]) for name in groups)
        assert_frame_equal(table.drop(groups[len(plain) :]), other)


@pytest.mark.parametrize("name", ["attempt", "answer_key", "is_correct", "problem_id", "score"])
def test_validation_takes_any_column_of_the_run_as_a_group(name: str) -> None:
    report = tts.validate_trajectories(broken_run(), by=name)
    assert report.findings
