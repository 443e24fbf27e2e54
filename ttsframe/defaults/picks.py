"""What to pick from a run when little is said, and the tables that come of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

import polars as pl

from ttsframe._checks import check_budgets, check_choices, check_fraction, check_names
from ttsframe._typing import (
    AnswerStyle,
    ColumnNames,
    SelectorName,
    StepReduction,
    Weights,
)
from ttsframe._wording import left_out
from ttsframe.defaults.tables import (
    Options,
    average_problems,
    collect_attempts,
    find_runs,
    join_curves,
    powers_up_to,
)
from ttsframe.schema import require_columns
from ttsframe.scoring import score_trajectories
from ttsframe.votes.selectors import SELECTORS, select_answers

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
    runs
        A row per run, of the columns that tell runs apart.
    """

    is_graded: bool
    budgets: tuple[int, ...] | None
    runs: pl.DataFrame

    def rows_of(self, table: pl.LazyFrame, /) -> pl.LazyFrame:
        """Keep the rows of these runs.

        Parameters
        ----------
        table
            Any table with those columns.

        Returns
        -------
        pl.LazyFrame
            Its rows, in their order.
        """
        if not self.runs.width:
            return table
        names, runs = self.runs.columns, self.runs.lazy()
        return table.join(runs, on=names, how="semi", nulls_equal=True, maintain_order="left")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """How answers are to be picked from a run, once it is known what the run has.

    Parameters
    ----------
    runs
        The runs, in parts that share something.
    options
        How answers are picked and averaged.
    notes
        What was left out because the run lacks it, a sentence each.
    """

    runs: tuple[AlikeRuns, ...]
    options: Options
    notes: tuple[str, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns that tell runs and their repetitions apart.

        Returns
        -------
        tuple[str, ...]
            Names.
        """
        return (*self.options.groups, *self.options.repeats)

    def curves(
        self, problems: Sequence[pl.DataFrame | pl.LazyFrame]
    ) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
        """Average the problems.

        Parameters
        ----------
        problems
            `problems` of each part of the runs.

        Returns
        -------
        tuple[pl.DataFrame or None, pl.DataFrame or None]
            `curve` of the graded runs, and of the others one with `agreement` for `accuracy`.
        """
        parts: dict[bool, list[pl.DataFrame]] = {True: [], False: []}
        for run, table in zip(self.runs, problems, strict=True):
            averaged = average_problems(table.lazy(), self.options, is_graded=run.is_graded)
            parts[run.is_graded].append(averaged.collect(engine="streaming"))
        groups = self.options.groups
        return join_curves(parts[True], groups), join_curves(parts[False], groups)


@dataclass(frozen=True, kw_only=True)
class Picks(Choice):
    """Scored attempts, and how answers are to be picked from them.

    Parameters
    ----------
    attempts
        What the analysis reads.
    """

    attempts: pl.DataFrame

    def problems(self) -> list[pl.DataFrame]:
        """Pick an answer per problem, budget, selector and reduction.

        Returns
        -------
        list[pl.DataFrame]
            `problems` of each part.
        """
        return [
            select_answers(
                run.rows_of(self.attempts.lazy()).collect(),
                selectors=self.options.selectors,
                reductions=self.options.reductions,
                budgets=run.budgets,
                weights=self.options.weights,
                by=self.keys,
            )
            for run in self.runs
        ]


def choose_picks(
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
) -> Choice:
    """Decide what was not said, by a first look at a run of any size.

    That reads the columns that tell problems apart, the grades or gold answers, and scores up to the
    first one; it holds a number per problem.

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
    Choice
        What is to be done.

    Raises
    ------
    ColumnsError
        When a column is missing.
    ParameterError
        When a parameter is impossible.
    DataError
        When there are no attempts.
    """
    asked = _check(
        trajectories,
        by=by,
        replicates=replicates,
        budgets=budgets,
        selectors=selectors,
        reductions=reductions,
        weights=weights,
        style=style,
        confidence_level=confidence_level,
    )
    return _decide(asked, trajectories.lazy())


class _Asked(NamedTuple):
    """What was said, checked, and the run with all that can be made of it."""

    scored: pl.LazyFrame
    options: Options
    budgets: tuple[int, ...] | Literal["all"] | None
    style: AnswerStyle
    has_selectors: bool


def _check(
    trajectories: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    by: ColumnNames,
    replicates: ColumnNames,
    budgets: Budgets,
    selectors: SelectorName | Sequence[SelectorName] | None,
    reductions: StepReduction | Sequence[StepReduction] | None,
    weights: Weights,
    style: AnswerStyle,
    confidence_level: float,
) -> _Asked:
    """Check what was said, without reading a row."""
    groups, repeats = check_names(by, "by"), check_names(replicates, "replicates")
    chosen = check_choices(selectors or DEFAULT_SELECTORS, "selectors", SELECTORS)
    checked: tuple[int, ...] | Literal["all"] | None = "all"
    if budgets != "all":
        checked = check_budgets(budgets)
    check_fraction(confidence_level, "confidence_level")
    schema = require_columns(trajectories, [*groups, *repeats, "problem_id", "attempt"])
    scored = score_trajectories(trajectories.lazy(), style=style)
    if selectors is not None and any(SELECTORS[name].reads_score for name in chosen):
        needed, hint = ("score", _NO_SCORE) if reductions is None else ("step_scores", _NO_STEPS)
        require_columns(scored, [needed], hint=hint)
    elif reductions is not None:
        require_columns(scored, ["step_scores"], hint=_NO_STEPS)
    if reductions is None and "score" not in schema and "step_scores" in schema:
        reductions = ("last",)
    options = Options(chosen, reductions, weights, groups, repeats, confidence_level)
    return _Asked(scored, options, checked, style, selectors is not None)


def _decide(asked: _Asked, attempts: pl.LazyFrame) -> Choice:
    """Look at the attempts, and decide what was not said."""
    options, budgets = asked.options, asked.budgets
    runs = find_runs(
        attempts, options.groups, options.repeats, style=asked.style, is_sized=budgets is None
    )
    chosen, notes = set(options.selectors), []
    if not asked.has_selectors:
        has_grades = runs["is_graded"].any()
        if not _has_scores(asked.scored):
            unread = [name for name in options.selectors if SELECTORS[name].reads_score]
            chosen -= set(unread)
            notes.append(f"Without {' and '.join(unread)}: the run has no scores.")
        if not has_grades:
            chosen -= {"oracle"}
    alike = runs.partition_by("is_graded", "most", as_dict=True, maintain_order=True)
    return Choice(
        runs=tuple(
            AlikeRuns(
                is_graded=bool(is_graded),
                budgets=None if budgets == "all" else budgets or tuple(powers_up_to(int(most))),
                runs=rows.select(options.groups),
            )
            for (is_graded, most), rows in alike.items()
        ),
        options=options._replace(selectors=tuple(name for name in SELECTORS if name in chosen)),
        notes=tuple(notes),
    )


def _has_scores(scored: pl.LazyFrame) -> bool:
    """Tell whether there is any score, reading no further than to the first one."""
    if "score" not in scored.collect_schema():
        return False
    found = scored.select("score").filter(pl.col("score").is_not_null()).head(1)
    return not found.collect(engine="streaming").is_empty()


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
    trajectories, by, replicates, budgets, selectors, reductions, weights, style, confidence_level
        As `choose_picks` takes them, and raises where they are wrong.

    Returns
    -------
    Picks
        The attempts, and what is to be done with them.
    """
    asked = _check(
        trajectories,
        by=by,
        replicates=replicates,
        budgets=budgets,
        selectors=selectors,
        reductions=reductions,
        weights=weights,
        style=style,
        confidence_level=confidence_level,
    )
    groups, repeats = asked.options.groups, asked.options.repeats
    attempts = collect_attempts(asked.scored, [*groups, *repeats], groups)
    choice = _decide(asked._replace(scored=attempts.lazy()), attempts.lazy())
    return Picks(runs=choice.runs, options=choice.options, notes=choice.notes, attempts=attempts)


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
