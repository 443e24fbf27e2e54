"""What the scores are worth: the verifier's report card."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from ttsframe import charts
from ttsframe._wording import counted
from ttsframe.charts.style import scores_from
from ttsframe.report.names import (
    N_PANELS_MAX,
    decimals,
    first_runs,
    percent_text,
    runs_of,
    said,
    with_interval,
)
from ttsframe.report.sections.section import (
    N_ROWS_MAX,
    Part,
    Section,
    asks,
    drawn,
    folded,
    head_values,
    heads,
    more_runs,
    paragraph,
    table,
)

if TYPE_CHECKING:
    from ttsframe.report.report import Report
    from ttsframe.verifier import VerifierReport


def answers(report: Report) -> list[str]:
    """Say how often each run's scores put a right attempt before a wrong one."""
    card = report.verifier
    if card is None:
        return []
    texts = []
    used = card.metrics.filter(pl.col("reduction").is_in(_used(card)))
    for name, rows in runs_of(used, report.by):
        row = rows.row(0, named=True)
        if row["auroc_within"] is None:
            texts.append(said(name, "no problem has both right and wrong attempts."))
            continue
        worth = with_interval(row["auroc_within"], row["ci_low"], row["ci_high"])
        text = (
            f"at the same problem a right attempt outscores a wrong one {worth} of the time (50% is "
            f"chance; {counted([row['n_judged']], 'problem')} with both; {scores_from(row['reduction'])})."
            f"{_calibration(row)}{_turn(card, rows, report)}"
        )
        texts.append(said(name, text))
    return texts


def _used(card: VerifierReport) -> list[str]:
    """Return the reductions that the curves of the report read."""
    return card.distribution["reduction"].unique(maintain_order=True).to_list()


def _calibration(row: dict[str, Any]) -> str:
    """Say how far the scores are from probabilities."""
    if row["calibration_status"] != "ok":
        return " Some are outside of 0 to 1, so they are no probabilities."
    return f" Read as probabilities, scores are off by {100 * row['ece_equal_mass']:.1f} points."


def _turn(card: VerifierReport, rows: pl.DataFrame, report: Report) -> str:
    """Say whether best-of-N turns down."""
    turns = card.over_optimization
    if turns is None:
        return ""
    if report.by:
        own = rows.select(report.by).unique()
        turns = turns.join(own, on=report.by, how="semi", nulls_equal=True)
    turns = turns.filter(reduction=rows["reduction"][0]).drop_nulls("accuracy")
    if turns["budget"].n_unique() < 2:
        return ""
    last = turns.sort("budget").row(-1, named=True)
    if not last["is_turned_down"]:
        return f" Best of n does not turn down up to {counted([last['budget']], 'attempt')}."
    return (
        f" Best of n turns down after {counted([last['peak_budget']], 'attempt')}: it loses "
        f"{100 * last['drop']:.1f} points by {last['budget']:,}."
    )


