"""The validation report: findings about a run as counts and examples, never an exception."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from statistics import median
from typing import Final

import polars as pl

from ttsframe import _html
from ttsframe._checks import check_frame, check_names
from ttsframe._exprs import safe_names
from ttsframe._traps import Trap
from ttsframe._typing import ColumnNames
from ttsframe.schema import TRAJECTORY_COLUMNS, holds_counts, require_columns
from ttsframe.validation.columns import canonical_casts, is_usable, missing_columns, wrong_dtypes
from ttsframe.validation.counts import count_findings
from ttsframe.validation.finding import Finding, Pending, Severity
from ttsframe.validation.grades import difference_findings, grade_queries
from ttsframe.validation.mixups import mixup_findings, mixup_queries
from ttsframe.validation.problems import (
    grade_findings,
    inconsistent_answers,
    problem_counts,
    problem_findings,
)
from ttsframe.validation.values import (
    ATTEMPT_CHECKS,
    STEP_CHECKS,
    flat_steps,
    is_ungraded,
    lost_findings,
    trap_findings,
    value_counts,
    value_findings,
    whole_run_findings,
)

_N_EXAMPLES: Final = 3
_SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")


@dataclass(frozen=True, kw_only=True)
class ValidationReport:
    """The findings of `validate_trajectories`; printing it shows a readable text.

    Parameters
    ----------
    n_attempts
        Number of rows.
    n_problems
        Number of distinct problems, one that several runs attempted once; 0 without a usable column
        `problem_id`.
    attempts_per_problem
        Smallest, median and largest number of attempts of a run at a problem; None without problems.
    findings
        The findings: errors first, then warnings, then notes.
    n_runs
        Number of runs that `by` tells apart; 1 without problems.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> run = pl.DataFrame({
    ...     "problem_id": ["a", "a", "b", "b"],
    ...     "attempt": [0, 1, 0, 2],
    ...     "gold": "7",
    ...     "score": [0.5, 0.5, 0.25, 0.75],
    ... })
    >>> print(tts.validate_trajectories(run))
    4 attempts at 2 problems (2 each): 1 warning
    warning: 1 of 2 problems have gaps in their attempt numbers, 1 in all [attempt_gaps]
        e.g. problem_id 'b', n_missing 1
        hint: tts.renumber_attempts(trajectories) closes the gaps; until then, budgets above a gap leave the problem out.
    """

    n_attempts: int
    n_problems: int
    attempts_per_problem: tuple[int, float, int] | None
    findings: tuple[Finding, ...]
    n_runs: int = 1

    @property
    def is_valid(self) -> bool:
        """Whether no finding is an error.

        Returns
        -------
        bool
            True if every function of ttsframe accepts the run, with or without warnings.
        """
        return all(finding.severity != "error" for finding in self.findings)

    def to_dict(self) -> dict[str, object]:
        """Convert the report to values that JSON can represent.

        Returns
        -------
        dict[str, object]
            `is_valid` and the fields, findings as dicts. Infinite and NaN scores become strings.
        """
        return {
            "is_valid": self.is_valid,
            "n_attempts": self.n_attempts,
            "n_problems": self.n_problems,
            "n_runs": self.n_runs,
            "attempts_per_problem": self.attempts_per_problem and list(self.attempts_per_problem),
            "findings": [
                {**asdict(finding), "examples": [_plain(example) for example in finding.examples]}
                for finding in self.findings
            ],
        }

    def __str__(self) -> str:
        """Return the report as text."""
        lines = [f"{self._size()}: {self._tally()}"]
        for finding in self.findings:
            lines.append(f"{finding.severity}: {finding.message} [{finding.code}]")
            for example in finding.examples:
                where = ", ".join(f"{name} {value!r}" for name, value in example.items())
                lines.append(f"    e.g. {where}")
            lines.append(f"    hint: {finding.hint}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the report as a table for notebooks."""
        rows = [
            {
                "severity": finding.severity,
                "finding": finding.message,
                "for example": "; ".join(
                    ", ".join(f"{name} {value!r}" for name, value in example.items())
                    for example in finding.examples
                ),
                "hint": finding.hint,
            }
            for finding in self.findings
        ]
        return _html.fragment(
            _html.heading(f"{self._size()}: {self._tally()}"),
            _html.texts(rows) if rows else "",
        )

    def _size(self) -> str:
        """Return the number of attempts and problems."""
        if self.attempts_per_problem is None:
            return f"{self.n_attempts:,} attempts"
        fewest, median, most = self.attempts_per_problem
        per_problem = f"{most:,} each"
        if fewest != most:
            per_problem = f"{fewest:,} to {most:,} each, median {median:g}"
        runs = f" in {self.n_runs:,} runs" if self.n_runs > 1 else ""
        problems = "1 problem" if self.n_problems == 1 else f"{self.n_problems:,} problems"
        return f"{self.n_attempts:,} attempts at {problems}{runs} ({per_problem})"

    def _tally(self) -> str:
        """Return the number of findings of each severity."""
        severities = [finding.severity for finding in self.findings]
        counts = [(severities.count(severity), severity) for severity in _SEVERITIES]
        listed = [f"{n} {severity}{'s' if n > 1 else ''}" for n, severity in counts if n]
        return ", ".join(listed) or "nothing found"


