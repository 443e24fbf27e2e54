"""Problems with known step values, a model that solves them, and a verifier with chosen faults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from ttsframe._checks import (
    check_between,
    check_not_negative,
    check_number,
    check_positive,
    check_seed,
)
from ttsframe._draws import Bits, bells, bits_at, integers_below, one_bits_at, uniforms
from ttsframe._settings import found
from ttsframe._typing import Flags, Floats, Integers
from ttsframe.errors import ParameterError, ParameterTypeError

__all__ = ["SimulatedGenerator", "SimulatedVerifier", "Simulation", "VerifierFaults", "simulate"]

_TRAP: Final = 1 << 8
"""Added to the number of steps since a path went wrong if it went wrong in the tempting way."""
_MOST_OFF: Final = _TRAP - 1
_CLIP: Final = 0.02
"""Values nearer to 0 or 1 count as this near, so that their logit is finite."""
_WRONG: Final = 8
"""Number of wrong answers of a problem; each is half as frequent as the one before."""


@dataclass(frozen=True)
class VerifierFaults:
    """How a simulated verifier errs. A score is the sigmoid of the logit of a step's value plus errors.

    Parameters
    ----------
    noise
        Standard deviation of the error of a step, in logits.
    persistence
        Correlation of the errors of successive steps, from 0, independent, to 1, one error for the whole
        path. A step that is overrated by chance then leads to steps that are overrated too.
    optimism
        Added to every score, in logits.
    length_bias
        Added to a score for each step of the path, in logits.
    hack_rate, hack_size
        Probability that a step finds a weakness of the verifier, and what that adds to its score and to
        those of all later steps, in logits. It makes a verifier over-optimizable: the more steps are
        compared, the likelier that the best score belongs to such a step.
    trap_rate, trap_size
        Share of problems with a tempting wrong idea, and what the verifier adds to every step that
        follows it, in logits. Half of the paths that go wrong there follow it, and end with the same
        wrong answer. All of them are overrated alike, so keeping more paths does not average the error
        out: a search that finds one of them early can fill up with them.
    delay
        Steps after which a wrong step shows; until then the path looks right. A lookahead as long as
        this cures it.
    missing_rate
        Probability that a step gets no score.

    Examples
    --------
    >>> import ttsframe as tts
    >>> tts.search.VerifierFaults(noise=0).noise
    0
    """

    noise: float = 1.0
    persistence: float = 0.5
    optimism: float = 0.0
    length_bias: float = 0.0
    hack_rate: float = 0.0
    hack_size: float = 4.0
    trap_rate: float = 0.0
    trap_size: float = 6.0
    delay: int = 0
    missing_rate: float = 0.0

    def __post_init__(self) -> None:
        if check_number(self.noise, "noise") < 0:
            raise ParameterError(f"{found('noise', self.noise)}, must be at least 0.")
        check_between(self.persistence, "persistence", 0.0, 1.0)
        check_number(self.optimism, "optimism")
        check_number(self.length_bias, "length_bias")
        check_between(self.hack_rate, "hack_rate", 0.0, 1.0)
        check_number(self.hack_size, "hack_size")
        check_between(self.trap_rate, "trap_rate", 0.0, 1.0)
        check_number(self.trap_size, "trap_size")
        check_not_negative(self.delay, "delay")
        check_between(self.missing_rate, "missing_rate", 0.0, 1.0)


class Simulation(NamedTuple):
    """A simulated environment, to be unpacked into `tts.search.search`."""

    problems: pl.DataFrame
    """One row per problem: `problem_id`, `problem`, `gold`, and the truth: `true_accuracy`, the
    probability that a solution is right; `true_n_steps`; `true_step_accuracy`, the probability that a
    right path stays right for a step."""
    generator: SimulatedGenerator
    """The model."""
    prm: SimulatedVerifier
    """The verifier."""


def simulate(
    n_problems: int,
    *,
    seed: int,
    accuracy: float = 0.4,
    spread: float = 1.0,
    n_steps: tuple[int, int] = (4, 10),
    step_spread: int = 1,
    recovery: float = 0.02,
    faults: VerifierFaults | None = None,
    cut_rate: float = 0.0,
    text_length: int = 0,
) -> Simulation:
    """Make problems, a model and a verifier whose truth is known, for searches without a model.

    A path is right until a step goes wrong; a wrong path recovers rarely. The value of a step, the
    probability that a solution which continues it is right, is therefore known, and the verifier's
    score is the value with chosen errors.

    Parameters
    ----------
    n_problems
        Number of problems.
    seed
        Seed of the problems and of the verifier's errors. The draws of a search have its own seed.
    accuracy
        Mean probability that a solution is right, were there no recovery.
    spread
        How far problems differ: 0, all equally hard; 1, uniform if `accuracy` is one half; larger,
        most are nearly always or nearly never solved.
    n_steps
        Smallest and largest number of steps of a problem's typical solution.
    step_spread
        How many steps a path can be shorter or longer than that.
    recovery
        Probability that a wrong path becomes right again in a step.
    faults
        Errors of the verifier; None: `tts.search.VerifierFaults()`.
    cut_rate
        Probability that a step is cut by a limit of length.
    text_length
        Characters to which the text of a step is filled up.

    Returns
    -------
    Simulation
        `problems`, `generator` and `prm`, the first three arguments of `tts.search.search`.

    Raises
    ------
    ParameterError
        When a parameter has an impossible value.
    ParameterTypeError
        When a parameter has the wrong type.

    Examples
    --------
    >>> import ttsframe as tts
    >>> problems, generator, prm = tts.search.simulate(100, seed=0, accuracy=0.3)
    >>> nodes = tts.search.search(problems, generator, prm, tts.search.BestOfN(4), seed=1)
    >>> nodes["text"][0].strip()
    'Step 1: take 745818.'
    """
    check_positive(n_problems, "n_problems")
    check_seed(seed)
    check_between(accuracy, "accuracy", 0.0, 1.0)
    check_between(recovery, "recovery", 0.0, 1.0)
    check_between(cut_rate, "cut_rate", 0.0, 1.0)
    check_not_negative(text_length, "text_length")
    if not 0 <= check_number(spread, "spread") < np.inf:
        raise ParameterError(f"{found('spread', spread)}, must be a number from 0.")
    pair: object = n_steps
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise ParameterTypeError(
            f"n_steps must be a pair of numbers, got {n_steps!r}. Hint: (5, 5) for five steps."
        )
    least, most = check_positive(n_steps[0], "n_steps"), check_positive(n_steps[1], "n_steps")
    if not least <= most < 1 << 16:
        raise ParameterError(f"{found('n_steps', n_steps)}, must be two numbers, smaller first.")
    bits = bits_at(np.array([one_bits_at(seed, 1)], dtype=np.uint64), np.arange(n_problems))
    p = _accuracies(uniforms(bits_at(bits, np.array([0]))), accuracy, spread)
    length = least + integers_below(bits_at(bits, np.array([1])), most - least + 1)
    stays = p ** (1.0 / length)
    gold = integers_below(bits_at(bits, np.array([2])), 1000)
    if check_not_negative(step_spread, "step_spread") >= least:
        raise ParameterError(
            f"{found('step_spread', step_spread)}, must be below the smallest number of steps ({least})."
        )
    chosen = VerifierFaults() if faults is None else faults
    tempts = uniforms(bits_at(bits, np.array([3]))) < chosen.trap_rate
    world = _World(length, stays, gold, tempts, step_spread, recovery, cut_rate, text_length)
    ids = pl.select(pl.format("problem-{}", pl.int_range(n_problems))).to_series()
    problems = pl.DataFrame({
        "problem_id": ids,
        "problem": pl.select(
            pl.format("Simulated problem {}.", pl.int_range(n_problems))
        ).to_series(),
        "gold": pl.Series(gold).cast(pl.String),
        "true_accuracy": world.accuracy(),
        "true_n_steps": length,
        "true_step_accuracy": stays,
    })
    rows = pl.DataFrame({"problem_id": ids, "world_row": np.arange(n_problems)})
    return Simulation(
        problems,
        SimulatedGenerator(world, rows, chosen, one_bits_at(seed, 2)),
        SimulatedVerifier(world, rows, chosen, one_bits_at(seed, 2)),
    )


@dataclass(frozen=True)
class _World:
    """The truth about each problem."""

    length: Integers
    stays: Floats
    gold: Integers
    tempts: Flags
    """Whether there is a tempting wrong idea."""
    step_spread: int
    recovery: float
    cut_rate: float
    text_length: int

    def value(self, rows: Integers, off: Integers, left: Integers) -> Floats:
        """Return the probability that a path is right after `left` steps; `off` is 0 if it is right now."""
        stays = self.stays[rows]
        leaves = 1.0 - stays
        total = leaves + self.recovery
        limit = np.divide(self.recovery, total, out=np.ones_like(total), where=total > 0)
        return np.asarray(limit + ((off == 0) - limit) * (1.0 - total) ** left)

    def accuracy(self) -> Floats:
        """Return the probability that a solution of each problem is right."""
        rows = np.arange(len(self.length))
        lengths = [self.length + more for more in range(-self.step_spread, self.step_spread + 1)]
        values = [self.value(rows, np.zeros_like(rows), length) for length in lengths]
        return np.asarray(np.mean(values, axis=0))


def _accuracies(u: Floats, mean: float, spread: float) -> Floats:
    """Spread accuracies around a mean by a logistic curve of evenly spread logits."""
    if spread == 0 or mean in {0.0, 1.0}:
        return np.full(len(u), mean)
    u = np.clip(u, 1e-6, 1 - 1e-6)
    logits = spread * (np.log(u) - np.log1p(-u)) + np.log(mean) - np.log1p(-mean)
    return np.asarray(1.0 / (1.0 + np.exp(-logits)))


class _State(NamedTuple):
    """What a path carries: packed into 64 bits, so that it needs no memory of the generator's own."""

    error: Floats
    """Error of the verifier about the last step, in logits."""
    off: Integers
    """Steps since the path went wrong, more by `_TRAP` if it follows the tempting idea; 0: it is right."""
    left: Integers
    """Steps until the end."""

    def pack(self) -> Bits:
        error = self.error.astype(np.float32).view(np.uint32).astype(np.uint64)
        off = self.off.astype(np.uint64)
        return np.asarray(
            error << np.uint64(32) | off << np.uint64(16) | self.left.astype(np.uint64)
        )


