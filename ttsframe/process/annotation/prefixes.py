"""From solutions to the distinct texts that are to be completed."""

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
    "tts.read_steps reads the formats of step labels; join the reference answers, or add "
    "gold=pl.lit(None) to sample without grading."
)


class Prefixes(NamedTuple):
    """The steps to be annotated, and the texts that they share.

    Parameters
    ----------
    steps
        A row per step: `problem_id`, `solution_id`, `step`, `gold`, `prefix_id`, and
        `stated` (String), the answer of the solution at its last step, null where it has none and
        at all other steps.
    texts
        A row per distinct prefix: `prefix_id`, `context`, `solution`, and the first step that has it.
    """

    steps: pl.DataFrame
    texts: pl.DataFrame


def find_prefixes(
    solutions: pl.DataFrame | pl.LazyFrame,
    *,
    template: str,
    separator: str,
    include_problem: bool,
    style: AnswerStyle,
) -> Prefixes:
    """Find the prefix of each step, and which steps share one.

    Parameters
    ----------
    solutions
        A `steps` table.
    template, separator
        How the text of a prefix is made.
    include_problem
        Whether the bare problem is a prefix too.
    style
        Where an answer stands in a solution.

    Returns
    -------
    Prefixes
        Both tables, in the order of `problem_id`, `solution_id` and `step`.

    Raises
    ------
    ColumnsError
        When a column is missing or is no text.
    ParameterTypeError
        When the template or the separator is no string.
    ParameterError
        When the template cannot be filled in.
    DataError
        When a solution is not whole.
    """
    before, between = _parts(template)
    if not isinstance(separator, str):
        raise ParameterTypeError(f"separator is a {type(separator).__name__}, must be a str.")
    schema = require_columns(solutions, _COLUMNS, where="solutions", hint=_HINT)
    whole = _solutions(_read(solutions, schema), _way_out(schema))
    texts = pl.col("texts")
    prefixes = (
        whole
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
    """Return the answer that a solution ends in, null where it may go on.

    What a last line concludes is an answer of a whole attempt, but a solution that was cut off, or
    that people judged up to its first error, has such a line too.

    Parameters
    ----------
    text
        The whole solution.
    style
        Where an answer stands.

    Returns
    -------
    pl.Expr
        String.
    """
    answer = extract_answer(text, style=style)
    if style != "auto":
        return answer
    marks: tuple[AnswerStyle, ...] = ("boxed", "hash", "final_answer")
    is_marked = pl.any_horizontal(extract_answer(text, style=mark).is_not_null() for mark in marks)
    return pl.when(is_marked).then(answer)


def _parts(template: str) -> tuple[str, str]:
    """Divide a template into what stands before the problem and between it and the steps."""
    if not isinstance(template, str):
        raise ParameterTypeError(f"template is a {type(template).__name__}, must be a str.")
    before, problem, rest = template.partition("{problem}")
    between, steps, after = rest.partition("{steps}")
    if not problem or not steps or after or "{problem}" in between:
        raise ParameterError(
            f"template == {template!r}, must hold '{{problem}}' once and end in '{{steps}}'. Hint: "
            "what follows the steps would stand between a solution and its continuation; other "
            "braces stand for themselves."
        )
    return before, between


def _way_out(schema: pl.Schema) -> str:
    """Say what makes solutions of steps that branch."""
    if "node" in schema:
        return "tts.process.step_paths makes a solution of each path through a tree."
    if "is_on_path" in schema:
        return "of alternative steps, .filter('is_on_path') leaves one solution."
    return "drop duplicate rows, or number the steps."


def _read(solutions: pl.DataFrame | pl.LazyFrame, schema: pl.Schema) -> pl.DataFrame:
    """Read the steps in their order, and check that each of them is known."""
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
    is_unknown = pl.any_horizontal(pl.col(*_SOLUTION, "step", "problem").is_null())
    has_no_text = (pl.col("step") >= 0) & pl.col("text").is_null()
    unknown = steps.filter(is_unknown | has_no_text | (pl.col("step") < -1))
    if not unknown.is_empty():
        row = unknown.select(*_SOLUTION, "step", "problem", "text").row(0, named=True)
        raise DataError(
            f"{unknown.height:,} rows of solutions are no steps, such as {row}; a step has a "
            "problem_id, a solution_id, a problem, a text and a number from 0 (-1 is the bare problem, "
            f"and needs no text). Hint: {_way_out(schema)}"
        )
    return steps


def _solutions(steps: pl.DataFrame, way_out: str) -> pl.DataFrame:
    """Gather the steps of each solution, and check that none is missing."""
    is_step = pl.col("step") >= 0
    whole = steps.group_by(_SOLUTION, maintain_order=True).agg(
        pl.col("problem", "gold").first(),
        pl.col("problem", "gold").n_unique().name.prefix("n_"),
        texts=pl.col("text").filter(is_step),
        numbers=pl.col("step").filter(is_step),
        n_bare=(~is_step).sum(),
        is_whole=(pl.col("step").filter(is_step) == pl.int_range(is_step.sum())).all(),
    )
    for name in ("problem", "gold"):
        several = whole.filter(pl.col(f"n_{name}") > 1)
        if not several.is_empty():
            raise DataError(
                f"{_which(several)} with more than one {name!r}. Hint: a solution_id may come again "
                "in another problem_id, but not in the same one."
            )
    broken = whole.filter(~pl.col("is_whole") | (pl.col("n_bare") > 1))
    if not broken.is_empty():
        numbers = broken["numbers"][0].to_list()
        raise DataError(
            f"{_which(broken)} whose steps are not numbered 0, 1, 2, ... once each: {numbers[:9]}; a "
            f"prefix needs all the steps before it. Hint: {way_out}"
        )
    return whole.select(*_SOLUTION, "problem", "gold", "texts")


def _which(solutions: pl.DataFrame) -> str:
    """Name the first of some solutions."""
    row = solutions.select(_SOLUTION).row(0, named=True)
    return f"{solutions.height:,} solutions, such as {row},"


def _ids(texts: pl.DataFrame) -> pl.Series:
    """Digest each prefix: the same text has the same one in any run, on any machine."""
    digests = []
    for context, solution in zip(texts["context"], texts["solution"], strict=True):
        head = context.encode()
        digest = blake2b(len(head).to_bytes(8, "big"), digest_size=16)
        digest.update(head)
        digest.update(solution.encode())
        digests.append(digest.hexdigest())
    return pl.Series("prefix_id", digests, dtype=pl.String)
