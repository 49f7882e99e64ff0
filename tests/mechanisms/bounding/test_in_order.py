"""Results come in the order of their tasks, from any number of threads, and none is lost."""

import functools
import threading
import weakref
from collections.abc import Iterator
from concurrent import futures

import pytest

from beam_dp.mechanisms.bounding.accumulator import InOrder


@pytest.fixture
def pool() -> Iterator[futures.Executor]:
    with futures.ThreadPoolExecutor(3) as made:
        yield made


def square(number: int) -> int:
    return number * number


@pytest.mark.parametrize("most", [0, 1, 5])
@pytest.mark.parametrize("threaded", [False, True])
def test_results_come_in_order_and_none_is_lost(
    pool: futures.Executor, most: int, threaded: bool
) -> None:
    tasks: InOrder[int] = InOrder(pool if threaded else None, most)
    found = [made for number in range(50) for made in tasks.put(functools.partial(square, number))]
    assert len(found) >= 50 - most
    assert [*found, *tasks.drain()] == [square(number) for number in range(50)]
    assert list(tasks.drain()) == []


def test_without_a_pool_the_caller_works() -> None:
    assert list(InOrder(None, 3).put(threading.get_ident)) == [threading.get_ident()]


def test_tasks_run_while_results_are_used(pool: futures.Executor) -> None:
    """A task that waits for its user would never end if it ran only when asked for."""
    used, waited = threading.Event(), []
    tasks: InOrder[None] = InOrder(pool, 1)
    assert list(tasks.put(lambda: waited.append(used.wait(60)))) == []
    used.set()
    assert list(tasks.drain()) == [None] and waited == [True]


def test_put_waits_for_no_more_tasks_than_it_must(pool: futures.Executor) -> None:
    held = threading.Event()
    tasks: InOrder[bool] = InOrder(pool, 2)
    assert [made for _ in range(2) for made in tasks.put(lambda: held.wait(60))] == []
    held.set()
    assert [*tasks.put(lambda: True), *tasks.drain()] == [True] * 3


@pytest.mark.parametrize("threaded", [False, True])
def test_an_exception_is_raised_in_its_place_and_nothing_is_held(
    pool: futures.Executor, threaded: bool
) -> None:
    tasks: InOrder[float] = InOrder(pool if threaded else None, 9)
    found: list[float] = []
    with pytest.raises(ZeroDivisionError):
        for number in (2, 1, 0, 4, 5):
            found += tasks.put(functools.partial(float.__truediv__, 1.0, float(number)))
        found += tasks.drain()
    assert found == [0.5, 1.0]
    assert list(tasks.drain()) == []


def test_whoever_forgets_holds_nothing() -> None:
    held = threading.Event()
    one = futures.ThreadPoolExecutor(1)
    tasks: InOrder[bool] = InOrder(one, 9)
    for _ in range(3):
        assert list(tasks.put(lambda: held.wait(60))) == []
    [thread], left = one._threads, weakref.ref(one)
    tasks.forget()
    held.set()
    del one
    thread.join(60)
    assert left() is None and not thread.is_alive() and list(tasks.drain()) == []


def test_tasks_that_wait_when_another_fails_never_run() -> None:
    begin, end, ran = threading.Event(), threading.Event(), []

    def fail() -> None:
        begin.wait(60)
        raise ValueError

    with futures.ThreadPoolExecutor(1) as one:
        tasks: InOrder[object] = InOrder(one, 9)
        for task in (fail, lambda: end.wait(60), lambda: ran.append(1)):
            assert list(tasks.put(task)) == []
        begin.set()
        with pytest.raises(ValueError):
            list(tasks.drain())
        end.set()
    assert ran == []
