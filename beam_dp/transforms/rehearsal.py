"""Rehearsals: draw the same release many times, by the steps of its pipeline but without Beam.

Rows are collected, bounded and summarised once. Only the draws are made anew, of all partitions in
one bucket: who is cut by the bounds is the same in all draws.

NOTHING OF THIS IS PRIVATE: the true numbers stand beside what would be released, and many draws of
one budget cost many budgets. It is for public or old rows.
"""

import collections
import dataclasses
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from apache_beam.pvalue import TaggedOutput
from apache_beam.utils.windowed_value import WindowedValue

from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.metrics.base import takes
from beam_dp.mechanisms.metrics.sums import PeopleCount
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.compile import compile_program
from beam_dp.mechanisms.planning.program import Adaptive, Program
from beam_dp.mechanisms.planning.request import Request
from beam_dp.transforms.aggregate import PrivateAggregate
from beam_dp.transforms.columns.partition_keys import Key
from beam_dp.transforms.private_tables import PrivateTables, agreed
from beam_dp.transforms.stages import draw_once, noise_off
from beam_dp.transforms.stages.bound_and_summarise import (
    LARGE,
    SHARED,
    VOTES,
    WEIGHED,
    Collect,
    ReduceShards,
    Selected,
    Settle,
    adapted,
    open_bucket,
)
from beam_dp.transforms.stages.draw_once import BucketPartitions
from beam_dp.transforms.stages.draws_folder import Barriers

Numbers = Mapping[Key, tuple[Any, ...]]
"""The output columns of each partition."""
_DEEP = 1_000_000
"""A bound on rows that cuts nothing, for metrics that need one."""
_PEOPLE = PeopleCount(name="people of each partition")


def draws(run: PrivateTables, rows: Sequence[Any], runs: int) -> list[list[Numbers]]:
    """Return, per table, what so many independent releases of rows, or batches, would be.

    Where totals agree these are the numbers that do; rows (other) are left out.
    """
    made = []
    for table in run.tables:
        program, bounds = table._program, table._bounds.up_to(table._program.limit)
        made.append(_Rehearsal(table, rows, program, bounds, Noise()))
    found = [_drawn(run, made) for _ in range(runs)]
    return [list(of_table) for of_table in zip(*found, strict=True)]


def _drawn(run: PrivateTables, made: "Sequence[_Rehearsal]") -> list[Numbers]:
    """Return one release of each table."""
    drawn = [each.draw() for each in made]
    if not run.agrees:
        return [each.combined(blocks) for each, blocks in zip(made, drawn, strict=True)]
    numbers: list[dict[Key, tuple[Any, ...]]] = [{} for _ in made]
    order = [run.tables.index(table) for table in run.ordered]
    for place, block in agreed(b"", run.agreeing_tables, *(drawn[at] for at in order)):
        table = run.tables[at := order[place]]
        for key, row in block.rows(made[at].layout.public):
            if not table.has_other:
                numbers[at][key] = row
            elif not key[-1]:
                numbers[at][key[:-1]] = row
    return [*numbers]


def truth(release: PrivateAggregate, rows: Sequence[Any]) -> Numbers:
    """Return the numbers of all rows, or batches: no bound, no clip, no noise, no selection.

    They are rounded to the values that can be released. Of rows with several owners the first is
    the person; rows without that one are left out. The number of people, which is asked for as
    well, names every partition: ranks alone name none.
    """
    none: dict[str, Any] = {"clip": None}
    asked = [dataclasses.replace(m, **none) if takes(m, "clip") else m for m in release.metrics]
    most = release._bounds.max_rows_per_partition and _DEEP
    budget = noise_off.budget_of(release.budget, release.metrics)
    asked = [*asked, _PEOPLE]
    program = compile_program(Request(tuple(asked), budget, (1,), max_rows_per_partition=most))
    with warnings.catch_warnings(action="ignore", category=noise_off.NotPrivate), noise_off.block():
        made = _Rehearsal(release, rows, program, ContributionBounds(None), noise_off.noise())
        found = made.combined(made.draw())
    return {key: numbers[: -len(_PEOPLE.outputs)] for key, numbers in found.items()}


