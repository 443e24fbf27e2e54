"""Simulated runs with known truth, for tests, benchmarks, examples and power analyses."""

from __future__ import annotations

import itertools
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ttsframe._checks import check_between, check_positive, check_seed
from ttsframe._draws import (
    Bits,
    Floats,
    Ints,
    Purpose,
    bells,
    bits_at,
    integers_below,
    problem_bits,
    uniforms,
)
from ttsframe._settings import found
from ttsframe.answers.policy import AnswerPolicy
from ttsframe.errors import ParameterError
from ttsframe.schema import TRAJECTORY_COLUMNS
from ttsframe.simulation.answers import (
    MAX_WRONG_ANSWERS,
    Problems,
    answer_keys,
    answer_strings,
    draw_problems,
    n_spellings,
)

__all__ = ["simulate_trajectories"]

_BLOCK_ATTEMPTS: Final = 1 << 16
"""Attempts per block: few enough that temporary arrays stay in the processor's cache."""

_START: Final = 1.0
"""Initial quality of every attempt, in standard deviations of the noise: a score of 0.85."""

_ROOT_HALF: Final = 0.5**0.5

_COLUMNS: Final = (
    *TRAJECTORY_COLUMNS,
    "true_accuracy",
    "true_is_correct",
    "true_key",
    "true_answer",
)

_TITLES: Final = (
    "Restate what is given",
    "Choose an approach",
    "Set up the equation",
    "Substitute the known values",
    "Simplify the expression",
    "Work through the cases",
    "Check the intermediate result",
    "Combine the parts",
)
_SENTENCES: Final = (
    "We write the quantities that the problem names and look for a relation between them.",
    "Collecting like terms on one side leaves an expression that is easier to handle.",
    "Since both factors are positive, the inequality keeps its direction when we divide.",
    "The symmetry of the figure lets us treat one half and double what we find.",
    "Counting the cases in order of size makes sure that none of them is counted twice.",
    "Substituting back into the first relation removes the second unknown altogether.",
    "The remainder repeats with a short period, so only a few values have to be tried.",
    "Comparing coefficients on the two sides gives one condition for each power.",
)


class _Run(NamedTuple):
    """The checked parameters of a simulation."""

    n_attempts: int
    seed: int
    accuracy: tuple[float, float]
    n_wrong_answers: int
    zipf_exponent: float
    missing_share: float
    respelled_share: float
    n_steps: tuple[int, int]
    score_strength: float
    beam_width: int
    keys: bool
    texts: bool
    step_characters: int


