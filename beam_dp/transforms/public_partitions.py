"""PublicPartitions: the partitions to release, as a list that is known beforehand.

*Of a collection* (`CollectedPartitions`): public keys that the pipeline itself reads, as a side
input. The list is not known when the pipeline is built. So it limits nobody's partitions
beforehand: the bound is one that is given, or chosen privately, as for private partitions. When the
job runs, the list is made once, in the order of its encoded keys, so that every step that gets it,
also one that is run again, knows a partition by the same index.
"""

import dataclasses
import datetime
import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypedDict

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.columns import ids
from beam_dp.transforms.columns.layout import column_of
from beam_dp.transforms.columns.partition_keys import Key, clean, encode
from beam_dp.transforms.columns.public_keys import KeyList, PublicKeys, plain_column
from beam_dp.transforms.columns.row_fields import FieldLists, is_columnar
from beam_dp.transforms.io.read_rows import ReadRows
from beam_dp.transforms.steps import quick_steps

_OWNER = "PublicPartitions"
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
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


@dataclasses.dataclass(frozen=True, init=False)
class PublicPartitions:
    """Name the partitions to release; all of them appear, empty ones too.

    The list must not come from the data: it is published as it is. Rows of other partitions are
    dropped before contribution bounding, and use up nothing of a person's bounds. Costs no budget.

    `PublicPartitions.product(day=range(1, 8), country=["DE", "FR"])` lists all combinations,
    `PublicPartitions.from_files("countries.csv", ["country"])` reads the list, and
    `PublicPartitions.from_collection(keys)` has the pipeline read it.

    Edge cases: a key that is listed twice is taken once; "1" in the data is the public key 1.

    Args:
        keys: ints, strings, dates or booleans, or tuples of these for several partition columns.

    Raises:
        ValueError: for an empty list, or keys that differ only in their type (1 and "1").
        TypeError: for keys of other types, and for a PCollection.

    Attributes:
        names: the partition columns of the parts, where they are known; () otherwise.
    """

    keys: KeyList
    names: tuple[str, ...] = dataclasses.field(default=(), compare=False)

    def __init__(self, keys: Iterable[object], names: tuple[str, ...] = ()) -> None:
        if isinstance(keys, (str, bytes, beam.PCollection)) or not isinstance(keys, Iterable):
            raise checks.ParameterTypeError(
                "PublicPartitions",
                "keys",
                f"be a list of public keys, not {kind_of(keys)}",
                "Write PublicPartitions([1, 2, 3]); what is in the data is not public. "
                "Of a collection that is: PublicPartitions.from_collection(keys).",
            )
        object.__setattr__(self, "keys", _listed(keys))
        object.__setattr__(self, "names", names)
        checks.require(
            bool(self.keys),
            "PublicPartitions",
            "keys",
            "not be empty",
            "Write PublicPartitions([1, 2, 3]).",
        )
        _ = self.index  # which refuses keys that are one partition

    @classmethod
    def product(cls, **parts: Iterable[object]) -> "PublicPartitions":
        """Name all combinations of public values.

        Args:
            parts: for each partition column its values: day=range(1, 8), country=["DE", "FR"].

        Raises:
            TypeError, ValueError: for a column without values, and for values that are no keys.
        """
        mend = 'Write PublicPartitions.product(day=range(1, 8), country=["DE", "FR"]).'
        checks.require(bool(parts), f"{_OWNER}.product", "the columns", "not be none", mend)
        lists: list[list[object]] = []
        for name, values in parts.items():
            if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
                rule = f"be a list of values, not {checks.shown(values)}"
                raise checks.ParameterTypeError(f"{_OWNER}.product", name, rule, mend)
            lists.append(list(values))
            checks.require(bool(lists[-1]), f"{_OWNER}.product", name, "not be empty", mend)
        return cls(itertools.product(*lists), tuple(parts))

    @classmethod
    def from_files(
        cls, pattern: str, columns: Sequence[str], quotes: bool = True
    ) -> "PublicPartitions":
        """Read the keys from files, now: all combinations that occur, each once.

        A column of a CSV file whose cells are all plain decimal integers has integer keys.

        Args:
            pattern: the files, as for `ReadRows`: .parquet, .csv or .jsonl.
            columns: their columns, which have the names of the partition columns.
            quotes: whether quotes have a meaning in CSV files.

        Raises:
            TypeError, ValueError, OSError: for files that cannot be read or have no such column,
                and for a row without a key.
        """
        read = ReadRows(pattern, columns, quotes=quotes)
        parts: list[list[object]] = [[] for _ in read.columns]
        for element in read.here():
            for part, name in zip(parts, read.columns, strict=True):
                part += cells_of(element, name)
        for name, part in zip(read.columns, parts, strict=True):
            checks.require(
                None not in part, _OWNER, f"column {name!r} of {pattern!r}", "have no empty cell"
            )
        typed = [typed_keys(part) if ".csv" in pattern else part for part in parts]
        return cls(zip(*typed, strict=True), tuple(read.columns))

    @classmethod
    def from_collection(cls, keys: beam.PCollection[Any]) -> CollectedPartitions:
        """Take the keys from a collection of the pipeline that the rows are in.

        The collection must be public: it must not come from the data. What is no key is left out.
        As the number of keys is not known when the pipeline is built, `bounds` should say how many
        partitions a person keeps; otherwise that is chosen privately, for a part of the budget.

        Args:
            keys: a bounded collection of keys, of tuples of key parts, or of rows that have the
                partition columns, as `ReadRows` makes them.
        """
        return CollectedPartitions(keys)

    def ordered(self, owner: str, columns: tuple[str, ...]) -> "PublicPartitions":
        """Return the same keys with their parts in the order of the partition columns.

        Raises:
            ValueError: for keys of other columns.
        """
        if self.names in ((), columns):
            return self
        checks.require(
            sorted(self.names) == sorted(columns),
            owner,
            "partitions",
            f"have the columns of partition, {', '.join(columns)}, not {', '.join(self.names)}",
        )
        indexes = [self.names.index(name) for name in columns]
        return PublicPartitions(KeyList(self.keys.columns[index] for index in indexes), columns)

    def __reduce__(self) -> tuple[type, tuple[KeyList, tuple[str, ...]]]:
        return PublicPartitions, (self.keys, self.names)

    @functools.cached_property
    def index(self) -> PublicKeys:
        """The keys in the form that rows are matched with."""
        return PublicKeys(self.keys)


