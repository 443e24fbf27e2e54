"""The chart of one problem: how many votes each answer got, and what weight."""

from __future__ import annotations

from typing import Final

import altair as alt
import polars as pl

from ttsframe._checks import check_positive
from ttsframe._typing import StepReduction
from ttsframe._wording import counted, shorten
from ttsframe.charts import style, tables
from ttsframe.charts.latex_text import plain_text
from ttsframe.errors import DataError, ParameterError

__all__ = ["answer_votes"]

_TABLE: Final = tables.Argument("votes", "tts.tally_votes(trajectories, budgets=[...])", ("votes",))
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
    "gold",
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
    gold: str | None = None,
    n_answers: int = 10,
    title: str | None = None,
    width: int = 300,
) -> alt.LayerChart | alt.HConcatChart:
    """Draw how one problem's attempts voted: a bar per answer, and a second one for its weight.

    Answers are in order of votes, then of their first attempt, so that majority vote's choice is
    the first bar; attempts without an answer come last. Right and wrong answers differ in color.
    LaTeX is written as plain text, and long answers are shortened; the tooltip has the answer as it
    was given. Answers after the first `n_answers`
    share one row, "other answers", except that the first `n_answers` right ones have their own.

    Parameters
    ----------
    votes
        `votes`, one row per (`problem_id`, `budget`, `reduction`, `answer_key`), as `tally_votes`
        makes it; collected if lazy. If `weight` is absent or null throughout, only the votes are
        drawn.
    problem_id
        Problem to draw; None if the table has only one.
    budget
        Budget to draw; None if the table has only one.
    reduction
        Reduction whose weights are drawn; None if the table has only one.
    gold
        Gold answer, which the subtitle then names; None takes it from a column `gold` of the
        table, if it has one.
    n_answers
        Largest number of answers with their own row, at most 50.
    title
        Heading; by default it names the problem.
    width
        Width of each column of bars in pixels.

    Returns
    -------
    alt.LayerChart | alt.HConcatChart
        The chart with its data inside; a concatenation if there are weights.

    Raises
    ------
    ColumnsError
        When the table is not a table of votes.
    DataError
        When the table has no rows, an answer twice, or several problems, budgets, reductions or runs
        of which none is chosen.
    ParameterError
        When the problem, budget or reduction is not in the table, or `n_answers` is not between 1
        and 50.

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
    all 4 attempts · 2 distinct answers
    """
    if check_positive(n_answers, "n_answers") > _N_ANSWERS_MAX:
        raise ParameterError(
            f"n_answers == {n_answers}, must be at most {_N_ANSWERS_MAX}. Hint: filter the votes."
        )
    rows = _TABLE.collect(votes, texts=["problem_id", "answer_key"], numbers=["n_votes"])
    for name, value in (("problem_id", problem_id), ("budget", budget), ("reduction", reduction)):
        rows = _choose_rows(rows, name, value)
    problem = rows["problem_id"][0]
    runs = tables.find_run_columns(rows, _KNOWN)
    for name in runs:
        if rows[name].n_unique() > 1:
            raise DataError(
                f"votes of problem {problem!r} come from {rows[name].n_unique()} values of {name!r}. "
                f"Hint: filter {name!r} to one of them."
            )
    if rows["answer_key"].is_duplicated().any():
        raise DataError(f"votes of problem {problem!r} have an answer twice. Hint: {_TABLE.hint}")
    bars = _make_bars(rows, n_answers)
    if gold is None and "gold" in rows.columns:
        gold = next(iter(rows["gold"].drop_nulls().cast(pl.String)), None)
    reference = "" if gold is None else shorten(plain_text(gold[:_TEXT_MAX]), 2 * _LABEL_WIDTH)
    top = style.heading(
        title or f"Votes per answer, problem {shorten(str(problem), 60)}",
        _describe_votes(rows),
        [f"gold answer: {reference}" if reference else ""],
        [f"{name}: {shorten(str(rows[name][0]), _LABEL_WIDTH)}" for name in runs],
    )
    columns = [_draw_column(bars, "n_votes", "Votes", is_first=True, width=width)]
    if bars["weight"].null_count() < bars.height:
        columns.append(_draw_column(bars, "weight", "Weight", is_first=False, width=width))
    if len(columns) == 1:
        return columns[0].properties(title=top)
    # Only the first column has the legend, which a shared scale would not allow.
    independent = alt.Resolve(scale=alt.ScaleResolveMap(color="independent"))
    return alt.HConcatChart(hconcat=columns, spacing=24, title=top, resolve=independent)


def _choose_rows(rows: pl.DataFrame, name: str, value: str | int | None) -> pl.DataFrame:
    """Keep the rows of the chosen value, or of the only one."""
    if name not in rows.columns:
        return rows.with_columns(pl.lit(None).alias(name))
    values = rows[name].unique(maintain_order=True)
    if value is not None:
        kept = rows.filter(pl.col(name).cast(pl.String) == str(value))
        if kept.is_empty():
            raise ParameterError(
                f"{name} == {value!r} is not in votes; found: {_list_first(values)}."
            )
        return kept
    if len(values) > 1:
        raise DataError(
            f"votes has {len(values):,} values of {name!r}: {_list_first(values)}; the chart shows one. "
            f"Hint: charts.answer_votes(votes, {name}=...)."
        )
    return rows


def _list_first(values: pl.Series) -> str:
    """List the first few values."""
    first = ", ".join(shorten(repr(value), _LABEL_WIDTH) for value in values.head(5))
    return first if len(values) <= 5 else f"{first}, ..."


