"""A completer that sends requests to an OpenAI-compatible server."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ttsframe._checks import check_between, check_positive
from ttsframe._http import Lost, ServerSettings, Usage, check_address, check_api_key, require_httpx
from ttsframe._http.replies import quote
from ttsframe.errors import (
    CompletionError,
    ParameterError,
    ParameterTypeError,
)
from ttsframe.process.annotation.completers import Completer, Failed, Prefix

__all__ = ["openai_completer"]

_MAX_REPLY_BYTES: Final = 1 << 29
_MAX_TEMPERATURE: Final = 100.0
_MIN_SECONDS: Final = 0.001
_MAX_SECONDS: Final = 86_400.0
_SET_ELSEWHERE: Final = {
    "model": "model",
    "prompt": "the prefixes",
    "messages": "the prefixes",
    "n": "n_rollouts and n_per_request",
    "temperature": "temperature",
    "max_tokens": "max_tokens",
    "stop": "stop",
    "add_generation_prompt": "chat",
    "continue_final_message": "chat",
}


def openai_completer(
    base_url: str,
    model: str,
    *,
    api_key: str | None = None,
    temperature: float = 0.7,
    max_tokens: int | None = 2048,
    stop: str | Sequence[str] = (),
    chat: bool = False,
    extra: Mapping[str, object] | None = None,
    n_per_request: int | None = None,
    n_workers: int = 16,
    timeout: float = 600.0,
    retries: int = 5,
    backoff: float = 1.0,
    max_lost: float = 0.1,
) -> Completer:
    r"""Make a completer that uses an OpenAI-compatible server, such as vLLM or SGLang.

    Nothing is sent before the completer is called. An error or an interrupt cancels all requests
    at once and does not wait for their completions. Needs the extra `server`:
    ``pip install 'ttsframe[server]'``.

    Parameters
    ----------
    base_url
        Address of the server, http or https, including the `/v1` of most servers:
        `"http://localhost:8000/v1"`. Proxies are read from the environment (`HTTPS_PROXY`,
        `NO_PROXY`), certificates from the system.
    model
        Name of the model on the server.
    api_key
        Sent as a bearer token, only to this address: redirects are refused. The key never appears in
        a message, a file or a representation.
    temperature
        Sampling temperature, at least 0. At 0 all completions of a prefix would be equal, so more
        than one per prefix is refused.
    max_tokens
        Maximum number of tokens of a completion; None leaves it to the server. A truncated
        completion has no answer and counts as wrong.
    stop
        Texts that end a completion, at most as many as the server accepts (often 4).
    chat
        False: `/completions`, which continues the prefix as it is. True: `/chat/completions`; the
        text before the steps (stripped) becomes the user's message, and the steps so far become the
        start of the assistant's message, which the server must continue. The request sets
        `continue_final_message` and `add_generation_prompt`, as vLLM and SGLang accept them. A
        server that does not know these fields returns an error or, worse, begins a new message.
    extra
        Further fields of a request: `{"top_p": 0.95}`. A `seed` is refused, because further requests
        for the same prefix would repeat its completions; each request has one of its own, drawn anew,
        that its repetitions keep. `{"seed": None}` is for servers that do not know the field.
    n_per_request
        Maximum number of completions per request, for servers with a limit or without the field `n`
        (then 1); None: no limit.
    n_workers
        Number of concurrent requests. Each request has one prefix, since servers batch requests
        themselves.
    timeout
        Time limit of one try in seconds. It covers the headers and all completions of the request.
    retries
        Maximum number of repetitions of a request that was answered with 409, 425, 429 or 502 to 504, or
        was refused or cut off before the first byte. Nothing else is repeated: a request that times
        out, breaks off or is answered with 408 or 500 may have failed for the length of its text. Its
        completions are `Failed`.
    backoff
        Seconds before the first retry. The pause doubles with each retry up to 60 seconds and is
        shortened at random by up to half. A `Retry-After` of the server takes precedence.
    max_lost
        Share of requests that may fail for good; above it, and from the fourth on, `CompletionError`
        is raised.

    Returns
    -------
    Completer
        The completer. Its `key` contains `model`, `temperature`, `max_tokens`, `stop`, `chat` and
        `extra`, but not the address, since the same model may move. Its `usage` counts requests and
        tokens, what was repeated and what was given up. A refusal of the server raises
        `CompletionError` with the server's message.

    Raises
    ------
    ParameterTypeError
        At once, when a parameter has the wrong type.
    ParameterError
        At once, when a parameter cannot be used.
    MissingExtraError
        At once, when httpx is not installed.

    Notes
    -----
    A null content of a chat completion, as when all tokens went into reasoning that the server
    returns separately, is an empty completion. Completions are sorted by their `index`.

    Examples
    --------
    >>> import ttsframe as tts
    >>> completer = tts.process.openai_completer(
    ...     "http://localhost:8000/v1", "peiyi9979/mistral-7b-sft", api_key="secret", stop="\n\n\n"
    ... )
    >>> completer
    OpenAI-compatible completer of 'peiyi9979/mistral-7b-sft' at http://localhost:8000/v1
    """
    require_httpx("openai_completer")
    for name, text in {"base_url": base_url, "model": model}.items():
        if not isinstance(text, str):
            raise ParameterTypeError(f"{name} is a {type(text).__name__}, must be a str.")
    if not model:
        raise ParameterError("model is empty, must be a name that the server knows.")
    address = check_address(base_url)
    check_api_key(api_key)
    _check_counts(n_per_request=n_per_request, max_tokens=max_tokens, n_workers=n_workers)
    _check_counts(retries=retries or None)
    check_between(temperature, "temperature", 0.0, _MAX_TEMPERATURE)
    check_between(backoff, "backoff", 0.0, _MAX_SECONDS)
    check_between(timeout, "timeout", _MIN_SECONDS, _MAX_SECONDS)
    check_between(max_lost, "max_lost", 0.0, 1.0)
    return _Server(
        base_url=address,
        model=model,
        api_key=api_key,
        is_chat=bool(chat),
        fields=_fields(model, temperature, max_tokens, stop, extra),
        has_seeds="seed" not in (extra or {}),
        max_lost=max_lost,
        n_per_request=n_per_request,
        n_workers=n_workers,
        timeout=float(timeout),
        retries=retries,
        backoff=float(backoff),
    )


def _check_counts(**counts: int | None) -> None:
    """Check that each count is None or at least 1."""
    for name, count in counts.items():
        if count is not None:
            check_positive(count, name)


def _fields(
    model: str,
    temperature: float,
    max_tokens: int | None,
    stop: str | Sequence[str],
    extra: Mapping[str, object] | None,
) -> dict[str, object]:
    """Return the fields that all requests share."""
    stops = [stop] if isinstance(stop, str) else list(stop)
    if not all(isinstance(text, str) for text in stops) or "" in stops:
        raise ParameterError(f"stop == {stops!r}, must contain texts that are not empty.")
    added = dict(extra or {})
    if added.get("seed", ...) is None:
        del added["seed"]
    if "seed" in added:
        raise ParameterError(
            "extra contains 'seed': further requests for the same prefix would repeat its completions. "
            "Hint: use a cache to make a run repeatable."
        )
    if "stream" in added:
        raise ParameterError("extra contains 'stream', which is not supported.")
    for name in added:
        if name in _SET_ELSEWHERE:
            raise ParameterError(
                f"extra contains {name!r}, which is set by {_SET_ELSEWHERE[name]}."
            )
    try:
        json.dumps(added)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"extra cannot be written as JSON ({error}).") from error
    fields: dict[str, object] = {"model": model, "temperature": float(temperature)}
    if max_tokens is not None:
        fields["max_tokens"] = max_tokens
    if stops:
        fields["stop"] = stops
    return fields | added


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class _Server:
    """A completer; a value that can be pickled and holds no connection between two calls."""

    base_url: str
    model: str
    api_key: str | None
    is_chat: bool
    fields: Mapping[str, object]
    n_per_request: int | None
    n_workers: int
    timeout: float
    retries: int
    backoff: float
    has_seeds: bool
    max_lost: float
    usage: Usage = field(default_factory=Usage)

    def __repr__(self) -> str:
        """Return the model and the address, without the key."""
        return f"OpenAI-compatible completer of {self.model!r} at {self.base_url}"

    @property
    def key(self) -> str:
        """Return the settings that determine the distribution of completions, as JSON."""
        return json.dumps({"chat": self.is_chat, **self.fields}, sort_keys=True)

    @property
    def _path(self) -> str:
        return "/chat/completions" if self.is_chat else "/completions"

    @property
    def url(self) -> str:
        return f"{self.base_url}{self._path}"

    def _settings(self) -> ServerSettings:
        return ServerSettings(
            base_url=self.base_url,
            api_key=self.api_key,
            timeout=self.timeout,
            retries=self.retries,
            backoff=self.backoff,
            n_workers=self.n_workers,
            max_reply_bytes=_MAX_REPLY_BYTES,
            max_lost=self.max_lost,
        )

    def __call__(self, prefixes: list[str], n: int, /) -> list[list[str | Failed]]:
        """Return `n` completions of each prefix."""
        from ttsframe._http.client import Client

        if n > 1 and self.fields["temperature"] == 0:
            raise ParameterError(
                f"temperature == 0 and {n} completions of each prefix: they would all be the same. "
                "Hint: n_rollouts=1, or a temperature such as 0.7."
            )
        at_most = self.n_per_request or n
        shares = [min(at_most, n - start) for start in range(0, n, at_most)]
        prompts = [self._prompt(prefix) for prefix in prefixes]
        with Client(self._settings(), name="completer", usage=self.usage) as client:
            replies = client.send_all(
                self._path,
                [
                    {**self.fields, **prompt, "n": share, **self._seed()}
                    for prompt in prompts
                    for share in shares
                ],
                lambda number, reply: self._texts(reply, shares[number % len(shares)]),
                lambda number, lost: self._lose(lost, shares[number % len(shares)]),
            )
        return [
            [text for texts in replies[start : start + len(shares)] for text in texts]
            for start in range(0, len(replies), len(shares))
        ]

    def _prompt(self, prefix: str) -> dict[str, object]:
        """Return the fields that hold the prefix."""
        if not self.is_chat:
            return {"prompt": str(prefix)}
        if not isinstance(prefix, Prefix):
            raise ParameterError(
                "chat=True needs to know where the problem ends, which a plain str does not tell. Hint: "
                "pass tts.process.Prefix(context, solution)."
            )
        user = {"role": "user", "content": prefix.context.strip()}
        if not prefix.solution:
            return {"messages": [user]}
        return {
            "messages": [user, {"role": "assistant", "content": prefix.solution}],
            "add_generation_prompt": False,
            "continue_final_message": True,
        }

    def _seed(self) -> dict[str, object]:
        """Return the seed of a request, new in each, for the cache would else hold a prefix's texts twice."""
        return {"seed": secrets.randbits(31)} if self.has_seeds else {}

    @staticmethod
    def _lose(lost: Lost, n: int) -> list[str | Failed]:
        return [Failed("length" if lost.kind == "too_long" else "error")] * n

    def _texts(self, reply: object, n: int) -> list[str | Failed]:
        """Return the completions of a reply."""
        choices = reply.get("choices") if isinstance(reply, dict) else None
        if not isinstance(choices, list):
            raise CompletionError(f"{self.url}: the answer has no list 'choices': {quote(reply)}.")
        if len(choices) != n:
            raise CompletionError(
                f"{self.url}: returned {len(choices):,} choices, expected {n:,}. Hint: use "
                "n_per_request=1 for a server that does not know the field 'n'."
            )
        indices = [choice.get("index") if isinstance(choice, dict) else None for choice in choices]
        if sorted(index for index in indices if isinstance(index, int)) == list(range(n)):
            choices = [choices[indices.index(i)] for i in range(n)]
        self.usage.add_tokens(reply)
        return [self._text(choice) for choice in choices]

    def _text(self, choice: object) -> str:
        """Return the completion of a choice."""
        fields: object = choice
        if self.is_chat:
            fields = choice.get("message") if isinstance(choice, dict) else None
        name = "content" if self.is_chat else "text"
        text = fields.get(name, ...) if isinstance(fields, dict) else ...
        if text is None and self.is_chat:
            return ""
        if not isinstance(text, str):
            where = f"message.{name}" if self.is_chat else name
            raise CompletionError(
                f"{self.url}: returned a choice without a string {where!r}: {quote(choice)}."
            )
        return text
