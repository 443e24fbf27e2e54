"""POST requests to one server: concurrent, repeated where that changes no sample, and cancelled at once."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Self, TypeAlias, TypeVar
from urllib.parse import urlsplit

import httpcore

from ttsframe._http.connection import Connection
from ttsframe._http.failures import Failure, refusal, timed_out, unreachable
from ttsframe._http.settings import ServerSettings
from ttsframe._http.usage import Lost, Usage
from ttsframe._waits import join, result_of
from ttsframe.errors import CompletionError

ResultT = TypeVar("ResultT")
Body: TypeAlias = Mapping[str, object]

_MAX_BACKOFF_SECONDS: Final = 60.0
_MAX_ERROR_BYTES: Final = 1 << 16
_N_LOST_FREELY: Final = 3


class Client:
    """A client with a thread of its own, so that no work of the caller delays a request or a deadline.

    It begins with the first request and ends with `close`; it can begin again.
    """

    def __init__(
        self, settings: ServerSettings, *, name: str = "client", usage: Usage | None = None
    ) -> None:
        self.settings = settings
        self.usage = Usage() if usage is None else usage
        self._name = name
        self._lock = threading.Lock()
        self._failure: CompletionError | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._slots: asyncio.LifoQueue[Connection]
        self._connections: list[Connection]
        key = settings.api_key
        # A compressed reply could be small on the wire and large in memory.
        self._headers = [
            (b"Host", urlsplit(settings.base_url).netloc.encode()),
            (b"Content-Type", b"application/json"),
            (b"Accept", b"application/json"),
            (b"Accept-Encoding", b"identity"),
            *([] if key is None else [(b"Authorization", f"Bearer {key}".encode())]),
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send_all(
        self,
        path: str,
        bodies: Sequence[Body],
        read: Callable[[int, object], ResultT],
        lose: Callable[[int, Lost], ResultT] | None = None,
    ) -> list[ResultT]:
        """Post all bodies and read each reply, given its number; the first error cancels the rest."""
        future = self._submit(self._send_all(path, bodies, read, lose))
        try:
            return result_of(future)
        except BaseException:
            future.cancel()
            raise

    async def send_all_async(
        self,
        path: str,
        bodies: Sequence[Body],
        read: Callable[[int, object], ResultT],
        lose: Callable[[int, Lost], ResultT] | None = None,
    ) -> list[ResultT]:
        """Post as `send_all` does, from any loop; `lose` makes a result of a request that was given up."""
        return await asyncio.wrap_future(self._submit(self._send_all(path, bodies, read, lose)))

    def close(self) -> None:
        """Cancel what is under way and close the connections, without waiting for a server."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            join(thread)

    def _submit(self, work: Coroutine[Any, Any, ResultT]) -> Future[ResultT]:
        with self._lock:
            if self._loop is None:
                self._failure = None
                self._connections = [
                    Connection(self.settings.base_url) for _ in range(self.settings.n_workers)
                ]
                # The one on top was used last, and has the best chance to be open.
                self._slots = asyncio.LifoQueue()
                for connection in self._connections:
                    self._slots.put_nowait(connection)
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._run, args=(self._loop,), name=self._name, daemon=True
                )
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.get_loop()
            loop.run_forever()
            runner.run(self._end())

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in self._connections:
            await connection.close()
        await asyncio.sleep(0)  # sockets close in the next turn of the loop

    async def _send_all(
        self,
        path: str,
        bodies: Sequence[Body],
        read: Callable[[int, object], ResultT],
        lose: Callable[[int, Lost], ResultT] | None,
    ) -> list[ResultT]:
        url = f"{self.settings.base_url}{path}"
        results: dict[int, ResultT] = {}
        numbers = iter(range(len(bodies)))

        async def work() -> None:
            for number in numbers:
                try:
                    reply = await self._send(url, bodies[number], can_lose=lose is not None)
                    if isinstance(reply, _Reply):
                        results[number] = self._read(read, number, reply.value)
                    elif lose is not None:
                        results[number] = lose(number, reply)
                except CompletionError as error:
                    self._failure = error
                    raise
                except RecursionError:
                    self._failure = CompletionError(f"{url}: the answer is nested too deeply.")
                    raise self._failure from None

        n_tasks = min(len(bodies), self.settings.n_workers)
        tasks = [asyncio.create_task(work()) for _ in range(n_tasks)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return [results[number] for number in range(len(bodies))]

    def _read(self, read: Callable[[int, object], ResultT], number: int, value: object) -> ResultT:
        """Read an answer; an error quotes it without the key, which a server may send back."""
        try:
            return read(number, value)
        except CompletionError as error:
            raise CompletionError(self.settings.without_key(str(error))) from None

    async def _send(self, url: str, body: Body, *, can_lose: bool) -> _Reply | Lost:
        """Post a body until it is answered, refused, given up, or has failed too often."""
        content = json.dumps(body).encode()
        settings = self.settings
        connection = await self._slots.get()
        n_failed = 0
        try:
            if self._failure is not None:  # no more is asked before the caller has heard of it
                raise self._failure
            while True:
                reply = await self._try(connection, url, content)
                if isinstance(reply, _Reply):
                    self.usage.n_requests += 1
                    return reply
                await connection.close()
                is_lost = reply.kind in {"lost", "too_long"}
                is_repeated = reply.kind == "unsent" or (
                    reply.kind == "lost" and settings.repeats_lost
                )
                if not is_repeated or n_failed == settings.retries:
                    tries = "" if n_failed == 0 else f" ({n_failed + 1} tries)"
                    said = f"{url}: {reply.reason}{tries}."
                    hint = f" Hint: {reply.hint}" if reply.hint else ""
                    if can_lose and is_lost:
                        return self._lose(reply, said)
                    raise CompletionError(said + hint)
                self.usage.retries[reply.label] += 1
                await asyncio.sleep(self._pause(reply, n_failed))
                n_failed += 1
        finally:
            self._slots.put_nowait(connection)

    def _pause(self, failure: Failure, n_failed: int) -> float:
        """Return the seconds to wait before the next try."""
        if failure.retry_after is not None:
            return failure.retry_after
        pause = min(self.settings.backoff * 2.0 ** min(n_failed, 30), _MAX_BACKOFF_SECONDS)
        # Requests that failed together must not come back together.
        return pause * random.uniform(0.5, 1.0)  # noqa: S311 - no secret depends on it

    def _lose(self, failure: Failure, said: str) -> Lost:
        """Count a request that is given up; too many of them end the work."""
        usage = self.usage
        usage.n_requests += 1
        usage.lost[failure.label] += 1
        n_answered = usage.n_requests - usage.n_lost
        share = self.settings.max_lost
        if usage.n_lost > _N_LOST_FREELY and usage.n_lost > share * (n_answered + usage.n_lost):
            why = (
                ""
                if self.settings.repeats_lost
                else " They are not repeated, because that would favor short texts."
            )
            raise CompletionError(
                f"{said} {usage.n_lost:,} of {usage.n_requests:,} requests were given up, at most "
                f"{share:.0%} may be.{why} Hint: a longer timeout, shorter texts (max_tokens) or fewer "
                "n_workers help; max_lost allows more."
            )
        return Lost("too_long" if failure.kind == "too_long" else "failed", said)

    async def _try(self, connection: Connection, url: str, content: bytes) -> _Reply | Failure:
        """Post once; the time limit covers the connection, the headers and the body together."""
        headers = [
            *self._headers,
            (b"Content-Length", str(len(content)).encode()),
        ]
        is_whole = False
        try:
            async with asyncio.timeout(self.settings.timeout):
                response = await connection.send(_parsed_url(url), headers, content)
                is_good = 200 <= response.status < 300
                limit = self.settings.max_reply_bytes if is_good else _MAX_ERROR_BYTES
                body = bytearray()
                async for chunk in response.aiter_stream():
                    body += chunk
                    if len(body) > limit:
                        break
                else:
                    is_whole = True
                    await response.aclose()
        except TimeoutError:
            return timed_out(self.settings.timeout)
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
            return unreachable(error, has_begun_reply=connection.has_begun_reply)
        finally:
            if not is_whole:
                await connection.close()
        if is_good and not is_whole:
            raise CompletionError(
                f"{url}: answered with more than {limit:,} bytes. Hint: reduce max_tokens or n_per_request."
            )
        if not is_good:
            found = {name.lower(): value for name, value in response.headers}
            phrase = response.extensions.get("reason_phrase", b"").decode("latin-1")
            wait = found.get(b"retry-after")
            return refusal(
                response.status,
                phrase,
                None if wait is None else wait.decode("latin-1"),
                body[:_MAX_ERROR_BYTES].decode("utf-8", "replace"),
                self.settings.redact,
            )
        return self._parsed(url, bytes(body))

    def _parsed(self, url: str, reply: bytes) -> _Reply | Failure:
        try:
            return _Reply(json.loads(reply))
        except (ValueError, RecursionError) as error:
            start = self.settings.redact(reply[:_MAX_ERROR_BYTES].decode("utf-8", "replace"))
            reason = f"the answer is not JSON ({error}); it begins {start!r}"
            if self.usage.n_requests > self.usage.n_lost:
                return Failure("lost", "no JSON", reason)
            # The first answer: this is no server of the kind that is asked for.
            raise CompletionError(
                f"{url}: {reason}. Hint: is this the address of an OpenAI-compatible server?"
            ) from error


@lru_cache(maxsize=64)
def _parsed_url(url: str) -> httpcore.URL:
    return httpcore.URL(url)


@dataclass(frozen=True)
class _Reply:
    """A reply, read as JSON."""

    value: object
