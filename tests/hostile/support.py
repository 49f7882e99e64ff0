"""Run rows through the house up to the noise, and see what is left of them, partition by partition.

A pipeline starts from one token, and the rows are looked up in the worker, which runs in this process.
Their coder encodes nothing: Beam measures the size of random elements by encoding them, which fails
on lone surrogates and on objects without a pickle before any transform sees them.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
from apache_beam.coders import coder_impl
from apache_beam.options.pipeline_options import PipelineOptions

from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Column, Field, Role
from beam_dp.mechanisms.summaries.histograms import PEOPLE, ROWS, Measure
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.columns.partition_keys import Key
from beam_dp.transforms.columns.public_keys import PublicKeys
from beam_dp.transforms.stages import bound_and_summarise as summarising
from beam_dp.transforms.stages import draw_once

KEY = bytes(range(32))
UNIT = Fraction(1, 10**6)
VALUE = Column("value", Role.VALUE, UNIT)
UNBOUNDED = ContributionBounds(None)
_EVERYTHING = (1 << 200,)
_TOKENS = itertools.count()
_GIVEN: dict[int, list[Any]] = {}
_SEEN: dict[int, list[Any]] = {}

FIELDS = (Field(0, "sum"), Field(0, "count"))
MEASURES = (
    Measure(PEOPLE),
    Measure(ROWS, 1, _EVERYTHING),
    Measure(0, 1, _EVERYTHING),
    Measure(0, -1, _EVERYTHING),
    Measure(1, 1, _EVERYTHING),
)


class Opaque:
    """The type of rows that are never encoded."""


class _NothingImpl(coder_impl.StreamCoderImpl):
    """Encodes every element as no bytes, without a look at it."""

    def encode_to_stream(self, value: Any, stream: Any, nested: bool) -> None:
        """Write nothing."""

    def decode_from_stream(self, stream: Any, nested: bool) -> None:
        """Read nothing."""

    def get_estimated_size_and_observables(
        self, value: Any, nested: bool = False
    ) -> tuple[int, list[Any]]:
        return 0, []


class _Nothing(beam.coders.Coder):
    """The coder of `Opaque`."""

    def _create_impl(self) -> _NothingImpl:
        return _NothingImpl()

    def is_deterministic(self) -> bool:
        return False


beam.coders.registry.register_coder(Opaque, _Nothing)


class Visit(NamedTuple):
    """A row as a NamedTuple."""

    person: object
    day: object
    value: object


@dataclasses.dataclass(frozen=True)
class Content:
    """What is left of the rows of a partition.

    Attributes:
        people: how many people.
        rows: how many rows.
        total: the sum of their values, exactly, in units.
        valid: how many rows have a value.
    """

    people: int = 0
    rows: int = 0
    total: int = 0
    valid: int = 0


def as_dict(row: Sequence[object]) -> dict[str, object]:
    return dict(zip(Visit._fields, row, strict=True))


def as_row(row: Sequence[object]) -> beam.Row:
    return beam.Row(**as_dict(row))


def as_batch(row: Sequence[object], types: Mapping[str, pa.DataType] = {}) -> pa.RecordBatch:
    """Return a batch of one row; a value that already is an array is taken as it is."""
    columns = [
        value if isinstance(value, pa.Array) else pa.array([value], types.get(name))
        for name, value in zip(Visit._fields, row, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, list(Visit._fields))


def layout(public: PublicKeys | None = None, partition: tuple[str, ...] = ("day",)) -> Layout:
    return Layout("person", partition, (VALUE,), public, KEY)


def start(pipeline: beam.Pipeline, rows: Iterable[object]) -> beam.PCollection:
    """Return the rows as a collection; none of them is ever pickled."""
    token = next(_TOKENS)
    _GIVEN[token] = list(rows)
    return pipeline | beam.Create([token]) | beam.FlatMap(_given).with_output_types(Opaque)


def _given(token: int) -> Iterator[Any]:
    return iter(_GIVEN[token])


def keep(collection: beam.PCollection, label: str = "Keep") -> list[Any]:
    """Return a list that holds the elements of the collection once the pipeline has run."""
    token = next(_TOKENS)
    seen = _SEEN[token] = []
    _ = collection | label >> beam.Map(_see, token)
    return seen


def _see(element: Any, token: int) -> None:
    _SEEN[token].append(element)


def released(rows: Iterable[object], transform: beam.PTransform, **flags: Any) -> list[Any]:
    """Return what a transform makes of rows in a pipeline of its own."""
    options = PipelineOptions.from_dictionary({"runner": "FnApiRunner", **flags})
    with beam.Pipeline(options=options) as pipeline:
        return keep(start(pipeline, rows) | transform)


def contents(
    rows: Iterable[object],
    bounds: ContributionBounds = UNBOUNDED,
    found: Layout | None = None,
) -> dict[Key, Content]:
    """Return what a whole pipeline leaves of the rows, before any noise."""
    seen = released(rows, summarise(found or layout(), bounds))
    return dict(read(seen, found or layout()))


def summarise(found: Layout, bounds: ContributionBounds) -> summarising.Summarise:
    """Return the transform under test with a fixed key."""
    return summarising.Summarise(found, Bounder(bounds, FIELDS, KEY), MEASURES, shards=4)


def read(seen: list[tuple[int, Iterable[bytes]]], found: Layout) -> list[tuple[Key, Content]]:
    """Return the content of the one bucket that `summarise` makes."""
    [(bucket, packed)] = seen
    places = draw_once.BucketPartitions(found, 1)
    summary, lines = summarising.open_bucket(packed, MEASURES)
    every = draw_once.named_partitions(bucket, summary)
    cells, names = places.cells(bucket, summary, lines, [every])
    return list(zip(places.names(names), _contents(cells), strict=True))


def _contents(cells: PartitionView) -> Iterator[Content]:
    totals = [cells.totals(place) for place in range(1, len(MEASURES))]
    for people, rows, above, below, valid in zip(
        cells.histogram(0, 1)[0].ravel().tolist(), *totals, strict=True
    ):
        yield Content(int(people), int(rows), int(above - below), int(valid))


class Hostile:
    """Raises whatever is asked of it, if it is asked."""

    __hash__: Any = property(lambda self: 1 / 0)
    __class__: Any = property(lambda self: 1 / 0)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    def __repr__(self) -> str:
        raise RuntimeError

    def __getattribute__(self, name: str) -> object:
        raise RuntimeError
