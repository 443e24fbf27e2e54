"""Attempts with which something may have gone wrong, and the accuracy that they cost at most."""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from ttsframe._wording import counted
from ttsframe.report.parts import Context, Paragraph, Part, make_table
from ttsframe.report.runs import RunData
from ttsframe.report.wording import format_decimals, format_percent, split_runs, start_sentence
from ttsframe.validation import run_health

_WORDS: Final = {
    "truncated": "truncated",
    "failed": "failed",
    "no_answer": "without an answer",
    "duplicated": "with the text of another attempt",
    "short": "missing",
    "ungraded": "ungraded",
}
_LIMITS: Final = (
    "What an issue costs at most is how much higher pass@1 over all attempts would be, had all these "
    "attempts been right; an attempt may have several issues. Attempts are missing where a problem has fewer "
    "than another one of its run."
)


def make(data: RunData, _: pl.DataFrame) -> dict[str, Any]:
    """Count issues; the texts, by which copies and extraction rules are found, are not read again."""
    return {"health": run_health(data.attempts, by=data.by)}


def answer(context: Context, health: pl.DataFrame) -> list[str]:
    """Name the issue that may cost most."""
    return [
        start_sentence(prefix, _name_largest(rows))
        for prefix, rows in split_runs(health, context.by)
    ]


def _name_largest(rows: pl.DataFrame) -> str:
    found = rows.filter(pl.col("n_attempts") > 0)
    if found.is_empty():
        issues = [_WORDS[issue] for issue in rows["issue"]]
        return f"no attempt is {', '.join(issues[:-1])} or {issues[-1]}."
    order = ["lost_at_most", "n_attempts"]
    most = found.sort(order, descending=True, nulls_last=True, maintain_order=True).row(
        0, named=True
    )
    verb = "is" if most["n_attempts"] == 1 else "are"
    text = (
        f"{counted([most['n_attempts']], 'attempt')} ({format_percent(most['share'])}) {verb} "
        f"{_WORDS[most['issue']]}"
    )
    if most["accuracy"] is None:
        return f"{text}; no attempt is graded."
    if not most["lost_at_most"]:
        return f"{text}, which costs no accuracy."
    then = most["accuracy"] + most["lost_at_most"]
    return (
        f"{text}: if all had been right, pass@1 over all attempts would be {format_percent(then)} "
        f"instead of {format_percent(most['accuracy'])}, the most that any issue may cost."
    )


def draw(context: Context, health: pl.DataFrame) -> list[Part]:
    """List the issues."""
    rows = health.filter(pl.col("n_attempts") > 0)
    if rows.is_empty():
        return []
    cells = [
        {
            "attempts": row["n_attempts"],
            "share": format_percent(row["share"]),
            "problems": row["n_problems"],
            "costs at most (points)": format_decimals(
                None if row["lost_at_most"] is None else 100 * row["lost_at_most"], 1
            ),
        }
        for row in rows.iter_rows(named=True)
    ]
    heads = rows.select(
        *context.by,
        pl.col("issue").replace_strict(_WORDS, return_dtype=pl.String).alias("attempts that are"),
    )
    return [
        make_table("Issues, and the accuracy that they may cost", heads, cells),
        Paragraph(_LIMITS),
    ]
