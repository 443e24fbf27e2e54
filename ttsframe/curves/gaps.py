"""The selection gap: what the generator cannot do against what the verifier loses."""

from __future__ import annotations

from typing import Final

import polars as pl

from ttsframe._checks import check_frame, check_names
from ttsframe._exprs import raise_where, run_plan, unused_name
from ttsframe._typing import ColumnNames, FrameT, ProblemSet
from ttsframe.curves.scaling import scaling_curve
from ttsframe.errors import DataError
from ttsframe.schema import require_columns

__all__ = ["selection_gap"]

_BOUND: Final = "oracle"

_READ_COLUMNS: Final = ("problem_id", "budget", "selector", "reduction", "value", "status")

_GAP_COLUMNS: Final = (
    "selector",
    "reduction",
    "budget",
    "budget_unit",
    "subsets",
    "accuracy",
    "selection_gap",
    "generation_gap",
    "standard_error",
    "ci_low",
    "ci_high",
    "n_problems",
    "n_short",
    "n_unscored",
    "n_undefined",
    "n_ungraded",
)


def selection_gap(
    problems: FrameT,
    /,
    *,
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    include: ProblemSet = "common",
    confidence_level: float = 0.95,
) -> FrameT:
    r"""Split what is missing to 100 % into attempts never made and answers not chosen.

    A problem without a right attempt needs a better generator, or more attempts; one with a right
    attempt that is not chosen needs a better verifier. At each budget, 1 is the selector's accuracy
    plus the selection gap (pass@k minus the selector) plus the generation gap (1 minus pass@k).

    Parameters
    ----------
    problems
        `problems` with the rows of `oracle` and of the selectors to compare with it, as
        `select_answers(..., selectors=["majority_vote", "oracle"])` or `expected_accuracy` makes
        it: `value` (Float64 in [0, 1]) and `status` per (by, replicates, `problem_id`, `budget`,
        `selector`, `reduction`).
    by
        Columns that get a curve each, such as the run or the model.
    replicates
        Columns that number repetitions of one run, such as the seed: averaged per problem first.
    include
        "common" averages the same problems at every budget: those on which selector and oracle have
        status "ok" throughout. "available" averages, at each budget, those with it there.
    confidence_level
        Coverage of the interval, in (0, 1).

    Returns
    -------
    FrameT
        One row per (by, `selector`, `reduction`, `budget`, `subsets`), sorted, without the oracle's
        own:

        - `accuracy`, `selection_gap`, `generation_gap` (Float64): the three parts, means over the
          same problems, which add up to 1; null without a problem;
        - `standard_error`, `ci_low`, `ci_high` (Float64): of `selection_gap`, paired by problem, by
          the rules of `scaling_curve`: Wilson's interval where all differences are 0 or 1, or few
          problems make the gap, else Student's t; null below two problems;
        - `budget_unit`, `n_problems`, `n_short`, `n_unscored`, `n_undefined`, `n_ungraded`: as in
          `scaling_curve`; a problem is left out where the selector or the oracle leaves it out.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a parameter is impossible, a column is named in both `by` and `replicates`, or
        in either that the result has of its own.
    DataError
        On collection, when a problem has no row of the oracle at a budget, or several rows on one
        curve at one budget: a run, model or seed is named neither in `by` nor in `replicates`.

    Notes
    -----
    With :math:`s_q` and :math:`o_q` the values of selector and oracle on problem :math:`q`, the gap
    is the mean of :math:`o_q - s_q`, and its standard error
    :math:`\mathrm{sd}(o_q - s_q) / \sqrt{Q}`. The two curves' own intervals are wider than that,
    since hard problems are hard for both.

    References
    ----------
    Brown et al., "Large Language Monkeys", arXiv:2407.21787, section 4, on coverage that selection
    does not reach. Miller, "Adding Error Bars to Evals", arXiv:2411.00640, section 4, on pairing.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["a"] * 3 + ["b"] * 3,
    ...     "attempt": [0, 1, 2] * 2,
    ...     "answer_key": ["1", "2", "2", "3", "4", "3"],
    ...     "is_correct": [True, False, False, False, False, False],
    ... })
    >>> problems = tts.select_answers(
    ...     trajectories, selectors=["majority_vote", "oracle"], budgets=[1, 3]
    ... )
    >>> gap = tts.selection_gap(problems)
    >>> gap.select("budget", "accuracy", "selection_gap", "generation_gap")
    shape: (2, 4)
    ┌────────┬──────────┬───────────────┬────────────────┐
    │ budget ┆ accuracy ┆ selection_gap ┆ generation_gap │
    │ ---    ┆ ---      ┆ ---           ┆ ---            │
    │ u32    ┆ f64      ┆ f64           ┆ f64            │
    ╞════════╪══════════╪═══════════════╪════════════════╡
    │ 1      ┆ 0.5      ┆ 0.0           ┆ 0.5            │
    │ 3      ┆ 0.0      ┆ 0.5           ┆ 0.5            │
    └────────┴──────────┴───────────────┴────────────────┘
    """
    check_frame(problems, "problems")
    taken: set[str] = {*_READ_COLUMNS, *_GAP_COLUMNS}
    groups: tuple[str, ...] = check_names(by, "by", taken=taken)
    repeats: tuple[str, ...] = check_names(replicates, "replicates", taken=taken)
    schema: pl.Schema = require_columns(
        problems,
        [*groups, *repeats, *_READ_COLUMNS],
        where="problems",
        hint="tts.select_answers(trajectories, selectors=[..., 'oracle'], budgets=[...]) makes it.",
    )
    optional: list[str] = [name for name in ("subsets", "budget_unit") if name in schema]
    unit: list[str] = [*groups, *repeats, "problem_id", "budget", *optional]
    part = unused_name("part", [*unit, *taken])

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        rows = lazy.select(*unit, "selector", "reduction", "value", "status")
        curves = scaling_curve(
            _parts(rows, unit, part),
            by=[*groups, part],
            replicates=repeats,
            include=include,
            confidence_level=confidence_level,
        )
        line = [*groups, "selector", "reduction", "budget", "budget_unit", "subsets"]
        return (
            curves
            .group_by(line)
            .agg(
                *[
                    pl.col("accuracy").filter(pl.col(part) == name).first().alias(name)
                    for name in ("accuracy", "selection_gap", "generation_gap")
                ],
                *[
                    pl.col(name).filter(pl.col(part) == "selection_gap").first()
                    for name in _GAP_COLUMNS[_GAP_COLUMNS.index("standard_error") :]
                ],
            )
            .sort(*groups, "selector", "reduction", "budget", "subsets")
            .select(*groups, *_GAP_COLUMNS)
        )

    return run_plan(problems, plan)


