"""Tables of keys, one for each policy and process, each answer worked on once by one thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from itertools import islice
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from ttsframe._checks import check_choice
from ttsframe._waits import wait_for
from ttsframe.answers.engine import Canonical, canonicalize
from ttsframe.answers.latex.tree import Node
from ttsframe.answers.lookup.bounds import is_evaluable
from ttsframe.answers.lookup.published import published_forms
from ttsframe.answers.lookup.worker import run_tasks, worker_counts
from ttsframe.answers.policy import AnswerPolicy
from ttsframe.answers.shapes.words import text_key
from ttsframe.errors import MissingExtraError, ParameterError, ParameterTypeError

__all__ = ["AnswerStatistics", "Entry", "KeyMethod", "KeyTable", "answer_statistics", "key_table"]

KeyMethod: TypeAlias = Literal["auto", "sympy"]

PUBLISHED_PREFIX: Final = "s1:"
"""Beginning of the keys of `method="sympy"`; raised when a change of code changes any of them."""

_MOST_BYTES: Final = 150_000_000
"""About 300,000 answers: a run of a million attempts has fewer."""

_ENTRY_BYTES: Final = 450
_LONGEST_KEPT: Final = 10_000


class Entry(NamedTuple):
    """The key of an answer (None where the text holds no answer), its kind, and whether reading it failed."""

    key: str | None
    kind: str
    is_failed: bool = False


class KeyTable:
    """Keys of answers under one policy.

    Polars calls an elementwise function for several morsels at once, from several threads. Morsels
    share most of their answers, so a thread waits for answers that another one is working on.
    """

    def __init__(self, compute: Callable[[Sequence[str]], dict[str, Entry]]) -> None:
        self._compute = compute
        self._clear()

    def _clear(self) -> None:
        """Begin with an empty table."""
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._entries: dict[str, Entry] = {}
        self._in_flight: dict[str, threading.Event] = {}
        self._n_bytes = 0
        self.counts = {"n_answers": 0, "n_text": 0, "n_failed": 0}

    def look_up(self, answers: Sequence[str]) -> dict[str, Entry]:
        """Return the entry of each distinct answer."""
        if self._process != os.getpid():
            # A fork may have copied a lock that is held, and answers that no thread works on.
            self._clear()
        found: dict[str, Entry] = {}
        mine: list[str] = []
        elsewhere: dict[str, threading.Event] = {}
        done = threading.Event()
        with self._lock:
            for answer in answers:
                entry = self._entries.get(answer)
                if entry is not None:
                    found[answer] = entry
                elif answer in self._in_flight:
                    elsewhere[answer] = self._in_flight[answer]
                else:
                    self._in_flight[answer] = done
                    mine.append(answer)
        found |= self._work(mine, done)
        for event in set(elsewhere.values()):
            wait_for(event)
        # another thread may have failed, or its entry may have been dropped again
        with self._lock:
            known = {answer: self._entries.get(answer) for answer in elsewhere}
        found |= {answer: entry for answer, entry in known.items() if entry is not None}
        missed = [answer for answer, entry in known.items() if entry is None]
        return found | self._compute(missed) if missed else found

    def _work(self, answers: list[str], done: threading.Event) -> dict[str, Entry]:
        """Compute and keep entries; threads that wait for them are released even if this fails."""
        entries: dict[str, Entry] = {}
        try:
            if answers:
                entries = self._compute(answers)
        finally:
            with self._lock:
                for answer in answers:
                    self._in_flight.pop(answer, None)
                self._keep(entries)
            done.set()
        return entries

    def _keep(self, entries: dict[str, Entry]) -> None:
        """Count and add entries, dropping the older half where the table would grow without bound."""
        self.counts["n_answers"] += len(entries)
        self.counts["n_text"] += sum(entry.kind == "text" for entry in entries.values())
        self.counts["n_failed"] += sum(entry.is_failed for entry in entries.values())
        for answer, entry in entries.items():
            if len(answer) <= _LONGEST_KEPT:
                self._entries[answer] = entry
                self._n_bytes += _size(answer)
        while self._n_bytes > _MOST_BYTES:
            newer = islice(self._entries.items(), (len(self._entries) + 1) // 2, None)
            self._entries = dict(newer)
            self._n_bytes = sum(map(_size, self._entries))


def _size(answer: str) -> int:
    """Return about how many bytes an answer, its key and their entry take."""
    return _ENTRY_BYTES + 2 * len(answer)


_tables: dict[tuple[AnswerPolicy, KeyMethod], KeyTable] = {}


def key_table(policy: AnswerPolicy | None, method: KeyMethod) -> KeyTable:
    """Return this process's table for a policy and a method, checking both."""
    check_choice(method, "method", get_args(KeyMethod))
    if policy is not None and not isinstance(policy, AnswerPolicy):
        raise ParameterTypeError(f"policy is a {type(policy).__name__}, must be an AnswerPolicy.")
    if method == "sympy":
        if policy is not None:
            raise ParameterError(
                "policy is given with method == 'sympy', whose form has no policy. "
                "Hint: leave out one of the two."
            )
        if find_spec("latex2sympy2") is None:
            raise MissingExtraError(
                "method == 'sympy' needs latex2sympy2, which is not installed. "
                "Hint: python -m pip install 'ttsframe[latex2sympy]'."
            )
    conventions = policy or AnswerPolicy()

    def read(answers: Sequence[str]) -> dict[str, Entry]:
        return _read_published(answers) if method == "sympy" else _read(answers, conventions)

    # setdefault, so that two threads get one table
    known = _tables.get((conventions, method))
    return known or _tables.setdefault((conventions, method), KeyTable(read))


