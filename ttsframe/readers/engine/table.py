"""What every reader is made of: a lazy table of source rows, checks that name the row, canonical columns."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import polars as pl

from ttsframe._exprs import raise_where
from ttsframe._settings import SKIP_ROWS, setting
from ttsframe.errors import ColumnsError, SourceError
from ttsframe.readers.engine.jsonl import FILE, ROW
from ttsframe.readers.engine.rows import instance
from ttsframe.schema import TRAJECTORY_COLUMNS

OnError: TypeAlias = Literal["raise", "skip"]


class Reader(NamedTuple):
    """One source format: how to recognise it, and how its rows become attempts."""

    summary: str
    """One line for people."""
    requires: tuple[tuple[str, ...], ...]
    """Columns it needs: one of each group."""
    dtypes: Mapping[str, pl.DataType]
    """Source columns whose dtype is known, so that nothing else is taken for it."""
    to_attempts: Callable[[Table], pl.LazyFrame]
    evidence: tuple[str, ...] = ()
    """Columns of which one must be there as well for the format to be recognised unnamed."""
    shapes: Mapping[str, type[pl.DataType]] = {}
    """Columns that tell it from a format with the same names: what each must be."""
    as_text: frozenset[str] = frozenset()
    """Columns whose value, whatever it is, is handed on as JSON text."""
    piece: str | None = None
    """For a run written as one file per problem: what such a file's path ends in, as a pattern."""

    @property
    def expects(self) -> str:
        """The columns it needs, in words."""
        groups = [group for group in (*self.requires, self.evidence) if group]
        return " and ".join(
            self._expected(group[0]) if len(group) == 1 else f"one of {list(group)}"
            for group in groups
        )

    def _expected(self, name: str) -> str:
        shape = self.shapes.get(name)
        return repr(name) if shape is None else f"{name!r} (a {shape.__name__})"

    def has_shapes(self, schema: Mapping[str, pl.DataType]) -> bool:
        """Tell whether the columns that tell it from another format are what they must be."""
        return all(
            isinstance(schema.get(name, pl.Null()), (shape, pl.Null))
            for name, shape in self.shapes.items()
        )

    def accepts(self, columns: Collection[str]) -> bool:
        """Tell whether a table has the columns it needs."""
        return all(any(name in columns for name in group) for group in self.requires)

    def recognises(self, columns: Collection[str]) -> bool:
        """Tell whether a table is in this format, as far as its columns tell."""
        is_shown = not self.evidence or any(name in columns for name in self.evidence)
        return is_shown and self.accepts(columns)


class Table(NamedTuple):
    """Rows of one source format, lazily, and what is known of them."""

    frame: pl.LazyFrame
    """Source columns, and the number and file of each row."""
    schema: dict[str, pl.DataType]
    """Source columns only."""
    row_words: Mapping[str, str]
    """What a row is called in each file: line, element or row."""
    on_error: OnError
    skipped: list[str]
    """Grows by a message for each row left out."""

    def place(self, row: Mapping[str, object]) -> str:
        """Name the row of a file."""
        path = str(row[FILE])
        return f"{path}, {self.row_words[path]} {row[ROW]}"

    def check(
        self,
        frame: pl.LazyFrame,
        broken: pl.Expr,
        details: Sequence[str],
        reason: Callable[[Mapping[str, object]], str],
    ) -> pl.LazyFrame:
        """Raise at collection, naming file and row, where ``broken`` is true; or leave the row out."""
        described = [ROW, FILE, *details]
        if self.on_error == "raise":

            def error(rows: pl.DataFrame) -> SourceError:
                row = rows.row(0, named=True)
                return SourceError(
                    f"{self.place(row)}: {reason(row)}. Hint: repair the row, or "
                    f"{SKIP_ROWS} leaves such rows out and counts them."
                )

            return frame.filter(raise_where(pl.struct(broken.alias("broken"), *described), error))
        # counted at once: what is collected later must not decide what the count is
        rows = frame.filter(broken).select(described).collect()
        self.skipped.extend(
            f"{self.place(row)}: {reason(row)}" for row in rows.iter_rows(named=True)
        )
        return frame.filter(~broken.fill_null(value=False))


def problem_hash(text: pl.Expr) -> pl.Expr:
    """Return the id of a problem that has none: 16 hex digits of BLAKE2b-64 of its stripped text."""
    # Saved runs pair by this id: the digest must never change.
    return text.map_batches(_hash_texts, return_dtype=pl.String, is_elementwise=True)


def _hash_texts(texts: pl.Series) -> pl.Series:
    distinct = texts.unique().drop_nulls()
    hashes = [
        hashlib.blake2b(text.strip().encode(), digest_size=8).hexdigest() for text in distinct
    ]
    return texts.replace_strict(
        distinct, pl.Series(hashes, dtype=pl.String), default=None, return_dtype=pl.String
    )


