"""The runs of a report: what each has, and which sections that allows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import polars as pl

from ttsframe._checks import check_names
from ttsframe.curves.levels import difficulty_levels, halve_attempts
from ttsframe.curves.lines import PROBLEM_COLUMNS
from ttsframe.defaults import RUN, SHARE_OF_PROBLEMS, Picks, RunGroup, value_agreement
from ttsframe.report.wording import name_run
from ttsframe.statistics.problem_values import SEVERITY
from ttsframe.votes.engine.registry import AnySelector, SelectorName
from ttsframe.votes.selectors import SELECTORS, select_answers

_COUNTS: Final = ("n_problems", "n_each", "n_right", "n_wrong", "n_scored", "tokens_min")
_N_NAMED_MAX: Final = 4
_LINE: Final = ("selector", "reduction")
_UNREAD: Final = ("attempt", "answer", "n_valid", "weight")
"""Columns of `problems` that no section reads."""
_BESIDE: Final = ("majority_vote", "oracle")
"""The baseline and the bound, which stand beside a line that is shown alone."""
_N_PROBLEMS_OF_FIVE: Final = 50
"""Levels of ten problems, or three of five: with fewer, a curve says nothing."""


class Rule(NamedTuple):
    """What a run must have for a section, and the reason to give where it has not."""

    holds: pl.Expr
    reason: str


GRADED: Final = Rule(pl.col("n_right") + pl.col("n_wrong") > 0, "no gold answers")


class NoTableError(Exception):
    """A section's tables would be empty, which its rules cannot foresee; the message says why."""


class Halves(NamedTuple):
    """Runs with equal budgets: answers picked from halves of their attempts, and the levels."""

    runs: pl.DataFrame
    problems: pl.DataFrame
    levels: pl.DataFrame


