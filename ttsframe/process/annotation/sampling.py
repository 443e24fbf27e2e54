"""The loop over batches: what is missing is asked for, and kept before the next batch begins."""

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
    """Have completed what the store does not hold yet.

    Parameters
    ----------
    texts
        A row per distinct prefix.
    completer
        Completes them.
    n_rollouts
        Rollouts that each prefix is to have.
    batch_size
        Most prefixes of a call.
    store
        Keeps the completions.
    progress
        Called with the rollouts done and to be done, at the beginning and after each batch.
    """
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
                "the next call goes on from there."
            )
            raise
        store.add(
            batch.texts
            .select("prefix_id", "rollout")
            .explode("rollout", empty_as_null=False)
            .with_columns(completion=completions)
        )
        n_done += len(completions)
        if progress is not None:
            progress(n_done, n_all)


def _missing(texts: pl.DataFrame, n_rollouts: int, kept: pl.LazyFrame) -> pl.DataFrame:
    """Return the prefixes that lack rollouts, with a list of their numbers, in the order given."""
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
    # the order of the calls is that of the texts, whichever thread ends first
    return texts.lazy().join(lacking, on="prefix_id", how="inner", maintain_order="left").collect()


def _batches(missing: pl.DataFrame, batch_size: int) -> Iterator[_Batch]:
    """Yield the batches, the prefixes that lack the most first."""
    sizes = missing.select(n=pl.col("rollout").list.len().cast(pl.Int64))["n"]
    for n in sizes.unique().sort(descending=True).to_list():
        alike = missing.filter(sizes == n)
        for start in range(0, alike.height, batch_size):
            yield _Batch(alike.slice(start, batch_size), n)
