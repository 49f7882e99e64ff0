"""The road to the summaries: the same bits however the rows are cut, spread and repeated."""

import typing
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

import beam_dp as dp
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Column, Field, Role, Table
from beam_dp.mechanisms.histogram_choice.clip_choice import ClipChoice
from beam_dp.mechanisms.histogram_choice.partition_bound import BoundChoice, edges_up_to
from beam_dp.mechanisms.metrics.additive.additive_release import STEPS
from beam_dp.mechanisms.planning.program import Adaptive, Program
from beam_dp.mechanisms.summaries import wire
from beam_dp.mechanisms.summaries.histograms import PEOPLE, ROWS, Measure
from beam_dp.transforms.columns import public_keys
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.stages import bound_and_summarise
from beam_dp.transforms.stages.bound_and_summarise import SHARED, Collect, Settle, Summarise
from tests.doubles import compile_program
from tests.hostile import support

KEY = bytes(range(32))
TOP = (1 << 200,)
GRID = (1 << 20, 1 << 30, 1 << 40)
FIELDS = (Field(0, "sum"), Field(0, "max"))
MEASURES = (
    Measure(PEOPLE), Measure(ROWS, 1, TOP), Measure(0, 1, GRID), Measure(0, -1, GRID),
    Measure(1, 1, (), 3, False),
)  # fmt: skip
SHARED_MEASURES = (Measure(0, 0, GRID), Measure(ROWS, 1, (1, 2, 4)))
BOUNDS = ContributionBounds(2, 2, 3)
VALUE = Column("value", Role.VALUE, Fraction(1, 10**6))


class Visit(NamedTuple):
    person: int
    day: str
    value: float


def layout(public: public_keys.PublicKeys | None = None) -> Layout:
    return Layout("person", ("day",), (VALUE,), public, KEY)


def visits(size: int = 400) -> list[Visit]:
    """Return rows of 40 people in 12 partitions, some rows equal."""
    return [
        Visit(row * row % 41, f"day {row * 7 % 12}", (row % 11 - 5) * 1.25) for row in range(size)
    ]


def facts(packed: Sequence[bytes], measures: Sequence[Measure]) -> list[tuple[Any, ...]]:
    """Return the merged, reduced summary of a bucket as plain lines."""
    found = bound_and_summarise.open_bucket(packed, measures)[0]
    columns = [found.measure, found.bucket, found.people, found.total]
    return sorted(
        (tuple(partition), *line)
        for partition, line in zip(
            found.partition.T.tolist(),
            zip(*(column.tolist() for column in columns), strict=True),
            strict=True,
        )
    )


def check(element: tuple[int, typing.Iterable[bytes]]) -> tuple[int, list[tuple[Any, ...]]]:
    measures = SHARED_MEASURES if element[0] == SHARED else MEASURES
    return element[0], facts(list(element[1]), measures)


def run(
    rows: Sequence[object], bounds: ContributionBounds = BOUNDS, **options: Any
) -> dict[int, Any]:
    """Return the facts of every bucket after a pipeline with this many bundles or so."""
    shards, buckets = options.pop("shards", 8), options.pop("buckets", 3)
    bounder = Bounder(bounds, FIELDS, KEY)
    transform = Summarise(layout(), bounder, MEASURES, SHARED_MEASURES, buckets, shards)
    with beam.Pipeline("FnApiRunner", PipelineOptions([], **options)) as pipeline:
        collection = pipeline | beam.Create(rows, reshuffle=len(rows) > 1)
        found = support.keep(collection | transform | beam.Map(check))
    return dict(found)


def merged(found: dict[int, Any]) -> list[Any]:
    return sorted(line for bucket, lines in found.items() if bucket != SHARED for line in lines)


@pytest.fixture(scope="module")
def expected() -> dict[int, Any]:
    return run([visit._asdict() for visit in visits()])


WAYS: dict[str, Any] = {
    "backwards": lambda: run([visit._asdict() for visit in reversed(visits())]),
    "named tuples": lambda: run(visits()),
    "Rows": lambda: run([beam.Row(**visit._asdict()) for visit in visits()]),
    "many tables": lambda: run(tables(visits(), 7)),
    "threads": lambda: run(visits(), direct_running_mode="multi_threading", direct_num_workers=2),
    "one shard": lambda: run(visits(), shards=1),
    "many shards": lambda: run(visits(), shards=256),
}


def tables(rows: Sequence[Visit], size: int) -> list[pa.Table]:
    table = pa.Table.from_pylist([row._asdict() for row in rows])
    return [table.slice(start, size) for start in range(0, len(table), size)]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_gives_the_same_bits(way: str, expected: dict[int, Any]) -> None:
    assert WAYS[way]() == expected


class GiveTables(beam.DoFn):
    """Yields whole Arrow tables where rows of a schema are expected, as Beam's readers do."""

    @beam.DoFn.yields_batches
    def process(self, start: int) -> Iterator[pa.Table]:
        yield from tables(visits(), 50)

    def infer_output_type(self, input_type: object) -> object:
        return Visit


