"""Tools for writing formats of steps: checks that name the step, labels, and JSON from columns.

A column that is constant within each solution becomes a key of its rows. Any other column without a
place in the format is an error: nothing is left out unless the caller drops it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Final, NamedTuple

import polars as pl

from ttsframe._settings import ON_PATH, STEP_PATHS, setting
from ttsframe.errors import ColumnsError, DataError
from ttsframe.readers.engine.table import Table
from ttsframe.readers.step_formats.reading import add_ids
from ttsframe.readers.step_formats.step_format import Labels
from ttsframe.schema import require_columns

IDS: Final = ("problem_id", "solution_id")
_STRUCTURE: Final = {"__row", *IDS, "step", "node", "parent", "problem", "text"}
_STEP_VALUES: Final = {"soft", "rating", "alternative"}
"""Columns that describe single steps, even if they are constant within a solution."""


class Solutions(NamedTuple):
    """Steps of a format with one row per solution."""

    frame: pl.DataFrame
    """One row per solution: `__row`, `problem`, the lists `__texts` and `__labels`, carried columns."""
    steps: pl.DataFrame
    """One row per step: `__row`, ids, `step`, `problem`, `text` and `__label`."""
    carried: list[str]
    """Columns that become keys of a row."""


def refuse(
    steps: pl.DataFrame, condition: pl.Expr, reason: str | Callable[[Mapping[str, object]], str]
) -> None:
    """Raise if the condition holds for any step; name the problem, solution and step."""
    broken = steps.filter(condition.fill_null(value=False))
    if broken.height:
        row = broken.row(0, named=True)
        rest = broken.height - 1
        more = (
            f" {rest:,} more step{'s have' if rest > 1 else ' has'} the same problem."
            if rest
            else ""
        )
        text = reason if isinstance(reason, str) else reason(row)
        end = "" if text.endswith(".") else "."
        raise DataError(
            f"problem {row['problem_id']!r}, solution {row['solution_id']!r}, step {row['step']}: "
            f"{text}{end}{more}"
        )


def sort_steps(steps: pl.DataFrame, required: Sequence[str]) -> pl.DataFrame:
    """Sort the steps of each solution, and add `__row`, the first row of the solution."""
    require_columns(
        steps,
        [*IDS, "step", *required],
        where="steps",
        hint=f"tts.read_steps makes such a table; {_rename('yours', 'text')} maps names.",
    )
    for name in steps.columns:
        if name.startswith("__"):
            raise ColumnsError(
                f"column {name!r} of steps begins with two underscores; such names are used internally. "
                f"Hint: {_rename(name, name.strip('_'))}."
            )
    if not steps.schema["step"].is_integer():
        raise ColumnsError(
            f"column 'step' of steps is {steps.schema['step']}, must be an integer. Hint: cast it."
        )
    for name in (*IDS, "step"):
        refuse(steps, pl.col(name).is_null(), f"{name} is null")
    keys = [*(name for name in ("source_file",) if name in steps.columns), *IDS]
    order = [name for name in ("node", "alternative") if name in steps.columns]
    numbered = steps.with_row_index("__row")
    return numbered.with_columns(
        pl.col("step").cast(pl.Int64), pl.col("__row").min().over(keys)
    ).sort("__row", "step", *order, nulls_last=True, maintain_order=True)


def refuse_nonfinite(steps: pl.DataFrame) -> None:
    """Refuse NaN and infinities, which JSON cannot represent."""
    for name, dtype in steps.schema.items():
        if dtype.is_float():
            refuse(steps, ~pl.col(name).is_finite(), partial(_not_json, name))


def _not_json(name: str, row: Mapping[str, object]) -> str:
    return f"{name} is {row[name]}, which JSON cannot represent"


def group_solutions(
    steps: pl.DataFrame,
    labels: Labels,
    *,
    format_name: str,
    taken: Sequence[str],
    may_end_unlabeled: bool = False,
) -> Solutions:
    """Turn steps into one row per solution, or raise if the format cannot represent them."""
    frame = sort_steps(steps, ["problem", "text"])
    is_problem = pl.col("step") == -1
    n_steps = (pl.col("step") >= 0).sum().over("__row")
    refuse(frame, pl.col("problem").is_null(), "problem is null")
    refuse(
        frame,
        is_problem & pl.col("text").is_not_null(),
        f"the problem itself has a step text, which format {format_name!r} cannot represent",
    )
    _check_numbers(frame, format_name)
    refuse(frame, ~is_problem & pl.col("text").is_null(), "text is null")
    frame = frame.with_columns(_combine_labels(frame, labels, format_name).alias("__label"))
    carried = _carried_columns(frame, labels, format_name, taken)
    proper = frame.filter(~is_problem | (n_steps == 0))
    is_unlabeled = ~is_problem & pl.col("__label").is_null()
    if may_end_unlabeled:
        is_unlabeled &= pl.col("step") != pl.col("step").max().over("__row")
    hint = (
        f"Hint: {setting('right_above', 0.5)} counts soft values above it as right, as OpenR does."
        if "soft" in frame.columns and labels.right_above is None
        else "Hint: drop steps without a label, or label them."
    )
    refuse(proper, is_unlabeled, f"has no label, which format {format_name!r} requires. {hint}")
    # With a right_above, a soft value of the problem itself becomes a label that is ignored.
    if labels.right_above is None:
        refuse(
            frame,
            is_problem & pl.col("__label").is_not_null(),
            f"the problem itself has a label, which format {format_name!r} cannot represent",
        )
    rows = proper.group_by("__row", maintain_order=True).agg(
        pl.col("text").filter(~is_problem).alias("__texts"),
        pl.col("__label").filter(~is_problem).alias("__labels"),
        *(pl.col(name).first() for name in {*IDS, "problem", *carried} - {"__row"}),
    )
    return Solutions(rows, proper, [*explicit_ids(rows, taken), *carried])


def _check_numbers(frame: pl.DataFrame, format_name: str) -> None:
    """Refuse repeated steps and gaps."""
    if "alternative" in frame.columns:
        way_out = f"{ON_PATH} keeps the one that was continued"
    elif "node" in frame.columns:
        way_out = f"{STEP_PATHS} makes a solution of each path through a tree"
    else:
        way_out = "give each solution its own id"
    refuse(
        frame,
        pl.struct("__row", "step").is_duplicated(),
        f"appears more than once, which format {format_name!r} cannot represent. Hint: {way_out}.",
    )
    refuse(
        frame.filter(pl.col("step") >= 0),
        pl.col("step") != pl.int_range(pl.len()).over("__row"),
        (
            "does not follow the previous step; steps are numbered 0, 1, 2, ..., and -1 is the "
            "problem before any step"
        ),
    )
    refuse(frame, pl.col("step") < -1, "steps are numbered from 0 or -1")


def right_or_wrong(frame: pl.DataFrame, labels: Labels) -> dict[str, pl.Expr]:
    """Return the label of each step by column; the columns must agree. Null means no label."""
    rating = pl.col("rating")
    by_column = {
        "is_correct": pl.col("is_correct"),
        "rating": pl.when(rating == 0).then(pl.lit(labels.neutral)).otherwise(rating > 0),
        "soft": pl.col("soft") > pl.lit(labels.right_above, dtype=pl.Float64),
    }
    by_column = {name: label for name, label in by_column.items() if name in frame.columns}
    if "rating" in by_column:
        refuse(
            frame,
            ~rating.is_in([-1, 0, 1]),
            lambda row: f"rating is {row['rating']}, must be -1, 0 or 1",
        )
        if "is_correct" in by_column:
            refuse(
                frame,
                (rating == 0) & pl.col("is_correct").is_not_null() & by_column["rating"].is_null(),
                lambda row: (
                    f"is_correct is {row['is_correct']}, but rating is 0 (neutral). Hint: drop one of "
                    f"these columns"
                ),
            )
    for first, second in combinations(by_column, 2):
        refuse(
            frame,
            by_column[first] != by_column[second],
            partial(_contradiction, first, second),
        )
    return by_column


def _contradiction(first: str, second: str, row: Mapping[str, object]) -> str:
    return (
        f"{first} is {row[first]}, but {second} is {row[second]}, which contradicts it. Hint: drop one of "
        f"these columns"
    )


def _combine_labels(frame: pl.DataFrame, labels: Labels, format_name: str) -> pl.Expr:
    """Return the label of each step, from the first column that has one."""
    by_column = right_or_wrong(frame, labels)
    if "rating" in by_column and labels.neutral is None:
        refuse(
            frame,
            pl.col("rating") == 0,
            (
                f"rating 0 is neutral, but format {format_name!r} only has right and wrong steps. "
                f"Hint: {setting('neutral', True)} counts it as right, as OpenR does, {setting('neutral', False)} as wrong"
            ),
        )
    return pl.coalesce(*by_column.values(), pl.lit(None, dtype=pl.Boolean))


def _carried_columns(
    frame: pl.DataFrame, labels: Labels, format_name: str, taken: Collection[str]
) -> list[str]:
    """Return the columns that become keys of a row; refuse columns without a place."""
    represented = _STRUCTURE | {"__label", "is_correct", "rating"}
    if labels.right_above is not None:
        represented |= {"soft"}
    if "is_on_path" in frame.columns and frame["is_on_path"].all(ignore_nulls=False):
        represented |= {"is_on_path"}
    carried = [
        name
        for name in frame.columns
        if name not in represented and frame[name].null_count() < frame.height
    ]
    varies = frame.select(
        pl.col(name).ne_missing(pl.col(name).first().over("__row")).any() for name in carried
    )
    lost = [name for name in carried if name in _STEP_VALUES or varies[name].item()]
    if lost:
        names = ", ".join(repr(name) for name in lost)
        way_out = (
            f" {setting('right_above', 0.5)} turns soft values above it into labels, as OpenR does."
        )
        raise ColumnsError(
            f"format {format_name!r} has no place for the column{'s' if len(lost) > 1 else ''} {names}, whose "
            f"values can differ from step to step. Hint: {setting('drop', lost, text=f'steps.drop({names})')} leaves that out."
            f"{way_out if 'soft' in lost else ''}"
        )
    for name in carried:
        if name in taken:
            raise ColumnsError(
                f"column {name!r} is named like a key with a meaning in format {format_name!r}. "
                f"Hint: {_rename(name, f'source_{name}')}."
            )
    refuse(
        frame,
        pl.col("problem") != pl.col("problem").first().over("__row"),
        "has another problem text than the first step of the solution",
    )
    return carried


def explicit_ids(rows: pl.DataFrame, taken: Sequence[str]) -> list[str]:
    """Return the id columns that reading the file would not reproduce."""
    bare = rows.select(
        "problem", "__texts", *(name for name in ("source_file",) if name in rows.columns)
    )
    table = Table(bare.lazy(), dict(bare.schema), {}, "raise", [])
    derived = add_ids(table, pl.col("__texts")).frame.select(IDS).collect()
    return [
        name
        for name in IDS
        if name not in taken and not (rows[name].cast(pl.String) == derived[name]).all()
    ]


def json_text(column: str) -> pl.Expr:
    """Write each value of a column as JSON."""
    encoded = pl.struct(pl.col(column).alias("v")).struct.json_encode()
    return encoded.str.strip_prefix('{"v":').str.strip_suffix("}")


def json_lines(
    frame: pl.DataFrame, members: Mapping[str, pl.Expr], carried: Sequence[str]
) -> pl.Series:
    """Write one JSON object per row: the keys of the format, then carried columns with a value."""
    parts = [_member(name, value) for name, value in members.items()]
    parts += [
        pl.when(pl.col(name).is_not_null()).then(_member(name, json_text(name))) for name in carried
    ]
    inside = pl.concat_str(parts, separator=", ", ignore_nulls=True)
    return frame.select(pl.concat_str(pl.lit("{"), inside, pl.lit("}")).alias("line")).to_series()


def _member(name: str, value: pl.Expr) -> pl.Expr:
    return pl.concat_str(pl.lit(f"{json.dumps(name, ensure_ascii=False)}: "), value)


def _rename(old: str, new: str) -> str:
    return setting("rename", {old: new}, text=f"steps.rename({{{old!r}: {new!r}}})")
