"""Build a report from attempts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple

import polars as pl

from ttsframe._checks import check_choices, check_frame, check_references
from ttsframe._typing import (
    AnswerStyle,
    ColumnNames,
    FrameT,
    Grader,
    Reduction,
    Weights,
)
from ttsframe._waits import Threads
from ttsframe.answers import AnswerPolicy
from ttsframe.defaults import PickOptions, Picks, check_run_names, plan_picks
from ttsframe.errors import ParameterError
from ttsframe.report.parts import Context
from ttsframe.report.report import SECTIONS, Report, SectionName
from ttsframe.report.runs import NoTableError, RunData, keep_runs
from ttsframe.report.sections.accuracy import note_problems
from ttsframe.schema import refuse_counts
from ttsframe.validation import validate_trajectories
from ttsframe.votes.engine.registry import AnySelector, SelectorName, check_selectors, in_order

_ALWAYS_SELECTED: Final[tuple[SelectorName, ...]] = ("majority_vote", "oracle")
_ALWAYS_SHOWN: Final[tuple[SectionName, ...]] = ("loaded", "accuracy")
_CHAINS: Final[tuple[tuple[SectionName, ...], ...]] = (
    ("difficulty", "compute_optimal"),
    ("verifier", "steps"),
    ("cost",),
)
"""The dearest sections first; those of a chain share halves of the attempts, or a step profile."""
_N_AT_ONCE: Final = 2


class _Made(NamedTuple):
    """What came of a section."""

    tables: dict[str, Any]
    reason: str | None


def build_report(
    trajectories: FrameT,
    /,
    *,
    nodes: pl.DataFrame | pl.LazyFrame | None = None,
    by: ColumnNames = (),
    replicates: ColumnNames = (),
    cluster: str | None = None,
    budgets: int | Sequence[int] | None = None,
    selectors: AnySelector | Sequence[AnySelector] | None = None,
    reductions: Reduction | Sequence[Reduction] | None = None,
    weights: Weights = "score",
    style: AnswerStyle = "auto",
    cut_at_next_question: bool = True,
    policy: AnswerPolicy | None = None,
    grade: Grader | None = None,
    references: Mapping[str, float] | None = None,
    sections: SectionName | Sequence[SectionName] | None = None,
    title: str | None = None,
    confidence_level: float = 0.95,
) -> Report:
    """Analyze a run, or several side by side, from attempts to a page of charts.

    Missing answers, grades and scores are added as by `score_trajectories`. From a LazyFrame, only
    the text of the problems is held in memory.

    Parameters
    ----------
    trajectories
        One row per attempt, with `problem_id`, `attempt`, and `completion`, `answer` or
        `answer_key`; `gold`, `is_correct`, `score`, `step_scores` and `n_tokens` are used if they
        exist.
    nodes
        The trees of the searches that the attempts are solutions of, as `tts.search.search` returns them,
        with the columns of `by` and `replicates`; for the section on searches.
    by
        Columns that tell runs apart, such as "source_file"; each run gets its own curves.
    replicates
        Columns that number replicates of one run, such as the seed; they are averaged per problem.
    cluster
        Column that groups problems that were drawn together, such as the text that they ask about;
        clusters are then the units of all intervals and tests, and gains of efficiency, whose interval
        is over problems, are left out.
    budgets
        Numbers of attempts. None: for each run, the powers of two up to the number of attempts
        that at least nine in ten problems have, and that number.
    selectors
        Names in `SELECTORS`, or functions, as `select_answers` takes them; majority vote (the baseline) and the oracle (the upper bound) are always
        added. None: these two, and weighted vote and best of n if the run has scores.
    reductions
        Names in `STEP_REDUCTIONS`, or functions, each applied to `step_scores`. None: the column `score` if it
        exists, else the last step's score.
    weights
        Weight of a vote in `weighted_vote`: "score", "sigmoid", "softmax" or "logit", as in `select_answers`.
    style, cut_at_next_question
        How to find an answer in a completion; see `extract_answer`.
    policy
        Conventions under which answers are the same; None is `AnswerPolicy()`. Keys that the attempts
        have are kept.
    grade
        A grade of your own, as `score_trajectories` takes it.
    references
        Accuracies to compare with, as fractions by name, such as `{"greedy": 0.42}`.
    sections
        Names in `ttsframe.report.SECTIONS`; "loaded" and "accuracy" are always included. None: all
        sections that the runs allow.
    title
        Heading of the page.
    confidence_level
        Coverage of the intervals, in (0, 1).

    Returns
    -------
    Report
        Tables and the page. A run without gold answers gets `agreement` in place of `accuracy`. A
        run without scores gets no selector that reads scores, and a note that says so.

    Raises
    ------
    ColumnsError
        When a column is missing.
    ParameterError
        When a parameter is out of range, or `by` names a column that the report's tables have.
    DataError
        When there are no attempts, or `by` does not tell the rows of several runs apart.

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
    refuse_counts(trajectories.collect_schema(), "trajectories")
    by, replicates = check_run_names(by, "by"), check_run_names(replicates, "replicates")
    checked_references = check_references(references)
    wanted: tuple[SectionName, ...] = check_choices(
        list(SECTIONS) if sections is None else sections, "sections", SECTIONS
    )
    chosen: tuple[AnySelector, ...] | None = None
    if selectors is not None:
        named: tuple[AnySelector, ...] = check_selectors(selectors)
        chosen = in_order(dict.fromkeys([*named, *_ALWAYS_SELECTED]))
    options = PickOptions(
        by=by,
        replicates=replicates,
        cluster=cluster,
        budgets=budgets,
        selectors=chosen,
        reductions=reductions,
        weights=weights,
        style=style,
        cut_at_next_question=cut_at_next_question,
        policy=policy,
        grade=grade,
        confidence_level=confidence_level,
    )
    picks: Picks = plan_picks(trajectories, options)
    if nodes is not None:
        from ttsframe.search.nodes import require_nodes

        check_frame(nodes, "nodes")
        require_nodes(nodes, ["problem_id", "node_id", "parent_id", "is_kept"])
    data = RunData(picks, None if nodes is None else nodes.lazy())
    tables: dict[str, Any]
    omitted: dict[SectionName, str]
    tables, omitted = _make_tables(
        data, [name for name in SECTIONS if name in {*wanted, *_ALWAYS_SHOWN}]
    )
    # An answer without a key, such as a placeholder, abstains as no answer does, and is counted so.
    validated = picks.validated.drop("answer", strict=False)
    if "score" not in trajectories.collect_schema():
        # A score that is computed here would repeat each finding about the step scores.
        validated = validated.drop("score", strict=False)
    context: Context = Context(by, checked_references, confidence_level, weights)
    curves: list[pl.DataFrame | None] = [tables["curve"], tables["agreement"]]
    return Report(
        title=title or "Test-time compute report",
        by=by,
        validation=validate_trajectories(validated, by=data.keys),
        notes=(
            *picks.notes,
            *(note for curve in curves for note in note_problems(context, curve, None)),
            *note_problems(context, None, tables["incomplete"]),
        ),
        omitted=omitted,
        references=checked_references,
        confidence_level=confidence_level,
        weights=weights,
        options={
            "by": by,
            "replicates": replicates,
            "cluster": cluster,
            "budgets": budgets,
            "selectors": selectors,
            "reductions": reductions,
            "weights": weights,
            "style": style,
            "cut_at_next_question": cut_at_next_question,
            "policy": policy,
            "grade": grade,
            "references": checked_references,
            "sections": sections,
            "confidence_level": confidence_level,
        },
        **tables,
    )


