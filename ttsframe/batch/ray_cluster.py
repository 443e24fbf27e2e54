"""Connect to a Ray cluster for the time of a job: the connected one, one to join, or a new local one."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from ttsframe._files import open_own, remove_folder
from ttsframe.errors import EngineError, MissingExtraError

__all__ = ["available_cores", "cluster", "require_ray"]

_OBJECT_STORE_BYTES: Final = 80 << 20
"""About the minimum of Ray: rows go through files, and only tasks and errors through Ray."""
_SECONDS_TO_CONNECT: Final = 10.0
_PREFIX: Final = "tts-ray-"
_LONGEST_FOLDER: Final = 35
"""Sockets below it have names of 64 bytes more, of at most 103 on some systems."""


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
    with _own_folder() if is_own else contextlib.nullcontext() as folder:
        try:
            _start(given, options | ({} if folder is None else {"_temp_dir": folder}))
            _restore(environment)
            yield is_own
        finally:
            ray.shutdown()
            _restore(environment)
            if handler is not None and threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, handler)  # Ray leaves its own


def _start(address: str, options: dict[str, Any]) -> None:
    """Join or start a cluster."""
    import ray

    try:
        _check_reachable(address)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(address, **options)
    except Exception as error:
        # Of any class: Ray raises plain exceptions where its processes do not start.
        raise _no_cluster(address, error, is_own=address == "local") from error


@contextmanager
def _own_folder() -> Iterator[str | None]:
    """Make a folder for the sessions of a cluster, which Ray would leave, and remove those of killed processes."""
    base = Path(os.environ.get("RAY_TMPDIR") or tempfile.gettempdir()).absolute()
    try:
        import fcntl
    except ImportError:  # Windows
        yield None
        return
    for left in base.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            handle = os.open(left / "lock", os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_folder(left)
            finally:
                os.close(handle)
    if len(str(base / _PREFIX)) + 8 > _LONGEST_FOLDER or not os.access(base, os.W_OK):
        yield None
        return
    folder = tempfile.mkdtemp(prefix=_PREFIX, dir=base)
    handle = open_own(Path(folder, "lock"), os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield folder
    finally:
        remove_folder(Path(folder))
        os.close(handle)


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
