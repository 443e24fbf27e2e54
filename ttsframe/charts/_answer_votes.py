"""The chart of one problem: how many votes, and what weight, each answer got."""

from __future__ import annotations

from typing import Final

import altair as alt
import polars as pl

from ttsframe._checks import check_positive
from ttsframe._typing import StepReduction
from ttsframe._wording import counted, shorten
from ttsframe.charts.style import (
    FONT,
    INK,
    OUTCOME_COLOURS,
    axis,
    heading,
    inline,
    outcome,
    panel_of,
    scores_from,
    short_names,
    tidy,
)
from ttsframe.errors import DataError, ParameterError

__all__ = ["answer_votes"]

_HINT: Final = "tts.tally_votes(trajectories, budgets=[...]) makes this table."
_KNOWN: Final = frozenset({
    "problem_id",
    "budget",
    "reduction",
    "answer_key",
    "answer",
    "n_votes",
    "weight",
    "top_score",
    "first_attempt",
    "is_correct",
})
_LABEL_WIDTH: Final = 40
_TEXT_MAX: Final = 1_000
_ROW_HEIGHT: Final = 26
_N_ANSWERS_MAX: Final = 50


def answer_votes(
    votes: pl.DataFrame | pl.LazyFrame,
    /,
    *,
    problem_id: str | int | None = None,
    budget: int | None = None,
    reduction: StepReduction | None = None,
    n_answers: int = 10,
    title: str | None = None,
    width: int = 300,
) -> alt.LayerChart | alt.HConcatChart:
    """Draw how one problem's attempts voted: a bar per answer, and a second one for its weight.

    Answers stand in order of votes, then of their first attempt, so that majority vote's pick is
    the first bar; attempts without an answer come last. Right and wrong ones have their colours.
    Long answers are shortened, the tooltip holds more of them. What is not among the `n_answers`
    first is one row, "others"; the first `n_answers` right answers are always drawn by themselves.

    Parameters
    ----------
    votes
        `votes`, one row per (`problem_id`, `budget`, `reduction`, `answer_key`), as `tally_votes`
        makes it; collected if lazy. Without `weight`, or with nulls alone in it, the votes alone
        are drawn.
    problem_id
        The problem to draw; None where the table holds one.
    budget
        The budget to draw; None where the table holds one.
    reduction
        The reduction whose weights are drawn; None where the table holds one.
    n_answers
        Largest number of answers with a row of their own, at most 50.
    title
        Heading; by default it names the problem.
    width
        Width of each column of bars in pixels.

    Returns
    -------
    alt.LayerChart | alt.HConcatChart
        The chart, its data inside; a concatenation where there are weights.

    Raises
    ------
    ColumnsError
        When the table is not a table of votes.
    DataError
        When the table has no rows, or holds several problems, budgets, reductions or runs of which
        none is chosen.
    ParameterError
        When the problem, budget or reduction that is named is not in the table, or `n_answers` is
        impossible.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> from ttsframe import charts
    >>> trajectories = pl.DataFrame({
    ...     "problem_id": ["p"] * 4,
    ...     "attempt": [0, 1, 2, 3],
    ...     "answer_key": ["42", "47", "42", None],
    ...     "is_correct": [False, True, False, False],
    ... })
    >>> chart = charts.answer_votes(tts.tally_votes(trajectories))
    >>> print(chart.title.subtitle[0])
    all 4 attempts · 2 different answers
    """
    if check_positive(n_answers, "n_answers") > _N_ANSWERS_MAX:
        raise ParameterError(
            f"n_answers == {n_answers}, must be at most {_N_ANSWERS_MAX}. Hint: filter the votes."
        )
    rows = tidy(
        votes, where="votes", texts=["problem_id", "answer_key"], numbers=["n_votes"], hint=_HINT
    )
    rows = _chosen(rows, "problem_id", problem_id)
    rows = _chosen(rows, "budget", budget)
    rows = _chosen(rows, "reduction", reduction)
    for name in rows.columns:
        if name not in _KNOWN and rows[name].n_unique() > 1:
            raise DataError(
                f"votes of problem {rows['problem_id'][0]!r} come from {rows[name].n_unique()} "
                f"values of {name!r}. Hint: filter {name!r} to one of them."
            )
    if rows["answer_key"].is_duplicated().any():
        raise DataError(
            f"votes of problem {rows['problem_id'][0]!r} name an answer twice. Hint: {_HINT}"
        )
    bars = _bars(rows, n_answers)
    heading_of_chart = heading(
        title or f"Votes per answer, problem {shorten(str(rows['problem_id'][0]), 60)}",
        _subtitle(rows),
    )
    columns = [_column(bars, "n_votes", "Votes", is_first=True, width=width)]
    if bars["weight"].null_count() < bars.height:
        columns.append(_column(bars, "weight", "Weight", is_first=False, width=width))
    if len(columns) == 1:
        return columns[0].properties(title=heading_of_chart)
    # Only the first column has the legend, which a shared scale would object to.
    chart: alt.HConcatChart = alt.hconcat(
        *columns, spacing=24, title=heading_of_chart
    ).resolve_scale(color="independent")
    return chart


