"""Rehearsals: draw the same release many times, by the steps of its pipeline but without Beam.

Rows are collected, bounded and summarised once, then only the draws are made anew, of all partitions
in one bucket. So who is cut by the bounds is the same in all draws. NOTHING OF THIS IS PRIVATE: the true numbers stand beside what
would be released, and many draws of one budget cost many budgets. It is for public or old rows.
"""

import collections
import dataclasses
import functools
import warnings
from collections.abc import Mapping
from typing import Any

from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.metrics.base import takes
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.first_choices import Chosen
from beam_dp.mechanisms.planning.program import Program, compile_program
from beam_dp.transforms.aggregate import PrivateAggregate
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.columns.partition_keys import Key
from beam_dp.transforms.stages import draw_once, noise_off
from beam_dp.transforms.stages.bound_and_summarise import SHARED, Collect, ReduceShards, Settle
from beam_dp.transforms.stages.draws_folder import Barriers

Numbers = Mapping[Key, tuple[Any, ...]]
"""The output columns of each partition."""
_DEEP = 1_000_000
"""A bound on rows that cuts nothing, for metrics that need one."""
held: list[Any] = []
"""The rows, or batches, that were read."""


def hold(row: object) -> None:
    """Keep a row, or a batch, in the memory of this process: the last step of reading."""
    held.append(row)


def draws(release: PrivateAggregate, runs: int) -> list[Numbers]:
    """Return what so many independent releases of the rows that are held would be."""
    program, bounds = release._program, release._bounds
    if bounds.is_automatic:
        bounds = bounds.up_to(program.edges[-1])
    layout = release._laid_out(program.columns)
    bounder = Bounder(bounds, program.fields, layout.key, keep_rows=program.keep_rows)
    made = _Steps(program, layout, bounder, Noise())
    return [made.draw() for _ in range(runs)]


def truth(release: PrivateAggregate) -> Numbers:
    """Return the numbers of all rows that are held: no bound, no clip, no noise, no selection.

    They are rounded to the values that can be released. Of rows with several owners the first is
    the person; rows without that one are left out.
    """
    without: dict[str, Any] = {"clip": None}
    metrics = [
        dataclasses.replace(each, **without) if takes(each, "clip") else each
        for each in release.metrics
    ]
    budget, depth = noise_off.budget_of(release.budget), release._bounds.depth and _DEEP
    program = compile_program(metrics, budget, 1, depth=depth)
    layout, bounds = release._laid_out(program.columns), ContributionBounds(None)
    bounder = Bounder(bounds, program.fields, layout.key, keep_rows=program.keep_rows)
    with warnings.catch_warnings(action="ignore", category=noise_off.NotPrivate), noise_off.block():
        return _Steps(program, layout, bounder, noise_off.noise()).draw()


@dataclasses.dataclass(frozen=True)
class _Steps:
    """The steps of one release: what is done once, and what each draw does anew."""

    program: Program
    layout: Layout
    bounder: Bounder
    noise: Noise
    settled: dict[Any, dict[int, list[bytes]]] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def people(self) -> tuple[list[Any], list[bytes]]:
        """The lines of all people, for `Settle`, and the votes in what is chosen first."""
        collect = Collect(self.layout, self.bounder, 1)
        collect.start_bundle()
        lines = [line for row in held for _, line in collect.process(row)]
        lines += [each.value[1] for each in collect.finish_bundle()]
        if not self.program.chooses:
            return [lines], []
        reduce = ReduceShards(self.bounder, self.program.votes)
        reduce.start_bundle()
        reduced = [each[1] for each in reduce.process((0, lines))]
        return reduced, [each.value.value for each in reduce.finish_bundle()]

    def draw(self) -> Numbers:
        """Return one release."""
        made, how, chosen = self.program, (self.noise, Barriers()), None
        clips: tuple[Any, ...] = ()
        _, votes = self.people
        if made.chooses:
            _, chosen = draw_once.choose_first(b"", votes, made, *how)
        buckets = self._summaries(chosen)
        if made.at(chosen).shared_measures:
            [(_, clips)] = draw_once.choose_clips((SHARED, buckets[SHARED]), made, *how, chosen)
        places = draw_once.BucketPartitions(self.layout, 1)
        further = made, places, *how, clips, chosen
        blocks = [block for _, block in draw_once.draw_bucket((0, buckets[0]), *further)]
        sums = [draw_once.sums_of(block, made) for block in blocks]
        whole = [draw_once.combined(block, made, sums) for block in blocks]
        return {key: row for block in whole for key, row in block.rows(self.layout.public)}

    def _summaries(self, chosen: Chosen | None) -> dict[int, list[bytes]]:
        """Return the packed summaries of each bucket, as they are for this choice."""
        program = self.program.at(chosen)
        choice = program.reach, program.centres
        if choice not in self.settled:
            measures = program.measures, program.shared_measures
            settle = Settle(self.bounder, *measures, 1, self.program)
            settle.start_bundle()
            found = self.settled[choice] = collections.defaultdict(list)
            for lines in self.people[0]:
                for bucket, packed in settle.process((0, lines), chosen):
                    found[bucket].append(packed)
            for each in settle.finish_bundle():
                found[each.value[0]].append(each.value[1])
        return self.settled[choice]
