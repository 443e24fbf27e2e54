"""From solutions to graded rollouts of their steps: completion, once per distinct prefix, and grading."""

from __future__ import annotations

import os
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
    "answer",
    "answer_key",
    "gold",
    "gold_key",
    "is_correct",
)

_N_READ: Final = 1 << 16


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
    r"""Sample completions from every step of solutions, and grade them.

    A step is as good as what can still be reached from it: a model completes the solution several
    times from there, and the completions that reach the right answer are counted, which
    `estimate_steps` does. A prefix that several solutions share is completed once.

    Parameters
    ----------
    solutions
        A `steps` table: `problem_id`, `solution_id`, `step` (integer, 0, 1, 2, ... within a
        solution), `problem` (String), `text` (String, that of the step alone), `gold` (String). A
        row of the bare problem (`step` -1) may be there; other columns are not read. `step_paths`
        makes solutions of a tree.
    completer
        Continues prefixes: any callable (see `Completer`), or an `openai_completer`.
    n_rollouts
        Completions of each step, at least 1.
    template
        Text of a prefix: `{problem}` stands for the problem, and `{steps}`, in which it ends, for
        the steps so far. Instructions and examples for the model stand around the problem.
    separator
        What is put behind each step, so that a completion begins a new one.
    include_problem
        Whether to sample from the bare problem too, as step -1: what the first step's advantage is
        measured from. It is one prefix per problem.
    final_step
        What to do at the last step of a solution that states an answer, which leaves nothing to
        complete. Math-Shepherd lets the model continue there all the same.

        - ``"grade"``: nothing is sampled. The only completion of such a solution is the empty one, so
          its rows have an empty `completion`, its own answer, and `is_sampled` false.
        - ``"sample"``: it is sampled like any other step; a completion without an answer has that of
          the solution.
        - ``"skip"``: it has no rows.

        A last step of a solution that states no answer is a step like the others; with the style
        `"auto"` an answer is stated in a box, after `####` or after "the answer is", while a line
        that merely concludes something ("so x = 5") may be one of a solution that was cut off.
    style
        Where the answer stands in a completion; see `extract_answer`. Except as said above it is
        looked for in the completion alone, never in the prefix.
    policy
        Conventions of the answer keys; None is `AnswerPolicy()`.
    batch_size
        Most prefixes that the completer is given at once, and what is lost of a run that is killed.
    cache
        Folder in which each batch is kept as it ends, so that the same call goes on where the last
        one stopped, and one with more rollouts or more solutions samples only what is new. None:
        nothing is kept.
    key
        What tells this completer, its model and settings, from any other one, for the cache; it may
        be left out where the completer has a `key` of its own, as an `openai_completer` has. The
        texts of the prefixes are part of the cache's key anyway.
    progress
        Called with the rollouts done and the rollouts to be done, each distinct prefix counted once,
        at the beginning and after each batch.

    Returns
    -------
    pl.DataFrame
        A row per rollout, sorted by the first four columns:

        - `problem_id`, `solution_id`: as given;
        - `step` (Int64), `rollout` (UInt32, 0 to `n_rollouts` - 1);
        - `prefix_id` (String): the same for all steps with the same text before them. Their rows
          repeat the same completions, which are not independent;
        - `is_sampled` (Boolean): false where nothing was left to complete;
        - `completion` (String), never null;
        - `answer`, `answer_key` (String): null where the completion has no answer;
        - `gold`, `gold_key` (String);
        - `is_correct` (Boolean): false for no answer, null without a gold answer.

    Raises
    ------
    ParameterTypeError
        At once, when a parameter has the wrong type.
    ParameterError
        At once, when a parameter cannot be used, or a cache is named without a key.
    ColumnsError
        Before anything is sampled, when a column is missing or has another dtype.
    DataError
        Before anything is sampled, when a solution lacks a step, a text or a problem.
    CompletionError
        When the completer returns something else than it was asked for. What was finished before is
        in the cache, whatever is raised.
    SourceError
        When the cache cannot be written or read.

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
            "a number of completions. Hint: tts.process.openai_completer(base_url, model) makes one."
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
    return _graded(steps, rollouts, completions, style=style, policy=policy)


def _store(cache: str | os.PathLike[str] | None, completer: Completer, key: str | None) -> Store:
    """Open the cache, which must know whose completions it keeps."""
    if key is not None and not isinstance(key, str):
        raise ParameterTypeError(f"key is a {type(key).__name__}, must be a str.")
    if cache is None:
        return Memory()
    own = getattr(completer, "key", None)
    keys = [part for part in (own, key) if isinstance(part, str)]
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
    """Give each step its rollouts; each completion is read once, however many steps share it."""
    # the search for answers makes copies of the texts, so it sees some of them at a time
    answered = pl.concat(
        completions.slice(start, _N_READ).pipe(score_trajectories, style=style, policy=policy)
        for start in range(0, max(completions.height, 1), _N_READ)
    )
    own = steps.lazy().select(answer="stated").drop_nulls().unique()
    own = own.pipe(score_trajectories, policy=policy).select(
        stated="answer", stated_key="answer_key"
    )
    is_own = ~pl.col("is_sampled") | pl.col("answer").is_null()
    return (
        steps
        .lazy()
        .join(own, on="stated", how="left")
        .join(rollouts, how="cross")
        .join(answered.lazy(), on=["prefix_id", "rollout"], how="left")
        .with_columns(
            completion=pl.when("is_sampled").then("completion").otherwise(pl.lit("")),
            answer=pl.when(is_own).then("stated").otherwise("answer"),
            answer_key=pl.when(is_own).then("stated_key").otherwise("answer_key"),
        )
        .pipe(score_trajectories, policy=policy)
        .select(_COLUMNS)
        .sort(_COLUMNS[:4])
        .collect()
    )
