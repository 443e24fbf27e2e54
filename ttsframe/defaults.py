"""Choose selectors, budgets and scores for a run where the caller leaves them open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

import polars as pl

from ttsframe._checks import check_budgets, check_fraction, check_names
from ttsframe._exprs import from_safe, run_plan, safe_names, to_safe, unused_name
from ttsframe._own import check_named
from ttsframe._typing import (
    AnswerStyle,
    ColumnNames,
    FrameT,
    Grader,
    Reduction,
    Weights,
)
from ttsframe._wording import count_left_out, is_minority, is_unreached, left_out
from ttsframe.answers import AnswerPolicy, extract_answer, gold_key
from ttsframe.curves.scaling import scaling_curve
from ttsframe.errors import DataError, ParameterError
from ttsframe.schema import (
    COUNT_COLUMNS,
    TRAJECTORY_COLUMNS,
    holds_counts,
    require_columns,
    require_kind,
)
from ttsframe.scoring import score_trajectories
from ttsframe.statistics.clusters import check_cluster
from ttsframe.steps import SCORE, STEP_REDUCTIONS
from ttsframe.votes.engine.picked import PROBLEM_COLUMNS
from ttsframe.votes.engine.registry import (
    AnySelector,
    SelectorName,
    check_selectors,
    in_order,
    selector_of,
)
from ttsframe.votes.expectation import expected_accuracy
from ttsframe.votes.selectors import SELECTORS, select_answers

Budgets: TypeAlias = int | Sequence[int] | Literal["all"] | None

DEFAULT_SELECTORS: Final[tuple[SelectorName, ...]] = (
    "majority_vote",
    "weighted_vote",
    "best_of_n",
    "oracle",
)

SHARE_OF_PROBLEMS: Final = 0.1
"""Share of the problems that may have fewer attempts than the largest budget."""

RUN: Final = "_run"
"""Column with the number of each attempt's run."""

_READ: Final = (
    "problem_id",
    "attempt",
    "problem",
    "answer",
    "answer_key",
    "gold_key",
    "gold",
    "is_correct",
    "is_correct_recorded",
    "score",
    "step_scores",
    "n_tokens",
    "finish_reason",
    "is_exchangeable",
    "node_id",
    "source_file",
    *COUNT_COLUMNS,
)
_GRADES: Final = ("is_correct", "gold_key", "gold", "solution")
"""Columns that show whether an attempt can be graded; the first that exists is read."""

_ONLY_ORACLE: Final = (
    "Only oracle (pass@k), over all subsets: the source holds counts, and votes need attempts."
)
_NO_SCORE: Final = (
    "selectors such as weighted_vote and best_of_n need 'score', or 'step_scores' to compute it from; "
    "majority_vote needs neither."
)
_NO_STEPS: Final = "reductions need step scores; leave reductions out to use 'score'."


@dataclass(frozen=True, kw_only=True)
class PickOptions:
    """What a caller asks for; None means that the run decides."""

    by: ColumnNames = ()
    replicates: ColumnNames = ()
    cluster: str | None = None
    """Column that groups problems that were drawn together; None: problems are independent."""
    budgets: Budgets = None
    """Numbers of attempts. "all": all attempts, as one budget. None: for each run, the powers of two
    up to the number of attempts that at least nine in ten problems have, and that number."""
    selectors: AnySelector | Sequence[AnySelector] | None = None
    """None: those of `DEFAULT_SELECTORS` for which the run has scores and grades."""
    reductions: Reduction | Sequence[Reduction] | None = None
    """None: the column `score` if it exists, else the last step's score."""
    weights: Weights = "score"
    style: AnswerStyle = "auto"
    cut_at_next_question: bool = True
    policy: AnswerPolicy | None = None
    grade: Grader | None = None
    confidence_level: float = 0.95

    def score(self, trajectories: FrameT, overwrite: Sequence[str] = ()) -> FrameT:
        """Add the answers, keys, grades and scores that the trajectories lack."""
        return score_trajectories(
            trajectories,
            style=self.style,
            cut_at_next_question=self.cut_at_next_question,
            policy=self.policy,
            grade=self.grade,
            overwrite=overwrite,
        )


