"""How good the verifier scores are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import polars as pl

from ttsframe._typing import StepReduction
from ttsframe._wording import LEFT_OUT, counted
from ttsframe.defaults import SHARE_OF_PROBLEMS
from ttsframe.report.parts import (
    N_ROWS_MAX,
    Context,
    Figure,
    Folded,
    Paragraph,
    Part,
    Table,
    make_table,
    note_more_runs,
)
from ttsframe.report.runs import GRADED, Rule, RunData
from ttsframe.report.wording import (
    N_PANELS_MAX,
    format_decimals,
    format_interval,
    format_percent,
    keep_first_runs,
    keep_run_of,
    split_runs,
    start_sentence,
)
from ttsframe.steps import STEP_REDUCTIONS
from ttsframe.verifier import VerifierReport, over_optimization, verifier_metrics, verifier_report

_TIE: Final = 1e-9
_COMPARED: Final[tuple[StepReduction, ...]] = ("last", "min", "mean", "prod")


def needs(_: RunData) -> list[Rule]:
    """List what a run must have to evaluate its scores."""
    return [
        Rule(pl.col("n_scored") > 0, "no scores"),
        GRADED,
        Rule(pl.col("n_right") > 0, "no attempt is right"),
        Rule(pl.col("n_wrong") > 0, "no attempt is wrong"),
    ]


def make(data: RunData, runs: pl.DataFrame) -> dict[str, Any]:
    """Evaluate the scores, and compare reductions where there are step scores."""
    options = data.options
    level = options.confidence_level
    # The picked answers give best-of-N by budget: without `attempt` the report card leaves it out.
    attempts = data.attempts_of(runs).drop("attempt")
    card = verifier_report(
        attempts,
        reductions=options.reductions,
        by=data.by,
        cluster=options.cluster,
        confidence_level=level,
    )
    if runs.height == data.runs.height:
        data.profile = card.profile
    others = [name for name in _COMPARED if name not in card.metrics["reduction"]]
    if others and _has_several_steps(attempts):
        used = _list_used(card)
        card = replace(
            card, metrics=_compare_reductions(data, attempts, card.metrics, used, others)
        )
    if "best_of_n" in options.selectors and not data.replicates:
        declines = [
            over_optimization(problems, by=data.by, cluster=options.cluster, confidence_level=level)
            for problems in data.split_selector(runs, "best_of_n")
        ]
        card = replace(card, over_optimization=data.join_runs(declines))
    return {"verifier": card}


def _has_several_steps(attempts: pl.DataFrame) -> bool:
    """Return whether an attempt has more than one step: of a single one, all reductions are the same."""
    if "step_scores" not in attempts.columns:
        return False
    return bool((attempts["step_scores"].list.len() > 1).any())


def _compare_reductions(
    data: RunData,
    attempts: pl.DataFrame,
    metrics: pl.DataFrame,
    used: Sequence[str],
    others: Sequence[StepReduction],
) -> pl.DataFrame:
    """Add the metrics of further reductions, all on the attempts that every reduction has a score for."""
    level = data.options.confidence_level
    more = verifier_metrics(
        attempts,
        reductions=others,
        by=data.by,
        cluster=data.options.cluster,
        confidence_level=level,
    )
    both = pl.concat([metrics, more])
    if both.select((pl.col("n_unscored") == 0).all()).item():
        return both
    size = pl.col("n_attempts")
    most = size.max().over(data.by) if data.by else size.max()
    lacking = both.filter(size < (1.0 - SHARE_OF_PROBLEMS) * most)["reduction"].unique()
    kept = [name for name in others if name not in lacking or name in used]
    if set(lacking) & set(used):
        kept = list(others)
    values = [_score_of(name) for name in (*used, *kept)]
    is_known = pl.all_horizontal(value.is_not_null() & value.is_not_nan() for value in values)
    known = attempts.with_columns(
        pl.when(is_known).then(name).alias(name)
        for name in ("score", "step_scores")
        if name in attempts.columns
    )
    tables = [
        verifier_metrics(known, reductions=reductions, by=data.by, confidence_level=level)
        for reductions in (data.options.reductions, kept)
        if reductions is None or reductions
    ]
    return pl.concat(tables)


def _score_of(name: str) -> pl.Expr:
    """Reduce the step scores of an attempt, or take its score."""
    for reduction, reduce_steps in STEP_REDUCTIONS.items():
        if reduction == name:
            return reduce_steps("step_scores")
    return pl.col("score").cast(pl.Float64)


def answer(context: Context, card: VerifierReport) -> list[str]:
    """Say how often each run's scores rank a right attempt above a wrong one."""
    from ttsframe.charts.style import scores_from

    texts = []
    used = card.metrics.filter(pl.col("reduction").is_in(_list_used(card)))
    for prefix, rows in split_runs(used, context.by):
        row = rows.row(0, named=True)
        if row["auroc_within"] is None:
            text = "no problem has both right and wrong attempts."
        else:
            auroc = format_interval(row["auroc_within"], row["ci_low"], row["ci_high"])
            text = (
                f"within a problem, a right attempt outscores a wrong one {auroc} of the time (50% is "
                f"chance; {counted([row['n_judged']], 'problem')} with both; "
                f"{scores_from(row['reduction'])}). {_describe_calibration(row)}"
                f"{_describe_decline(context, card, rows)}"
            )
        texts.append(start_sentence(prefix, text))
    return texts


