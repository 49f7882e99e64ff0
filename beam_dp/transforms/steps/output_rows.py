"""Released numbers as `beam.Row`s with a schema, or as column batches.

The type of rows some of whose columns may hold anything, for runners that are written in Java.

Flink's and Spark's runners read the schema of what crosses a shuffle, and fail at a column of any
type ("Unexpected type_info: TYPEINFO_NOT_SET"). To them such rows are bytes; to Python, rows with a
schema as before.
"""

import dataclasses
import keyword
import re
from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.coders import Coder, registry
from apache_beam.coders.row_coder import RowCoder
from apache_beam.typehints.row_type import GeneratedClassRowTypeConstraint, RowTypeConstraint

from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.metrics.items import DistinctCount, MaxFrequency, SumOfSquares
from beam_dp.mechanisms.metrics.totals import Count, PeopleCount
from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.columns.layout import Layout
from beam_dp.transforms.columns.public_keys import PublicKeys
from beam_dp.transforms.partitions import Partitions, PrivatePartitions, PublicPartitions
from beam_dp.transforms.steps.released_block import Block, typed


class _OpenRow(GeneratedClassRowTypeConstraint):
    """A schema that only Python reads."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _OpenRow, (self._fields,)


class _OpenRowCoder(RowCoder):
    """The coder of a row, shown to the runner as one that it does not know.

    It is unpickled as the `RowCoder` that it is, so a worker needs nothing of this module.
    """

    def to_runner_api_parameter(self, context: Any) -> Any:
        """Send the coder pickled, instead of its schema."""
        return Coder.to_runner_api_parameter(self, context)


registry.register_coder(_OpenRow, _OpenRowCoder)


def row_type(fields: Sequence[tuple[str, Any]]) -> RowTypeConstraint:
    """Return the type of rows with these columns.

    Args:
        fields: the name and the type of each column, `Any` where it is not known.
    """
    unknown = any(kind is Any for _, kind in fields)
    return _OpenRow(fields) if unknown else RowTypeConstraint.from_fields(fields)


ERROR = "_error"
_WHOLE = (Count, PeopleCount, DistinctCount, MaxFrequency, SumOfSquares)
_TAKEN = ("self", "")


def plain_name(name: str) -> str:
    """Return the words of `name` with underscores between: "Time spent (min)": Time_spent_min."""
    return re.sub(r"\W+", "_", name).strip("_")


def field_name(name: str) -> str:
    """Return `name` as a field of a schema: plain, no keyword, no number first."""
    plain = plain_name(name) or "column"
    taken = keyword.iskeyword(plain) or plain in _TAKEN or not plain.isidentifier()
    return f"column_{plain}" if taken else plain


def check_names(owner: str, partition: Sequence[str], metrics: Sequence[Metric]) -> None:
    """Refuse two output columns of one name."""
    names = output_names(partition, metrics)
    doubled = sorted({name for name in names if names.count(name) > 1})
    checks.require(
        not doubled,
        f"{owner}: output columns must have different names, not {doubled} twice. "
        'Name a metric: dp.Sum("spent", name="revenue").',
    )


def check_batches(owner: str, batches: object, partitions: Partitions | None) -> None:
    """Refuse batches of keys that have not one type each, known beforehand."""
    if type(batches) is not bool:
        raise TypeError(f"{owner}: batches must be True or False, not {batches!r}.")
    checks.require(
        not (batches and isinstance(partitions, PrivatePartitions)),
        f"{owner}: batches must be False with private partitions: their keys can be of any types. "
        "Leave it out, or name public partitions.",
    )
    checks.require(
        not (batches and isinstance(partitions, PublicPartitions)) or partitions.keys.plain,
        f"{owner}: batches must be False where public keys of one column have several types. "
        "Leave it out, or give all of them as text.",
    )


def output_names(partition: Sequence[str], metrics: Sequence[Metric]) -> tuple[str, ...]:
    """Return the names of the output columns, in order."""
    named = [field_name(metric.output) for metric in metrics]
    numbers = [name for one in named for name in (one, one + ERROR)]
    return (*map(field_name, partition), *numbers)


def output_type(
    partition: Sequence[str], metrics: Sequence[Metric], layout: Layout
) -> RowTypeConstraint:
    """Return the schema of the output: key columns as typed as is known, then numbers."""
    kinds = [_key_type(place, layout) for place in range(len(partition))]
    for metric in metrics:
        kinds += [int if _is_whole(metric) else float, float]
    names = output_names(partition, metrics)
    return row_type(list(zip(names, kinds, strict=True)))


def _is_whole(metric: Metric) -> bool:
    """Return whether a metric's numbers are whole: given outputs need not be."""
    given = vars(metric).get("candidates") is not None
    searched = vars(metric).get("one_sided", True)
    return isinstance(metric, _WHOLE) and not (given and searched)


def _key_type(place: int, layout: Layout) -> Any:
    """Return the type of a key column, from the public list alone.

    Private keys come out as they are in the data, whatever the input's schema says of them: a coder
    that believed it would fail on the one row that does not.
    """
    kinds = layout.public.keys.kinds(place) if layout.public is not None else set()
    return kinds.pop() if len(kinds) == 1 and kinds <= {int, str, bool} else Any


@dataclasses.dataclass(eq=False)
class OutputRows(beam.PTransform):
    """Turn released blocks into what users take: `beam.Row`s, or batches with `batches`.

    Attributes:
        partition: the partition columns.
        metrics: what was released.
        layout: which columns hold what.
        batches: give `pyarrow.RecordBatch`es of up to some thousand rows.
    """

    partition: Sequence[str]
    metrics: Sequence[Metric]
    layout: Layout
    batches: bool = False

    def expand(self, blocks: beam.PCollection) -> beam.PCollection:
        """Name the columns and give them their types."""
        names = output_names(self.partition, self.metrics)
        wholes = [_is_whole(metric) for metric in self.metrics]
        if self.batches:
            step = beam.Map(as_batch, names, wholes, self.layout.public)
            return blocks | "Batches" >> step.with_output_types(pa.RecordBatch)
        kind = output_type(self.partition, self.metrics, self.layout)
        step = beam.FlatMap(as_rows, names, wholes, self.layout.public)
        return blocks | "Rows" >> step.with_output_types(kind)


def as_rows(
    block: Block, names: Sequence[str], wholes: Sequence[bool], public: PublicKeys | None
) -> Iterator[beam.Row]:
    """Yield each row of a block under its names."""
    for key, numbers in _typed(block, wholes).rows(public):
        yield beam.Row(**dict(zip(names, (*key, *numbers), strict=True)))


def as_batch(
    block: Block, names: Sequence[str], wholes: Sequence[bool], public: PublicKeys | None
) -> pa.RecordBatch:
    """Return a block as a batch under its names; its keys are those of a public list or none."""
    keys = public.keys.columns if public is not None else ()
    places = pa.array(block.keys)
    numbers = map(pa.array, _typed(block, wholes).numbers)
    return pa.RecordBatch.from_arrays([*(_part(part, places) for part in keys), *numbers], names)


def _part(keys: pa.Array, places: pa.Array) -> pa.Array:
    """Return one part of the keys at some places, with the type that a file of rows has."""
    taken = keys.take(places)
    return taken.cast(pa.string()) if pa.types.is_large_string(taken.type) else taken


def _typed(block: Block, wholes: Sequence[bool]) -> Block:
    kinds = [kind for whole in wholes for kind in (whole, False)]
    numbers = tuple(map(typed, block.numbers, kinds))
    return dataclasses.replace(block, numbers=numbers)
