"""Reward models on servers: what each kind is sent, and where its scores stand in the reply."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, get_args

from ttsframe._http import Usage
from ttsframe._http.replies import finite, in_order, quote
from ttsframe.errors import CompletionError

RewardStyle: TypeAlias = Literal[
    "qwen", "math_shepherd", "chat", "worker", "vllm_classify", "sglang_classify", "vllm_score"
]
REWARD_STYLES: Final = get_args(RewardStyle)

Score: TypeAlias = float | list[float] | None
"""The score of the newest step or of the whole text, those of all steps, or none."""

QWEN_SYSTEM: Final = "Please reason step by step, and put your final answer within \\boxed{}."
_TOP_LOGPROBS: Final = 20


class Solution(NamedTuple):
    """A path to score: the problem, and the steps that have a text."""

    problem: str
    steps: tuple[str, ...]


class RewardWire(Protocol):
    """How a kind of reward model is spoken to."""

    @property
    def path(self) -> str:
        """Route at the server."""

    @property
    def takes_lists(self) -> bool:
        """Whether a request may hold several texts."""

    def body(self, batch: Sequence[Solution], /) -> dict[str, object]:
        """Return what is sent."""

    def read(self, reply: object, batch: Sequence[Solution], usage: Usage, /) -> list[Score]:
        """Return the scores in a reply, one for each solution."""


def escaped(text: str, tag: str) -> str:
    """Break up a tag in the text of a step, which the model would take for the end of a step."""
    mark = tag.strip()
    return text.replace(mark, f"{mark[0]} {mark[1:]}") if mark else text


def tagged(steps: Sequence[str], tag: str, *, joint: str = "") -> str:
    """Return the steps, each followed by the tag."""
    return joint.join(f"{escaped(step, tag)}{tag}" for step in steps)


@dataclass
class Pooling:
    """Scores of steps by vLLM's `/pooling`, task token_classify."""

    where: str
    model: str
    tag: str
    joint: str
    right: int
    """Position of the probability that a step is right."""
    prompt: Callable[[str], str] | None
    """Renders the problem; None: the server does, from messages."""
    system: str | None
    path = "/pooling"

    @property
    def takes_lists(self) -> bool:
        return self.prompt is not None

    def body(self, batch: Sequence[Solution]) -> dict[str, object]:
        body: dict[str, object] = {"model": self.model, "task": "token_classify"}
        if self.prompt is not None:
            texts = [
                self.prompt(each.problem) + tagged(each.steps, self.tag, joint=self.joint)
                for each in batch
            ]
            return body | {"input": texts}
        (only,) = batch
        messages = [] if self.system is None else [{"role": "system", "content": self.system}]
        messages += [
            {"role": "user", "content": only.problem},
            {"role": "assistant", "content": tagged(only.steps, self.tag, joint=self.joint)},
        ]
        return body | {"messages": messages}

    def read(self, reply: object, batch: Sequence[Solution], usage: Usage) -> list[Score]:
        usage.add_tokens(reply)
        rows = data_rows(reply, len(batch), f"{self.where}{self.path}")
        return [
            self._scores(row.get("data"), solution)
            for row, solution in zip(rows, batch, strict=True)
        ]

    def _scores(self, data: object, solution: Solution) -> list[float]:
        where = f"{self.where}{self.path}"
        found = data if isinstance(data, list) else []
        if len(found) != len(solution.steps):
            raise wrong_count(where, len(found), solution)
        scores = [
            each[self.right] if isinstance(each, list) and len(each) == 2 else each
            for each in found
        ]
        return [self._probability(score, where) for score in scores]

    @staticmethod
    def _probability(score: object, where: str) -> float:
        value = number(score, where)
        if not -1e-6 <= value <= 1 + 1e-6:
            raise CompletionError(
                f"{where}: a score is {value}, must be a probability. Hint: the server must apply its "
                "activation (use_activation)."
            )
        return min(max(value, 0.0), 1.0)


@dataclass
class ChatSigns:
    """Score of the newest step by the probabilities of + and - as the next word of a chat."""

    where: str
    model: str
    system: str | None
    path = "/chat/completions"
    takes_lists = False

    def body(self, batch: Sequence[Solution]) -> dict[str, object]:
        (only,) = batch
        messages = [] if self.system is None else [{"role": "system", "content": self.system}]
        for number_, step in enumerate(only.steps):
            if number_:
                messages.append({"role": "assistant", "content": "+"})
            said = f"{only.problem} {step}" if number_ == 0 else step
            messages.append({"role": "user", "content": said})
        return {
            "model": self.model,
            "messages": messages,
            "max_tokens": 1,
            "temperature": 0.0,
            "logprobs": True,
            "top_logprobs": _TOP_LOGPROBS,
        }

    def read(self, reply: object, batch: Sequence[Solution], usage: Usage) -> list[Score]:
        usage.add_tokens(reply)
        where = f"{self.where}{self.path}"
        try:
            listed = reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"]  # type: ignore[index]
            found = [(str(each["token"]).strip(), finite(each["logprob"])) for each in listed]
        except (KeyError, IndexError, TypeError) as error:
            raise CompletionError(
                f"{where}: the answer has no log-probabilities of the first token. Hint: the server must "
                f"allow logprobs with top_logprobs={_TOP_LOGPROBS}."
            ) from error
        weights = [
            math.fsum(
                math.exp(min(logprob, 0.0))
                for token, logprob in found
                if token == sign and logprob is not None
            )
            for sign in "+-"
        ]
        if not sum(weights) > 0:
            usage.lost["neither + nor -"] += len(batch)
            return [None]
        return [weights[0] / sum(weights)]


