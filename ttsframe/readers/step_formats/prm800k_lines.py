"""PRM800K, written: alternatives into steps, steps into rows, level by level."""

from __future__ import annotations

from typing import Final

import polars as pl

from ttsframe.readers.step_formats.step_format import Labels
from ttsframe.readers.step_formats.writing import (
    IDS,
    carried_columns,
    json_array,
    json_lines,
    json_object,
    json_text,
    ordered,
    refuse,
    refuse_taken,
    right_or_wrong,
    underived,
)
from ttsframe.schema import require_columns

OF_QUESTION: Final = {
    "problem": "problem",
    "ground_truth_answer": "gold",
    "ground_truth_solution": "solution",
    "pre_generated_steps": "pre_generated_steps",
    "pre_generated_answer": "pre_generated_answer",
    "pre_generated_verifier_score": "pre_generated_verifier_score",
}
_OF_LABEL: Final = ("total_time", "finish_reason")
_ALWAYS: Final = (
    "labeler",
    "timestamp",
    "generation",
    "is_quality_control_question",
    "is_initial_screening_question",
)
COUNTING: Final = ("alternative", "n_alternatives", "chosen_completion", "is_human")
"""Columns that say which texts there were for a step, and which was taken."""
_OF_STEPS: Final = ("step.", "completion.")


def to_lines(steps: pl.DataFrame, labels: Labels) -> pl.Series:
    """Write a JSON object per solution."""
    frame = _with_alternatives(ordered(steps, ["problem", "text"]))
    _check(frame)
    carried = _carried(frame, labels)
    rated = frame.with_columns(_rating(frame, labels).alias("rating"))
    by_step = _steps(rated)
    rows = rated.group_by("__row", maintain_order=True).agg(
        pl.col(name).first()
        for name in dict.fromkeys([
            *IDS,
            "problem",
            *_present(frame, (*_ALWAYS, *_OF_LABEL)),
            *carried,
        ])
    )
    values = by_step.group_by("__row", maintain_order=True).agg(
        json_array(pl.col("__value")).alias("__steps"), pl.col("__texts")
    )
    whole = rows.join(values, on="__row", how="left", maintain_order="left").with_columns(
        pl.col("__steps").fill_null("[]"), pl.col("__texts").fill_null([])
    )
    return _rows(whole, carried)


def _present(frame: pl.DataFrame, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if name in frame.columns]


def _with_alternatives(frame: pl.DataFrame) -> pl.DataFrame:
    """Make steps without alternatives steps with one, which was taken."""
    there = _present(frame, COUNTING)
    if there:
        require_columns(
            frame,
            COUNTING,
            where="alternatives of steps",
            hint=f"steps.drop({', '.join(map(repr, there))}) writes each step as the only one.",
        )
        return frame
    way_out = f"the columns {list(COUNTING)} number alternatives"
    if "node" in frame.columns:
        way_out = "tts.process.step_paths(steps) makes a solution of each path through a tree"
    refuse(
        frame,
        pl.struct("__row", "step").is_duplicated(),
        f"is there more than once. Hint: {way_out}.",
    )
    first = pl.when(pl.col("step") >= 0).then(0)
    return frame.with_columns(
        first.cast(pl.Int64).alias("alternative"),
        pl.lit(1, dtype=pl.Int64).alias("n_alternatives"),
        pl.lit(0, dtype=pl.Int64).alias("chosen_completion"),
        pl.lit(value=False).alias("is_human"),
    )


def _check(frame: pl.DataFrame) -> None:
    """Refuse steps and alternatives that are not numbered as a list is."""
    step, alternative = pl.col("step"), pl.col("alternative")
    is_shown, is_human = alternative.is_not_null(), pl.col("is_human").fill_null(value=False)
    own = frame.filter(step >= 0)
    distinct = own.unique(["__row", "step"], keep="first", maintain_order=True)
    hint = f"Hint: steps.drop{COUNTING} writes each step as the only one."
    refuse(frame, pl.col("problem").is_null(), "problem is null")
    refuse(
        frame,
        pl.col("problem") != pl.col("problem").first().over("__row"),
        "has another problem text than the solution's first step",
    )
    refuse(
        frame,
        (step == -1)
        & pl.any_horizontal(
            pl.col(name).is_not_null() for name in _present(frame, ("text", "rating", "is_correct"))
        ),
        "the problem itself has a text or a label, which format 'prm800k' cannot hold",
    )
    refuse(
        distinct,
        step != pl.int_range(pl.len()).over("__row"),
        (
            "does not follow the step before; steps are numbered 0, 1, 2 and on, -1 is the "
            "problem before any step"
        ),
    )
    refuse(
        own.filter(is_shown),
        alternative != pl.int_range(pl.len()).over("__row", "step"),
        lambda row: (
            f"alternative {row['alternative']} does not follow the one before; they are numbered "
            f"0, 1, 2 and on. {hint}"
        ),
    )
    for name in ("n_alternatives", "chosen_completion"):
        refuse(
            own,
            pl.col(name).ne_missing(pl.col(name).first().over("__row", "step")),
            f"{name} differs between the alternatives",
        )
    refuse(
        own,
        is_shown.sum().over("__row", "step") != pl.col("n_alternatives").fill_null(0),
        lambda row: (
            f"n_alternatives is {row['n_alternatives']}, but so many rows there are not. {hint}"
        ),
    )
    refuse(
        own,
        (is_human & is_shown) | (is_human.sum().over("__row", "step") > 1),
        "a person's own text has no number as an alternative, and there is one at most",
    )
    refuse(
        own,
        ~is_human
        & ~is_shown
        & ((pl.len().over("__row", "step") > 1) | pl.col("text").is_not_null()),
        "a row is neither an alternative nor a person's own text",
    )


