"""Rules about columns and rows that may have been mixed up: an agreement that should not be there, or not be missing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import sqrt
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ttsframe._exprs import safe_names, to_safe
from ttsframe._typing import Integers
from ttsframe.validation.finding import Finding, Pending

N_ORDERED: Final = 200_000
"""Number of attempts, from the first, in which an order of problems is looked for."""

_MOST_WORK: Final = 20_000_000
_COMMON_BATCHES: Final = (2, 4, 5, 8, 10, 16, 20, 25, 32, 50, 64, 100, 128, 200, 250, 256, 512)
_MOST_SHIFT: Final = 3
_FEW: Final = 20
_RATIO: Final = 2.0
_SIGMAS: Final = 6.0
_SAME_SHARE: Final = 0.5
_LONG: Final = 40
"""Completions below this number of characters repeat by chance."""


class Layout(NamedTuple):
    """A way in which completions may be in the rows of other problems."""

    words: str
    owner: Integers
    """The problem that each attempt answers under it."""


def read_columns(usable: Collection[str]) -> tuple[str, str] | None:
    """Return the columns of answers and of gold answers to compare; None if one is missing."""
    for names in (("answer_key", "gold_key"), ("answer", "gold")):
        if set(names) <= set(usable):
            return names
    return None


def ordered_answers(
    rows: pl.LazyFrame, keys: Mapping[str, str], compared: tuple[str, str], *, has_attempts: bool
) -> pl.LazyFrame:
    """Select the first attempts in their order, with hashes of their answers and gold answers."""
    answer, gold = compared
    hashes = [
        pl.when(pl.col(name).is_not_null()).then(pl.col(name).cast(pl.String).hash()).alias(new)
        for name, new in ((answer, "answer"), (gold, "gold"))
    ]
    attempt = pl.col("attempt") if has_attempts else pl.lit(None, pl.Int64)
    return rows.head(N_ORDERED).select(*to_safe(keys), attempt.alias("attempt"), *hashes)


def shifted_findings(ordered: pl.DataFrame, keys: Mapping[str, str]) -> Iterator[Pending]:
    """Find runs whose completions seem to answer other problems of the run."""
    (problem,) = [key for key, name in keys.items() if name == "problem_id"]
    run = [key for key in keys if key != problem]
    parts = ordered.partition_by(run, maintain_order=True) if run else [ordered]
    for part in parts:
        found = _best_layout(part, problem)
        if found is None:
            continue
        words, n_within, n_across, n_compared = found
        first = part.row(0, named=True)
        of_run = "".join(f"{keys[key]} {first[key]!r}: " for key in run)
        message = (
            f"{of_run}{n_within:,} of {n_compared:,} answers are the gold answer of their problem, and "
            f"{n_across:,} that of the problem {words}"
        )
        hint = (
            "completions and problems seem to be in different orders, so grades, and scores that saw the "
            "wrong problem, mean nothing: check how the tool put prompts and outputs together."
        )
        finding = Finding("shifted_completions", "error", "completion", n_across, message, (), hint)
        yield Pending(finding)


def _best_layout(rows: pl.DataFrame, problem: str) -> tuple[str, int, int, int] | None:
    """Return the layout under which answers agree with gold answers far better than as they are."""
    ranked = rows.with_columns(
        pl.col(problem).rank("dense").cast(pl.Int64).alias("code"),
        pl.int_range(pl.len()).alias("place"),
    ).with_columns(pl.col("place").min().over("code").alias("first"))
    ranked = ranked.sort("first", "attempt", "place", nulls_last=True)
    owner = ranked["first"].rank("dense").cast(pl.Int64).to_numpy() - 1
    n_problems = int(owner.max()) + 1 if len(owner) else 0
    if n_problems < 2:
        return None
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    column = np.arange(len(owner)) - starts[owner]
    answer, gold = ranked["answer"], ranked["gold"]
    has_answer = answer.is_not_null().to_numpy()
    has_gold = gold.is_not_null().to_numpy()
    answers: npt.NDArray[np.uint64] = answer.fill_null(0).to_numpy()
    golds: npt.NDArray[np.uint64] = gold.fill_null(0).to_numpy()[starts]
    known = has_gold[starts]
    n_within = _count(answers, has_answer, golds, known, owner)
    n_compared = int((has_answer & known[owner]).sum())
    counts = {
        layout.words: _count(answers, has_answer, golds, known, layout.owner)
        for layout in _layouts(owner, column, n_problems)
    }
    words = max(counts, key=lambda name: counts[name])
    # Answers of multiple choice agree with those of other problems by chance, under every layout.
    usual = max(n_within, int(np.median([*counts.values()])))
    if not _is_far_better(counts[words], usual, n_compared):
        return None
    return words, n_within, counts[words], n_compared


def _is_far_better(n_across: int, usual: int, n_compared: int) -> bool:
    """Return whether the difference is neither chance nor small."""
    return (
        n_across >= _FEW
        and n_across > _RATIO * usual
        and n_across - usual > _SIGMAS * sqrt(n_across + usual)
        and n_across > 0.1 * n_compared
    )


def _count(
    answers: npt.NDArray[np.uint64],
    has_answer: npt.NDArray[np.bool_],
    golds: npt.NDArray[np.uint64],
    known: npt.NDArray[np.bool_],
    owner: Integers,
) -> int:
    """Count the answers that are the gold answer of their owner; no owner is -1."""
    is_owned = owner >= 0
    at = np.where(is_owned, owner, 0)
    return int((has_answer & is_owned & known[at] & (golds[at] == answers)).sum())


def _layouts(owner: Integers, column: Integers, n_problems: int) -> Iterator[Layout]:
    """Yield the ways in which tools are known to mix completions up."""
    for shift in (s for size in range(1, _MOST_SHIFT + 1) for s in (size, -size)):
        moved = owner + shift
        side = "after" if shift > 0 else "before"
        yield Layout(
            f"{abs(shift)} {side} it in the file",
            np.where((moved < 0) | (moved >= n_problems), -1, moved),
        )
    sizes = np.bincount(owner)
    n = int(sizes[0])
    if n < 2 or (sizes != n).any():
        return
    batches: Sequence[int] = range(2, n_problems)
    if len(batches) * len(owner) > _MOST_WORK:
        batches = [size for size in _COMMON_BATCHES if size < n_problems]
    for size in (n_problems, *batches):
        first = owner // size * size
        width = np.minimum(size, n_problems - first)
        place = (owner - first) * n + column
        batch = "" if size == n_problems else f", in batches of {size} problems"
        yield Layout(f"by turns (one attempt each{batch})", first + place % width)
        yield Layout(
            f"by blocks (all attempts at one, then at the next{batch})",
            first + (column * width + owner - first) // n,
        )


def compare_answers(rows: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Plan counts that show whether 'answer' holds the gold answer."""
    answer, gold = (pl.col(name).cast(pl.String).str.strip_chars() for name in ("answer", "gold"))
    named = safe_names(keys)
    problems = rows.group_by(to_safe(named)).agg(
        pl.len().alias("n"),
        (answer == gold).sum().alias("n_equal"),
        answer.n_unique().alias("n_answers"),
        gold.n_unique().alias("n_golds"),
    )
    several = pl.col("n") > 1
    return problems.select(
        pl.col("n").sum().alias("n"),
        pl.col("n_equal").sum(),
        several.sum().alias("n_several"),
        (several & (pl.col("n_golds") > 1) & (pl.col("n_answers") == 1)).sum().alias("n_swapped"),
    )