def body(report: Report) -> list[Part]:
    """Draw and list what the scores say."""
    card = report.verifier
    if card is None:
        return []
    by, used = report.by, _used(card)
    n_max = max(1, N_PANELS_MAX // len(used))
    level = f"{100 * report.confidence_level:g}%"
    parts: list[Part] = [
        drawn(
            "reductions",
            "How often a right attempt outscores a wrong one (area under the ROC curve), for each way "
            "of making one score of step scores. What best of n can use is the comparison within "
            "problems; over all attempts together, knowing which problems are easy counts too.",
            charts.reduction_comparison,
            first_runs(card.metrics, by, N_PANELS_MAX),
            confidence_level=report.confidence_level,
        ),
        *more_runs(card.metrics, by, N_PANELS_MAX),
        table(
            f"What the scores are worth, with {level} intervals below",
            [*by, "reduction"],
            _metrics(card, report),
        ),
        drawn(
            "score-distribution",
            "Where right and wrong attempts lie on one another, the score cannot choose between them.",
            charts.score_distribution,
            first_runs(card.distribution, by, n_max),
        ),
    ]
    calibrated = card.reliability.filter(binning="equal_width")
    if calibrated.height:
        parts.append(
            drawn(
                "reliability",
                "Scores that are probabilities lie on the diagonal: of attempts scored 0.8, 80% are "
                "right. Below it the verifier is too sure, above it not sure enough.",
                charts.reliability,
                first_runs(calibrated.drop("binning"), by, n_max),
                confidence_level=report.confidence_level,
            )
        )
    else:
        parts.append(
            paragraph(
                "Some scores lie outside of 0 to 1, so they are no probabilities, and have no "
                "calibration."
            )
        )
    if card.over_optimization is not None and card.over_optimization["budget"].n_unique() > 1:
        parts.append(
            drawn(
                "over-optimization",
                "Best of n trusts the highest score. Where a line falls from its peak by more than "
                "chance, more attempts give the verifier more to be fooled by.",
                charts.over_optimization,
                first_runs(card.over_optimization, by, n_max),
                confidence_level=report.confidence_level,
            )
        )
    if n_max < N_PANELS_MAX:
        parts += more_runs(card.distribution, by, n_max)
    folds = [_thresholds(card, report)]
    if card.length_bias is not None and card.length_bias["correlation"].count():
        folds.append(_lengths(card.length_bias, report))
    parts.append(folded("Thresholds and length bias, in numbers", folds))
    return parts


def _metrics(card: VerifierReport, report: Report) -> list[dict[str, object]]:
    """Write the metrics for people."""
    return [
        {
            **head_values(row, [*report.by, "reduction"]),
            "AUROC within problems": f"{decimals(row['auroc_within'], 3)}\n{_ends(row)}",
            "AUROC, all attempts": decimals(row["auroc"], 3),
            "average precision": decimals(row["average_precision"], 3),
            "Brier score": decimals(row["brier"], 3),
            "ECE, equal width": decimals(row["ece_equal_width"], 3),
            "ECE, equal mass": decimals(row["ece_equal_mass"], 3),
            "attempts": f"{row['n_attempts']:,}",
            "problems judged": f"{row['n_judged']:,}",
        }
        for row in card.metrics.head(N_ROWS_MAX + 1).iter_rows(named=True)
    ]


def _ends(row: dict[str, Any]) -> str:
    """Write an interval, where there is one."""
    if row["ci_low"] is None:
        return ""
    return f"{decimals(row['ci_low'], 3)} to {decimals(row['ci_high'], 3)}"


def _thresholds(card: VerifierReport, report: Report) -> str:
    """List what accepting attempts by their score gives."""
    names = [*report.by, "reduction", "metric"]
    return table(
        "Best threshold, chosen on half of the problems and judged on the others",
        names,
        [
            {
                **head_values(row, names),
                "accept from a score of": decimals(row["threshold"], 4),
                "value": percent_text(row["value"]),
                "accepting all": percent_text(row["accept_all"]),
                "accepting none": percent_text(row["accept_none"]),
                "held-out problems": f"{row['n_problems']:,}",
            }
            for row in card.thresholds.head(N_ROWS_MAX + 1).iter_rows(named=True)
        ],
    )


def _lengths(bias: pl.DataFrame, report: Report) -> str:
    """List how scores follow lengths."""
    names = [*report.by, "reduction", "unit"]
    of = [
        pl.col("correlation").filter(outcome=outcome).first().round(2).alias(f"{outcome} attempts")
        for outcome in ("all", "right", "wrong")
    ]
    rows = bias.select(*heads(names), "outcome", "correlation")
    return table(
        "Rank correlation of scores with the length of attempts; among right attempts alone it is a "
        "bias",
        names,
        rows.group_by(rows.columns[: len(names)], maintain_order=True).agg(of),
    )


SECTION = Section(
    is_there=lambda report: report.verifier is not None,
    question=asks("What are the scores worth?"),
    answers=answers,
    body=body,
)
