"""The tables of a report, and the registry of its sections."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

import polars as pl
from polars import selectors

from ttsframe._files import replacing
from ttsframe._typing import Weights
from ttsframe._wording import shorten_paths
from ttsframe.report.origin import Origin, describe_origin, refuse_pdf
from ttsframe.report.overview import (
    list_runs,
    rank_runs,
    sort_runs,
    summarize_runs,
    tables_first,
)
from ttsframe.report.parts import Context, Page, PageSection, Part
from ttsframe.report.runs import Rule, RunData
from ttsframe.report.sections import (
    accuracy,
    comparison,
    compute_optimal,
    cost,
    difficulty,
    health,
    loaded,
    ranking,
    search,
    selection_gap,
    steps,
    verifier,
    votes,
)
from ttsframe.report.sections.votes import Example
from ttsframe.report.wording import N_RUNS_MAX
from ttsframe.validation import ValidationReport
from ttsframe.verifier import VerifierReport

SectionName: TypeAlias = Literal[
    "loaded",
    "health",
    "votes",
    "accuracy",
    "comparison",
    "ranking",
    "selection_gap",
    "difficulty",
    "compute_optimal",
    "cost",
    "verifier",
    "steps",
    "search",
]


_RUN_NAMES: Final = ("run", "baseline")
"""Columns of a comparison that hold the values of a single column of `by`."""


class SectionModule(Protocol):
    """The functions of a section; the last two take a `Context`, then the tables it makes and reads."""

    @property
    def make(self) -> Callable[[RunData, pl.DataFrame], dict[str, Any]]:
        """Make the tables from the runs that have what the section needs."""

    @property
    def answer(self) -> Callable[..., list[str]]:
        """Answer the question, in a sentence per run."""

    @property
    def draw(self) -> Callable[..., list[Part]]:
        """Draw charts and list tables."""


class Section(NamedTuple):
    """One section of a report: its question, the tables it makes, and how it shows them."""

    shows: str
    question: str
    tables: tuple[str, ...]
    """Fields of `Report` that `make` returns; the section is shown if one of them is not None."""
    module: SectionModule
    needs: Callable[[RunData], list[Rule]] | None = None
    """List the rules that a run must meet; None: every run qualifies."""
    reads: tuple[str, ...] = ()
    """Further fields of `Report` that `answer` and `draw` take."""
    question_ungraded: str | None = None
    """The question if no run is graded; None: the same."""


SECTIONS: Final[Mapping[SectionName, Section]] = MappingProxyType({
    "loaded": Section(
        shows="the data that was read, and the findings of its validation",
        question="What was loaded?",
        tables=("loaded",),
        module=loaded,
        reads=("validation",),
    ),
    "health": Section(
        shows="attempts with which something may have gone wrong, and what they cost at most",
        question="What may have gone wrong, and how much does it cost?",
        tables=("health",),
        module=health,
    ),
    "votes": Section(
        shows="the vote on one problem",
        question="What does the vote on one problem look like?",
        tables=("example",),
        module=votes,
    ),
    "accuracy": Section(
        shows="accuracy, or agreement, by number of attempts",
        question="How does accuracy grow with the number of attempts?",
        question_ungraded="How often do the attempts agree?",
        tables=("curve", "agreement", "incomplete", "majority_limit"),
        module=accuracy,
    ),
    "comparison": Section(
        shows="runs compared on the same problems",
        question="How do the runs differ?",
        tables=("comparison", "differences"),
        module=comparison,
        reads=("curve",),
    ),
    "ranking": Section(
        shows="which run is best, and how sure that is",
        question="Which run is best, and how sure is that?",
        tables=("ranking",),
        module=ranking,
    ),
    "selection_gap": Section(
        shows="accuracy lost by choosing a wrong answer, and for lack of a right one",
        question="Where is accuracy lost?",
        tables=("selection_gap",),
        needs=selection_gap.needs,
        module=selection_gap,
        reads=("curve", "incomplete"),
    ),
    "difficulty": Section(
        shows="accuracy by level of difficulty",
        question="Which problems gain from more attempts?",
        tables=("levels", "level_curve", "level_ranking"),
        needs=difficulty.needs,
        module=difficulty,
        reads=("curve", "incomplete"),
    ),
    "compute_optimal": Section(
        shows="the best strategy for each level, chosen on held-out problems",
        question="How much does the best strategy for each level gain?",
        tables=("optimal", "choices", "optimal_gain"),
        needs=compute_optimal.needs,
        module=compute_optimal,
        reads=("curve", "incomplete"),
    ),
    "cost": Section(
        shows="accuracy by tokens, and which points are efficient",
        question="How many tokens does accuracy cost?",
        tables=("cost", "efficiency"),
        needs=cost.needs,
        module=cost,
        reads=("curve", "incomplete"),
    ),
    "verifier": Section(
        shows="how good the verifier scores are",
        question="How good are the verifier scores?",
        tables=("verifier",),
        needs=verifier.needs,
        module=verifier,
    ),
    "steps": Section(
        shows="step scores over the course of right and wrong attempts",
        question="How early do step scores tell right from wrong?",
        tables=("profile", "step_ends"),
        module=steps,
    ),
    "search": Section(
        shows="what searches kept and dropped, and what their answers cost",
        question="What did the searches keep, and what did it cost?",
        tables=("search", "search_width", "search_tree"),
        module=search,
    ),
})
"""The sections in the order of the page; "loaded" and "accuracy" are in every report."""

_NOT_IN_JSON: Final = ("example", "levels", "verifier", "search_tree")
"""Fields without rows of their own in `Report.to_dict`: `levels` has a row per problem."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """The result of `build_report`: tables to work with, and a page to show.

    A table is None where no run allows it, which `omitted` explains, or where its section was not
    asked for.

    Parameters
    ----------
    title
        Heading of the page.
    by
        Columns that tell runs apart.
    loaded
        One row per file and run: numbers of problems and attempts, attempts per problem (fewest,
        median, most), missing answers, ungraded and unscored attempts, range of the score.
    validation
        Result of `validate_trajectories`.
    curve
        `curve` of the graded runs, all lines of a run on the same problems; None without one.
    agreement
        `curve` of the runs without gold answers, with `agreement` (share of the attempts that gave
        the chosen answer) in place of `accuracy`; None without one.
    health
        Result of `run_health`, without what only texts tell.
    incomplete
        `curve` of the lines that `curve` and `agreement` lack because more than one in ten problems
        has no result for them (`of_selector`, `of_reduction`), each beside majority vote and the
        oracle on the problems that it has; None if there are none.
    majority_limit
        Result of `tts.curves.majority_limit` for the graded runs of at least 8 attempts that are drawn
        alike; None without one, and where replicates are named.
    comparison
        Result of `compare` for each run with the baseline: the run that shares problems with the most
        others, the first one among equals. A run is named by its values of `by` in `run` and
        `baseline`. None for a single run.
    differences
        The ten problems of each run whose share of right attempts differs most from the
        baseline's, with both shares and the number of problems that differ.
    ranking
        Result of `rank` for the runs, at the largest number of attempts that all have; None for a single
        run.
    selection_gap
        Result of `selection_gap` for the graded runs.
    levels
        Result of `difficulty_levels`: for each half of the attempts, by the other half.
    level_curve
        Result of `level_curve` for halved attempts.
    level_ranking
        One row per run: `correlation`, the rank correlation of the difficulty of the problems in
        the two halves of their attempts, `p_value` (one-sided, of no correlation) and `n_problems`.
    optimal
        Result of `optimal_curve`, and the `curve` of its strategies on the same halves.
    choices
        Result of `optimal_choices`.
    optimal_gain
        Result of `compare` at the largest budget, of the best single strategy of each run with the
        choice by level.
    cost
        Result of `cost_curve` for token counts, marked by `pareto_frontier`.
    efficiency
        Result of `efficiency_gain`, against majority vote; with more than 2,000 problems, its
        interval uses fewer resamples.
    verifier
        Result of `verifier_report`; `metrics` has further reductions, to compare.
    profile
        Result of `step_profile`, of right and wrong attempts at the same problems; None without step
        scores.
    step_ends
        One row per run and grade: mean score of the `first_step` and the `last_step`, averaged per
        attempt, per problem and over `n_problems`; `is_paired`: whether these have right and
        wrong attempts, as they do unless no problem of the run has both.
    search
        One row per search, or per search, selector and reduction of a graded run: means over problems of
        `rounds`, `steps` and `tokens` (generated, lookahead included), `share_dropped` (of the tokens, in
        dropped steps), and `accuracy` of the answers from all solutions with its interval and
        `n_problems`. None without a table of nodes.
    search_width
        Result of `tts.search.average_measures` for `tts.search.diversity_by_depth`.
    search_tree
        The `nodes` of one problem and search, with `is_correct` of graded solutions.
    example
        The problem whose votes are shown; None where no problem has a vote.
    notes
        Sentences to read before the numbers.
    omitted
        Why a section is left out, for all runs or for some, by its name.
    references
        Accuracies to compare with, by name.
    confidence_level
        Coverage of the intervals.
    options
        What was asked for, by the names of the parameters of `build_report`; the page lists it.
    weights
        Weight of a vote in `weighted_vote`.

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
    health: pl.DataFrame | None = None
    incomplete: pl.DataFrame | None = None
    majority_limit: pl.DataFrame | None = None
    comparison: pl.DataFrame | None = None
    differences: pl.DataFrame | None = None
    ranking: pl.DataFrame | None = None
    selection_gap: pl.DataFrame | None = None
    levels: pl.DataFrame | None = None
    level_curve: pl.DataFrame | None = None
    level_ranking: pl.DataFrame | None = None
    optimal: pl.DataFrame | None = None
    choices: pl.DataFrame | None = None
    optimal_gain: pl.DataFrame | None = None
    cost: pl.DataFrame | None = None
    efficiency: pl.DataFrame | None = None
    verifier: VerifierReport | None = None
    profile: pl.DataFrame | None = None
    step_ends: pl.DataFrame | None = None
    search: pl.DataFrame | None = None
    search_width: pl.DataFrame | None = None
    search_tree: pl.DataFrame | None = None
    example: Example | None = None
    notes: tuple[str, ...]
    omitted: Mapping[SectionName, str]
    references: Mapping[str, float]
    confidence_level: float
    options: Mapping[str, object] = field(default_factory=dict)
    weights: Weights = "score"

    def answers(self) -> dict[SectionName, list[str]]:
        """Describe in words what the tables of each section show.

        Returns
        -------
        dict[SectionName, list[str]]
            Sentences, one per run, by the names of the sections in their order. Paths of runs are
            shortened to what tells them apart.
        """
        context, short_names = _context_of(self), _shorten_runs(self)
        return {
            name: section.module.answer(context, *_tables_of(self, section, short_names))
            for name, section in _shown_sections(self)
        }

    def __repr__(self) -> str:
        """Return what the report is about, and its parts by name, instead of every table."""
        size, *_ = str(self.validation).split(": ")
        return f"Report({self.title!r}: {size}; sections: {', '.join(self.answers())})"

    def _repr_html_(self) -> str:
        """Return the first chart and the table of the page for notebooks."""
        from ttsframe.report.notebook import show_report

        return show_report(_make_page(self, None))

    def to_html(
        self,
        *,
        sources: Sequence[str] = (),
        command: str | None = None,
        date: datetime | None = None,
    ) -> str:
        """Draw the charts and write the page.

        Parameters
        ----------
        sources
            Files that the page names; by default those of the column `source_file`, if any.
        command
            Command that the page names.
        date
            Date of the page. None: that of the environment variable SOURCE_DATE_EPOCH, or else now.

        Returns
        -------
        str
            One HTML document with everything in it: it opens without a network. Equal runs with
            equal dates give equal pages.

        Raises
        ------
        ParameterError
            When SOURCE_DATE_EPOCH is read and is not a number.
        """
        from ttsframe.report.page import write_page

        origin = describe_origin(
            sources or _list_sources(self.loaded), command=command, date=date, options=self.options
        )
        return write_page(_make_page(self, origin))

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        sources: Sequence[str] = (),
        command: str | None = None,
        date: datetime | None = None,
    ) -> None:
        """Write the page to a file, either in full or not at all.

        Parameters
        ----------
        path
            File to write, replaced if it exists.
        sources, command, date
            As in `to_html`.

        Raises
        ------
        SourceError
            When the file cannot be written.
        ParameterError
            When the file is to be a PDF, which a browser prints from the page; or as in `to_html`.
        """
        refuse_pdf(path)
        page = self.to_html(sources=sources, command=command, date=date)
        with replacing(path) as temporary:
            temporary.write_text(page, encoding="utf-8", errors="replace")

    def to_dict(self) -> dict[str, object]:
        """Return the report as plain values that JSON can hold.

        Returns
        -------
        dict[str, object]
            The tables as lists of rows, the validation, the notes, and the answers of the page in
            words; without the example and the level of each problem. An infinite number is None.
        """
        names = [name for section in SECTIONS.values() for name in section.tables]
        card = self.verifier
        return {
            "title": self.title,
            "confidence_level": self.confidence_level,
            "references": dict(self.references),
            "weights": self.weights,
            "notes": list(self.notes),
            "omitted": dict(self.omitted),
            "answers": self.answers(),
            "validation": self.validation.to_dict(),
            **{name: _list_rows(getattr(self, name)) for name in names if name not in _NOT_IN_JSON},
            "verifier": card
            and {
                field.name: _list_rows(getattr(card, field.name))
                for field in fields(card)
                if field.name != "profile"
            },
        }


