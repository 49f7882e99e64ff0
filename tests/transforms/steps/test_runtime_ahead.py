"""Tests of `beam_dp.transforms.steps.runtime`."""

import threading

import pytest

from beam_dp.transforms.steps.runtime import Ahead


def test_results_come_in_order_one_element_late_and_none_is_lost():
    ahead = Ahead(lambda number: number * number)
    found = [list(ahead.put(number)) for number in range(5)]
    assert found == [[], [0], [1], [4], [9]]
    assert list(ahead.drain()) == [16]
    assert list(ahead.drain()) == []


def test_the_function_runs_in_one_other_thread():
    ahead = Ahead(lambda _: threading.get_ident())
    threads = {thread for number in range(20) for thread in ahead.put(number)}
    threads.update(ahead.drain())
    assert len(threads) == 1 and threading.get_ident() not in threads


def test_the_next_element_is_worked_on_while_the_last_one_is_used():
    """A function that waits for its user would never end if it ran only when asked for."""
    used = threading.Event()
    waited = []

    def function(number):
        if number == 1:
            waited.append(used.wait(60))
        return number

    ahead = Ahead(function)
    list(ahead.put(0))
    assert list(ahead.put(1)) == [0]
    used.set()
    assert list(ahead.drain()) == [1] and waited == [True]


def test_an_exception_is_raised_where_its_result_would_come():
    ahead = Ahead(lambda number: 1 // number)
    assert list(ahead.put(0)) == []
    with pytest.raises(ZeroDivisionError):
        list(ahead.put(1))
    assert list(ahead.drain()) == [1]
