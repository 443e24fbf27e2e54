"""EvalPlus: `{samples}_eval_results.json`, one object with the tested solutions of each task.

A solution is right if it passes the tests of the original benchmark (`base_status`) and the further ones
(`plus_status`); where only the former ran, these decide. Both stay as columns. Samples of a task keep their order. In early
releases (0.1) a task was one object with the lists `base` and `plus` of [status, details], without the solutions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import zip_longest
from typing import Any, Final

import polars as pl

from ttsframe._traps import Trap
from ttsframe.errors import SourceError
from ttsframe.readers.engine.archive import BadMemberError
from ttsframe.readers.engine.document import begins, list_of, read_object, text_of, unpack_objects
from ttsframe.readers.engine.sniff import DataFile, Unpacked
from ttsframe.readers.engine.table import (
    FileFormat,
    Table,
    Unpacking,
    add_problem_id,
    cast_columns,
    number_attempts,
    shown,
)

_BEGINS: Final = re.compile(
    rb'\s*\{\s*"date"\s*:\s*"[^"]*"\s*,\s*"hash"\s*:\s*(?:"[^"]*"|-?[0-9]+)\s*,\s*"eval"\s*:\s*\{'
)
_PASSED: Final = ("pass", "success")
DTYPES: dict[str, pl.DataType] = {
    "task_id": pl.String(),
    "completion": pl.String(),
    "is_correct": pl.Boolean(),
}
"""The columns that the results of EvalPlus and BigCodeBench have."""


def tested_solutions(file: DataFile) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the tasks of a file with their solutions, by their place."""
    tasks = read_object(file).get("eval")
    if not isinstance(tasks, dict):
        raise SourceError(f"{file.name}: 'eval' is {shown(tasks)}, must be an object of tasks.")
    for task, solutions in tasks.items():
        listed = solutions if isinstance(solutions, list) else [solutions]
        yield task, {f"eval[{task!r}][{number}]": each for number, each in enumerate(listed)}


def to_attempts(source: Table) -> pl.LazyFrame:
    """Return the solutions as attempts, numbered within their task."""
    table = add_problem_id(cast_columns(source, DTYPES), ("problem_id", "task_id"), "task_id")
    return number_attempts(table.frame.drop("task_id", strict=False))


def _rows(file: DataFile) -> Iterator[Unpacked]:
    for task, solutions in tested_solutions(file):

        def to_rows(solution: Mapping[str, Any], task: str = task) -> list[dict[str, Any]]:
            return [
                {
                    "task_id": task,
                    "completion": text_of(solution.get("solution")),
                    "is_correct": base in _PASSED and (plus is None or plus in _PASSED),
                    "base_status": base,
                    "plus_status": plus,
                }
                for base, plus in _statuses(solution)
            ]

        yield from unpack_objects(solutions, to_rows)


def _statuses(solution: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """Return what the tests of a solution gave, or those of all solutions of a task in the old form."""
    if "base" not in solution:
        return [_checked(solution.get("base_status"), solution.get("plus_status"))]
    base, plus = (
        [next(iter(list_of(result)), None) for result in list_of(solution.get(name))]
        for name in ("base", "plus")
    )
    if plus and len(plus) != len(base):
        raise BadMemberError(f"has {len(base)} results 'base' and {len(plus)} 'plus'")
    return [_checked(*pair) for pair in zip_longest(base, plus)]


def _checked(base: object, plus: object) -> tuple[str, str | None]:
    if not isinstance(base, str):
        raise BadMemberError("has no 'base_status' and no 'base' with a status; of another tool?")
    return base, text_of(plus)


FORMAT = FileFormat(
    summary="EvalPlus: {samples}_eval_results.json, the tested solutions of each task",
    requires=(("task_id",), ("base_status",)),
    dtypes={**DTYPES, "base_status": pl.String(), "plus_status": pl.String()},
    to_rows=to_attempts,
    unit="solution",
    columns={
        "eval": "problem_id",
        "solution": "completion",
        "base_status": "is_correct",
        "plus_status": "is_correct",
    },
    is_exchangeable=True,
    ignores=(
        "date",
        "hash",
        "base_fail_tests",
        "plus_fail_tests",
        "pass_at_k",
        "details of each test",
    ),
    traps=(
        Trap(
            "base_tests_only",
            ("plus_status", "base_status"),
            pl.col("plus_status").is_null() & pl.col("base_status").is_not_null(),
            "were tested with the original tests only",
            "they pass more often than with the further tests of EvalPlus; do not compare the two.",
            severity="note",
        ),
    ),
    unpacking=Unpacking(
        partial(begins, _BEGINS), _rows, "one JSON object with 'date', 'hash' and 'eval' (EvalPlus)"
    ),
)