def _context_of(report: Report) -> Context:
    return Context(report.by, report.references, report.confidence_level, report.weights)


def _shown_sections(report: Report) -> list[tuple[SectionName, Section]]:
    """Return the sections that have a table."""
    return [
        (name, section)
        for name, section in SECTIONS.items()
        if any(getattr(report, table) is not None for table in section.tables)
    ]


def _tables_of(
    report: Report,
    section: Section,
    short_names: Mapping[str, Mapping[str, str]],
    ranks: pl.DataFrame | None = None,
) -> list[Any]:
    """Return the tables that a section shows, with short names of runs."""

    def prepare(table: pl.DataFrame) -> pl.DataFrame:
        return sort_runs(table, ranks).with_columns(
            pl.col(column).replace(dict(names))
            for name, names in short_names.items()
            for column in dict.fromkeys((name, *(_RUN_NAMES if len(short_names) == 1 else ())))
            if table.schema.get(column) == pl.String
        )

    return [
        _change_tables(getattr(report, name), prepare) for name in (*section.tables, *section.reads)
    ]


def _shorten_runs(report: Report) -> dict[str, dict[str, str]]:
    """Map the values of each text column of `by` to what tells them apart."""
    return {
        name: shorten_paths(report.loaded[name].drop_nulls().unique().sort().to_list())
        for name in report.by
        if report.loaded[name].dtype == pl.String
    }