def _chosen(rows: pl.DataFrame, name: str, value: str | int | None) -> pl.DataFrame:
    """Keep the rows of the value that is named, or of the only one that is there."""
    if name not in rows.columns:
        return rows.with_columns(pl.lit(None).alias(name))
    there = rows[name].unique(maintain_order=True)
    if value is not None:
        kept = rows.filter(pl.col(name).cast(pl.String) == str(value))
        if kept.is_empty():
            raise ParameterError(f"{name} == {value!r} is not in votes; found: {_some(there)}.")
        return kept
    if len(there) > 1:
        raise DataError(
            f"votes holds {len(there):,} values of {name!r}: {_some(there)}; the chart shows one. "
            f"Hint: charts.answer_votes(votes, {name}=...)."
        )
    return rows


def _some(values: pl.Series) -> str:
    """List the first few values."""
    first = ", ".join(shorten(repr(value), _LABEL_WIDTH) for value in values.head(5))
    return first if len(values) <= 5 else f"{first}, ..."


def _bars(rows: pl.DataFrame, n_answers: int) -> pl.DataFrame:
    """Return one row per bar, in the order drawn, with the texts that the reader sees."""
    defaults = {"answer": "answer_key", "weight": None, "first_attempt": None, "is_correct": None}
    rows = rows.with_columns(
        (pl.col(value) if value else pl.lit(None)).alias(name)
        for name, value in defaults.items()
        if name not in rows.columns
    )
    is_answer = pl.col("answer_key").is_not_null()
    text = pl.coalesce("answer", "answer_key").cast(pl.String)
    ranked = rows.select(
        pl.when(is_answer).then(text).otherwise(pl.lit("no answer")).alias("text"),
        pl.col("n_votes").cast(pl.Int64),
        pl.col("weight").cast(pl.Float64).fill_nan(None),
        pl.col("first_attempt").cast(pl.Int64),
        pl
        .when(is_answer)
        .then(outcome(pl.col("is_correct").cast(pl.Boolean)))
        .otherwise(pl.lit("no answer"))
        .alias("outcome"),
        is_answer.alias("is_answer"),
    ).sort(
        ["is_answer", "n_votes", "first_attempt", "text"],
        descending=[True, True, False, False],
        nulls_last=True,
    )
    # One answer alone is not worth the name "others".
    n_shown = n_answers + 1 if rows.select(is_answer.sum()).item() == n_answers + 1 else n_answers
    is_right = pl.col("outcome") == "right"
    is_kept = ~pl.col("is_answer") | (pl.col("rank") < n_shown)
    is_kept |= is_right & (is_right.cum_sum() <= n_answers)
    ranked = ranked.with_row_index("rank").with_columns(is_kept=is_kept)
    others = ranked.filter(~pl.col("is_kept"))
    pooled = others.group_by(is_right.alias("are_right"), maintain_order=True).agg(
        pl.concat_str(
            pl.when(is_right.first()).then(pl.lit("right others (")).otherwise(pl.lit("others (")),
            pl.len(),
            pl.lit(")"),
        ).alias("text"),
        pl.col("n_votes").sum(),
        pl.when(pl.col("weight").count() > 0).then(pl.col("weight").sum()).alias("weight"),
        pl.col("first_attempt").min(),
        pl.col("outcome").first(),
        pl.col("is_answer").first(),
    )
    kept = ranked.filter("is_kept").drop("rank", "is_kept")
    bars = pl.concat([
        kept.filter("is_answer"),
        pooled.drop("are_right"),
        kept.filter(~pl.col("is_answer")),
    ])
    return bars.select(
        pl.Series("label", short_names(bars["text"].to_list(), _LABEL_WIDTH)),
        pl.Series("answer", [shorten(text, _TEXT_MAX) for text in bars["text"]]),
        "outcome",
        "n_votes",
        "weight",
        "first_attempt",
    )


