"""Reference answers from a second file."""

from __future__ import annotations

from os import PathLike
from typing import NamedTuple

import polars as pl

from ttsframe.errors import ColumnsError, SourceError
from ttsframe.readers._jsonl import FILE, ROW, JsonFile, fault_error, scan
from ttsframe.readers._load import open_file
from ttsframe.readers._sources import one_file
from ttsframe.readers._table import canonical

_GOLD = (
    "gold",
    "answer",
    "gt",
    "ground_truth",
    "ground_truth_answer",
    "groundtruth",
    "final_answer",
)
_IDS = ("problem_id", "unique_id", "id", "idx")
_TEXTS = ("problem", "question")
_KEYS = ("problem_id", "problem")


class WithGold(NamedTuple):
    """Attempts with reference answers, and the problems that the file has none for."""

    frame: pl.LazyFrame
    n_problems: int
    unmatched: list[object]


def with_gold(attempts: pl.LazyFrame, source: str | PathLike[str]) -> WithGold:
    """Add ``gold`` (and ``solution``) by problem id, else by the problem's text."""
    # The ids and texts of the problems are collected at once, so that a file that fits no problem
    # is an error here and not a column of nulls later.
    path = one_file(source, "gold")
    table = _read_table(str(path))
    schema = attempts.collect_schema()
    keys = [name for name in _KEYS if name in schema and name in table.columns]
    if not keys:
        raise ColumnsError(
            f"{path}: no column to join by; found: {table.columns}. Expected one of {list(_IDS)}, or "
            f"{list(_TEXTS)} where the attempts have 'problem'."
        )
    own = [name for name in ("gold", "solution") if name in schema]
    problems = attempts.select("problem_id", *(_KEYS[1:] if "problem" in keys else ()), *own)
    distinct = problems.unique().collect().with_columns(_as_key("problem_id").alias("__id"))
    for key in keys:
        distinct = _joined(distinct, table, key, str(path))
    found = pl.coalesce(f"__gold_{key}" for key in keys)
    matched = distinct.with_columns(found.alias("__gold")).filter(pl.col("__gold").is_not_null())
    if matched.is_empty():
        some = distinct["problem_id"].head(3).to_list()
        theirs = table[keys[0]].head(3).to_list()
        raise SourceError(
            f"{path}: fits no problem; the attempts have problem_id {some}, the file {keys[0]} {theirs}. "
            f"Hint: both need the same ids, or the same texts of the problems."
        )
    if "gold" in own:
        _refuse_disagreement(matched, str(path))
    return _attach(attempts, distinct, matched, keys, own)


def _attach(
    attempts: pl.LazyFrame,
    distinct: pl.DataFrame,
    matched: pl.DataFrame,
    keys: list[str],
    own: list[str],
) -> WithGold:
    answers = matched.select(
        "problem_id",
        *(name for name in ("problem",) if name in matched.columns),
        "__gold",
        *(
            [pl.coalesce(f"__solution_{key}" for key in keys).alias("__solution")]
            if f"__solution_{keys[0]}" in matched.columns
            else []
        ),
    ).unique()
    by = [name for name in ("problem_id", "problem") if name in answers.columns]
    joined = attempts.join(
        answers.lazy(), on=by, how="left", nulls_equal=True, maintain_order="left"
    )
    added = [name for name in ("gold", "solution") if f"__{name}" in answers.columns]
    frame = joined.with_columns(
        pl.coalesce(*([name] if name in own else []), f"__{name}").alias(name) for name in added
    ).drop(f"__{name}" for name in added)
    has_gold = pl.col("__gold").is_not_null()
    if "gold" in own:
        has_gold |= pl.col("gold").is_not_null()
    lacking = distinct.join(answers.select(*by, "__gold"), on=by, how="left", nulls_equal=True)
    unmatched = lacking.filter(~has_gold)["problem_id"].unique().sort().to_list()
    return WithGold(canonical(frame), distinct["problem_id"].n_unique(), unmatched)


def _joined(distinct: pl.DataFrame, table: pl.DataFrame, key: str, path: str) -> pl.DataFrame:
    """Join the answers by one key, under names of that key."""
    values = [name for name in ("gold", "solution") if name in table.columns]
    answers = (
        table
        .select(_as_key(key).alias("__key"), *values)
        .filter(pl.col("__key").is_not_null() & pl.col("gold").is_not_null())
        .unique()
    )
    clashing = (
        answers
        .group_by("__key")
        .agg(pl.col("gold").unique().sort())
        .filter(pl.col("gold").list.len() > 1)
    )
    if not clashing.is_empty():
        name, golds = clashing.sort("__key").row(0)
        raise SourceError(
            f"{path}: {clashing.height} problems have two reference answers, such as {key} {name!r}: "
            f"{golds}. Hint: keep one row per problem."
        )
    once = answers.unique("__key", keep="first").rename({
        name: f"__{name}_{key}" for name in values
    })
    left = "__id" if key == "problem_id" else "__text"
    return distinct.with_columns(_as_key(key).alias(left)).join(
        once, left_on=left, right_on="__key", how="left"
    )


def _as_key(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.String).str.strip_chars()


def _refuse_disagreement(matched: pl.DataFrame, path: str) -> None:
    """Raise where the attempts have a reference answer already, and another one."""
    differing = matched.filter(pl.col("gold") != pl.col("__gold")).sort("problem_id")
    if not differing.is_empty():
        row = differing.row(0, named=True)
        raise SourceError(
            f"{path}: {differing.height} problems have another reference answer already, such as "
            f"{row['problem_id']!r}: {row['gold']!r}, here {row['__gold']!r}. Hint: move the one that is "
            f"there out of the way with rename={{'its column': 'source_gold'}}."
        )


def _read_table(path: str) -> pl.DataFrame:
    """Read the file of answers under the names id, problem, gold, solution."""
    from pathlib import Path

    opened = open_file(Path(path), ())
    if opened is None:
        try:
            table = pl.read_csv(path, infer_schema=False)
        except pl.exceptions.PolarsError as error:
            raise SourceError(f"{path}: cannot be read as CSV ({error}).") from error
    elif opened.faults:
        raise fault_error(opened.file, opened.faults[0])
    elif opened.frame is None:
        item = JsonFile(opened.file, opened.has_lone_surrogates, frozenset())
        table = scan([item], opened.schema).drop(ROW, FILE).collect()
    else:
        table = opened.frame.collect()
    names = {
        target: next((name for name in choices if name in table.columns), None)
        for target, choices in {
            "problem_id": _IDS,
            "problem": _TEXTS,
            "gold": _GOLD,
            "solution": ("solution",),
        }.items()
    }
    if names["gold"] is None:
        raise ColumnsError(
            f"{path}: no column of reference answers; found: {table.columns}; expected one of "
            f"{list(_GOLD)}."
        )
    return table.select(
        pl.col(name).cast(pl.String).alias(target) for target, name in names.items() if name
    )
