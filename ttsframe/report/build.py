"""From attempts to a report."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from ttsframe._checks import check_choices, check_frame, check_names
from ttsframe._files import replacing
from ttsframe._typing import (
    AnswerStyle,
    ColumnNames,
    FrameT,
    SelectorName,
    StepReduction,
    Weights,
)
from ttsframe.errors import ParameterError
from ttsframe.report.example import Example, choose_example
from ttsframe.report.picks import Picks, plan_picks, unlike_lines
from ttsframe.report.tables import average_steps, count_loaded
from ttsframe.schema import require_columns
from ttsframe.scoring import score_trajectories
from ttsframe.selectors import SELECTORS
from ttsframe.validation import ValidationReport, validate_trajectories

_ALWAYS: Final[tuple[SelectorName, ...]] = ("majority_vote", "oracle")


@dataclass(frozen=True, kw_only=True)
class Report:
    """What `build_report` made: tables to work with, and a page to show.

    Parameters
    ----------
    title
        Heading of the page.
    by
        Columns that tell runs apart.
    loaded
        One row per file and run: how many problems and attempts, attempts per problem (fewest,
        median, most), missing answers, ungraded and unscored attempts, range of the score.
    validation
        What `validate_trajectories` found.
    curve
        `curve` of the runs that are graded; None without one.
    agreement
        `curve` of the runs without gold answers, with `agreement` (share of the attempts that gave
        the chosen answer) in place of `accuracy`; None without one.
    profile
        What `step_profile` made; None without step scores.
    example
        The problem whose votes are shown; None where no problem has a vote.
    notes
        What a reader of the numbers must know, a sentence each.
    references
        Accuracies to compare with, by name.
    confidence_level
        Coverage of the intervals.

    Examples
    --------
    >>> import ttsframe as tts
    >>> report = tts.build_report(tts.simulate_trajectories(20, 4, seed=1))
    >>> report.loaded.select("n_problems", "n_attempts").rows()
    [(20, 80)]
    """

    title: str
    by: tuple[str, ...]
    loaded: pl.DataFrame
    validation: ValidationReport
    curve: pl.DataFrame | None
    agreement: pl.DataFrame | None
    profile: pl.DataFrame | None
    example: Example | None
    notes: tuple[str, ...]
    references: Mapping[str, float]
    confidence_level: float

    def to_html(self) -> str:
        """Draw the charts and write the page.

        Returns
        -------
        str
            One HTML document with everything in it: it opens without a network. Equal runs give
            equal pages.
        """
        from ttsframe.report.page import write_page

        return write_page(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, which appears whole or not at all.

        Parameters
        ----------
        path
            File to write, replaced if it exists.

        Raises
        ------
        SourceError
            When the file cannot be written.
        """
        page = self.to_html()
        with replacing(path) as temporary:
            temporary.write_text(page, encoding="utf-8", errors="replace")

    def to_dict(self) -> dict[str, object]:
        """Turn the report into plain values that JSON can hold.

        Returns
        -------
        dict[str, object]
            The tables as lists of rows, the validation, and the notes; without the example.
        """
        tables = {
            "loaded": self.loaded,
            "curve": self.curve,
            "agreement": self.agreement,
            "profile": self.profile,
        }
        return {
            "title": self.title,
            "confidence_level": self.confidence_level,
            "references": dict(self.references),
            "notes": list(self.notes),
            "validation": self.validation.to_dict(),
            **{name: None if table is None else table.to_dicts() for name, table in tables.items()},
        }


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
        profile=average_steps(picks.attempts, groups, confidence_level),
        example=choose_example(picks.attempts, problems, picks.options),
        notes=(*picks.notes, *(note for table in curves for note in unlike_lines(table, groups))),
        references=lines,
        confidence_level=confidence_level,
    )


def _check_references(references: Mapping[str, float] | None) -> dict[str, float]:
    """Return the references, or raise where one is not a fraction."""
    lines = {str(name): float(value) for name, value in (references or {}).items()}
    for name, value in lines.items():
        if not 0.0 <= value <= 1.0:
            raise ParameterError(
                f"references[{name!r}] == {value}, must be an accuracy between 0 and 1. Hint: 42 % "
                "is 0.42."
            )
    return lines
