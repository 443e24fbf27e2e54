"""What a report holds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

import polars as pl
from polars import selectors

from ttsframe._files import replacing
from ttsframe._typing import SectionName
from ttsframe.report.example import Example
from ttsframe.validation import ValidationReport
from ttsframe.verifier import VerifierReport

_TABLES: Final = (
    "loaded",
    "curve",
    "agreement",
    "selection_gap",
    "level_curve",
    "optimal",
    "choices",
    "cost",
    "efficiency",
    "profile",
)
"""The small ones; `levels` has a row per problem."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """What `build_report` made: tables to work with, and a page to show.

    A table is None where no run allows it, which `omitted` explains, or where its section was not
    asked for.

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
    selection_gap
        What `selection_gap` made of the graded runs.
    levels
        What `difficulty_levels` made: for each half of the attempts by the other half.
    level_curve
        What `level_curve` made of halved attempts.
    optimal
        What `optimal_curve` made, and the `curve` of its strategies on the same halves.
    choices
        What `optimal_choices` made.
    cost
        What `cost_curve` made of numbers of tokens, marked by `pareto_frontier`.
    efficiency
        What `efficiency_gain` made, against majority vote; its interval is of fewer resamples
        where there are more than 2,000 problems.
    verifier
        What `verifier_report` made; `metrics` has further reductions, to compare.
    profile
        What `step_profile` made; None without step scores.
    example
        The problem whose votes are shown; None where no problem has a vote.
    notes
        What a reader of the numbers must know, a sentence each.
    omitted
        Why a section is not there, or not for all runs, by its name.
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
    selection_gap: pl.DataFrame | None = None
    levels: pl.DataFrame | None = None
    level_curve: pl.DataFrame | None = None
    optimal: pl.DataFrame | None = None
    choices: pl.DataFrame | None = None
    cost: pl.DataFrame | None = None
    efficiency: pl.DataFrame | None = None
    verifier: VerifierReport | None = None
    profile: pl.DataFrame | None = None
    example: Example | None = None
    notes: tuple[str, ...]
    omitted: Mapping[SectionName, str]
    references: Mapping[str, float]
    confidence_level: float

    def answers(self) -> dict[SectionName, list[str]]:
        """Say in words what the tables of each section show.

        Returns
        -------
        dict[SectionName, list[str]]
            Sentences, one per run, by the names of the sections in their order.
        """
        from ttsframe.report.sections import WRITERS

        return {
            name: writer.answers(self) for name, writer in WRITERS.items() if writer.is_there(self)
        }

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
            The tables as lists of rows, the validation, the notes, and what the page says in
            words; without the example and the level of each problem. An infinite number is None.
        """
        tables: dict[str, pl.DataFrame | None] = {name: getattr(self, name) for name in _TABLES}
        card = self.verifier
        verifier = card and {
            field.name: _rows(getattr(card, field.name))
            for field in fields(card)
            if field.name != "profile"
        }
        return {
            "title": self.title,
            "confidence_level": self.confidence_level,
            "references": dict(self.references),
            "notes": list(self.notes),
            "omitted": dict(self.omitted),
            "answers": self.answers(),
            "validation": self.validation.to_dict(),
            **{name: _rows(table) for name, table in tables.items()},
            "verifier": verifier,
        }


def _rows(table: pl.DataFrame | None) -> list[dict[str, object]] | None:
    """Return the rows of a table, in values that JSON has."""
    if table is None:
        return None
    numbers = selectors.float()
    return table.with_columns(pl.when(numbers.is_finite()).then(numbers)).to_dicts()
