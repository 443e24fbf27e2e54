"""A Ray cluster for the time of a job: the one that is there, one that is joined, or an own small one."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Final

from ttsframe.errors import EngineError, MissingExtraError

__all__ = ["available_cores", "cluster", "require_ray"]

_OBJECT_STORE_BYTES: Final = 80 << 20
"""Near the least that Ray takes: rows go through files, and only tasks and errors through Ray."""

_HOST_AND_PORT: Final = re.compile(r"(ray://)?(?P<host>[^/]+):(?P<port>\d{1,5})")
_KNOCK: Final = 10.0


def require_ray() -> None:
    """Raise where Ray is not installed.

    Raises
    ------
    MissingExtraError
        When it is not.
    """
    if find_spec("ray") is None:
        raise MissingExtraError(
            "the engine 'ray' needs Ray, which is not installed. Hint: python -m pip install "
            '"ttsframe[ray]"'
        )


@contextmanager
def cluster(address: str | None, *, n_cores: int, log_to_driver: bool) -> Iterator[bool]:
    """Be connected to a cluster; end what was started and leave what was joined.

    Parameters
    ----------
    address
        What Ray takes as an address; None: that of the environment variable RAY_ADDRESS, else none,
        and a cluster is started on this machine.
    n_cores
        Cores of a cluster that is started.
    log_to_driver
        Whether to show what workers print.

    Yields
    ------
    bool
        Whether the cluster was started here.

    Raises
    ------
    EngineError
        When it cannot be started or reached.
    """
    import ray

    if ray.is_initialized():
        yield False
        return
    given = address or os.environ.get("RAY_ADDRESS") or "local"
    is_own = given == "local"
    options: dict[str, Any] = {"log_to_driver": log_to_driver, "logging_level": logging.ERROR}
    if is_own:
        options |= {
            "num_cpus": n_cores,
            "include_dashboard": False,
            "object_store_memory": _OBJECT_STORE_BYTES,
            "_node_ip_address": "127.0.0.1",
        }
    with _handler_undone():
        try:
            if not is_own:
                _knock(given)
            with _variables_undone():
                os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
                ray.init(given, **options)
        except (OSError, RuntimeError, ValueError, ImportError, ray.exceptions.RayError) as error:
            ray.shutdown()
            failure = _no_cluster(given, error, is_own=is_own)
            raise failure from error
        try:
            yield is_own
        finally:
            ray.shutdown()


def available_cores() -> int:
    """Return the number of cores that this process may use.

    Returns
    -------
    int
        At least 1.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _knock(address: str) -> None:
    """Raise where nothing listens; Ray itself tries for minutes."""
    found = _HOST_AND_PORT.fullmatch(address)
    if found is not None:
        socket.create_connection((found["host"].strip("[]"), int(found["port"])), _KNOCK).close()


def _no_cluster(address: str, error: Exception, *, is_own: bool) -> EngineError:
    """Say which cluster cannot be had."""
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    if is_own:
        return EngineError(f"no local Ray cluster could be started ({reason}).")
    return EngineError(
        f"the Ray cluster at address {address!r} cannot be reached ({reason}). Hint: 'auto' on a node "
        "of a cluster, 'host:6379' on another node, 'ray://host:10001' from outside, which needs "
        "ray[client]; without an address, a cluster is started on this machine."
    )


@contextmanager
def _variables_undone() -> Iterator[None]:
    """Take back what happens to environment variables in the block; children keep theirs."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def _handler_undone() -> Iterator[None]:
    """Take back Ray's handler of SIGTERM, which it leaves behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