def typed_keys(parts: Sequence[Any]) -> Sequence[object]:
    """Return texts as integers where all of them are plain decimal integers.

    They match text in the data too ("1" in a CSV file is the key 1), so only the type of the output
    depends on this.
    """
    return [int(part) for part in parts] if all(map(_INTEGER.fullmatch, parts)) else parts


def cells_of(element: Any, name: str) -> list[object]:
    """Return the cells of a column in an element of `ReadRows`."""
    return [element.get(name)] if isinstance(element, dict) else element.column(name).to_pylist()


def kind_of(value: object) -> str:
    """Return a value as messages about it show it."""
    return "a PCollection" if isinstance(value, beam.PCollection) else repr(value)


def _listed(keys: Iterable[object]) -> KeyList:
    """Return each key once, in the order of `keys`; refuse values that are no keys."""
    if isinstance(keys, KeyList):
        return keys
    values = keys if isinstance(keys, (list, tuple, range)) else list(keys)
    plain = KeyList.of_plain(values)
    if plain is not None:
        return plain
    listed = [key if isinstance(key, tuple) else (key,) for key in values]
    same = len(set(map(len, listed))) == 1
    if same and all(plain_column(part) is not None for part in zip(*listed, strict=True)):
        return KeyList.of(dict.fromkeys(listed))
    # By type and value: 1 and True are equal to Python, and a later check refuses them together.
    once = {tuple((type(part), part) for part in key): key for key in map(_checked, listed)}
    checks.require(same or not listed, _OWNER, "keys", "all have the same number of parts")
    return KeyList.of(once.values())


def _checked(key: tuple[object, ...]) -> Key:
    for part in key:
        if ids.is_float(part) or clean(part) is None:
            raise checks.ParameterTypeError(
                "PublicPartitions",
                "a key",
                "be an int of 64 bits, a string, a date or a boolean (or a tuple of these), "
                f"not {checks.shown(part)}",
            )
    return tuple(clean(part) for part in key)
