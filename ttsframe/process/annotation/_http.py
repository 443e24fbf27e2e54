"""Requests to one address on the standard library: tried again where that can help, and stopped at once.

A client of a server of completions needs three things that `urllib.request.urlopen` lacks: it must not
follow a redirect with the key, it must end however slowly an answer drips in, and an interrupt must
not wait for the completions under way, which take minutes. All three are small; another package for
them would be one more to install.
"""

from __future__ import annotations

import contextlib
import email.utils
import http.client
import json
import random
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Final, Self, TypeAlias
from weakref import WeakSet

from ttsframe.errors import CompletionError

_TRIED_AGAIN: Final = {408, 409, 429, *range(500, 600)}
_LONGEST_CONNECT: Final = 30.0
_LONGEST_BACKOFF: Final = 60.0
_LONGEST_WAIT: Final = 600.0
"""Seconds; what a server asks for beyond that is not waited for."""
_LARGEST: Final = 1 << 29
"""Bytes of an answer; a server that sends more is broken."""
_CHUNK: Final = 1 << 16
_HINTS: Final = {
    400: "the server's own words are above; a model may have no chat template, or a smaller context.",
    401: "api_key='...' is sent as a bearer token.",
    403: "api_key='...' is sent as a bearer token.",
    404: "base_url ends in /v1 with most servers, and model must be a name that the server knows.",
    422: "the server's own words are above.",
    429: "fewer requests at once: n_workers.",
}


_Watch: TypeAlias = Callable[[socket.socket], None]


class _StoppedError(Exception):
    """The other requests of the batch are of no use any more."""


