"""Tell runs apart by file, where several files hold attempts at the same problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from ttsframe._settings import BY_FILE
from ttsframe._wording import counted, shorten_paths
from ttsframe.cli._console import Console
from ttsframe.cli._options import Run
from ttsframe.defaults import check_run_names, number_by_text
from ttsframe.errors import DataError
from ttsframe.schema import holds_counts

_FILE = "source_file"
_FILTER = "filter"
_N_NAMED = 3


@dataclass(frozen=True)
class SameProblems:
    """Files with equally numbered attempts at the same problems, which are not one run."""

    files: tuple[str, ...]
    n_problems: int
    n_different: int = 0
    """Of these, the problems with different texts in different files."""

    def __str__(self) -> str:
        """Say which files hold how many problems."""
        named = list(shorten_paths(self.files).values())[:_N_NAMED]
        if len(self.files) > _N_NAMED:
            named.append(f"{len(self.files) - _N_NAMED} more")
        files = f"{', '.join(named[:-1])} and {named[-1]}"
        shared = counted([self.n_problems], "problem")
        if self.n_different:
            return (
                f"{files} share {shared} by problem_id, {self.n_different:,} of them with different texts, "
                "which are not compared"
            )
        return f"{files} hold attempts at the same {shared}"


def find_same_problems(attempts: pl.LazyFrame, by: Sequence[str] = ()) -> SameProblems | None:
    """Find files that hold the same attempts at the same problems of a run; None if none do."""
    names = attempts.collect_schema().names()
    check_run_names(by, "--by")
    if _FILE not in names or _FILE in by or not set(by) <= set(names):
        return None
    problem = [*by, "problem_id"]
    of_counts = holds_counts(names)
    attempt = pl.lit(0).alias("attempt") if of_counts else pl.col("attempt")
    rows = attempts.select(*problem, attempt, _FILE)
    # One row per problem first: parts of one run, with problems of their own, need no more memory.
    in_several = (
        rows
        .group_by(problem)
        .agg(pl.col(_FILE).min().alias("first"), pl.col(_FILE).max().alias("last"))
        .filter(pl.col("first") != pl.col("last"))
        .select(problem)
        .collect(engine="streaming")
    )
    if in_several.is_empty():
        return None
    # Files with the first and the last attempts at a problem are one run.
    counts = (
        rows
        .join(in_several.lazy(), on=problem, how="semi", nulls_equal=True)
        .unique()
        .filter(pl.len().over(*problem, "attempt") > 1)
        .select(pl.col(_FILE).unique().sort().implode(), n=pl.struct(problem).n_unique())
        .collect(engine="streaming")
    )
    files, n_problems = counts.row(0)
    if not files:
        return None
    return SameProblems(tuple(files), n_problems, _count_different(attempts, problem, in_several))


def _count_different(
    attempts: pl.LazyFrame, problem: Sequence[str], in_several: pl.DataFrame
) -> int:
    """Count the problems of several files whose texts are not those of one problem."""
    if "problem" not in attempts.collect_schema():
        return 0
    texts = (
        attempts
        .select(*problem, _FILE, "problem")
        .join(in_several.lazy(), on=problem, how="semi", nulls_equal=True)
        .group_by(*problem, _FILE)
        .agg(pl.col("problem").min())
        .collect(engine="streaming")
    )
    ids = number_by_text(texts, [*problem[:-1], _FILE])
    if ids is None:
        return 0
    is_other = ids[ids.columns[-1]] != ids["problem_id"].cast(pl.String)
    return ids["problem_id"].filter(is_other).n_unique()


def refuse_same_problems(run: Run, attempts: pl.LazyFrame, by: Sequence[str]) -> None:
    """Raise where files hold the same problems: together they are not one run."""
    with run.named_in_errors():
        same = find_same_problems(attempts, by)
    if same is not None:
        raise DataError(
            f"{same}, so together they are not one run. Hint: {BY_FILE} keeps them apart."
        )


def keep_files_apart(
    run: Run, attempts: pl.LazyFrame, by: tuple[str, ...], console: Console
) -> tuple[str, ...]:
    """Return the columns that tell runs apart: without any, the file and the filter where these share problems."""
    if by:
        refuse_same_problems(run, attempts, by)
        return by
    with run.named_in_errors():
        filters = _filters_of_the_same(attempts)
        kept = (_FILTER,) if filters else ()
        same = find_same_problems(attempts, kept)
    if filters:
        console.note(
            f"The filters {', '.join(filters)} read the same attempts: each is a run of its own (--by filter)."
        )
    if same is None:
        return kept
    console.note(f"{same}: each file is a run of its own (--by source_file).")
    return (*kept, _FILE)


def _filters_of_the_same(attempts: pl.LazyFrame) -> list[str]:
    """List the filters of lm-evaluation-harness that give each attempt once more; none elsewhere."""
    schema = attempts.collect_schema()
    if schema.get(_FILTER) != pl.String or "attempt" not in schema:
        return []
    keys = [name for name in (_FILE, "problem_id", "attempt") if name in schema]
    found = (
        attempts
        .group_by(keys)
        .agg(pl.col(_FILTER).unique())
        .filter(pl.col(_FILTER).list.len() > 1)
        .select(pl.col(_FILTER).explode(empty_as_null=False, keep_nulls=False).unique().sort())
        .collect(engine="streaming")
    )
    return [str(name) for name in found.to_series()]
