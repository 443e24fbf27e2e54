"""A connection that stays open between requests: httpcore, which httpx is built on, over asyncio's streams.

One asynchronous httpx client for many requests spends its time looking for a free connection among
all; here each slot of a client has its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore

from ttsframe.errors import CompletionError

_MAX_CONNECT_SECONDS: Final = 30.0


class _Stream(httpcore.AsyncNetworkStream):
    """A connected socket; deadlines are the client's, not each read's."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._unsent: list[bytes] = []
        self.n_read = 0

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002, ASYNC109
        if self._unsent:
            await self._flush()
        try:
            data = await self._reader.read(max_bytes)
        except OSError as error:
            raise httpcore.ReadError(str(error)) from error
        self.n_read += len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002, ASYNC109
        # Headers and body leave together when the reply is asked for: one packet, one system call.
        self._unsent.append(buffer)

    async def _flush(self) -> None:
        buffer = b"".join(self._unsent)
        self._unsent.clear()
        # A server may answer and close before it has read all; reading tells which it was.
        with contextlib.suppress(OSError):
            self._writer.write(buffer)
            await self._writer.drain()

    async def aclose(self) -> None:
        self._writer.transport.abort()  # a peer that says no goodbye is not waited for

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002, ASYNC109
    ) -> httpcore.AsyncNetworkStream:
        try:
            await self._writer.start_tls(ssl_context, server_hostname=server_hostname)
        except OSError as error:
            await self.aclose()
            raise httpcore.ConnectError(str(error)) from error
        return self

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401
        if info == "is_readable":  # of an idle connection: the peer has closed it
            return self._reader.at_eof() or self._reader.exception() is not None
        return self._writer.get_extra_info(info)


class _Backend(httpcore.AsyncNetworkBackend):
    """Connects, and remembers the stream."""

    stream: _Stream | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002, ASYNC109
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore.AsyncNetworkStream:
        try:
            async with asyncio.timeout(_MAX_CONNECT_SECONDS):
                self.stream = _Stream(*await asyncio.open_connection(host, port))
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(
                f"no connection within {_MAX_CONNECT_SECONDS:g} seconds"
            ) from error
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        return self.stream


class Connection:
    """One request after another to a server, over a connection that is opened again when it has ended."""

    def __init__(self, base_url: str) -> None:
        self._url = httpcore.URL(base_url)
        self._proxy = _proxy(base_url)
        self._backend = _Backend()
        self._open: httpcore.AsyncHTTPConnection | httpcore.AsyncHTTPProxy | None = None
        self._n_read = 0

    async def send(
        self, url: httpcore.URL, headers: list[tuple[bytes, bytes]], content: bytes
    ) -> httpcore.Response:
        """Post; return the reply when its headers are there. Redirects are replies."""
        opened = self._open
        if isinstance(opened, httpcore.AsyncHTTPConnection) and (
            opened.is_closed() or opened.has_expired()
        ):
            await self.close()
        if self._open is None:
            self._open = self._new()
        self._n_read = self._backend.stream.n_read if self._backend.stream else 0
        request = httpcore.Request("POST", url, headers=headers, content=content)
        return await self._open.handle_async_request(request)

    @property
    def has_begun_reply(self) -> bool:
        """Whether a byte of the reply to the last request has come."""
        stream = self._backend.stream
        return stream is not None and stream.n_read > self._n_read

    async def close(self) -> None:
        """Close; the next request opens it again."""
        opened, self._open = self._open, None
        if opened is not None:
            with contextlib.suppress(Exception):
                await opened.aclose()
        self._backend = _Backend()

    def _new(self) -> httpcore.AsyncHTTPConnection | httpcore.AsyncHTTPProxy:
        context = certificates() if self._url.scheme == b"https" else None
        if self._proxy is None:
            return httpcore.AsyncHTTPConnection(
                self._url.origin, ssl_context=context, network_backend=self._backend
            )
        parts = urlsplit(self._proxy)
        if parts.scheme not in {"http", "https"}:
            raise CompletionError(
                f"the environment names a {parts.scheme} proxy, must be an http proxy. Hint: NO_PROXY names "
                "the servers that need none."
            )
        return httpcore.AsyncHTTPProxy(
            f"{parts.scheme}://{parts.hostname}:{parts.port or 80}",
            proxy_auth=None
            if parts.username is None
            else (parts.username.encode(), (parts.password or "").encode()),
            ssl_context=context,
            max_connections=1,
            network_backend=self._backend,
        )


@lru_cache(maxsize=1)
def certificates() -> ssl.SSLContext:
    """Load the certificates of the system, which takes 20 ms, once."""
    return ssl.create_default_context()


def _proxy(url: str) -> str | None:
    """Return the proxy that the environment names for an address."""
    parts = urlsplit(url)
    proxies = getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all")
    if not found or proxy_bypass(parts.netloc):
        return None
    return found if "://" in found else f"http://{found}"
