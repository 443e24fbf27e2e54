"""What a search costs: calls, tokens and floating-point operations."""

from __future__ import annotations

from typing import Final

import polars as pl

from ttsframe._checks import check_frame, check_names, check_number
from ttsframe._exprs import run_plan
from ttsframe._settings import found
from ttsframe._typing import ColumnNames, FrameT
from ttsframe.errors import ParameterError
from ttsframe.search.nodes import require_nodes

__all__ = ["search_costs"]

_READ: Final = (
    "problem_id",
    "round",
    "n_tokens",
    "n_lookahead_tokens",
    "n_prompt_tokens_new",
    "finish_reason",
    "is_terminal",
    "is_kept",
)
_RESULT: Final = {
    "n_rounds": pl.Int64(),
    "n_nodes": pl.Int64(),
    "n_solutions": pl.Int64(),
    "n_scored": pl.Int64(),
    "n_tokens": pl.Int64(),
    "n_lookahead_tokens": pl.Int64(),
    "n_dropped_tokens": pl.Int64(),
    "n_prompt_tokens_new": pl.Int64(),
}


def search_costs(
    nodes: FrameT,
    /,
    *,
    generator_parameters: float | None = None,
    verifier_parameters: float | None = None,
    by: ColumnNames = (),
) -> FrameT:
    """Count what the search of each problem cost, whatever became of its steps.

    Parameters
    ----------
    nodes
        A `nodes` table.
    generator_parameters, verifier_parameters
        Number of parameters of the model and of the verifier; given, they add `flops`.
    by
        Columns that identify a search.

    Returns
    -------
    FrameT
        One row per problem: the columns of `by`, `problem_id`, `n_rounds`, `n_nodes` (steps), `n_solutions`
        (finished ones that are kept), `n_scored` (steps that the verifier was shown), `n_tokens`
        (generated, lookahead not included), `n_lookahead_tokens`, `n_dropped_tokens` (of dropped
        steps) and `n_prompt_tokens_new` (null where the generator reported none). Sums leave out
        unknown counts, and are null where all are unknown. With parameters also `flops` (Float64): 2
        per parameter of the model and generated token, and 2 per parameter of the verifier and token
        that it was shown for the first time, lookahead included. A LazyFrame for a LazyFrame.

    Raises
    ------
    ParameterTypeError
        When `nodes` is not a Polars frame.
    ParameterError
        When only one of the two numbers of parameters is given, or one is negative.
    ColumnsError
        When a column is missing.

    Examples
    --------
    >>> import ttsframe as tts
    >>> problems, generator, prm = tts.search.simulate(1, seed=0)
    >>> nodes = tts.search.search(problems, generator, prm, tts.search.Beam(4), seed=0)
    >>> costs = tts.search.search_costs(nodes, generator_parameters=3e9, verifier_parameters=8e9)
    >>> costs["flops"].item() == 2 * (3e9 + 8e9) * costs["n_tokens"].item()
    True
    """
    check_frame(nodes, "nodes")
    names: tuple[str, ...] = check_names(by, "by", taken=[*_RESULT, "problem_id", "flops"])
    require_nodes(nodes, [*names, *_READ])
    sizes = (generator_parameters, verifier_parameters)
    if (generator_parameters is None) != (verifier_parameters is None):
        raise ParameterError(
            "generator_parameters and verifier_parameters must be given together. Hint: 0 for a search "
            "without a verifier."
        )
    for name, size in zip(("generator_parameters", "verifier_parameters"), sizes, strict=True):
        if size is not None and check_number(size, name) < 0:
            raise ParameterError(f"{found(name, size)}, must be at least 0.")
    return run_plan(nodes, lambda frame: _costs(frame, names, *sizes))


def _costs(
    nodes: pl.LazyFrame, by: tuple[str, ...], generator: float | None, verifier: float | None
) -> pl.LazyFrame:
    def total(value: pl.Expr) -> pl.Expr:
        return pl.when(value.is_not_null().any()).then(value.sum()).cast(pl.Int64)

    tokens = pl.col("n_tokens")
    sums = nodes.group_by([*by, "problem_id"], maintain_order=True).agg(
        pl.col("round").n_unique().cast(pl.Int64).alias("n_rounds"),
        pl.len().cast(pl.Int64).alias("n_nodes"),
        (pl.col("is_terminal") & pl.col("is_kept")).sum().cast(pl.Int64).alias("n_solutions"),
        (pl.col("finish_reason") != "error").sum().cast(pl.Int64).alias("n_scored"),
        total(tokens).alias("n_tokens"),
        total(pl.col("n_lookahead_tokens")).alias("n_lookahead_tokens"),
        total(pl.when(~pl.col("is_kept")).then(tokens).otherwise(tokens * 0)).alias(
            "n_dropped_tokens"
        ),
        total(pl.col("n_prompt_tokens_new")).alias("n_prompt_tokens_new"),
    )
    if generator is None or verifier is None:
        return sums
    seen = (pl.col("n_tokens") + pl.col("n_lookahead_tokens")).cast(pl.Float64)
    return sums.with_columns(flops=2.0 * (generator + verifier) * seen)
