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


class Verdict(NamedTuple):
    """The result, answer, score and number of tokens of a response."""

    result: TaskResult
    answer: str | None
    score: float | None
    n_tokens: int | None


class Judge(NamedTuple):
    """The task and the callables that judge responses."""

    task: Task
    verifier: Verifier | None
    count_tokens: CountTokens | None = None

    def verdict(self, instance: TaskInstance, response: str) -> Verdict:
        """Judge one response; it is correct only if an answer was parsed."""
        answer = self.task.parse(response)
        if answer is not None and not isinstance(answer, str):
            raise ParameterTypeError(_returned("task.parse", answer, "a str or None"))
        result = self.task.verify_solution(instance, response)
        if not isinstance(result, TaskResult):
            raise ParameterTypeError(_returned("task.verify_solution", result, "a TaskResult"))
        if result.is_correct and answer is None:
            message = "verified, but no answer was parsed, so it is not right."
            result = replace(result, is_correct=False, error_message=message)
        return Verdict(
            result=result,
            answer=answer,
            score=None if self.verifier is None else _score(self.verifier(response, instance)),
            n_tokens=None if self.count_tokens is None else _count(self.count_tokens(response)),
        )


class Drawn(NamedTuple):
    """The responses to one instance, with their verdicts."""

    problem_id: str
    instance: TaskInstance
    responses: list[str]
    verdicts: list[Verdict]


def judge_responses(
    problem_id: str,
    instance: TaskInstance,
    responses: list[str],
    judge: Judge,
    known: dict[str, Verdict],
) -> Drawn:
    """Judge the responses to one instance; `known` holds its verdicts so far, and gets the new ones."""
    for response in responses:
        if response not in known:
            known[response] = judge.verdict(instance, response)
    return Drawn(problem_id, instance, responses, [known[response] for response in responses])


def trajectories_of(drawn: Sequence[Drawn], judge: Judge) -> pl.DataFrame:
    """Return one row of `trajectories` per response, in their order."""
    verdicts = [verdict for row in drawn for verdict in row.verdicts]
    sizes = pl.Series([len(row.verdicts) for row in drawn], dtype=pl.Int64)
    instances = pl.DataFrame(
        {
            "problem_id": [row.problem_id for row in drawn],
            "complexity": [row.instance.complexity for row in drawn],
            "attempt": pl.select(pl.int_ranges(sizes)).to_series(),
        },
        schema_overrides={"problem_id": pl.String, "complexity": pl.Int64},
    ).explode("attempt", empty_as_null=False)
    answers = pl.Series([_text(verdict.answer) for verdict in verdicts], dtype=pl.String)
    columns = {
        "completion": pl.Series(
            [_text(response) for row in drawn for response in row.responses], dtype=pl.String
        ),
        "answer": answers,
        "answer_key": answers,
        "is_correct": pl.Series(
            [verdict.result.is_correct for verdict in verdicts], dtype=pl.Boolean
        ),
    }
    if judge.verifier is not None:
        columns["score"] = pl.Series([verdict.score for verdict in verdicts], dtype=pl.Float64)
    if judge.count_tokens is not None:
        columns["n_tokens"] = pl.Series([verdict.n_tokens for verdict in verdicts], dtype=pl.Int64)
    return instances.with_columns(pl.col("attempt").cast(pl.UInt32), **columns)


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
