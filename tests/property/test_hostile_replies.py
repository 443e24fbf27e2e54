"""Replies of servers with one thing spoilt: steps and scores that a table can hold, or an error that says it."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any
from urllib.parse import urlsplit

import model_servers as fake
import polars as pl
import pytest

import ttsframe as tts
from ttsframe._http import Usage
from ttsframe.errors import CompletionError
from ttsframe.search.generators import check_children, check_scores

pytest.importorskip("httpx", reason="the extra 'server' is not installed")

V = tts.search.servers
KEY = "sk-very-secret"
URL = "http://localhost"
N_REPLIES = 400


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


VALUES: list[Any] = [
    None, True, False, -1, 0, 1, 7, 10**30, -(10**30), 10**400, 0.5, 1e308, -0.0, float("nan"), float("inf"), "", "0", "x",
    "\ud800", "a\x00b", KEY, [], {}, [[]], [None], [float("nan")], {"a": 1}, nested(200),
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path to each value of a JSON document."""
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *(found for key, each in inner for found in places(each, (*path, key)))]


def spoil(reply: Any, rng: Random) -> Any:
    """Replace, remove or repeat a value, sometimes two."""
    for _ in range(rng.choice([1, 1, 2])):
        *path, last = rng.choice(places(reply)[1:] or [("",)])
        parent = reply
        for key in path:
            parent = parent[key]
        way = rng.choice(["replace", "replace", "replace", "remove", "repeat"])
        if not isinstance(parent, dict | list) or parent in ({}, []):
            return rng.choice(VALUES)
        if way == "replace":
            parent[last] = copy.deepcopy(rng.choice(VALUES))
        elif way == "remove":
            del parent[last]
        elif isinstance(parent, list):
            parent.append(copy.deepcopy(parent[last]))
    return reply if rng.random() < 0.97 else rng.choice(VALUES)


class Client:
    """Takes the place of the client: answers from the model servers of the tests, spoilt on the way."""

    def __init__(self, rng: Random, real: Any) -> None:
        self.models, self.rng, self.usage = fake.Models(), rng, Usage()
        self.real = real
        self.base = urlsplit(real.settings.base_url).path

    def send_all(
        self,
        path: str,
        bodies: Sequence[Mapping[str, Any]],
        read: Callable[[int, object], Any],
        _: object = None,
    ) -> list[Any]:
        found = []
        for number, body in enumerate(bodies):
            _, reply = self.models.answer(self.base + path, json.loads(json.dumps(body)))
            content = json.dumps(spoil(reply, self.rng)).encode()
            found.append(self.real._read(read, number, self.real._parsed(URL, content).value))
        return found

    async def send_all_async(self, *arguments: Any) -> list[Any]:
        return self.send_all(*arguments)


GENERATORS: dict[str, Callable[..., Any]] = {
    "completions": lambda **o: V.openai_generator(f"{URL}/v1", "m", prompt="{problem}\n\n", **o),
    "log-probabilities": lambda **o: V.openai_generator(
        f"{URL}/v1", "m", prompt="{problem}\n\n", logprobs=True, n_per_request=1, **o
    ),
    "chat": lambda **o: V.chat_generator(f"{URL}/v1", "m", **o),
    "llama.cpp": lambda **o: V.llama_cpp_generator(URL, prompt="{problem}\n\n", **o),
    "tgi": lambda **o: V.tgi_generator(URL, prompt="{problem}\n\n", **o),
}
STYLES = [
    "qwen",
    "math_shepherd",
    "chat",
    "worker",
    "vllm_classify",
    "sglang_classify",
    "vllm_score",
]
REQUESTS = pl.DataFrame({
    "problem": ["a::b"] * 3,
    "prefix": ["", "b\n\n", "c\n\n"],
    "n": [3, 1, 2],
    "draw": pl.Series([5, 6, 7], dtype=pl.UInt64),
    "is_greedy": [False, True, False],
    "until": ["step", "step", "end"],
})
PREFIXES = pl.DataFrame({
    "problem": ["a"] * 3,
    "prefix": ["", "One\n\n", "One\n\n"],
    "text": ["One\n\n", "Two\n\n", "Three"],
    "lookahead_text": pl.Series([None] * 3, dtype=pl.String),
})


def outcomes(make: Callable[[Random], Callable[[], None]]) -> tuple[int, int]:
    """Count the replies that are read and those that are refused; an error never shows the key."""
    n_read = n_refused = 0
    for seed in range(N_REPLIES):
        act = make(Random(seed))
        try:
            act()
        except CompletionError as error:
            n_refused += 1
            message = str(error)
        else:
            n_read += 1
            message = ""
        assert KEY not in message
    return n_read, n_refused


@pytest.mark.parametrize("name", GENERATORS)
def test_generators(name: str) -> None:
    def make(rng: Random) -> Callable[[], None]:
        generator = GENERATORS[name](api_key=KEY)
        generator._client = Client(rng, generator._client)
        generator._check = None

        def act() -> None:
            children, is_short = check_children(asyncio.run(generator(REQUESTS)), REQUESTS)
            assert not is_short.any()
            counts = children.select("n_tokens", "n_prompt_tokens_new")
            assert not (counts < 0).sum_horizontal().sum()
            "".join(children["text"].drop_nulls()).encode()

        return act

    n_read, n_refused = outcomes(make)
    assert min(n_read, n_refused) > 20


@pytest.mark.parametrize("style", STYLES)
def test_verifiers(style: Any) -> None:
    def make(rng: Random) -> Callable[[], None]:
        options = {"prompt": "{problem}::"} if style == "math_shepherd" else {}
        base = f"{URL}/v1" if style == "chat" else URL
        prm = V.server_verifier(base, "m", style=style, api_key=KEY, **options)
        prm._client = Client(rng, prm._client)  # type: ignore[assignment]

        def act() -> None:
            verdict = check_scores(asyncio.run(prm(PREFIXES)), PREFIXES.height)
            assert verdict.last.drop_nulls().is_finite().all()

        return act

    n_read, n_refused = outcomes(make)
    assert min(n_read, n_refused) > 20


def test_the_check_of_a_chat_server() -> None:
    def make(rng: Random) -> Callable[[], None]:
        generator = V.chat_generator(f"{URL}/v1", "m", api_key=KEY)
        generator._client = Client(rng, generator._client)  # type: ignore[assignment]
        return generator._check_once

    n_read, n_refused = outcomes(make)
    assert min(n_read, n_refused) > 20


def test_a_placeholder_for_a_key_is_left_in_texts() -> None:
    generator = V.openai_generator(f"{URL}/v1", "m", prompt="{problem}", api_key="EMPTY")
    reply = generator._client._parsed(URL, b'{"text": "the set is EMPTY"}')
    assert reply.value == {"text": "the set is EMPTY"}
