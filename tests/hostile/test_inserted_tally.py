"""What counts inserted rows notices everything that it is there for."""

import logging
import os
import sys
import warnings
from collections.abc import Callable

import pytest

from tests.hostile.inserted import tally, watch
from tests.hostile.inserted.tally import Hostile, Tally

BASE = [("a", 1), ("a", 1), ("b", 2.0)]


class Loud:
    """Its end raises, which Python reports as "Exception ignored in"."""

    def __del__(self) -> None:
        raise RuntimeError


CHANNELS: dict[str, Callable[[], object]] = {
    "file descriptor": lambda: os.write(2, b"said"),
    "sys.stderr": lambda: sys.stderr.write("said"),
    "warning": lambda: warnings.warn("said", ResourceWarning, stacklevel=1),
    "log": lambda: logging.getLogger("beam_dp.anything").warning("said"),
    "lost exception": Loud,
}


@pytest.mark.parametrize("channel", CHANNELS)
def test_everything_that_is_said_is_heard_once(channel: str) -> None:
    with watch.watching() as heard:
        assert heard.heard() == ""
        CHANNELS[channel]()
        assert "said" in heard.heard() or channel == "lost exception"
        assert heard.heard() == ""
        found = Tally(heard)
        found.check(BASE, [], lambda: [CHANNELS[channel](), BASE][1])
        assert found.report().startswith("1 of 1 checks failed, 0 rows inserted\nsaid")


ROW = Hostile("row", ("c", 3), certain=True)
MAYBE = Hostile("row", ("c", 3))
FOUND = {
    "a row is lost": ([ROW], [*BASE[1:], ("c", 3)], "lost other people's rows"),
    "a row has another type": ([ROW], [*BASE[:2], ("b", 2), ("c", 3)], "lost other people's rows"),
    "one becomes two": ([ROW], [*BASE, ("c", 3), ("c", 3)], "made rows that nobody wrote"),
    "a row of the base twice": ([ROW], [*BASE, ("a", 1), ("c", 3)], "made rows that nobody wrote"),
    "a row of nobody": ([MAYBE], [*BASE, ("d", 3)], "made rows that nobody wrote"),
    "the row itself is lost": ([ROW], BASE, "lost the row itself"),
    "all is well": ([ROW], [*BASE, ("c", 3)], ""),
    "it may be dropped": ([MAYBE], BASE, ""),
    "nothing can come of it": ([Hostile("row")], BASE, ""),
}


@pytest.mark.parametrize("name", FOUND)
def test_differences_are_noticed(name: str) -> None:
    hostile, found, said = FOUND[name]
    assert tally.difference(BASE, hostile, found[::-1]).startswith(said)
    assert bool(tally.difference(BASE, hostile, found)) == bool(said)
