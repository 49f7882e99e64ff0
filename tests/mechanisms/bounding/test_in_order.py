"""Results come in the order of their tasks, from any number of threads, and none is lost."""

import functools
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


@pytest.mark.parametrize("most", [0, 5])
@pytest.mark.parametrize("threaded", [False, True])
def test_results_come_in_order_and_none_is_lost(
    pool: futures.Executor, most: int, threaded: bool
) -> None:
    tasks: InOrder[int] = InOrder(pool if threaded else None, most)
    found = [made for number in range(50) for made in tasks.put(functools.partial(square, number))]
    assert len(found) >= 50 - most
    assert [*found, *tasks.drain()] == [square(number) for number in range(50)]
    assert list(tasks.drain()) == []


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
