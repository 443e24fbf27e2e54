"""Keys that outlive the process: one SQLite file that several processes share.

The file is a convenience, never a source of truth: what cannot be read from it is computed again,
and what it holds is found under the text, the policy and the versions of everything that took part,
so an old file gives no wrong key. A key that depended on a limit of time is never written to it.
"""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["CachedKey", "KeyCache"]

_LAYOUT: Final = 1
_WAIT_SECONDS: Final = 20.0
_BATCH: Final = 500


class CachedKey(NamedTuple):
    """What is kept of an answer.

    Parameters
    ----------
    key
        Canonical key; None where the text is no answer.
    kind
        What the answer was read as.
    """

    key: str | None
    kind: str


class KeyCache:
    """A file of keys.

    Parameters
    ----------
    path
        SQLite file; made, with its folder, when the first key is stored.
    prefix
        Version of policy and code, as at the beginning of the keys.
    """

    def __init__(self, path: Path, prefix: str) -> None:
        self.path = path
        self.namespace = " ".join([prefix, *(_version(name) for name in ("sympy", "latex2sympy2"))])
        self._is_broken = False

    def get(self, answers: Sequence[str]) -> dict[str, CachedKey]:
        """Return what is known of some answers.

        Parameters
        ----------
        answers
            Distinct answers.

        Returns
        -------
        dict[str, CachedKey]
            The known ones; empty where there is no file, or none that can be read.
        """
        if self._is_broken or not self.path.exists():
            return {}
        digests = {self._digest(answer): answer for answer in answers}
        wanted = list(digests)
        found: dict[str, CachedKey] = {}
        try:
            with closing(self._open()) as connection:
                for start in range(0, len(wanted), _BATCH):
                    batch = wanted[start : start + _BATCH]
                    marks = ",".join("?" * len(batch))
                    rows = connection.execute(
                        f"SELECT digest, answer_key, kind FROM keys WHERE digest IN ({marks})",  # noqa: S608 - only question marks
                        batch,
                    )
                    for digest, key, kind in rows:
                        found[digests[digest]] = CachedKey(key, kind)
        except (sqlite3.Error, OSError, KeyError) as error:
            self._give_up(error)
            return {}
        return found

    def put(self, keys: Mapping[str, CachedKey]) -> None:
        """Store keys; those already there stay as they are.

        Parameters
        ----------
        keys
            Final keys of answers.
        """
        if self._is_broken or not keys:
            return
        rows = [(self._digest(answer), *cached) for answer, cached in keys.items()]
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._open()) as connection, connection:
                connection.executemany("INSERT OR IGNORE INTO keys VALUES (?, ?, ?)", rows)
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)

    def _open(self) -> sqlite3.Connection:
        """Open the file; a connection lives no longer than one batch, so forks and threads may."""
        connection = sqlite3.connect(self.path, timeout=_WAIT_SECONDS)
        try:
            _prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _digest(self, answer: str) -> bytes:
        """Return the name of an answer in the file: text, policy and versions together."""
        text = f"{self.namespace}\0{answer}".encode(errors="surrogatepass")
        return blake2b(text, digest_size=20).digest()

    def _give_up(self, error: Exception) -> None:
        """Do without the file from now on, and say so."""
        self._is_broken = True
        warnings.warn(
            f"the key cache {self.path} cannot be used, so keys are computed: {error}. "
            "Hint: delete the file, or name another one.",
            RuntimeWarning,
            stacklevel=2,
        )


def _prepare(connection: sqlite3.Connection) -> None:
    """Lay the file out where it is new; raise where something else has."""
    layout = connection.execute("PRAGMA user_version").fetchone()[0]
    if layout not in {0, _LAYOUT}:
        raise sqlite3.DatabaseError(f"its layout is {layout}, expected {_LAYOUT}")
    if layout == 0:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS keys "
            "(digest BLOB PRIMARY KEY, answer_key TEXT, kind TEXT NOT NULL) WITHOUT ROWID"
        )
        connection.execute(f"PRAGMA user_version={_LAYOUT}")
    connection.execute("PRAGMA synchronous=NORMAL")


def _version(name: str) -> str:
    """Return the version of a package, which may change what the workers answer."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"{name}={version(name)}"
    except PackageNotFoundError:
        return f"{name}=none"
