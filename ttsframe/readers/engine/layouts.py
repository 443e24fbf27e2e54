"""What would make an unknown layout readable: other names for its columns, or another command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import polars as pl

from ttsframe._checks import list_of_attempts
from ttsframe._settings import setting
from ttsframe.readers.engine.dtypes import as_instance
from ttsframe.readers.engine.table import FileFormat

_TEXT: Final = "text"
_TEXTS: Final = "list of texts"
_NUMBERS: Final = "list of numbers"
_NUMBER_LISTS: Final = "list of lists of numbers"
_SCALAR: Final = "value"

_PROBLEM: Final = ("question", "prompt", "query", "input", "problem_text", "instruction", "task")
_GOLD: Final = (
    "ground_truth",
    "ground_truth_answer",
    "expected_answer",
    "gold_answer",
    "reference_answer",
    "correct_answer",
    "target",
    "reference",
    "gt",
    "gts",
    "label",
)
_COMPLETION: Final = (
    "response",
    "generation",
    "output",
    "model_output",
    "generated_text",
    "completion_text",
    "raw_completion",
    "prediction",
    "text",
)
_COMPLETIONS: Final = (
    "responses",
    "response",
    "generations",
    "samples",
    "outputs",
    "candidates",
    "predictions",
)


class _Column(NamedTuple):
    """A column of a format, and what other tools call it."""

    name: str
    kind: str
    others: tuple[str, ...]


_LAYOUTS: Final[Mapping[str, tuple[_Column, ...]]] = {
    "search_and_learn": (
        _Column("completions", _TEXTS, _COMPLETIONS),
        _Column("problem", _TEXT, _PROBLEM),
        _Column("answer", _SCALAR, _GOLD),
        _Column("solution", _TEXT, ("reference_solution", "ground_truth_solution")),
        _Column("scores", _NUMBER_LISTS, ("step_scores", "rewards", "prm_scores", "step_rewards")),
    ),
    "long_form": (
        _Column("completion", _TEXT, _COMPLETION),
        _Column("problem", _TEXT, _PROBLEM),
        _Column(
            "problem_id",
            _SCALAR,
            ("unique_id", "question_id", "task_id", "example_id", "id", "uid", "qid", "idx"),
        ),
        _Column("gold", _SCALAR, _GOLD),
        _Column(
            "answer", _SCALAR, ("predicted_answer", "extracted_answer", "parsed_answer", "pred")
        ),
        _Column("solution", _TEXT, ("reference_solution", "ground_truth_solution")),
        _Column("is_correct", _SCALAR, ("correct", "symbolic_correct", "passed", "exact_match")),
        _Column("step_scores", _NUMBERS, ("prm_scores", "step_rewards", "rewards", "scores")),
        _Column("score", _SCALAR, ("reward_model_score", "reward", "rm_score", "pred_score")),
        _Column(
            "n_tokens",
            _SCALAR,
            ("num_generated_tokens", "completion_tokens", "num_gen_tokens", "num_tokens"),
        ),
        _Column("attempt", _SCALAR, ("epoch", "attempt_number", "sample_idx", "sample_index")),
    ),
}


def advise(
    source: str,
    columns: Mapping[str, pl.DataType],
    formats: Mapping[str, FileFormat],
    elsewhere: Mapping[str, FileFormat],
    row: str,
) -> str | None:
    """Return what would read a table that no format recognizes; None if that is not known."""
    if {"doc_id", "resps"} <= columns.keys() and row == "attempt":
        return (
            "It may hold log-likelihoods of choices from lm-evaluation-harness, which are no attempts. Hint: "
            "name the files of tasks that generate text."
        )
    other = next((name for name, each in elsewhere.items() if _reads(each, columns)), None)
    if other is not None and row == "attempt":
        return (
            f"It holds labeled steps in format {other!r}. Hint: tts.read_steps(...) and 'ttsframe steps' "
            "read them."
        )
    if other is not None:
        return (
            f"It holds attempts in format {other!r}. Hint: tts.read_trajectories(...) and 'ttsframe "
            "report' read them."
        )
    for name, layout in _LAYOUTS.items():
        rename = _renamed(columns, layout) if name in formats else {}
        renamed = {rename.get(column, column): dtype for column, dtype in columns.items()}
        if rename and len(renamed) == len(columns) and _reads(formats[name], renamed):
            return f"Hint: {setting('rename', rename)} reads it as {name}."
    return _advise_gold(source, columns) if row == "attempt" else None


def _reads(file_format: FileFormat, columns: Mapping[str, pl.DataType]) -> bool:
    return file_format.recognizes(columns) and file_format.has_shapes(columns)


def _renamed(columns: Mapping[str, pl.DataType], layout: tuple[_Column, ...]) -> dict[str, str]:
    """Return the columns that have another name in a layout; none without attempts."""
    rename: dict[str, str] = {}
    for column in layout:
        if column.name in columns and _is(columns[column.name], column.kind):
            continue
        theirs = next(
            (
                name
                for name in column.others
                if name in columns and name not in rename and _is(columns[name], column.kind)
            ),
            None,
        )
        if theirs is not None and column.name not in columns:
            rename[theirs] = column.name
        elif column is layout[0]:
            return {}
    # Beside a text, `answer` is that of the data set, unless the tool has written one of its own.
    if (
        "answer" in columns
        and "gold" not in {*columns, *rename.values()}
        and layout is _LAYOUTS["long_form"]
    ):
        rename["answer"] = "gold"
    return rename


def _is(dtype: pl.DataType, kind: str) -> bool:
    """Return whether a column holds values of a kind, or nothing but nulls."""
    inner = as_instance(dtype.inner) if isinstance(dtype, pl.List | pl.Array) else pl.Object()
    innermost = as_instance(inner.inner) if isinstance(inner, pl.List | pl.Array) else pl.Object()
    return (
        isinstance(dtype, pl.Null)
        or {
            _TEXT: isinstance(dtype, pl.String),
            _SCALAR: not dtype.is_nested(),
            _TEXTS: isinstance(inner, pl.String),
            _NUMBERS: inner.is_numeric(),
            _NUMBER_LISTS: innermost.is_numeric(),
        }[kind]
    )


def _advise_gold(name: str, columns: Mapping[str, pl.DataType]) -> str | None:
    """Recognize a table of problems with gold answers and without attempts."""
    has_problem = any(
        name in columns for name in ("problem_id", "unique_id", "id", "idx", "problem", "question")
    )
    has_answer = any(
        name in columns for name in ("gold", "answer", "gt", "ground_truth", "final_answer")
    )
    if not (has_problem and has_answer) or list_of_attempts(columns) is not None:
        return None
    return (
        "It may hold the gold answers of problems, without attempts. Hint: "
        f"{setting('gold', name)} adds them to a run."
    )
