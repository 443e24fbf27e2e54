"""Verdicts on responses, each distinct text judged once, and their table of trajectories."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import NamedTuple, TypeAlias

import polars as pl

from ttsframe.errors import DataError, ParameterTypeError
from ttsframe.evaluator.tasks import Task, TaskInstance, TaskResult

Verifier: TypeAlias = Callable[[str, TaskInstance], float]
CountTokens: TypeAlias = Callable[[str], int]


class Judge:
    """Judges responses by a task and callables, and holds what was found, one row per verdict."""

    def __init__(
        self, task: Task, verifier: Verifier | None, count_tokens: CountTokens | None = None
    ) -> None:
        self._task, self._verifier, self._count_tokens = task, verifier, count_tokens
        self.responses: list[str] = []
        self.results: list[TaskResult] = []
        self._answers: list[str | None] = []
        self._scores: list[float] = []
        self._n_tokens: list[int] = []

    def rows_of(
        self, instance: TaskInstance, responses: Sequence[str], known: dict[str, int]
    ) -> list[int]:
        """Return the rows of the responses to an instance; `known` has its rows so far, and gets the new ones."""
        for response in responses:
            if response not in known:
                known[response] = self._judge(instance, response)
        return [known[response] for response in responses]

    def _judge(self, instance: TaskInstance, response: str) -> int:
        """Judge one response, and return its row; it is correct only if an answer was parsed."""
        answer = self._task.parse(response)
        if answer is not None and not isinstance(answer, str):
            raise ParameterTypeError(_returned("task.parse", answer, "a str or None"))
        result = self._task.verify_solution(instance, response)
        if not isinstance(result, TaskResult):
            raise ParameterTypeError(_returned("task.verify_solution", result, "a TaskResult"))
        if result.is_correct and answer is None:
            message = "verified, but no answer was parsed, so it is not right."
            result = replace(result, is_correct=False, error_message=message)
        if self._verifier is not None:
            self._scores.append(_score(self._verifier(response, instance)))
        if self._count_tokens is not None:
            self._n_tokens.append(_count(self._count_tokens(response)))
        self.responses.append(response)
        self.results.append(result)
        self._answers.append(answer)
        return len(self.results) - 1

    def table(self) -> pl.DataFrame:
        """Return the columns of `trajectories` that hold what was found."""
        answers = pl.Series([_text(answer) for answer in self._answers], dtype=pl.String)
        columns = {
            "completion": pl.Series([_text(text) for text in self.responses], dtype=pl.String),
            "answer": answers,
            "answer_key": answers,
            "is_correct": pl.Series(
                [result.is_correct for result in self.results], dtype=pl.Boolean
            ),
        }
        if self._verifier is not None:
            columns["score"] = pl.Series(self._scores, dtype=pl.Float64)
        if self._count_tokens is not None:
            columns["n_tokens"] = pl.Series(self._n_tokens, dtype=pl.Int64)
        return pl.DataFrame(columns)


class Drawn(NamedTuple):
    """The responses to several instances, n each, as rows of the judge in the order of the instances."""

    problem_ids: Sequence[str]
    instances: Sequence[TaskInstance]
    n: int
    rows: list[int]


def trajectories_of(drawn: Sequence[Drawn], judge: Judge) -> pl.DataFrame:
    """Return one row of `trajectories` per response, in their order, with the number drawn as `n_drawn`."""
    sizes = [of_n.n for of_n in drawn for _ in of_n.problem_ids]
    n_drawn = pl.Series(sizes, dtype=pl.UInt32)
    instances = pl.DataFrame(
        {
            "problem_id": [name for of_n in drawn for name in of_n.problem_ids],
            "complexity": [one.complexity for of_n in drawn for one in of_n.instances],
            "attempt": pl.select(pl.int_ranges(n_drawn, dtype=pl.UInt32)).to_series(),
            "n_drawn": n_drawn,
        },
        schema_overrides={"problem_id": pl.String, "complexity": pl.Int64},
    ).explode("attempt", empty_as_null=False)
    rows = pl.Series([row for of_n in drawn for row in of_n.rows], dtype=pl.Int64)
    return instances.hstack(judge.table().select(pl.all().gather(rows)))


def with_reference(trajectories: pl.DataFrame) -> pl.DataFrame:
    """Say that each instance has a right answer, by which the task verifies: without an answer one is wrong."""
    return trajectories.with_columns(gold_key=pl.lit("known to the task"))


def check_responses(responses: object, n_expected: int | None, where: str) -> list[str]:
    """Check that responses are a list of `n_expected` strings, or of at least one if that is None."""
    expected = "at least one string" if n_expected is None else f"{n_expected} strings"
    if not isinstance(responses, list | tuple):
        raise DataError(f"{where}: a {type(responses).__name__}, expected a list of {expected}.")
    if len(responses) != n_expected and not (n_expected is None and responses):
        raise DataError(f"{where}: {len(responses)} responses, expected {expected}.")
    for i, response in enumerate(responses):
        if not isinstance(response, str):
            raise DataError(
                f"{where}: response {i} is a {type(response).__name__}, expected {expected}."
            )
    return list(responses)


def _text(text: str | None) -> str | None:
    """Escape lone surrogates, which a model can write, so that the text can be encoded."""
    if text is None or text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _score(score: object) -> float:
    """Check that a score is a number."""
    if isinstance(score, bool) or not isinstance(score, Real) or math.isnan(score):
        raise ParameterTypeError(_returned("verifier", score, "a number"))
    return float(score)


def _count(n_tokens: object) -> int:
    """Check that a count of tokens is an integer from 0."""
    if isinstance(n_tokens, bool) or not isinstance(n_tokens, Integral) or n_tokens < 0:
        raise ParameterTypeError(_returned("count_tokens", n_tokens, "an integer from 0"))
    return int(n_tokens)


def _returned(callable_name: str, value: object, expected: str) -> str:
    """Return the message for a callable that returned a wrong value."""
    found = f"{value}" if isinstance(value, Real) else f"a {type(value).__name__}"
    return f"{callable_name} returned {found}, must return {expected}."