def _carried(frame: pl.DataFrame, labels: Labels) -> list[str]:
    settled = {"__row", *IDS, "step", "node", "parent", "problem", "text", "is_correct", "rating"}
    settled |= {*COUNTING, "is_on_path", "flagged", "source"}
    settled |= {name for name in frame.columns if name.startswith(_OF_STEPS)}
    if labels.threshold is not None:
        settled |= {"soft"}
    carried = carried_columns(frame, settled, "prm800k")
    refuse_taken(carried, ("question", "label"), "prm800k")
    return carried


def _rating(frame: pl.DataFrame, labels: Labels) -> pl.Expr:
    """Return the rating of each alternative, from all columns that have something to say."""
    says = right_or_wrong(frame, labels)
    is_right = pl.coalesce(*says.values(), pl.lit(None, dtype=pl.Boolean))
    made = pl.when(is_right).then(1).when(~is_right).then(-1)
    return pl.coalesce("rating", made) if "rating" in frame.columns else made.otherwise(None)


def _steps(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the JSON value of each step, and its texts."""
    names = [*_present(frame, ("text", "rating", "flagged"))]
    further = {name: pl.col(name) for name in _present(frame, ("source",))}
    further |= _further(frame, "completion.")
    alternative = json_object({name: json_text(name) for name in names}, further)
    of_step = _further(frame, "step.")
    null = pl.lit("null")
    grouped = (
        frame
        .filter(pl.col("step") >= 0)
        .with_columns(alternative.alias("__value"))
        .group_by("__row", "step", maintain_order=True)
        .agg(
            json_array(pl.col("__value").filter(pl.col("alternative").is_not_null())).alias(
                "__shown"
            ),
            pl.col("__value").filter(pl.col("is_human")).first().alias("__human"),
            pl.col("text").drop_nulls().str.join("\x1f").alias("__texts"),
            pl.col("n_alternatives", "chosen_completion").first(),
            *(value.first() for value in of_step.values()),
        )
    )
    shown = pl.when(pl.col("n_alternatives").is_not_null()).then("__shown").otherwise(null)
    value = json_object(
        {
            "completions": shown,
            "human_completion": pl.coalesce("__human", null),
            "chosen_completion": json_text("chosen_completion"),
        },
        of_step,
    )
    return grouped.with_columns(value.alias("__value"))


def _further(frame: pl.DataFrame, prefix: str) -> dict[str, pl.Expr]:
    """Return the members that columns named after their place stand for."""
    return {
        name.removeprefix(prefix): pl.col(name) for name in frame.columns if name.startswith(prefix)
    }


def _rows(rows: pl.DataFrame, carried: list[str]) -> pl.Series:
    """Write the rows around their steps."""
    gold = json_text("gold") if "gold" in rows.columns else pl.lit("null")
    short = {"problem": json_text("problem"), "ground_truth_answer": gold}
    # questions of the second phase have all the keys, with null for what is not known
    names = [name for name in OF_QUESTION.values() if name in carried and name != "gold"]
    long = {key: json_text(name) for key, name in OF_QUESTION.items() if name in names}
    further = _further(rows, "question.")
    question = json_object(short, further)
    if names:
        is_long = pl.any_horizontal(pl.col(name).is_not_null() for name in names)
        question = (
            pl.when(is_long).then(json_object({**short, **long}, further)).otherwise(question)
        )
    label = json_object(
        {
            "steps": pl.col("__steps"),
            **{name: json_text(name) for name in _present(rows, _OF_LABEL)},
        },
        _further(rows, "label."),
    )
    members = {name: json_text(name) for name in _present(rows, _ALWAYS)}
    own = {*OF_QUESTION.values(), *_ALWAYS, *_OF_LABEL}
    rest = [
        name for name in carried if name not in own and not name.startswith(("question.", "label."))
    ]
    return json_lines(
        rows,
        {**members, "question": question, "label": label},
        [*underived(rows, ("question", "label")), *rest],
    )
