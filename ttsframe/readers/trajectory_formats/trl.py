"""TRL (GRPO, RLOO): `completions_{step}.parquet` (`log_completions`), a row per completion.

There is no id of a problem and no gold answer: equal prompts are one problem, as in verl, unless a column is renamed
to `problem_id`; what the trainer logged beside can be renamed to `gold`. Of a conversation, the messages of
the user are the problem and those of the assistant the completion.

Every reward function is a column under its own name; one that has the name of a column of attempts, such as
`score`, gets `source_` before it: rewards may have seen the gold answer, and are never `score`.
"""

from __future__ import annotations

import polars as pl

from ttsframe.readers.engine.table import (
    FileFormat,
    Table,
    add_problem_id,
    number_attempts,
    refuse_mixed,
    set_apart,
    spoken,
)
from ttsframe.readers.trajectory_formats.verl import SEVERAL_STEPS, notices


def _to_attempts(source: Table) -> pl.LazyFrame:
    source = refuse_mixed(source, "prompt", "completion")
    texts = {
        "prompt": spoken(source, "prompt", "user"),
        "completion": spoken(source, "completion", "assistant"),
    }
    flat = source._replace(
        frame=source.frame.with_columns(text.alias(name) for name, text in texts.items()),
        schema={**source.schema, **dict.fromkeys(texts, pl.String())},
    )
    typed = set_apart(flat, ("completion", "gold", "solution"), "source_")
    table = add_problem_id(typed, ("problem_id",), "prompt")
    known = [pl.col(name).cast(pl.String) for name in ("gold", "solution") if name in table.schema]
    return number_attempts(table.frame.with_columns(known).rename({"prompt": "problem"}))


FORMAT = FileFormat(
    summary="TRL: completions_{step}.parquet, a row per completion with its rewards",
    requires=(("prompt",), ("completion",), ("step",), ("advantage",)),
    dtypes={},
    to_rows=_to_attempts,
    unit="completion",
    columns={"prompt": "problem"},
    is_exchangeable=True,
    ignores=("messages of other roles",),
    notices=notices,
    traps=(SEVERAL_STEPS,),
)
