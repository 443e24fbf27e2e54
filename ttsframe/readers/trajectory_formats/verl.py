"""verl: `{step}.jsonl` of `rollout_data_dir` or `validation_data_dir`, a row per sampled response.

The dump has no id of a problem, so equal prompts are one problem, and two problems with one prompt become
one; a column renamed to `problem_id` goes before. The attempts of a prompt keep their order in the file.
Every file is another training step, so another model: they are never joined, and `step` tells them apart.

`score` is the reward, computed with the gold answer, and is never `score` here: it is `source_score`.
Where the reward function returned `acc`, its 0 and 1 are `is_correct` too. `pred` is the answer that the function
found. `gts` is `gold` unless it is a list or an object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from ttsframe._traps import Trap
from ttsframe.readers.engine.sniff import DataFile
from ttsframe.readers.engine.table import (
    FileFormat,
    Table,
    add_problem_id,
    cast_columns,
    number_attempts,
    set_apart,
)

_DTYPES: dict[str, pl.DataType] = {"input": pl.String(), "output": pl.String()}
_RENAMED = {"input": "problem", "output": "completion"}

SEVERAL_STEPS = Trap(
    "several_steps",
    ("step",),
    pl.col("step") != pl.col("step").first(),
    "are of another training step than the first, so of another model",
    "by='step' (--by step) keeps the steps apart.",
)


def _to_attempts(source: Table) -> pl.LazyFrame:
    typed = set_apart(cast_columns(source, _DTYPES), ("gold",), "source_")
    table = add_problem_id(typed, ("problem_id",), "input")
    updates: dict[str, pl.Expr] = {}
    if _is_value(table.schema.get("gts")) and "gold" not in table.schema:
        updates["gold"] = pl.col("gts").cast(pl.String)
    if _is_value(table.schema.get("pred")):
        updates["answer"] = pl.col("pred").cast(pl.String).replace("", None)
    acc = table.schema.get("acc", pl.Null())
    if acc.is_numeric() or isinstance(acc, pl.Boolean):
        grade = pl.col("acc").cast(pl.Float64)
        updates["is_correct"] = pl.when(grade.is_in([0.0, 1.0])).then(grade == 1)
    frame = table.frame.with_columns(expr.alias(name) for name, expr in updates.items())
    used = [theirs for theirs, ours in (("gts", "gold"), ("pred", "answer")) if ours in updates]
    return number_attempts(frame.drop(used).rename(_RENAMED))


def _is_value(dtype: pl.DataType | None) -> bool:
    return dtype is not None and not (dtype.is_nested() or isinstance(dtype, pl.Null))


def notices(_file: DataFile, columns: Mapping[str, pl.DataType]) -> Iterator[str]:
    """Tell that problems are known by their prompts only."""
    if "problem_id" not in columns:
        yield (
            "has no id of a problem, so equal prompts are taken for one problem. If a column has the id: "
            "rename={'yours': 'problem_id'} (--rename yours=problem_id)."
        )


FORMAT = FileFormat(
    summary="verl: {step}.jsonl of rollouts or a validation, a row per response",
    requires=(("input",), ("output",), ("step",)),
    dtypes=_DTYPES,
    to_rows=_to_attempts,
    evidence=("score", "acc", "reward"),
    shapes=dict.fromkeys(_DTYPES, pl.String),
    columns={
        **_RENAMED,
        "gts": "gold",
        "pred": "answer",
        "acc": "is_correct",
        "score": "source_score",
    },
    is_exchangeable=True,
    notices=notices,
    traps=(SEVERAL_STEPS,),
)