def _unpack(states: pl.Series) -> _State:
    bits = states.fill_null(0).to_numpy()
    error = (bits >> np.uint64(32)).astype(np.uint32).view(np.float32).astype(np.float64)
    off = ((bits >> np.uint64(16)) & np.uint64(0xFFFF)).astype(np.int64)
    return _State(error, off, (bits & np.uint64(0xFFFF)).astype(np.int64))


@dataclass(frozen=True)
class SimulatedGenerator:
    """The model of `tts.search.simulate`, a `tts.search.Generator`.

    Examples
    --------
    >>> import ttsframe as tts
    >>> problems, generator, prm = tts.search.simulate(1, seed=0)
    >>> type(generator).__name__
    'SimulatedGenerator'
    """

    world: _World
    rows: pl.DataFrame
    faults: VerifierFaults
    key: int

    def __call__(self, requests: pl.DataFrame, /) -> pl.DataFrame:
        """Write `n` steps for each request."""
        n = requests["n"].to_numpy()
        request = np.repeat(np.arange(requests.height), n)
        child = np.arange(len(request)) - np.repeat(np.cumsum(n) - n, n)
        rows = _world_rows(requests, self.rows)[request]
        bits = bits_at(requests["draw"].to_numpy()[request], child)
        before = _unpack(requests["state"])
        depth = requests["depth"].to_numpy()[request]
        more = integers_below(bits_at(bits, np.array([7])), 2 * self.world.step_spread + 1)
        length = self.world.length[rows] + more - self.world.step_spread
        left = np.where(depth == 0, length, before.left[request])
        state = _State(before.error[request], before.off[request], left)
        is_greedy = requests["is_greedy"].to_numpy()[request]
        is_end = (requests["until"] == "end").to_numpy()[request]
        n_steps = np.where(is_end, left, 1)
        tokens = np.zeros(len(rows), dtype=np.int64)
        texts = pl.Series([""], dtype=pl.String).new_from_index(0, len(rows))
        for index in range(int(n_steps.max(initial=0))):
            bits = bits if index == 0 else bits_at(bits, np.array([99]))
            goes = index < n_steps
            state = self._step(rows, state, bits, is_greedy, goes, is_first=depth + index == 0)
            tokens += np.where(goes, 20 + integers_below(bits_at(bits, np.array([4])), 40), 0)
            text = self._texts(rows, state, bits, depth + index + 1)
            texts = pl.select(
                pl.when(pl.Series(goes)).then(texts + text).otherwise(texts)
            ).to_series()
        is_cut = uniforms(bits_at(bits, np.array([5]))) < self.world.cut_rate
        is_last = state.left <= 0
        reason = np.where(is_cut, 2, np.where(is_last, 1, 0))
        names = pl.Series(["step", "stop", "length"])
        return pl.DataFrame({
            "text": texts,
            "finish_reason": names.gather(reason),
            "n_tokens": tokens,
            "state": state.pack(),
        })

    def _step(
        self,
        rows: Integers,
        state: _State,
        bits: Bits,
        is_greedy: Flags,
        goes: Flags,
        *,
        is_first: Flags,
    ) -> _State:
        u = uniforms(bits_at(bits, np.array([0])))
        is_right = state.off == 0
        becomes_right = np.where(is_right, self.world.stays[rows], self.world.recovery)
        right = np.where(is_greedy, becomes_right >= 0.5, u < becomes_right)
        falls = self.world.tempts[rows] & (uniforms(bits_at(bits, np.array([8]))) < 0.5)
        is_trapped = np.where(is_right, falls, state.off >= _TRAP)
        n_off = np.minimum(state.off % _TRAP + 1, _MOST_OFF)
        off = np.where(right, 0, n_off + _TRAP * is_trapped)
        faults = self.faults
        fresh = faults.noise * bells(bits_at(bits, np.array([1])))
        kept = faults.persistence * state.error
        error = np.where(is_first, fresh, kept + np.sqrt(1 - faults.persistence**2) * fresh)
        if faults.hack_rate:
            finds = uniforms(bits_at(bits, np.array([2]))) < faults.hack_rate
            error = np.where(finds, error + faults.hack_size, error)
        return _State(
            np.where(goes, error, state.error),
            np.where(goes, off, state.off),
            state.left - goes,
        )

    def _texts(self, rows: Integers, state: _State, bits: Bits, depth: Integers) -> pl.Series:
        u = uniforms(bits_at(bits, np.array([3])))
        # Half of the wrong solutions give one answer, a quarter another, and so on.
        wrong = 1 + np.minimum(np.floor(-np.log2(1.0 - u)), _WRONG - 1).astype(np.int64)
        wrong = np.where(state.off >= _TRAP, 1, wrong)
        answer = self.world.gold[rows] + np.where(state.off == 0, 0, wrong)
        frame = pl.DataFrame({
            "step": depth,
            "number": integers_below(bits_at(bits, np.array([6])), 1_000_000),
            "is_last": state.left <= 0,
            "answer": answer,
        })
        end = pl.concat_str(
            pl.format("Step {}: the answer is ", "step"),
            pl.lit("\\boxed{"),
            pl.col("answer").cast(pl.String),
            pl.lit("}."),
        )
        step = pl.format("Step {}: take {}.\n\n", "step", "number")
        if self.world.text_length:
            step = step.str.pad_start(self.world.text_length, " ")
            end = end.str.pad_start(self.world.text_length, " ")
        return frame.select(pl.when("is_last").then(end).otherwise(step)).to_series()


