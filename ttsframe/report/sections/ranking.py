"""Which run is best, and how sure that is."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import polars as pl

from ttsframe._wording import counted
from ttsframe.report.parts import Context, Figure, Part, make_table
from ttsframe.report.runs import RunData
from ttsframe.report.sections.comparison import NAME, paired_problems
from ttsframe.report.wording import format_percent, list_names
from ttsframe.statistics.ranking import rank

_N_NAMED_MAX: Final = 8


def make(data: RunData, runs: pl.DataFrame) -> dict[str, Any]:
    """Rank the runs by each way to choose an answer, at the largest budget that all of them have."""
    problems = paired_problems(data, runs)
    if problems is None:
        return {"ranking": None}
    n_runs = pl.col(NAME).n_unique()
    line = ["budget", "selector", "reduction", "subsets"]
    shared = problems.filter(n_runs.over(line) == n_runs, pl.col("selector") != "oracle")
    if shared.is_empty():
        return {"ranking": None}
    table = rank(
        shared.filter(budget=shared["budget"].max()),
        column=NAME,
        replicates=data.replicates,
        cluster=data.options.cluster,
        confidence_level=data.options.confidence_level,
    )
    return {"ranking": table if (table["n_problems"] > 0).any() else None}


def answer(context: Context, ranking: pl.DataFrame) -> list[str]:
    """Say for each line which runs can be the best."""
    texts = []
    for rows in ranking.partition_by("selector", "reduction", maintain_order=True):
        row = rows.row(0, named=True)
        first = rows.filter(pl.col("rank_low") == 1)
        names = first[NAME].head(_N_NAMED_MAX).to_list()
        if first.height > len(names):
            names.append(f"{first.height - len(names)} more")
        where = (
            f"by {context.name_line(row)} with {counted([row['budget']], 'attempt')}, on "
            f"{counted([row['n_problems']], 'problem')}"
        )
        if first.height == 1:
            text = f"{names[0]} is the best of {rows.height} {where}."
        elif first.height == rows.height:
            some = "Either run" if rows.height == 2 else f"Any of the {rows.height} runs"
            text = f"{some} can be the best {where}."
        else:
            text = f"{list_names(names)} can each be the best of {rows.height} {where}."
        texts.append(text[:1].upper() + text[1:])
    return texts


def draw(context: Context, ranking: pl.DataFrame) -> list[Part]:
    """Draw the ranks, and list them."""
    from ttsframe import charts

    caption = (
        "All pairs of runs are compared problem by problem. A run can have any rank that these "
        f"comparisons, corrected for their number (Holm), allow: with a confidence of {context.level}, all "
        "true ranks are on their lines at once."
    )
    cells = [
        {
            "rank": f"{row['rank']:,}",
            "can be": f"{row['rank_low']:,} to {row['rank_high']:,}",
            "accuracy": format_percent(row["accuracy"]),
            "sets that cannot be told apart": ", ".join(map(str, row["sets"])),
            "share of resamples in which it is best": format_percent(
                row["share_of_resamples_best"]
            ),
            "problems": f"{row['n_problems']:,}",
        }
        for row in ranking.drop_nulls("rank").iter_rows(named=True)
    ]
    return [
        Figure(
            "ranks",
            caption,
            partial(charts.ranking, ranking, confidence_level=context.confidence_level),
        ),
        make_table(
            "Ranks of the runs, with the ranks that they can have. Of equally good runs the luckiest has "
            "most of the resamples, so their share is not the chance of being the best",
            ranking.drop_nulls("rank").select(NAME, "selector", "reduction"),
            cells,
        ),
    ]
