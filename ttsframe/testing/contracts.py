"""Contract tests for selectors, reductions and graders of your own.

Each check runs the function on small frames made for the purpose: with missing answers and scores,
with ties, in another order, in parts, and with each engine of Polars. It returns nothing, or raises an
error that names the rule that is broken. Call it in a test of the module that holds your function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, cast

import polars as pl

from ttsframe._checks import check_frame
from ttsframe._own import check_named, describe
from ttsframe._typing import Grader, OwnReduction, OwnSelector
from ttsframe.answers.own_grade import grade_expr, name_grade
from ttsframe.errors import DataError, ParameterError, TtsframeError
from ttsframe.schema import require_columns
from ttsframe.scoring import score_trajectories
from ttsframe.simulation import simulate_trajectories
from ttsframe.steps import STEP_REDUCTIONS, reduce_steps
from ttsframe.votes.engine.own import make_own
from ttsframe.votes.selectors import SELECTORS, select_answers

__all__ = ["check_grader", "check_reduction", "check_selector"]

_N_PROBLEMS: Final = 12
_N_ATTEMPTS: Final = 6
_SEED: Final = 0
_KEYS: Final = ("problem_id", "attempt")

Run = Callable[[Any], pl.DataFrame]
"""What a check runs: attempts, or lists of scores, to a table with one row for each."""


def check_selector(
    selector: OwnSelector,
    /,
    trajectories: pl.DataFrame | None = None,
    *,
    goes_by_number: bool = False,
) -> None:
    """Check that a selector of your own keeps the rules that every selector keeps.

    Parameters
    ----------
    selector
        A function without parameters that returns an aggregating expression: over the attempts at a
        problem within a budget, it gives the `attempt` to pick, or null for no pick.
    trajectories
        Attempts with the columns that the selector reads. None: simulated ones with `problem`,
        `completion`, `answer`, `answer_key`, `score`, `step_scores`, `n_tokens` and `finish_reason`.
    goes_by_number
        Whether the selector goes by the number of an attempt on purpose, as one that picks the last
        revision does. Equal attempts are then no tie.

    Raises
    ------
    ParameterError
        When a rule is broken. The pick must be an attempt within the budget. It must not depend on the
        order of rows, on other problems, on the engine, or on chance. Missing answers, scores and other
        values must not make it fail. Among equal attempts it must be the earliest.
    ColumnsError
        When the selector reads a column that `trajectories` lacks.

    See Also
    --------
    select_answers : Runs the selector.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> def shortest() -> pl.Expr:
    ...     return pl.col("attempt").sort_by("n_tokens", "attempt").first()
    >>> tts.testing.check_selector(shortest)
    >>> def last_of_the_best() -> pl.Expr:
    ...     return pl.col("attempt").filter(pl.col("score") == pl.col("score").max()).last()
    >>> try:
    ...     tts.testing.check_selector(last_of_the_best)
    ... except tts.TtsframeError as error:
    ...     print(str(error).partition(",")[0])
    selector 'last_of_the_best' picks attempt 1 of equal attempts
    """
    check_named(selector, "selectors", SELECTORS)
    what = describe(selector, "selectors")
    frame = _attempts(trajectories, make_own(selector).columns, what)
    n_attempts = min(frame.group_by("problem_id").len()["len"].to_list(), default=1)
    budgets = sorted({1, 2, n_attempts} & set(range(1, n_attempts + 1)))

    def run(attempts: Any) -> pl.DataFrame:  # noqa: ANN401 - either kind of frame
        picked = select_answers(attempts, selectors=[selector], budgets=budgets)
        return cast("pl.DataFrame", picked.select("problem_id", "budget", "attempt"))

    _check_stable(run, frame, what, ["problem_id", "budget"])
    _try(run, _with_nulls(frame), what, "fails where values are missing")
    if goes_by_number:
        return
    ties = run(_repeated(frame)).drop_nulls("attempt").filter(pl.col("attempt") != 0)
    if ties.height:
        raise ParameterError(
            f"{what} picks attempt {ties['attempt'][0]} of equal attempts, must pick the earliest, 0. "
            "Hint: sort by 'attempt' last, as in .sort_by(..., 'attempt').first()."
        )


def check_reduction(reduction: OwnReduction, /) -> None:
    """Check that a reduction of your own keeps the rules that every reduction keeps.

    Parameters
    ----------
    reduction
        A function of one expression, the step scores as List(Float64), that returns the expression of
        one score per list.

    Raises
    ------
    ParameterError
        When a rule is broken. A list without any score must give null. Null elements must be skipped,
        or make the result null. A NaN must give NaN unless the reduction does not read that element. A
        value must depend on its list alone, and not on the engine or on chance.

    See Also
    --------
    score_trajectories : Runs the reduction.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> def last_two(step_scores: pl.Expr) -> pl.Expr:
    ...     return step_scores.list.drop_nulls().list.tail(2).list.mean()
    >>> tts.testing.check_reduction(last_two)
    >>> def total(step_scores: pl.Expr) -> pl.Expr:
    ...     return step_scores.list.sum()
    >>> try:
    ...     tts.testing.check_reduction(total)
    ... except tts.TtsframeError as error:
    ...     print(str(error).partition(":")[0])
    reduction 'total' gives 0.0 for the list [], must give null
    """
    check_named(reduction, "reduction", STEP_REDUCTIONS)
    what = describe(reduction, "reduction")
    score = reduce_steps(reduction)

    def run(rows: Any) -> pl.DataFrame:  # noqa: ANN401 - either kind of frame
        return cast("pl.DataFrame", rows.select("problem_id", score=score))

    def reduce(*lists: list[float | None] | None) -> list[float | None]:
        rows = pl.DataFrame(
            {"problem_id": range(len(lists)), "step_scores": lists},
            schema_overrides={"step_scores": pl.List(pl.Float64)},
        )
        return _try(run, rows, what, "fails where values are missing")["score"].to_list()

    _check_stable(
        run, _simulated().select("step_scores").with_row_index("problem_id"), what, ["problem_id"]
    )
    empty: list[list[float | None] | None] = [None, [], [None], [None, None]]
    for scores, found in zip(empty, reduce(*empty), strict=True):
        if found is not None:
            raise ParameterError(
                f"{what} gives {found} for the list {scores}, must give null: no score is missing, not a "
                "number. Hint: pl.when(step_scores.list.drop_nulls().list.len() > 0).then(...)."
            )
    for gap in range(4):
        known: list[float | None] = [0.5, 0.25, 0.875]
        with_null = [*known[:gap], None, *known[gap:]]
        found, expected = reduce(with_null, known)
        if found is not None and found != expected:
            raise ParameterError(
                f"{what} gives {found} for the list {with_null}, and {expected} for {known}; a null "
                "element must be skipped. Hint: step_scores.list.drop_nulls() before anything else."
            )
    for place in range(3):
        known = [0.5, 0.25, 0.875]
        with_nan, other = ([*known[:place], of, *known[place + 1 :]] for of in (math.nan, 0.75))
        found, first, second = reduce(with_nan, known, other)
        if not (found is not None and math.isnan(found)) and not found == first == second:
            raise ParameterError(
                f"{what} gives {found} for the list {with_nan}, must give NaN where it reads one. Hint: "
                ".list.max() and .list.min() ignore NaN."
            )


def check_grader(grade: Grader, /, trajectories: pl.DataFrame | None = None) -> None:
    """Check that a grade of your own keeps the rules that every grade keeps.

    Parameters
    ----------
    grade
        A Boolean expression over the columns of attempts, or a function without parameters that returns
        one: whether an attempt is right, null where it cannot be graded.
    trajectories
        Attempts with the columns that the grade reads. None: simulated ones with `problem`,
        `completion`, `answer`, `answer_key`, `gold`, `gold_key`, `score`, `step_scores`, `n_tokens` and
        `finish_reason`.

    Raises
    ------
    ParameterError
        When a rule is broken. An attempt without an answer must not be right if the grade reads
        answers. A grade must not depend on the order of rows, on other problems, on the engine, or on
        chance. Missing values must not make it fail.
    ColumnsError
        When the grade reads a column that `trajectories` lacks, or is not Boolean.

    See Also
    --------
    score_trajectories : Grades attempts.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> tts.testing.check_grader(pl.col("answer") == pl.col("gold"))
    >>> def is_same() -> pl.Expr:
    ...     return pl.col("answer").eq_missing(pl.col("gold"))
    >>> try:
    ...     tts.testing.check_grader(is_same)
    ... except tts.TtsframeError as error:
    ...     print(error.args[0].partition(".")[0])
    grader 'is_same' says that an attempt without an answer is right
    """
    what = name_grade(grade)
    reads = grade_expr(grade).meta.root_names()
    frame = _attempts(trajectories, reads, what)

    def run(attempts: Any) -> pl.DataFrame:  # noqa: ANN401 - either kind of frame
        graded = score_trajectories(attempts, grade=grade)
        return cast("pl.DataFrame", graded.select(*_KEYS, "is_correct"))

    _check_stable(run, frame, what, [*_KEYS])
    _try(run, _with_nulls(frame), what, "fails where values are missing")
    answers = [name for name in ("answer", "answer_key") if name in frame.columns]
    for gold in ({}, {name: None for name in ("gold", "gold_key") if name in frame.columns}):
        silent = frame.with_columns(**dict.fromkeys(answers), **gold).cast({
            name: frame.schema[name] for name in (*answers, *gold)
        })
        if set(reads) & {*answers} and run(silent)["is_correct"].any():
            raise ParameterError(
                f"{what} says that an attempt without an answer is right. Hint: == gives null where a "
                "value is missing, unlike eq_missing."
            )


def _simulated() -> pl.DataFrame:
    """Simulate graded attempts with every column that a run may have."""
    run = simulate_trajectories(
        _N_PROBLEMS, _N_ATTEMPTS, seed=_SEED, keys=True, texts=True, n_steps=(1, 5)
    ).drop("^true_.*$", "is_correct", strict=False)
    is_cut = pl.col("attempt") % 4 == 3
    return run.with_columns(
        answer="answer_key",
        finish_reason=pl.when(is_cut).then(pl.lit("length")).otherwise(pl.lit("stop")),
    )


def _attempts(
    trajectories: pl.DataFrame | None, reads: list[str] | tuple[str, ...], what: str
) -> pl.DataFrame:
    """Return the attempts to check with, which must have the columns that are read."""
    if trajectories is not None:
        check_frame(trajectories, "trajectories")
        require_columns(trajectories, [*_KEYS, "answer_key", *reads])
        return trajectories.drop("is_correct", strict=False)
    frame = _simulated()
    hint = "pass a small frame that has it as trajectories."
    require_columns(frame, reads, where=f"the simulated attempts, which {what} reads", hint=hint)
    return frame


def _check_stable(run: Run, frame: pl.DataFrame, what: str, keys: list[str]) -> None:
    """Check that a result depends on the rows alone."""
    expected = _try(run, frame, what, "fails").sort(keys)

    def check(found: pl.DataFrame, rule: str) -> None:
        if not found.sort(keys).equals(expected):
            (value,) = set(expected.columns) - set(keys)
            pair = found.sort(keys).with_columns(expected=expected[value])
            row = pair.filter(pl.col(value).ne_missing(pl.col("expected"))).row(0, named=True)
            where = ", ".join(f"{key} {row[key]!r}" for key in keys)
            raise ParameterError(
                f"{what} {rule}: {row['expected']} and then {row[value]} for {where}."
            )

    check(run(frame), "gives another result when it runs again")
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=_SEED)
    check(run(shuffled), "depends on the order of rows")
    check(run(frame.reverse()), "depends on the order of rows")
    parts = frame.partition_by("problem_id", maintain_order=True)
    check(pl.concat([run(part) for part in parts]), "depends on the rows of other problems")
    check(run(frame.lazy()).collect(), "gives another result for a LazyFrame")  # type: ignore[attr-defined]
    streamed = run(frame.lazy()).collect(engine="streaming")  # type: ignore[attr-defined]
    check(streamed, "gives another result with the streaming engine")


def _try(run: Run, frame: pl.DataFrame, what: str, rule: str) -> pl.DataFrame:
    """Run, and say which rule an error breaks."""
    try:
        return run(frame)
    except TtsframeError as error:
        if not isinstance(error, DataError):
            raise
        raise ParameterError(f"{what} {rule}: {error}") from error
    except Exception as error:
        raise ParameterError(f"{what} {rule}: {type(error).__name__}: {error}") from error


def _with_nulls(frame: pl.DataFrame) -> pl.DataFrame:
    """Return attempts that lack values: all of a problem, all but one, or one."""
    problem = pl.col("problem_id").rank("dense").cast(pl.Int64) - 1
    place = pl.int_range(pl.len()).over("problem_id")
    is_missing = (
        pl.when(problem % 4 == 0).then(pl.lit(value=True))
        .when(problem % 4 == 1).then(place != 1)
        .when(problem % 4 == 2).then(place == 0)
        .otherwise(pl.lit(value=False))
    )  # fmt: skip
    others = [name for name in frame.columns if name not in _KEYS]
    return frame.with_columns(pl.when(~is_missing).then(name).alias(name) for name in others)


def _repeated(frame: pl.DataFrame) -> pl.DataFrame:
    """Return problems whose attempts differ in their number only."""
    others = [name for name in frame.columns if name not in _KEYS]
    return frame.with_columns(pl.col(others).first().over("problem_id"))