def _list_sources(loaded: pl.DataFrame) -> list[str]:
    """List the files that the attempts name."""
    if "source_file" not in loaded.columns:
        return []
    return loaded["source_file"].drop_nulls().cast(pl.String).unique().sort().to_list()


def _make_page(report: Report, origin: Origin | None) -> Page:
    """Answer the question of each section, and prepare its charts and tables."""
    context = _context_of(report)
    short_names = _shorten_runs(report)
    ranks = rank_runs(report.curve, report.agreement, report.by)
    sections = []
    for name, section in _shown_sections(report):
        question = section.question
        if report.curve is None:
            question = section.question_ungraded or question
        tables = _tables_of(report, section, short_names, ranks)
        answers = section.module.answer(context, *tables)
        # The table of what was loaded has the full names of runs.
        shown = _tables_of(report, section, {}, ranks) if name == "loaded" else tables
        parts = section.module.draw(context, *shown)
        if ranks is not None:
            parts = tables_first(parts)
        sections.append(PageSection(name.replace("_", "-"), question, answers, parts))
    curve, agreement, *_ = _tables_of(report, SECTIONS["accuracy"], short_names, ranks)
    if ranks is None:
        lead, overview = accuracy.summarize(context, curve, agreement)[:N_RUNS_MAX], None
    else:
        lead = summarize_runs(context, curve, agreement)
        overview = list_runs(context, curve, agreement)
    serious = [
        f"{finding.message}."
        for finding in report.validation.findings
        if finding.severity != "note"
        # Weights other than the scores are what this finding asks for.
        and (finding.code != "logit_scores" or report.weights == "score")
    ]
    return Page(
        title=report.title,
        origin=origin,
        lead=lead,
        overview=overview,
        notices=[*report.notes, *serious],
        sections=sections,
        omitted=_list_omitted(report, short_names),
    )