def simulate_trajectories(
    n_problems: int,
    n_attempts: int,
    *,
    seed: int,
    accuracy: tuple[float, float] = (1.0, 1.0),
    n_wrong_answers: int = 20,
    zipf_exponent: float = 1.0,
    missing_share: float = 0.03,
    respelled_share: float = 0.4,
    n_steps: tuple[int, int] = (3, 12),
    score_strength: float = 1.5,
    beam_width: int = 1,
    keys: bool = False,
    texts: bool = False,
    step_characters: int = 80,
) -> pl.DataFrame:
    r"""Simulate a run with known truth.

    A method to be trusted on real runs should first recover the parameters of a simulated one: how
    hard each problem is, which answers are equivalent, how informative the scores are.

    Parameters
    ----------
    n_problems
        Number of problems, at least 1.
    n_attempts
        Number of attempts at each problem, at least 1.
    seed
        Integer from 0 to 2^64 - 1. Equal seeds give equal rows.
    accuracy
        The two positive parameters of a Beta distribution. Each problem's probability of a correct
        answer, given that an attempt has an answer, is drawn from it. `(1, 1)` is uniform; small
        values give problems that are nearly always or nearly never solved.
    n_wrong_answers
        Number of distinct wrong answers to a problem, 1 to 100.
    zipf_exponent
        The frequency of the r-th wrong answer is proportional to `r ** -zipf_exponent`, from 0 to
        100. At 0 all wrong answers are equally frequent; at 3 nearly all are the same.
    missing_share
        Probability that an attempt ends without an answer, in [0, 1].
    respelled_share
        Probability that an answer is not written in its usual form, in [0, 1]: `0.5` for
        `\frac{1}{2}`, `12,345` for `12345`. Comparing strings would split its votes.
    n_steps
        Smallest and largest number of steps of an attempt, both included and at least 1; all numbers
        in this range are equally likely.
    score_strength
        Distance between correct and wrong attempts at the last step, in standard deviations of the
        noise, from -100 to 100. At 0 the scores are uninformative; negative values mislead.
    beam_width
        Number of consecutive attempts that share one outcome, like the members of a beam. Above 1
        the attempts are not exchangeable, and `is_exchangeable` is false.
    keys
        Whether to add the columns of `score_trajectories`: `answer_key`, `gold_key`, `is_correct` and
        `score` (that of the last step).
    texts
        Whether to add `problem`, `completion` and `solution`. The answer is then only part of the
        completion, as in a run's file; `true_answer` replaces `answer`. An attempt without an answer
        breaks off before its last line.
    step_characters
        Approximate length of the text of a step, at least 1; used only with `texts`.

    Returns
    -------
    pl.DataFrame
        A `trajectories` table, sorted by `problem_id` and `attempt`, with the columns

        - `problem_id` (String), `attempt` (UInt32), `step_scores` (List(Float64), in (0, 1)),
          `answer` (String, null if missing), `gold` (String), `n_tokens` (Int64), `is_exchangeable`
          (Boolean);
        - with `texts`: `problem`, `completion`, `solution` and `true_answer` (String), no `answer`;
        - with `keys`: `answer_key`, `gold_key`, `is_correct`, `score`;
        - `true_accuracy` (Float64): the probability that an attempt at the problem is correct, at
          most `1 - missing_share`;
        - `true_is_correct` (Boolean);
        - `true_key` (String): equal within a problem if and only if answers are equivalent, null
          without an answer.

    Raises
    ------
    ParameterError
        When a parameter is outside its range.
    ParameterTypeError
        When a count or the seed is not an int.

    Notes
    -----
    Problems are independent, and so are the attempts at a problem (for `beam_width` 1). The score
    after step t of T is `q / (2 sqrt(1 + q^2)) + 1/2`, where the quality is
    `q = 1 + (t/T) s/2 + (a + e_t)/sqrt(2)`. Here s is `score_strength` for correct attempts and its
    negative for others; a (one per attempt) and e_t (one per step) are nearly normal with variance 1.
    Correct and wrong attempts drift apart step by step, and the AUROC of the last score is
    `Phi(score_strength / sqrt(2))`.

    Every random number is a hash of the seed and the place of its use, in 64-bit integer arithmetic.
    All further arithmetic is exact too; Beta quantiles and Zipf weights are rounded to 6 and 9
    digits. The rows do not depend on the platform or on the versions of numpy and Polars. More
    problems or attempts leave the existing rows unchanged, and a parameter changes only the columns
    that depend on it.

    Examples
    --------
    >>> import ttsframe as tts
    >>> run = tts.simulate_trajectories(2, 3, seed=4)
    >>> run.select("problem_id", "attempt", "answer", "true_key", "true_is_correct")
    shape: (6, 5)
    ┌────────────┬─────────┬─────────────────┬──────────┬─────────────────┐
    │ problem_id ┆ attempt ┆ answer          ┆ true_key ┆ true_is_correct │
    │ ---        ┆ ---     ┆ ---             ┆ ---      ┆ ---             │
    │ str        ┆ u32     ┆ str             ┆ str      ┆ bool            │
    ╞════════════╪═════════╪═════════════════╪══════════╪═════════════════╡
    │ sim-000000 ┆ 0       ┆ -6.25           ┆ -25/4    ┆ true            │
    │ sim-000000 ┆ 1       ┆ -\frac{25}{4}   ┆ -25/4    ┆ true            │
    │ sim-000000 ┆ 2       ┆ -\dfrac{123}{4} ┆ -123/4   ┆ false           │
    │ sim-000001 ┆ 0       ┆ 344             ┆ 344      ┆ true            │
    │ sim-000001 ┆ 1       ┆ 344\text{ cm}   ┆ 344      ┆ true            │
    │ sim-000001 ┆ 2       ┆ 344\text{ cm}   ┆ 344      ┆ true            │
    └────────────┴─────────┴─────────────────┴──────────┴─────────────────┘
    """
    fewest, most = n_steps
    run = _Run(
        n_attempts=check_positive(n_attempts, "n_attempts"),
        seed=check_seed(seed),
        accuracy=accuracy,
        n_wrong_answers=check_positive(n_wrong_answers, "n_wrong_answers"),
        zipf_exponent=check_between(zipf_exponent, "zipf_exponent", 0.0, 100.0),
        missing_share=check_between(missing_share, "missing_share", 0.0, 1.0),
        respelled_share=check_between(respelled_share, "respelled_share", 0.0, 1.0),
        n_steps=(check_positive(fewest, "n_steps"), check_positive(most, "n_steps")),
        score_strength=check_between(score_strength, "score_strength", -100.0, 100.0),
        beam_width=check_positive(beam_width, "beam_width"),
        keys=keys,
        texts=texts,
        step_characters=check_positive(step_characters, "step_characters"),
    )
    check_between(n_wrong_answers, "n_wrong_answers", 1, MAX_WRONG_ANSWERS)
    if not all(0.0 < parameter < np.inf for parameter in accuracy):
        raise ParameterError(
            f"{found('accuracy', accuracy)}, must be two positive, finite numbers."
        )
    if fewest > most:
        raise ParameterError(f"{found('n_steps', n_steps)}, must be (fewest, most).")
    per_block = max(1, _BLOCK_ATTEMPTS // n_attempts)
    blocks = [
        _simulate_block(run, np.arange(first, min(first + per_block, n_problems)))
        for first in range(0, check_positive(n_problems, "n_problems"), per_block)
    ]
    return pl.concat(blocks, rechunk=True)


def _simulate_block(run: _Run, problems: Ints) -> pl.DataFrame:
    """Return all attempts at some problems."""
    attempts = np.arange(run.n_attempts)
    row = np.repeat(np.arange(len(problems)), run.n_attempts)  # position of an attempt's problem

    def draw(purpose: Purpose, positions: Ints = attempts) -> Bits:
        return bits_at(problem_bits(run.seed, purpose, problems)[:, None], positions).ravel()

    beams = attempts // run.beam_width
    accuracy = _accuracies(run, problems)
    outcome = uniforms(draw(Purpose.OUTCOME, beams))
    is_correct = outcome < accuracy[row]
    rank = _wrong_ranks(run, uniforms(draw(Purpose.WRONG_ANSWER, beams)))
    rank[is_correct] = 0
    step_bits = draw(Purpose.N_STEPS)
    fewest, most = run.n_steps
    offsets = np.zeros(len(row) + 1, dtype=np.int64)
    np.cumsum(fewest + integers_below(step_bits, most - fewest + 1), out=offsets[1:])
    quality = bells(draw(Purpose.QUALITY))
    scores = _step_scores(run, is_correct, quality, offsets, draw(Purpose.STEP))
    answers = draw_problems(run.seed, problems)
    spelling = _spellings(run, answers.take(row), uniforms(draw(Purpose.SPELLING)))
    gold, usual = np.zeros_like(problems), np.zeros_like(problems)
    names = pl.Series(problems).cast(pl.String).str.zfill(6)
    answered = pl.lit(pl.Series(outcome < 1.0 - run.missing_share))
    frame = pl.DataFrame({
        "problem_id": ("sim-" + names).gather(row),
        "attempt": np.tile(attempts.astype(np.uint32), len(problems)),
        "step_scores": _lists(offsets, scores),
        "answer": answer_strings(answers, row, rank, spelling),
        "gold": answer_strings(answers, np.arange(len(problems)), gold, usual).gather(row),
        "n_tokens": np.diff(offsets) * (20 + integers_below(draw(Purpose.N_TOKENS), 40)),
        "is_exchangeable": np.full(len(row), run.beam_width == 1),
        "true_accuracy": accuracy[row],
        "true_is_correct": is_correct,
        "true_key": answer_keys(answers, row, rank),
    }).with_columns(pl.when(answered).then(pl.col("answer", "true_key")))
    if run.keys:
        version = AnswerPolicy().prefix
        gold_keys = version + answer_keys(answers, np.arange(len(problems)), gold)
        frame = frame.with_columns(
            answer_key=version + pl.col("true_key"),
            gold_key=gold_keys.gather(row),
            is_correct="true_is_correct",
            score=scores[offsets[1:] - 1],
        )
    if run.texts:
        frame = frame.with_columns(
            problem=("Simulated problem " + names + ".").gather(row),
            completion=_completions(run, offsets, draw(Purpose.TEXT), frame["answer"]),
            solution=r"The answer is $\boxed{" + pl.col("gold") + "}$.",
        ).rename({"answer": "true_answer"})
    return frame.select(name for name in _COLUMNS if name in frame.columns)


def _accuracies(run: _Run, problems: Ints) -> Floats:
    """Return the probability that an attempt at each problem is correct."""
    from scipy.special import betaincinv

    quantiles = uniforms(problem_bits(run.seed, Purpose.ACCURACY, problems))
    accuracy: Floats = np.round(betaincinv(*run.accuracy, quantiles), 6)
    return (1.0 - run.missing_share) * accuracy


def _wrong_ranks(run: _Run, chosen: Floats) -> Ints:
    """Return the number of a wrong answer for each attempt, 1 for the most frequent."""
    weights = np.arange(1, run.n_wrong_answers + 1) ** -run.zipf_exponent
    limits = np.round(np.cumsum(weights) / np.sum(weights), 9)[:-1]
    return 1 + np.searchsorted(limits, chosen, side="right").astype(np.int64)


def _spellings(run: _Run, answers: Problems, chosen: Floats) -> Ints:
    """Return the spelling of each answer: 0 is usual, the others are equally likely."""
    usual_share = 1.0 - run.respelled_share
    position = (chosen - usual_share) / max(run.respelled_share, 2.0**-53)
    n_others = n_spellings(answers) - 1
    other = 1 + np.minimum((position * n_others).astype(np.int64), n_others - 1)
    return np.where(chosen < usual_share, 0, other)


def _step_scores(
    run: _Run, is_correct: npt.NDArray[np.bool_], quality: Floats, offsets: Ints, keys: Bits
) -> Floats:
    """Return the scores of all steps, attempt by attempt."""
    n_steps = np.diff(offsets)
    step = np.arange(offsets[-1]) - np.repeat(offsets[:-1], n_steps)  # from 0 in each attempt
    noise = bells(bits_at(np.repeat(keys, n_steps), step))
    drift = np.where(is_correct, 0.5, -0.5) * run.score_strength / n_steps
    common = _START + _ROOT_HALF * quality
    q = (step + 1) * np.repeat(drift, n_steps) + _ROOT_HALF * noise + np.repeat(common, n_steps)
    return 0.5 + 0.5 * q / np.sqrt(1.0 + q * q)


def _lists(offsets: Ints, values: Floats | pl.Series) -> pl.Series:
    """Cut consecutive values into one list per attempt."""
    import pyarrow as pa

    items = values.to_arrow() if isinstance(values, pl.Series) else values
    return pl.Series(pa.LargeListArray.from_arrays(offsets, items))


def _completions(run: _Run, offsets: Ints, keys: Bits, answer: pl.Series) -> pl.Series:
    """Write the attempts step by step; one without an answer breaks off."""
    n_steps = np.diff(offsets)
    step = np.arange(offsets[-1]) - np.repeat(offsets[:-1], n_steps)
    bits = bits_at(np.repeat(keys, n_steps), step)
    texts = pl.DataFrame({
        "step": step + 1,
        "title": pl.Series(_TITLES).gather(integers_below(bits, len(_TITLES))),
        "body": _bodies(run.step_characters).gather((bits & np.uint64(7)).astype(np.int64)),
        "number": (bits >> np.uint64(3)) & np.uint64(1023),
    }).select(pl.format("## Step {}: {}\n{} This gives {}.\n\n", "step", "title", "body", "number"))
    last = r"Therefore, the final answer is: $\boxed{" + answer + "}$."
    return _lists(offsets, texts.to_series()).list.join("") + last.fill_null("")


def _bodies(n_characters: int) -> pl.Series:
    """Return texts of about the given length, each beginning with another sentence."""
    texts = []
    for first in range(len(_SENTENCES)):
        sentences = itertools.cycle((*_SENTENCES[first:], *_SENTENCES[:first]))
        text = next(sentences)
        while len(text) < n_characters:
            text += " " + next(sentences)
        complete_words = f"{text} "[: n_characters + 1].rpartition(" ")[0]
        texts.append(complete_words.rstrip(".,") + ".")
    return pl.Series(texts)
