"""CollectedPartitions: public keys that the pipeline itself reads, as a side input.

The list is not known when the pipeline is built. So it limits nobody's partitions beforehand: the
bound is one that is given, or chosen privately, as for private partitions. When the job runs, the
list is made once, in the order of its encoded keys, so that every step that gets it, also one that
is run again, knows a partition by the same index.
"""

import dataclasses
import datetime
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypedDict

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.building import quick_steps
from beam_dp.transforms.columns import ids
from beam_dp.transforms.columns.layout import column_of
from beam_dp.transforms.columns.partition_keys import Key, clean, encode
from beam_dp.transforms.columns.public_keys import KeyList, PublicKeys
from beam_dp.transforms.columns.row_fields import FieldLists, is_columnar

_OWNER = "PublicPartitions"
_PLAIN = (bool, int, str, datetime.date)


class KeysAsSide(TypedDict, total=False):
    """The argument of steps that take the public keys when the job runs; empty: they take none."""

    keys: Any


@dataclasses.dataclass(frozen=True, eq=False)
class CollectedPartitions:
    """Public partitions from a collection; made by `PublicPartitions.from_collection`.

    Attributes:
        keys: the collection: keys, tuples of key parts, or rows that have the partition columns.
    """

    keys: beam.PCollection[Any]

    def __post_init__(self) -> None:
        if not isinstance(self.keys, beam.PCollection):
            rule = f"be a PCollection of public keys, not {checks.shown(self.keys)}"
            mend = "Write PublicPartitions([1, 2, 3]) for a list."
            raise checks.ParameterTypeError(_OWNER, "keys", rule, mend)
        windowed = not isinstance(self.keys.windowing.windowfn, GlobalWindows)
        checks.require(
            bool(self.keys.is_bounded) and not windowed,
            _OWNER,
            "keys",
            "be bounded and in the global window",
            "Read them from files: dp.ReadRows(pattern, columns).",
        )

    def as_side(self, columns: Sequence[str], pipeline: beam.Pipeline) -> KeysAsSide:
        """Return the list as the side input of steps.

        Args:
            columns: the partition columns.
            pipeline: that of the rows, which the collection must belong to.
        """
        checks.require(
            self.keys.pipeline is pipeline,
            _OWNER,
            "keys",
            "be a collection of the pipeline that the rows are in",
        )
        label = f"Public partitions of {self.keys.producer.full_label}"
        found = quick_steps.flat_mapped(keys_in, tuple(columns)).with_output_types(Any)
        keys = (
            self.keys
            | f"{label}: Keys" >> found
            | f"{label}: Collect" >> beam.combiners.ToList()
            | f"{label}: List" >> quick_steps.mapped(listed)
        )
        return {"keys": beam.pvalue.AsSingleton(keys)}


def keys_in(element: Any, columns: tuple[str, ...]) -> Iterator[Key]:
    """Yield the keys of an element that are keys of so many columns; others are left out."""
    for parts in _parts_in(element, columns):
        key = tuple(clean(part) for part in parts)
        if len(key) == len(columns) and None not in key:
            yield key


def _parts_in(element: Any, columns: tuple[str, ...]) -> Iterable[tuple[object, ...]]:
    if is_columnar(element):
        parts = [column_of(element, name).to_pylist() for name in columns]
        return list(zip(*parts, strict=True))
    if type(element) is tuple:
        return [element]
    if isinstance(element, _PLAIN):
        return [(element,)]
    fields = FieldLists(columns)
    fields.add(element)
    return list(zip(*fields.drain(), strict=True))


def listed(keys: Iterable[Key]) -> PublicKeys:
    """Return the keys as the list of a run: each once, whatever its type, in one order."""
    ordered = sorted(keys, key=encode)
    once = {tuple(map(ids.canonical, key)): key for key in reversed(ordered)}
    return PublicKeys(KeyList.of(tuple(reversed(once.values()))))