def _make_bars(rows: pl.DataFrame, n_answers: int) -> pl.DataFrame:
    """Return one row per bar in the order drawn, with its label and the texts of its tooltip."""
    ranked = _rank_answers(rows)
    is_answer, is_right = pl.col("is_answer"), pl.col("outcome") == "right"
    # A single remaining answer keeps its own row.
    n_shown = n_answers + 1 if ranked["is_answer"].sum() == n_answers + 1 else n_answers
    is_kept = ~is_answer | (pl.col("rank") < n_shown)
    is_kept |= is_right & (is_right.cum_sum() <= n_answers)
    ranked = ranked.with_row_index("rank").with_columns(is_kept=is_kept)
    name = pl.when(is_right.first()).then(pl.lit("other right answers"))
    others = (
        ranked
        .filter(~pl.col("is_kept"))
        .group_by(is_right.alias("are_right"), maintain_order=True)
        .agg(
            pl.format("{} ({})", name.otherwise(pl.lit("other answers")), pl.len()).alias("text"),
            pl.col("n_votes").sum(),
            pl.when(pl.col("weight").count() > 0).then(pl.col("weight").sum()).alias("weight"),
            pl.col("first_attempt").min(),
            pl.col("outcome", "is_answer").first(),
        )
        .drop("are_right")
    )
    kept = ranked.filter("is_kept").drop("rank", "is_kept")
    bars = pl.concat([kept.filter(is_answer), others, kept.filter(~is_answer)])
    plain = [plain_text(text[:_TEXT_MAX]) for text in bars["text"]]
    return bars.select(
        pl.Series("label", tables.shorten_distinctly(plain, _LABEL_WIDTH)),
        pl.Series("answer", [shorten(text, _TEXT_MAX) for text in bars["text"]]),
        "outcome",
        "n_votes",
        "weight",
        "first_attempt",
    )


def _rank_answers(rows: pl.DataFrame) -> pl.DataFrame:
    """Return answers in order of votes, then of their first attempt; no answer comes last."""
    defaults = {
        "answer": pl.col("answer_key"),
        "weight": pl.lit(None),
        "first_attempt": pl.lit(None),
        "is_correct": pl.lit(None),
    }
    rows = rows.with_columns(**{
        name: value for name, value in defaults.items() if name not in rows.columns
    })
    is_answer = pl.col("answer_key").is_not_null()
    text = pl.coalesce("answer", "answer_key").cast(pl.String)
    graded = style.name_outcome(pl.col("is_correct").cast(pl.Boolean))
    return rows.select(
        pl.when(is_answer).then(text).otherwise(pl.lit("no answer")).alias("text"),
        pl.col("n_votes").cast(pl.Int64),
        pl.col("weight").cast(pl.Float64).fill_nan(None),
        pl.col("first_attempt").cast(pl.Int64),
        pl.when(is_answer).then(graded).otherwise(pl.lit("no answer")).alias("outcome"),
        is_answer.alias("is_answer"),
    ).sort(
        ["is_answer", "n_votes", "first_attempt", "text"],
        descending=[True, True, False, False],
        nulls_last=True,
    )


def _describe_votes(rows: pl.DataFrame) -> list[str]:
    """Write how many attempts voted, for how many answers, and with which weights."""
    n_attempts = int(rows["n_votes"].sum())
    attempts = "attempt" if n_attempts == 1 else counted([n_attempts], "attempt")
    if rows["budget"][0] is None:
        attempts = f"all {counted([n_attempts], 'attempt')}"
    else:
        attempts = f"the first {attempts}"
    reduction = rows["reduction"][0]
    return [
        attempts,
        counted([rows["answer_key"].drop_nulls().len()], "distinct answer"),
        "" if reduction is None else f"weight: sum per answer, {style.scores_from(reduction)}",
    ]


def _draw_column(
    bars: pl.DataFrame, field: str, name: str, *, is_first: bool, width: int
) -> alt.LayerChart:
    """Draw one column of bars with their numbers."""
    outcomes = set(bars["outcome"])
    colors = {name: color for name, color in style.OUTCOME_COLORS.items() if name in outcomes}
    key = style.legend(orient="top", offset=6)
    answers = style.axis(None, labelLimit=320, ticks=False, domain=False, labelPadding=8)
    is_count = field == "n_votes"
    numbers = ",d" if is_count else ",.3~g"
    # Ticks between integers would have the same number twice.
    n_ticks = min(5, max(bars["n_votes"].to_list())) if is_count else 5
    base = alt.Chart(tables.inline(bars)).encode(
        y=alt.Y("label:N", sort=None, axis=answers if is_first else None),
        x=alt.X(
            f"{field}:Q",
            axis=style.axis(
                name, tickCount=n_ticks, format=numbers, **({"tickMinStep": 1} if is_count else {})
            ),
            scale=alt.Scale(zero=True),
        ),
        tooltip=[
            alt.Tooltip("answer:N", title="Answer"),
            alt.Tooltip("outcome:N", title="Grade"),
            alt.Tooltip("n_votes:Q", title="Votes"),
            alt.Tooltip("weight:Q", title="Weight", format=".4~g"),
            alt.Tooltip("first_attempt:Q", title="First attempt"),
        ],
    )
    layers = [
        base.mark_bar(cornerRadiusEnd=2).encode(
            color=style.color_by("outcome", colors, key if is_first else None)
        ),
        base.mark_text(
            align="left", baseline="middle", dx=5, font=style.FONT, fontSize=12, color=style.INK
        ).encode(text=alt.Text(f"{field}:Q", format=numbers)),
    ]
    return style.make_panel(layers, width=width, height=_ROW_HEIGHT * bars.height)