def _list_used(card: VerifierReport) -> list[str]:
    """List the reductions that the curves of the report read."""
    return card.distribution["reduction"].unique(maintain_order=True).to_list()


def _describe_calibration(row: dict[str, Any]) -> str:
    """Describe how far the scores are from probabilities."""
    if row["calibration_status"] != "ok":
        return "Some scores are outside 0 to 1, so they are not probabilities."
    return f"Read as probabilities, the scores are off by {100 * row['ece_equal_mass']:.1f} points on average."


def _describe_decline(context: Context, card: VerifierReport, rows: pl.DataFrame) -> str:
    """Describe whether best-of-N accuracy declines, and whether by more than chance."""
    points = keep_run_of(card.over_optimization, rows, context.by)
    if points is None:
        return ""
    points = points.filter(reduction=rows["reduction"][0]).drop_nulls("accuracy")
    if points["budget"].n_unique() < 2:
        return ""
    last = points.sort("budget").row(-1, named=True)
    left_out = sum(last[f"n_{status}"] for status in LEFT_OUT if status != "short")
    of_problems = f" on the {last['n_problems']:,} problems that have scores" if left_out else ""
    return f" Best-of-n accuracy{of_problems} {_describe_end(last)}."


def _describe_end(last: dict[str, Any]) -> str:
    """Describe how far the accuracy with the most attempts is below its peak."""
    end = counted([last["budget"]], "attempt")
    peak = counted([last["peak_budget"]], "attempt")
    if last["peak_budget"] == last["budget"]:
        return f"does not decline: it is highest with {end}"
    if last["drop"] < _TIE:
        return f"does not decline: with {end} it is as high as at its peak, with {peak}"
    drop = f"{100 * last['drop']:.1f} points"
    if last["drop_ci_low"] is None:
        return f"is {drop} lower with {end} than with {peak}"
    drop += f" ({100 * last['drop_ci_low']:.1f} to {100 * last['drop_ci_high']:.1f})"
    if last["is_turned_down"]:
        return f"peaks at {peak} and declines by {drop} up to {last['budget']:,}"
    return (
        f"is {drop} lower with {end} than at its peak, with {last['peak_budget']:,}: within chance"
    )