def _list_omitted(
    report: Report, short_names: Mapping[str, Mapping[str, str]]
) -> list[tuple[str, str]]:
    """List the sections that are left out, and why; those with the same reason together."""
    shown = {name for name, _ in _shown_sections(report)}
    paths = {path: short for names in short_names.values() for path, short in names.items()}
    reasons: dict[str, list[str]] = {}
    for name, full in report.omitted.items():
        reason = full
        # A path may begin with another one.
        for path in sorted(paths, key=len, reverse=True):
            reason = reason.replace(path, paths[path])
        what = SECTIONS[name].shows
        reasons.setdefault(reason, []).append(f"{what}, for some runs" if name in shown else what)
    return [("; ".join(names), reason) for reason, names in reasons.items()]


def _change_tables(value: object, change: Callable[[pl.DataFrame], pl.DataFrame]) -> object:
    """Change the tables of a field."""
    match value:
        case pl.DataFrame():
            return change(value)
        case Example():
            return replace(value, votes=change(value.votes))
        case VerifierReport():
            declines = value.over_optimization
            lengths = value.length_bias
            return replace(
                value,
                metrics=change(value.metrics),
                reliability=change(value.reliability),
                distribution=change(value.distribution),
                thresholds=change(value.thresholds),
                length_bias=None if lengths is None else change(lengths),
                over_optimization=None if declines is None else change(declines),
            )
    return value


def _list_rows(table: pl.DataFrame | None) -> list[dict[str, object]] | None:
    """Return the rows of a table in values that JSON has."""
    if table is None:
        return None
    numbers = selectors.float()
    return table.with_columns(pl.when(numbers.is_finite()).then(numbers)).to_dicts()
