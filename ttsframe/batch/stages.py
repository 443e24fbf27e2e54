"""Stages of a batch job, as values that can be saved and compared.

The fields of a stage are parameters of the function that makes its table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from hashlib import blake2b
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_args

import polars as pl

from ttsframe._checks import (
    check_budgets,
    check_choice,
    check_fraction,
    check_names,
)
from ttsframe._own import Imported, by_name, check_named
from ttsframe._typing import (
    AnswerStyle,
    ColumnNames,
    Grader,
    ProblemSet,
    Reduction,
    Weights,
)
from ttsframe.answers import AnswerPolicy
from ttsframe.answers.own_grade import grade_expr
from ttsframe.curves.scaling import scaling_curve
from ttsframe.errors import ParameterError, ParameterTypeError
from ttsframe.scoring import ADDED_COLUMNS, Addition, plan_additions, score_trajectories
from ttsframe.steps import SCORE, STEP_REDUCTIONS
from ttsframe.votes.engine.registry import AnySelector, check_selectors
from ttsframe.votes.selectors import select_answers
from ttsframe.votes.tally import tally_votes

__all__ = ["Curve", "Score", "Select", "Stage", "Table", "Votes"]

Table: TypeAlias = Literal["trajectories", "votes", "problems", "curve"]

TEXTS: Final = ("problem", "completion", "solution")
"""Columns that take most of the space."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """Add answers, their keys, grades and scores to attempts, as `score_trajectories` does.

    Parameters
    ----------
    reduction
        Name in `STEP_REDUCTIONS`, or a function: how `step_scores` becomes `score`.
    style
        How answers are marked in completions; see `extract_answer`.
    policy
        Conventions of the answer keys; None is `AnswerPolicy()`.
    overwrite
        Columns to compute even if the source has them.
    texts
        Whether to write `problem`, `completion` and `solution` too. They take most of the space, and
        no later stage reads them.
    cut_at_next_question
        Whether a completion ends where the model goes on with a question of its own; see
        `extract_answer`.
    grade
        A grade of your own, as `score_trajectories` takes it.

    Raises
    ------
    ParameterError
        If a parameter is not among its choices.
    ParameterTypeError
        If `policy` is not an AnswerPolicy.

    Examples
    --------
    >>> import ttsframe as tts
    >>> tts.batch.Score(reduction="min").texts
    False
    """

    reads: ClassVar[Table] = "trajectories"
    makes: ClassVar[Table] = "trajectories"

    reduction: Reduction = "last"
    style: AnswerStyle = "auto"
    policy: AnswerPolicy | None = None
    overwrite: Sequence[str] = ()
    texts: bool = False
    cut_at_next_question: bool = True
    grade: Grader | None = None

    def __post_init__(self) -> None:
        """Check every option."""
        check_named(self.reduction, "reduction", STEP_REDUCTIONS)
        check_choice(self.style, "style", get_args(AnswerStyle))
        if self.policy is not None and not isinstance(self.policy, AnswerPolicy):
            raise ParameterTypeError(
                f"policy is a {type(self.policy).__name__}, must be an AnswerPolicy."
            )
        names: tuple[str, ...] = check_names(self.overwrite, "overwrite")
        for name in names:
            check_choice(name, "overwrite", ADDED_COLUMNS)
        if self.grade is not None:
            grade_expr(self.grade)
        object.__setattr__(self, "overwrite", names)

    def make(self, attempts: pl.LazyFrame, _: Sequence[str]) -> pl.LazyFrame:
        """Make the table of this stage."""
        scored = score_trajectories(attempts, **self._parameters)
        return scored if self.texts else scored.drop(TEXTS, strict=False)

    def additions(self, schema: Mapping[str, pl.DataType]) -> list[Addition]:
        """List the columns that this stage adds to attempts with these columns, in order."""
        return plan_additions(pl.Schema(schema), **self._parameters)

    @property
    def _parameters(self) -> dict[str, Any]:
        """The options that are parameters of `score_trajectories`."""
        return {name: value for name, value in vars(self).items() if name != "texts"}


@dataclass(frozen=True, kw_only=True)
class Votes:
    """Count votes and add up weights per distinct answer, as `tally_votes` does.

    Parameters
    ----------
    budgets
        Numbers of attempts; None: all attempts, as one budget.
    reductions
        Names in `STEP_REDUCTIONS`, or functions; None: the column `score`.
    weights
        Weight of an attempt's vote: "score", or its "sigmoid", "softmax" or "logit", as in `select_answers`.

    Raises
    ------
    ParameterError
        If a parameter is not among its choices.

    Examples
    --------
    >>> import ttsframe as tts
    >>> tts.batch.Votes(budgets=[4, 1]).budgets
    (1, 4)
    """

    reads: ClassVar[Table] = "trajectories"
    makes: ClassVar[Table] = "votes"

    budgets: int | Sequence[int] | None = None
    reductions: Reduction | Sequence[Reduction] | None = None
    weights: Weights = "score"

    def __post_init__(self) -> None:
        """Check every option."""
        _check_counting(self)

    def make(self, attempts: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
        """Make the table of this stage."""
        return tally_votes(attempts, **vars(self), by=keys)


@dataclass(frozen=True, kw_only=True)
class Select:
    """Pick an answer per problem and budget, as `select_answers` does.

    Parameters
    ----------
    selectors
        Names in `SELECTORS`, or functions, as `select_answers` takes them.
    reductions
        Names in `STEP_REDUCTIONS`, or functions; None: the column `score`.
    budgets
        Numbers of attempts; None: all attempts, as one budget.
    weights
        Weight of a vote in `weighted_vote`.

    Raises
    ------
    ParameterError
        If a parameter is not among its choices.

    Examples
    --------
    >>> import ttsframe as tts
    >>> tts.batch.Select(selectors="oracle", budgets=8).selectors
    ('oracle',)
    """

    reads: ClassVar[Table] = "trajectories"
    makes: ClassVar[Table] = "problems"

    selectors: AnySelector | Sequence[AnySelector] = (
        "majority_vote",
        "weighted_vote",
        "best_of_n",
    )
    reductions: Reduction | Sequence[Reduction] | None = None
    budgets: int | Sequence[int] | None = None
    weights: Weights = "score"

    def __post_init__(self) -> None:
        """Check every option."""
        chosen = check_selectors(self.selectors)
        object.__setattr__(self, "selectors", chosen)
        _check_counting(self)

    def make(self, attempts: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
        """Make the table of this stage."""
        return select_answers(attempts, **vars(self), by=keys)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Average the problems into one row per budget, as `scaling_curve` does.

    Parameters
    ----------
    replicates
        Columns that number repetitions of one run, for example the seed. Answers are picked
        separately for each, as for the columns of `by`.
    cluster
        Column that groups problems that were drawn together, one of the columns of `by`.
    include
        Which problems are averaged: "common" or "available".
    confidence_level
        Confidence level of the interval, in (0, 1).

    Raises
    ------
    ParameterError
        If a parameter is not among its choices.

    Examples
    --------
    >>> import ttsframe as tts
    >>> tts.batch.Curve(replicates="seed").replicates
    ('seed',)
    """

    reads: ClassVar[Table] = "problems"
    makes: ClassVar[Table] = "curve"

    replicates: ColumnNames = ()
    cluster: str | None = None
    include: ProblemSet = "common"
    confidence_level: float = 0.95

    def __post_init__(self) -> None:
        """Check every option."""
        names: tuple[str, ...] = check_names(self.replicates, "replicates")
        object.__setattr__(self, "replicates", names)
        check_choice(self.include, "include", get_args(ProblemSet))
        check_fraction(self.confidence_level, "confidence_level")

    def make(self, problems: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
        """Make the table of this stage."""
        groups = [name for name in keys if name not in {*self.replicates, self.cluster}]
        return scaling_curve(problems, **vars(self), by=groups)


Stage: TypeAlias = Score | Votes | Select | Curve
"""A step of a batch job."""

_KINDS: Final = (Score, Votes, Select, Curve)


def _check_counting(stage: Votes | Select) -> None:
    """Check and normalize the options that votes and selectors share."""
    object.__setattr__(stage, "budgets", check_budgets(stage.budgets))
    if stage.reductions is not None:
        chosen = check_named(stage.reductions, "reductions", STEP_REDUCTIONS, taken=[SCORE])
        object.__setattr__(stage, "reductions", chosen)
    check_choice(stage.weights, "weights", get_args(Weights))


def check_stages(stages: Stage | Sequence[Stage]) -> tuple[Stage, ...]:
    """Return the stages as a tuple; each must read the table that the one before makes."""
    listed = (stages,) if isinstance(stages, _KINDS) else tuple(stages)
    table: Table = "trajectories"
    before: list[str] = []
    for stage in listed:
        if not isinstance(stage, _KINDS):
            raise ParameterTypeError(
                f"stages holds a {type(stage).__name__}, must hold Score, Votes, Select or Curve of "
                "tts.batch."
            )
        name = type(stage).__name__
        if name in before:
            raise ParameterError(f"stages holds {name} twice, must hold each stage once.")
        if stage.reads != table:
            found = " and ".join(before) or "no stage"
            raise ParameterError(
                f"{name} comes after {found}, which makes the table {table!r}; it reads the table "
                f"{stage.reads!r}. Hint: Score, then Votes or Select, then Curve after Select."
            )
        before.append(name)
        table = stage.makes
    return listed


def stage_settings(stage: Stage) -> dict[str, object]:
    """Return the name and the options of a stage, as values for JSON."""
    options = {field.name: getattr(stage, field.name) for field in fields(stage)}
    policy = options.get("policy")
    if isinstance(policy, AnswerPolicy):
        options["policy"] = asdict(policy)
    plain = {name: _plain(value) for name, value in options.items()}
    return {"stage": type(stage).__name__.lower(), **plain}


def _plain(value: object) -> object:
    """Return an option as a value for JSON; a function by its name."""
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, pl.Expr):
        # Long lists and Python functions are not spelled out.
        digest = blake2b(value.meta.serialize(), digest_size=8).hexdigest()
        return f"{value} (digest {digest})"
    return value.text if isinstance(value, Imported) else value


def import_functions(stage: Stage) -> Stage:
    """Refer to the user's functions in a stage by their names, by which any process imports them."""
    changed: dict[str, Any] = {}
    for name in ("selectors", "reductions", "reduction", "grade"):
        value = getattr(stage, name, None)
        if isinstance(value, tuple):
            changed[name] = tuple(by_name(one, name) if callable(one) else one for one in value)
        elif callable(value):
            changed[name] = by_name(value, name)
    return replace(stage, **changed)


def functions_of(stages: Sequence[Stage]) -> list[Imported]:
    """List the user's functions that stages call."""
    values = [value for stage in stages for value in vars(stage).values()]
    flat = [one for value in values for one in (value if isinstance(value, tuple) else (value,))]
    return [one for one in flat if isinstance(one, Imported)]
