"""Freed memory goes back to the system; threads end with their bundle."""

import pytest

from beam_dp.transforms.stages import threads_and_memory


@pytest.mark.parametrize(("given", "count"), [("1", 1), ("3", 3), ("0", None), ("x", None)])
def test_threads_are_those_of_the_variable_or_the_cores(
    monkeypatch: pytest.MonkeyPatch, given: str, count: int | None
) -> None:
    monkeypatch.setenv(threads_and_memory.THREADS, given)
    for cores in (5, 99):
        monkeypatch.setattr(
            threads_and_memory.os,
            "sched_getaffinity",
            lambda _, cores=cores: range(cores),
            raising=False,
        )
        assert threads_and_memory.threads() == (count or min(cores, 8))
    assert (threads_and_memory.pool() is None) == (count == 1)