def test_rows_with_a_schema_arrive_as_tables(expected: dict[int, Any]) -> None:
    bounder = Bounder(BOUNDS, FIELDS, KEY)
    transform = Summarise(layout(), bounder, MEASURES, SHARED_MEASURES, 3, 8)
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        rows = pipeline | beam.Create([0]) | beam.ParDo(GiveTables())
        found = support.keep(rows | transform | beam.Map(check))
    assert dict(found) == expected


def test_empty_input_still_fills_every_bucket() -> None:
    assert run([], buckets=4) == {0: [], 1: [], 2: [], 3: [], SHARED: []}


def test_shards_are_decided_by_the_person() -> None:
    collect = Collect(layout(), Bounder(ContributionBounds(None), FIELDS, KEY), 8)
    collect.setup()
    collect.start_bundle()
    for visit in visits():
        assert list(collect.process(visit)) == []
    owner: dict[int, int] = {}
    for value in collect.finish_bundle():
        shard, blob = value.value
        for person in wire.unpack(blob).person[0].tolist():
            assert owner.setdefault(person, shard) == shard
    collect.teardown()
    assert len(owner) == len({visit.person for visit in visits()})
    assert len(set(owner.values())) > 2


def test_a_failed_bundle_leaves_nothing_behind() -> None:
    collect = Collect(layout(), Bounder(BOUNDS, FIELDS, KEY), 8)
    collect.setup()
    collect.start_bundle()
    list(collect.process(Visit(1, "a", 1.0)))
    for table in tables(visits(), 50):
        list(collect.process(table))
    collect.start_bundle()
    assert list(collect.finish_bundle()) == []
    collect.teardown()
    settle = Settle(Bounder(BOUNDS, FIELDS, KEY), MEASURES, (), 1)
    settle.start_bundle()
    assert list(settle.process((0, []))) == [] and list(settle.finish_bundle()) == []


def test_the_parts_of_a_person_meet_before_the_bounds_settle() -> None:
    """A broken twin settles every bundle by itself: then a person reaches more partitions."""
    bounder = Bounder(ContributionBounds(2), FIELDS, KEY)
    days = [
        layout().from_lists([[1] * 3, days, [1.0] * 3])[0]
        for days in (["a", "b", "c"], ["d", "e", "f"])
    ]
    parts = [wire.pack(bounder.reduce(bounder.prepare(table))) for table in days]
    right = bounder.settle(bound_and_summarise.gather(parts, bounder))
    wrong = [bounder.settle(bound_and_summarise.gather([part], bounder)) for part in parts]
    assert right is not None and len(right) == 2
    assert sum(len(table) for table in wrong if table is not None) == 4


def settled(made: Program, bounder: Bounder, table: Table, *chosen: Any) -> dict[int, list[bytes]]:
    """Return the summaries of whole people after a choice, of one bucket and of all partitions."""
    settle = Settle(bounder, made.measures, made.shared_measures, 1, made)
    settle.start_bundle()
    given = 0, wire.pack(bounder.reduce(bounder.prepare(table)))
    packed = [*settle.process(given, *chosen)]
    packed += [element.value for element in settle.finish_bundle()]
    return {at: [blob for bucket, blob in packed if bucket == at] for at in (0, SHARED)}


def test_pairs_beyond_a_chosen_bound_count_for_norms_alone() -> None:
    """Ten people are in nine partitions each: one stays for ranks, and all count for a norm."""
    metrics = [dp.Count(), dp.Max("value", candidates=dp.Candidates.of(range(5)))]
    made = compile_program(metrics, dp.Budget(1), edges_up_to(9), partitions=9)
    people, places = (part.ravel().astype(np.uint64) for part in np.mgrid[:10, :9])
    bounder = Bounder(ContributionBounds(None), made.fields, KEY)
    values = [np.full(90, 3)] * len(made.columns)
    table = Table(people[None], places[None], np.ones(90, np.int64), values)
    choice = ClipChoice(made.request.search_cost, made.request.ladder)
    bound = BoundChoice(1, choice, np.zeros((1, 1, choice.buckets), np.int64))
    blobs = settled(made, bounder, table, Adaptive(bound))
    summary, _ = bound_and_summarise.open_bucket(blobs[0], made.measures)
    norms = np.array([measure.norm for measure in made.measures])[summary.measure]
    # In every partition each has a share of 1 / 9 of their norm.
    assert summary.people[norms == 1].sum() == 90 * (STEPS // 9)
    assert summary.people[norms == 0].sum() == 10
    everybody, _ = bound_and_summarise.open_bucket(blobs[SHARED], made.shared_measures)
    [counted] = (measure for measure in made.shared_measures if measure.norm)
    assert everybody.people.tolist() == [10] and counted.thresholds[everybody.bucket[0]] == 9
