"""Votes of several models together, with shares of the attempts that were chosen on other problems."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import polars as pl

from ttsframe._checks import check_frame, check_names, check_positive, check_seed
from ttsframe._exprs import run_plan
from ttsframe._typing import Flags, Floats, FrameT, Integers
from ttsframe.curves.stopping import assign_folds
from ttsframe.errors import DataError, ParameterError
from ttsframe.estimators.failures import grade_failures
from ttsframe.schema import require_columns
from ttsframe.votes.engine.picked import PROBLEM_COLUMNS
from ttsframe.votes.engine.winners import TIE_TOLERANCE
from ttsframe.votes.selectors import majority_vote

__all__ = ["ensemble_vote"]

ENSEMBLE: Final = "ensemble"
BEST_SINGLE: Final = "best_single"


class _Shares(NamedTuple):
    """The answers of some problems, sorted by problem."""

    of_model: Floats
    """(n_answers, n_models): share of the model's attempts at the problem that gave the answer."""
    right: Floats
    """How often an attempt with the answer is right."""
    starts: Integers


def ensemble_vote(
    trajectories: FrameT,
    /,
    *,
    budget: int,
    column: str = "model",
    n_steps: int = 20,
    n_folds: int = 2,
    seed: int = 0,
) -> FrameT:
    r"""Vote with the attempts of several models, in shares that were chosen on other problems.

    The best single model, chosen on the same other problems, stands beside the ensemble, with as many
    attempts: `compare` gives their paired difference. Shares chosen on the problems that they are judged
    on make every ensemble look good.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `attempt` (0..n-1 within model and problem),
        `answer_key`, `is_correct` and the column of the model.
    budget
        Attempts at a problem, of all models together.
    column
        Column of the model.
    n_steps
        Number of steps of the choice; weights are multiples of one over at most this number.
    n_folds
        Number of folds of problems, at least 2; the shares for each are chosen on the others.
    seed
        Seed of the folds, which depend on it and on the problems' ids only.

    Returns
    -------
    FrameT
        `problems`, as `majority_vote` returns it, two rows per problem that all models attempted, with the
        selectors "best_single" and "ensemble", and last

        - `problem_fold` (UInt32): the fold of the problem;
        - `models` (List(Struct(model, n_attempts))): the attempts of each model that voted.

        A problem for which a model has fewer attempts than it should give has the `status` "short".

    Raises
    ------
    ColumnsError
        At once, when a column is missing.
    ParameterError
        At once, when a parameter is out of range.
    DataError
        On collection, when an attempt appears twice, or fewer problems than folds were attempted by
        all models.

    See Also
    --------
    compare : The paired difference, with column="selector" and baseline="best_single".

    Notes
    -----
    With shares :math:`s_{qm}(a)` of the stored attempts of model m at problem q for answer a, the vote of
    an ensemble with weights w is, for many attempts, :math:`\arg\max_a \sum_m w_m s_{qm}(a)`. Weights are
    chosen by adding models one at a time, with repetition: each step adds the one that makes the most
    votes on the other problems right, ties shared; of equals, the one with the higher mean weight on
    right answers. The number of steps with the best result counts, and :math:`w_m` is how often m was
    added, over this number. The first step chooses the best single model. Of the budget, model m gives
    :math:`w_m` times the budget, rounded by largest remainders; the first attempts of each model are taken,
    and the models take turns.

    References
    ----------
    Caruana et al. (2004), Ensemble selection from libraries of models, ICML, section 2. Komiyama et al.,
    "Best-of-infinity", arXiv:2509.21091, on the vote of an ensemble with many attempts.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(60, 48, seed=0, keys=True)
    >>> runs = run.with_columns(
    ...     model=pl.lit("m") + (pl.col("attempt") // 16 + 1).cast(pl.String),
    ...     attempt=pl.col("attempt") % 16,
    ... )
    >>> problems = tts.curves.ensemble_vote(runs, budget=16)
    >>> found = tts.compare(problems, baseline="best_single")
    >>> found.select("selector", "n_pairs", pl.col("difference").round(3)).row(0)
    ('ensemble', 60, 0.017)
    """
    check_frame(trajectories, "trajectories")
    total = check_positive(budget, "budget")
    most = check_positive(n_steps, "n_steps")
    if check_positive(n_folds, "n_folds") < 2:
        raise ParameterError(f"n_folds == {n_folds}, must be at least 2.")
    check_seed(seed)
    taken = {"problem_id", *PROBLEM_COLUMNS, "problem_fold", "models", "line", "is_correct"}
    (name,) = check_names(column, "column", taken=taken)
    schema: pl.Schema = require_columns(
        trajectories, [name, "problem_id", "attempt", "answer_key", "is_correct"]
    )
    more = [key for key in ("answer", "gold_key", "gold") if key in schema]
    made: dict[str, pl.DataType | type[pl.DataType]] = {
        "problem_id": schema["problem_id"],
        **PROBLEM_COLUMNS,
        "answer_key": schema["answer_key"],
        "problem_fold": pl.UInt32(),
        "models": pl.List(pl.Struct({"model": schema[name], "n_attempts": pl.UInt32()})),
    }

    def vote(rows: pl.DataFrame) -> pl.DataFrame:
        rows = rows.rename({name: "model"}).filter(pl.col("model").is_not_null())
        is_repeated = pl.struct("model", "problem_id", "attempt").is_duplicated()
        if (repeated := rows.filter(is_repeated).sort("model", "problem_id")).height:
            model, problem = repeated.select("model", "problem_id").row(0)
            raise DataError(
                f"{name} {model!r}, problem_id {problem!r}: an attempt appears twice. Hint: the column "
                f"{name!r} must tell all runs apart."
            )
        models = rows["model"].unique().sort()
        n_models = pl.col("model").n_unique().over("problem_id")
        rows = rows.filter(n_models == len(models))
        folds = assign_folds(rows["problem_id"], n_folds, seed)
        if folds.height < n_folds:
            raise DataError(
                f"{folds.height} problems were attempted by all {len(models)} values of {name!r}, need at "
                f"least n_folds == {n_folds}."
            )
        rows = rows.join(folds, on="problem_id")
        plan = pl.concat(
            _plan(rows.filter(pl.col("problem_fold") != fold), models, total, most).with_columns(
                problem_fold=pl.lit(fold, pl.UInt32)
            )
            for fold in range(n_folds)
        )
        of_plan = plan.group_by("problem_fold", "line").agg(
            models=pl.struct("model", n_attempts="n_given").sort_by("model")
        )
        keys = ["line", "problem_id"]
        used = (
            rows
            .join(plan, on=["problem_fold", "model"])
            .filter(pl.col("attempt") < pl.col("n_given"))
            # The models take turns, so that ties go to no model in particular.
            .sort(*keys, (pl.col("attempt") + 0.5) / pl.col("n_given"), "model")
            .with_columns(attempt=pl.int_range(pl.len(), dtype=pl.UInt32).over(keys))
        )
        return (
            majority_vote(used, budgets=total, by="line")
            .with_columns(selector=pl.col("line"))
            .join(folds, on="problem_id", how="left")
            .join(of_plan, on=["problem_fold", "line"], how="left")
            .sort("problem_id", "selector")
            .select(pl.col(key).cast(dtype) for key, dtype in made.items())
        )

    def plan_of(lazy: pl.LazyFrame) -> pl.LazyFrame:
        read = lazy.select(name, "problem_id", "attempt", "answer_key", "is_correct", *more)
        return read.map_batches(vote, schema=made)

    return run_plan(trajectories, plan_of)


