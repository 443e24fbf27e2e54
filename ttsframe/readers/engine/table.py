"""File formats, and the lazy tables of source rows that they turn into attempts or steps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

import polars as pl

from ttsframe._checks import list_of_attempts
from ttsframe._exprs import raise_where
from ttsframe._settings import setting
from ttsframe._traps import Trap
from ttsframe.errors import ColumnsError, SourceError
from ttsframe.readers.engine.dtypes import as_instance, struct_fields
from ttsframe.readers.engine.json_rows import FILE, ROW
from ttsframe.readers.engine.jsonl import locate, row_error
from ttsframe.readers.engine.sniff import DataFile, Unpacked
from ttsframe.schema import TRAJECTORY_COLUMNS

OnError: TypeAlias = Literal["raise", "skip"]

_MESSAGES: Final = pl.List(pl.Struct({"role": pl.String, "content": pl.String}))
_LARGEST_COUNT: Final = 2**53
_LONGEST_VALUE: Final = 60


class Scores(NamedTuple):
    """What is known of the scores that a format holds."""

    column: Literal["step_scores", "score"]
    higher_is_better: bool = True
    least: float | None = 0.0
    """None for a score without a bound."""
    most: float | None = 1.0


class Unpacking(NamedTuple):
    """How the rows of a file that is no table are found: a log, an archive, a document."""

    recognizes: Callable[[DataFile], bool]
    """Whether a file is one of the format; reads its beginning or its list of members at most."""
    rows: Callable[[DataFile], Iterator[Unpacked]]
    """Yields the rows, with the columns that the format declares. A row that cannot be read has a
    fault; a file of which nothing can be read is a SourceError."""
    expects: str
    """What such a file is, in words, for messages."""


class FileFormat(NamedTuple):
    """A file format: how to recognize it, and how its rows become attempts or steps."""

    summary: str
    """One line that describes the format."""
    requires: tuple[tuple[str, ...], ...]
    """Required columns: at least one of each group."""
    dtypes: Mapping[str, pl.DataType]
    """Dtypes of the columns that the format defines."""
    to_rows: Callable[[Table], pl.LazyFrame]
    evidence: tuple[str, ...] = ()
    """Columns of which at least one must exist to recognize the format automatically."""
    shapes: Mapping[str, type[pl.DataType] | pl.DataType] = {}
    """Dtypes of columns that distinguish it from a format with the same column names; of lists, at every depth."""
    as_text: frozenset[str] = frozenset()
    """Columns whose values are kept as JSON text."""
    is_row_attempt: bool = False
    """Whether a row is one attempt, so that a list of attempts shows another format."""
    piece: str | None = None
    """For runs written as several files, a pattern for the end of the path of such a file."""
    unit: str = "attempt"
    """What a row of the source is."""
    columns: Mapping[str, str] = {}
    """Columns of the source that get another name, by their own; a dot leads into a struct."""
    is_exchangeable: bool | None = None
    """Whether attempts are independent samples; None where the rows say it, or nothing does."""
    scores: Scores | None = None
    """The scores; None where the format holds none."""
    ignores: tuple[str, ...] = ()
    """What the tool writes and the reader leaves out."""
    traps: tuple[Trap, ...] = ()
    """What is known to mislead; `validate` reports it."""
    notices: Callable[[DataFile, Mapping[str, pl.DataType]], Iterable[str]] | None = None
    """Yields what a reader should be told about a file with some columns when it is opened."""
    unpacking: Unpacking | None = None
    """For files that are no tables: how their rows are found."""

    @property
    def expects(self) -> str:
        """The required columns, in words."""
        if self.unpacking is not None:
            return self.unpacking.expects
        groups = [group for group in (*self.requires, self.evidence) if group]
        return " and ".join(
            self._expected(group[0]) if len(group) == 1 else f"one of {list(group)}"
            for group in groups
        )

    def _expected(self, name: str) -> str:
        shape = self.shapes.get(name)
        if shape is None:
            return repr(name)
        return f"{name!r} (a {shape if isinstance(shape, pl.DataType) else shape.__name__})"

    def has_shapes(self, schema: Mapping[str, pl.DataType]) -> bool:
        """Return whether the distinguishing columns have the right dtypes."""
        if self.is_row_attempt and list_of_attempts(schema) is not None:
            return False
        return all(
            _has_shape(schema.get(name, pl.Null()), shape) for name, shape in self.shapes.items()
        )

    def accepts(self, columns: Collection[str]) -> bool:
        """Return whether a table has the required columns."""
        return all(any(name in columns for name in group) for group in self.requires)

    def recognizes(self, columns: Collection[str]) -> bool:
        """Return whether a table is in this format, judging by its columns."""
        has_evidence = not self.evidence or any(name in columns for name in self.evidence)
        return has_evidence and self.accepts(columns)


def _has_shape(dtype: pl.DataType, shape: type[pl.DataType] | pl.DataType) -> bool:
    if isinstance(dtype, pl.Null):
        return True
    if isinstance(shape, pl.List):
        return isinstance(dtype, pl.List) and _has_shape(
            as_instance(dtype.inner), as_instance(shape.inner)
        )
    return dtype == shape if isinstance(shape, pl.DataType) else isinstance(dtype, shape)


class Table(NamedTuple):
    """Lazy rows of one file format, with their schema and origin."""

    frame: pl.LazyFrame
    """The source columns, and the number and file of each row."""
    schema: dict[str, pl.DataType]
    """The source columns only."""
    row_words: Mapping[str, str]
    """The name of a row in each file: line, element or row."""
    on_error: OnError
    skipped: list[str]
    """Messages for the rows left out; `check` appends to it."""
    unpacked: Mapping[str, DataFile] = {}
    """The files that are no tables, by name."""

    def locate(self, row: Mapping[str, object]) -> str:
        """Name the row of a file."""
        path = str(row[FILE])
        if path in self.unpacked:
            return locate(self.unpacked[path], int(str(row[ROW])))
        return f"{path}, {self.row_words[path]} {row[ROW]}"

    def check(
        self,
        frame: pl.LazyFrame,
        broken: pl.Expr,
        details: Sequence[str],
        reason: Callable[[Mapping[str, object]], str],
    ) -> pl.LazyFrame:
        """Raise at collection where `broken` is true, naming file and row, or leave the row out."""
        described = [ROW, FILE, *details]
        if self.on_error == "raise":

            def error(rows: pl.DataFrame) -> SourceError:
                row = rows.row(0, named=True)
                return row_error(self.locate(row), reason(row))

            return frame.filter(raise_where(pl.struct(broken.alias("broken"), *described), error))
        # Counted now, so that the count does not depend on what is collected later.
        rows = frame.filter(broken).select(described).collect()
        self.skipped.extend(
            f"{self.locate(row)}: {reason(row)}" for row in rows.iter_rows(named=True)
        )
        return frame.filter(~broken.fill_null(value=False))


def problem_hash(text: pl.Expr) -> pl.Expr:
    """Return an id for a problem without one: 16 hex digits of BLAKE2b-64 of its stripped text."""
    # Saved runs are paired by this id, so the digest must never change.
    return _per_distinct(
        text, lambda one: hashlib.blake2b(one.strip().encode(), digest_size=8).hexdigest()
    )


def split_target(target: pl.Expr) -> dict[str, pl.Expr]:
    """Return `gold` and `solution` of targets that may be worked out, with a mark before the answer."""
    gold = _per_distinct(target, _final_answer)
    return {"gold": gold, "solution": pl.when(gold != target).then(target)}


def _final_answer(target: str) -> str:
    """Return what a solution marks as its answer; an answer that is not worked out is returned as it is."""
    _, mark, after = target.rpartition("####")  # as in GSM8K; elsewhere it begins a heading
    if mark and after.strip() and "\n" not in after.strip():
        return after.strip()
    _, mark, after = target.rpartition("\\boxed{")
    if not mark:
        return target
    depth = 1
    for end, character in enumerate(after):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if not depth:
            return after[:end]
    return target


def _per_distinct(texts: pl.Expr, function: Callable[[str], str]) -> pl.Expr:
    """Apply a function to each distinct text."""

    def apply(column: pl.Series) -> pl.Series:
        distinct = column.unique().drop_nulls()
        made = pl.Series([function(text) for text in distinct], dtype=pl.String)
        return column.replace_strict(distinct, made, default=None, return_dtype=pl.String)

    return texts.map_batches(apply, return_dtype=pl.String, is_elementwise=True)


def is_no_count(value: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Return whether a value is there and no whole number; JSON of mixed types is text."""
    if dtype.is_integer() or isinstance(dtype, pl.Null):
        return pl.lit(value=False)
    if dtype.is_float():
        return ~(value.is_finite() & (value == value.round()) & (value.abs() < _LARGEST_COUNT))
    if isinstance(dtype, pl.String):
        return ~value.str.contains(r"^-?[0-9]{1,15}(?:\.0+)?$")
    return value.is_not_null()


