"""PublicPartitions: the partitions to release, as a list that is known beforehand."""

import dataclasses
import functools
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any

import apache_beam as beam
import pyarrow.compute as pc

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.columns.public_keys import KeyList, PublicKeys, plain_column
from beam_dp.transforms.io.file_format import cells_of
from beam_dp.transforms.io.read_rows import ReadRows

_OWNER = "PublicPartitions"
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")


@dataclasses.dataclass(frozen=True, init=False)
class PublicPartitions:
    """Name the partitions to release; all of them appear, empty ones too.

    The list must not come from the data: it is published as it is. Rows of other partitions are
    dropped before contribution bounding, and use up nothing of a person's bounds. Costs no budget.

    `PublicPartitions.product(day=range(1, 8), country=["DE", "FR"])` lists all combinations, and
    `PublicPartitions.from_files("countries.csv", ["country"])` reads the list.

    Edge cases: a key that is listed twice is taken once; "1" in the data is the public key 1.

    Args:
        keys: ints, strings, dates or booleans, or tuples of these for several partition columns.

    Raises:
        ValueError: for an empty list.
        TypeError: for keys of other types, for several types in one column (1 and "1"), and for a
            PCollection.

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
                "Write PublicPartitions([1, 2, 3]); what is in the data is not public. Of a file "
                "that is: PublicPartitions.from_files(path, columns).",
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

    @classmethod
    def product(cls, **parts: Iterable[object]) -> "PublicPartitions":
        """Name all combinations of public values.

        Args:
            parts: for each partition column its values: day=range(1, 8), country=["DE", "FR"].

        Raises:
            TypeError, ValueError: for a column without values, and for values that are no keys.
        """
        mend = 'Write PublicPartitions.product(day=range(1, 8), country=["DE", "FR"]).'
        for name, values in parts.items():
            if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
                rule = f"be a list of values, not {checks.shown(values)}"
                raise checks.ParameterTypeError(f"{_OWNER}.product", name, rule, mend)
        return cls(itertools.product(*parts.values()), tuple(parts))

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
        elements = read.here()
        parts = [cells_of(elements, name) for name in read.columns]
        for name, part in zip(read.columns, parts, strict=True):
            checks.require(
                None not in part, _OWNER, f"column {name!r} of {pattern!r}", "have no empty cell"
            )
        typed = parts if read.format.typed else map(typed_keys, parts)
        return cls(zip(*typed, strict=True), tuple(read.columns))

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


def kind_of(value: object) -> str:
    """Return a value as messages about it show it."""
    return "a PCollection" if isinstance(value, beam.PCollection) else repr(value)


def _listed(keys: Iterable[object]) -> KeyList:
    """Return each key once, in order; refuse values that are no keys."""
    if isinstance(keys, KeyList):
        return keys
    values = keys if isinstance(keys, (list, tuple, range)) else list(keys)
    if values and not any(isinstance(key, tuple) for key in values):
        return KeyList([pc.unique(plain_column(values))])
    listed = [key if isinstance(key, tuple) else (key,) for key in values]
    same = len(set(map(len, listed))) < 2
    checks.require(same, _OWNER, "keys", "all have the same number of parts")
    return KeyList.of(dict.fromkeys(KeyList.of(listed)))
