"""What writing a format of steps is made of: checks that name the step, labels, JSON by columns.

A format holds what it was made for. What it has no place for is an error, never left out: values that
are the same for all steps of a solution become further keys of its row, anything else must be dropped
by whoever writes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import polars as pl

from ttsframe._settings import ON_PATH, STEP_PATHS, setting
from ttsframe.errors import ColumnsError, DataError
from ttsframe.readers.engine.table import Table
from ttsframe.readers.step_formats.reading import identify
from ttsframe.readers.step_formats.step_format import Labels
from ttsframe.schema import require_columns

IDS: Final = ("problem_id", "solution_id")
_STRUCTURE: Final = {"__row", *IDS, "step", "node", "parent", "problem", "text"}
_OF_STEPS: Final = {"soft", "rating", "alternative"}
"""Never a property of a whole solution, even if all its steps have one value."""


class Solutions(NamedTuple):
    """Steps of a format that has a row per solution, its steps one after the other."""

    frame: pl.DataFrame
    """A row per solution: ``row``, ``problem``, the lists ``texts`` and ``labels``, and carried columns."""
    steps: pl.DataFrame
    """A row per step with ``row``, ids, ``step``, ``problem``, ``text`` and ``label``."""
    carried: list[str]
    """Columns that become further keys."""


def refuse(
    steps: pl.DataFrame, condition: pl.Expr, reason: str | Callable[[Mapping[str, object]], str]
) -> None:
    """Raise, naming problem, solution and step, if any step is so."""
    broken = steps.filter(condition.fill_null(value=False))
    if broken.height:
        row = broken.row(0, named=True)
        rest = broken.height - 1
        more = f" So {'is' if rest == 1 else 'are'} {rest:,} more." if rest else ""
        text = reason if isinstance(reason, str) else reason(row)
        end = "" if text.endswith(".") else "."
        raise DataError(
            f"problem {row['problem_id']!r}, solution {row['solution_id']!r}, step {row['step']}: "
            f"{text}{end}{more}"
        )


def ordered(steps: pl.DataFrame, required: Sequence[str]) -> pl.DataFrame:
    """Give solutions numbers by their first appearance as ``row``, and sort their steps."""
    require_columns(
        steps,
        [*IDS, "step", *required],
        where="steps",
        hint=f"tts.read_steps makes such a table; {_rename('yours', 'text')} maps names.",
    )
    for name in steps.columns:
        if name.startswith("__"):
            raise ColumnsError(
                f"column {name!r} of steps has a name that begins with two underscores, which writing needs. "
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


def refuse_beyond_json(steps: pl.DataFrame) -> None:
    """Refuse numbers that JSON has no word for, which would become null."""
    for name, dtype in steps.schema.items():
        if dtype.is_float():
            refuse(steps, ~pl.col(name).is_finite(), partial(_not_json, name))


def _not_json(name: str, row: Mapping[str, object]) -> str:
    return f"{name} is {row[name]}, for which JSON has no word"


def solutions(
    steps: pl.DataFrame,
    labels: Labels,
    *,
    format_name: str,
    taken: Sequence[str],
    may_end_open: bool = False,
) -> Solutions:
    """Bring steps into one row per solution, or say what the format cannot hold."""
    frame = ordered(steps, ["problem", "text"])
    is_bare = pl.col("step") == -1
    n_steps = (pl.col("step") >= 0).sum().over("__row")
    refuse(frame, pl.col("problem").is_null(), "problem is null")
    refuse(
        frame,
        is_bare & pl.col("text").is_not_null(),
        f"the problem itself has a text as a step has, which format {format_name!r} cannot hold",
    )
    _check_numbers(frame, format_name)
    refuse(frame, ~is_bare & pl.col("text").is_null(), "text is null")
    frame = frame.with_columns(_label(frame, labels, format_name).alias("__label"))
    carried = _carried(frame, labels, format_name, taken)
    own = frame.filter(~is_bare | (n_steps == 0))
    is_open = ~is_bare & pl.col("__label").is_null()
    if may_end_open:
        is_open &= pl.col("step") != pl.col("step").max().over("__row")
    hint = (
        f"Hint: {setting('threshold', 0.5)} counts soft values above it as right, as OpenR does."
        if "soft" in frame.columns and labels.threshold is None
        else "Hint: leave out what was not labelled, or label it."
    )
    refuse(own, is_open, f"is not labelled, as format {format_name!r} needs. {hint}")
    if (
        labels.threshold is None
    ):  # else a value of the problem itself became a label, and is left out
        refuse(
            frame,
            is_bare & pl.col("__label").is_not_null(),
            f"the problem itself has a label, which format {format_name!r} cannot hold",
        )
    rows = own.group_by("__row", maintain_order=True).agg(
        pl.col("text").filter(~is_bare).alias("__texts"),
        pl.col("__label").filter(~is_bare).alias("__labels"),
        *(pl.col(name).first() for name in {*IDS, "problem", *carried} - {"__row"}),
    )
    return Solutions(rows, own, [*underived(rows, taken), *carried])


def _check_numbers(frame: pl.DataFrame, format_name: str) -> None:
    """Refuse several rows for one step, and gaps."""
    is_own = pl.col("step") >= 0
    if "alternative" in frame.columns:
        way_out = f"{ON_PATH} keeps the one that was continued"
    elif "node" in frame.columns:
        way_out = f"{STEP_PATHS} makes a solution of each path through a tree"
    else:
        way_out = "two solutions need two ids"
    refuse(
        frame,
        pl.struct("__row", "step").is_duplicated(),
        f"is there more than once, which format {format_name!r} cannot hold. Hint: {way_out}.",
    )
    refuse(
        frame.filter(is_own),
        pl.col("step") != pl.int_range(pl.len()).over("__row"),
        (
            "does not follow the step before; steps are numbered 0, 1, 2 and on, -1 is the "
            "problem before any step"
        ),
    )
    refuse(frame, pl.col("step") < -1, "steps are numbered from 0, or from -1")


def right_or_wrong(frame: pl.DataFrame, labels: Labels) -> dict[str, pl.Expr]:
    """Return what each column that labels says, which must agree: Boolean, null for nothing."""
    rating = pl.col("rating")
    says = {
        "is_correct": pl.col("is_correct"),
        "rating": pl.when(rating == 0).then(pl.lit(labels.neutral)).otherwise(rating > 0),
        "soft": pl.col("soft") > pl.lit(labels.threshold, dtype=pl.Float64),
    }
    says = {name: say for name, say in says.items() if name in frame.columns}
    if "rating" in says:
        refuse(
            frame,
            ~rating.is_in([-1, 0, 1]),
            lambda row: f"rating is {row['rating']}, must be -1, 0 or 1",
        )
        if "is_correct" in says:
            refuse(
                frame,
                (rating == 0) & pl.col("is_correct").is_not_null() & (says["rating"].is_null()),
                lambda row: (
                    f"is_correct is {row['is_correct']}, but rating is 0, which says neither. "
                    f"Hint: drop the column that does not count"
                ),
            )
    names = list(says)
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            refuse(
                frame,
                says[first] != says[second],
                partial(_contradiction, first, second),
            )
    return says


def _contradiction(first: str, second: str, row: Mapping[str, object]) -> str:
    return (
        f"{first} is {row[first]}, but {second} is {row[second]}, which says otherwise. Hint: drop the "
        f"column that does not count"
    )


def _label(frame: pl.DataFrame, labels: Labels, format_name: str) -> pl.Expr:
    """Return the label of each step, from all columns that have something to say."""
    says = right_or_wrong(frame, labels)
    if "rating" in says and labels.neutral is None:
        refuse(
            frame,
            pl.col("rating") == 0,
            (
                f"rating 0 is neither right nor wrong, which is all that format {format_name!r} can "
                f"hold. Hint: {setting('neutral', True)} counts it as right, as OpenR does, {setting('neutral', False)} as wrong"
            ),
        )
    return pl.coalesce(*says.values(), pl.lit(None, dtype=pl.Boolean))


def _carried(
    frame: pl.DataFrame,
    labels: Labels,
    format_name: str,
    taken: Collection[str],
) -> list[str]:
    """Name the columns that become keys of a row; refuse what has no place."""
    settled = _STRUCTURE | {"__label", "is_correct", "rating"}
    if labels.threshold is not None:
        settled |= {"soft"}
    if "is_on_path" in frame.columns and frame["is_on_path"].all(ignore_nulls=False):
        settled |= {"is_on_path"}
    carried = carried_columns(frame, settled, format_name)
    refuse_taken(carried, taken, format_name)
    refuse(
        frame,
        pl.col("problem") != pl.col("problem").first().over("__row"),
        "has another problem text than the solution's first step",
    )
    return carried


def carried_columns(frame: pl.DataFrame, settled: Collection[str], format_name: str) -> list[str]:
    """Name the other columns; refuse those whose values differ within a solution."""
    others = [
        name
        for name in frame.columns
        if name not in settled and frame[name].null_count() < frame.height
    ]
    varies = frame.select(
        pl.col(name).ne_missing(pl.col(name).first().over("__row")).any() for name in others
    )
    lost = [name for name in others if name in _OF_STEPS or varies[name].item()]
    if lost:
        names = ", ".join(repr(name) for name in lost)
        way_out = (
            f" {setting('threshold', 0.5)} turns soft values above it into labels, as OpenR does."
        )
        raise ColumnsError(
            f"format {format_name!r} has no place for what differs from step to step in the "
            f"column{'s' if len(lost) > 1 else ''} {names}. Hint: {setting('drop', lost, text=f'steps.drop({names})')} leaves that out."
            f"{way_out if 'soft' in lost else ''}"
        )
    return others


def refuse_taken(carried: Iterable[str], taken: Collection[str], format_name: str) -> None:
    """Refuse columns with the name of a key that has a meaning."""
    for name in carried:
        if name in taken:
            raise ColumnsError(
                f"column {name!r} has the name of a key that has its own meaning in format {format_name!r}. "
                f"Hint: {_rename(name, f'source_{name}')}."
            )


def underived(rows: pl.DataFrame, taken: Sequence[str]) -> list[str]:
    """Name the ids that reading would not come to by itself."""
    bare = rows.select(
        "problem", "__texts", *(name for name in ("source_file",) if name in rows.columns)
    )
    table = Table(bare.lazy(), dict(bare.schema), {}, "raise", [])
    derived = identify(table, pl.col("__texts")).frame.select(IDS).collect()
    return [
        name
        for name in IDS
        if name not in taken and not (rows[name].cast(pl.String) == derived[name]).all()
    ]


def json_text(column: str | pl.Expr) -> pl.Expr:
    """Write each value of a column as JSON."""
    value = pl.col(column) if isinstance(column, str) else column
    encoded = pl.struct(value.alias("v")).struct.json_encode()
    return encoded.str.strip_prefix('{"v":').str.strip_suffix("}")


def json_object(members: Mapping[str, pl.Expr], optional: Mapping[str, pl.Expr]) -> pl.Expr:
    """Write JSON objects out of JSON values; an optional member that is null is left out."""
    parts = [_member(name, value) for name, value in members.items()]
    parts += [
        pl.when(value.is_not_null()).then(_member(name, json_text(value)))
        for name, value in optional.items()
    ]
    inside = pl.concat_str(parts, separator=", ", ignore_nulls=True)
    return pl.concat_str(pl.lit("{"), inside, pl.lit("}"))


def _member(name: str, value: pl.Expr) -> pl.Expr:
    return pl.concat_str(pl.lit(f"{json.dumps(name, ensure_ascii=False)}: "), value)


def json_array(items: pl.Expr) -> pl.Expr:
    """Write JSON arrays out of the JSON values of a group."""
    return pl.concat_str(pl.lit("["), items.str.join(", "), pl.lit("]"))


def json_lines(
    frame: pl.DataFrame, members: Mapping[str, pl.Expr], carried: Sequence[str]
) -> pl.Series:
    """Write a JSON object per row: the format's keys, then carried columns where they have a value."""
    line = json_object(members, {name: pl.col(name) for name in carried})
    return frame.select(line.alias("line")).to_series()


def _rename(old: str, new: str) -> str:
    return setting("rename", {old: new}, text=f"steps.rename({{{old!r}: {new!r}}})")
