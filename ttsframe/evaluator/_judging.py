"""From responses to rows of `trajectories`: parsed, verified, scored and counted, each text once."""

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
    """What is known of a response."""

    result: TaskResult
    answer: str | None
    score: float | None
    n_tokens: int | None


class Judge(NamedTuple):
    """What responses are judged by."""

    task: Task
    verifier: Verifier | None
    count_tokens: CountTokens | None = None

    def verdict(self, instance: TaskInstance, response: str) -> Verdict:
        """Judge one response.

        Parameters
        ----------
        instance
            What was to be solved.
        response
            What the model wrote.

        Returns
        -------
        Verdict
            What is known of it; right only if there is an answer.

        Raises
        ------
        ParameterTypeError
            When the task, the verifier or the count of tokens returns something else than it must.
        """
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


class Drawn:
    """The responses to one instance, of which equal ones are judged once."""

    def __init__(self, problem_id: str, instance: TaskInstance) -> None:
        self.problem_id = problem_id
        self.instance = instance
        self.responses: list[str] = []
        self.verdicts: list[Verdict] = []
        self._seen: dict[str, Verdict] = {}

    def with_responses(self, responses: Sequence[str], judge: Judge) -> Drawn:
        """Return the same instance with other responses, which are judged.

        Parameters
        ----------
        responses
            What the model wrote.
        judge
            What they are judged by.

        Returns
        -------
        Drawn
            The instance with these responses; what is known of equal ones is shared.
        """
        drawn = Drawn(self.problem_id, self.instance)
        drawn._seen = seen = self._seen
        for response in responses:
            if response not in seen:
                seen[response] = judge.verdict(self.instance, response)
            drawn.responses.append(response)
            drawn.verdicts.append(seen[response])
        return drawn


def trajectories_of(drawn: Sequence[Drawn], judge: Judge) -> pl.DataFrame:
    """Lay responses out as `trajectories`.

    Parameters
    ----------
    drawn
        Responses by instance.
    judge
        What they were judged by, which says whether there are scores and tokens.

    Returns
    -------
    pl.DataFrame
        One row per response, in their order.
    """
    verdicts = [verdict for one in drawn for verdict in one.verdicts]
    sizes = pl.Series([len(one.verdicts) for one in drawn], dtype=pl.Int64)
    instances = pl.DataFrame(
        {
            "problem_id": [one.problem_id for one in drawn],
            "complexity": [one.instance.complexity for one in drawn],
            "attempt": pl.select(pl.int_ranges(sizes)).to_series(),
        },
        schema_overrides={"problem_id": pl.String, "complexity": pl.Int64},
    ).explode("attempt", empty_as_null=False)
    answers = pl.Series([_text(verdict.answer) for verdict in verdicts], dtype=pl.String)
    columns = {
        "completion": pl.Series(
            [_text(response) for one in drawn for response in one.responses], dtype=pl.String
        ),
        "answer": answers,
        "answer_key": answers,
        "is_correct": pl.Series([each.result.is_correct for each in verdicts], dtype=pl.Boolean),
    }
    if judge.verifier is not None:
        columns["score"] = pl.Series([each.score for each in verdicts], dtype=pl.Float64)
    if judge.count_tokens is not None:
        columns["n_tokens"] = pl.Series([each.n_tokens for each in verdicts], dtype=pl.Int64)
    return instances.with_columns(pl.col("attempt").cast(pl.UInt32), **columns)


def check_responses(responses: object, n_expected: int | None, where: str) -> list[str]:
    """Return responses as a list of strings.

    Parameters
    ----------
    responses
        What was given.
    n_expected
        How many there must be; None: at least one.
    where
        What gave them, for the message.

    Returns
    -------
    list[str]
        The responses.

    Raises
    ------
    DataError
        When they are no list of as many strings.
    """
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
    """Return a text that can be encoded: lone surrogates, which a model can write, are escaped."""
    if text is None or text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _score(score: object) -> float:
    """Return a score, which is a number."""
    if isinstance(score, bool) or not isinstance(score, Real) or math.isnan(score):
        raise ParameterTypeError(_returned("verifier", score, "a number"))
    return float(score)


def _count(n_tokens: object) -> int:
    """Return a number of tokens."""
    if isinstance(n_tokens, bool) or not isinstance(n_tokens, Integral) or n_tokens < 0:
        raise ParameterTypeError(_returned("count_tokens", n_tokens, "a whole number from 0"))
    return int(n_tokens)


def _returned(what: str, found: object, expected: str) -> str:
    """Say what a callable returned."""
    kind = f"{found}" if isinstance(found, Real) else f"a {type(found).__name__}"
    return f"{what} returned {kind}, must return {expected}."
