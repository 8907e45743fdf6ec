# SPDX-License-Identifier: Apache-2.0
"""Many items over several processes: the same results in the same order as in one."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor

import pytest

from fdd.core import parallel
from fdd.core.parallel import in_order


def double(number: int) -> int:
    return 2 * number


def process_of(_: int) -> int:
    time.sleep(0.005)
    return os.getpid()


def slow_if_negative(number: int) -> int:
    if number < 0:
        time.sleep(0.3)
    return number


def fail_on_seven(number: int) -> int:
    if number == 7:
        raise ZeroDivisionError("seven")
    return number


def wait_long(number: int) -> int:
    if number:
        time.sleep(60)
    return number


def large_result(_: int) -> bytes:
    return bytes(5 << 20)


def ignores_interrupts(_: int) -> object:
    return signal.getsignal(signal.SIGINT)


def killed_at_seven(number: int) -> int:
    if number == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def no_children() -> bool:
    return not multiprocessing.active_children()


@pytest.mark.parametrize("as_done", [False, True])
@pytest.mark.parametrize("jobs", [0, 1, 2, 3])
def test_every_item_gives_one_result(jobs: int, as_done: bool) -> None:
    results = list(in_order(double, range(500), jobs, as_done=as_done))
    expected = [2 * number for number in range(500)]
    assert (sorted(results) if as_done else results) == expected
    assert no_children()


def test_no_items() -> None:
    assert list(in_order(double, [], 2)) == []


def test_order_is_kept_whatever_takes_long() -> None:
    items = [-1, *range(20)]
    assert list(in_order(slow_if_negative, items, 2)) == items


def test_as_done_lets_the_fast_ones_pass() -> None:
    results = list(in_order(slow_if_negative, [-1, *range(40)], 2, as_done=True))
    assert results[0] == 0
    assert sorted(results) == [-1, *range(40)]


def test_a_few_items_are_spread_over_all_processes() -> None:
    assert len(set(in_order(process_of, range(8), 2))) == 2


def test_batches_grow_with_short_items_only() -> None:
    assert parallel._batch_size(1, 10.0) == 1
    assert parallel._batch_size(4, 0.2) == 2
    assert parallel._batch_size(4, 0.0) == parallel._batch_size(1, 1e-9) == parallel.BATCH


def test_items_are_taken_as_they_are_needed() -> None:
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for number in range(10**6):
            taken += 1
            yield number

    results = in_order(double, items(), 2)
    assert [next(results) for _ in range(100)] == [2 * number for number in range(100)]
    results.close()  # type: ignore[attr-defined]
    assert taken <= 100 + parallel.BATCH * (2 * parallel.AHEAD + 1)
    assert no_children()


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_a_step_raises_comes_through(jobs: int) -> None:
    results = in_order(fail_on_seven, range(1000), jobs)
    with pytest.raises(ZeroDivisionError, match="seven"):
        list(results)
    assert no_children()


def test_stopping_early_does_not_wait_for_what_runs() -> None:
    started = time.monotonic()
    results = in_order(wait_long, range(100), 2)
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
    assert time.monotonic() - started < 30
    assert no_children()


def test_stopping_early_in_the_middle_of_large_results() -> None:
    for _ in range(3):
        results = in_order(large_result, range(100), 2)
        assert len(next(results)) == 5 << 20
        results.close()  # type: ignore[attr-defined]
        assert no_children()


def test_processes_leave_the_interrupt_to_their_parent() -> None:
    assert set(in_order(ignores_interrupts, range(4), 2)) == {signal.SIG_IGN}


def test_default_is_what_this_process_may_use() -> None:
    assert 1 <= parallel.default_jobs() <= (os.cpu_count() or 1)


@pytest.mark.parametrize("as_done", [False, True])
def test_a_process_that_is_killed_costs_one_item(as_done: bool) -> None:
    results = list(in_order(killed_at_seven, range(40), 2, as_done=as_done, lost=lambda number: -number))
    expected = [-7 if number == 7 else number for number in range(40)]
    assert results == expected or (as_done and sorted(results) == sorted(expected))
    assert no_children()


def test_without_an_answer_for_it_a_killed_process_ends_the_run() -> None:
    with pytest.raises(BrokenExecutor):
        list(in_order(killed_at_seven, range(40), 2))
    assert no_children()
