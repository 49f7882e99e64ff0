"""Reduce each shard to whole people once, and count their votes in what is chosen first."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Literal

import numpy as np
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.ordering import changes
from beam_dp.mechanisms.bounding.table import Table
from beam_dp.mechanisms.planning.first_choices import FirstVotes
from beam_dp.mechanisms.summaries import wire
from beam_dp.mechanisms.summaries.histograms import Summary
from beam_dp.transforms.building import quick_steps
from beam_dp.transforms.steps import runtime, settle

VOTES: Literal["votes"] = "votes"
"""The tag of the votes."""
_PIECE_LINES = 1 << 18
Reduced = tuple[int, bytes] | TaggedOutput[Literal["votes"], tuple[int, bytes]]
"""The output: (shard, lines of whole people); or, tagged, (0, votes)."""


def pieces(table: Table, lines: int) -> Iterator[Table]:
    """Yield a reduced table in pieces of about so many lines, none of which cuts a person."""
    starts = np.flatnonzero(changes(table.person))
    # The last person who begins before each multiple of `lines`.
    edges = starts[np.searchsorted(starts, np.arange(lines, len(table), lines)) - 1]
    bounds = np.unique(np.concatenate([[0], edges, [len(table)]]))
    for start, end in itertools.pairwise(bounds.tolist()):
        yield table.take(slice(start, end))


class ReduceShards(quick_steps.QuickStep):
    """Turn the lines of a shard into lines of whole people, and count their votes.

    The votes are exact and private data, as the lines are.

    Args:
        bounder: the bounding of the run, up to the last step of the ladder.
        votes: what is counted.
    """

    def __init__(self, bounder: Bounder, votes: FirstVotes) -> None:
        self._bounder, self._votes = bounder, votes

    def start_bundle(self) -> None:
        """Begin a bundle with nobody: a bundle that failed leaves nothing behind."""
        self._counted: list[Summary] = []

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Reduced]:
        """Take all lines of one shard: all those of each of its people."""
        table = settle.gather_reduced(element[1], self._bounder)
        if table is None:
            return
        self._counted.append(self._votes.of(table, self._bounder))
        for piece in pieces(table, _PIECE_LINES):
            yield element[0], wire.pack_table(piece)

    def finish_bundle(self) -> Iterator[TaggedOutput[Literal["votes"], WindowedValue]]:
        """Yield the votes of the bundle."""
        if self._counted:
            counted = 0, wire.pack_summary(self._votes.merged(self._counted))
            yield TaggedOutput(VOTES, GlobalWindows.windowed_value(counted))
        runtime.give_back()
