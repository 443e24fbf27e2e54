"""POST requests to one address with httpx: concurrent, retried where that can help, and cancelled at once."""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import json
import os
import random
import ssl
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

import httpx

from ttsframe.errors import CompletionError

ResultT = TypeVar("ResultT")

_RETRIED: Final = {408, 409, 425, 429, *range(500, 600)}
_MAX_CONNECT_SECONDS: Final = 30.0
_MAX_BACKOFF_SECONDS: Final = 60.0
_MAX_RETRY_AFTER_SECONDS: Final = 600.0
"""A server that asks for a longer wait is given up."""
_MAX_REPLY_BYTES: Final = 1 << 29
_MAX_ERROR_BYTES: Final = 1 << 16
_HINTS: Final = {
    400: "the server's message is above; the model may have no chat template, or a smaller context.",
    401: "api_key='...' is sent as a bearer token.",
    403: "api_key='...' is sent as a bearer token.",
    404: "base_url ends in /v1 with most servers, and model must be a name that the server knows.",
    422: "the server's message is above.",
    429: "reduce the number of concurrent requests: n_workers.",
}


class _Failure(NamedTuple):
    """Why a request failed, and whether another try can help."""

    reason: str
    is_retried: bool
    retry_after: float | None = None
    hint: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class Poster:
    """Posts JSON to one address; `redact` makes a text of the server fit for a message."""

    url: str
    api_key: str | None
    timeout: float
    retries: int
    backoff: float
    n_workers: int
    redact: Callable[[str], str]

    def post_all(
        self, bodies: Sequence[Mapping[str, object]], read: Callable[[int, object], ResultT]
    ) -> list[ResultT]:
        """Post all bodies and read each reply, given its number; the first error cancels the rest."""
        return _run_in_thread(self._post_all(bodies, read))

    async def _post_all(
        self, bodies: Sequence[Mapping[str, object]], read: Callable[[int, object], ResultT]
    ) -> list[ResultT]:
        slots = asyncio.Semaphore(self.n_workers)
        async with self._client() as client:

            async def post(number: int, body: Mapping[str, object]) -> ResultT:
                async with slots:
                    return read(number, await self._post(client, body))

            tasks = [asyncio.create_task(post(i, body)) for i, body in enumerate(bodies)]
            try:
                return await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def _client(self) -> httpx.AsyncClient:
        """Return a client that reuses connections, trusts the system's certificates and follows no redirect."""
        # A compressed reply could be small on the wire and large in memory.
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        }
        if self.api_key is not None:
            headers["Authorization"] = f"Bearer {self.api_key}"
        return httpx.AsyncClient(
            headers=headers,
            verify=_certificates(),
            follow_redirects=False,  # the key would go with it
            timeout=httpx.Timeout(None, connect=_MAX_CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=self.n_workers),
        )

    async def _post(self, client: httpx.AsyncClient, body: Mapping[str, object]) -> object:
        """Post a body until it is answered, refused, or has failed too often."""
        content = json.dumps(body).encode()
        n_failed = 0
        while True:
            reply = await self._try(client, content)
            if isinstance(reply, bytes):
                return self._json(reply)
            if not reply.is_retried or n_failed == self.retries:
                tries = "" if n_failed == 0 else f" ({n_failed + 1} tries)"
                hint = f" Hint: {reply.hint}" if reply.hint else ""
                raise CompletionError(f"{self.url}: {reply.reason}{tries}.{hint}")
            pause = reply.retry_after
            if pause is None:
                pause = min(self.backoff * 2.0 ** min(n_failed, 30), _MAX_BACKOFF_SECONDS)
                # Requests that failed together must not come back together.
                pause *= random.uniform(0.5, 1.0)  # noqa: S311 - no secret depends on it
            await asyncio.sleep(pause)
            n_failed += 1

    async def _try(self, client: httpx.AsyncClient, content: bytes) -> bytes | _Failure:
        """Post once; the time limit covers the connection, the headers and the body together."""
        try:
            async with (
                asyncio.timeout(self.timeout),
                client.stream("POST", self.url, content=content) as response,
            ):
                if response.is_success:
                    return await self._body(response)
                return await self._refusal(response)
        except TimeoutError:
            return _Failure(
                f"did not answer within {self.timeout:g} seconds",
                is_retried=True,
                hint="timeout must cover all completions of one request; a smaller max_tokens, "
                "n_per_request or n_workers makes requests shorter.",
            )
        except httpx.RequestError as error:
            return _unreachable(error)

    async def _body(self, response: httpx.Response) -> bytes:
        """Read a reply up to the largest size."""
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > _MAX_REPLY_BYTES:
                raise CompletionError(
                    f"{self.url}: answered with more than {_MAX_REPLY_BYTES:,} bytes. Hint: reduce "
                    "max_tokens or n_per_request."
                )
        return bytes(body)

    async def _refusal(self, response: httpx.Response) -> _Failure:
        """Describe a reply whose status is not 2xx."""
        body = bytearray()
        with contextlib.suppress(httpx.RequestError):
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) >= _MAX_ERROR_BYTES:
                    break
        message = self.redact(body[:_MAX_ERROR_BYTES].decode("utf-8", "replace"))
        hint = _HINTS.get(response.status_code, "")
        if response.is_redirect:
            hint = (
                "redirects are not followed, because the key would be sent along; use the target."
            )
        retry_after = _retry_after(response.headers.get("Retry-After"))
        is_short = retry_after is None or retry_after <= _MAX_RETRY_AFTER_SECONDS
        return _Failure(
            f"answered {response.status_code} {self.redact(response.reason_phrase)}"
            f"{': ' if message else ''}{message}",
            is_retried=response.status_code in _RETRIED and is_short,
            retry_after=retry_after,
            hint=hint,
        )

    def _json(self, reply: bytes) -> object:
        try:
            return json.loads(reply)
        except (ValueError, RecursionError) as error:
            start = self.redact(reply[:_MAX_ERROR_BYTES].decode("utf-8", "replace"))
            raise CompletionError(
                f"{self.url}: the answer is not JSON ({error}); it begins {start!r}. Hint: is this the "
                "address of an OpenAI-compatible server?"
            ) from error