def identified(table: Table, ids: Sequence[str], text: str) -> Table:
    """Add ``problem_id``: the first id column that is there, else the hash of the problem's text."""
    name = next((name for name in ids if name in table.schema), None)
    dtype = pl.String() if name is None else table.schema[name]
    found = problem_hash(pl.col(text)) if name is None else pl.col(name)
    if isinstance(dtype, pl.Categorical | pl.Enum | pl.Null):
        found, dtype = found.cast(pl.String), pl.String()
    if not (dtype.is_integer() or isinstance(dtype, pl.String)):
        raise ColumnsError(
            f"{', '.join(table.row_words)}: column {name!r} is {dtype}, must be String or an integer to "
            f"identify problems. Hint: cast it to String, so that files pair."
        )
    return table._replace(
        frame=table.frame.with_columns(found.alias("problem_id")),
        schema={**table.schema, "problem_id": dtype},
    )


def as_dtypes(table: Table, wanted: Mapping[str, pl.DataType]) -> Table:
    """Cast source columns to their known dtypes; a column that cannot be is an error at once."""
    casts, schema = [], dict(table.schema)
    for name, dtype in wanted.items():
        found = schema.get(name)
        if found is None or found == dtype:
            continue
        fitting = _fitting(found, dtype)
        if fitting is None:
            files = ", ".join(table.row_words)
            raise ColumnsError(
                f"{files}: column {name!r} is {found}, must be {dtype}. Hint: cast it, or rename "
                f"another column with {setting('rename', {'yours': name})}."
            )
        if fitting != found:
            casts.append(pl.col(name).cast(fitting))
            schema[name] = fitting
    return table._replace(frame=table.frame.with_columns(casts), schema=schema)


def _fitting(found: pl.DataType, wanted: pl.DataType) -> pl.DataType | None:
    """Return the dtype to cast to: the wanted one, but Float32 stays; None where no cast is safe."""
    if isinstance(found, pl.Null):
        return wanted
    if isinstance(wanted, pl.List):
        if not isinstance(found, pl.List | pl.Array):
            return None
        inner = _fitting(instance(found.inner), instance(wanted.inner))
        return None if inner is None else pl.List(inner)
    if isinstance(wanted, pl.Struct):
        return _fitting_struct(found, wanted) if isinstance(found, pl.Struct) else None
    if wanted.is_numeric():
        return found if isinstance(found, pl.Float32) else wanted if found.is_numeric() else None
    is_safe = found == wanted if isinstance(wanted, pl.Boolean) else not found.is_nested()
    return wanted if is_safe else None


def _fitting_struct(found: pl.Struct, wanted: pl.Struct) -> pl.DataType | None:
    known = {field.name: instance(field.dtype) for field in wanted.fields}
    fields: dict[str, pl.DataType] = {}
    for field in found.fields:
        dtype = instance(field.dtype)
        fitting = _fitting(dtype, known.get(field.name, dtype))
        if fitting is None:
            return None
        fields[field.name] = fitting
    return pl.Struct(fields)


def explode_attempts(table: Table, lists: Sequence[str]) -> pl.LazyFrame:
    """Turn a row per problem into a row per attempt; the lists go in step, the first one leads."""
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
            return "problem_id is null, and pairs with nothing"
        problem = f"problem {row['problem_id']!r}"
        count = row[lengths[leader]]
        if count is None or count == 0:
            found = "null" if count is None else "an empty list"
            return f"{problem} has no attempt: {leader!r} is {found}"
        name = next(name for name in others if row[lengths[name]] not in {None, count})
        return (
            f"{problem} has {count} {leader!r} but {row[lengths[name]]} {name!r}; the two lists must "
            f"be of one length"
        )

    checked = table.check(counted, broken, ["problem_id", *lengths.values()], reason)
    filled = checked.drop(lengths.values()).with_columns(
        pl.int_ranges(n, dtype=pl.UInt32).alias("attempt"),
        *(pl.col(name).fill_null(pl.lit(None).repeat_by(n)) for name in others),
    )
    return filled.explode("attempt", *lists, empty_as_null=False, keep_nulls=True)


def unpack(
    frame: pl.LazyFrame,
    schema: Mapping[str, pl.DataType],
    column: str,
    renamed: Mapping[str, str],
) -> tuple[pl.LazyFrame, list[str]]:
    """Turn the fields of an exploded list of structs into columns; return their names as well."""
    dtype = schema[column]
    inner = instance(dtype.inner) if isinstance(dtype, pl.List) else dtype
    fields = [field.name for field in inner.fields] if isinstance(inner, pl.Struct) else []
    taken = {"attempt", *schema} - {column}
    # a name that another column has already is prefixed by the struct's
    names = {
        field: f"{column}_{field}" if (name := renamed.get(field, field)) in taken else name
        for field in fields
    }
    unpacked = frame.with_columns(
        pl.col(column).struct.field(field).alias(f"__{name}") for field, name in names.items()
    ).drop(column)
    return unpacked.rename({f"__{name}": name for name in names.values()}), list(names.values())


def number_attempts(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Add ``attempt``: the number of the row within its problem, within its run."""
    run = [name for name in ("source_file", "problem_id") if name in frame.collect_schema()]
    return frame.with_columns(pl.int_range(pl.len(), dtype=pl.UInt32).over(run).alias("attempt"))


def canonical(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Put the columns that have a meaning first, in their order, and the others after them."""
    names = frame.collect_schema().names()
    known = [name for name in TRAJECTORY_COLUMNS if name in names]
    return frame.select(*known, *(name for name in names if name not in TRAJECTORY_COLUMNS))