class Options(NamedTuple):
    """How answers are picked and averaged, with every choice made."""

    selectors: tuple[AnySelector, ...]
    reductions: tuple[Reduction, ...] | None
    weights: Weights
    by: tuple[str, ...]
    replicates: tuple[str, ...]
    confidence_level: float
    cluster: str | None = None


@dataclass(frozen=True, kw_only=True)
class RunGroup:
    """Runs that share their budgets, and are all graded or all ungraded."""

    is_graded: bool
    """Whether any of their attempts is graded."""
    budgets: tuple[int, ...] | None
    """Numbers of attempts; None: all attempts, as one budget."""
    runs: pl.DataFrame
    """One row per run, with the columns of `by`."""
    is_whole: bool = False
    """Whether these are searches, told apart by their width, whose first solutions are no smaller search;
    then all of them are one budget, the width."""

    def rows_of(self, table: FrameT, /) -> FrameT:
        """Keep the rows of these runs, in their order."""
        names, runs = self.runs.columns, self.runs.lazy()
        if not names:
            return table
        return run_plan(
            table,
            lambda rows: rows.join(
                runs, on=names, how="semi", nulls_equal=True, maintain_order="left"
            ),
        )


@dataclass(frozen=True, kw_only=True)
class Choice:
    """How answers are picked from a run, and notes on what the run lacks."""

    runs: tuple[RunGroup, ...]
    options: Options
    notes: tuple[str, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns of `problems` that come from the run: those that tell runs apart, and the clusters."""
        clusters = () if self.options.cluster is None else (self.options.cluster,)
        return (*self.options.by, *self.options.replicates, *clusters)

    def pick(self, attempts: FrameT, /) -> list[FrameT]:
        """Pick an answer per problem, budget, selector and reduction; one table per run group."""
        return [self._pick(group, group.rows_of(attempts)) for group in self.runs]

    def _pick(self, group: RunGroup, attempts: FrameT) -> FrameT:
        if holds_counts(attempts.collect_schema()):
            return pick_of_counts(attempts, self, group.budgets)
        picked = select_answers(
            attempts,
            selectors=self.options.selectors,
            reductions=self.options.reductions,
            budgets=group.budgets,
            weights=self.options.weights,
            by=self.keys,
        )
        if not group.is_whole:
            return picked
        width = pl.col("width").cast(pl.UInt32).alias("budget")
        return run_plan(picked, lambda rows: rows.with_columns(width))

    def curves(
        self, problems: Sequence[pl.DataFrame | pl.LazyFrame]
    ) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
        """Average `problems` to a `curve` of graded runs, and one of ungraded runs with `agreement`."""
        graded: list[pl.DataFrame] = []
        ungraded: list[pl.DataFrame] = []
        for group, table in zip(self.runs, problems, strict=True):
            curve = _average_problems(table.lazy(), self.options, is_graded=group.is_graded)
            (graded if group.is_graded else ungraded).append(curve.collect(engine="streaming"))
        return join_curves(graded, self.options.by), join_curves(ungraded, self.options.by)


def pick_of_counts(counts: FrameT, choice: Choice, budgets: Sequence[int] | None) -> FrameT:
    """Return pass@k of a table of counts as what the oracle picks."""
    if budgets is None:
        raise ParameterError(
            "budgets == 'all' has no meaning for counts, whose attempts are not there to be picked. Hint: "
            "numbers of attempts, such as budgets=[1, 8, 64]."
        )
    return expected_accuracy(
        counts, selectors=choice.options.selectors, budgets=budgets, by=choice.keys
    )


@dataclass(frozen=True, kw_only=True)
class Picks(Choice):
    """Scored attempts, and how answers are picked from them."""

    attempts: pl.DataFrame
    """The columns that an analysis reads, with `RUN`."""
    scored: pl.DataFrame | pl.LazyFrame
    """All columns."""

    @property
    def validated(self) -> pl.DataFrame | pl.LazyFrame:
        """The attempts that are held, or all columns where validation reads one that is not held."""
        # Validation of a scan reads and scores the file again.
        unheld = {*TRAJECTORY_COLUMNS} & {*self.scored.collect_schema()} - {*self.attempts.columns}
        return self.scored if unheld else self.attempts.drop(RUN)

    def problems(self) -> list[pl.DataFrame]:
        """Pick answers from the attempts."""
        return self.pick(self.attempts)


def number_by_text(attempts: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame | None:
    """Make ids (last column) for problems whose `problem_id` has other texts in other runs; None if none has."""
    if not by or attempts.schema.get("problem") != pl.String:
        return None
    runs = safe_names(by)
    text = pl.col("problem").min().str.replace_all(r"\s+", " ").str.strip_chars()
    by_length = pl.col("text").sort_by(pl.col("text").str.len_bytes(), "text")
    # A run may ask the same question within its own template.
    is_other = ~pl.col("text").str.contains(pl.col("shortest"), literal=True)
    problems = (
        attempts
        .select(*to_safe(runs), "problem_id", "problem")
        .group_by(*runs, "problem_id")
        .agg(text.alias("text"))
        .with_columns(shortest=by_length.drop_nulls().first().over("problem_id"))
        .with_columns(differ=is_other.any().over("problem_id"))
    )
    if not problems["differ"].any():
        return None
    name = pl.col("problem_id").cast(pl.String)
    number = pl.col("text").rank("dense").over("problem_id").fill_null(0)
    own = pl.when("differ").then(pl.format("{} ({})", name, number)).otherwise(name)
    return problems.select(*from_safe(runs), "problem_id", own.alias(unused_name("own_id", by)))


def with_own_ids(table: pl.DataFrame, ids: pl.DataFrame | None) -> pl.DataFrame:
    """Replace `problem_id` by what `number_by_text` found, so that only equal problems pair."""
    if ids is None:
        return table
    *keys, found = ids.columns
    own = unused_name(found, table.columns)
    joined = table.join(
        ids.rename({found: own}), on=keys, how="left", nulls_equal=True, maintain_order="left"
    )
    return joined.with_columns(problem_id=own).drop(own)


def check_run_names(names: ColumnNames, parameter: str) -> tuple[str, ...]:
    """Check names of columns that tell runs apart: none may be one that an analysis reads or makes."""
    checked: tuple[str, ...] = check_names(
        names, parameter, taken=("problem_id", "is_exchangeable", *PROBLEM_COLUMNS)
    )
    return checked


def choose_picks(trajectories: pl.DataFrame | pl.LazyFrame, options: PickOptions, /) -> Choice:
    """Choose what the options leave open, by a first look at a run of any size."""
    # Reads the columns that tell problems apart, the grades or gold answers, and scores up to the
    # first one; holds one number per problem.
    scored, resolved = _resolve(trajectories.lazy(), options)
    attempts = trajectories.lazy()
    if options.grade is not None:  # which could read the texts
        attempts = attempts.with_columns(is_correct=pl.lit(value=True))
    return _choose(attempts, scored, options, resolved)


def plan_picks(trajectories: FrameT, options: PickOptions, /) -> Picks:
    """Score a run, collect the columns that an analysis reads, and choose what the options leave open."""
    scored, resolved = _resolve(trajectories, options)
    attempts = _collect_attempts(scored, resolved)
    choice = _choose(attempts.lazy(), attempts.lazy(), options, resolved)
    return Picks(
        runs=choice.runs,
        options=choice.options,
        notes=choice.notes,
        attempts=attempts,
        scored=scored,
    )


def _resolve(trajectories: FrameT, asked: PickOptions) -> tuple[FrameT, Options]:
    """Check the options, and plan the scores, from the schema alone."""
    by: tuple[str, ...] = check_run_names(asked.by, "by")
    replicates: tuple[str, ...] = check_run_names(asked.replicates, "replicates")
    selectors = check_selectors(asked.selectors or DEFAULT_SELECTORS)
    if asked.budgets != "all":
        check_budgets(asked.budgets)
    check_fraction(asked.confidence_level, "confidence_level")
    if holds_counts(trajectories.collect_schema()):
        require_columns(trajectories, [*by, *replicates, "problem_id"])
        chosen = ("oracle",) if asked.selectors is None else selectors
        return trajectories, Options(
            chosen, None, asked.weights, by, replicates, asked.confidence_level
        )
    clusters: tuple[str, ...] = check_cluster(
        asked.cluster, {"problem_id", "attempt"}, [*by, *replicates]
    )
    schema = require_columns(trajectories, [*by, *replicates, *clusters, "problem_id", "attempt"])
    hint = "tell runs apart by a column of texts, numbers or dates."
    require_kind(schema, "a text, a number or a date", *by, *replicates, *clusters, hint=hint)
    scored = asked.score(trajectories)
    reductions = None
    if asked.reductions is not None:
        reductions = check_named(asked.reductions, "reductions", STEP_REDUCTIONS, taken=[SCORE])
    needs_score = asked.selectors is not None and any(
        selector_of(one).reads_score for one in selectors
    )
    if needs_score and reductions is None:
        require_columns(scored, ["score"], hint=_NO_SCORE)
    elif reductions is not None:
        require_columns(scored, ["step_scores"], hint=_NO_STEPS)
    if reductions is None and "score" not in schema and "step_scores" in schema:
        reductions = ("last",)
    return scored, Options(
        selectors, reductions, asked.weights, by, replicates, asked.confidence_level, asked.cluster
    )


def _choose(
    attempts: pl.LazyFrame, scored: pl.LazyFrame, asked: PickOptions, options: Options
) -> Choice:
    """Look at the attempts, and choose what the options leave open."""
    budgets = asked.budgets if asked.budgets == "all" else check_budgets(asked.budgets)
    runs = _find_runs(attempts, options, asked, needs_size=budgets is None)
    kept, notes = list(options.selectors), []
    if holds_counts(attempts.collect_schema()):
        notes.append(_ONLY_ORACLE)
    elif asked.selectors is None:
        if not _has_scores(scored):
            unread = [name for name in DEFAULT_SELECTORS if SELECTORS[name].reads_score]
            kept = [name for name in kept if name not in unread]
            have = "runs have" if runs.height > 1 else "run has"
            notes.append(f"No {' or '.join(unread)}: the {have} no scores.")
        if not runs["is_graded"].any():
            kept.remove("oracle")
    if budgets is not None:
        runs = runs.with_columns(is_whole=pl.lit(value=False))
    groups = runs.partition_by("is_graded", "most", "is_whole", as_dict=True, maintain_order=True)
    return Choice(
        runs=tuple(
            RunGroup(
                is_graded=bool(is_graded),
                budgets=None
                if budgets == "all" or is_whole
                else budgets or _powers_up_to(int(most)),
                runs=rows.select(options.by),
                is_whole=bool(is_whole),
            )
            for (is_graded, most, is_whole), rows in groups.items()
        ),
        options=options._replace(selectors=in_order(kept)),
        notes=tuple(notes),
    )


def _collect_attempts(scored: pl.DataFrame | pl.LazyFrame, options: Options) -> pl.DataFrame:
    """Collect the columns that an analysis reads, with each attempt's run as a number."""
    schema = scored.collect_schema()
    clusters = [] if options.cluster is None else [options.cluster]
    keys = [*options.by, *options.replicates, *clusters]
    own = [name for selector in options.selectors for name in selector_of(selector).columns]
    read = dict.fromkeys([*_READ, *own])
    names = [*keys, *[name for name in read if name in schema and name not in keys]]
    run = pl.struct(options.by).rank("dense") if options.by else pl.lit(1)
    # In one piece, because every analysis of lists of steps would make a copy in one piece.
    attempts = scored.lazy().select(*names, run.cast(pl.UInt32).alias(RUN)).collect().rechunk()
    _check_rows(attempts)
    return attempts


def _check_rows(attempts: pl.DataFrame) -> None:
    """Raise where there are no attempts."""
    if attempts.is_empty():
        raise DataError(
            "trajectories has no rows. Hint: look at the source with ttsframe validate."
        )


def _find_runs(
    attempts: pl.LazyFrame, options: Options, asked: PickOptions, *, needs_size: bool
) -> pl.DataFrame:
    """Return each run with `is_graded`, `is_whole` and `most`, graded runs and large ones first."""
    # `most` is the number of attempts that at least nine in ten problems have; 0 unless needed.
    run: list[str] = list(options.by) or [RUN]
    if not options.by:
        attempts = attempts.with_columns(pl.lit(1, pl.UInt32).alias(RUN))
    schema = attempts.collect_schema()
    of_counts = holds_counts(schema)
    grades_of = ("n_correct",) if of_counts else _GRADES
    grade = next((name for name in grades_of if name in schema), None)
    is_searched = {"policy", "width"} <= {*run} and "is_exchangeable" in schema
    whole = ~pl.col("is_exchangeable").fill_null(value=True) if is_searched else pl.lit(value=False)
    grades = attempts.select(
        *run, *([] if grade is None else [grade]), whole.alias("is_whole")
    ).unique()
    most = pl.lit(0, pl.Int64)
    sizes = attempts.select(run).unique()
    if needs_size:
        problem = [*run, *[name for name in (*options.replicates, "problem_id") if name not in run]]
        n = pl.col("n_attempts").cast(pl.Int64).fill_null(0).sum() if of_counts else pl.len()
        sizes = attempts.group_by(problem).agg(n.alias("_n"))
        most = pl.col("_n").quantile(SHARE_OF_PROBLEMS, "lower").cast(pl.Int64)
    found, counts = pl.collect_all(
        [grades, sizes.group_by(run).agg(most.alias("most"))], engine="streaming"
    )
    _check_rows(found)
    value = pl.lit(None, pl.Boolean)
    if grade is not None:
        texts = extract_answer(grade, style=asked.style) if grade == "solution" else pl.col(grade)
        value = gold_key(texts, policy=asked.policy) if grade in {"gold", "solution"} else texts
    return (
        found
        .with_columns(value.is_not_null().alias("is_graded"))
        .group_by(run)
        .agg(pl.col("is_graded", "is_whole").any())
        .join(counts, on=run, nulls_equal=True)
        .sort("is_graded", "most", *run, descending=[True, True, *[False] * len(run)])
        .drop(RUN, strict=False)
    )


def _has_scores(scored: pl.LazyFrame) -> bool:
    """Return whether any score exists, reading no further than the first one."""
    if "score" not in scored.collect_schema():
        return False
    found = scored.select("score").filter(pl.col("score").is_not_null()).head(1)
    return not found.collect(engine="streaming").is_empty()


def _powers_up_to(most: int) -> tuple[int, ...]:
    """Return the powers of two up to a number, and the number."""
    return tuple(sorted({2**i for i in range(most.bit_length())} | {most}))


def _average_problems(problems: pl.LazyFrame, options: Options, *, is_graded: bool) -> pl.LazyFrame:
    """Average the problems; without grades, average how many attempts agree with the pick."""
    if not is_graded:
        problems = value_agreement(problems)
    curve = scaling_curve(
        problems,
        by=options.by,
        replicates=options.replicates,
        cluster=options.cluster,
        confidence_level=options.confidence_level,
    )
    return curve if is_graded else curve.rename({"accuracy": "agreement"})


def value_agreement(problems: pl.LazyFrame) -> pl.LazyFrame:
    """Value ungraded problems by the share of their attempts that agree with the pick."""
    ungraded = pl.col("status") == "ungraded"
    return problems.filter(pl.col("selector") != "oracle").with_columns(
        value=pl.when(ungraded).then("agreement").otherwise("value"),
        status=pl.when(ungraded).then(pl.lit("ok")).otherwise("status"),
    )


def join_curves(curves: Sequence[pl.DataFrame], by: Sequence[str]) -> pl.DataFrame | None:
    """Put the curves of several runs into one table, selectors in the order of the registry."""
    if not curves:
        return None
    ranks = {name: i for i, name in enumerate(SELECTORS)}
    rank = pl.col("selector").replace_strict(ranks, default=len(ranks), return_dtype=pl.UInt8)
    order = [*by, rank, "selector", "reduction", "budget"]
    return pl.concat(curves).sort(order, maintain_order=True)


def _note_unreached(curve: pl.DataFrame, by: Sequence[str]) -> list[str]:
    """Write a note on the budgets of each run that none of its problems reaches."""
    notes = []
    for run in curve.partition_by(by, maintain_order=True) if by else [curve]:
        unreached = run.filter(is_unreached())
        budgets = unreached["budget"].unique().sort().to_list()
        if budgets:
            of_run = "".join(f" of {run[name][0]}" for name in by)
            listed = " and ".join(f"{budget:,}" for budget in budgets)
            is_all = unreached.height == run.height
            others = "" if is_all else " The other budgets are averaged without it."
            notes.append(
                f"Budget {listed}: no problem{of_run} has so many attempts, so no number is "
                f"shown.{others}"
            )
    return notes


def _note_minority(curve: pl.DataFrame, by: Sequence[str]) -> list[str]:
    """Write a note on each run of which all lines leave out most problems."""
    notes = []
    for run in curve.partition_by(by, maintain_order=True) if by else [curve]:
        few = run.filter(is_minority()).with_columns(count_left_out(), omitted=left_out())
        is_rest_empty = few["n_problems"].sum() == 0
        if is_rest_empty or few.height < run.filter(~is_unreached()).height:
            continue
        row = few.sort("n_problems").row(0, named=True)
        of_run = "".join(f" of {row[name]}" for name in by)
        notes.append(
            f"Only {row['n_problems']:,} of {row['n_problems'] + row['n_left_out']:,} problems{of_run} "
            f"are averaged, because all budgets average the same problems (left out: {row['omitted']})."
            + (" Hint: leave out the budgets that few problems have." if row["n_short"] else "")
        )
    return notes


def note_fewer_problems(curve: pl.DataFrame | None, by: Sequence[str]) -> list[str]:
    """Write a note on each line that is averaged over fewer problems than others of its run."""
    if curve is None:
        return []
    notes = [*_note_unreached(curve, by), *_note_minority(curve, by)]
    n_problems = pl.col("n_problems")
    most = n_problems.max().over(by) if by else n_problems.max()
    lines = (
        curve
        .filter(~is_unreached())
        .with_columns(most=most, omitted=left_out())
        .filter(n_problems < pl.col("most"))
        .unique([*by, "selector", "reduction"], keep="last", maintain_order=True)
    )
    for row in lines.iter_rows(named=True):
        reduction = "" if row["reduction"] is None else f" ({row['reduction']})"
        run = "".join(f", {row[name]}" for name in by)
        notes.append(
            f"{row['selector']}{reduction}{run}: averaged over {row['n_problems']:,} of "
            f"{row['most']:,} problems (left out: {row['omitted']}), so it is not comparable with the "
            "other lines."
        )
    return notes
