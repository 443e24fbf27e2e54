"""From texts and step scores to graded and scored attempts, which votes and selectors read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final, NamedTuple, get_args

import polars as pl

from ttsframe._checks import check_choice, check_frame, check_names
from ttsframe._exprs import run_plan
from ttsframe._own import check_named
from ttsframe._typing import AnswerStyle, FrameT, Grader, Reduction
from ttsframe.answers import (
    AnswerPolicy,
    answer_key,
    extract_answer,
    gold_key,
)
from ttsframe.answers.grade import grade_keyed
from ttsframe.answers.own_grade import own_grade
from ttsframe.errors import ParameterError
from ttsframe.schema import require_columns, require_kind
from ttsframe.steps import STEP_REDUCTIONS, reduce_steps

__all__ = ["score_trajectories"]

ADDED_COLUMNS: Final = ("answer", "answer_key", "gold", "gold_key", "is_correct", "score")
RECORDED: Final = "is_correct_recorded"
"""Column that keeps another tool's grades where ours replace some of them."""
GRADED_FROM: Final = ("answer_key", "gold_key", "answer", "gold")
"""Columns that a grade is made of: the keys, and where they exist, the texts."""


def score_trajectories(
    trajectories: FrameT,
    /,
    *,
    reduction: Reduction = "last",
    style: AnswerStyle = "auto",
    policy: AnswerPolicy | None = None,
    overwrite: Sequence[str] = (),
    cut_at_next_question: bool = True,
    grade: Grader | None = None,
) -> FrameT:
    r"""Add answers, their keys, grades and scores to attempts.

    Each column is derived from the ones before it, and only if it is missing: values recorded by
    another tool are kept unless `overwrite` names their column. One rule goes before recorded grades:
    an attempt without an answer is wrong where its problem has a gold answer.

    Parameters
    ----------
    trajectories
        One row per attempt, with `completion` or `answer` (String), or with another tool's
        `is_correct` (Boolean) alone, as for code and proofs; with `gold` or `solution` (String) to
        grade attempts; with `step_scores` (List of Float64 or Float32) to score them.
    reduction
        Key of `STEP_REDUCTIONS`: how `step_scores` becomes `score`; or a function of one expression,
        the lists of scores, that returns the expression of one score per list.
    style
        How completions mark their answer; see `extract_answer`.
    policy
        Conventions of the answer keys; None means `AnswerPolicy()`.
    overwrite
        Existing columns to replace, among `answer`, `answer_key`, `gold`, `gold_key`, `is_correct`
        and `score`. Columns derived from a replaced answer or gold answer are replaced too.
    cut_at_next_question
        Whether a completion ends where the model goes on with a question of its own; see
        `extract_answer`.
    grade
        A grade of your own: a Boolean expression over the columns of `trajectories` and those that
        this function adds before `is_correct`, or a function without parameters that returns one.
        It makes `is_correct`, also in place of a recorded one. Null stays ungraded, but for an attempt
        without an answer where there is a gold answer, which is wrong. None: answers are compared with
        the gold answer.

    Returns
    -------
    FrameT
        `trajectories` with these columns, in this order, as far as they can be derived:

        - `answer` (String): extracted from `completion`, null if none is found;
        - `answer_key` (String): equal keys mean equivalent answers; null without an answer, and
          throughout where the run has grades but neither completions nor answers;
        - `gold` (String): extracted from `solution` if there is no column `gold`;
        - `gold_key` (String);
        - `is_correct` (Boolean): whether the answers are equivalent, by their keys and by what only
          `is_equivalent` knows; null without a gold answer, unless another tool graded the attempt;
          false where there is a gold answer and no answer was found, whoever graded (a recorded null
          stays);
        - `is_correct_recorded` (Boolean): the grades of another tool, where ours replaced them: all
          of them with `overwrite`, else those of attempts without an answer;
        - `score` (Float64): the reduced `step_scores`.

        A LazyFrame for a LazyFrame.

    Raises
    ------
    ColumnsError
        At the call, when `completion`, `answer`, `answer_key` and `is_correct` are all missing, the
        source of a column named in `overwrite` is missing, or a recorded grade is not Boolean; when
        `grade` reads a missing column, or is not Boolean.
    ParameterError
        At the call, when a parameter is not among its choices, or `grade` or `reduction` raises.
    DataError
        At collection, when a recorded key and a new one come from different versions, policies or
        tools and cannot be compared.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["p", "p"],
    ...     "attempt": [0, 1],
    ...     "completion": [r"So it is $\boxed{\frac{1}{2}}$.", "I do not know."],
    ...     "gold": ["0.5", "0.5"],
    ...     "step_scores": [[0.9, 0.8], [0.4, 0.1]],
    ... })
    >>> scored = tts.score_trajectories(trajectories, reduction="min")
    >>> scored.select("answer", "is_correct", "score")
    shape: (2, 3)
    ┌─────────────┬────────────┬───────┐
    │ answer      ┆ is_correct ┆ score │
    │ ---         ┆ ---        ┆ ---   │
    │ str         ┆ bool       ┆ f64   │
    ╞═════════════╪════════════╪═══════╡
    │ \frac{1}{2} ┆ true       ┆ 0.8   │
    │ null        ┆ false      ┆ 0.1   │
    └─────────────┴────────────┴───────┘

    A grade of your own, by the tests that each attempt passed:

    >>> tested = trajectories.with_columns(n_passed=pl.Series([3, 4]), n_tests=4)
    >>> is_passed = pl.col("n_passed") == pl.col("n_tests")
    >>> tts.score_trajectories(tested, grade=is_passed)["is_correct"].to_list()
    [False, True]
    """
    check_frame(trajectories, "trajectories")
    check_named(reduction, "reduction", STEP_REDUCTIONS)
    check_choice(style, "style", get_args(AnswerStyle))
    if unknown := set(check_names(tuple(overwrite), "overwrite")) - set(ADDED_COLUMNS):
        raise ParameterError(
            f"overwrite names {sorted(unknown)}, must be among {list(ADDED_COLUMNS)}."
        )
    additions = plan_additions(
        trajectories.collect_schema(),
        reduction=reduction,
        style=style,
        policy=policy,
        overwrite=overwrite,
        cut_at_next_question=cut_at_next_question,
        grade=grade,
    )

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        return _after(lazy, additions)

    return run_plan(trajectories, plan)


