"""Reading distinct answers: the engine, the workers, the cache file, and what it all took."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from ttsframe._checks import check_choice
from ttsframe.answers.engine import Canonical, canonicalise
from ttsframe.answers.lookup.bounds import is_bounded
from ttsframe.answers.lookup.cache import CachedKey, KeyCache
from ttsframe.answers.lookup.published import published_forms
from ttsframe.answers.lookup.table import Entry, KeyTable
from ttsframe.answers.lookup.worker import resolve_strings, worker_counts
from ttsframe.answers.policy import AnswerPolicy
from ttsframe.answers.shapes.words import text_key
from ttsframe.errors import ParameterError, ParameterTypeError

__all__ = ["AnswerStatistics", "KeyMethod", "answer_statistics", "key_table"]

KeyMethod: TypeAlias = Literal["auto", "sympy"]

PUBLISHED_PREFIX: Final = "s1:"
"""Beginning of the keys of ``method="sympy"``; raised when a change of code changes any of them."""


class AnswerStatistics(NamedTuple):
    """What reading answers has taken in this process.

    Parameters
    ----------
    n_answers
        Distinct answers read.
    n_text
        Those compared as text.
    n_failed
        Those at which the reader failed, which are compared as text: a fault worth reporting.
    n_cached
        Those found in a cache file, not read.
    n_by_worker
        Expressions that were given to sympy.
    n_limited
        Expressions that met a limit of time or memory there, twice.
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
    n_cached: int
    n_by_worker: int
    n_limited: int
    n_died: int
    n_workers_started: int


def answer_statistics() -> AnswerStatistics:
    """Count what reading answers has taken in this process since it started.

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
    with _counts_lock:
        return AnswerStatistics(
            n_answers=_counts["n_answers"],
            n_text=_counts["n_text"],
            n_failed=_counts["n_failed"],
            n_cached=_counts["n_cached"],
            n_by_worker=workers.n_strings,
            n_limited=workers.n_limited,
            n_died=workers.n_died,
            n_workers_started=workers.n_started,
        )


def key_table(policy: AnswerPolicy | None, method: KeyMethod, cache: str | Path | None) -> KeyTable:
    """Return the one table of this process for a policy, a method and a cache.

    Parameters
    ----------
    policy
        Conventions, or None for the default ones.
    method
        How keys are made.
    cache
        File that keeps keys, or None.

    Returns
    -------
    KeyTable
        The table.

    Raises
    ------
    ParameterError
        When ``method`` is unknown, or ``"sympy"`` is given a policy.
    ParameterTypeError
        When ``policy`` is no AnswerPolicy or ``cache`` no path.
    """
    check_choice(method, "method", get_args(KeyMethod))
    if policy is not None and not isinstance(policy, AnswerPolicy):
        raise ParameterTypeError(f"policy is a {type(policy).__name__}, must be an AnswerPolicy.")
    if method == "sympy" and policy is not None:
        raise ParameterError(
            "policy is given with method == 'sympy', whose form knows no policy. "
            "Hint: leave out one of the two."
        )
    if cache is not None and not isinstance(cache, str | Path):
        raise ParameterTypeError(f"cache is a {type(cache).__name__}, must be a path.")
    path = None if cache is None else Path(cache).expanduser().absolute()
    return _table(policy or AnswerPolicy(), method, path)


@lru_cache(maxsize=64)
def _table(policy: AnswerPolicy, method: KeyMethod, path: Path | None) -> KeyTable:
    """Build a table."""
    read: Callable[[Sequence[str]], dict[str, Entry]]
    if method == "sympy":
        prefix = PUBLISHED_PREFIX
        read = _read_published
    else:
        prefix = policy.prefix

        def read(answers: Sequence[str]) -> dict[str, Entry]:
            return _read(answers, policy)

    return KeyTable(_remembered(read, None if path is None else KeyCache(path, prefix)))


def _remembered(
    read: Callable[[Sequence[str]], dict[str, Entry]], cache: KeyCache | None
) -> Callable[[Sequence[str]], dict[str, Entry]]:
    """Put a cache file before a way of reading, and count what is read."""

    def compute(answers: Sequence[str]) -> dict[str, Entry]:
        stored = {} if cache is None else cache.get(answers)
        entries = read([answer for answer in answers if answer not in stored])
        if cache is not None:
            final = {a: CachedKey(e.key, e.kind) for a, e in entries.items() if e.is_final}
            cache.put(final)
        with _counts_lock:
            _counts["n_answers"] += len(entries)
            _counts["n_text"] += sum(entry.kind == "text" for entry in entries.values())
            _counts["n_cached"] += len(stored)
        return entries | {a: Entry(s.key, s.kind, is_final=True) for a, s in stored.items()}

    return compute


_counts_lock = threading.Lock()


def _start_anew() -> None:
    """Give a forked child a lock that nobody holds."""
    global _counts_lock  # noqa: PLW0603 - one lock per process
    _counts_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
_counts = {"n_answers": 0, "n_text": 0, "n_failed": 0, "n_cached": 0}

# what latex2sympy2 is known to misread: digits apart, mixed numbers, numbers in another base, a
# logarithm of unknown base, an integral that is only known up to a constant
_MISREAD: Final = re.compile(
    r"(?<![\^_\d.])\d+(?:(?:\s|~|\\[,;:! ])+\d|\s*\\[dt]?frac)|\d\s*_|\d\s*[eE]\s*[-+]?\d|\\log(?!\s*_)"
    r"|\\i*int(?:\\limits)?\s*(?![\s_\\])|[:=<>](?![^{}]*\})"
)


def _read(answers: Sequence[str], policy: AnswerPolicy) -> dict[str, Entry]:
    """Read answers, asking the workers about the scalars that the own parser does not know."""
    results = {answer: _canonicalised(answer, policy, {}) for answer in answers}
    unresolved = {scalar for result in results.values() for scalar in result.unresolved}
    asked = [s for s in unresolved if is_bounded(s) and not _MISREAD.search(s)]
    outcomes = resolve_strings("evaluate", asked) if asked else {}
    values = {s: outcomes[s].value if s in outcomes else None for s in unresolved}
    uncertain = {s for s, outcome in outcomes.items() if outcome.status != "done"}
    entries = {}
    for answer, result in results.items():
        final = _canonicalised(answer, policy, values) if result.unresolved else result
        key = None if final.kind == "missing" else final.key
        entries[answer] = Entry(key, final.kind, uncertain.isdisjoint(result.unresolved))
    return entries


def _canonicalised(
    answer: str, policy: AnswerPolicy, resolved: Mapping[str, str | None]
) -> Canonical:
    """Canonicalise an answer; a fault of the reader costs this answer its reading, no more."""
    try:
        return canonicalise(answer, policy, resolved)
    except Exception:  # noqa: BLE001 - a query of millions of answers must not end for one of them
        with _counts_lock:
            _counts["n_failed"] += 1
        return Canonical(policy.prefix + text_key(answer), "text")


def _read_published(answers: Sequence[str]) -> dict[str, Entry]:
    """Give answers their published canonical form."""
    entries = {}
    for answer, published in published_forms(answers).items():
        kind = "symbolic" if published.is_parsed else "text" if published.form else "missing"
        key = None if kind == "missing" else PUBLISHED_PREFIX + published.form
        entries[answer] = Entry(key, kind, published.status == "done")
    return entries
