"""Where more attempts begin to hurt: the budget at which selection by a score turns down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from ttsframe._checks import check_fraction, check_frame, check_names
from ttsframe._exprs import run_plan
from ttsframe._typing import ColumnNames, FrameT
from ttsframe.curves.scaling import scaling_curve
from ttsframe.schema import require_columns
from ttsframe.statistics.paired import TIE, paired_inference
from ttsframe.statistics.problem_values import value_and_severity
from ttsframe.verifier.ordered import Floats
from ttsframe.verifier.sheet import Schema, name_numbers

__all__ = ["over_optimization"]

_READ_COLUMNS: Final = ("problem_id", "budget", "selector", "reduction", "value", "status")

_DROP: Final[Schema] = {
    "peak_budget": pl.UInt32,
    "drop": pl.Float64,
    "drop_standard_error": pl.Float64,
    "drop_ci_low": pl.Float64,
    "drop_ci_high": pl.Float64,
    "drop_p_value": pl.Float64,
    "is_turned_down": pl.Boolean,
}

_CURVE: Final[Schema] = {
    "selector": pl.String,
    "reduction": pl.String,
    "budget": pl.UInt32,
    "budget_unit": pl.String,
    "subsets": pl.String,
    "accuracy": pl.Float64,
    "standard_error": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "n_problems": pl.UInt32,
    "n_short": pl.UInt32,
    "n_unscored": pl.UInt32,
    "n_undefined": pl.UInt32,
    "n_ungraded": pl.UInt32,
}


def over_optimization(
    problems: FrameT, /, *, by: ColumnNames = (), confidence_level: float = 0.95
) -> FrameT:
    r"""Find the budget from which more attempts hurt.

    The more attempts a flawed verifier may choose from, the surer one of them is wrong and scored
    high: best-of-N first rises, then falls. The highest point of a curve is always a little above
    its end by chance; the interval here says whether the fall is more than that.

    Parameters
    ----------
    problems
        `problems` at several budgets, as `select_answers(trajectories, selectors="best_of_n",
        budgets=[1, 4, 16])` or `expected_accuracy` makes it: `value` (Float64 in [0, 1]) and
        `status` per (by, `problem_id`, `budget`, `selector`, `reduction`).
    by
        Columns that get curves of their own, such as the model or the difficulty level.
    confidence_level
        Coverage of the intervals, in (0, 1).

    Returns
    -------
    FrameT
        `curve` over the same problems at every budget, as `scaling_curve` makes it, one row per
        (by, `selector`, `reduction`, `budget`, `subsets`), sorted, and besides:

        - `peak_budget` (dtype of `budget`): the best budget up to this one, the smallest of equally
          good ones;
        - `drop` (Float64 in [0, 1]): accuracy there less accuracy here; 0 at a peak;
        - `drop_standard_error` (Float64): over problems, paired;
        - `drop_ci_low`, `drop_ci_high` (Float64 in [-1, 1]), `drop_p_value` (Float64 in [0, 1]):
          interval of the drop and two-sided test, by the rules of `compare`, corrected for the
          choice of the peak;
        - `is_turned_down` (Boolean): whether that interval lies above 0. The row of the largest
          budget answers for the whole curve.

        Error, interval and test of a drop are null at a peak, where there is none, and below two
        problems.

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a parameter is impossible or `by` names a column of the result.
    DataError
        On collection, when a problem has several rows at one budget of a curve.

    Notes
    -----
    With budgets :math:`b_1 < \dots < b_m` and values :math:`x_{qb}` of problem q, the drop at b is
    the mean of :math:`x_{q b^*} - x_{qb}` with :math:`b^*` the best budget up to b. Intervals have
    the level :math:`1 - \alpha / (m - 1)` and p-values are multiplied by :math:`m - 1`
    (Bonferroni), so that a row's statement holds for whichever budget has the peak, and with it for
    the one chosen here. In the flat curves simulated in the tests, the last row claims a fall in
    less than 2.5 %.

    References
    ----------
    Cobbe et al. (2021), Training Verifiers to Solve Math Word Problems, arXiv:2110.14168, section
    4.2, where best-of-N turns down beyond 400 attempts. Gao et al. (2023), Scaling Laws for Reward
    Model Overoptimization, arXiv:2210.10760.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> values = {1: [0.0] * 8 + [1.0] * 4, 2: [1.0] * 12, 4: [0.0] * 10 + [1.0] * 2}
    >>> problems = pl.DataFrame([
    ...     {"problem_id": q, "budget": budget, "value": value, "status": "ok"}
    ...     for budget, of_budget in values.items()
    ...     for q, value in enumerate(of_budget)
    ... ]).with_columns(selector=pl.lit("best_of_n"), reduction=pl.lit("last"))
    >>> turns = tts.verifier.over_optimization(problems)
    >>> turns.select("budget", "peak_budget", pl.col("drop").round(3), "is_turned_down").rows()
    [(1, 1, 0.0, False), (2, 2, 0.0, False), (4, 2, 0.833, True)]
    """
    check_frame(problems, "problems")
    check_fraction(confidence_level, "confidence_level")
    groups: tuple[str, ...] = check_names(by, "by", taken={*_READ_COLUMNS, *_CURVE, *_DROP})
    schema: pl.Schema = require_columns(
        problems,
        [*groups, *_READ_COLUMNS],
        where="problems",
        hint="tts.select_answers(trajectories, budgets=[...]) makes this table.",
    )
    # The caller's names come back at the end, so that none collides with a name used on the way.
    keys: dict[str, str] = {f"key{i}": name for i, name in enumerate(groups)}
    optional: list[str] = [name for name in ("subsets", "budget_unit") if name in schema]
    own = ("selector", "reduction", "budget", *optional)
    result: dict[str, pl.DataType | type[pl.DataType]] = {
        **{name: schema[name] for name in groups},
        **_CURVE,
        **_DROP,
        **{name: schema[name] for name in own},
        "peak_budget": schema["budget"],
    }

    def apply(rows: pl.DataFrame) -> pl.DataFrame:
        curve = scaling_curve(rows, by=[*keys], confidence_level=confidence_level)
        line: list[str] = [*keys, "selector", "reduction", *optional]
        drops = _drops(rows, line, schema["budget"], confidence_level)
        turned = curve.join(
            drops, on=[*line, "budget"], how="left", nulls_equal=True, maintain_order="left"
        )
        return turned.rename(keys).select(
            pl.col(name).cast(dtype) for name, dtype in result.items()
        )

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        narrow = lazy.select(
            *[pl.col(name).alias(key) for key, name in keys.items()], *_READ_COLUMNS, *optional
        )
        return narrow.map_batches(apply, schema=result)

    return run_plan(problems, plan)


def _drops(
    rows: pl.DataFrame, line: list[str], budget: pl.DataType, confidence_level: float
) -> pl.DataFrame:
    """Return what each budget of each line loses against the best one up to it."""
    # What counts has a value here, once at each budget: `scaling_curve` has seen to that.
    valued = rows.select(*line, "problem_id", "budget", value_and_severity()["value"])
    sums: dict[str, pl.DataType | type[pl.DataType]] = {
        "budget": budget,
        "peak_budget": budget,
        **dict.fromkeys(("difference", "standard_error", "gained", "lost"), pl.Float64),
        **dict.fromkeys(("n_pairs", "n_units", "n_unequal", "n_wins", "n_losses"), pl.Int64),
        "n_others": pl.Int64,
        "is_fractional": pl.Boolean,
    }
    tables = [pl.DataFrame(schema={**{name: valued.schema[name] for name in line}, **sums})]
    for part in valued.partition_by(line, maintain_order=True):
        budgets = part["budget"].unique().sort()
        problem, place = (name_numbers(part[name]).to_numpy() for name in ("problem_id", "budget"))
        values = np.full((int(problem.max()) + 1, len(budgets)), np.nan)
        values[problem, place] = part["value"].to_numpy()
        values = values[~np.isnan(values).any(axis=1)]
        if not len(values):
            continue
        table = pl.DataFrame([*_sums(values, budgets.to_list())], schema=sums)
        tables.append(part.select(line).head(1).join(table, how="cross"))
    found = pl.concat(tables)
    inferred = pl.concat(
        [_inferred(some, confidence_level) for some in found.partition_by("n_others")]
        or [_inferred(found, confidence_level)]
    )
    return inferred.select(*line, "budget", *_DROP)


def _sums(values: Floats, budgets: list[object]) -> Iterator[dict[str, object]]:
    """Yield what `paired_inference` reads for each budget, of a (n_problems, n_budgets) matrix."""
    n_problems, n_budgets = values.shape
    accuracy = values.mean(axis=0)
    is_fractional = bool(((values != 0.0) & (values != 1.0)).any())
    peak = 0
    for here in range(n_budgets):
        # Equally good means differ by rounding.
        if accuracy[here] > accuracy[peak] + TIE:
            peak = here
        lost = values[:, peak] - values[:, here]
        lost[np.abs(lost) <= TIE] = 0.0
        yield {
            "budget": budgets[here],
            "peak_budget": budgets[peak],
            "difference": max(float(lost.mean()), 0.0),
            "standard_error": (
                float(lost.std(ddof=1) / np.sqrt(n_problems)) if n_problems > 1 else None
            ),
            "gained": float(lost[lost > 0].sum()),
            "lost": float(-lost[lost < 0].sum()),
            "n_pairs": n_problems,
            "n_units": n_problems,
            "n_unequal": int((lost != 0).sum()),
            "n_wins": int((lost > 0).sum()),
            "n_losses": int((lost < 0).sum()),
            "n_others": n_budgets - 1,
            "is_fractional": is_fractional,
        }


def _inferred(sums: pl.DataFrame, confidence_level: float) -> pl.DataFrame:
    """Return drops with interval and test, of curves that have equally many budgets."""
    n_others = max(sums["n_others"].to_list(), default=1) or 1
    level = 1.0 - (1.0 - confidence_level) / n_others
    inference = paired_inference(confidence_level=level, is_clustered=False)
    is_drop = pl.col("budget") != pl.col("peak_budget")
    return sums.with_columns(
        pl.col("difference").alias("drop"),
        *[
            pl.when(is_drop).then(expression).alias(name)
            for name, expression in {
                "drop_standard_error": pl.col("standard_error"),
                "drop_ci_low": inference["ci_low"],
                "drop_ci_high": inference["ci_high"],
                "drop_p_value": (inference["p_value"] * n_others).clip(upper_bound=1.0),
            }.items()
        ],
    ).with_columns(is_turned_down=is_drop & (pl.col("drop_ci_low") > 0.0))
