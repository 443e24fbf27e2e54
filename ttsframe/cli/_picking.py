"""What `curve` and `vote` share: the choice of selectors and budgets, and the lazy query."""

from __future__ import annotations

from typing import Final

import polars as pl

from ttsframe.batch import Score, Select, Stage
from ttsframe.batch.stages import TEXTS
from ttsframe.cli._options import Run
from ttsframe.defaults import Choice, PickOptions, choose_picks, pick_of_counts
from ttsframe.schema import holds_counts
from ttsframe.votes.engine.registry import selector_of

_READ_BY_PICKING: Final = frozenset({"answer", "answer_key", "is_correct"})


def choose(run: Run, choosing: PickOptions, attempts: pl.LazyFrame) -> Choice:
    """Take a first look at the attempts, and choose what the options leave open."""
    with run.named_in_errors():
        return choose_picks(attempts, choosing)


def all_budgets(choice: Choice) -> list[int] | None:
    """Return the budgets of all runs; None for all attempts as one budget."""
    return sorted({budget for group in choice.runs for budget in group.budgets or ()}) or None


def picking_stages(choosing: PickOptions, choice: Choice, attempts: pl.LazyFrame) -> list[Stage]:
    """Return the stages of a job that picks answers; Score only where the run lacks what it adds."""
    score = Score(
        style=choosing.style,
        cut_at_next_question=choosing.cut_at_next_question,
        policy=choosing.policy,
        grade=choosing.grade,
        texts=any(set(TEXTS) & set(selector_of(one).columns) for one in choice.options.selectors),
    )
    needed = _READ_BY_PICKING | ({"score"} if choice.options.reductions is None else set())
    select = Select(
        selectors=choice.options.selectors,
        reductions=choice.options.reductions,
        budgets=all_budgets(choice),
        weights=choice.options.weights,
    )
    additions = score.additions(attempts.collect_schema())
    made = [addition.name for addition in additions if addition.name != addition.source]
    is_score_needed = not needed.isdisjoint(made)
    return [score, select] if is_score_needed else [select]


def pick(choosing: PickOptions, choice: Choice, attempts: pl.LazyFrame) -> pl.LazyFrame:
    """Plan the table `problems` of all runs, at the budgets of any of them."""
    if holds_counts(attempts.collect_schema()):
        return pick_of_counts(attempts, choice, all_budgets(choice))
    *_, select = picking_stages(choosing, choice, attempts)
    return select.make(choosing.score(attempts), choice.keys)


def curves_of(
    choice: Choice, problems: pl.LazyFrame
) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
    """Average the problems to the curves of graded and of ungraded runs."""
    if len(choice.runs) > 1:  # else each group of runs would read the source again
        problems = problems.collect(engine="streaming").lazy()
    parts = []
    for group in choice.runs:
        rows = group.rows_of(problems)
        of_group = (
            rows if group.budgets is None else rows.filter(pl.col("budget").is_in(group.budgets))
        )
        parts.append(of_group)
    return choice.curves(parts)
