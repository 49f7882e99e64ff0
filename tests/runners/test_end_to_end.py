"""For one key the bounded data is the same on every runner, bit for bit; and so is the noise, once."""

import datetime
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that, equal_to

import beam_dp as dp
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.table import Column, Field, Role
from beam_dp.mechanisms.summaries import wire
from beam_dp.mechanisms.summaries.histograms import PEOPLE, ROWS, Measure
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.stages import bound_and_summarise as settling
from beam_dp.transforms.stages.bound_and_summarise import SHARED, Summarise

KEY = bytes(range(32))
GRID = (1 << 10, 1 << 20, 1 << 24, 1 << 200)
FIELDS = (Field(0, "sum"), Field(0, "max"))
MEASURES = (
    Measure(PEOPLE), Measure(ROWS, 1, GRID), Measure(0, 1, GRID), Measure(0, -1, GRID),
    Measure(1, 1, (), 5, False),
)  # fmt: skip
SHARED_MEASURES = (Measure(0, 0, GRID),)
BOUNDS = dp.ContributionBounds(3, 2, 4)
VALUE = Column("value", Role.VALUE, Fraction(1, 10**6))


def visit(row: int) -> dict[str, Any]:
    """Return a row of one of 50 people, with ids and keys of several types."""
    person = row * row % 51
    days = ["a", "b", "é", 7, True, datetime.date(2020, 1, 2)]
    return {
        "person": str(person) if row % 3 else person,
        "day": days[row * 5 % 6],
        "value": (row % 13 - 6) * 0.25,
    }


def prepared(bounds: dp.ContributionBounds) -> Summarise:
    layout = Layout("person", ("day",), (VALUE,), None, KEY)
    bounder = Bounder(bounds, FIELDS, KEY)
    return Summarise(layout, bounder, MEASURES, SHARED_MEASURES, 4, 16)


def canonical(element: tuple[int, Iterable[bytes]]) -> tuple[int, str]:
    """Return the merged, reduced summary of a bucket as the hexadecimal of its bytes."""
    measures = SHARED_MEASURES if element[0] == SHARED else MEASURES
    return element[0], wire.pack(settling.open_bucket(element[1], measures)[0]).hex()


def in_this_process(
    rows: list[dict[str, Any]], bounds: dp.ContributionBounds
) -> list[tuple[int, str]]:
    """Return what the pipeline must make of the rows: its steps called by hand, in one bundle."""
    whole = prepared(bounds)
    collect = settling.Collect(whole.layout, whole.bounder, whole.shards)
    settle = settling.Settle(whole.bounder, whole.measures, whole.shared, whole.buckets)
    collect.setup()
    collect.start_bundle()
    packed = [pair for row in rows for pair in collect.process(row)]
    packed += [value.value for value in collect.finish_bundle()]
    collect.teardown()
    settle.start_bundle()
    for shard in range(whole.shards):
        assert list(settle.process((shard, [blob for at, blob in packed if at == shard]))) == []
    buckets: dict[int, list[bytes]] = {place: [] for place in (SHARED, *range(whole.buckets))}
    for value in settle.finish_bundle():
        buckets[value.value[0]].append(value.value[1])
    return [canonical(bucket) for bucket in buckets.items()]


def test_bounded_data_is_the_same_bit_for_bit(pipeline_options: PipelineOptions) -> None:
    rows = [visit(row) for row in range(600)]
    expected = in_this_process(rows[::-1], BOUNDS)
    assert len({text for _, text in expected}) == len(expected)
    with beam.Pipeline(options=pipeline_options) as p:
        found = p | beam.Create(rows) | prepared(BOUNDS) | beam.Map(canonical)
        assert_that(found, equal_to(expected))
