"""From texts and step scores to graded, scored attempts: what votes and selectors read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, get_args

import polars as pl

from ttsframe._checks import check_choice, check_frame, check_names
from ttsframe._exprs import run_plan
from ttsframe._typing import AnswerStyle, FrameT, StepReduction
from ttsframe.answers import (
    AnswerPolicy,
    answer_key,
    extract_answer,
    gold_key,
    is_same_key,
)
from ttsframe.errors import ParameterError
from ttsframe.schema import require_columns
from ttsframe.steps import STEP_REDUCTIONS

__all__ = ["score_trajectories"]

ADDED_COLUMNS: Final = ("answer", "answer_key", "gold", "gold_key", "is_correct", "score")


def score_trajectories(
    trajectories: FrameT,
    /,
    *,
    reduction: StepReduction = "last",
    style: AnswerStyle = "auto",
    policy: AnswerPolicy | None = None,
    overwrite: Sequence[str] = (),
) -> FrameT:
    r"""Add answers, their keys, grades and scores to attempts.

    Each column is made from the ones before it, and only where it is missing: what another tool
    recorded is kept unless it is named in `overwrite`.

    Parameters
    ----------
    trajectories
        One row per attempt, with `completion` (String) or `answer` (String); `gold` or `solution`
        (String) where attempts can be graded; `step_scores` (List of Float64 or Float32) where
        they can be scored.
    reduction
        Name in `STEP_REDUCTIONS`: how `step_scores` becomes `score`.
    style
        Where an answer stands in a completion; see `extract_answer`.
    policy
        Conventions of the answer keys; None is `AnswerPolicy()`.
    overwrite
        Columns to make anew although they exist, among `answer`, `answer_key`, `gold`, `gold_key`,
        `is_correct` and `score`. What is made from an overwritten answer or gold answer is made
        anew too.

    Returns
    -------
    FrameT
        `trajectories` with, in this order where they can be made:

        - `answer` (String): found in `completion`, null: none;
        - `answer_key` (String): equal keys are equivalent answers, null for no answer;
        - `gold` (String): found in `solution`, where there is no column `gold`;
        - `gold_key` (String);
        - `is_correct` (Boolean): whether the keys are equal, false for no answer, null without a
          gold answer;
        - `score` (Float64): `step_scores` reduced.

    Raises
    ------
    ColumnsError
        At once, when there is neither `completion`, `answer` nor `answer_key`, or a column named
        in `overwrite` has nothing to be made from.
    ParameterError
        At once, when a parameter is not among its choices.
    DataError
        On collection, when a recorded key and one made here come from different versions, policies
        or tools: they cannot be compared.

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
    """
    check_frame(trajectories, "trajectories")
    check_choice(reduction, "reduction", STEP_REDUCTIONS)
    check_choice(style, "style", get_args(AnswerStyle))
    renewed = set(check_names(tuple(overwrite), "overwrite"))
    if unknown := renewed - set(ADDED_COLUMNS):
        raise ParameterError(
            f"overwrite names {sorted(unknown)}, must be among {list(ADDED_COLUMNS)}."
        )
    additions = plan_additions(
        trajectories.collect_schema(),
        reduction=reduction,
        style=style,
        policy=policy,
        overwrite=overwrite,
    )

    def plan(lazy: pl.LazyFrame) -> pl.LazyFrame:
        for addition in additions:
            lazy = lazy.with_columns(addition.value.alias(addition.name))
        return lazy

    return run_plan(trajectories, plan)


class Addition(NamedTuple):
    """A column to be made, the column that it is made from, and how."""

    name: str
    source: str
    value: pl.Expr


def plan_additions(
    schema: pl.Schema,
    *,
    reduction: StepReduction,
    style: AnswerStyle,
    policy: AnswerPolicy | None,
    overwrite: Sequence[str],
) -> list[Addition]:
    """Decide which columns are made, each from the ones before it.

    Parameters
    ----------
    schema
        Schema of the attempts.
    reduction, style, policy, overwrite
        As `score_trajectories` takes them, checked.

    Returns
    -------
    list[Addition]
        In the order in which they are to be made.

    Raises
    ------
    ColumnsError
        When there is nothing to make an answer or an overwritten column from.
    """
    frame = pl.LazyFrame(schema=schema)
    columns, renewed = set(schema.names()), set(overwrite)
    if not columns & {"completion", "answer", "answer_key"}:
        require_columns(frame, ["completion"])
    sources: dict[str, tuple[str, Callable[[str], pl.Expr]]] = {
        "answer": ("completion", lambda name: extract_answer(name, style=style)),
        "answer_key": ("answer", lambda name: answer_key(name, policy=policy)),
        "gold": ("solution", lambda name: extract_answer(name, style=style)),
        "gold_key": ("gold", lambda name: gold_key(name, policy=policy)),
        "is_correct": ("gold_key", lambda name: is_same_key("answer_key", name)),
        "score": ("step_scores", STEP_REDUCTIONS[reduction]),
    }
    derived = {
        "answer": "answer_key",
        "answer_key": "is_correct",
        "gold": "gold_key",
        "gold_key": "is_correct",
    }
    additions: list[Addition] = []
    for name, (source, make) in sources.items():
        if name in columns and name not in renewed:
            continue
        if source not in columns:
            # What is only derived from an overwritten column need not be there at all.
            if name in columns or name in overwrite:
                require_columns(frame, [source], where=f"overwriting {name!r}")
            continue
        additions.append(Addition(name, source, make(source)))
        columns.add(name)
        if name in renewed and name in derived:
            renewed.add(derived[name])
    return additions