def _subtitle(rows: pl.DataFrame) -> list[str]:
    """Say how many attempts voted, for how many answers, and with which weights."""
    n_attempts = int(rows["n_votes"].sum())
    budget = rows["budget"][0]
    attempts = counted([n_attempts], "attempt")
    facts = [f"all {attempts}" if budget is None else f"the first {attempts}"]
    facts.append(counted([rows["answer_key"].drop_nulls().len()], "different answer"))
    if (reduction := rows["reduction"][0]) is not None:
        facts.append(f"weight: sum per answer, {scores_from(reduction)}")
    runs = [
        f"{name}: {shorten(str(rows[name][0]), _LABEL_WIDTH)}"
        for name in rows.columns
        if name not in _KNOWN
    ]
    return [" · ".join(facts), *([" · ".join(runs)] if runs else [])]


def _column(
    bars: pl.DataFrame, field: str, name: str, *, is_first: bool, width: int
) -> alt.LayerChart:
    """Draw one column of bars with their numbers."""
    shown = [key for key in OUTCOME_COLOURS if key in set(bars["outcome"])]
    colour = alt.Color(
        "outcome:N",
        scale=alt.Scale(domain=shown, range=[OUTCOME_COLOURS[key] for key in shown]),
        legend=alt.Legend(
            title=None, orient="top", labelFont=FONT, labelFontSize=12, labelColor=INK, offset=6
        )
        if is_first
        else None,
    )
    answers = axis(None, labelLimit=320, ticks=False, domain=False, labelPadding=8)
    is_count = field == "n_votes"
    numbers = ",d" if is_count else ",.3~g"
    # Ticks between whole votes would be labelled with the same number twice.
    n_ticks = min(5, max(bars["n_votes"].to_list())) if is_count else 5
    base = alt.Chart(inline(bars)).encode(
        y=alt.Y("label:N", sort=None, axis=answers if is_first else None),
        x=alt.X(
            f"{field}:Q",
            axis=axis(name, tickCount=n_ticks, format=numbers),
            scale=alt.Scale(zero=True),
        ),
        tooltip=[
            alt.Tooltip("answer:N", title="Answer"),
            alt.Tooltip("outcome:N", title="Graded"),
            alt.Tooltip("n_votes:Q", title="Votes"),
            alt.Tooltip("weight:Q", title="Weight", format=".4~g"),
            alt.Tooltip("first_attempt:Q", title="First attempt"),
        ],
    )
    layers = [
        base.mark_bar(cornerRadiusEnd=2).encode(color=colour),
        base.mark_text(
            align="left", baseline="middle", dx=5, font=FONT, fontSize=12, color=INK
        ).encode(text=alt.Text(f"{field}:Q", format=numbers)),
    ]
    return panel_of(layers, width=width, height=_ROW_HEIGHT * bars.height)
