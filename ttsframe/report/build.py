"""From attempts to a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

from ttsframe._checks import check_choices, check_frame, check_names
from ttsframe._settings import setting
from ttsframe._typing import (
    AnswerStyle,
    ColumnNames,
    FrameT,
    SectionName,
    SelectorName,
    StepReduction,
    Weights,
)
from ttsframe.defaults.picks import Picks, plan_picks, unlike_lines
from ttsframe.defaults.tables import average_steps, count_loaded
from ttsframe.errors import ParameterError
from ttsframe.report.analyses import analyze
from ttsframe.report.contents import SECTIONS
from ttsframe.report.example import choose_example
from ttsframe.report.report import Report
from ttsframe.schema import require_columns
from ttsframe.scoring import score_trajectories
from ttsframe.validation import validate_trajectories
from ttsframe.votes.selectors import SELECTORS

_ALWAYS: Final[tuple[SelectorName, ...]] = ("majority_vote", "oracle")


def build_report(
    trajectories: FrameT,
    /,
    *,
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    budgets: int | Sequence[int] | None = None,
    selectors: SelectorName | Sequence[SelectorName] | None = None,
    reductions: StepReduction | Sequence[StepReduction] | None = None,
    weights: Weights = "score",
    style: AnswerStyle = "auto",
    references: Mapping[str, float] | None = None,
    sections: SectionName | Sequence[SectionName] | None = None,
    title: str | None = None,
    confidence_level: float = 0.95,
) -> Report:
    """Analyse a run, or several side by side, from attempts to a page of charts.

    Answers, grades and scores that are missing are made as `score_trajectories` makes them. Of a
    LazyFrame no text but the problems' is held in memory.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `attempt`, and `completion`, `answer` or
        `answer_key`; what else is there (`gold`, `is_correct`, `score`, `step_scores`) is used.
    by
        Columns that tell runs apart, such as "source_file"; each run gets curves of its own.
    replicates
        Columns that number repetitions of one run, such as the seed: averaged per problem.
    budgets
        Numbers of attempts. None: for each run, the powers of two up to the number of attempts
        that at least nine in ten problems have, and that number.
    selectors
        Names in `SELECTORS`; majority vote, the baseline, and the oracle, the bound, always stand
        beside them. None: these two, weighted vote and best of n, as far as there are scores.
    reductions
        Names in `STEP_REDUCTIONS`, each applied to `step_scores`. None: the column `score` if it
        is recorded, else the last step's score.
    weights
        What a vote weighs in `weighted_vote`: "score", "sigmoid" or "softmax".
    style
        Where an answer stands in a completion; see `extract_answer`.
    references
        Accuracies to compare with, as fractions by name, such as ``{"greedy": 0.42}``.
    sections
        Names in ``ttsframe.report.SECTIONS``; what was loaded and the curve are always there. None:
        all that the runs allow.
    title
        Heading of the page.
    confidence_level
        Coverage of the intervals, in (0, 1).

    Returns
    -------
    Report
        Tables and the page. A run without gold answers gets `agreement` in place of `accuracy`; a
        run without scores gets no selector that reads one, and a note that says so.

    Raises
    ------
    ColumnsError
        When a column is missing.
    ParameterError
        When a parameter is impossible.
    DataError
        When there are no attempts, or rows of several runs were not told apart with `by`.

    Examples
    --------
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(40, 8, seed=1)
    >>> report = tts.build_report(run, title="A simulated run")
    >>> report.curve.filter(selector="oracle")["budget"].to_list()
    [1, 2, 4, 8]
    >>> report.to_html().startswith("<!doctype html>")
    True
    """
    check_frame(trajectories, "trajectories")
    groups: tuple[str, ...] = check_names(by, "by")
    keys: list[str] = [*groups, *check_names(replicates, "replicates")]
    lines = _check_references(references)
    wanted = check_choices(list(SECTIONS) if sections is None else sections, "sections", SECTIONS)
    schema = require_columns(trajectories, [*keys, "problem_id", "attempt"])
    if selectors is not None:
        chosen: tuple[str, ...] = check_choices(selectors, "selectors", SELECTORS)
        selectors = [name for name in SELECTORS if name in {*chosen, *_ALWAYS}]
    is_recorded = "score" in schema
    if reductions is None and not is_recorded and "step_scores" in schema:
        reductions = ("last",)
    scored = score_trajectories(trajectories, style=style)
    picks: Picks = plan_picks(
        scored,
        by=groups,
        replicates=replicates,
        budgets=budgets,
        selectors=selectors,
        reductions=reductions,
        weights=weights,
        confidence_level=confidence_level,
    )
    problems = picks.problems()
    curves: tuple[pl.DataFrame | None, pl.DataFrame | None] = picks.curves(problems)
    tables, omitted = analyze(picks, problems, [name for name in SECTIONS if name in wanted])
    profile = None
    if "steps" in wanted:
        card = tables.get("verifier")
        profile = (
            average_steps(picks.attempts, groups, confidence_level)
            if card is None or "verifier" in omitted
            else card.profile
        )
    return Report(
        title=title or "Test-time compute report",
        by=groups,
        loaded=count_loaded(picks.attempts, groups),
        # A score that is made here would repeat each finding about the step scores.
        validation=validate_trajectories(
            scored if is_recorded else scored.drop("score", strict=False), by=keys
        ),
        curve=curves[0],
        agreement=curves[1],
        profile=profile,
        example=choose_example(picks.attempts, problems, picks.options)
        if "votes" in wanted
        else None,
        notes=(*picks.notes, *(note for table in curves for note in unlike_lines(table, groups))),
        omitted=omitted,
        references=lines,
        confidence_level=confidence_level,
        **tables,
    )


def _check_references(references: Mapping[str, float] | None) -> dict[str, float]:
    """Return the references, or raise where one is not a fraction."""
    lines = {str(name): float(value) for name, value in (references or {}).items()}
    for name, value in lines.items():
        if not 0.0 <= value <= 1.0:
            raise ParameterError(
                f"{setting('references', name, text=f'references[{name!r}] ==')} {value}, must be an accuracy between 0 and 1. Hint: 42 % "
                "is 0.42."
            )
    return lines
