"""What generators and reward models on servers share: a client, its counts, and its end."""

from __future__ import annotations

import warnings
from typing import TypedDict

from ttsframe._checks import check_between, check_positive
from ttsframe._http import ServerSettings, Usage, check_address, check_api_key, require_httpx
from ttsframe._http.usage import Lost
from ttsframe.errors import ParameterError, ParameterTypeError

__all__ = ["Usage"]


class Service:
    """A server that a search asks."""

    kind = "server"

    def __init__(self, model: str, settings: ServerSettings) -> None:
        from ttsframe._http.client import Client

        self._model = model
        self._settings = settings
        self._client = Client(settings, name=f"ttsframe-{self.kind}")

    def __repr__(self) -> str:
        """Return what it is and the address, without the key."""
        model = f" of {self._model!r}" if self._model else ""
        return f"{type(self).__name__}{model} at {self._settings.base_url}"

    @property
    def usage(self) -> Usage:
        """Requests and tokens so far."""
        return self._client.usage

    def end_search(self) -> None:
        """Close the connections, and say what was lost; a search calls this at its end."""
        self._client.close()
        usage = self._client.usage
        n_lost, self._n_told = usage.n_lost, getattr(self, "_n_told", 0)
        if n_lost > self._n_told:
            lost = ", ".join(f"{n:,} {reason}" for reason, n in usage.lost.most_common(5))
            reasons = self._settings.without_key(lost)
            warnings.warn(
                f"{self._settings.base_url}: gave up {n_lost:,} of {usage.n_requests:,} requests ({reasons}). "
                f"{self._said_of_lost}",
                UserWarning,
                stacklevel=2,
            )
        self._n_told = n_lost

    _said_of_lost = "Their texts have no score."

    def _error(self, path: str, reason: str) -> str:
        return f"{self._settings.base_url}{path}: {reason}"


class ServerOptions(TypedDict, total=False):
    """Options of every server; `server_settings` has the defaults."""

    api_key: str | None
    n_workers: int
    timeout: float
    retries: int
    backoff: float
    max_lost: float


def server_settings(
    who: str,
    base_url: str,
    *,
    repeats_lost: bool,
    drops_v1: bool = False,
    api_key: str | None = None,
    n_workers: int = 64,
    timeout: float = 600.0,
    retries: int = 5,
    backoff: float = 1.0,
    max_lost: float = 0.1,
) -> ServerSettings:
    """Check the parameters that all servers share."""
    require_httpx(who)
    address = check_address(base_url)
    if drops_v1:  # the route stands beside /v1, whose address people have at hand
        address = address.removesuffix("/v1")
    check_api_key(api_key)
    check_positive(n_workers, "n_workers")
    if retries:
        check_positive(retries, "retries")
    check_between(timeout, "timeout", 0.001, 86_400.0)
    check_between(backoff, "backoff", 0.0, 86_400.0)
    check_between(max_lost, "max_lost", 0.0, 1.0)
    return ServerSettings(
        base_url=address,
        api_key=api_key,
        timeout=float(timeout),
        retries=retries,
        backoff=float(backoff),
        n_workers=n_workers,
        repeats_lost=repeats_lost,
        max_lost=max_lost,
    )


def check_text(value: object, name: str) -> str:
    """Check that a parameter is a text that is not empty."""
    if not isinstance(value, str):
        raise ParameterTypeError(f"{name} is a {type(value).__name__}, must be a str.")
    if not value:
        raise ParameterError(f"{name} is empty.")
    return value


def lost_reason(lost: Lost) -> str:
    """Return the word of `nodes` for a request that was given up."""
    return "length" if lost.kind == "too_long" else "error"