def _make_tables(
    data: RunData, names: Sequence[SectionName]
) -> tuple[dict[str, Any], dict[SectionName, str]]:
    """Make the tables of sections, and give the reasons why some are left out."""
    chains = [tuple(name for name in one if name in names) for one in _CHAINS]
    chained = {*chain.from_iterable(chains)}
    chains += [(name,) for name in names if name not in chained]
    # Alone, a section leaves threads of Polars idle; its tables are the same beside others.
    with Threads(min(_N_AT_ONCE, pl.thread_pool_size())) as threads:
        made = dict(chain.from_iterable(threads.each(partial(_make_chain, data), chains)))
    tables: dict[str, Any] = {}
    omitted: dict[SectionName, str] = {}
    for name in names:
        of_section, reason = made[name]
        tables.update(of_section)
        if reason is not None:
            omitted[name] = reason
    return tables, omitted


def _make_chain(data: RunData, names: Sequence[SectionName]) -> list[tuple[SectionName, _Made]]:
    """Make sections one after the other."""
    made = [(name, _make_section(data, name)) for name in names]
    if "compute_optimal" in names:
        data.forget_halves()
    return made


def _make_section(data: RunData, name: SectionName) -> _Made:
    """Make the tables of a section, or say why it is left out, for all runs or for some."""
    section, runs, reason = SECTIONS[name], data.runs, None
    try:
        if section.needs is not None:
            runs, reason = keep_runs(runs, section.needs(data), data.by)
        if runs.is_empty():
            return _Made({}, reason)
        return _Made(section.module.make(data, runs), reason)
    except NoTableError as explanation:
        return _Made({}, str(explanation))
    except ParameterError as error:
        # `by` and `replicates` may name columns that the tables of this section have.
        if not data.keys or name in _ALWAYS_SHOWN:
            raise
        return _Made({}, str(error))