class RunData:
    """The data that sections make their tables from."""

    def __init__(self, picks: Picks, nodes: pl.LazyFrame | None = None) -> None:
        self.picks = picks
        self.nodes = nodes
        """The trees of searches, if the runs are searches."""
        self.options = picks.options
        self.attempts = picks.attempts
        self.problems = [table.drop(_UNREAD) for table in picks.problems()]
        self.by = list(picks.options.by)
        self.replicates = list(picks.options.replicates)
        self.runs = _describe_runs(picks)
        self.profile: pl.DataFrame | None = None
        """Step profile of all runs, once the verifier's report has made it."""
        self._halves: list[Halves] | None = None

    @property
    def keys(self) -> list[str]:
        """Columns that tell runs and their replicates apart."""
        return [*self.by, *self.replicates]

    @property
    def clusters(self) -> list[str]:
        """The column of clusters, if there is one."""
        return [] if self.options.cluster is None else [self.options.cluster]

    @property
    def has_answers(self) -> bool:
        """Whether the attempts have keys and grades: counts have none."""
        return {"attempt", "answer_key", "is_correct"} <= {*self.attempts.columns}

    @property
    def strategies(self) -> list[AnySelector]:
        """Selectors that can be chosen."""
        return [name for name in self.options.selectors if name != "oracle"]

    @property
    def smallest_budget(self) -> int:
        """Number of attempts at the left end of the curves."""
        return min(min(group.budgets or (1,)) for group in self.picks.runs)

    def attempts_of(self, runs: pl.DataFrame) -> pl.DataFrame:
        """Keep the attempts of some runs."""
        numbers = runs[RUN].to_list()
        if numbers == self.attempts[RUN].unique().sort().to_list():
            return self.attempts
        return self.attempts.filter(pl.col(RUN).is_in(numbers))

    def split_by_budgets(
        self, runs: pl.DataFrame
    ) -> list[tuple[RunGroup, pl.DataFrame, pl.DataFrame]]:
        """Split runs into groups that share their budgets, each with its runs and comparable problems."""
        return self._split(runs, self.comparable)

    def split_selector(self, runs: pl.DataFrame, name: SelectorName) -> list[pl.DataFrame]:
        """Split the problems of one selector as `split_by_budgets`, all its lines on the same ones."""
        problems = [self.keep_comparable(table.filter(selector=name)) for table in self._valued]
        return [table for _, _, table in self._split(runs, problems)]

    def _split(
        self, runs: pl.DataFrame, tables: Sequence[pl.DataFrame]
    ) -> list[tuple[RunGroup, pl.DataFrame, pl.DataFrame]]:
        groups = []
        for group, problems in zip(self.picks.runs, tables, strict=True):
            kept, table = runs, problems
            if self.by:
                kept = runs.join(group.runs, on=self.by, how="semi", nulls_equal=True)
                table = problems.join(kept, on=self.by, how="semi", nulls_equal=True)
            if kept.height:
                groups.append((group, kept.sort(RUN), table))
        return groups

    def halve(self, runs: pl.DataFrame) -> list[Halves]:
        """Pick answers from halves of the attempts, and find the levels of each half, once."""
        if self._halves is None:
            is_large = pl.col("n_problems") >= _N_PROBLEMS_OF_FIVE
            n_levels = pl.when(is_large).then(5).otherwise(3).alias("n_levels")
            self._halves = [
                self._halve(group, alike, int(n))
                for group, kept, _ in self.split_by_budgets(runs)
                for (_, n), alike in kept.group_by("n_each", n_levels, maintain_order=True)
            ]
        if not self.by:
            return self._halves
        kept = [(half, half.runs.join(runs, on=RUN, how="semi")) for half in self._halves]
        return [
            half._replace(
                runs=alike,
                problems=half.problems.join(alike, on=self.by, how="semi", nulls_equal=True),
            )
            for half, alike in kept
            if alike.height
        ]

    def forget_halves(self) -> None:
        """Free the halves once their sections are made."""
        self._halves = None

    def _halve(self, group: RunGroup, runs: pl.DataFrame, n_levels: int) -> Halves:
        attempts = self.attempts_of(runs)
        n_half = runs["n_each"][0] // 2
        # Without what was picked, which no table of halves reads, and `subsets`, which are prefixes.
        units = [*self.keys, *self.clusters]
        names = [*units, *PROBLEM_COLUMNS]
        # One half at a time, which is in order and takes half the memory.
        problems = pl.concat([
            select_answers(
                halve_attempts(attempts.lazy()).filter(fold=fold),
                selectors=self.options.selectors,
                reductions=self.options.reductions,
                budgets=[budget for budget in group.budgets or () if budget <= n_half],
                weights=self.options.weights,
                by=units,
            )
            .select(*names, fold=pl.lit(fold, pl.UInt32))
            .collect()
            for fold in (0, 1)
        ])
        levels = difficulty_levels(attempts, n_levels=n_levels, by=self.keys)
        return Halves(runs, self.keep_comparable(problems), levels)

    @cached_property
    def comparable(self) -> list[pl.DataFrame]:
        """The problems of each run group, all lines of a run on the same ones."""
        return [self.keep_comparable(problems) for problems in self._valued]

    @cached_property
    def _valued(self) -> list[pl.DataFrame]:
        """The problems of each run group, valued by agreement where nothing is graded."""
        return [
            problems if group.is_graded else value_agreement(problems.lazy()).collect()
            for group, problems in zip(self.picks.runs, self.problems, strict=True)
        ]

    def keep_comparable(self, problems: pl.DataFrame) -> pl.DataFrame:
        """Put all lines on the same problems, without those that lack more than a tenth of them."""
        # A line that is undefined on half of the problems, and so averaged over the others, would
        # win because it skips the hard ones.
        if problems.select((pl.col("status") == "ok").all()).item():
            return problems
        lacking = self._find_lacking(problems)
        return self._share_problems(
            problems.join(
                lacking, on=[*self.by, *_LINE], how="anti", nulls_equal=True, maintain_order="left"
            )
        )

    def list_incomplete(self) -> list[tuple[RunGroup, dict[str, Any], pl.DataFrame]]:
        """List the lines that `comparable` lacks, each with the baseline and the bound on its problems."""
        found = []
        for group, problems in zip(self.picks.runs, self._valued, strict=True):
            if problems.select((pl.col("status") == "ok").all()).item():
                continue
            lacking = self._find_lacking(problems)
            for line in lacking.select(_LINE).unique(maintain_order=True).iter_rows(named=True):
                of_line = [pl.col(name).eq_missing(pl.lit(line[name])) for name in _LINE]
                rows = problems.filter(
                    pl.all_horizontal(of_line) | pl.col("selector").is_in(_BESIDE)
                )
                if self.by:
                    runs = lacking.filter(of_line).select(self.by)
                    rows = rows.join(runs, on=self.by, how="semi", nulls_equal=True)
                found.append((group, line, self._share_problems(rows)))
        return found

    def _find_lacking(self, problems: pl.DataFrame) -> pl.DataFrame:
        """Find the lines that have no result for more than a tenth of their run's problems."""
        line = [*self.by, *_LINE]
        n_ok = pl.col("problem_id").filter(pl.col("is_ok")).n_unique()
        lines = (
            problems
            .filter(self._is_reached())
            .group_by(*line, "problem_id")
            .agg((pl.col("status") == "ok").all().alias("is_ok"))
            .group_by(line)
            .agg(n_ok.alias("n_ok"))
        )
        most = pl.col("n_ok").max().over(self.by) if self.by else pl.col("n_ok").max()
        return (
            lines.filter(pl.col("n_ok") < (1.0 - SHARE_OF_PROBLEMS) * most).sort(line).select(line)
        )

    def _is_reached(self) -> pl.Expr:
        """Build whether some problem of the run has as many attempts as the budget."""
        return (pl.col("status") != "short").any().over(*self.by, "budget")

    def _share_problems(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Leave a problem out of all lines of a run where one of them leaves it out."""
        status = pl.col("status")
        severity = status.replace_strict(SEVERITY, return_dtype=pl.Int8)
        worst = pl.when(self._is_reached()).then(severity).max().over(*self.by, "problem_id")
        names = {rank: name for name, rank in SEVERITY.items()}
        shared = worst.replace_strict(names, return_dtype=pl.String)
        return rows.with_columns(
            status=pl.when(status == "ok").then(shared).otherwise(status)
        ).with_columns(value=pl.when(pl.col("status") == "ok").then("value"))

    def join_runs(self, tables: Sequence[pl.DataFrame], *first: str) -> pl.DataFrame:
        """Put the tables of several runs into one, selectors in the order of the registry."""
        ranks = {name: i for i, name in enumerate(SELECTORS)}
        rank = pl.col("selector").replace_strict(ranks, default=len(ranks), return_dtype=pl.UInt8)
        return pl.concat(tables).sort(*self.by, *first, rank, maintain_order=True, nulls_last=True)


def _describe_runs(picks: Picks) -> pl.DataFrame:
    """Count what each run has; `n_each` attempts are those that nine in ten problems have."""
    attempts, options = picks.attempts, picks.options
    check_names(options.by, "by", taken=_COUNTS)
    check_names(options.replicates, "replicates", taken=_COUNTS)
    names = attempts.columns
    grade = pl.col("is_correct") if "is_correct" in names else pl.lit(None, pl.Boolean)
    score = pl.col("score") if "score" in names else pl.lit(None, pl.Float64)
    tokens = pl.col("n_tokens") if "n_tokens" in names else pl.lit(None, pl.Int64)
    is_alone = pl.col("is_exchangeable") if "is_exchangeable" in names else pl.lit(value=True)
    run = [RUN, *options.by]
    problems = attempts.group_by(*run, *options.replicates, "problem_id").agg(
        pl.len().alias("_n"),
        n_right=grade.sum(),
        n_wrong=(~grade).sum(),
        n_scored=score.fill_nan(None).count(),
        tokens_min=tokens.min(),
        # A single attempt depends on no other, whatever found it.
        is_exchangeable=is_alone.fill_null(value=True).all() | (pl.len() == 1),
    )
    return (
        problems
        .group_by(run)
        .agg(
            pl.col("problem_id").n_unique().alias("n_problems"),
            pl.col("_n").quantile(SHARE_OF_PROBLEMS, "lower").cast(pl.Int64).alias("n_each"),
            pl.col("n_right", "n_wrong", "n_scored").sum().cast(pl.Int64),
            pl.col("tokens_min").min(),
            pl.col("is_exchangeable").all(),
        )
        .sort(RUN)
    )


def keep_runs(
    runs: pl.DataFrame, rules: Sequence[Rule], by: Sequence[str]
) -> tuple[pl.DataFrame, str | None]:
    """Keep the runs for which all rules hold, and give the reason why others are left out."""
    reason = pl.coalesce(*[
        pl.when(~rule.holds.fill_null(value=False)).then(pl.lit(rule.reason)) for rule in rules
    ])
    judged = runs.with_columns(reason.alias("reason"))
    refused = judged.drop_nulls("reason")
    if refused.is_empty():
        return runs, None
    kept = judged.filter(pl.col("reason").is_null()).drop("reason")
    clauses = []
    for (text,), rows in refused.partition_by("reason", as_dict=True, maintain_order=True).items():
        names = [name_run(rows[i], by) for i in range(min(rows.height, _N_NAMED_MAX))]
        if rows.height > len(names):
            names.append(f"{rows.height - len(names)} more")
        is_all = rows.height == runs.height
        clauses.append(str(text) if is_all else f"{text} ({', '.join(names)})")
    return kept, "; ".join(clauses)
