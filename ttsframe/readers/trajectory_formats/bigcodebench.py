"""BigCodeBench: `{samples}_eval_results.json`, one object with the tested solutions of each task.

`status` "pass" is right; "fail" and "timeout" are wrong. Samples of a task keep their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import polars as pl

from ttsframe.readers.engine.archive import BadMemberError
from ttsframe.readers.engine.document import begins, text_of, unpack_objects
from ttsframe.readers.engine.sniff import DataFile, Unpacked
from ttsframe.readers.engine.table import FileFormat, Unpacking
from ttsframe.readers.trajectory_formats.evalplus import DTYPES, tested_solutions, to_attempts

_BEGINS: Final = re.compile(rb'\s*\{\s*"date"\s*:\s*"[^"]*"\s*,\s*"eval"\s*:\s*\{')


def _rows(file: DataFile) -> Iterator[Unpacked]:
    for task, solutions in tested_solutions(file):

        def to_rows(solution: Mapping[str, Any], task: str = task) -> list[dict[str, Any]]:
            status = text_of(solution.get("status"))
            if status is None:
                raise BadMemberError("has no 'status'")
            completion = text_of(solution.get("solution"))
            row = {"task_id": task, "completion": completion, "status": status}
            return [{**row, "is_correct": status == "pass"}]

        yield from unpack_objects(solutions, to_rows)


FORMAT = FileFormat(
    summary="BigCodeBench: {samples}_eval_results.json, the tested solutions of each task",
    requires=(("task_id",), ("status",), ("eval",)),
    dtypes={**DTYPES, "status": pl.String()},
    to_rows=to_attempts,
    unit="solution",
    columns={"eval": "problem_id", "solution": "completion", "status": "is_correct"},
    is_exchangeable=True,
    ignores=("date", "details"),
    unpacking=Unpacking(
        partial(begins, _BEGINS), _rows, "one JSON object with 'date' and 'eval' (BigCodeBench)"
    ),
)