def validate_trajectories(
    trajectories: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    by: ColumnNames = (),
    traps: Sequence[Trap] = (),
) -> ValidationReport:
    """Check a run for errors that make its numbers wrong or misleading.

    Run it once on the output of another tool, before the first curve. The content of the run never
    raises: each finding is a count with examples and a hint.

    Parameters
    ----------
    trajectories
        A `trajectories` table, or a table of counts. Of a LazyFrame, only counts and examples are collected. Any column may
        be missing; rules that read it are skipped.
    by
        Columns that identify a run. Attempts are numbered within `(*by, problem_id)`.
    traps
        What is known to mislead in the files of the tool that wrote the run, as a reader declares it:
        `tts.READERS["lm_eval"].traps`. `ttsframe validate` adds those of the format that it reads.

    Returns
    -------
    ValidationReport
        The size of the run and the findings, errors before warnings before notes.

    Raises
    ------
    ParameterTypeError
        When `trajectories` is not a Polars frame.
    ColumnsError
        When a column of `by` is missing.

    Notes
    -----
    Errors: `no_attempts`, `missing_column`, `wrong_dtype`, `null_problem_ids`,
    `unnumbered_attempts`, `duplicate_attempts`, `conflicting_problems` (several problem texts or gold
    answers under one `problem_id`), `shifted_completions` (far more answers are those of other problems,
    in an order in which tools are known to mix them up), `swapped_gold`.

    Warnings: `attempt_gaps`, `ragged_attempts`, `duplicate_completions` (equal texts within a problem,
    such as the padding of beam search), `empty_completions`, `missing_gold`, `ungraded_attempts`,
    `inconsistent_grades` (attempts at a problem with equal `answer_key` and different grades),
    `lost_grades` (graded as right by another tool, but no answer was found, so they count as wrong),
    `grades_differ` (by `is_correct_recorded`; one finding for each rule that tells the grades apart),
    `answer_is_gold`, `oracle_scores` (the score separates right from wrong perfectly),
    `repeated_runs` (equal texts under two seeds or files), `differing_prompts`,
    `missing_scores`, `empty_steps`, `null_scores`, `nan_scores`, `infinite_scores`,
    `constant_scores`, `out_of_range_scores`. If at least 5 % of the finite scores are outside [0, 1],
    `logit_scores` replaces the last, or `log_scores` (none above 0) or `unscaled_scores` (points from 0
    to at most 100).

    Of a table of counts: `null_problem_ids`, `wrong_dtype`, `impossible_counts`, `duplicate_counts`
    (errors), `ungraded_problems`, `ragged_attempts` (warnings).

    Notes: `missing_answers`, `ungraded_run` (neither grades nor gold answers nor solutions).

    Examples
    --------
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(50, 8, seed=1, missing_share=0.0)
    >>> print(tts.validate_trajectories(run))
    400 attempts at 50 problems (8 each): nothing found
    >>> report = tts.validate_trajectories(run.vstack(run.head(1)))
    >>> report.is_valid
    False
    >>> report.findings[0].message
    "1 of 50 problems have rows that repeat an 'attempt', 1 in all"
    """
    check_frame(trajectories, "trajectories", takes_any_dtype=True)
    names = check_names(by, "by")
    schema = require_columns(trajectories, names)
    keys = list(dict.fromkeys((*names, "problem_id")))
    if holds_counts(schema) and "problem_id" in schema:
        return _validate_counts(trajectories.lazy(), keys)
    usable = {
        name for name in TRAJECTORY_COLUMNS if name in schema and is_usable(name, schema[name])
    }
    rows = trajectories.lazy().with_columns(canonical_casts(schema, usable))

    queries = {"attempts": value_counts(rows, ATTEMPT_CHECKS, usable, score="score")}
    if "step_scores" in usable:
        queries["steps"] = value_counts(flat_steps(rows), STEP_CHECKS, usable, score="step_scores")
    if "problem_id" in usable:
        prompts = {"prompt"} if schema.get("prompt") == pl.String else set()
        queries["problems"] = problem_counts(rows, safe_names(keys), usable | prompts)
        if {"answer_key", "is_correct"} <= usable:
            queries["answers"] = inconsistent_answers(rows, keys)
    queries |= grade_queries(rows, usable) | mixup_queries(rows, keys, schema, usable)
    tables = dict(zip(queries, pl.collect_all(queries.values()), strict=True))

    located = dict.fromkeys([*keys, "attempt"])
    places = [name for name in located if name in usable or name in names]
    counts = tables["attempts"].row(0, named=True)
    pending = [*missing_columns(schema), *wrong_dtypes(schema), *whole_run_findings(counts, usable)]
    implied = {"gold"} if "is_correct" in usable else set()
    implied |= {"answer_key"} if "answer" in usable else set()
    implied |= {"gold", "is_correct"} if is_ungraded(counts, usable) else set()
    checks = [check for check in ATTEMPT_CHECKS if check.column not in implied]
    pending += value_findings(rows, counts, checks, places, score="score")
    pending += lost_findings(rows, counts, usable, places)
    pending += trap_findings(trajectories.lazy(), traps, schema, places)
    if "steps" in tables:
        steps = tables["steps"].row(0, named=True)
        pending += value_findings(rows, steps, STEP_CHECKS, places, score="step_scores")
    sizes, n_problems, n_runs = [], 0, 1
    if "problems" in tables:
        pending += problem_findings(tables["problems"], safe_names(keys))
        sizes = tables["problems"]["n"].to_list()
        named = {name: tables["problems"][key] for key, name in safe_names(keys).items()}
        n_problems = named.pop("problem_id").n_unique()
        n_runs = pl.DataFrame(named).n_unique() if named else 1
    if "answers" in tables:
        pending += grade_findings(tables["answers"])
    if "grades" in tables:
        pending += difference_findings(tables["grades"], rows, usable, places)
    pending += mixup_findings(tables, keys, schema)
    return ValidationReport(
        n_attempts=counts["n"],
        n_problems=n_problems,
        attempts_per_problem=(min(sizes), median(sizes), max(sizes)) if sizes else None,
        findings=_with_examples(pending),
        n_runs=max(n_runs, 1),
    )