class Addition(NamedTuple):
    """A column to add, the column it is derived from, and its expression."""

    name: str
    source: str
    value: pl.Expr
    reads: tuple[str, ...] = ()
    """Columns that a grade of the user reads."""


def plan_additions(
    schema: pl.Schema,
    *,
    reduction: Reduction,
    style: AnswerStyle,
    policy: AnswerPolicy | None,
    overwrite: Sequence[str],
    cut_at_next_question: bool,
    grade: Grader | None = None,
) -> list[Addition]:
    """Return the columns to add, in order, each derived from the ones before it."""
    frame = pl.LazyFrame(schema=schema)
    columns, replaced = set(schema.names()), set(overwrite)
    if grade is not None:
        replaced.add("is_correct")
    additions = _without_answers(frame, columns, replaced)
    columns |= {addition.name for addition in additions}
    extract = partial(extract_answer, style=style, cut_at_next_question=cut_at_next_question)
    sources: dict[str, tuple[str, Callable[[str], pl.Expr]]] = {
        "answer": ("completion", extract),
        "answer_key": ("answer", lambda name: answer_key(name, policy=policy)),
        "gold": ("solution", extract),
        "gold_key": ("gold", lambda name: gold_key(name, policy=policy)),
        "is_correct": (
            "gold_key",
            lambda _: grade_keyed([name for name in GRADED_FROM if name in columns], policy=policy),
        ),
        "score": ("step_scores", lambda _: reduce_steps(reduction)),
    }
    derived = {
        "answer": "answer_key",
        "answer_key": "is_correct",
        "gold": "gold_key",
        "gold_key": "is_correct",
    }
    for name, (source, make) in sources.items():
        if name in columns and name not in replaced:
            if name == "is_correct":
                additions += _wrong_without_answer(schema, columns)
            continue
        if name == "is_correct" and grade is not None:
            additions += _keep_recorded(schema)
            graded = _after(frame, additions)
            additions.append(Addition(name, "attempt", *own_grade(grade, graded)))
            columns.add(name)
            continue
        if source not in columns:
            # A column that merely depends on an overwritten one may be missing.
            if name in columns or name in overwrite:
                require_columns(frame, [source], where=f"overwriting {name!r}")
            continue
        if name == "is_correct":
            additions += _keep_recorded(schema)
        additions.append(Addition(name, source, make(source)))
        columns.add(name)
        if name in replaced and name in derived:
            replaced.add(derived[name])
    return additions


def _without_answers(frame: pl.LazyFrame, columns: set[str], replaced: set[str]) -> list[Addition]:
    """Add the column of keys where nothing tells answers: code and proofs, graded by a test or a checker."""
    if columns & {"completion", "answer", "answer_key"}:
        return []
    if "is_correct" not in columns or replaced & {"answer", "answer_key"}:
        require_columns(frame, ["completion"])
    return [Addition("answer_key", "is_correct", pl.lit(None, pl.String))]


def _wrong_without_answer(schema: pl.Schema, columns: Collection[str]) -> list[Addition]:
    """Grade attempts without an answer as wrong where there is a gold answer, and keep the grades so far."""
    if not {"answer_key", "gold_key"} <= set(columns):
        return []
    dtype = schema["is_correct"]
    if not dtype.is_numeric():
        require_kind(schema, "Boolean", "is_correct")
        dtype = pl.Boolean()
    is_failure = pl.col("answer_key").is_null() & pl.col("gold_key").is_not_null()
    # A run that is not graded stays so: with nothing but failures graded, its accuracy would be 0.
    is_failure &= pl.col("is_correct").is_not_null()
    grade = pl.when(is_failure).then(pl.lit(value=False).cast(dtype)).otherwise("is_correct")
    # Where both keys came with the grades, they were made together: by this function, or by a tool
    # whose rule is the same. So scoring a second time changes nothing.
    is_ours = {"answer_key", "gold_key"} <= set(schema)
    kept = [] if is_ours else _keep_recorded(schema)
    return [*kept, Addition("is_correct", "is_correct", grade)]


def _keep_recorded(schema: pl.Schema) -> list[Addition]:
    """Keep the grades that the run came with, unless older ones are kept already."""
    if "is_correct" not in schema or RECORDED in schema:
        return []
    return [Addition(RECORDED, "is_correct", pl.col("is_correct"))]


def _after(frame: pl.LazyFrame, additions: Sequence[Addition]) -> pl.LazyFrame:
    """Add columns to a frame, each of which may be derived from the ones before it."""
    for addition in additions:
        frame = frame.with_columns(addition.value.alias(addition.name))
    return frame
