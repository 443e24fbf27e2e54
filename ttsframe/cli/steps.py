"""``ttsframe steps``: count labeled steps, compare them with scores, convert them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, get_args

import click
import polars as pl
import polars.selectors as cs

from ttsframe._wording import counted
from ttsframe.cli._console import Console
from ttsframe.cli._names import Name
from ttsframe.cli._options import (
    OUTPUT,
    Sources,
    by_option,
    examples,
    gathers,
    level_option,
    prints,
    source_options,
)
from ttsframe.cli._output import TABLE_SUFFIXES, check_output, guard_option, save
from ttsframe.cli._tables import rows_text, table_text
from ttsframe.errors import ColumnsError
from ttsframe.process import StepAgreement, estimate_steps, step_agreement
from ttsframe.process.summary import StepSummary, main_paths, summarize_steps, with_labels
from ttsframe.readers.engine import FileFormat, order_columns, scan_source
from ttsframe.readers.step_formats.prm800k import ALTERNATIVE_COLUMNS
from ttsframe.readers.step_formats.table import ROLLOUTS
from ttsframe.readers.steps import STEP_COLUMNS, STEP_FORMATS, WritableStepFormat, write_steps
from ttsframe.readers.trajectories import READERS

_READERS: Final[Mapping[str, FileFormat]] = {
    "rollouts": ROLLOUTS,
    **{name: one.reader for name, one in STEP_FORMATS.items()},
}
_N_FIRST: Final = 12
_NEUTRAL: Final = {"right": True, "wrong": False}


@dataclass(frozen=True, kw_only=True)
class _Writing:
    """The options that say what to write."""

    output: Path | None
    format: WritableStepFormat | None
    neutral: bool | None
    right_above: float | None

    def check(self, sources: Sequence[str]) -> None:
        """Check the options and the output, before any work is done."""
        if self.output is None:
            if self.format is not None or self.neutral is not None:
                option = "--to" if self.format is not None else "--neutral"
                raise click.UsageError(
                    f"{option} says how a file is written; name the file with -o FILE."
                )
            return
        is_table = self.format in {None, "table"}
        check_output(self.output, TABLE_SUFFIXES if is_table else (".jsonl", ".json"), sources)

    def write(self, steps: pl.DataFrame, console: Console) -> dict[str, object]:
        """Write the steps, and return what was written for JSON."""
        if self.output is None:
            return {}
        if self.format is None or self.format == "table":
            return save(steps, self.output, console)
        with console.status(f"Writing {self.output}"):
            write_steps(
                steps,
                self.output,
                format=self.format,
                neutral=self.neutral,
                right_above=self.right_above,
            )
        keys = [
            name for name in ("source_file", "problem_id", "solution_id") if name in steps.columns
        ]
        n_solutions = steps.select(pl.struct(keys).n_unique()).item()
        console.say(
            f"Wrote {self.output}: {counted([n_solutions], 'solution')} in format {self.format}"
        )
        return {"output": str(self.output), "format": self.format, "n_solutions": n_solutions}


@dataclass(frozen=True, kw_only=True)
class _StepSources(Sources):
    """The sources of labeled steps."""

    def read(
        self, right_above: float | None, by: Sequence[str], console: Console
    ) -> tuple[str, pl.DataFrame]:
        """Read labeled steps, or estimate them from completions; return the format too."""
        with console.status(f"Reading {self.label}"):
            frame, survey, messages = scan_source(
                list(self.sources),
                _READERS,
                format=self.format,
                rename=self.rename,
                on_error=self.on_error,
                row="step",
                elsewhere=READERS,
            )
            for message in messages:
                warnings.warn(message, stacklevel=2)
            name = next(name for name, one in _READERS.items() if one is survey.format)
            if name == "rollouts":
                table = estimate_steps(frame, right_above=right_above or 0.0, by=by).collect()
            else:
                table = order_columns(frame, STEP_COLUMNS).collect()
        return name, table


@click.command(
    epilog=examples(
        "ttsframe steps math-shepherd.jsonl",
        "ttsframe steps prm800k.jsonl --paths --drop flagged --to trl --neutral right -o trl.jsonl",
        "ttsframe steps rollouts.parquet -o steps.parquet",
    ),
)
@gathers(_StepSources, "source", source_options(_READERS))
@click.option(
    "--paths",
    is_flag=True,
    help="Keep one text per step: the alternative that was continued, or each path of a tree as a "
    "separate solution.",
)
@click.option(
    "--scores",
    metavar="COLUMN",
    help="Column with a verifier's score of each step, to compare with the labels. Default: score, if "
    "it exists.",
)
@click.option(
    "--right-above",
    type=click.FloatRange(0.0, 1.0),
    help="Steps with a soft value, or a share of right completions, above it are right (OpenR takes "
    "0.5). Default: one right completion is enough, and other soft values are not labels.",
)
@by_option
@click.option(
    "--to",
    "format_to",
    type=Name(get_args(WritableStepFormat)),
    help="Format to write, as JSON lines. Default: the table of steps, in the format of the suffix.",
)
@click.option(
    "--neutral",
    type=Name(list(_NEUTRAL)),
    help="How a neutral rating counts in a format that only has right and wrong.",
)
@click.option(
    "--drop",
    multiple=True,
    metavar="COLUMN",
    help="Column to leave out, if the format cannot hold it. Repeatable.",
)
@level_option
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    metavar="FILE",
    help=f"File to write: {', '.join(TABLE_SUFFIXES)}, or .jsonl with --to.",
)
@guard_option
@prints
def steps(
    *,
    source: _StepSources,
    paths: bool,
    scores: str | None,
    right_above: float | None,
    by: tuple[str, ...],
    format_to: WritableStepFormat | None,
    neutral: str | None,
    drop: tuple[str, ...],
    confidence_level: float,
    output: Path | None,
    console: Console,
) -> None:
    """Count labeled steps, compare labels with scores, and convert between formats.

    SOURCE holds labeled steps in the format of Math-Shepherd, MATH-APS, PRM800K, OpenR or TRL, or
    ttsframe's own table; or completions of steps, one per row with problem_id, solution_id, step,
    rollout and is_correct (or answer and gold), from which labels are estimated first.
    """
    writing = _Writing(
        output=output,
        format=format_to,
        neutral=None if neutral is None else _NEUTRAL[neutral],
        right_above=right_above,
    )
    writing.check(source.sources)
    name, table = source.read(right_above, by, console)
    _check_drop(drop, table.columns)
    with console.status("Counting"):
        limit = None if name == "rollouts" else right_above
        has_scores = scores is not None or "score" in table.columns
        _check_by(by, is_read=has_scores or name == "rollouts")
        report = None
        if has_scores or name == "rollouts":
            labeled = with_labels(table, right_above=limit)
            report = step_agreement(
                labeled,
                labels=None if scores is None else "is_correct",
                scores=scores,
                by=by,
                confidence_level=confidence_level,
            )
        summary = summarize_steps(table, right_above=limit, by=by)
    console.say(_text(name, summary, report, by))
    if paths:
        table = main_paths(table).drop("is_on_path", *ALTERNATIVE_COLUMNS, strict=False)
    written = writing.write(table.drop(drop), console)
    console.result({
        "format": name,
        **summary.counts,
        "mean_soft": summary.mean_soft,
        "first_errors": summary.first_errors.to_dicts(),
        "agreement": None if report is None else report.to_dict(),
        **({"written": written} if written else {}),
    })


def _check_by(by: Sequence[str], *, is_read: bool) -> None:
    if by and not is_read:
        raise click.UsageError(
            "--by tells completions or scores of several runs apart; the source has neither."
        )


def _check_drop(drop: Sequence[str], found: Sequence[str]) -> None:
    missing = [column for column in drop if column not in found]
    if missing:
        hint = "columns that do not exist need not be dropped."
        error = ColumnsError.missing(missing, found, where="--drop", hint=hint)
        raise error


def _text(name: str, summary: StepSummary, report: StepAgreement | None, by: Sequence[str]) -> str:
    """Write the counts, and how labels agree with scores or completions if there are any."""
    counts = summary.counts
    n_steps, n_judged = counts["n_steps"], counts["n_judged"]
    of = {name: counted([counts[f"n_{name}s"]], name) for name in ("step", "solution", "problem")}
    parts = [f"{name}: {of['step']} in {of['solution']} to {of['problem']}"]
    labels = {label: counts[f"n_{label}"] for label in ("right", "wrong", "neutral", "unlabelled")}
    parts.append(_shares("label", "steps", {k: n for k, n in labels.items() if n}, n_steps))
    if summary.mean_soft is not None:
        valued = counted([counts["n_valued"]], "step")
        parts.append(f"Soft values: {valued}, {summary.mean_soft:.4g} on average")
    if n_judged:
        unit = "solutions" if counts["n_paths"] == counts["n_solutions"] else "paths"
        places: dict[str, int] = {}
        for step, n in summary.first_errors.iter_rows():
            place = "none" if step is None else str(step) if step < _N_FIRST else "later"
            places[place] = places.get(place, 0) + n
        parts.append(_shares("first wrong step", unit, places, n_judged))
    for title, table in _agreement(report):
        shown = table.select(~cs.ends_with("standard_error") & ~cs.matches("_ci_|_kappa$"))
        text = rows_text(shown, n_rows=shown.height, n_fixed=1 + len(by), hint="")
        parts.append(f"{title}\n{text}")
    return "\n\n".join(parts)


def _shares(what: str, of: str, counts: Mapping[str, int], total: int) -> str:
    rows = [[name, f"{n:,}", f"{100 * n / total:.1f}%"] for name, n in counts.items()]
    return table_text([what, of, "share"], rows, numbers=[False, True, True], n_fixed=1)


def _agreement(report: StepAgreement | None) -> list[tuple[str, pl.DataFrame]]:
    if report is None:
        return []
    tables = {
        "Labels and scores, by threshold": report.thresholds,
        "How well scores tell right steps from wrong ones": report.separation,
        "Whether scores find the first wrong step": report.first_errors,
        "Labels with fewer completions": report.rollouts,
    }
    return [(title, table) for title, table in tables.items() if table is not None]
