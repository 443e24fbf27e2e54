"""Runs side by side: paired differences on the same problems, and where they are largest."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import polars as pl

from ttsframe._wording import counted, shorten
from ttsframe.defaults import RUN, number_by_text, with_own_ids
from ttsframe.report.parts import (
    N_ROWS_MAX,
    Context,
    Figure,
    Part,
    Table,
    fold_if_long,
    make_table,
    note_more_runs,
)
from ttsframe.report.runs import GRADED, NoTableError, RunData
from ttsframe.report.wording import (
    NONE,
    format_percent,
    keep_first_runs,
    name_run,
)
from ttsframe.statistics.comparison import compare
from ttsframe.statistics.paired import with_adjusted
from ttsframe.votes.selectors import SELECTORS

_N_RUNS_MAX: Final = 8
_N_LINES_MAX: Final = 3
_N_DIFFERENCES: Final = 10
_TIE: Final = 1e-9
NAME: Final = "run"
_COMPARED: Final = "_compared"
"""The name of a run before it is a column of a table: a column of `by` may be called "run"."""
_NAME_MAX: Final = 80


def make(data: RunData, runs: pl.DataFrame) -> dict[str, Any]:
    """Compare each run with a baseline; a single run has nothing to be compared with."""
    problems = paired_problems(data, runs)
    if problems is None:
        return {"comparison": None, "differences": None}
    names = _name_runs(runs.filter(GRADED.holds), data.by)
    baseline = _choose_baseline(problems, names[_COMPARED])
    table = compare(
        problems,
        column=NAME,
        baseline=baseline,
        replicates=data.replicates,
        cluster=data.options.cluster,
        confidence_level=data.options.confidence_level,
    ).filter(pl.col("n_pairs") > 0)
    if table.is_empty():
        raise NoTableError("no two runs have a graded problem and a number of attempts in common")
    ranks = {name: i for i, name in enumerate(SELECTORS)}
    pairs = (
        names
        .select(pl.col(_COMPARED).alias(NAME))
        .join(table, on=NAME, maintain_order="left")
        .sort(
            pl.int_range(pl.len()).min().over(NAME),
            pl.col("selector").replace_strict(ranks, default=len(ranks), return_dtype=pl.UInt8),
            "reduction",
            "budget",
            nulls_last=True,
        )
    )
    graded = data.attempts_of(runs.filter(GRADED.holds))
    own = with_own_ids(graded, number_by_text(data.attempts, data.by)).drop(data.by)
    attempts = own.join(names.select(RUN, pl.col(_COMPARED).alias(NAME)), on=RUN)
    return {
        "comparison": pairs,
        "differences": _find_differences(attempts, baseline),
    }


def paired_problems(data: RunData, runs: pl.DataFrame) -> pl.DataFrame | None:
    """Return the problems of graded runs, each run under its name; None for a single run."""
    runs = runs.filter(GRADED.holds)
    if not data.by or runs.height < 2:
        return None
    names = _name_runs(runs, data.by)
    ids = number_by_text(data.attempts, data.by)
    return pl.concat(
        with_own_ids(table, ids)
        .join(names, on=data.by, nulls_equal=True)
        .select(
            pl.col(_COMPARED).alias(NAME),
            *data.replicates,
            *data.clusters,
            *("problem_id", "budget", "selector", "reduction", "subsets", "value", "status"),
        )
        for _, _, table in data.split_by_budgets(runs)
    )


def _choose_baseline(problems: pl.DataFrame, names: pl.Series) -> str:
    """Choose the run that can be compared with the most others, the first one among equals."""
    # Few sets of runs differ, however many problems and runs there are.
    together = (
        problems
        .filter(pl.col("value").is_not_null())
        .group_by("problem_id", "budget")
        .agg(pl.col(NAME).unique().sort())
        .select(pl.col(NAME).unique())
        .with_row_index("set")
        .explode(NAME)
    )
    partners = (
        together
        .join(together, on="set", suffix="_other")
        .group_by(NAME)
        .agg(pl.col(f"{NAME}_other").n_unique())
    )
    numbers = dict(partners.iter_rows())
    baseline: str = max(names, key=lambda name: numbers.get(name, 0))
    return baseline


def _name_runs(runs: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Give each run a name of its own, from its values of `by`."""
    # The whole value of a single column, so that the page can shorten paths to what differs.
    names = [
        str(runs[by[0]][i]) if len(by) == 1 else name_run(runs[i], by) for i in range(runs.height)
    ]
    seen: dict[str, int] = {}
    for i, name in enumerate(names):
        seen[name] = seen.get(name, 0) + 1
        names[i] = name if seen[name] == 1 else f"{name} ({seen[name]})"
    return runs.select(pl.col(f"^{RUN}$"), *by).with_columns(pl.Series(_COMPARED, names))


