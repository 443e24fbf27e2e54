"""What to pick from a run when little is said, and the tables that come of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import polars as pl

from ttsframe._checks import check_budgets, check_choices, check_fraction, check_names
from ttsframe._typing import AnswerStyle, ColumnNames, SelectorName, StepReduction, Weights
from ttsframe._wording import left_out
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

_NO_SCORE: Final = (
    "weighted_vote and best_of_n read 'score', or 'step_scores' of which it is made; the other "
    "selectors read none."
)
_NO_STEPS: Final = "a run without step scores has no reductions; leave them out to read 'score'."


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
        as the run has the scores and grades that they read.
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
    scored = score_trajectories(trajectories.lazy(), style=style)
    if selectors is not None and any(SELECTORS[name].reads_score for name in chosen):
        needed, hint = ("score", _NO_SCORE) if reductions is None else ("step_scores", _NO_STEPS)
        require_columns(scored, [needed], hint=hint)
    elif reductions is not None:
        require_columns(scored, ["step_scores"], hint=_NO_STEPS)
    attempts = collect_attempts(scored, keys, groups)
    if reductions is None and "score" not in schema and "step_scores" in schema:
        reductions = ("last",)
    notes = []
    has_scores = "score" in attempts.columns and attempts["score"].count() > 0
    if selectors is None and not has_scores:
        unread = [name for name in chosen if SELECTORS[name].reads_score]
        chosen = tuple(name for name in chosen if name not in unread)
        notes.append(f"Without {' and '.join(unread)}: the run has no scores.")
    runs = list(alike_runs(attempts, groups, repeats))
    if selectors is None and not any(is_graded for is_graded, _, _ in runs):
        chosen = tuple(name for name in chosen if name != "oracle")
    return Picks(
        attempts=attempts,
        runs=tuple(
            AlikeRuns(
                is_graded=is_graded,
                budgets=None if budgets == "all" else checked or tuple(powers_up_to(most)),
                attempts=rows,
            )
            for is_graded, most, rows in runs
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


def unlike_lines(curve: pl.DataFrame | None, groups: Sequence[str]) -> Iterator[str]:
    """Say which lines are averaged over fewer problems than others of their run.

    Parameters
    ----------
    curve
        `curve`; None has no lines.
    groups
        Columns that tell runs apart.

    Yields
    ------
    str
        A sentence per line.
    """
    if curve is None:
        return
    n_problems = pl.col("n_problems")
    most = n_problems.max().over(groups) if groups else n_problems.max()
    lines = (
        curve
        .with_columns(most=most, omitted=left_out())
        .filter(n_problems < pl.col("most"))
        .unique([*groups, "selector", "reduction"], keep="last", maintain_order=True)
    )
    for row in lines.iter_rows(named=True):
        reduction = "" if row["reduction"] is None else f" ({row['reduction']})"
        run = "".join(f", {row[name]}" for name in groups)
        yield (
            f"{row['selector']}{reduction}{run}: averaged over {row['n_problems']:,} of "
            f"{row['most']:,} problems (left out: {row['omitted']}), so it does not compare with the "
            "other lines."
        )
