"""Freed memory goes back to the system; bundles share threads, which end with the last of them."""

import platform
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from beam_dp.transforms.steps import runtime

PIECES, PIECE = 2000, 1 << 13  # 125 MiB of float64, each piece too small to have pages of its own


def resident() -> int:
    """Return the bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_freed_pieces_go_back_to_the_system_and_held_ones_stay() -> None:
    pieces = [np.full(PIECE, place, float) for place in range(PIECES)]
    held = pieces[::50]
    full = resident() if Path("/proc/self/statm").exists() else 0
    del pieces
    runtime.give_back()
    if platform.libc_ver()[0] == "glibc":
        assert full - resident() > 0.8 * PIECES * PIECE * 8
    assert all((piece == 50 * place).all() for place, piece in enumerate(held))


@pytest.mark.parametrize(
    ("given", "count"),
    [("1", 1), ("3", 3), ("1024", 1024), ("0", None), ("1025", None), ("x", None)],
)
def test_threads_are_those_of_the_variable_or_the_cores(
    monkeypatch: pytest.MonkeyPatch, given: str, count: int | None
) -> None:
    monkeypatch.setenv(runtime.THREADS, given)
    monkeypatch.setattr(runtime, "cores", lambda: 5)
    assert runtime.threads() == (count or 5)
    monkeypatch.setattr(runtime, "cores", lambda: 99)
    assert runtime.threads() == (count or 8)
    assert (runtime.pool() is None) == (count == 1)


LIMITS = [  # what a container says of its share, and the cores of 16 that it may use
    (None, 16),
    ("max 100000", 16),
    ("200000 100000", 2),
    ("150000 100000", 2),
    ("10000 100000", 1),
    ("9900000 100000", 16),
    ("not a number", 16),
    ("1 0", 16),
]


@pytest.mark.parametrize(("said", "count"), LIMITS)
def test_a_container_has_no_more_cores_than_its_share(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str | None, count: int
) -> None:
    monkeypatch.setattr(runtime.os, "sched_getaffinity", lambda _: range(16), raising=False)
    monkeypatch.delattr(runtime.os, "process_cpu_count", raising=False)
    limit = tmp_path / "cpu.max"
    if said is not None:
        limit.write_text(f"{said}\n")
    assert runtime.cores(limit) == count
    monkeypatch.setattr(runtime.os, "process_cpu_count", lambda: 7, raising=False)
    assert runtime.cores(limit) == min(7, count)


def test_bundles_share_one_pool_that_ends_with_the_last_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(runtime.THREADS, "3")
    first, second = runtime.pool(), runtime.pool()
    assert first is second
    threads = {first.submit(threading.current_thread).result() for _ in range(9)}
    assert 0 < len(threads) <= 3
    del first
    assert second.submit(int).result() == 0
    del second
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert runtime.pool().submit(int).result() == 0


def test_a_forked_process_makes_a_pool_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the lock is held meanwhile; in a process of its own, since a fork copies pytest."""
    program = (
        "import os\n"
        "from beam_dp.transforms.steps import runtime\n"
        "pool = runtime.pool()\n"
        "assert pool.submit(int).result() == 0\n"
        "with runtime._shared._lock:\n"
        "    child = os.fork()\n"
        "if not child:\n"
        "    other = runtime.pool()\n"
        "    os._exit(3 if other is not pool and other.submit(int).result() == 0 else 4)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3\n"
        "assert runtime.pool() is pool\n"
    )
    monkeypatch.setenv(runtime.THREADS, "2")
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