def _find_differences(attempts: pl.DataFrame, baseline: str) -> pl.DataFrame:
    """Find the problems whose share of right attempts differs most between a run and the baseline."""
    problem = ["problem"] if "problem" in attempts.columns else []
    shares = (
        attempts
        .filter(pl.col("is_correct").is_not_null())
        .group_by(NAME, "problem_id")
        .agg(
            pl.col("is_correct").mean().alias("share"),
            pl.len().alias("n_attempts"),
            *[pl.col(name).drop_nulls().first() for name in problem],
        )
    )
    first = shares.filter(pl.col(NAME) == baseline).select(
        "problem_id",
        baseline=NAME,
        baseline_share="share",
        baseline_n_attempts="n_attempts",
    )
    difference = pl.col("share") - pl.col("baseline_share")
    return (
        shares
        .filter(pl.col(NAME) != baseline)
        .join(first, on="problem_id")
        .with_columns(difference=difference)
        .with_columns(n_differ=(difference.abs() > _TIE).sum().over(NAME))
        .filter(difference.abs() > _TIE)
        .sort(NAME, difference.abs().round(12), "problem_id", descending=[False, True, False])
        .group_by(NAME, maintain_order=True)
        .head(_N_DIFFERENCES)
        .select(
            *(NAME, "baseline", "problem_id", "difference", "share", "baseline_share"),
            *("n_attempts", "baseline_n_attempts", "n_differ"),
            *problem,
        )
    )


def answer(
    context: Context,
    comparison: pl.DataFrame,
    _differences: pl.DataFrame,
    curve: pl.DataFrame | None,
) -> list[str]:
    """Say how far each run is from the baseline at the largest number of attempts that both have."""
    pairs = [
        rows.filter(budget=rows["budget"].max()).to_dicts()
        for rows in comparison.partition_by(NAME, maintain_order=True)
    ]
    main = [
        next((row for row in ends if row["selector"] == "majority_vote"), ends[0]) for ends in pairs
    ]
    texts = []
    for ends, votes in zip(pairs, _correct(main), strict=True):
        others = [
            f"{context.name_line(row)} {_format_difference(row)}"
            for row in ends
            if _line_of(row) != _line_of(votes)
            and abs(row["difference"] - votes["difference"]) > _TIE
        ]
        also = f" Other lines: {', '.join(others)}." if others else ""
        text = (
            f"{shorten(votes[NAME], _NAME_MAX)} against {shorten(votes['baseline'], _NAME_MAX)}, on "
            f"{counted([votes['n_pairs']], 'problem')} that both have, with "
            f"{counted([votes['budget']], 'attempt')}: {context.name_line(votes)} answers "
            f"{format_percent(votes['accuracy'])} against {format_percent(votes['baseline_accuracy'])}, "
            f"a difference of {_format_difference(votes)}{_judge(context, votes)}; "
            f"{counted([votes['n_wins']], 'problem')} won, {votes['n_losses']:,} lost.{also}"
        )
        texts.append(text)
    return texts + _name_left_out(context, comparison, curve)


def _name_left_out(
    context: Context, comparison: pl.DataFrame, curve: pl.DataFrame | None
) -> list[str]:
    """Name the runs that share nothing with the baseline."""
    if curve is None:
        return []
    baseline = comparison["baseline"][0]
    runs = _name_runs(curve.select(context.by).unique(maintain_order=True), list(context.by))
    alone = runs[_COMPARED].filter(~runs[_COMPARED].is_in([baseline, *comparison[NAME]]))
    if alone.is_empty():
        return []
    named = ", ".join(shorten(name, _NAME_MAX) for name in alone.head(_N_RUNS_MAX))
    more = f" and {len(alone) - _N_RUNS_MAX:,} more" if len(alone) > _N_RUNS_MAX else ""
    text = (
        "Not compared, because no graded problem and number of attempts is shared with "
        f"{shorten(baseline, _NAME_MAX)}: {named}{more}."
    )
    return [text]