class Poster:
    """Posts JSON to one address, from several threads; a block at whose end nothing is left open.

    Parameters
    ----------
    url
        The address.
    api_key
        Sent as a bearer token, and never shown; None: nothing is sent.
    timeout
        Seconds that one try may take.
    retries
        How often a request is tried again.
    backoff
        Seconds before the first of these; they double.
    shown
        Makes what the server said fit for a message.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None,
        timeout: float,
        retries: int,
        backoff: float,
        shown: Callable[[str], str],
    ) -> None:
        self._url = url
        self._api_key = api_key
        self._timeout = timeout
        self._retries = retries
        self._backoff = backoff
        self._shown = shown
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._opener = urllib.request.build_opener(
            _SameAddress, _Http(self._watch), _Https(self._watch)
        )

    def __enter__(self) -> Self:
        """Begin.

        Returns
        -------
        Self
            The poster.
        """
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End, and what is under way with it."""
        self.stop()

    def stop(self) -> None:
        """Break off what is under way; the server stops writing what nobody will read."""
        self._stopped.set()
        with self._lock:
            for connected in self._sockets:
                with contextlib.suppress(OSError):
                    connected.shutdown(socket.SHUT_RDWR)

    def post(self, body: Mapping[str, object]) -> object:
        """Post a request until it is answered.

        Parameters
        ----------
        body
            What to send as JSON.

        Returns
        -------
        object
            The JSON of the answer.

        Raises
        ------
        CompletionError
            When it is refused, or failed as often as it may.
        _StoppedError
            When nobody waits for it any more.
        """
        sent = json.dumps(body).encode()
        n_failed = 0
        while True:
            answer = self._try(sent)
            if isinstance(answer, bytes):
                return self._read(answer)
            if not answer.is_tried_again or n_failed == self._retries:
                tries = "" if n_failed == 0 else f" ({n_failed + 1} tries)"
                raise CompletionError(f"{self._url}: {answer.what}{tries}.{answer.hint}")
            wait = answer.wait
            if wait is None:
                wait = min(self._backoff * 2.0 ** min(n_failed, 30), _LONGEST_BACKOFF)
                # requests that failed together do not come back together
                wait *= random.uniform(0.5, 1.0)  # noqa: S311 - no secret hangs on it
            if self._stopped.wait(wait):
                raise _StoppedError
            n_failed += 1

    def _try(self, sent: bytes) -> bytes | _Failure:
        """Post a request once."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._api_key is not None:
            headers["Authorization"] = f"Bearer {self._api_key}"
        request = urllib.request.Request(self._url, sent, headers, method="POST")  # noqa: S310 - http(s) alone gets here
        deadline = time.monotonic() + self._timeout
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                return self._all_of(response, deadline)
        except urllib.error.HTTPError as error:
            with error:
                return self._refused(error)
        except (OSError, http.client.HTTPException) as error:
            if self._stopped.is_set():
                raise _StoppedError from error
            return _unreached(error, self._timeout)

    def _refused(self, error: urllib.error.HTTPError) -> _Failure:
        """Describe an answer that is an error."""
        words = ""
        with contextlib.suppress(OSError, http.client.HTTPException):
            words = error.read(_CHUNK).decode("utf-8", "replace")
        words = self._shown(words)
        hint = _HINTS.get(error.code, "")
        if 300 <= error.code < 400:
            hint = "a redirect is not followed, because the key would go with it: name its target."
        wait = _asked_to_wait(error.headers.get("Retry-After"))
        return _Failure(
            f"answered {error.code} {self._shown(str(error.reason))}{': ' if words else ''}{words}",
            is_tried_again=error.code in _TRIED_AGAIN and (wait or 0.0) <= _LONGEST_WAIT,
            wait=wait,
            hint=f" Hint: {hint}" if hint else "",
        )

    def _read(self, answer: bytes) -> object:
        """Read the JSON of an answer."""
        try:
            return json.loads(answer)
        except (ValueError, RecursionError) as error:
            start = self._shown(answer[:_CHUNK].decode("utf-8", "replace"))
            raise CompletionError(
                f"{self._url}: answered what is no JSON ({error}), but begins {start!r}. Hint: is this "
                "the address of an OpenAI-compatible server?"
            ) from error

    def _all_of(self, response: http.client.HTTPResponse, deadline: float) -> bytes:
        """Read an answer, however slowly it comes, up to a time and a size."""
        pieces: list[bytes] = []
        n_bytes, n_left = 0, response.length
        while n_left is None or n_left > 0:
            piece = response.read1(_CHUNK if n_left is None else min(n_left, _CHUNK))
            if not piece:
                break
            pieces.append(piece)
            n_bytes += len(piece)
            n_left = None if n_left is None else n_left - len(piece)
            if time.monotonic() > deadline:
                raise TimeoutError
            if n_bytes > _LARGEST:
                raise CompletionError(
                    f"{self._url}: answered with more than {_LARGEST:,} bytes. Hint: max_tokens, "
                    "n_per_request."
                )
        if n_left:
            raise http.client.IncompleteRead(b"", n_left)
        return b"".join(pieces)

    def _watch(self, connected: socket.socket) -> None:
        """Know a socket that a request waits at."""
        with self._lock:
            self._sockets.add(connected)
        if self._stopped.is_set():
            connected.close()
            raise _StoppedError


class _Failure:
    """Why a try failed, and whether another one may not.

    Parameters
    ----------
    what
        What happened.
    is_tried_again
        Whether to try again.
    wait
        Seconds that the server asks to wait; None: it does not.
    hint
        The way out.
    """

    def __init__(
        self, what: str, *, is_tried_again: bool, wait: float | None = None, hint: str = ""
    ) -> None:
        self.what = what
        self.is_tried_again = is_tried_again
        self.wait = wait
        self.hint = hint


class _SameAddress(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: urllib would send the key to wherever it points."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


class _Http(urllib.request.HTTPHandler):
    """Opens connections that are watched."""

    def __init__(self, watch: _Watch) -> None:
        super().__init__()
        self._watch = watch

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_watched(http.client.HTTPConnection, self._watch), req)


class _Https(urllib.request.HTTPSHandler):
    """The same with encryption, with the certificates of the system."""

    def __init__(self, watch: _Watch) -> None:
        super().__init__()
        self._watch = watch

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_watched(http.client.HTTPSConnection, self._watch), req)


def _watched(
    kind: type[http.client.HTTPConnection], watch: _Watch
) -> Callable[..., http.client.HTTPConnection]:
    """Return a kind of connection that gives up early where nobody answers, and shows its socket."""

    class Watched(kind):  # type: ignore[misc,valid-type]
        timeout: float

        def connect(self) -> None:
            whole = self.timeout
            self.timeout = min(whole, _LONGEST_CONNECT)
            super().connect()
            self.sock.settimeout(whole)
            watch(self.sock)

    return Watched


def _unreached(error: OSError | http.client.HTTPException, timeout: float) -> _Failure:
    """Describe a connection that failed."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, TimeoutError):
        return _Failure(
            f"did not answer within {timeout:g} seconds",
            is_tried_again=True,
            hint=" Hint: timeout must suffice for all the completions of one request; max_tokens, "
            "n_per_request and n_workers make them shorter.",
        )
    hint = ""
    if isinstance(reason, ConnectionError):
        hint = " Hint: start the server, or look at base_url."
    if isinstance(reason, ssl.SSLCertVerificationError):
        hint = " Hint: SSL_CERT_FILE names the certificates to trust."
    return _Failure(
        f"could not be reached ({str(reason) or type(reason).__name__})",
        is_tried_again=not isinstance(reason, ssl.SSLCertVerificationError),
        hint=hint,
    )


def _asked_to_wait(header: str | None) -> float | None:
    """Read how many seconds the server asks to wait: a number, or a date."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        at = email.utils.parsedate_to_datetime(header)
    except ValueError:
        return None
    now = datetime.now(UTC)
    return max(0.0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds())