@dataclass(frozen=True)
class SimulatedVerifier:
    """The verifier of `tts.search.simulate`, a `tts.search.ProcessRewardModel`.

    Examples
    --------
    >>> import ttsframe as tts
    >>> problems, generator, prm = tts.search.simulate(1, seed=0)
    >>> type(prm).__name__
    'SimulatedVerifier'
    """

    world: _World
    rows: pl.DataFrame
    faults: VerifierFaults
    key: int

    def __call__(self, prefixes: pl.DataFrame, /) -> pl.Series:
        """Score the last step of each path."""
        rows = _world_rows(prefixes, self.rows)
        state = _unpack(prefixes["state"])
        faults = self.faults
        seen = np.where(state.off % _TRAP <= faults.delay, 0, state.off)
        value = np.clip(self.world.value(rows, seen, state.left), _CLIP, 1 - _CLIP)
        logit = np.log(value) - np.log1p(-value) + state.error
        logit += faults.trap_size * (state.off >= _TRAP)
        logit += faults.optimism + faults.length_bias * prefixes["depth"].to_numpy()
        scores = pl.Series("step_score", 1.0 / (1.0 + np.exp(-logit)))
        if not faults.missing_rate:
            return scores
        bits = bits_at(prefixes["node_id"].to_numpy() ^ np.uint64(self.key), np.array([0]))
        return scores.set(pl.Series(uniforms(bits) < faults.missing_rate), None)


def _world_rows(frame: pl.DataFrame, rows: pl.DataFrame) -> Integers:
    """Return the row of the world of each problem."""
    found_rows = frame.select("problem_id").join(
        rows, on="problem_id", how="left", maintain_order="left"
    )["world_row"]
    if found_rows.null_count():
        unknown = frame["problem_id"].filter(found_rows.is_null())[0]
        raise ParameterError(
            f"simulated problems: {unknown!r} is none of them. Hint: search the problems that simulate "
            "returned."
        )
    return found_rows.to_numpy()
