"""What each run has, and so which analyses it allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import polars as pl

from ttsframe.defaults.tables import RUN, SHARE_OF_PROBLEMS, Options
from ttsframe.report.names import run_name

_N_NAMED_MAX: Final = 4


class Rule(NamedTuple):
    """What a run must have for an analysis, and what to say where it has not."""

    holds: pl.Expr
    otherwise: str


def describe_runs(attempts: pl.DataFrame, options: Options) -> pl.DataFrame:
    """Count what each run has.

    Parameters
    ----------
    attempts
        What `collect_attempts` gives.
    options
        How answers are picked and averaged.

    Returns
    -------
    pl.DataFrame
        One row per run, in order: `_run`, the columns that tell runs apart, `n_problems`, `n_each`
        (attempts that at least nine in ten problems have), `n_right`, `n_wrong`, `n_scored`,
        `n_unmeasured` (attempts of unknown length), `tokens_min`, `is_exchangeable`.
    """
    there = attempts.columns
    grade = pl.col("is_correct") if "is_correct" in there else pl.lit(None, pl.Boolean)
    score = pl.col("score") if "score" in there else pl.lit(None, pl.Float64)
    tokens = pl.col("n_tokens") if "n_tokens" in there else pl.lit(None, pl.Int64)
    is_alone = pl.col("is_exchangeable") if "is_exchangeable" in there else pl.lit(value=True)
    run = [RUN, *options.groups]
    each = attempts.group_by(*run, *options.repeats, "problem_id").agg(
        pl.len().alias("n"),
        n_right=grade.sum(),
        n_wrong=(~grade).sum(),
        n_scored=score.fill_nan(None).count(),
        n_unmeasured=tokens.is_null().sum(),
        tokens_min=tokens.min(),
        is_exchangeable=is_alone.fill_null(value=True).all(),
    )
    return (
        each
        .group_by(run)
        .agg(
            pl.col("problem_id").n_unique().alias("n_problems"),
            pl.col("n").quantile(SHARE_OF_PROBLEMS, "lower").cast(pl.Int64).alias("n_each"),
            pl.col("n_right", "n_wrong", "n_scored", "n_unmeasured").sum().cast(pl.Int64),
            pl.col("tokens_min").min(),
            pl.col("is_exchangeable").all(),
        )
        .sort(RUN)
    )


def keep_runs(
    runs: pl.DataFrame, rules: Sequence[Rule], groups: Sequence[str]
) -> tuple[pl.DataFrame, str | None]:
    """Keep the runs that an analysis is possible of, and say why the others are left out.

    Parameters
    ----------
    runs
        What `describe_runs` gives.
    rules
        What a run must have; the first that does not hold is named.
    groups
        Columns that tell runs apart.

    Returns
    -------
    tuple[pl.DataFrame, str or None]
        The runs that are kept, and a clause; None where all are.
    """
    reason = pl.coalesce(*[
        pl.when(~rule.holds.fill_null(value=False)).then(pl.lit(rule.otherwise)) for rule in rules
    ])
    told = runs.with_columns(reason.alias("reason"))
    refused = told.drop_nulls("reason")
    if refused.is_empty():
        return runs, None
    kept = told.filter(pl.col("reason").is_null()).drop("reason")
    clauses = []
    for (text,), rows in refused.partition_by("reason", as_dict=True, maintain_order=True).items():
        names = [run_name(rows[i], groups) for i in range(min(rows.height, _N_NAMED_MAX))]
        more = [f"{rows.height - len(names)} more"] if rows.height > len(names) else []
        is_all = rows.height == runs.height
        clauses.append(str(text) if is_all else f"{text} ({', '.join([*names, *more])})")
    return kept, "; ".join(clauses)


def rows_of(attempts: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """Keep the attempts of some runs.

    Parameters
    ----------
    attempts
        What `collect_attempts` gives.
    runs
        Rows of `describe_runs`.

    Returns
    -------
    pl.DataFrame
        Their attempts, in order.
    """
    numbers = runs[RUN].to_list()
    if numbers == attempts[RUN].unique().sort().to_list():
        return attempts
    return attempts.filter(pl.col(RUN).is_in(numbers))


def compared_alike(problems: pl.DataFrame, groups: Sequence[str]) -> pl.DataFrame:
    """Let strategies compete on the same problems.

    A strategy that is undefined on half of the problems, and so averaged over the others, would win
    by being spared the hard ones.

    Parameters
    ----------
    problems
        `problems` under several selectors and reductions.
    groups
        Columns that tell runs apart.

    Returns
    -------
    pl.DataFrame
        The rows of strategies that at least nine in ten of the problems have that any has; a problem
        that is not "ok" under one of these has that status, and no value, under all of them.
    """
    is_ok = pl.col("status") == "ok"
    if problems.select(is_ok.all()).item():
        return problems
    line = [*groups, "selector", "reduction"]
    n_ok = pl.col("problem_id").filter(pl.col("is_ok")).n_unique()
    lines = (
        problems
        .group_by(*line, "problem_id")
        .agg(is_ok.all().alias("is_ok"))
        .group_by(line)
        .agg(n_ok.alias("n_ok"))
    )
    most = pl.col("n_ok").max().over(groups) if groups else pl.col("n_ok").max()
    kept = lines.filter(pl.col("n_ok") >= (1.0 - SHARE_OF_PROBLEMS) * most)
    rows = problems.join(kept, on=line, how="semi", nulls_equal=True, maintain_order="left")
    missing = pl.col("status").filter(~is_ok).min().over(*groups, "problem_id")
    status = pl.when(is_ok).then(missing.fill_null("ok")).otherwise("status")
    return rows.with_columns(status=status).with_columns(
        value=pl.when(pl.col("status") == "ok").then("value")
    )
