"""What may have gone wrong with attempts, and how much accuracy each of it costs at most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, get_args

import polars as pl

from ttsframe._checks import check_frame, check_names
from ttsframe._exprs import from_safe, in_order, run_plan, safe_names, to_safe, unused_name
from ttsframe._typing import ColumnNames, ExtractionRule, FrameT
from ttsframe.schema import refuse_counts, require_columns

HEALTH_SCHEMA: Final[Mapping[str, pl.DataType]] = {
    "issue": pl.String(),
    "rule": pl.String(),
    "n_attempts": pl.UInt32(),
    "share": pl.Float64(),
    "n_problems": pl.UInt32(),
    "accuracy": pl.Float64(),
    "lost_at_most": pl.Float64(),
}
"""The columns behind those of `by`."""

_RULES: Final[tuple[str, ...]] = get_args(ExtractionRule)
_EXTRACTED: Final = "extracted"
_SHORT: Final = "short"
_DUPLICATED: Final = "duplicated"
_ORDER: Final = ("truncated", "failed", "no_answer", _DUPLICATED, _SHORT, "ungraded", *_RULES)


def run_health(trajectories: FrameT, /, *, by: ColumnNames = ()) -> FrameT:
    r"""Count attempts with which something may have gone wrong, and bound the accuracy that it costs.

    A model that is cut off, or an answer that is not found, looks like a model that cannot reason. The
    bound says what is worth a look, and what cannot matter.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`; `is_correct`, `answer_key` (or `answer`), `gold_key` (or
        `gold`), `finish_reason`, `completion`, and `extraction_rule` as made by
        ``with_columns(extraction_rule=tts.answers.extraction_rule("completion"))`` are read if present.
    by
        Columns that tell runs apart.

    Returns
    -------
    FrameT
        One row per (by, `issue`, `rule`), sorted by run and then in this order; issues of which the
        columns tell nothing have no row. An attempt may have several issues.

        - `issue` (String): "truncated", `finish_reason` is "length"; "failed", it is "error";
          "no_answer", no answer was found where there is a gold answer or no grade; "duplicated",
          a completion that repeats another one at its problem (one of equal texts, a right one if
          there is one, is no copy); "short", attempts that a problem lacks, compared with the
          problem of its run that has most; "ungraded", no `is_correct`; "extracted", the answer was
          found by the rule of this row;
        - `rule` (String): of "extracted", one of those of `answers.extraction_rule`; else null;
        - `n_attempts` (UInt32), `share` (Float64): attempts with the issue, and their share of all (for
          "short" of all with those that are missing);
        - `n_problems` (UInt32): problems that have such attempts;
        - `accuracy` (Float64): accuracy at one attempt, the mean over problems of the share of graded
          attempts that are right; the same in all rows of a run, null if none is graded;
        - `lost_at_most` (Float64 in [0, 1]): how much higher it would be, had all these attempts been
          right (and been made, and been graded).

        A LazyFrame for a LazyFrame.

    Raises
    ------
    ColumnsError
        At once, when `problem_id` or a column of `by` is missing.
    ParameterError
        At once, when `by` names a column of the result.

    See Also
    --------
    validate_trajectories : Finds faults of the data, with examples and hints.

    Notes
    -----
    With :math:`c_p` right ones among :math:`g_p` graded attempts at problem p, of whose attempts
    :math:`k_p` have the issue, :math:`r_p` of them right and :math:`u_p` ungraded or missing, the bound is

    .. math::

        \operatorname{mean}_p \frac{c_p + k_p - r_p}{g_p + u_p} - \operatorname{mean}_p \frac{c_p}{g_p}

    where each mean leaves out the problems whose denominator is 0.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> run = pl.DataFrame({
    ...     "problem_id": ["a", "a", "a", "a", "b", "b", "b"],
    ...     "answer_key": ["7", "7", None, None, "1", "2", "3"],
    ...     "gold_key": ["7", "7", "7", "7", "3", "3", "3"],
    ...     "is_correct": [True, True, False, False, False, False, True],
    ...     "finish_reason": ["stop", "stop", "length", "stop", "stop", "stop", "stop"],
    ... })
    >>> health = tts.run_health(run).filter(pl.col("n_attempts") > 0)
    >>> health.select("issue", "n_attempts", pl.col("accuracy", "lost_at_most").round(3)).rows()
    [('truncated', 1, 0.417, 0.125), ('no_answer', 2, 0.417, 0.25), ('short', 1, 0.417, 0.083)]
    """
    check_frame(trajectories, "trajectories")
    names: tuple[str, ...] = check_names(by, "by", taken=tuple(HEALTH_SCHEMA))
    runs: dict[str, str] = safe_names(dict.fromkeys(names))
    keys: dict[str, str] = {**runs, unused_name("problem", runs): "problem_id"}
    schema: pl.Schema = require_columns(trajectories, [*keys.values()])
    refuse_counts(schema, "trajectories")

    def plan(rows: pl.LazyFrame) -> pl.LazyFrame:
        marks = _marks(schema)
        problems = _count_attempts(rows, schema, keys, marks)
        issues: list[str] = [name for name in _ORDER if name in marks or name == _SHORT]
        if "completion" in schema:
            copies = _count_copies(rows, schema, keys)
            problems = problems.join(copies, on=[*keys], how="left", nulls_equal=True)
            issues = [name for name in _ORDER if name in (*issues, _DUPLICATED)]
        return _summarize(problems, issues, runs)

    return run_plan(trajectories, plan)


def _marks(schema: pl.Schema) -> dict[str, pl.Expr]:
    """Say which attempts have an issue, for each issue that is seen in single attempts."""
    is_ungraded = _grade(schema).is_null()
    marks = {"ungraded": is_ungraded}
    if "finish_reason" in schema:
        reason = pl.col("finish_reason").cast(pl.String)
        marks |= {"truncated": reason == "length", "failed": reason == "error"}
    answer, gold = (
        next((name for name in found if name in schema), None)
        for found in (("answer_key", "answer"), ("gold_key", "gold"))
    )
    if answer is not None:
        # Without a gold answer, a grade by something else says more than a missing answer.
        is_failure = is_ungraded if gold is None else is_ungraded | pl.col(gold).is_not_null()
        marks["no_answer"] = pl.col(answer).is_null() & is_failure
    if "extraction_rule" in schema:
        rule = pl.col("extraction_rule").cast(pl.String)
        marks |= {name: rule == name for name in _RULES}
    return marks


def _grade(schema: pl.Schema) -> pl.Expr:
    grade = pl.col("is_correct") if "is_correct" in schema else pl.lit(None)
    return grade.cast(pl.Boolean)


def _count_attempts(
    rows: pl.LazyFrame, schema: pl.Schema, keys: Mapping[str, str], marks: Mapping[str, pl.Expr]
) -> pl.LazyFrame:
    """Count the attempts at each problem: all, right, graded; and with each issue."""
    grade, mark = pl.col("grade"), {name: pl.col(f"is_{name}") for name in marks}
    marked = rows.select(
        *to_safe(keys),
        _grade(schema).alias("grade"),
        *[
            is_marked.fill_null(value=False).alias(f"is_{name}")
            for name, is_marked in marks.items()
        ],
    )
    counts = {"n": pl.len(), "right": grade.sum(), "graded": grade.count()}
    for name, is_marked in mark.items():
        counts[f"n_{name}"] = is_marked.sum()
        counts[f"right_{name}"] = (is_marked & grade).sum()
        counts[f"open_{name}"] = (is_marked & grade.is_null()).sum()
    return marked.group_by([*keys]).agg(**{
        name: count.cast(pl.Int64) for name, count in counts.items()
    })


def _count_copies(rows: pl.LazyFrame, schema: pl.Schema, keys: Mapping[str, str]) -> pl.LazyFrame:
    """Count the attempts that repeat a text of their problem, apart from one of each text."""
    grade = pl.col("grade")
    right, n_open = grade.sum().cast(pl.Int64), grade.null_count().cast(pl.Int64)
    n = pl.len().cast(pl.Int64)
    texts = (
        rows
        .filter(pl.col("completion").is_not_null())
        .select(
            *to_safe(keys),
            _grade(schema).alias("grade"),
            # As in the validation, hashes of long texts are compared.
            pl.col("completion").cast(pl.String).hash().alias("text"),
        )
        .group_by([*keys, "text"])
        .agg(
            (n - 1).alias("n"),
            (right - 1).clip(lower_bound=0).alias("right"),
            pl.min_horizontal(n_open, n - 1).alias("open"),
        )
    )
    return texts.group_by([*keys]).agg(
        pl.col("n", "right", "open").sum().name.suffix(f"_{_DUPLICATED}")
    )


def _summarize(
    problems: pl.LazyFrame, issues: Sequence[str], runs: Mapping[str, str]
) -> pl.LazyFrame:
    """Add up the counts of problems, one row per run and issue."""
    n, right, graded = pl.col("n"), pl.col("right"), pl.col("graded")
    most = n.max().over([*runs]) if runs else n.max()
    problems = problems.with_columns((most - n).alias(f"n_{_SHORT}"))
    sums = {"n": n.sum(), "accuracy": in_order(_ratio(right, graded)).list.mean()}
    rows = []
    for name in issues:
        affected = pl.col(f"n_{name}").fill_null(0)
        n_right = pl.lit(0) if name == _SHORT else pl.col(f"right_{name}").fill_null(0)
        n_open = affected if name == _SHORT else pl.col(f"open_{name}").fill_null(0)
        sums[f"n_{name}"] = affected.sum()
        sums[f"problems_{name}"] = (affected > 0).sum()
        sums[f"then_{name}"] = in_order(
            _ratio(right + affected - n_right, graded + n_open)
        ).list.mean()
        rows.append(_row(name))
    totals = problems.group_by([*runs]).agg(**sums) if runs else problems.select(**sums)
    if runs:
        totals = totals.sort([*runs])
    return (
        totals
        .filter(pl.col("n") > 0)  # without `by`, a run without rows has sums too
        .select(*from_safe(runs), pl.concat_list(rows).alias("issue"))
        .explode("issue")
        .unnest("issue")
        .filter((pl.col("issue") != _EXTRACTED) | (pl.col("n_attempts") > 0))
    )


def _row(name: str) -> pl.Expr:
    """Build the row of an issue from the sums of a run."""
    n_attempts, total = pl.col(f"n_{name}"), pl.col("n")
    if name == _SHORT:
        total += n_attempts
    values = {
        "issue": pl.lit(_EXTRACTED if name in _RULES else name),
        "rule": pl.lit(name if name in _RULES else None),
        "n_attempts": n_attempts,
        "share": _ratio(n_attempts, total),
        "n_problems": pl.col(f"problems_{name}"),
        "accuracy": pl.col("accuracy"),
        # A difference of rounding is none.
        "lost_at_most": (pl.col(f"then_{name}") - pl.col("accuracy")).clip(0.0, 1.0),
    }
    return pl.struct(
        value.cast(HEALTH_SCHEMA[column]).alias(column) for column, value in values.items()
    )


def _ratio(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """Divide, null by 0."""
    return pl.when(whole > 0).then(part / whole)