@lru_cache(maxsize=1)
def _certificates() -> ssl.SSLContext:
    """Load the certificates of the system, which takes 20 ms, once."""
    return ssl.create_default_context()


def _unreachable(error: httpx.RequestError) -> _Failure:
    """Describe a connection that failed."""
    if isinstance(error, httpx.ConnectTimeout):
        limit = f"no connection within {_MAX_CONNECT_SECONDS:g} seconds"
        return _Failure(f"could not be reached ({limit})", is_retried=True, hint="check base_url.")
    cause = _innermost(error)
    reason = str(cause) or type(cause).__name__
    hint = ""
    if isinstance(cause, ConnectionError):
        reason = os.strerror(cause.errno) if cause.errno else reason
        hint = "start the server, or check base_url."
    is_untrusted = isinstance(cause, ssl.SSLCertVerificationError)
    if is_untrusted:
        hint = "set SSL_CERT_FILE to a file with the certificates to trust."
    return _Failure(f"could not be reached ({reason})", is_retried=not is_untrusted, hint=hint)


def _innermost(error: BaseException) -> BaseException:
    """Return the first error of a chain, of several addresses that of the first."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause.exceptions[0] if isinstance(cause, BaseExceptionGroup) else cause
    return error


def _retry_after(header: str | None) -> float | None:
    """Read how many seconds the server asks to wait: a number or a date."""
    if header is None:
        return None
    with contextlib.suppress(ValueError):
        return max(0.0, float(header))
    try:
        date = email.utils.parsedate_to_datetime(header)
    except ValueError:
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())


def _run_in_thread(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine in a thread, since a notebook has a running loop in this one; an interrupt cancels it."""
    cancel: Future[Callable[[], object]] = Future()

    async def cancellable() -> ResultT:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if task is not None:
            cancel.set_result(lambda: loop.call_soon_threadsafe(task.cancel))
        return await work

    with ThreadPoolExecutor(1, thread_name_prefix="completer") as thread:
        result = thread.submit(asyncio.run, cancellable())
        try:
            return result.result()
        except BaseException:
            if not result.done():
                with contextlib.suppress(RuntimeError):  # it has ended since
                    cancel.result()()
            raise
