from __future__ import annotations

import itertools
from typing import NamedTuple

from ttsframe.batch.progress import Amount, Meter, Progress, total


class Piece(NamedTuple):
    amount: Amount


def seen_by(amounts: list[Amount], n_before: int, ticks: list[float]) -> list[Progress]:
    seen: list[Progress] = []
    clock = itertools.chain(ticks, itertools.repeat(ticks[-1])).__next__
    meter = Meter(
        "parts",
        amounts,
        n_tasks_before=n_before,
        before=amounts[:n_before],
        on_progress=seen.append,
        clock=clock,
    )
    for amount in amounts[n_before:]:
        meter.add(Piece(amount))
    return seen


def test_rate_and_time_left_follow_from_what_is_done() -> None:
    first, second, last = seen_by([Amount(100, 1000), Amount(300, 3000)], 0, [0.0, 0.0, 2.0, 8.0])
    assert (first.n_tasks_done, first.n_tasks, first.n_rows, first.n_bytes) == (0, 2, 400, 4000)
    assert (first.rows_per_second, first.bytes_per_second, first.seconds_left) == (None, None, None)
    assert (second.n_rows_done, second.n_bytes_done) == (100, 1000)
    assert (second.rows_per_second, second.bytes_per_second) == (50.0, 500.0)
    assert second.seconds_left == 6.0
    assert (last.n_tasks_done, last.seconds_left, last.bytes_per_second) == (2, 0.0, 500.0)


def test_what_an_earlier_run_did_counts_as_done_and_not_as_fast() -> None:
    first, second = seen_by([Amount(100, 1000)] * 2, 1, [0.0, 0.0, 4.0])
    assert (first.n_tasks_done, first.n_rows_done, first.n_bytes_done) == (1, 100, 1000)
    assert first.rows_per_second is None
    assert (second.n_tasks_done, second.bytes_per_second) == (2, 250.0)


def test_rows_that_nobody_has_counted_are_not_made_up() -> None:
    _, last = seen_by([Amount(None, 1000)], 0, [0.0, 0.0, 1.0])
    assert (last.n_rows, last.rows_per_second, last.bytes_per_second) == (None, None, 1000.0)
    assert total([Amount(1, 2), Amount(None, 3)]) == Amount(None, 5)


def test_a_clock_that_stands_still_gives_no_rate() -> None:
    _, last = seen_by([Amount(1, 1)], 0, [0.0])
    assert (last.bytes_per_second, last.seconds_left) == (None, None)


def test_nobody_need_ask() -> None:
    meter = Meter("scan", [Amount(1, 1)], n_tasks_before=0, before=[], on_progress=None)
    meter.add(Piece(Amount(1, 1)))
    assert meter.progress().n_tasks_done == 1
