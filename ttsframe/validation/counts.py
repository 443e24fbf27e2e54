"""Rules about a table of counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from ttsframe._exprs import from_safe, to_safe
from ttsframe.validation.finding import Finding, Pending, Severity

_N, _C = pl.col("n_attempts"), pl.col("n_correct")
_RULES: Final[tuple[tuple[str, Severity, str, pl.Expr, str, str], ...]] = (
    (
        "null_problem_ids",
        "error",
        "problem_id",
        pl.col("problem").is_null(),
        "have a null 'problem_id'",
        "name the column that identifies problems.",
    ),
    (
        "impossible_counts",
        "error",
        "n_correct",
        ((_N < 0) | ~_C.is_between(0, _N)).fill_null(value=False),
        "have counts that cannot be: 0 <= n_correct <= n_attempts must hold",
        "n_correct counts attempts; it is no share and no percentage.",
    ),
    (
        "duplicate_counts",
        "error",
        "problem_id",
        pl.col("n_rows") > 1,
        "are not the only one of their problem",
        "name the column that tells runs, models or seeds apart in by=(...).",
    ),
    (
        "ungraded_problems",
        "warning",
        "n_attempts",
        _N.is_null() | _C.is_null() | (_N == 0),
        "have no graded attempt",
        "curves leave these problems out and count them.",
    ),
    (
        "ragged_attempts",
        "warning",
        "n_attempts",
        pl.col("n_most") > _N,
        "have fewer attempts than others of their run",
        "larger budgets leave these problems out and count them as short.",
    ),
)


def count_findings(
    counts: pl.LazyFrame, keys: Mapping[str, str]
) -> tuple[pl.DataFrame, list[Pending]]:
    """Return the key columns and `n` of each row of counts, and what the rules find."""
    schema = counts.collect_schema()
    names = ("n_attempts", "n_correct")
    findings = []
    for name in names:
        if not (schema[name].is_integer() or schema[name] == pl.Null):
            message = f"column {name!r} is {schema[name]}, must be an integer"
            hint = f"trajectories.with_columns(pl.col({name!r}).cast(pl.UInt32))."
            findings.append(Pending(Finding("wrong_dtype", "error", name, 1, message, (), hint)))
    *run, problem = keys
    rows = (
        counts
        .select(*to_safe(keys), *(pl.col(name).cast(pl.Int64, strict=False) for name in names))
        .with_columns(
            n_rows=pl.len().over([*keys]),
            n_most=_N.max().over(run) if run else _N.max(),
            problem=problem,
        )
        .collect()
    )
    if rows.is_empty():
        hint = "check that the source has rows and that no filter dropped them all."
        findings.append(
            Pending(
                Finding("no_attempts", "error", "n_attempts", 0, "the table has no rows", (), hint)
            )
        )
    for code, severity, column, is_broken, clause, hint in _RULES:
        broken = rows.filter(is_broken)
        if broken.height:
            message = f"{broken.height:,} of {rows.height:,} rows {clause}"
            finding = Finding(code, severity, column, broken.height, message, (), hint)
            findings.append(Pending(finding, broken.lazy().select(*from_safe(keys), *names)))
    return rows.select(*run, "problem", n=_N.fill_null(0)), findings
