"""The tables of a report's further sections, each made by a public function, where runs allow it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias, TypedDict

import polars as pl

from ttsframe._typing import SectionName, StepReduction
from ttsframe.curves.cost import add_costs, cost_curve, pareto_frontier
from ttsframe.curves.efficiency import efficiency_gain
from ttsframe.curves.gaps import selection_gap
from ttsframe.curves.levels import difficulty_levels, halve_attempts, level_curve
from ttsframe.curves.optimal import optimal_choices, optimal_curve
from ttsframe.curves.scaling import scaling_curve
from ttsframe.defaults.picks import AlikeRuns, Picks
from ttsframe.defaults.tables import RUN
from ttsframe.errors import DataError, TtsframeError
from ttsframe.report.runs import Rule, compared_alike, describe_runs, keep_runs, rows_of
from ttsframe.verifier import VerifierReport, over_optimization, verifier_metrics, verifier_report
from ttsframe.votes.engine.registry import SelectorName
from ttsframe.votes.selectors import SELECTORS, select_answers

_N_ATTEMPTS_MIN: Final = 16
_N_PROBLEMS_MIN: Final = 15
_N_PROBLEMS_OF_FIVE: Final = 50
"""Levels of ten problems, or three of five: of fewer, a curve says nothing."""
_N_DRAWS: Final = 2_000
_N_DRAWS_MIN: Final = 200
_N_CELLS: Final = 4_000_000
_COMPARED: Final[tuple[StepReduction, ...]] = ("last", "min", "mean", "prod")

_GRADED: Final = Rule(pl.col("n_right") + pl.col("n_wrong") > 0, "no gold answers")
_TREE: Final = "attempts of a tree search depend on each other"


class Tables(TypedDict, total=False):
    """What the further sections show; without those that no run allows, or that were not asked for.

    `optimal` has the strategies' own curves on the same halves beside the compute-optimal one; what
    each name holds else stands with the fields of `Report`.
    """

    selection_gap: pl.DataFrame
    levels: pl.DataFrame
    level_curve: pl.DataFrame
    optimal: pl.DataFrame
    choices: pl.DataFrame
    cost: pl.DataFrame
    efficiency: pl.DataFrame
    verifier: VerifierReport


class _Halved(NamedTuple):
    """Runs that share their budgets, in halves: what was picked, and the levels."""

    runs: pl.DataFrame
    problems: pl.DataFrame
    levels: pl.DataFrame


_Analysis: TypeAlias = Callable[["_Run", pl.DataFrame], Tables]


class _Run:
    """Everything that the analyses read; attempts in halves are picked from once."""

    def __init__(self, picks: Picks, problems: Sequence[pl.DataFrame]) -> None:
        self.picks = picks
        self.options = picks.options
        self.attempts = picks.attempts
        self.problems = problems
        self.groups = list(picks.options.groups)
        self.repeats = list(picks.options.repeats)
        self._halved: list[_Halved] | None = None

    @property
    def strategies(self) -> list[SelectorName]:
        """Selectors that can be chosen."""
        return [name for name in self.options.selectors if name != "oracle"]

    @property
    def smallest_budget(self) -> int:
        """Number of attempts at the left end of the curves."""
        return min(min(part.budgets or (1,)) for part in self.picks.runs)

    def parts(self, runs: pl.DataFrame) -> list[tuple[AlikeRuns, pl.DataFrame, pl.DataFrame]]:
        """Return those of the runs that share budgets, with their problems."""
        found = []
        for part, problems in zip(self.picks.runs, self.problems, strict=True):
            own, table = runs, problems
            if self.groups:
                own = runs.join(part.runs, on=self.groups, how="semi", nulls_equal=True)
                table = problems.join(own, on=self.groups, how="semi", nulls_equal=True)
            if own.height:
                found.append((part, own.sort(RUN), table))
        return found

    def halved(self, runs: pl.DataFrame) -> list[_Halved]:
        """Pick from halves of the attempts, and find the levels of each."""
        if self._halved is None:
            self._halved = [
                self._halve(part, own)
                for part, alike, _ in self.parts(runs)
                for own in alike.partition_by("n_each", "n_levels", maintain_order=True)
            ]
        if not self.groups:
            return self._halved
        kept = [half.runs.join(runs, on=RUN, how="semi") for half in self._halved]
        return [
            half._replace(
                runs=own,
                problems=half.problems.join(own, on=self.groups, how="semi", nulls_equal=True),
            )
            for half, own in zip(self._halved, kept, strict=True)
            if own.height
        ]

    def _halve(self, part: AlikeRuns, runs: pl.DataFrame) -> _Halved:
        rows = rows_of(self.attempts, runs)
        most = runs["n_each"][0] // 2
        keys = [*self.groups, *self.repeats]
        picked = select_answers(
            halve_attempts(rows),
            selectors=self.options.selectors,
            reductions=self.options.reductions,
            budgets=[budget for budget in part.budgets or () if budget <= most],
            weights=self.options.weights,
            by=[*keys, "fold"],
        )
        levels = difficulty_levels(rows, n_levels=runs["n_levels"][0], by=keys)
        return _Halved(runs, compared_alike(picked, self.groups), levels)


def analyze(
    picks: Picks, problems: Sequence[pl.DataFrame], sections: Sequence[SectionName]
) -> tuple[Tables, dict[SectionName, str]]:
    """Make the tables of the sections that were asked for, as far as the runs allow it.

    Parameters
    ----------
    picks
        The attempts, and what is to be done with them.
    problems
        What was picked, for each part of the runs.
    sections
        Names in `SECTIONS`.

    Returns
    -------
    tuple[Tables, dict[SectionName, str]]
        The tables, and for each section that is left out, in whole or for some runs, why.
    """
    run = _Run(picks, problems)
    described = describe_runs(picks.attempts, picks.options).with_columns(
        n_levels=pl.when(pl.col("n_problems") >= _N_PROBLEMS_OF_FIVE).then(5).otherwise(3)
    )
    tables = Tables()
    omitted: dict[SectionName, str] = {}
    for name in sections:
        if name not in _ANALYSES:
            continue
        rules, analysis = _ANALYSES[name]
        runs, reason = keep_runs(described, rules(run), run.groups)
        if reason is not None:
            omitted[name] = reason
        if runs.is_empty():
            continue
        try:
            tables.update(analysis(run, runs))
        except TtsframeError as error:
            # A table that cannot be made, as for a run told apart by a column that it has of its
            # own, must not cost the report.
            omitted[name] = str(error)
    return tables, omitted


def _gap(run: _Run, runs: pl.DataFrame) -> Tables:
    """Split what is missing to 100 %."""
    options = run.options
    gaps = [
        selection_gap(
            table,
            by=options.groups,
            replicates=options.repeats,
            confidence_level=options.confidence_level,
        )
        for _, _, table in run.parts(runs)
    ]
    return {"selection_gap": _joined(gaps, run)}


def _difficulty(run: _Run, runs: pl.DataFrame) -> Tables:
    """Average by level."""
    halved = run.halved(runs)
    curves = [
        level_curve(
            half.problems,
            levels=half.levels,
            by=run.groups,
            replicates=run.repeats,
            confidence_level=run.options.confidence_level,
        )
        for half in halved
    ]
    levels = pl.concat([half.levels for half in halved])
    if run.groups:
        levels = levels.sort(*run.groups, maintain_order=True)
    return {"levels": levels, "level_curve": _joined(curves, run, "level")}


def _optimal(run: _Run, runs: pl.DataFrame) -> Tables:
    """Choose a strategy per level."""
    level = run.options.confidence_level
    curves, choices = [], []
    for half in run.halved(runs):
        curves += [
            scaling_curve(half.problems, by=run.groups, replicates="fold", confidence_level=level),
            optimal_curve(half.problems, levels=half.levels, by=run.groups, confidence_level=level),
        ]
        choices.append(optimal_choices(half.problems, levels=half.levels, by=run.groups))
    return {
        "optimal": _joined(curves, run),
        "choices": pl.concat(choices).sort(*run.groups, "level", maintain_order=True),
    }


def _cost(run: _Run, runs: pl.DataFrame) -> Tables:
    """Average by tokens, and read off what is cheaper at equal accuracy."""
    options = run.options
    keys = [*run.groups, *run.repeats]
    curves, gains = [], []
    for _, own, table in run.parts(runs):
        priced = add_costs(
            compared_alike(table.filter(pl.col("selector") != "oracle"), run.groups),
            trajectories=rows_of(run.attempts, own),
            by=keys,
        )
        curve = cost_curve(
            priced,
            by=run.groups,
            replicates=run.repeats,
            confidence_level=options.confidence_level,
        )
        curve = curve.filter(pl.col("budget") > 0, pl.col("accuracy").is_not_null())
        curves.append(pareto_frontier(curve, by=run.groups))
        has_pairs = "majority_vote" in options.selectors and priced["selector"].n_unique() > 1
        if has_pairs and not run.repeats and min(own["tokens_min"].to_list()) > 0:
            draws = _N_CELLS // max(own["n_problems"].to_list())
            gains.append(
                efficiency_gain(
                    priced,
                    by=run.groups,
                    n_resamples=max(_N_DRAWS_MIN, min(_N_DRAWS, draws)),
                    confidence_level=options.confidence_level,
                )
            )
    cost = pl.concat(curves).sort(*run.groups, maintain_order=True) if run.groups else curves[0]
    if cost.is_empty():
        raise DataError("the numbers of tokens of too many attempts are unknown")
    tables = Tables(cost=cost)
    if gains:
        tables["efficiency"] = _joined(gains, run)
    return tables


def _verifier(run: _Run, runs: pl.DataFrame) -> Tables:
    """Say what the scores are worth, and compare reductions where there are step scores."""
    options = run.options
    level = options.confidence_level
    # Best-of-N by budget was picked already: without `attempt` the report card leaves it out.
    rows = rows_of(run.attempts, runs).drop("attempt")
    card = verifier_report(
        rows, reductions=options.reductions, by=run.groups, confidence_level=level
    )
    others = [name for name in _COMPARED if name not in card.metrics["reduction"]]
    if others and "step_scores" in rows.columns and rows["step_scores"].count():
        compared = verifier_metrics(rows, reductions=others, by=run.groups, confidence_level=level)
        card = replace(card, metrics=pl.concat([card.metrics, compared]))
    if "best_of_n" in options.selectors and not run.repeats:
        turns = [
            over_optimization(
                table.filter(selector="best_of_n"), by=run.groups, confidence_level=level
            )
            for _, _, table in run.parts(runs)
        ]
        card = replace(card, over_optimization=_joined(turns, run))
    return {"verifier": card}


def _joined(tables: Sequence[pl.DataFrame], run: _Run, *first: str) -> pl.DataFrame:
    """Put the tables of several runs into one, selectors in the order of the registry."""
    ranks = {name: i for i, name in enumerate(SELECTORS)}
    rank = pl.col("selector").replace_strict(ranks, default=len(ranks), return_dtype=pl.UInt8)
    return pl.concat(tables).sort(*run.groups, *first, rank, maintain_order=True, nulls_last=True)


def _gap_rules(run: _Run) -> list[Rule]:
    """Say what a run must have to be graded."""
    del run
    return [_GRADED]


def _level_rules(run: _Run) -> list[Rule]:
    """Say what a run must have for levels from halves of its attempts."""
    return [
        _GRADED,
        Rule(pl.col("is_exchangeable"), f"{_TREE}, so half of them is no run of half the budget"),
        Rule(
            pl.col("n_each") >= _N_ATTEMPTS_MIN,
            f"fewer than {_N_ATTEMPTS_MIN} attempts per problem",
        ),
        Rule(pl.col("n_problems") >= _N_PROBLEMS_MIN, f"fewer than {_N_PROBLEMS_MIN} problems"),
        Rule(pl.col("n_each") // 2 >= run.smallest_budget, "no budget within half of the attempts"),
    ]


def _optimal_rules(run: _Run) -> list[Rule]:
    """Say what a run must have for a choice between strategies by level."""
    n_scoreless = sum(not SELECTORS[name].reads_score for name in run.strategies)
    has_scores = (pl.col("n_scored") > 0) & (len(run.strategies) > 1)
    return [
        *_level_rules(run),
        Rule(pl.lit(n_scoreless > 1) | has_scores, "a single strategy, so nothing to choose from"),
        Rule(pl.lit(not run.repeats), "repetitions of a run have levels of their own"),
    ]


def _cost_rules(run: _Run) -> list[Rule]:
    """Say what a run must have for an axis of tokens."""
    del run
    return [
        Rule(pl.col("tokens_min").is_not_null(), "no numbers of tokens (n_tokens)"),
        _GRADED,
        Rule(
            pl.col("is_exchangeable"),
            "a tree search pays for branches that n_tokens of its paths does not count",
        ),
    ]


def _verifier_rules(run: _Run) -> list[Rule]:
    """Say what a run must have for scores to be judged."""
    del run
    return [
        Rule(pl.col("n_scored") > 0, "no scores"),
        _GRADED,
        Rule(pl.col("n_right") > 0, "no attempt is right"),
        Rule(pl.col("n_wrong") > 0, "no attempt is wrong"),
    ]


_ANALYSES: Final[dict[str, tuple[Callable[[_Run], list[Rule]], _Analysis]]] = {
    "selection_gap": (_gap_rules, _gap),
    "difficulty": (_level_rules, _difficulty),
    "compute_optimal": (_optimal_rules, _optimal),
    "cost": (_cost_rules, _cost),
    "verifier": (_verifier_rules, _verifier),
}