def _correct(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Correct the p-values of the differences that sentences name for the number of these."""
    table = pl.LazyFrame(
        {"i": range(len(rows)), "p_value": [row["p_value"] for row in rows]},
        schema={"i": pl.Int64, "p_value": pl.Float64},
    )
    adjusted = with_adjusted(table, "holm").sort("i").collect()
    n_tests = adjusted["p_value"].count()
    return [
        {**row, "p_value": p_value, "n_tests": n_tests}
        for row, p_value in zip(rows, adjusted["p_adjusted"], strict=True)
    ]


def _line_of(row: dict[str, Any]) -> tuple[str, str | None]:
    return row["selector"], row["reduction"]


def _format_difference(row: dict[str, Any]) -> str:
    """Write a difference in points with its interval, such as "+2.0 points (-1.0 to 5.0)"."""
    value = f"{_points(row['difference'], '+')} points"
    if row["ci_low"] is None:
        return value
    return f"{value} ({_points(row['ci_low'])} to {_points(row['ci_high'])})"


def _points(fraction: float, sign: str = "") -> str:
    """Write a difference of fractions in points; a zero has no sign."""
    points = round(100.0 * fraction, 1) + 0.0
    return f"{points:{sign}.1f}" if points else "0.0"


def _judge(context: Context, row: dict[str, Any]) -> str:
    """Say whether a difference is more than chance: by its test and by its interval."""
    if row["p_value"] is None:
        return ""
    excludes_zero = row["ci_low"] > 0.0 or row["ci_high"] < 0.0
    is_sure = excludes_zero and row["p_value"] < 1.0 - context.confidence_level
    n_tests = row["n_tests"]
    corrected = f" (corrected for {n_tests} comparisons)" if n_tests > 1 else ""
    verdict = "more than chance" if is_sure else "within chance"
    if excludes_zero and not is_sure:
        verdict += (
            " (the interval is for this comparison alone)"
            if n_tests > 1
            else " (test and interval are different methods)"
        )
    return f", {_format_p(row['p_value'])}{corrected}, {verdict}"


def _format_p(value: float | None) -> str:
    """Write a p-value, such as "p = 0.012"."""
    if value is None:
        return NONE
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def draw(
    context: Context,
    comparison: pl.DataFrame,
    differences: pl.DataFrame,
    curve: pl.DataFrame | None,
) -> list[Part]:
    """Draw the runs in one chart for each line, and list the differences."""
    from ttsframe import charts

    parts: list[Part] = []
    if curve is not None:
        lines = curve.filter(pl.col("selector") != "oracle").select("selector", "reduction")
        # One column names the runs, so that they are lines of one chart.
        names = _name_runs(curve.select(context.by).unique(maintain_order=True), list(context.by))
        for i, line in enumerate(lines.unique(maintain_order=True).head(_N_LINES_MAX).to_dicts()):
            rows = curve.filter(
                pl.col(name).eq_missing(pl.lit(value, pl.String)) for name, value in line.items()
            )
            name = context.name_line(line)
            chart = partial(
                charts.scaling_curve,
                keep_first_runs(rows, context.by, _N_RUNS_MAX)
                .join(names, on=context.by, nulls_equal=True, maintain_order="left")
                .drop(context.by)
                .rename({_COMPARED: NAME}),
                overlay=NAME,
                title=f"{name[:1].upper()}{name[1:]}, run by run",
                confidence_level=context.confidence_level,
            )
            caption = (
                f"The runs side by side, by {name}. Bands are {context.level} intervals of each run; "
                "whether runs differ is read from the paired differences below, which leave out what "
                "makes problems easy or hard for all."
            )
            parts.append(Figure(f"runs-by-attempts-{i + 1}", caption, chart))
        parts += note_more_runs(curve, context.by, _N_RUNS_MAX)
    parts.append(fold_if_long("Paired differences, in numbers", _list_pairs(context, comparison)))
    if differences.height:
        listed = _list_differences(differences)
        parts.append(fold_if_long("Problems that differ most between runs", listed))
    return parts


def _list_pairs(context: Context, comparison: pl.DataFrame) -> Table:
    """List every paired difference."""
    return make_table(
        f"Differences from {comparison['baseline'][0]} on the problems that both have, in points with "
        f"{context.level} intervals; p-values are McNemar's (mid-p; its interval, Bonett and Price's, can disagree near 5 %) or of a "
        f"paired t-test, and corrected for the "
        "number of rows (Holm)",
        comparison.select(NAME, "selector", "reduction"),
        [
            {
                "attempts": f"{row['budget']:,}",
                "problems": f"{row['n_pairs']:,}",
                "accuracy": format_percent(row["accuracy"]),
                "of the baseline": format_percent(row["baseline_accuracy"]),
                "difference": _format_difference(row)
                .replace(" points", "")
                .replace(" (", "\n")
                .rstrip(")"),
                "won": f"{row['n_wins']:,}",
                "lost": f"{row['n_losses']:,}",
                "p": _format_p(row["p_value"]),
                "p, corrected": _format_p(row["p_adjusted"]),
            }
            for row in comparison.head(N_ROWS_MAX).iter_rows(named=True)
        ],
    )


def _list_differences(differences: pl.DataFrame) -> Table:
    """List the problems on which runs differ most, by the share of their attempts that are right."""
    text = [pl.col("problem").alias("text")] if "problem" in differences.columns else []
    return make_table(
        f"Problems that differ most from {differences['baseline'][0]}, by the share of attempts that are "
        f"right: the first {_N_DIFFERENCES} of each run, equal differences by problem",
        differences.select(NAME, "problem_id", *text),
        [
            {
                "right": _format_share(row["share"], row["n_attempts"]),
                "right in the baseline": _format_share(
                    row["baseline_share"], row["baseline_n_attempts"]
                ),
                "difference": f"{_points(row['difference'], '+')} points",
                "problems that differ": f"{row['n_differ']:,}",
            }
            for row in differences.head(N_ROWS_MAX).iter_rows(named=True)
        ],
    )


def _format_share(share: float, n_attempts: int) -> str:
    """Write how many of the attempts are right, such as "3 of 16"."""
    return f"{round(share * n_attempts):,} of {n_attempts:,}"