def _validate_counts(counts: pl.LazyFrame, keys: Sequence[str]) -> ValidationReport:
    """Validate a table of counts."""
    table, findings = count_findings(counts, safe_names(keys))
    sizes = table["n"].to_list()
    runs = table.drop("n", "problem").columns
    return ValidationReport(
        n_attempts=sum(sizes),
        n_problems=table["problem"].n_unique(),
        attempts_per_problem=(min(sizes), median(sizes), max(sizes)) if sizes else None,
        findings=_with_examples(findings),
        n_runs=max(table.select(runs).n_unique() if runs else 1, 1),
    )


def _with_examples(pending: Sequence[Pending]) -> tuple[Finding, ...]:
    """Return the findings with their first examples, the most severe first."""
    queries = [
        item.examples.sort(pl.all(), nulls_last=True).head(_N_EXAMPLES)
        for item in pending
        if item.examples is not None
    ]
    tables = iter(pl.collect_all(queries))
    findings = [
        item.finding
        if item.examples is None
        else replace(item.finding, examples=tuple(next(tables).to_dicts()))
        for item in pending
    ]
    return tuple(sorted(findings, key=severity_rank))


def severity_rank(finding: Finding) -> int:
    """Return the place of a finding's severity: errors first."""
    return _SEVERITIES.index(finding.severity)


def _plain(example: Mapping[str, object]) -> dict[str, object]:
    """Return an example whose values JSON can represent."""
    return {
        name: str(value) if isinstance(value, float) and not isfinite(value) else value
        for name, value in example.items()
    }
