"""Connect to a Ray cluster for the time of a job: the connected one, one to join, or a new local one."""

from __future__ import annotations

import logging
import os
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
"""About the minimum of Ray: rows go through files, and only tasks and errors through Ray."""
_SECONDS_TO_CONNECT: Final = 10.0


def require_ray() -> None:
    """Raise if Ray is not installed."""
    if find_spec("ray") is None:
        raise MissingExtraError(
            "the engine 'ray' needs Ray, which is not installed. Hint: python -m pip install "
            '"ttsframe[ray]"'
        )


@contextmanager
def cluster(address: str | None, *, n_cores: int, log_to_driver: bool) -> Iterator[bool]:
    """Connect to a cluster, and yield whether it was started here; such a cluster is ended afterwards."""
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
    environment, handler = dict(os.environ), signal.getsignal(signal.SIGTERM)
    try:
        _check_reachable(given)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(given, **options)
        _restore(environment)
        yield is_own
    except (OSError, RuntimeError, ValueError, ImportError, ray.exceptions.RayError) as error:
        if ray.is_initialized():
            raise
        raise _no_cluster(given, error, is_own=is_own) from error
    finally:
        ray.shutdown()
        _restore(environment)
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray leaves its own


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _check_reachable(address: str) -> None:
    """Raise if nothing listens at host:port, where Ray itself would retry for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), _SECONDS_TO_CONNECT).close()


def _no_cluster(address: str, error: Exception, *, is_own: bool) -> EngineError:
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    if is_own:
        return EngineError(f"no local Ray cluster could be started ({reason}).")
    return EngineError(
        f"the Ray cluster at address {address!r} cannot be reached ({reason}). Hint: 'auto' on a node "
        "of a cluster, 'host:6379' on another node, 'ray://host:10001' from outside, which needs "
        "ray[client]; without an address, a cluster is started on this machine."
    )


def _restore(environment: dict[str, str]) -> None:
    """Restore the environment variables; Ray sets some for its children."""
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    os.environ.update(environment)
