"""What a search asks of a model and of a verifier, and the check of what they answer."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from ttsframe._typing import Flags
from ttsframe.errors import CompletionError
from ttsframe.schema import Column
from ttsframe.search.nodes import FINISH_REASONS

__all__ = ["PREFIX_COLUMNS", "REQUEST_COLUMNS", "Generator", "ProcessRewardModel"]

Scores: TypeAlias = pl.Series | Sequence[float | Sequence[float | None] | None]
"""What a verifier returns: a number, or the scores of all steps, for each prefix."""

REQUEST_COLUMNS: Final[Mapping[str, Column]] = MappingProxyType({
    "problem_id": Column(pl.String(), "the problem"),
    "problem": Column(pl.String(), "its text"),
    "node_id": Column(pl.UInt64(), "node to continue"),
    "depth": Column(pl.Int64(), "number of steps so far"),
    "prefix": Column(pl.String(), "these steps, joined without a separator"),
    "n": Column(pl.Int64(), "number of continuations to return"),
    "draw": Column(pl.UInt64(), "random bits of the node, for the seeds of its continuations"),
    "is_greedy": Column(pl.Boolean(), "the continuation is a lookahead: temperature 0"),
    "until": Column(pl.String(), "step: stop at the end of a step; end: finish the solution"),
    "state": Column(pl.UInt64(), "what the generator returned for the node, if it returns `state`"),
})
"""The columns of the requests that a generator is given: dtype and meaning."""

PREFIX_COLUMNS: Final[Mapping[str, Column]] = MappingProxyType({
    "problem_id": Column(pl.String(), "the problem"),
    "problem": Column(pl.String(), "its text"),
    "node_id": Column(pl.UInt64(), "step to score"),
    "depth": Column(pl.Int64(), "number of steps of its path"),
    "prefix": Column(pl.String(), "the steps before it"),
    "text": Column(pl.String(), "the step"),
    "lookahead_text": Column(pl.String(), "what a lookahead put behind it; null without one"),
    "finish_reason": Column(pl.String(), "why the step ended"),
    "state": Column(pl.UInt64(), "what the generator returned for the step or its lookahead"),
})
"""The columns of the prefixes that a verifier is given: dtype and meaning."""


class Generator(Protocol):
    r"""Continues paths by a step: a function, a coroutine function, or an object that can be called.

    It is called with a frame of requests (`tts.search.REQUEST_COLUMNS`) and returns a frame with one
    row per continuation, the `n` of the first request first:

    - `text` (String): the step, with the separator that ends it, so that texts can be joined;
    - `finish_reason` (String): "step" at the end of a step, "stop" at the end of the solution,
      "length" if a limit cut it, "error" if there is no text;
    - `n_tokens`, `n_prompt_tokens_new` (integers, optional);
    - `state` (UInt64, optional): handed back with requests and prefixes that continue the step;
    - `node_id` (UInt64, optional): identifier of the step in the stored tree that it comes from;
    - `request` (integer, optional): row of the request, if the rows are in another order.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> def one_step(requests):
    ...     return requests.select(
    ...         text=pl.lit(r"The answer is \boxed{42}.").repeat_by("n"),
    ...     ).explode("text").with_columns(finish_reason=pl.lit("stop"))
    >>> generator: tts.search.Generator = one_step
    >>> problems = pl.DataFrame({"problem_id": ["a"], "problem": ["6 x 7?"]})
    >>> nodes = tts.search.search(
    ...     problems, generator, lambda prefixes: [0.9] * prefixes.height,
    ...     tts.search.BestOfN(2), seed=0,
    ... )
    >>> nodes.select("depth", "finish_reason", "step_score").rows()
    [(1, 'stop', 0.9), (1, 'stop', 0.9)]
    """

    def __call__(self, requests: pl.DataFrame, /) -> pl.DataFrame | Awaitable[pl.DataFrame]:
        """Continue each node `n` times."""


class ProcessRewardModel(Protocol):
    """Scores paths: a function, a coroutine function, or an object that can be called.

    It is called with a frame of prefixes (`tts.search.PREFIX_COLUMNS`) and returns, in their order,
    one number each, the score of the last step; or one list each, the scores of all steps. What it
    cannot score is null. The text to score is `prefix` + `text` + `lookahead_text`.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> def by_length(prefixes):
    ...     return prefixes.select(1 / (1 + pl.col("text").str.len_chars())).to_series()
    >>> prm: tts.search.ProcessRewardModel = by_length
    >>> prm(pl.DataFrame({"text": ["abc"]})).to_list()
    [0.25]
    """

    def __call__(self, prefixes: pl.DataFrame, /) -> Scores | Awaitable[Scores]:
        """Score each prefix."""


_CHILD_DTYPES: Final[Mapping[str, pl.DataType]] = {
    "request": pl.Int64(),
    "text": pl.String(),
    "finish_reason": pl.String(),
    "n_tokens": pl.Int64(),
    "n_prompt_tokens_new": pl.Int64(),
    "state": pl.UInt64(),
    "node_id": pl.UInt64(),
}
"""What a generator returns; all but text and reason may be left out."""


def check_children(answer: object, requests: pl.DataFrame) -> tuple[pl.DataFrame, Flags]:
    """Check what a generator returned; add `request`, and say which requests got too few."""
    who = "generator"
    if not isinstance(answer, pl.DataFrame):
        raise CompletionError(
            f"{who}: returned {type(answer).__name__}, must return a polars DataFrame with the columns "
            "'text' and 'finish_reason'."
        )
    missing = [name for name in ("text", "finish_reason") if name not in answer.columns]
    if missing:
        raise CompletionError(
            f"{who}: the columns {missing} are missing; found: {answer.columns}. Hint: "
            "tts.search.Generator says what it returns."
        )
    wanted = requests["n"].to_numpy()
    asked = int(wanted.sum())
    answer = _typed(answer, who)
    if "request" in answer.columns:
        children = answer.sort("request", maintain_order=True)
        if children["request"].has_nulls():
            raise CompletionError(
                f"{who}: 'request' is null in a row, must be the row of the request."
            )
        rows = children["request"].to_numpy()
        if len(rows) and (rows[0] < 0 or rows[-1] >= len(wanted)):
            raise CompletionError(
                f"{who}: 'request' must be from 0 to {len(wanted) - 1}, found {rows[0]} to {rows[-1]}."
            )
    else:
        if answer.height != asked:
            raise CompletionError(
                f"{who}: returned {answer.height:,} rows for {asked:,} continuations of "
                f"{requests.height:,} requests. Hint: return the row of the request as 'request' if "
                "some are missing."
            )
        rows = np.repeat(np.arange(len(wanted)), wanted)
        children = answer.with_columns(request=pl.Series(rows))
    got = np.bincount(rows, minlength=len(wanted))
    if (got > wanted).any():
        row = int(np.argmax(got > wanted))
        raise CompletionError(
            f"{who}: returned {got[row]} continuations of request {row}, which asked for {wanted[row]}."
        )
    children = children.select(
        "request",
        *(name for name in _CHILD_DTYPES if name in children.columns and name != "request"),
    )
    unknown = children.filter(~pl.col("finish_reason").is_in(FINISH_REASONS).fill_null(value=False))
    if unknown.height:
        raise CompletionError(
            f"{who}: finish_reason is {unknown['finish_reason'][0]!r}, must be one of "
            f"{', '.join(FINISH_REASONS)}."
        )
    lost = children.filter(pl.col("text").is_null() & (pl.col("finish_reason") != "error"))
    if lost.height:
        raise CompletionError(
            f"{who}: {lost.height} continuations have no text, and finish_reason "
            f"{lost['finish_reason'][0]!r}. Hint: finish_reason is 'error' where there is no text."
        )
    return children, got < wanted


def _typed(children: pl.DataFrame, who: str) -> pl.DataFrame:
    """Cast what a generator returned to the columns of steps; counts and identifiers are no less than 0."""
    for name, dtype in _CHILD_DTYPES.items():
        if name not in children.columns:
            continue
        found = children[name]
        is_fit = found.dtype.is_integer() if dtype.is_integer() else _is_text(found.dtype)
        if not (is_fit or found.dtype == pl.Null):
            kind = "integers" if dtype.is_integer() else "texts (String)"
            raise CompletionError(f"{who}: '{name}' is {found.dtype}, must hold {kind}.")
        cast = found.cast(dtype, strict=False)
        is_bad = cast.is_null() & found.is_not_null()
        is_bad |= cast < 0 if dtype.is_integer() else False
        if is_bad.any():
            raise CompletionError(
                f"{who}: '{name}' is {found.filter(is_bad)[0]} in a row, must be no less than 0 and fit {dtype}."
            )
        children = children.with_columns(cast)
    return children


def _is_text(dtype: pl.DataType) -> bool:
    return dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum)


class Verdict(NamedTuple):
    """What a verifier returned, checked."""

    last: pl.Series
    """Score of each last step, null where there is none."""
    vectors: pl.Series | None
    """Scores of all steps, if the verifier gives them."""


def check_scores(answer: object, n_prefixes: int) -> Verdict:
    """Check what a verifier returned."""
    who = "prm"
    if isinstance(answer, pl.Series):
        found = answer
    elif isinstance(answer, str | bytes) or not isinstance(answer, Sequence | np.ndarray):
        raise CompletionError(
            f"{who}: returned {type(answer).__name__}, must return a number or a list of numbers for each "
            "prefix: a polars Series or a list."
        )
    else:
        found = _series(answer)
    if len(found) != n_prefixes:
        raise CompletionError(f"{who}: returned {len(found):,} scores for {n_prefixes:,} prefixes.")
    if found.dtype == pl.Null:
        found = found.cast(pl.Float64)
    if isinstance(found.dtype, pl.List):
        inner = found.dtype.inner
        if not (inner == pl.Null or inner.is_numeric()):
            raise CompletionError(f"{who}: scores are {found.dtype}, must be numbers.")
        vectors = found.cast(pl.List(pl.Float64))
        _check_finite(vectors.explode(empty_as_null=False).drop_nulls(), who)
        return Verdict(_no_nan(vectors.list.last()), vectors)
    if not found.dtype.is_numeric():
        raise CompletionError(f"{who}: scores are {found.dtype}, must be numbers or lists of them.")
    last = found.cast(pl.Float64)
    _check_finite(last.drop_nulls(), who)
    return Verdict(_no_nan(last), None)


def _series(values: Sequence[object] | npt.NDArray[np.float64]) -> pl.Series:
    try:
        return pl.Series("step_score", values, strict=False)
    except (TypeError, pl.exceptions.PolarsError) as error:
        reason = str(error).partition("\n")[0]
        raise CompletionError(
            f"prm: the scores are neither numbers nor lists of numbers ({reason})."
        ) from error


def _check_finite(scores: pl.Series, who: str) -> None:
    if scores.is_infinite().any():
        raise CompletionError(
            f"{who}: a score is infinite, must be finite. Hint: null stands for a missing score."
        )


def _no_nan(scores: pl.Series) -> pl.Series:
    return scores.fill_nan(None).rename("step_score")
