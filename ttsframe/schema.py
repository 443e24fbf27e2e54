"""The columns of `trajectories`: meaning, dtype, and the check that a frame has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

import polars as pl

from ttsframe._checks import check_frame, check_names
from ttsframe._exprs import run_plan
from ttsframe._settings import constant
from ttsframe._typing import ColumnNames, FrameT
from ttsframe.errors import ColumnsError

__all__ = [
    "CLUSTER_COLUMNS",
    "COUNT_COLUMNS",
    "CURVE_SCHEMA",
    "TRAJECTORY_COLUMNS",
    "Column",
    "drop_duplicate_completions",
    "holds_counts",
    "refuse_counts",
    "renumber_attempts",
    "require_columns",
    "require_kind",
]


class Column(NamedTuple):
    """One column of a table: its canonical dtype and its meaning."""

    dtype: pl.DataType
    meaning: str


TRAJECTORY_COLUMNS: Final[dict[str, Column]] = {
    "problem_id": Column(pl.String(), "the source's own id, else a hash of the problem's text"),
    "attempt": Column(pl.UInt32(), "0..n-1 within (by, problem_id), in the order sampled"),
    "problem": Column(pl.String(), "text of the problem"),
    "completion": Column(pl.String(), "text that the model wrote"),
    "solution": Column(pl.String(), "reference solution, which may hide the gold answer"),
    "step_scores": Column(pl.List(pl.Float64()), "PRM score after each step, in order"),
    "answer": Column(pl.String(), "extracted final answer; null = none found"),
    "answer_key": Column(pl.String(), "canonical key: equal keys = equivalent answers"),
    "gold": Column(pl.String(), "gold answer"),
    "gold_key": Column(pl.String(), "canonical key of the gold answer"),
    "is_correct": Column(pl.Boolean(), "graded; null only where nothing can be graded"),
    "is_correct_recorded": Column(pl.Boolean(), "another tool's grade that ours replaced"),
    "score": Column(pl.Float64(), "one score for the whole attempt; higher is better"),
    "n_tokens": Column(pl.Int64(), "generated tokens"),
    "n_prompt_tokens": Column(pl.Int64(), "tokens of the prompt"),
    "finish_reason": Column(pl.String(), "stop, length or error; null where unknown"),
    "is_exchangeable": Column(pl.Boolean(), "attempts are independent samples"),
    "source_file": Column(pl.String(), "file or folder of the row, when several were read"),
}
"""The columns of `trajectories` that have a meaning; any other column passes through unchanged."""

COUNT_COLUMNS: Final[dict[str, Column]] = {
    "problem_id": TRAJECTORY_COLUMNS["problem_id"],
    "n_attempts": Column(pl.UInt32(), "graded attempts at the problem"),
    "n_correct": Column(pl.UInt32(), "correct ones among them"),
}
"""The columns of a table of counts, which has a row per (by, problem) and no attempts."""

_OF_ATTEMPTS: Final = frozenset({
    "attempt",
    "completion",
    "step_scores",
    "answer",
    "answer_key",
    "is_correct",
    "score",
})
_NEEDS_ATTEMPTS: Final = _OF_ATTEMPTS | {"value", "gold", "gold_key", "n_tokens", "finish_reason"}

CURVE_SCHEMA: Final[dict[str, pl.DataType]] = {
    "selector": pl.String(),
    "reduction": pl.String(),
    "budget": pl.UInt32(),
    "budget_unit": pl.String(),
    "subsets": pl.String(),
    "accuracy": pl.Float64(),
    "standard_error": pl.Float64(),
    "ci_low": pl.Float64(),
    "ci_high": pl.Float64(),
    "n_problems": pl.UInt32(),
    "n_short": pl.UInt32(),
    "n_unscored": pl.UInt32(),
    "n_undefined": pl.UInt32(),
    "n_ungraded": pl.UInt32(),
}
"""The columns of `curve`, in order, behind those of `by`."""

CLUSTER_COLUMNS: Final = ("n_clusters", "df")
"""Columns that a table has only where clusters of problems are named."""

Kind: TypeAlias = Literal["Boolean", "an integer", "a number", "a text, a number or a date"]

_IS_OF_KIND: Final[Mapping[Kind, Callable[[pl.DataType], bool]]] = {
    "Boolean": lambda dtype: dtype == pl.Boolean,
    "an integer": lambda dtype: dtype.is_integer(),
    "a number": lambda dtype: dtype.is_numeric(),
    "a text, a number or a date": lambda dtype: (
        not (dtype.is_nested() or isinstance(dtype, pl.Duration | pl.Binary | pl.Object))
    ),
}

_HINTS: Final[dict[str, str]] = {
    "problem_id": "ttsframe convert, or tts.read_trajectories(..., "
    f"{constant('rename', {'yours': 'problem_id'})}).",
    "attempt": "tts.renumber_attempts(trajectories) numbers the attempts of a problem in row order.",
    "completion": "answers are extracted from it unless the frame has 'answer' or 'answer_key'; "
    f"{constant('rename', {'yours': 'completion'})} maps names when reading.",
    "answer_key": "tts.score_trajectories(trajectories) adds answer, answer_key, is_correct and score.",
    "is_correct": "tts.score_trajectories(trajectories) grades against the column 'gold'.",
    "score": "tts.score_trajectories(trajectories, reduction=...) reduces 'step_scores' to 'score'.",
    "step_scores": "use reductions=None to read the column 'score', or read a run that has step scores.",
}
_OF_COUNTS: Final = (
    "counts are enough for pass@k: ttsframe curve and compare, tts.expected_accuracy(counts, selectors='oracle', budgets=...) and the "
    "curves and comparisons made from it, tts.fit_pass_at_k, tts.statistics.check_extrapolation and "
    "variance_components, and tts.pass_at_k('n_correct', k, n_attempts='n_attempts'). All else needs the attempts."
)
_LOOKS_LIKE_AN_ANSWER: Final = re.compile(r"[\\{}$^=]|^[^A-Za-z_]*$")


def holds_counts(schema: Container[str]) -> bool:
    """Return whether a table has counts of attempts and of correct ones in place of attempts."""
    has_attempts = any(name in schema for name in _OF_ATTEMPTS)
    return "n_attempts" in schema and "n_correct" in schema and not has_attempts


def refuse_counts(schema: Container[str], where: str, missing: str = "attempt to work on") -> None:
    """Raise for a table of counts, where a function needs attempts."""
    if holds_counts(schema):
        raise ColumnsError(
            f"{where}: holds counts per problem ('n_attempts', 'n_correct') and no attempts, so there is no "
            f"{missing}. Hint: {_OF_COUNTS}"
        )


def require_columns(
    frame: pl.DataFrame | pl.LazyFrame,
    names: Sequence[str],
    *,
    where: str = "trajectories",
    hint: str | None = None,
) -> pl.Schema:
    """Check that a frame, named by `where`, has the columns that a function reads; return its schema."""
    schema = frame.collect_schema()
    missing = [name for name in names if name not in schema]
    if missing and not _NEEDS_ATTEMPTS.isdisjoint(missing):
        refuse_counts(schema, where, ", ".join(map(repr, missing)))
    if missing:
        default = _HINTS.get(missing[0]) or (
            f"a name is that of a column; for one answer, tts.answers.key_of({missing[0]!r})."
            if _LOOKS_LIKE_AN_ANSWER.search(missing[0])
            else "name an existing column, or rename yours."
        )
        error = ColumnsError.missing(missing, schema.names(), where=where, hint=hint or default)
        raise error
    return schema


def require_kind(
    schema: Mapping[str, pl.DataType],
    kind: Kind,
    *names: str,
    where: str = "trajectories",
    hint: str | None = None,
) -> None:
    """Check that columns hold values of a kind, or nothing but nulls."""
    for name in names:
        dtype = schema[name]
        if dtype != pl.Null and not _IS_OF_KIND[kind](dtype):
            end = "" if hint is None else f" Hint: {hint}"
            raise ColumnsError(f"{where}: {name!r} is {dtype}, must be {kind}.{end}")


def renumber_attempts(trajectories: FrameT, /, *, by: ColumnNames = ()) -> FrameT:
    """Renumber the attempts of each problem from 0, without gaps.

    Budgets count attempts by their number. A run that lost rows, or that starts at 1, is short at
    every budget until it is renumbered.

    Parameters
    ----------
    trajectories
        A `trajectories` table; `attempt` may be missing.
    by
        Columns that identify a run; attempts are numbered within `(*by, problem_id)`.

    Returns
    -------
    FrameT
        The same rows in the same order, with `attempt` (UInt32) from 0 to n - 1. The new numbers
        follow the old ones; equal numbers keep their row order and nulls come last. Without an
        `attempt` column, they follow the row order. A LazyFrame for a LazyFrame.

    Raises
    ------
    ParameterTypeError
        When `trajectories` is not a Polars frame.
    ColumnsError
        When `problem_id` or a column of `by` is missing.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> run = pl.DataFrame({"problem_id": ["a", "a", "b", "a"], "attempt": [7, 2, 1, 7]})
    >>> tts.renumber_attempts(run)["attempt"].to_list()
    [1, 0, 0, 2]
    """
    check_frame(trajectories, "trajectories")
    keys = [*check_names(by, "by"), "problem_id"]
    schema = require_columns(trajectories, keys)
    refuse_counts(schema, "trajectories")
    position = _position(schema, keys).cast(pl.UInt32).alias("attempt")
    return run_plan(trajectories, lambda frame: frame.with_columns(position))


def drop_duplicate_completions(trajectories: FrameT, /, *, by: ColumnNames = ()) -> FrameT:
    """Drop attempts whose text repeats that of another attempt at the same problem.

    Beam search pads its output to the requested number of attempts with copies of finished beams.
    Copies vote like any other attempt until this function drops them.

    Parameters
    ----------
    trajectories
        A `trajectories` table with `completion`.
    by
        Columns that identify a run; texts are compared within `(*by, problem_id)`.

    Returns
    -------
    FrameT
        The remaining rows in their order: of equal texts the one with the smallest `attempt` (the
        first row where there is no `attempt` column), and all rows without a text. Attempts keep
        their numbers; `renumber_attempts` closes the gaps. A LazyFrame for a LazyFrame.

    Raises
    ------
    ParameterTypeError
        When `trajectories` is not a Polars frame.
    ColumnsError
        When `problem_id`, `completion` or a column of `by` is missing.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> run = pl.DataFrame({
    ...     "problem_id": ["a", "a", "a"],
    ...     "attempt": [0, 1, 2],
    ...     "completion": ["so 2", "so 3", "so 2"],
    ... })
    >>> tts.drop_duplicate_completions(run)["attempt"].to_list()
    [0, 1]
    """
    check_frame(trajectories, "trajectories")
    keys = [*check_names(by, "by"), "problem_id", "completion"]
    schema = require_columns(trajectories, keys)
    is_kept = pl.col("completion").is_null() | (_position(schema, keys) == 0)
    return run_plan(trajectories, lambda frame: frame.filter(is_kept))


def _position(schema: pl.Schema, keys: Sequence[str]) -> pl.Expr:
    """Return the position of a row within its group, by attempt and then by row."""
    row = pl.int_range(pl.len())
    if "attempt" not in schema:
        return row.over(keys)
    return row.over(keys, order_by=["attempt", row], nulls_last=True)
