"""Freed memory goes back to the system; bundles share threads."""

import platform
import subprocess
import sys
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


def test_bundles_share_one_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(runtime.THREADS, "3")
    assert runtime.pool() is runtime.pool()


def test_a_forked_process_makes_a_pool_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of its own, since a fork copies pytest."""
    program = (
        "import os\n"
        "from beam_dp.transforms.steps import runtime\n"
        "pool = runtime.pool()\n"
        "assert pool.submit(int).result() == 0\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    other = runtime.pool()\n"
        "    os._exit(3 if other is not pool and other.submit(int).result() == 0 else 4)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3\n"
        "assert runtime.pool() is pool\n"
    )
    monkeypatch.setenv(runtime.THREADS, "2")
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
