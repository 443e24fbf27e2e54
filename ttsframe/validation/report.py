"""What is wrong with a run, or worth knowing about it: counts and examples, not a crash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from statistics import median
from typing import Final

import polars as pl

from ttsframe._checks import check_frame, check_names
from ttsframe._typing import ColumnNames
from ttsframe.schema import TRAJECTORY_COLUMNS, require_columns
from ttsframe.validation.columns import as_expected, fits, missing_columns, wrong_dtypes
from ttsframe.validation.finding import Finding, Found, Severity
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
    value_counts,
    value_findings,
    whole_run_findings,
)

_N_EXAMPLES: Final = 3
_SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")


@dataclass(frozen=True, kw_only=True)
class ValidationReport:
    """What `validate_trajectories` found; printed, it is a text to read.

    Parameters
    ----------
    n_attempts
        Number of rows.
    n_problems
        Number of distinct problems (within ``by``); 0 without a usable column ``problem_id``.
    attempts_per_problem
        Smallest, median and largest number of attempts at a problem; None without problems.
    findings
        What was found, errors first.

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
    warning: 1 of 2 problems number their attempts with gaps, 1 in all [attempt_gaps]
        e.g. problem_id 'b', n_missing 1
        hint: tts.renumber_attempts(frame) closes the gaps; budgets above a gap leave the problem out.
    """

    n_attempts: int
    n_problems: int
    attempts_per_problem: tuple[int, float, int] | None
    findings: tuple[Finding, ...]

    @property
    def is_valid(self) -> bool:
        """Whether there is no error; warnings and notes are allowed.

        Returns
        -------
        bool
            True where every function of ttsframe can work with the run.
        """
        return all(finding.severity != "error" for finding in self.findings)

    def to_dict(self) -> dict[str, object]:
        """Turn the report into plain values that JSON can hold.

        Returns
        -------
        dict[str, object]
            ``is_valid`` and the fields; findings as dicts. Examples hold what the columns hold,
            except that infinite scores are strings.
        """
        return {
            "is_valid": self.is_valid,
            "n_attempts": self.n_attempts,
            "n_problems": self.n_problems,
            "attempts_per_problem": self.attempts_per_problem and list(self.attempts_per_problem),
            "findings": [
                {**asdict(finding), "examples": [_plain(each) for each in finding.examples]}
                for finding in self.findings
            ],
        }

    def __str__(self) -> str:
        """Return the report as text.

        Returns
        -------
        str
            A line on the size of the run, then some for each finding.
        """
        lines = [f"{self._size()}: {self._tally()}"]
        for finding in self.findings:
            lines.append(f"{finding.severity}: {finding.message} [{finding.code}]")
            for example in finding.examples:
                where = ", ".join(f"{name} {value!r}" for name, value in example.items())
                lines.append(f"    e.g. {where}")
            lines.append(f"    hint: {finding.hint}")
        return "\n".join(lines)

    def _size(self) -> str:
        """Return how many attempts at how many problems there are."""
        if self.attempts_per_problem is None:
            return f"{self.n_attempts:,} attempts"
        fewest, median, most = self.attempts_per_problem
        each = f"{most:,} each"
        if fewest != most:
            each = f"{fewest:,} to {most:,} each, median {median:g}"
        return f"{self.n_attempts:,} attempts at {self.n_problems:,} problems ({each})"

    def _tally(self) -> str:
        """Return how many findings of each severity there are."""
        severities = [finding.severity for finding in self.findings]
        counts = [(severities.count(severity), severity) for severity in _SEVERITIES]
        listed = [f"{n} {severity}{'s' if n > 1 else ''}" for n, severity in counts if n]
        return ", ".join(listed) or "nothing found"


def validate_trajectories(
    frame: pl.DataFrame | pl.LazyFrame, /, *, by: ColumnNames = ()
) -> ValidationReport:
    """Look for what would make the numbers of a run wrong, or mean something else.

    Run it once on what another tool wrote, before the first curve. Nothing about the data raises:
    each finding is a count with examples and a way out.

    Parameters
    ----------
    frame
        A `trajectories` table; of a LazyFrame only counts and examples are collected. Any column
        may be missing: what needs it is then not looked at.
    by
        Columns that tell runs apart. Attempts are numbered within ``(*by, problem_id)``.

    Returns
    -------
    ValidationReport
        Sizes and findings, errors before warnings before notes.

    Raises
    ------
    ParameterTypeError
        When ``frame`` is not a Polars frame.
    ColumnsError
        When a column of ``by`` is not there.

    Notes
    -----
    Errors: ``no_attempts``, ``missing_column``, ``wrong_dtype``, ``null_problem_ids``,
    ``unnumbered_attempts``, ``duplicate_attempts``, ``conflicting_problems`` (one ``problem_id``,
    several problem texts or gold answers).

    Warnings: ``attempt_gaps``, ``ragged_attempts``, ``duplicate_completions`` (equal texts within a
    problem, as the padding of a beam search leaves), ``empty_completions``, ``missing_gold``,
    ``ungraded_attempts``, ``inconsistent_grades`` (equal ``answer_key`` in a problem, right here
    and wrong there), ``missing_scores``, ``empty_steps``, ``null_scores``, ``nan_scores``,
    ``infinite_scores``, ``constant_scores``, ``out_of_range_scores``, and in place of the last
    ``logit_scores`` where at least 5 % of the finite scores lie outside [0, 1].

    Notes: ``missing_answers``, ``ungraded_run`` (neither grades nor gold answers nor solutions).

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
    "1 of 50 problems hold rows that repeat an 'attempt', 1 in all"
    """
    check_frame(frame, "frame")
    names = check_names(by, "by")
    schema = require_columns(frame, names)
    keys = list(dict.fromkeys((*names, "problem_id")))
    known = {name for name in TRAJECTORY_COLUMNS if name in schema and fits(name, schema[name])}
    rows = frame.lazy().with_columns(as_expected(schema, known))

    plans = {"attempts": value_counts(rows, ATTEMPT_CHECKS, known, score="score")}
    if "step_scores" in known:
        plans["steps"] = value_counts(flat_steps(rows), STEP_CHECKS, known, score="step_scores")
    if "problem_id" in known:
        plans["problems"] = problem_counts(rows, keys, known)
        if {"answer_key", "is_correct"} <= known:
            plans["answers"] = inconsistent_answers(rows, keys)
    tables = dict(zip(plans, pl.collect_all(plans.values()), strict=True))

    places = [name for name in (*keys, "attempt") if name in known or name in names]
    counts = tables["attempts"].row(0, named=True)
    found = [*missing_columns(schema), *wrong_dtypes(schema), *whole_run_findings(counts, known)]
    hidden = {"gold"} if "is_correct" in known else set()
    hidden |= {"answer_key"} if "answer" in known else set()
    hidden |= {"gold", "is_correct"} if is_ungraded(counts, known) else set()
    checks = [check for check in ATTEMPT_CHECKS if check.column not in hidden]
    found += value_findings(rows, counts, checks, places, score="score")
    if "steps" in tables:
        steps = tables["steps"].row(0, named=True)
        found += value_findings(rows, steps, STEP_CHECKS, places, score="step_scores")
    sizes = []
    if "problems" in tables:
        found += problem_findings(tables["problems"], keys)
        sizes = tables["problems"]["n"].to_list()
    if "answers" in tables:
        found += grade_findings(tables["answers"])
    return ValidationReport(
        n_attempts=counts["n"],
        n_problems=len(sizes),
        attempts_per_problem=(min(sizes), median(sizes), max(sizes)) if sizes else None,
        findings=_with_examples(found),
    )


def _with_examples(found: Sequence[Found]) -> tuple[Finding, ...]:
    """Return the findings, the most severe first, with the first places of each."""
    plans = [
        each.places.sort(pl.all(), nulls_last=True).head(_N_EXAMPLES)
        for each in found
        if each.places is not None
    ]
    tables = iter(pl.collect_all(plans))
    findings = [
        each.finding
        if each.places is None
        else replace(each.finding, examples=tuple(next(tables).to_dicts()))
        for each in found
    ]
    return tuple(sorted(findings, key=lambda finding: _SEVERITIES.index(finding.severity)))


def _plain(example: Mapping[str, object]) -> dict[str, object]:
    """Return an example in which JSON can hold every value."""
    return {
        name: str(value) if isinstance(value, float) and not isfinite(value) else value
        for name, value in example.items()
    }