@dataclass
class Worker:
    """Scores of steps by a reward worker: `input_str` to `reward`."""

    where: str
    tag: str
    prompt: Callable[[str], str] | None
    path = "/worker_reward_inference"
    takes_lists = True

    def body(self, batch: Sequence[Solution]) -> dict[str, object]:
        texts = [tagged(each.steps, self.tag) for each in batch]
        if self.prompt is None:
            return {"input_str": [[s.problem, t] for s, t in zip(batch, texts, strict=True)]}
        return {
            "input_str": [self.prompt(s.problem) + t for s, t in zip(batch, texts, strict=True)]
        }

    def read(self, reply: object, batch: Sequence[Solution], usage: Usage) -> list[Score]:  # noqa: ARG002
        where = f"{self.where}{self.path}"
        found = reply.get("reward") if isinstance(reply, dict) else None
        if not isinstance(found, list) or len(found) != len(batch):
            n = f"{len(found):,}" if isinstance(found, list) else "no"
            raise CompletionError(f"{where}: returned {n} lists 'reward' for {len(batch):,} texts.")
        scores: list[Score] = []
        for row, solution in zip(found, batch, strict=True):
            if not isinstance(row, list) or len(row) != len(solution.steps):
                raise wrong_count(where, len(row) if isinstance(row, list) else 0, solution)
            scores.append([number(each, where) for each in row])
        return scores


@dataclass
class Outcome:
    """One score of the whole text, by a classifier."""

    where: str
    model: str
    kind: Literal["vllm_classify", "sglang_classify", "vllm_score"]
    separator: str
    prompt: Callable[[str], str] | None
    suffix: str
    takes_lists = True

    @property
    def path(self) -> str:
        return "/score" if self.kind == "vllm_score" else "/classify"

    def body(self, batch: Sequence[Solution]) -> dict[str, object]:
        solutions = [self.separator.join(each.steps) for each in batch]
        if self.kind == "vllm_score":
            return {
                "model": self.model,
                "text_1": [each.problem for each in batch],
                "text_2": solutions,
            }
        make = self.prompt or (lambda problem: f"{problem}{self.separator}")
        texts = [make(s.problem) + t + self.suffix for s, t in zip(batch, solutions, strict=True)]
        return {"model": self.model, "input" if self.kind == "vllm_classify" else "text": texts}

    def read(self, reply: object, batch: Sequence[Solution], usage: Usage) -> list[Score]:
        usage.add_tokens(reply)
        where = f"{self.where}{self.path}"
        if self.kind == "sglang_classify":
            listed = reply if isinstance(reply, list) else [reply]  # one text, one object
            if len(listed) != len(batch) or not all(isinstance(each, dict) for each in listed):
                raise CompletionError(
                    f"{where}: returned {len(listed):,} objects for {len(batch):,} texts."
                )
            embeddings = [each.get("embedding") for each in listed if isinstance(each, dict)]
            return [self._only(values, where) for values in embeddings]
        rows = data_rows(reply, len(batch), where)
        if self.kind == "vllm_score":
            return [number(row.get("score"), where) for row in rows]
        return [self._only(row.get("probs"), where) for row in rows]

    @staticmethod
    def _only(values: object, where: str) -> float:
        """Return the last of one or two numbers: the score, or the probability of the second class."""
        if not isinstance(values, list) or len(values) not in {1, 2}:
            n = len(values) if isinstance(values, list) else 0
            raise CompletionError(
                f"{where}: returned {n:,} values for a text, must be 1 or 2. Hint: is this a reward model?"
            )
        return number(values[-1], where)


def data_rows(reply: object, n: int, where: str) -> list[Mapping[str, object]]:
    """Return the rows of `data`, one for each text, in the order of the texts."""
    data = reply.get("data") if isinstance(reply, dict) else None
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        raise CompletionError(f"{where}: the answer has no list 'data' of objects: {quote(reply)}.")
    if len(data) != n:
        raise CompletionError(f"{where}: returned {len(data):,} rows for {n:,} texts.")
    return in_order(data, "rows", where)


def number(value: object, where: str) -> float:
    """Check that a score is a finite number."""
    found = finite(value)
    if found is None:
        raise CompletionError(f"{where}: a score is {quote(value)}, must be a finite number.")
    return found


def wrong_count(where: str, n: int, solution: Solution) -> CompletionError:
    """Describe a reply with more or fewer scores than steps."""
    return CompletionError(
        f"{where}: returned {n:,} scores for {len(solution.steps):,} steps; the first step is "
        f"{solution.steps[0][:80]!r}. Hint: the style must be that of the model, and the server must return "
        "one score for each step tag: vLLM's --pooler-config for Math-Shepherd."
    )
