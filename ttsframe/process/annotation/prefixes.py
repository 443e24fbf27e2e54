"""Distinct prefixes of solutions, the texts to complete."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, NamedTuple

import polars as pl

from ttsframe._typing import AnswerStyle
from ttsframe.answers import extract_answer
from ttsframe.errors import ColumnsError, DataError, ParameterError, ParameterTypeError
from ttsframe.schema import require_columns

_SOLUTION: Final = ("problem_id", "solution_id")
_COLUMNS: Final = (*_SOLUTION, "step", "problem", "text", "gold")
_HINT: Final = (
    "tts.read_steps reads the formats of step labels; join the gold answers, or add "
    "gold=pl.lit(None) to sample without grading."
)


class Prefixes(NamedTuple):
    """The steps to annotate, and the distinct texts that they share.

    `stated` is the answer of a solution at its last step, null if it has none and at other steps.
    `texts` has one row per distinct prefix, with the first step that has it.
    """

    steps: pl.DataFrame
    """`problem_id`, `solution_id`, `step`, `gold`, `prefix_id`, `stated` (String)."""
    texts: pl.DataFrame
    """`prefix_id`, `context`, `solution`, `problem_id`, `solution_id`, `step`."""


def find_prefixes(
    solutions: pl.DataFrame | pl.LazyFrame,
    *,
    template: str,
    separator: str,
    include_problem: bool,
    style: AnswerStyle,
) -> Prefixes:
    """Find the prefix of each step, and the steps that share one."""
    before, between = _parts(template)
    if not isinstance(separator, str):
        raise ParameterTypeError(f"separator is a {type(separator).__name__}, must be a str.")
    schema = require_columns(solutions, _COLUMNS, where="solutions", hint=_HINT)
    complete = _solutions(_read(solutions, schema), _numbering_hint(schema))
    texts = pl.col("texts")
    prefixes = (
        complete
        .lazy()
        .with_columns(
            step=pl.int_ranges(-1 if include_problem else 0, texts.list.len().cast(pl.Int64)),
            stated=_stated(texts.list.join(separator), style),
            context=pl.concat_str(pl.lit(before), "problem", pl.lit(between)),
        )
        .explode("step", empty_as_null=False)
        .with_columns(
            solution=texts.list
            .eval(pl.element() + separator)
            .list.head(pl.col("step") + 1)
            .list.join(""),
            stated=pl.when(pl.col("step") == texts.list.len().cast(pl.Int64) - 1).then("stated"),
        )
        .drop("texts", "problem")
        .collect()
    )
    parts = ["context", "solution"]
    distinct = prefixes.unique(parts, keep="first", maintain_order=True)
    distinct = distinct.select(_ids(distinct), *parts, *_SOLUTION, "step")
    return Prefixes(
        steps=prefixes.join(
            distinct.select("prefix_id", *parts), on=parts, maintain_order="left"
        ).drop(parts),
        texts=distinct,
    )


def _stated(text: pl.Expr, style: AnswerStyle) -> pl.Expr:
    """Return the answer that a solution states at its end, null if it may continue."""
    answer = extract_answer(text, style=style)
    if style != "auto":
        return answer
    # A conclusion in the last line may also belong to a solution that was cut off.
    marks: tuple[AnswerStyle, ...] = ("boxed", "hash", "final_answer")
    is_marked = pl.any_horizontal(extract_answer(text, style=mark).is_not_null() for mark in marks)
    return pl.when(is_marked).then(answer)


def _parts(template: str) -> tuple[str, str]:
    """Split a template into the text before the problem and the text between it and the steps."""
    if not isinstance(template, str):
        raise ParameterTypeError(f"template is a {type(template).__name__}, must be a str.")
    before, problem, rest = template.partition("{problem}")
    between, steps, after = rest.partition("{steps}")
    if not problem or not steps or after or "{problem}" in between:
        raise ParameterError(
            f"template == {template!r}, must contain '{{problem}}' once and end in '{{steps}}'. Hint: "
            "text after the steps would separate a solution from its continuation; other braces are "
            "plain text."
        )
    return before, between


def _numbering_hint(schema: pl.Schema) -> str:
    """Return how to get solutions from steps that branch."""
    if "node" in schema:
        return "tts.process.step_paths returns each path through a tree as a solution."
    if "is_on_path" in schema:
        return "of alternative steps, .filter('is_on_path') keeps one solution."
    return "drop duplicate rows, or number the steps."


def _read(solutions: pl.DataFrame | pl.LazyFrame, schema: pl.Schema) -> pl.DataFrame:
    """Read the steps in order, and check that no value is missing."""
    if not schema["step"].is_integer():
        raise ColumnsError(f"'step' of solutions is {schema['step']}, must be an integer.")
    for name in ("problem", "text", "gold"):
        if schema[name] not in {pl.String, pl.Null}:
            raise ColumnsError(f"{name!r} of solutions is {schema[name]}, must be String.")
    steps = (
        solutions
        .lazy()
        .select(
            *_SOLUTION,
            pl.col("step").cast(pl.Int64),
            pl.col("problem", "text", "gold").cast(pl.String),
        )
        .sort(*_SOLUTION, "step")
        .collect()
    )
    has_null = pl.any_horizontal(pl.col(*_SOLUTION, "step", "problem").is_null())
    has_no_text = (pl.col("step") >= 0) & pl.col("text").is_null()
    invalid = steps.filter(has_null | has_no_text | (pl.col("step") < -1))
    if not invalid.is_empty():
        row = invalid.select(*_SOLUTION, "step", "problem", "text").row(0, named=True)
        raise DataError(
            f"{invalid.height:,} rows of solutions are not steps, the first is {row}; a step has a "
            "problem_id, a solution_id, a problem, a text and a number from 0 (-1 is the bare problem, "
            f"which needs no text). Hint: {_numbering_hint(schema)}"
        )
    return steps


def _solutions(steps: pl.DataFrame, numbering_hint: str) -> pl.DataFrame:
    """Collect the steps of each solution, and check that none is missing."""
    is_step = pl.col("step") >= 0
    complete = steps.group_by(_SOLUTION, maintain_order=True).agg(
        pl.col("problem", "gold").first(),
        pl.col("problem", "gold").n_unique().name.prefix("n_"),
        texts=pl.col("text").filter(is_step),
        numbers=pl.col("step").filter(is_step),
        n_bare=(~is_step).sum(),
        is_numbered=(pl.col("step").filter(is_step) == pl.int_range(is_step.sum())).all(),
    )
    for name in ("problem", "gold"):
        several = complete.filter(pl.col(f"n_{name}") > 1)
        if not several.is_empty():
            raise DataError(
                f"{_which(several)} have more than one {name!r}. Hint: a solution_id may repeat in "
                "another problem_id, but not in the same one."
            )
    broken = complete.filter(~pl.col("is_numbered") | (pl.col("n_bare") > 1))
    if not broken.is_empty():
        numbers = broken["numbers"][0].to_list()
        raise DataError(
            f"{_which(broken)} have steps that are not numbered 0, 1, 2, ... once each: {numbers[:9]}; a "
            f"prefix needs all steps before it. Hint: {numbering_hint}"
        )
    return complete.select(*_SOLUTION, "problem", "gold", "texts")


def _which(solutions: pl.DataFrame) -> str:
    """Return the number of some solutions, and the first one."""
    row = solutions.select(_SOLUTION).row(0, named=True)
    return f"{solutions.height:,} solutions (the first is {row})"


def _ids(texts: pl.DataFrame) -> pl.Series:
    """Return a digest of each prefix, the same in any run and on any machine."""
    digests = []
    for context, solution in zip(texts["context"], texts["solution"], strict=True):
        head = context.encode()
        digest = blake2b(len(head).to_bytes(8, "big"), digest_size=16)
        digest.update(head)
        digest.update(solution.encode())
        digests.append(digest.hexdigest())
    return pl.Series("prefix_id", digests, dtype=pl.String)