class _Rehearsal:
    """What is done once for all releases, and what each draws anew."""

    def __init__(
        self,
        release: PrivateAggregate,
        rows: Sequence[Any],
        program: Program,
        bounds: ContributionBounds,
        noise: Noise,
    ) -> None:
        self.program, self.how = program, (noise, Barriers())
        self.layout = release._laid_out(program.columns)
        keep_rows = program.keep_rows
        self.bounder = Bounder(bounds, program.fields, self.layout.key, keep_rows=keep_rows)
        self.settled: dict[Any, dict[int, list[bytes]]] = {}
        collected = bundle(Collect(self.layout, self.bounder, 1), rows)
        self.large: list[Any] = []
        self.people: list[Any] = [(0, [lines for _, lines in collected])]
        self.first = program.request.chooses or program.selection is not None
        if self.first:
            found = list(bundle(ReduceShards(self.bounder, program, 1), self.people))
            self.votes = [_bare(each) for each in found if getattr(each, "tag", "") == VOTES]
            weights = [_bare(each) for each in found if getattr(each, "tag", "") == WEIGHED]
            self.weights = [packed for _, packed in weights]
            self.large = [_bare(each) for each in found if getattr(each, "tag", "") == LARGE]
            self.people = [each for each in found if not isinstance(each, TaggedOutput)]

    def draw(self) -> list[draw_once.Block]:
        """Return what one release draws."""
        made, how, chosen = self.program, self.how, None
        selected: list[Selected] | None = None
        clips: tuple[Any, ...] = ()
        if made.request.chooses:
            _, chosen = draw_once.choose_parameters(b"", self.votes, made, *how)
        if made.selection is not None:
            parts = draw_once.select_partitions((0, self.weights), made, *how, chosen)
            selected = [part for _, (_, part) in parts]
        elif self.layout.partition and self.layout.public is None:  # the truth: all that have rows
            summary, _ = open_bucket(self._summaries(chosen, None)[0], made.measures)
            selected = [draw_once.named_partitions(0, summary)]
        choices = chosen, selected
        buckets, partitions = self._summaries(*choices), BucketPartitions(self.layout, 1)
        if adapted(made, *choices).shared_measures:
            covered = draw_once.covered_by((0, buckets[0]), made, partitions, *choices)
            given = made, *how, *choices, covered
            [(_, clips)] = draw_once.choose_clips((SHARED, buckets[SHARED]), *given)
        further = made, partitions, *how, clips, *choices
        drawn = draw_once.draw_bucket((0, buckets[0]), *further)
        return [block for key, (_, block) in drawn if key != draw_once.START]

    def combined(self, blocks: Sequence[draw_once.Block]) -> Numbers:
        """Return the numbers of what was drawn."""
        sums = [draw_once.sums_of(block, self.program) for block in blocks]
        whole = [draw_once.combined(block, self.program, sums) for block in blocks]
        return {key: row for block in whole for key, row in block.rows(self.layout.public)}

    def _summaries(
        self, chosen: Adaptive | None, selected: list[Selected] | None
    ) -> dict[int, list[bytes]]:
        """Return the packed summaries of each bucket, as they are for this choice."""
        program = adapted(self.program, chosen, selected)
        names = [each.identities.tobytes() for each in selected or ()]
        choice = program.max_partitions, chosen and chosen.centres, program.partitions, *names
        if choice not in self.settled:
            self.settled[choice] = collections.defaultdict(list)
            measures = program.measures, program.shared_measures
            settle = Settle(self.bounder, *measures, 1, self.program if self.first else None)
            for bucket, packed in bundle(settle, self.people, chosen, selected, self.large):
                self.settled[choice][bucket].append(packed)
        return self.settled[choice]


def _bare(tagged: Any) -> Any:
    """Return the element of a tagged output."""
    value = tagged.value
    return value.value if isinstance(value, WindowedValue) else value


def bundle(step: Any, elements: Iterable[Any], *given: Any) -> Iterator[Any]:
    """Yield what a step makes of the elements of a bundle."""
    step.start_bundle()
    for element in elements:
        yield from step.process(element, *given)
    for last in step.finish_bundle():
        yield last if isinstance(last, TaggedOutput) else last.value
