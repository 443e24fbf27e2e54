"""One table of keys per process, filled by many threads, each answer worked on once.

Polars calls an elementwise function for several morsels at once. Morsels share most of their
answers, so a thread leaves to the others what they are already working on, and waits for it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

__all__ = ["Entry", "KeyTable"]

_MOST_CHARACTERS: Final = 100_000_000
_LONGEST_KEPT: Final = 10_000


class Entry(NamedTuple):
    """What is known of an answer.

    Parameters
    ----------
    key
        Canonical key; None where the text is no answer.
    kind
        What the answer was read as.
    is_final
        Whether the key depends on the answer alone: false when a worker met a limit.
    """

    key: str | None
    kind: str
    is_final: bool


class KeyTable:
    """Keys of answers under one policy.

    Parameters
    ----------
    compute
        Returns an entry for each of some distinct answers.
    """

    def __init__(self, compute: Callable[[Sequence[str]], dict[str, Entry]]) -> None:
        self._compute = compute
        self._start_anew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._start_anew)

    def _start_anew(self) -> None:
        """Begin with an empty table; a fork may have copied a lock that some thread held."""
        self._lock = threading.Lock()
        self._entries: dict[str, Entry] = {}
        self._in_flight: dict[str, threading.Event] = {}
        self._n_characters = 0

    def look_up(self, answers: Sequence[str]) -> dict[str, Entry]:
        """Return the entries of distinct answers.

        Parameters
        ----------
        answers
            Distinct answers.

        Returns
        -------
        dict[str, Entry]
            One entry for each answer.
        """
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
            event.wait()
        # another thread may have failed, or its entry may have been dropped again
        with self._lock:
            known = {answer: self._entries.get(answer) for answer in elsewhere}
        found |= {answer: entry for answer, entry in known.items() if entry is not None}
        missed = [answer for answer, entry in known.items() if entry is None]
        return found | self._compute(missed) if missed else found

    def _work(self, answers: list[str], done: threading.Event) -> dict[str, Entry]:
        """Compute entries and keep them; whoever waits for them is woken even by an error."""
        entries: dict[str, Entry] = {}
        try:
            if answers:
                entries = self._compute(answers)
        finally:
            with self._lock:
                for answer in answers:
                    del self._in_flight[answer]
                self._keep(entries)
            done.set()
        return entries

    def _keep(self, entries: dict[str, Entry]) -> None:
        """Add entries, dropping the oldest where the table would grow without bound."""
        for answer, entry in entries.items():
            if len(answer) <= _LONGEST_KEPT:
                self._entries[answer] = entry
                self._n_characters += len(answer) + 100
        while self._n_characters > _MOST_CHARACTERS:
            oldest = next(iter(self._entries))
            del self._entries[oldest]
            self._n_characters -= len(oldest) + 100
