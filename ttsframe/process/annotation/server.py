"""A completer that asks a server which speaks OpenAI's protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import urlsplit

from ttsframe._checks import check_between, check_positive
from ttsframe.errors import CompletionError, ParameterError, ParameterTypeError
from ttsframe.process.annotation.completers import Completer, Prefix

__all__ = ["openai_completer"]

_N_SHOWN: Final = 300
_HOTTEST: Final = 100.0
_SHORTEST: Final = 0.001
_LONGEST: Final = 86_400.0
_OWN: Final = {
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
) -> Completer:
    r"""Make a completer of a server that speaks OpenAI's protocol, such as vLLM or SGLang.

    Nothing is sent before it is called. It needs no other package: a request is one POST, which the
    standard library does, and what is added here (tries, a deadline, a stop that does not wait for
    completions under way) a client library would not spare.

    Parameters
    ----------
    base_url
        Address of the server, http or https, up to the `/v1` with most servers:
        `"http://localhost:8000/v1"`. Proxies are those of the environment (`HTTPS_PROXY`, `NO_PROXY`).
    model
        Name of the model on the server.
    api_key
        Sent as a bearer token, to this address alone: redirects are refused. It is in no message,
        file or representation.
    temperature
        Of the sampling, at least 0; at 0 all completions of a prefix would be one, so more than one
        is refused.
    max_tokens
        Most tokens of a completion; None leaves it to the server. A completion that is cut off has
        no answer and counts as wrong.
    stop
        Texts at which a completion ends, at most as many as the server takes (often 4).
    chat
        False: `/completions`, which continues the prefix as it is. True: `/chat/completions`, with
        what comes before the steps (stripped) as the user's message and the steps so far as the
        beginning of the assistant's, which the server must continue: `continue_final_message` and
        `add_generation_prompt`, as vLLM and SGLang take them, are sent. A server that does not know
        them answers with an error or, worse, begins a new message.
    extra
        Further fields of a request: `{"top_p": 0.95}`. A `seed` is refused, because requests for
        more completions of a prefix would repeat the ones that are there.
    n_per_request
        Most completions asked for at once, for servers with a limit or without the field `n` (then
        1); None: all.
    n_workers
        Requests under way at once; there is one per prefix, since servers batch by themselves.
    timeout
        Seconds that one try may take, all completions of a request included.
    retries
        How often a request is tried again that could not be delivered, took too long, or was
        answered with 408, 409, 425, 429 or 5xx.
    backoff
        Seconds before the second try, doubled before each further one up to 60 and shortened at
        random by up to half; where the server says `Retry-After`, that.

    Returns
    -------
    Completer
        The completer. Its `key` says `model`, `temperature`, `max_tokens`, `stop`, `chat` and
        `extra`, but not the address: the same model may move. An error of the server, in its words,
        is a `CompletionError`.

    Raises
    ------
    ParameterTypeError
        At once, when a parameter has the wrong type.
    ParameterError
        At once, when a parameter cannot be used.

    Notes
    -----
    The content of a chat completion may be null, as when all tokens went into reasoning that the
    server keeps apart: that is an empty completion. Completions come in the order of their `index`.

    Examples
    --------
    >>> import ttsframe as tts
    >>> completer = tts.process.openai_completer(
    ...     "http://localhost:8000/v1", "peiyi9979/mistral-7b-sft", api_key="secret", stop="\n\n\n"
    ... )
    >>> completer
    OpenAI-compatible completer of 'peiyi9979/mistral-7b-sft' at http://localhost:8000/v1
    """
    for name, text in {"base_url": base_url, "model": model}.items():
        if not isinstance(text, str):
            raise ParameterTypeError(f"{name} is a {type(text).__name__}, must be a str.")
    if not model:
        raise ParameterError("model is empty, must be a name that the server knows.")
    _check_address(base_url)
    if api_key is not None:
        _check_api_key(api_key)
    _check_counts(n_per_request=n_per_request, max_tokens=max_tokens, n_workers=n_workers)
    _check_counts(retries=retries or None)
    check_between(temperature, "temperature", 0.0, _HOTTEST)
    check_between(backoff, "backoff", 0.0, _LONGEST)
    check_between(timeout, "timeout", _SHORTEST, _LONGEST)
    return _Server(
        base_url=base_url.rstrip("/"),
        model=model,
        api_key=api_key,
        is_chat=bool(chat),
        fields=_fields(model, temperature, max_tokens, stop, extra),
        n_per_request=n_per_request,
        n_workers=n_workers,
        timeout=float(timeout),
        retries=retries,
        backoff=float(backoff),
    )


def _check_counts(**counts: int | None) -> None:
    """Refuse what is not at least 1; None is left out."""
    for name, count in counts.items():
        if count is not None:
            check_positive(count, name)


def _check_address(base_url: str) -> None:
    """Refuse what is no plain address, without showing what could be a password."""
    hint = "Hint: 'http://localhost:8000/v1'."
    try:
        parts = urlsplit(base_url)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        is_address = False
    if not is_address or not base_url.isascii() or not base_url.isprintable() or " " in base_url:
        raise ParameterError(f"base_url must be an http:// or https:// address. {hint}")
    if parts.username is not None or parts.query or parts.fragment:
        raise ParameterError(
            f"base_url holds a user's name, a query or a fragment, must end with its path. {hint} A key "
            "goes into api_key."
        )


def _check_api_key(api_key: str) -> None:
    """Refuse what cannot stand in a header, without showing it."""
    if not isinstance(api_key, str):
        raise ParameterTypeError(f"api_key is a {type(api_key).__name__}, must be a str.")
    if not api_key or not api_key.isascii() or not api_key.isprintable() or " " in api_key:
        raise ParameterError(
            "api_key must be printable ASCII without blanks. Hint: .strip() removes a line's end."
        )


def _fields(
    model: str,
    temperature: float,
    max_tokens: int | None,
    stop: str | Sequence[str],
    extra: Mapping[str, object] | None,
) -> dict[str, object]:
    """Return what is the same in all requests."""
    stops = [stop] if isinstance(stop, str) else list(stop)
    if not all(isinstance(text, str) for text in stops) or "" in stops:
        raise ParameterError(f"stop == {stops!r}, must hold texts that are not empty.")
    added = dict(extra or {})
    if "seed" in added:
        raise ParameterError(
            "extra names 'seed': requests for more completions of a prefix would repeat the ones that "
            "are there. Hint: a cache is what makes a run repeatable."
        )
    if "stream" in added:
        raise ParameterError("extra names 'stream': answers are read whole.")
    for name in added:
        if name in _OWN:
            raise ParameterError(f"extra names {name!r}, which comes from {_OWN[name]}.")
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


class _Post(Protocol):
    def __call__(self, body: Mapping[str, object], /) -> object: ...


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class _Server:
    """Asks a server; a value, which holds no connection between two calls."""

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

    def __repr__(self) -> str:
        """Say what it is, without the key.

        Returns
        -------
        str
            The model and the address.
        """
        return f"OpenAI-compatible completer of {self.model!r} at {self.base_url}"

    @property
    def key(self) -> str:
        """What decides how completions are distributed.

        Returns
        -------
        str
            JSON.
        """
        return json.dumps({"chat": self.is_chat, **self.fields}, sort_keys=True)

    @property
    def url(self) -> str:
        """Where requests go.

        Returns
        -------
        str
            The address.
        """
        return f"{self.base_url}/{'chat/' if self.is_chat else ''}completions"

    def __call__(self, prefixes: list[str], n: int, /) -> list[list[str]]:
        """Ask for the completions of a batch.

        Parameters
        ----------
        prefixes
            The texts.
        n
            Completions of each.

        Returns
        -------
        list[list[str]]
            The completions.

        Raises
        ------
        ParameterError
            When copies would come, or a chat cannot be made of a text.
        """
        from ttsframe.process.annotation._http import Poster

        if n > 1 and self.fields["temperature"] == 0:
            raise ParameterError(
                f"temperature == 0 and {n} completions of each prefix: they would all be the same. "
                "Hint: n_rollouts=1, or a temperature such as 0.7."
            )
        at_most = self.n_per_request or n
        shares = [min(at_most, n - start) for start in range(0, n, at_most)]
        with (
            Poster(
                self.url,
                api_key=self.api_key,
                timeout=self.timeout,
                retries=self.retries,
                backoff=self.backoff,
                shown=self._shown,
            ) as poster,
            ThreadPoolExecutor(self.n_workers, thread_name_prefix="completer") as threads,
        ):
            asked = [
                [threads.submit(self._ask, poster.post, prefix, share) for share in shares]
                for prefix in prefixes
            ]
            everything = [future for futures in asked for future in futures]
            try:
                done, _ = wait(everything, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                poster.stop()
                raise
            return [[text for future in futures for text in future.result()] for futures in asked]

    def _ask(self, post: _Post, prefix: str, n: int) -> list[str]:
        """Ask for completions of one prefix."""
        return self._texts(post({**self.fields, **self._prompt(prefix), "n": n}), n)

    def _prompt(self, prefix: str) -> dict[str, object]:
        """Return what is to be continued."""
        if not self.is_chat:
            return {"prompt": str(prefix)}
        if not isinstance(prefix, Prefix):
            raise ParameterError(
                "chat=True needs to know where the problem ends, and a plain str does not say. Hint: "
                "tts.process.Prefix(context, solution)."
            )
        user = {"role": "user", "content": prefix.context.strip()}
        if not prefix.solution:
            return {"messages": [user]}
        return {
            "messages": [user, {"role": "assistant", "content": prefix.solution}],
            "add_generation_prompt": False,
            "continue_final_message": True,
        }

    def _texts(self, answer: object, n: int) -> list[str]:
        """Read the completions of an answer."""
        choices = answer.get("choices") if isinstance(answer, dict) else None
        if not isinstance(choices, list):
            shown = self._shown(json.dumps(answer))
            raise CompletionError(f"{self.url}: answered without a list 'choices': {shown}.")
        if len(choices) != n:
            raise CompletionError(
                f"{self.url}: returned {len(choices):,} choices, {n:,} were asked for. Hint: "
                "n_per_request=1 for a server that does not know the field 'n'."
            )
        indices = [choice.get("index") if isinstance(choice, dict) else None for choice in choices]
        if sorted(index for index in indices if isinstance(index, int)) == list(range(n)):
            choices = [choices[indices.index(i)] for i in range(n)]
        return [self._text(choice) for choice in choices]

    def _text(self, choice: object) -> str:
        """Read the completion of a choice."""
        held: object = choice
        if self.is_chat:
            held = choice.get("message") if isinstance(choice, dict) else None
        name = "content" if self.is_chat else "text"
        text = held.get(name, ...) if isinstance(held, dict) else ...
        if text is None and self.is_chat:
            return ""
        if not isinstance(text, str):
            where = f"message.{name}" if self.is_chat else name
            raise CompletionError(
                f"{self.url}: returned a choice without a text {where!r}: "
                f"{self._shown(json.dumps(choice))}."
            )
        return text

    def _shown(self, text: str) -> str:
        """Make what the server said fit for a message: short, on one line, without the key."""
        if self.api_key is not None:
            text = text.replace(self.api_key, "***")
        return " ".join(text.split())[:_N_SHOWN]