def _read(answers: Sequence[str], policy: AnswerPolicy) -> dict[str, Entry]:
    """Read answers; sympy evaluates the sums, integrals and limits that the own arithmetic cannot."""
    results = {answer: _read_one(answer, policy, {}) for answer in answers}
    unresolved = {node for result, _ in results.values() for node in result.unresolved}
    outcomes = run_tasks("evaluate", list(filter(is_evaluable, unresolved)))
    values = {
        node: _as_node(outcomes[node].value) if node in outcomes else None for node in unresolved
    }
    entries = {}
    for answer, first in results.items():
        is_open = bool(first[0].unresolved)
        result, is_failed = _read_one(answer, policy, values) if is_open else first
        key = None if result.kind == "missing" else result.key
        entries[answer] = Entry(key, result.kind, is_failed)
    return entries


def _read_one(
    answer: str, policy: AnswerPolicy, resolved: Mapping[Node, Node | None]
) -> tuple[Canonical, bool]:
    """Canonicalize an answer; a fault of the reader costs this answer its reading, not the query."""
    try:
        return canonicalize(answer, policy, resolved), False
    except ImportError as error:
        raise MissingExtraError(
            f"answers cannot be read without python-flint: {error}. "
            "Hint: python -m pip install --force-reinstall python-flint."
        ) from error
    except Exception:  # noqa: BLE001 - a query of millions of answers must not end for one of them
        return Canonical(policy.prefix + text_key(answer), "text"), True


def _as_node(value: object) -> Node | None:
    """Return the tree that a worker sent as nested lists."""
    return None if value is None else _as_tuples(value)


def _as_tuples(value: object) -> Node:
    return tuple(_as_tuples(part) if isinstance(part, list) else part for part in value)  # type: ignore[attr-defined]


def _read_published(answers: Sequence[str]) -> dict[str, Entry]:
    """Read answers as search-and-learn does."""
    entries = {}
    for answer, published in published_forms(answers).items():
        kind = "symbolic" if published.is_parsed else "text" if published.form else "missing"
        entries[answer] = Entry(
            None if kind == "missing" else PUBLISHED_PREFIX + published.form, kind
        )
    return entries


class AnswerStatistics(NamedTuple):
    """Counts of the answers read in this process.

    Parameters
    ----------
    n_answers
        Distinct answers read.
    n_text
        Those compared as text.
    n_failed
        Those on which the reader failed; they are compared as text. Please report such answers.
    n_by_worker
        Expressions that were given to sympy.
    n_limited
        Expressions that reached a limit of time or memory twice.
    n_died
        Expressions with which a worker died, twice.
    n_workers_started
        Worker processes started.

    Examples
    --------
    >>> import ttsframe as tts
    >>> statistics = tts.answers.answer_statistics()
    >>> statistics.n_text <= statistics.n_answers
    True
    """

    n_answers: int
    n_text: int
    n_failed: int
    n_by_worker: int
    n_limited: int
    n_died: int
    n_workers_started: int


def answer_statistics() -> AnswerStatistics:
    """Count the answers read in this process, and the work of sympy, since the process started.

    Returns
    -------
    AnswerStatistics
        Counts.

    Examples
    --------
    >>> import ttsframe as tts
    >>> tts.answers.answer_statistics().n_died
    0
    """
    workers = worker_counts()
    counts = [table.counts for table in list(_tables.values())]
    return AnswerStatistics(
        n_answers=sum(count["n_answers"] for count in counts),
        n_text=sum(count["n_text"] for count in counts),
        n_failed=sum(count["n_failed"] for count in counts),
        n_by_worker=workers.n_items,
        n_limited=workers.n_limited,
        n_died=workers.n_died,
        n_workers_started=workers.n_started,
    )
