"""Freed memory is kept in a job, and goes back between stages; threads end with their bundle."""

from types import SimpleNamespace

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


@pytest.mark.parametrize("name", ["posix", "nt"])
def test_only_glibc_is_told_what_to_do_with_freed_memory(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    told: list[tuple[int, ...]] = []
    libc = SimpleNamespace(mallopt=lambda *given: told.append(given))
    monkeypatch.setattr(threads_and_memory.ctypes, "CDLL", lambda _: libc)
    monkeypatch.setattr(threads_and_memory.os, "name", name)
    threads_and_memory._of_libc.cache_clear()
    threads_and_memory.keep_freed()
    threads_and_memory.give_back()  # this libc has no `malloc_trim`
    threads_and_memory._of_libc.cache_clear()
    assert [number for number, _ in told] == ([-1, -2, -3] if name == "posix" else [])
