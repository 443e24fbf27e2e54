"""Gold answers from a second file."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from ttsframe._settings import setting
from ttsframe.errors import ColumnsError, SourceError
from ttsframe.readers.engine.dtypes import resolve_dtype
from ttsframe.readers.engine.json_rows import FILE, ROW
from ttsframe.readers.engine.jsonl import JsonFile, fault_error, scan
from ttsframe.readers.engine.scan import open_table
from ttsframe.readers.engine.sources import Candidate, Source, one_source
from ttsframe.readers.engine.survey import Room, open_file
from ttsframe.readers.engine.table import order_columns, problem_hash
from ttsframe.schema import TRAJECTORY_COLUMNS

_COLUMNS = {
    "problem_id": ("problem_id", "unique_id", "id", "idx"),
    "problem": ("problem", "question"),
    "gold": (
        "gold",
        "answer",
        "gt",
        "ground_truth",
        "ground_truth_answer",
        "groundtruth",
        "final_answer",
    ),
    "solution": ("solution",),
}
_GIVEN = ("gold", "solution")


class Gold(NamedTuple):
    """Gold answers of the problems of a run, and the problems without one."""

    answers: pl.DataFrame
    """One row per problem: the columns `by`, and the new ones, prefixed by two underscores."""
    by: list[str]
    existing: list[str]
    """Columns of gold answers and solutions that the attempts already have."""
    n_problems: int
    unmatched: list[object]

    def attach(self, attempts: pl.LazyFrame) -> pl.LazyFrame:
        """Join the gold answers to the attempts; existing values are kept."""
        columns = [name for name in self.answers.columns if name not in self.by]
        names = {name: name.removeprefix("__") for name in columns}
        frame = attempts.join(
            self.answers.lazy(), on=self.by, how="left", maintain_order="left"
        ).with_columns(
            pl.coalesce(*([name] if name in self.existing else []), new).alias(name)
            for new, name in names.items()
        )
        return order_columns(frame.drop(columns), TRAJECTORY_COLUMNS)


class _Key(NamedTuple):
    """A column of the attempts, and the column and value of the file that it must equal."""

    column: str
    source: str
    value: pl.Expr


_KEYS = (
    _Key("problem_id", "problem_id", pl.col("problem_id")),
    # The id of problems that had none; works for attempts saved without their texts.
    _Key("problem_id", "problem", problem_hash(pl.col("problem"))),
    _Key("problem", "problem", pl.col("problem").str.strip_chars()),
)


def find_gold(attempts: pl.LazyFrame, source: Source) -> Gold:
    """Find the gold answer, and solution, of each problem by its id, else by its text."""
    candidate = one_source(source, "gold")
    path = candidate.name
    table = _read_table(candidate)
    schema = attempts.collect_schema()
    keys = [key for key in _KEYS if key.column in schema and key.source in table.columns]
    if not keys:
        raise ColumnsError(
            f"{path}: no column that identifies problems; found: {table.columns}; expected one of "
            f"{list(_COLUMNS['problem_id'])} or {list(_COLUMNS['problem'])}."
        )
    # Collected now, so that a file that matches no problem is an error and not a column of nulls.
    existing = [name for name in _GIVEN if name in schema]
    named = {"problem_id": None, **{key.column: None for key in keys}}
    problems = attempts.select(*named, *existing).unique().collect()
    matched = _match(problems, table, keys, path)
    if matched.is_empty():
        raise SourceError(
            f"{path}: matches no problem; found for example {keys[0].source} {table[keys[0].source][0]!r}, "
            f"expected for example {problems[keys[0].column].min()!r}. Hint: both files need the same ids, or "
            f"the same problem texts."
        )
    if "gold" in existing:
        _refuse_disagreement(matched, path)
    return _one_per_problem(problems, matched, existing)


def _read_table(candidate: Candidate) -> pl.DataFrame:
    """Read the gold answers with canonical column names, all as String."""
    path = candidate.name
    opened = open_file(candidate, (), frozenset(), {}, Room())
    if opened is None:
        raise SourceError(
            f"{path}: is neither Parquet, Arrow IPC, JSON nor CSV, judging by its first bytes."
        )
    if opened.faults:
        raise fault_error(opened.file, opened.faults[0])
    if opened.is_json:
        item = JsonFile(opened.file, opened.has_lone_surrogates, frozenset())
        schema = {
            name: resolve_dtype(dtype, unseen=pl.String()) for name, dtype in opened.schema.items()
        }
        table = scan([item], schema).drop(ROW, FILE).collect()
    else:
        table = open_table(opened.file, opened.schema).collect()
    names = {
        column: next((name for name in choices if name in table.columns), None)
        for column, choices in _COLUMNS.items()
    }
    if names["gold"] is None:
        raise ColumnsError(
            f"{path}: no column of gold answers; found: {table.columns}; expected one of "
            f"{list(_COLUMNS['gold'])}."
        )
    texts = table.select(
        pl.col(name).cast(pl.String).alias(column) for column, name in names.items() if name
    )
    return texts.filter(pl.col("gold").is_not_null())


def _match(
    problems: pl.DataFrame, table: pl.DataFrame, keys: list[_Key], path: str
) -> pl.DataFrame:
    """Return the problems with a gold answer, found by the first key that matches."""
    given = [name for name in _GIVEN if name in table.columns]
    joined = problems
    for number, key in enumerate(keys):
        answers = table.select(key.value.alias("__key"), *given).filter(
            pl.col("__key").is_not_null()
        )
        _refuse_two_answers(answers, key, path)
        joined = joined.with_columns(
            pl.col(key.column).cast(pl.String).str.strip_chars().alias("__key")
        ).join(
            answers.unique("__key", keep="first", maintain_order=True).rename({
                name: f"__{name}_{number}" for name in given
            }),
            on="__key",
            how="left",
        )
    return joined.select(
        *problems.columns,
        *(
            pl.coalesce(f"__{name}_{number}" for number in range(len(keys))).alias(f"__{name}")
            for name in given
        ),
    ).filter(pl.col("__gold").is_not_null())


def _refuse_two_answers(answers: pl.DataFrame, key: _Key, path: str) -> None:
    clashing = (
        answers
        .group_by("__key")
        .agg(pl.col("gold").unique().sort())
        .filter(pl.col("gold").list.len() > 1)
        .sort("__key")
    )
    if not clashing.is_empty():
        name, golds = clashing.row(0)
        raise SourceError(
            f"{path}: several gold answers for each of {clashing.height} problems, for example "
            f"{key.source} {name!r}: {golds}. Hint: keep one row per problem."
        )


def _refuse_disagreement(matched: pl.DataFrame, path: str) -> None:
    """Raise if the attempts already have a different gold answer."""
    differing = matched.filter(pl.col("gold") != pl.col("__gold")).sort("problem_id")
    if not differing.is_empty():
        row = differing.row(0, named=True)
        raise SourceError(
            f"{path}: contradicts the gold answers of the attempts for {differing.height} problems, for example "
            f"{row['problem_id']!r}: {row['gold']!r} in the attempts, {row['__gold']!r} here. Hint: keep the "
            f"existing answers under another name with {setting('rename', {'its column': 'source_gold'})}."
        )


def _one_per_problem(problems: pl.DataFrame, matched: pl.DataFrame, existing: list[str]) -> Gold:
    """Reduce the matches to one row per problem."""
    columns = [f"__{name}" for name in _GIVEN if f"__{name}" in matched.columns]
    by = ["problem_id"]
    answers = matched.select(*by, *columns).unique(maintain_order=True)
    if answers["problem_id"].n_unique() < answers.height:  # one id has several texts
        by = ["problem_id", "problem"]
        answers = matched.select(*by, *columns).unique(maintain_order=True)
    has_gold = pl.col("problem_id").is_in(matched["problem_id"].implode())
    if "gold" in existing:
        has_gold |= pl.col("gold").is_not_null()
    unmatched = problems.filter(~has_gold)["problem_id"].unique().sort().to_list()
    return Gold(answers, by, existing, problems["problem_id"].n_unique(), unmatched)
