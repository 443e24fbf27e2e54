"""A generator on a server: requests of a search to bodies, replies to steps, in the right places."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol

import numpy as np
import polars as pl

from ttsframe._draws import bits_at
from ttsframe._http import Lost, ServerSettings, Usage
from ttsframe.errors import CompletionError, ParameterError
from ttsframe.search.servers.service import Service, lost_reason
from ttsframe.search.servers.steps import Step

__all__ = ["ServerGenerator"]


_N_COPIED: Final = 10
"""Requests, all of equal texts, after which a server is taken to draw copies."""


class Ask(NamedTuple):
    """One request to a server: `n` continuations, of which the first is child `start` of its node."""

    row: int
    start: int
    n: int
    problem: str
    prefix: str
    seed: int
    is_greedy: bool
    until: str


class Wire(Protocol):
    """How a kind of server is spoken to."""

    path: str

    def body(self, ask: Ask, /) -> dict[str, object]:
        """Return what is sent."""

    def read(self, reply: object, ask: Ask, usage: Usage, /) -> list[Step]:
        """Return the continuations in a reply."""


class ServerGenerator(Service):
    r"""Steps from a model on a server, a `tts.search.Generator`; made by the functions of this module.

    Each continuation has its own seed, drawn from the node and its index, so a request that is repeated
    draws the same again.

    Attributes
    ----------
    usage : Usage
        Requests and tokens so far, what was repeated and what was given up.

    Examples
    --------
    >>> import ttsframe as tts
    >>> generator = tts.search.servers.llama_cpp_generator(
    ...     "http://localhost:8080", prompt="{problem}\n\n"
    ... )
    >>> generator
    ServerGenerator at http://localhost:8080
    """

    kind = "generator"
    _said_of_lost = (
        "Their steps have finish_reason 'error', or 'length' where the context was full. They were not drawn "
        "again, since that would favor short steps; if long ones fail more often, those that are left are "
        "biased to short ones."
    )

    def __init__(
        self,
        wire: Wire,
        model: str,
        settings: ServerSettings,
        *,
        n_per_request: int | None,
        check: Callable[[ServerGenerator], None] | None = None,
    ) -> None:
        super().__init__(model, settings)
        self._wire = wire
        self._most = n_per_request
        self._check = check
        self._check_error: CompletionError | None = None
        self._n_copied: int | None = 0

    async def __call__(self, requests: pl.DataFrame, /) -> pl.DataFrame:
        """Continue each node `n` times."""
        self._check_once()
        wanted = requests["n"].to_list()
        found: dict[tuple[int, int], Step] = {}
        asks = self._asks(requests, {row: (0, n) for row, n in enumerate(wanted) if n})
        while asks:
            replies = await self._client.send_all_async(
                self._wire.path,
                [self._wire.body(ask) for ask in asks],
                self._reader(asks),
                self._loser(asks),
            )
            missing: dict[int, tuple[int, int]] = {}
            for ask, steps in zip(asks, replies, strict=True):
                for index, step in enumerate(steps):
                    found[ask.row, ask.start + index] = step
                if len(steps) < ask.n:
                    # The server has a limit of its own; it is not asked for more again.
                    self._most = min(self._most or len(steps), len(steps))
                    begin = ask.start + len(steps)
                    missing[ask.row] = (begin, ask.start + ask.n)
            asks = self._asks(requests, missing)
        return _frame(found, wanted)

    def end_search(self) -> None:
        """Close the connections, and say what was lost; a search calls this at its end."""
        super().end_search()
        self._check_error = None

    def _check_once(self) -> None:
        """Check the server before anything else is asked, and fail alike for all who ask."""
        if self._check_error is not None:
            raise self._check_error
        if self._check is None:
            return
        try:
            self._check(self)
        except CompletionError as error:
            self._check_error = error
            raise
        self._check = None

    def _asks(self, requests: pl.DataFrame, spans: Mapping[int, tuple[int, int]]) -> list[Ask]:
        """Return the requests for the children of some nodes from one index to another."""
        parts = [
            (row, start, min(self._most or end, end - start))
            for row, (begin, end) in spans.items()
            for start in range(begin, end, self._most or max(end - begin, 1))
        ]
        if not parts:
            return []
        rows = np.array([row for row, _, _ in parts])
        starts = np.array([start for _, start, _ in parts])
        # Servers take seeds of 31 bits; some read the largest of 32 as "any".
        seeds = bits_at(requests["draw"].to_numpy()[rows], starts) >> np.uint64(33)
        columns = ["problem", "prefix", "is_greedy", "until"]
        values = requests.select(columns).rows()
        if any(values[row][0] is None for row in spans):
            raise ParameterError(
                "problems: a text is missing in the column 'problem', which the prompts are made of."
            )
        return [
            Ask(row, start, n, values[row][0], values[row][1], seed, values[row][2], values[row][3])
            for (row, start, n), seed in zip(parts, seeds.tolist(), strict=True)
        ]

    def _reader(self, asks: list[Ask]) -> Callable[[int, object], list[Step]]:
        def read(number: int, reply: object) -> list[Step]:
            ask = asks[number]
            steps = self._wire.read(reply, ask, self.usage)
            if not steps or len(steps) > ask.n:
                raise CompletionError(
                    self._error(
                        self._wire.path, f"returned {len(steps):,} choices, expected {ask.n:,}."
                    )
                )
            self._look_for_copies(ask, steps)
            return steps

        return read

    def _look_for_copies(self, ask: Ask, steps: list[Step]) -> None:
        """Refuse a server that draws the same for every continuation of a request, as some do with a seed."""
        if self._n_copied is None or len(steps) < 2 or ask.is_greedy:
            return
        if len({step.text for step in steps}) > 1:
            self._n_copied = None
            return
        self._n_copied += 1
        if self._n_copied == _N_COPIED:
            self._n_copied = 0
            raise CompletionError(
                self._error(
                    self._wire.path,
                    f"gave the same text for all continuations of each of {_N_COPIED} requests. Hint: with a "
                    "seed some servers draw the same for each; n_per_request=1 gives each its own seed.",
                )
            )

    @staticmethod
    def _loser(asks: list[Ask]) -> Callable[[int, Lost], list[Step]]:
        def lose(number: int, lost: Lost) -> list[Step]:
            if lost_reason(lost) == "length":
                return [Step("", "length", 0)] * asks[number].n
            return [Step(None, "error")] * asks[number].n

        return lose


def _frame(found: Mapping[tuple[int, int], Step], wanted: list[int]) -> pl.DataFrame:
    steps = [found[row, child] for row, n in enumerate(wanted) for child in range(n)]
    return pl.DataFrame(
        {
            "text": [step.text if step.text is None else encodable(step.text) for step in steps],
            "finish_reason": [step.finish_reason for step in steps],
            "n_tokens": [step.n_tokens for step in steps],
            "n_prompt_tokens_new": [step.n_prompt_tokens_new for step in steps],
            "logprob": [step.logprob for step in steps],
        },
        schema={
            "text": pl.String,
            "finish_reason": pl.String,
            "n_tokens": pl.Int64,
            "n_prompt_tokens_new": pl.Int64,
            "logprob": pl.Float64,
        },
    )


def encodable(text: str) -> str:
    """Replace lone surrogates, which JSON can carry and no table can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def merged(fields: Mapping[str, object], extra: Mapping[str, object] | None) -> dict[str, object]:
    """Add the user's fields to those of a request; None removes one."""
    added = dict(extra or {})
    for name in ("prompt", "messages", "n", "seed", "stop", "stream", "inputs"):
        if name in added:
            raise ParameterError(f"extra contains {name!r}, which the search sets itself.")
    try:
        json.dumps(added)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"extra cannot be written as JSON ({error}).") from error
    return {name: value for name, value in (dict(fields) | added).items() if value is not None}
