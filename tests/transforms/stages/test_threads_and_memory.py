"""Freed memory goes back to the system; threads end with their bundle."""

import platform
import threading
from pathlib import Path

import numpy as np
import pytest

from beam_dp.transforms.stages import threads_and_memory

PIECES, PIECE = 2000, 1 << 13  # 125 MiB of float64, each piece too small to have pages of its own


def resident() -> int:
    """Return the bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_freed_pieces_go_back_to_the_system_and_held_ones_stay() -> None:
    pieces = [np.full(PIECE, place, float) for place in range(PIECES)]
    held = pieces[::50]
    full = resident() if Path("/proc/self/statm").exists() else 0
    del pieces
    threads_and_memory.give_back()
    if platform.libc_ver()[0] == "glibc":
        assert full - resident() > 0.8 * PIECES * PIECE * 8
    assert all((piece == 50 * place).all() for place, piece in enumerate(held))


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


def test_threads_end_with_the_bundle_that_holds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(threads_and_memory.THREADS, "3")
    pool = threads_and_memory.pool()
    threads = {pool.submit(threading.current_thread).result() for _ in range(9)}
    assert 0 < len(threads) <= 3
    del pool
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