def _plan(rows: pl.DataFrame, models: pl.Series, budget: int, n_steps: int) -> pl.DataFrame:
    """Return how many attempts each model gives, in the ensemble and in the best single model."""
    shares = _shares(rows, models)
    chosen = _add_models(shares, n_steps)
    given = {
        BEST_SINGLE: np.where(np.arange(len(models)) == chosen[0], budget, 0),
        ENSEMBLE: _round(np.bincount(chosen, minlength=len(models)) / len(chosen), budget),
    }
    return pl.concat(
        pl
        .DataFrame({"model": models, "n_given": pl.Series(counts, dtype=pl.UInt32)})
        .with_columns(line=pl.lit(line))
        .filter(pl.col("n_given") > 0)
        for line, counts in given.items()
    )


def _shares(rows: pl.DataFrame, models: pl.Series) -> _Shares:
    """Count the answers of each model at each problem."""
    grade = grade_failures("is_correct", "answer_key").over("problem_id").cast(pl.Float64)
    numbers = pl.DataFrame({"model": models, "number": np.arange(len(models))})
    n_attempts = pl.len().over("problem_id", "model")
    counted = (
        rows
        .with_columns(grade=grade, n_attempts=n_attempts)
        .filter(pl.col("answer_key").is_not_null())
        .join(numbers, on="model")
        .group_by("problem_id", "answer_key", "number")
        .agg(
            share=pl.len() / pl.col("n_attempts").first(),
            right=pl.col("grade").sum(),
            n=pl.col("grade").count(),
        )
        .sort("problem_id", "answer_key", "number")
        .with_columns(answer=pl.struct("problem_id", "answer_key").rle_id())
    )
    answers = counted.group_by("answer", maintain_order=True).agg(
        pl.col("problem_id").first(), pl.col("right", "n").sum()
    )
    of_model = np.zeros((answers.height, len(models)))
    of_model[counted["answer"].to_numpy(), counted["number"].to_numpy()] = counted["share"]
    right = answers["right"].to_numpy() / np.maximum(answers["n"].to_numpy(), 1)
    problem = answers["problem_id"].rle_id().to_numpy().astype(np.int64)
    return _Shares(of_model, right, np.flatnonzero(np.diff(problem, prepend=-1)))