def _parts(rows: pl.LazyFrame, unit: list[str], part: str) -> pl.LazyFrame:
    """Return each row of a selector once per part, with the part as its value."""
    is_bound = pl.col("selector") == _BOUND
    is_missing = is_bound.any().over(unit).not_()
    described = pl.struct(is_missing.alias("broken"), "problem_id", "budget", "selector")
    value = pl.col("value").cast(pl.Float64)
    best, verdict = (expr.filter(is_bound).first().over(unit) for expr in (value, pl.col("status")))
    parts = {"accuracy": value, "selection_gap": best - value, "generation_gap": 1.0 - best}
    is_known = value.is_not_null() & best.is_not_null()
    return (
        rows
        .filter(raise_where(described, _unbounded))
        .select(
            *unit,
            "selector",
            "reduction",
            pl.lit([*parts]).alias(part),
            pl.when(verdict == "ok").then("status").otherwise(verdict).alias("status"),
            pl.concat_list(pl.when(is_known).then(expr) for expr in parts.values()).alias("value"),
        )
        .filter(~is_bound)
        .explode(part, "value", empty_as_null=False)
    )


def _unbounded(rows: pl.DataFrame) -> DataError:
    """Describe the first problem without an oracle."""
    row = rows.sort("problem_id", "budget", "selector").row(0, named=True)
    return DataError(
        f"problem_id {row['problem_id']!r}, budget {row['budget']!r}: no row of 'oracle' beside "
        f"{row['selector']!r}, which the gap is measured from. Hint: "
        "tts.select_answers(trajectories, selectors=[..., 'oracle'], budgets=[...])."
    )
