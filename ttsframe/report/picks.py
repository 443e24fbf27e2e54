"""What to pick from a run when little is said, and the tables that come of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import polars as pl

from ttsframe._checks import check_budgets, check_choices, check_fraction, check_names
from ttsframe._typing import AnswerStyle, ColumnNames, SelectorName, StepReduction, Weights
from ttsframe.report.tables import (
    Options,
    alike_runs,
    average_problems,
    collect_attempts,
    join_curves,
    powers_up_to,
)
from ttsframe.schema import require_columns
from ttsframe.scoring import score_trajectories
from ttsframe.selectors import SELECTORS, select_answers
from ttsframe.votes import tally_votes

Budgets: TypeAlias = int | Sequence[int] | Literal["all"] | None

DEFAULT_SELECTORS: Final[tuple[SelectorName, ...]] = (
    "majority_vote",
    "weighted_vote",
    "best_of_n",
    "oracle",
)


@dataclass(frozen=True, kw_only=True)
class AlikeRuns:
    """Runs that are graded or not, and share their budgets.

    Parameters
    ----------
    is_graded
        Whether any of their attempts is graded.
    budgets
        Numbers of attempts; None: all attempts, as one budget.
    attempts
        Their attempts.
    """

    is_graded: bool
    budgets: tuple[int, ...] | None
    attempts: pl.DataFrame


@dataclass(frozen=True, kw_only=True)
class Picks:
    """Scored attempts, and how answers are to be picked from them.

    Parameters
    ----------
    attempts
        What the analysis reads.
    runs
        The same in parts, by what they share.
    options
        How answers are picked and averaged.
    notes
        What was left out because the run lacks it, a sentence each.
    """

    attempts: pl.DataFrame
    runs: tuple[AlikeRuns, ...]
    options: Options
    notes: tuple[str, ...]

    def problems(self) -> list[pl.DataFrame]:
        """Pick an answer per problem, budget, selector and reduction.

        Returns
        -------
        list[pl.DataFrame]
            `problems` of each part.
        """
        return [
            select_answers(
                run.attempts,
                selectors=self.options.selectors,
                reductions=self.options.reductions,
                budgets=run.budgets,
                weights=self.options.weights,
                by=self._keys(),
            )
            for run in self.runs
        ]

    def votes(self) -> list[pl.DataFrame]:
        """Count votes per distinct answer of each problem.

        Returns
        -------
        list[pl.DataFrame]
            `votes` of each part.
        """
        return [
            tally_votes(
                run.attempts,
                reductions=self.options.reductions,
                budgets=run.budgets,
                weights=self.options.weights,
                by=self._keys(),
            )
            for run in self.runs
        ]

    def curves(
        self, problems: Sequence[pl.DataFrame]
    ) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
        """Average the problems.

        Parameters
        ----------
        problems
            What `problems` returned.

        Returns
        -------
        tuple[pl.DataFrame or None, pl.DataFrame or None]
            `curve` of the runs that are graded, and the same with `agreement` in place of
            `accuracy` of those that are not; None where there are none.
        """
        parts: dict[bool, list[pl.DataFrame]] = {True: [], False: []}
        for run, table in zip(self.runs, problems, strict=True):
            parts[run.is_graded].append(
                average_problems(table, self.options, is_graded=run.is_graded)
            )
        groups = self.options.groups
        return join_curves(parts[True], groups), join_curves(parts[False], groups)

    def _keys(self) -> list[str]:
        return [*self.options.groups, *self.options.repeats]


def plan_picks(
    trajectories: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    budgets: Budgets = None,
    selectors: SelectorName | Sequence[SelectorName] | None = None,
    reductions: StepReduction | Sequence[StepReduction] | None = None,
    weights: Weights = "score",
    style: AnswerStyle = "auto",
    confidence_level: float = 0.95,
) -> Picks:
    """Score a run, collect what is needed of it, and decide what was not said.

    Parameters
    ----------
    trajectories
        One row per attempt.
    by
        Columns that tell runs apart.
    replicates
        Columns that number repetitions of one run.
    budgets
        Numbers of attempts; "all": all attempts, as one budget. None: for each run, the powers of
        two up to the number of attempts that at least nine in ten problems have, and that number.
    selectors
        Names in `SELECTORS`. None: majority vote, weighted vote, best of n and the oracle, as far
        as the run has what they read.
    reductions
        Names in `STEP_REDUCTIONS`. None: the column `score` if it is recorded, else the last
        step's score.
    weights
        What a vote weighs in `weighted_vote`.
    style
        Where an answer stands in a completion.
    confidence_level
        Coverage of the intervals, in (0, 1).

    Returns
    -------
    Picks
        The attempts, and what is to be done with them.

    Raises
    ------
    ColumnsError
        When a column is missing.
    ParameterError
        When a parameter is impossible.
    DataError
        When there are no attempts.
    """
    groups, repeats = check_names(by, "by"), check_names(replicates, "replicates")
    chosen = check_choices(selectors or DEFAULT_SELECTORS, "selectors", SELECTORS)
    checked = None if budgets == "all" else check_budgets(budgets)
    check_fraction(confidence_level, "confidence_level")
    keys = [*groups, *repeats]
    schema = require_columns(trajectories, [*keys, "problem_id", "attempt"])
    attempts = collect_attempts(score_trajectories(trajectories.lazy(), style=style), keys, groups)
    if reductions is None and "score" not in schema and "step_scores" in schema:
        reductions = ("last",)
    notes = []
    has_scores = "score" in attempts.columns and attempts["score"].count() > 0
    if selectors is None and not has_scores:
        unread = [name for name in chosen if SELECTORS[name].reads_score]
        chosen = tuple(name for name in chosen if name not in unread)
        notes.append(f"Without {' and '.join(unread)}: the run has no scores.")
    return Picks(
        attempts=attempts,
        runs=tuple(
            AlikeRuns(
                is_graded=is_graded,
                budgets=None if budgets == "all" else checked or tuple(powers_up_to(most)),
                attempts=rows,
            )
            for is_graded, most, rows in alike_runs(attempts, groups, repeats)
        ),
        options=Options(
            selectors=tuple(name for name in SELECTORS if name in chosen),
            reductions=reductions,
            weights=weights,
            groups=groups,
            repeats=repeats,
            confidence_level=confidence_level,
        ),
        notes=tuple(notes),
    )