def draw(context: Context, card: VerifierReport) -> list[Part]:
    """Draw and list what the verifier's report has."""
    from ttsframe import charts

    by, level = context.by, context.confidence_level
    n_runs_max = max(1, N_PANELS_MAX // len(_list_used(card)))
    parts: list[Part] = [
        Figure(
            "reductions",
            "How often a right attempt outscores a wrong one (area under the ROC curve; equal scores count "
            "half), for each way to reduce step scores to one score. Best of n uses the comparison within problems. The "
            "area over all attempts also rewards scores that tell easy problems from hard ones.",
            partial(
                charts.reduction_comparison,
                keep_first_runs(card.metrics, by, N_PANELS_MAX),
                confidence_level=level,
            ),
        ),
        *note_more_runs(card.metrics, by, N_PANELS_MAX),
        _list_metrics(context, card.metrics),
        Figure(
            "score-distribution",
            "Where the scores of right and wrong attempts overlap, the score cannot choose between "
            "them.",
            partial(charts.score_distribution, keep_first_runs(card.distribution, by, n_runs_max)),
        ),
    ]
    calibrated = card.reliability.filter(binning="equal_width").drop("binning")
    if calibrated.height:
        caption = (
            "Scores that are probabilities lie on the diagonal: of attempts scored 0.8, 80% are right. "
            "Below the diagonal the verifier is overconfident, above it underconfident."
        )
        shown = keep_first_runs(calibrated, by, n_runs_max)
        chart = partial(charts.reliability, shown, confidence_level=level)
        parts.append(Figure("reliability", caption, chart))
    else:
        text = (
            "Some scores are outside 0 to 1, so they are not probabilities and have no calibration."
        )
        parts.append(Paragraph(text))
    if card.over_optimization is not None and card.over_optimization["budget"].n_unique() > 1:
        caption = (
            "Best of n trusts the highest score. Where a line falls below its peak by more than chance, "
            "more attempts add more wrong answers with a high score than right ones."
        )
        shown = keep_first_runs(card.over_optimization, by, n_runs_max)
        declines = partial(charts.over_optimization, shown, confidence_level=level)
        parts.append(Figure("over-optimization", caption, declines))
    if n_runs_max < N_PANELS_MAX:
        parts += note_more_runs(card.distribution, by, n_runs_max)
    tables = [_list_thresholds(context, card.thresholds)]
    if card.length_bias is not None and card.length_bias["correlation"].count():
        tables.append(_list_lengths(context, card.length_bias))
    return [*parts, Folded("Thresholds and length bias, in numbers", tables)]


def _list_metrics(context: Context, metrics: pl.DataFrame) -> Table:
    """List the metrics of each reduction."""
    is_short = metrics["n_unscored"].max() != 0
    left_out = (
        "; attempts that one of the rows has no score for are left out of all" if is_short else ""
    )
    return make_table(
        f"Metrics of the scores, with {context.level} intervals below{left_out}",
        metrics.select(*context.by, "reduction"),
        [
            {
                "AUROC within problems": _format_auroc(row),
                "AUROC, all attempts": format_decimals(row["auroc"], 3),
                "average precision": format_decimals(row["average_precision"], 3),
                "Brier score": format_decimals(row["brier"], 3),
                "ECE, equal width": format_decimals(row["ece_equal_width"], 3),
                "ECE, equal mass": format_decimals(row["ece_equal_mass"], 3),
                "attempts": f"{row['n_attempts']:,}",
                "problems compared": f"{row['n_judged']:,}",
            }
            for row in metrics.head(N_ROWS_MAX).iter_rows(named=True)
        ],
    )


def _format_auroc(row: dict[str, Any]) -> str:
    """Write the area within problems, its interval below."""
    value = format_decimals(row["auroc_within"], 3)
    if row["ci_low"] is None:
        return value
    return f"{value}\n{format_decimals(row['ci_low'], 3)} to {format_decimals(row['ci_high'], 3)}"


def _list_thresholds(context: Context, thresholds: pl.DataFrame) -> Table:
    """List the value of accepting attempts by their score."""
    return make_table(
        "Best threshold, chosen on half of the problems and evaluated on the others",
        thresholds.select(*context.by, "reduction", "metric"),
        [
            {
                "lowest accepted score": format_decimals(row["threshold"], 4),
                "value": format_percent(row["value"]),
                "accepting all": format_percent(row["accept_all"]),
                "accepting none": format_percent(row["accept_none"]),
                "held-out problems": f"{row['n_problems']:,}",
            }
            for row in thresholds.head(N_ROWS_MAX).iter_rows(named=True)
        ],
    )


def _list_lengths(context: Context, bias: pl.DataFrame) -> Table:
    """List the correlation of scores with lengths, by outcome."""
    key = [*context.by, "reduction", "unit"]
    is_row = bias["outcome"] == "all"
    correlations = bias.select(
        pl
        .col("correlation")
        .filter(pl.col("outcome") == outcome)
        .first()
        .round(2)
        .over(key)
        .alias(f"{outcome} attempts")
        for outcome in ("all", "right", "wrong")
    )
    return make_table(
        "Rank correlation of scores with the length of attempts; a correlation among right attempts is "
        "a bias",
        bias.select(key).filter(is_row),
        correlations.filter(is_row),
    )