def swapped_findings(counts: Mapping[str, int]) -> Iterator[Pending]:
    """Report gold answers in the column of the model's answers."""
    n, n_several = counts["n"], counts["n_several"]
    if n >= _FEW and n_several >= 2 and counts["n_equal"] == n:
        message = f"all {n:,} values of 'answer' are the gold answer 'gold', letter by letter"
        hint = (
            "'answer' may be a column of the data set: read it as 'gold', and the answers are extracted from "
            "the completions; tts.score_trajectories(trajectories, overwrite=['answer'])."
        )
        yield Pending(Finding("answer_is_gold", "warning", "answer", n, message, (), hint))
    if n_several >= 2 and 2 * counts["n_swapped"] > n_several:
        message = f"{counts['n_swapped']:,} of {n_several:,} problems have one 'answer' and several values of 'gold'"
        hint = "the two columns seem to be swapped; rename them."
        yield Pending(
            Finding("swapped_gold", "error", "gold", counts["n_swapped"], message, (), hint)
        )


def separation(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Plan the range of the scores of right and of wrong attempts, for each problem."""
    score = pl.col("score").filter(pl.col("score").is_finite())
    right = pl.col("is_correct").filter(pl.col("score").is_finite())
    return (
        rows
        .group_by("problem_id")
        .agg(
            score.filter(right).min().alias("right_least"),
            score.filter(~right).max().alias("wrong_most"),
            right.sum().alias("n_right"),
            (~right).sum().alias("n_wrong"),
        )
        .select(
            (pl.col("right_least") > pl.col("wrong_most")).sum().alias("n_separated"),
            ((pl.col("n_right") > 0) & (pl.col("n_wrong") > 0)).sum().alias("n_both"),
            pl.col("right_least").min(),
            pl.col("wrong_most").max(),
            pl.col("n_right").sum(),
            pl.col("n_wrong").sum(),
        )
    )


def separation_findings(counts: Mapping[str, float | None]) -> Iterator[Pending]:
    """Report a score that no wrong attempt has as high as a right one."""
    n_right, n_wrong, n_both, n_separated = (
        int(counts[name] or 0) for name in ("n_right", "n_wrong", "n_both", "n_separated")
    )
    least, most = counts["right_least"], counts["wrong_most"]
    enough = min(n_right, n_wrong) >= _FEW
    is_global = enough and least is not None and most is not None and least > most
    is_local = enough and n_both >= _FEW and n_separated == n_both
    if is_global or is_local:
        where = "all problems" if is_global else f"each of the {n_both:,} problems that have both"
        message = f"'score' separates all right attempts from all wrong ones in {where}"
        hint = (
            "a score computed with the gold answer (a grade, a reward) makes best_of_n the oracle; "
            "give it a name of its own, such as reward."
        )
        count = n_right + n_wrong
        yield Pending(Finding("oracle_scores", "warning", "score", count, message, (), hint))


def repeated_runs(rows: pl.LazyFrame, run: str, usable: Collection[str]) -> pl.LazyFrame:
    """Plan, for each pair of runs, how many attempts have the same text at the same place."""
    text = pl.col("completion")
    where = ["problem_id", *(["attempt"] if "attempt" in usable and run != "attempt" else [])]
    places = rows.filter(text.str.len_chars() >= _LONG).select(
        *where, pl.col(run).cast(pl.String).alias("run"), text.hash().alias("text")
    )
    n_of = places.group_by("run").agg(pl.len().alias("n"))
    shared = (
        places
        .group_by(*where, "text")
        .agg(pl.col("run").unique().sort())
        .filter(pl.col("run").list.len().is_between(2, 32))
    )
    pairs = (
        shared
        .with_columns(pl.col("run").alias("other"))
        .explode("run")
        .explode("other")
        .filter(pl.col("run") < pl.col("other"))
        .group_by("run", "other")
        .agg(pl.len().alias("n_same"))
    )
    return (
        pairs
        .join(n_of, on="run")
        .join(n_of.rename({"run": "other", "n": "n_other"}), on="other")
        .with_columns(n=pl.min_horizontal("n", "n_other"))
        .filter(pl.col("n_same") >= _SAME_SHARE * pl.col("n"), pl.col("n_same") >= _FEW)
        .select("run", "other", "n_same", "n")
        .sort("run", "other")
    )


def repeated_findings(pairs: pl.DataFrame, run: str) -> Iterator[Pending]:
    """Report runs that are copies of each other."""
    if pairs.height:
        first = pairs.row(0, named=True)
        message = (
            f"{pairs.height:,} pair{'s' if pairs.height > 1 else ''} of {run} have the same completions at the "
            f"same places: {first['n_same']:,} of {first['n']:,} in {first['run']!r} and {first['other']!r}"
        )
        hint = "the same seed may have run twice, or without randomness: copies are no replicates."
        finding = Finding("repeated_runs", "warning", "completion", pairs.height, message, (), hint)
        names = {"run": run, "other": f"other {run}"}
        yield Pending(finding, pairs.lazy().select("run", "other", "n_same").rename(names))


def mixup_queries(
    rows: pl.LazyFrame, keys: Sequence[str], schema: pl.Schema, usable: Collection[str]
) -> dict[str, pl.LazyFrame]:
    """Plan what the rules read, by the names of their tables."""
    queries: dict[str, pl.LazyFrame] = {}
    if "problem_id" not in usable:
        return queries
    compared = read_columns(usable)
    if compared is not None:
        named = safe_names(keys)
        has_attempts = "attempt" in usable
        queries["order"] = ordered_answers(rows, named, compared, has_attempts=has_attempts)
    if {"answer", "gold"} <= set(usable):
        queries["swapped"] = compare_answers(rows, keys)
    if {"score", "is_correct"} <= set(usable):
        queries["separation"] = separation(rows)
    run = run_column(schema)
    if run is not None and "completion" in usable:
        queries["repeated"] = repeated_runs(rows, run, usable)
    return queries


def run_column(schema: pl.Schema) -> str | None:
    """Return the column that numbers the seeds or files of a run."""
    dtypes = {name: schema[name] for name in ("seed", "source_file") if name in schema}
    return next(
        (name for name, dtype in dtypes.items() if dtype.is_integer() or dtype == pl.String), None
    )


def mixup_findings(
    tables: Mapping[str, pl.DataFrame], keys: Sequence[str], schema: pl.Schema
) -> Iterator[Pending]:
    """Report what the rules find in their tables."""
    if "order" in tables:
        yield from shifted_findings(tables["order"], safe_names(keys))
    if "swapped" in tables:
        yield from swapped_findings(tables["swapped"].row(0, named=True))
    if "separation" in tables:
        yield from separation_findings(tables["separation"].row(0, named=True))
    run = run_column(schema)
    if "repeated" in tables and run is not None:
        yield from repeated_findings(tables["repeated"], run)