def _add_models(shares: _Shares, n_steps: int) -> Integers:
    """Return the models that were added, in order, up to the step with the best result."""
    if not len(shares.starts):
        return np.zeros(1, np.int64)
    total = np.zeros((len(shares.right), 1))
    chosen: list[int] = []
    results: list[float] = []
    for _ in range(n_steps):
        tried = total + shares.of_model
        accuracy = _n_right(tried, shares)
        weight = shares.right @ tried
        is_best: Flags = accuracy >= accuracy.max() - 1e-9
        model = int(np.where(is_best, weight, -np.inf).argmax())
        chosen.append(model)
        results.append(float(accuracy[model]))
        total = tried[:, [model]]
    best = max(results)
    n_best = next(i for i, result in enumerate(results) if result >= best - 1e-9)
    return np.array(chosen[: n_best + 1])


def _n_right(weights: Floats, shares: _Shares) -> Floats:
    """Return how many votes are right under each column of weights, ties shared."""
    highest = np.maximum.reduceat(weights, shares.starts)
    sums = np.add.reduceat(weights, shares.starts)
    lengths = np.diff(np.append(shares.starts, len(weights)))
    least = np.repeat(highest - TIE_TOLERANCE * sums, lengths, axis=0)
    # An answer that no model of the column gave has no vote.
    is_tied = (weights >= least) & (weights > 0.0)
    n_tied = np.add.reduceat(is_tied.astype(np.int64), shares.starts)
    right = np.add.reduceat(np.where(is_tied, shares.right[:, None], 0.0), shares.starts)
    result: Floats = (right / np.maximum(n_tied, 1)).sum(axis=0)
    return result


def _round(weights: Floats, budget: int) -> Integers:
    """Share a budget out by largest remainders; earlier models first where these are equal."""
    exact = np.round(weights * budget, 9)
    counts = np.floor(exact).astype(np.int64)
    order = np.argsort(-(exact - counts), kind="stable")
    counts[order[: budget - int(counts.sum())]] += 1
    return counts
