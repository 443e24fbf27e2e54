"""Graded rollouts of the steps of solutions; each distinct prefix is completed once."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

import polars as pl

from ttsframe._checks import check_choice, check_frame, check_positive
from ttsframe._typing import AnswerStyle
from ttsframe.answers import AnswerPolicy
from ttsframe.errors import ParameterError, ParameterTypeError
from ttsframe.process.annotation.completers import Completer
from ttsframe.process.annotation.prefixes import find_prefixes
from ttsframe.process.annotation.sampling import OnRollouts, sample
from ttsframe.process.annotation.store import Folder, Memory, Store
from ttsframe.scoring import score_trajectories

__all__ = ["annotate"]

FinalStep: TypeAlias = Literal["grade", "sample", "skip"]

_COLUMNS: Final = (
    "problem_id",
    "solution_id",
    "step",
    "rollout",
    "prefix_id",
    "is_sampled",
    "completion",
    "finish_reason",
    "answer",
    "answer_key",
    "gold",
    "gold_key",
    "is_correct",
)

_N_TEXTS_PER_SLICE: Final = 1 << 16


def annotate(
    solutions: pl.DataFrame | pl.LazyFrame,
    /,
    completer: Completer,
    n_rollouts: int,
    *,
    template: str = "{problem}\n\n{steps}",
    separator: str = "\n",
    include_problem: bool = False,
    final_step: FinalStep = "grade",
    style: AnswerStyle = "auto",
    policy: AnswerPolicy | None = None,
    batch_size: int = 64,
    cache: str | os.PathLike[str] | None = None,
    key: str | None = None,
    progress: OnRollouts | None = None,
) -> pl.DataFrame:
    r"""Sample completions from each step of solutions, and grade them.

    A model completes each solution several times from each step; `estimate_steps` then counts the
    completions that reach the right answer. A prefix that several solutions share is completed once.

    Parameters
    ----------
    solutions
        A `steps` table: `problem_id`, `solution_id`, `step` (integer, 0, 1, 2, ... within a
        solution), `problem` (String), `text` (String, the text of this step only), `gold` (String).
        Rows of the bare problem (`step` -1) are allowed; other columns are not read. `step_paths`
        returns the solutions of a tree.
    completer
        Continues prefixes: any callable (see `Completer`), or an `openai_completer`.
    n_rollouts
        Completions of each step, at least 1.
    template
        Text of a prefix: `{problem}` is replaced by the problem, and `{steps}`, at the end, by the
        steps so far. Put instructions and examples for the model around the problem.
    separator
        Text after each step, so that a completion begins a new step.
    include_problem
        Whether to sample from the bare problem too, as step -1, from which the advantage of the first
        step is measured. This adds one prefix per problem.
    final_step
        How to treat the last step of a solution that states an answer, which leaves nothing to
        complete. Math-Shepherd samples it like any other step.

        - ``"grade"``: nothing is sampled. The rows have an empty `completion`, the answer of the
          solution, and `is_sampled` false.
        - ``"sample"``: it is sampled like any other step; a completion without an answer gets the
          answer of the solution.
        - ``"skip"``: it has no rows.

        The last step of a solution that states no answer is treated like the other steps. With the
        style `"auto"` an answer is stated in a box, after `####` or after "the answer is"; a line
        that only concludes something ("so x = 5") may belong to a solution that was cut off.
    style
        Where the answer is in a completion; see `extract_answer`. Except for `final_step` only the
        completion is searched, never the prefix.
    policy
        Conventions of the answer keys; None is `AnswerPolicy()`.
    batch_size
        Maximum number of prefixes per call of the completer. A killed run loses at most one batch.
    cache
        Folder that keeps each finished batch, so that the same call resumes where the last one
        stopped, and a call with more rollouts or solutions samples only the new ones. None: nothing
        is kept.
    key
        Identifies the completer, its model and settings in the cache. It may be left out if the
        completer has a `key` of its own, as an `openai_completer` has. The texts of the prefixes are
        always part of the cache's key.
    progress
        Called with the numbers of finished and of all rollouts, each distinct prefix counted once,
        at the beginning and after each batch; a `RolloutProgress` shows them on a terminal.

    Returns
    -------
    pl.DataFrame
        One row per rollout, sorted by the first four columns:

        - `problem_id`, `solution_id`: as given;
        - `step` (Int64), `rollout` (UInt32, 0 to `n_rollouts` - 1);
        - `prefix_id` (String): equal for all steps with the same prefix. Their rows repeat the same
          completions, which are not independent;
        - `is_sampled` (Boolean): false where nothing was left to complete;
        - `completion` (String): null where it was given up;
        - `finish_reason` (String): "error" or "length" where it was given up, else null;
        - `answer`, `answer_key` (String): null where the completion has no answer;
        - `gold`, `gold_key` (String);
        - `is_correct` (Boolean): false without an answer, null without a gold answer or where the
          completion was given up.

    Raises
    ------
    ParameterTypeError
        At once, when a parameter has the wrong type.
    ParameterError
        At once, when a parameter cannot be used, or a cache is given without a key.
    ColumnsError
        Before anything is sampled, when a column is missing or has another dtype.
    DataError
        Before anything is sampled, when a solution lacks a step, a text or a problem.
    CompletionError
        When the completer returns something else than requested. After any error the finished
        batches are in the cache.
    SourceError
        When the cache cannot be written or read.

    Warns
    -----
    UserWarning
        When completions were given up, with their number. They are kept in the cache and never drawn
        again, since that would favor short completions. They have no label: `estimate_steps` counts
        them in `n_ungraded`. With c right ones of N graded and u given up, the share lies between c / (N + u)
        and (c + u) / (N + u), whatever they would have been.

    References
    ----------
    Wang et al., "Math-Shepherd: Verify and Reinforce LLMs Step-by-step without Human Annotations",
    ACL 2024, arXiv:2312.08935, section 3.3.

    Examples
    --------
    >>> import polars as pl
    >>> import ttsframe as tts
    >>> solutions = pl.DataFrame({
    ...     "problem_id": ["p"] * 4,
    ...     "solution_id": ["a", "a", "b", "b"],
    ...     "step": [0, 1, 0, 1],
    ...     "problem": ["What is 7 x 6 + 5?"] * 4,
    ...     "text": ["7 x 6 = 42", "The answer is 47.", "7 x 6 = 42", "The answer is 42."],
    ...     "gold": ["47"] * 4,
    ... })
    >>> def completer(prefixes, n):
    ...     return [[f"The answer is {47 - i % 2}." for i in range(n)] for _ in prefixes]
    >>> seen = []
    >>> rollouts = tts.process.annotate(solutions, completer, 2, progress=lambda *done: seen.append(done))
    >>> rollouts.select("solution_id", "step", "rollout", "is_sampled", "answer", "is_correct")
    shape: (8, 6)
    ┌─────────────┬──────┬─────────┬────────────┬────────┬────────────┐
    │ solution_id ┆ step ┆ rollout ┆ is_sampled ┆ answer ┆ is_correct │
    │ ---         ┆ ---  ┆ ---     ┆ ---        ┆ ---    ┆ ---        │
    │ str         ┆ i64  ┆ u32     ┆ bool       ┆ str    ┆ bool       │
    ╞═════════════╪══════╪═════════╪════════════╪════════╪════════════╡
    │ a           ┆ 0    ┆ 0       ┆ true       ┆ 47     ┆ true       │
    │ a           ┆ 0    ┆ 1       ┆ true       ┆ 46     ┆ false      │
    │ a           ┆ 1    ┆ 0       ┆ false      ┆ 47     ┆ true       │
    │ a           ┆ 1    ┆ 1       ┆ false      ┆ 47     ┆ true       │
    │ b           ┆ 0    ┆ 0       ┆ true       ┆ 47     ┆ true       │
    │ b           ┆ 0    ┆ 1       ┆ true       ┆ 46     ┆ false      │
    │ b           ┆ 1    ┆ 0       ┆ false      ┆ 42     ┆ false      │
    │ b           ┆ 1    ┆ 1       ┆ false      ┆ 42     ┆ false      │
    └─────────────┴──────┴─────────┴────────────┴────────┴────────────┘
    >>> seen  # both first steps have the same prefix, which was completed once
    [(0, 2), (2, 2)]
    """
    check_frame(solutions, "solutions")
    if not callable(completer):
        raise ParameterTypeError(
            f"completer is a {type(completer).__name__}, must be callable with a list of prefixes and "
            "a number of completions. Hint: tts.process.openai_completer(base_url, model) is one."
        )
    n_rollouts = check_positive(n_rollouts, "n_rollouts")
    batch_size = check_positive(batch_size, "batch_size")
    check_choice(final_step, "final_step", get_args(FinalStep))
    check_choice(style, "style", get_args(AnswerStyle))
    store = _store(cache, completer, key)
    steps, texts = find_prefixes(
        solutions,
        template=template,
        separator=separator,
        include_problem=include_problem,
        style=style,
    )
    is_final = pl.col("stated").is_not_null()
    if final_step == "skip":
        steps = steps.filter(~is_final)
    is_sampled = pl.lit(value=True) if final_step == "sample" else ~is_final
    steps = steps.with_columns(is_sampled=is_sampled)
    sampled = steps.filter("is_sampled")
    texts = texts.join(sampled, on="prefix_id", how="semi", maintain_order="left")
    sample(
        texts,
        completer,
        n_rollouts=n_rollouts,
        batch_size=batch_size,
        store=store,
        progress=progress,
    )
    rollouts = pl.LazyFrame({"rollout": pl.int_range(n_rollouts, dtype=pl.UInt32, eager=True)})
    completions = (
        store
        .scan()
        .join(rollouts, on="rollout", how="semi")
        .join(texts.lazy(), on="prefix_id", how="semi")
        .collect()
    )
    _warn_of_failed(completions)
    return _graded(steps, rollouts, completions, style=style, policy=policy)


def _warn_of_failed(completions: pl.DataFrame) -> None:
    """Say how many completions were given up."""
    reasons = Counter(completions["finish_reason"].drop_nulls().to_list())
    if reasons:
        warnings.warn(
            f"{reasons.total():,} of {completions.height:,} completions were given up "
            f"({', '.join(f'{n:,} {reason}' for reason, n in sorted(reasons.items()))}). They have no label and were not drawn "
            "again, since that would favor short completions; if long ones fail more often, labels rest on "
            "short ones. Hint: estimate_steps counts them in n_ungraded.",
            UserWarning,
            stacklevel=3,
        )


def _store(cache: str | os.PathLike[str] | None, completer: Completer, key: str | None) -> Store:
    """Return the cache, which needs a key of the completer, or a store in memory."""
    if key is not None and not isinstance(key, str):
        raise ParameterTypeError(f"key is a {type(key).__name__}, must be a str.")
    if cache is None:
        return Memory()
    keys = [part for part in (getattr(completer, "key", None), key) if isinstance(part, str)]
    if not keys:
        raise ParameterError(
            f"cache == {os.fspath(cache)!r} without a key: completions of different models would be "
            "mixed. Hint: key='...' names the model and its settings."
        )
    return Folder(Path(cache), keys)


def _graded(
    steps: pl.DataFrame,
    rollouts: pl.LazyFrame,
    completions: pl.DataFrame,
    *,
    style: AnswerStyle,
    policy: AnswerPolicy | None,
) -> pl.DataFrame:
    """Join each step with its graded rollouts; a completion is graded once for all steps that share it."""
    # The search for answers copies texts, so it gets a slice at a time.
    answered = pl.concat(
        completions.slice(start, _N_TEXTS_PER_SLICE).pipe(
            score_trajectories, style=style, policy=policy
        )
        for start in range(0, max(completions.height, 1), _N_TEXTS_PER_SLICE)
    )
    stated = steps.lazy().select(answer="stated").drop_nulls().unique()
    stated = stated.pipe(score_trajectories, policy=policy).select(
        stated="answer", stated_key="answer_key"
    )
    is_failed = pl.col("finish_reason").is_not_null()
    is_stated = ~pl.col("is_sampled") | (pl.col("answer").is_null() & ~is_failed)
    return (
        steps
        .lazy()
        .join(stated, on="stated", how="left")
        .join(rollouts, how="cross")
        .join(answered.lazy(), on=["prefix_id", "rollout"], how="left")
        .with_columns(
            completion=pl.when("is_sampled").then("completion").otherwise(pl.lit("")),
            answer=pl.when(is_stated).then("stated").otherwise("answer"),
            answer_key=pl.when(is_stated).then("stated_key").otherwise("answer_key"),
        )
        .pipe(score_trajectories, policy=policy)
        .with_columns(is_correct=pl.when(~is_failed).then("is_correct"))
        .select(_COLUMNS)
        .sort(_COLUMNS[:4])
        .collect()
    )
