"""The loop that completes missing rollouts in batches, and stores each batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import polars as pl

from ttsframe.process.annotation.completers import Completer, Prefix, complete
from ttsframe.process.annotation.store import Store

OnRollouts: TypeAlias = Callable[[int, int], None]


class _Batch(NamedTuple):
    """Prefixes that lack the same number of rollouts."""

    texts: pl.DataFrame
    n: int


def sample(
    texts: pl.DataFrame,
    completer: Completer,
    *,
    n_rollouts: int,
    batch_size: int,
    store: Store,
    progress: OnRollouts | None,
) -> None:
    """Complete the rollouts that the store lacks; `texts` has one row per distinct prefix."""
    batches = list(_batches(_missing(texts, n_rollouts, store.scan()), batch_size))
    n_all = texts.height * n_rollouts
    n_done = n_all - sum(batch.texts.height * batch.n for batch in batches)
    if progress is not None:
        progress(n_done, n_all)
    for i, batch in enumerate(batches):
        first = batch.texts.select("problem_id", "solution_id", "step").row(0, named=True)
        where = f"batch {i + 1:,} of {len(batches):,}, whose first prefix is that of {first}"
        prefixes: list[str] = [
            Prefix(context, solution)
            for context, solution in zip(
                batch.texts["context"], batch.texts["solution"], strict=True
            )
        ]
        try:
            completions = complete(completer, prefixes, batch.n, batch=where)
        except BaseException as error:
            error.add_note(
                f"In {where}. {n_done:,} of {n_all:,} rollouts are done; with cache= they are kept, and "
                "the next call resumes there."
            )
            raise
        store.add(
            batch.texts
            .select("prefix_id", "rollout")
            .explode("rollout", empty_as_null=False)
            .hstack(completions)
        )
        n_done += completions.height
        if progress is not None:
            progress(n_done, n_all)


def _missing(texts: pl.DataFrame, n_rollouts: int, kept: pl.LazyFrame) -> pl.DataFrame:
    """Return the prefixes that lack rollouts, with a list of the missing numbers, in the given order."""
    wanted = pl.LazyFrame({"rollout": pl.int_range(n_rollouts, dtype=pl.UInt32, eager=True)})
    lacking = (
        texts
        .lazy()
        .select("prefix_id")
        .join(wanted, how="cross")
        .join(kept.select("prefix_id", "rollout"), on=["prefix_id", "rollout"], how="anti")
        .group_by("prefix_id")
        .agg(pl.col("rollout").sort())
    )
    # The order of the calls must not depend on threads.
    return texts.lazy().join(lacking, on="prefix_id", how="inner", maintain_order="left").collect()


def _batches(missing: pl.DataFrame, batch_size: int) -> Iterator[_Batch]:
    """Yield batches of prefixes that lack equally many rollouts, largest number first."""
    sizes = missing.select(n=pl.col("rollout").list.len().cast(pl.Int64))["n"]
    for n in sizes.unique().sort(descending=True).to_list():
        group = missing.filter(sizes == n)
        for start in range(0, group.height, batch_size):
            yield _Batch(group.slice(start, batch_size), n)
