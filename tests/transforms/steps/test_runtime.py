"""Freed memory goes back to the system, and nothing else changes."""

import platform
from pathlib import Path

import numpy as np

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


def test_elsewhere_nothing_is_done(monkeypatch) -> None:
    monkeypatch.setattr(runtime.os, "name", "other")
    runtime._trim.cache_clear()
    try:
        runtime.give_back()
        assert runtime._trim()(0) is None
    finally:
        runtime._trim.cache_clear()