def is_no_number(value: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Return whether a value is there and no finite number; JSON of mixed types is text."""
    if dtype.is_integer() or isinstance(dtype, pl.Null):
        return pl.lit(value=False)
    if dtype.is_float():
        return ~value.is_finite()
    if isinstance(dtype, pl.String):
        return ~value.str.contains(r"^-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?$")
    return value.is_not_null()


def shown(value: object) -> str:
    """Write a value of a row for a message, shortened."""
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]} ..."


def add_problem_id(table: Table, ids: Sequence[str], text: str) -> Table:
    """Add `problem_id`: the first existing id column, else the hash of the problem's text."""
    name = next((name for name in ids if name in table.schema), None)
    dtype = pl.String() if name is None else table.schema[name]
    identifier = problem_hash(pl.col(text)) if name is None else pl.col(name)
    if isinstance(dtype, pl.Categorical | pl.Enum | pl.Null):
        identifier, dtype = identifier.cast(pl.String), pl.String()
    if not (dtype.is_integer() or isinstance(dtype, pl.String)):
        raise ColumnsError(
            f"{', '.join(table.row_words)}: column {name!r} is {dtype}, must be String or an integer to "
            f"identify problems. Hint: cast it to String."
        )
    return table._replace(
        frame=table.frame.with_columns(identifier.alias("problem_id")),
        schema={**table.schema, "problem_id": dtype},
    )


def cast_columns(table: Table, wanted: Mapping[str, pl.DataType]) -> Table:
    """Cast source columns to their known dtypes, or raise if a cast is impossible."""
    casts, schema = [], dict(table.schema)
    for name, target in wanted.items():
        dtype = schema.get(name)
        if dtype is None or dtype == target:
            continue
        fitting = _castable(dtype, target)
        if fitting is None:
            files = ", ".join(table.row_words)
            lists = _lists_of_values(table.schema, wanted)
            if name in lists:
                named = ", ".join(map(repr, lists))
                raise ColumnsError(
                    f"{files}: column {name!r} is {dtype}, must be {target}, one value per attempt. Hint: "
                    f"frame.explode({named}) makes one row per attempt."
                )
            is_text = isinstance(dtype, pl.String) and isinstance(target, pl.List)
            cast = (
                "cast it (in CSV, a list is JSON text such as [0.9, 0.5])" if is_text else "cast it"
            )
            raise ColumnsError(
                f"{files}: column {name!r} is {dtype}, must be {target}. Hint: {cast}, or rename "
                f"another column with {setting('rename', {'yours': name})}."
            )
        if fitting != dtype:
            casts.append(pl.col(name).cast(fitting))
            schema[name] = fitting
    return table._replace(frame=table.frame.with_columns(casts), schema=schema)


def _lists_of_values(
    schema: Mapping[str, pl.DataType], wanted: Mapping[str, pl.DataType]
) -> list[str]:
    """Return the columns that hold a list where an attempt has one value."""
    return [
        name
        for name, dtype in schema.items()
        if isinstance(dtype, pl.List | pl.Array)
        and name in TRAJECTORY_COLUMNS
        and _castable(dtype, wanted.get(name, TRAJECTORY_COLUMNS[name].dtype)) is None
    ]


def _castable(dtype: pl.DataType, wanted: pl.DataType) -> pl.DataType | None:
    """Return the dtype to cast to (Float32 is kept), or None if no cast is safe."""
    if isinstance(dtype, pl.Null):
        return wanted
    if isinstance(wanted, pl.List):
        if not isinstance(dtype, pl.List | pl.Array):
            return None
        inner = _castable(as_instance(dtype.inner), as_instance(wanted.inner))
        return None if inner is None else pl.List(inner)
    if isinstance(wanted, pl.Struct):
        return _castable_struct(dtype, wanted) if isinstance(dtype, pl.Struct) else None
    if wanted.is_numeric():
        return dtype if isinstance(dtype, pl.Float32) else wanted if dtype.is_numeric() else None
    is_safe = dtype == wanted if isinstance(wanted, pl.Boolean) else _is_writable(dtype)
    return wanted if is_safe else None


def _is_writable(dtype: pl.DataType) -> bool:
    """Return whether values can be written as text."""
    return not (dtype.is_nested() or isinstance(dtype, pl.Duration | pl.Object))


def _castable_struct(dtype: pl.Struct, wanted: pl.Struct) -> pl.DataType | None:
    known = struct_fields(wanted)
    fields: dict[str, pl.DataType] = {}
    for name, inner in struct_fields(dtype).items():
        fitting = _castable(inner, known.get(name, inner))
        if fitting is None:
            return None
        fields[name] = fitting
    return pl.Struct(fields)


def explode_attempts(table: Table, lists: Sequence[str]) -> pl.LazyFrame:
    """Turn a row per problem into a row per attempt; all lists must be as long as the first."""
    leader, *others = lists
    n = pl.col(leader).list.len()
    lengths = {name: f"__n_{name}" for name in lists}
    counted = table.frame.with_columns(
        pl.col(name).list.len().cast(pl.Int64).alias(length) for name, length in lengths.items()
    )
    leading = pl.col(lengths[leader])
    broken = pl.any_horizontal(
        pl.col("problem_id").is_null(),
        leading.is_null() | (leading == 0),
        *((pl.col(lengths[name]) != leading).fill_null(value=False) for name in others),
    )

    def reason(row: Mapping[str, object]) -> str:
        if row["problem_id"] is None:
            return "problem_id is null, so the row belongs to no problem"
        problem = f"problem {row['problem_id']!r}"
        count = row[lengths[leader]]
        if count is None or count == 0:
            value = "null" if count is None else "an empty list"
            return f"{problem} has no attempt: {leader!r} is {value}"
        name = next(name for name in others if row[lengths[name]] not in {None, count})
        return (
            f"{problem} has {count} {leader!r} but {row[lengths[name]]} {name!r}; the two lists must "
            f"have the same length"
        )

    checked = table.check(counted, broken, ["problem_id", *lengths.values()], reason)
    filled = checked.drop(lengths.values()).with_columns(
        pl.int_ranges(n, dtype=pl.UInt32).alias("attempt"),
        *(pl.col(name).fill_null(pl.lit(None).repeat_by(n)) for name in others),
    )
    return filled.explode("attempt", *lists, empty_as_null=False, keep_nulls=True)


def unpack_structs(
    frame: pl.LazyFrame,
    schema: Mapping[str, pl.DataType],
    column: str,
    renamed: Mapping[str, str],
) -> tuple[pl.LazyFrame, list[str]]:
    """Turn the fields of an exploded list of structs into columns, and return their names."""
    taken = {"attempt", *schema} - {column}
    # The name of another column is prefixed by the name of the struct.
    names = {
        field: f"{column}_{field}" if (name := renamed.get(field, field)) in taken else name
        for field in struct_fields(schema[column])
    }
    unpacked = frame.with_columns(
        pl.col(column).struct.field(field).alias(f"__{name}") for field, name in names.items()
    ).drop(column)
    return unpacked.rename({f"__{name}": name for name in names.values()}), list(names.values())


def set_apart(
    table: Table, kept: Collection[str], prefix: str, others: Mapping[str, str] = {}
) -> Table:
    """Rename columns that only happen to have the name of a column of attempts, and some others."""
    named = {name: other for name, other in others.items() if name in table.schema}
    of_attempts = TRAJECTORY_COLUMNS.keys() - {"problem_id", "source_file", *kept}
    names = {
        name: f"{prefix}{name}"
        for name in table.schema
        if name in of_attempts or name in named.values()
    }
    names |= named
    return table._replace(
        frame=table.frame.rename(names),
        schema={names.get(name, name): dtype for name, dtype in table.schema.items()},
    )


def number_attempts(
    frame: pl.LazyFrame, by: Sequence[str] = (), order: str | None = None
) -> pl.LazyFrame:
    """Add `attempt`: the number of the row within its problem and run, by a column or as the rows are."""
    names = frame.collect_schema().names()
    run = [name for name in ("source_file", *by, "problem_id") if name in names]
    row = pl.int_range(pl.len(), dtype=pl.UInt32)
    position = row.over(run) if order is None else row.over(run, order_by=[order, row])
    return frame.with_columns(position.alias("attempt"))


def refuse_mixed(table: Table, *names: str) -> Table:
    """Raise where rows of one column are conversations, and others texts; or leave the rarer kind out."""
    for name in names:
        if isinstance(table.schema[name], pl.String):  # which JSON of mixed kinds is read as
            is_messages = pl.col(name).str.contains(r'^\[\{"(?:role|content)": ?"')
            table = (
                _read_conversations(table, name)
                if table.on_error == "skip" and _is_mostly(is_messages, table.frame)
                else _refuse(table, is_messages, f"{name!r} is a list of messages, but text")
            )
    return table


def _is_mostly(is_so: pl.Expr, frame: pl.LazyFrame) -> bool:
    return frame.select(is_so.cast(pl.Float64).mean().fill_null(0.0) > 0.5).collect().item() is True


def _refuse(table: Table, broken: pl.Expr, what: str) -> Table:
    reason = _always(f"{what} in other rows; must be the same in all")
    return table._replace(frame=table.check(table.frame, broken, [], reason))


def _read_conversations(table: Table, name: str) -> Table:
    """Read conversations that are JSON because other rows are no conversations; these are left out."""
    read = pl.col(name).map_batches(
        lambda texts: pl.Series([_messages(text) for text in texts], dtype=_MESSAGES),
        return_dtype=_MESSAGES,
        is_elementwise=True,
    )
    is_odd = pl.col(name).is_not_null() & read.is_null()
    known = _refuse(table, is_odd, f"{name!r} is no list of messages, but a list of messages")
    return known._replace(
        frame=known.frame.with_columns(read), schema={**known.schema, name: _MESSAGES}
    )


def _messages(text: str | None) -> list[dict[str, str | None]] | None:
    """Parse the messages of a conversation; None for anything else."""
    try:
        parsed = json.loads(text or "null")
        said = [{key: one[key] for key in ("role", "content")} for one in parsed]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    is_said = all(isinstance(value, str | None) for one in said for value in one.values())
    return said if is_said else None


def _always(reason: str) -> Callable[[Mapping[str, object]], str]:
    return lambda _: reason


def spoken(source: Table, name: str, role: str) -> pl.Expr:
    """Return a text, or what one role says in a conversation."""
    dtype = source.schema[name]
    if isinstance(dtype, pl.String | pl.Null):
        return pl.col(name).cast(pl.String)
    fields = struct_fields(as_instance(dtype.inner)) if isinstance(dtype, pl.List) else {}
    if not all(isinstance(fields.get(each), pl.String) for each in ("role", "content")):
        raise ColumnsError(
            f"{', '.join(source.row_words)}: column {name!r} is {dtype}, must be String or a list of messages "
            "with 'role' and 'content'."
        )
    message = pl.element().struct.field
    said = pl.when(message("role") == role).then(message("content"))
    return pl.col(name).list.eval(said).list.drop_nulls().list.join("\n\n")


def order_columns(frame: pl.LazyFrame, first: Mapping[str, object]) -> pl.LazyFrame:
    """Put the columns named by a mapping first, in its order, and all others after them."""
    names = frame.collect_schema().names()
    leading = [name for name in first if name in names]
    return frame.select(*leading, *(name for name in names if name not in first))
