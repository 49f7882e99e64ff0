"""Which partitions are released: a public list of them, or those that are selected privately."""

import dataclasses
import functools
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apache_beam as beam
import pyarrow.compute as pc

from beam_dp.mechanisms.bounding.contribution_bounds import AUTO, ContributionBounds
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.budget_split import SelectionRequest
from beam_dp.transforms.columns.public_keys import KeyList, PublicKeys, plain_column
from beam_dp.transforms.io.file_format import RFC_4180, CsvFormat, cells_of
from beam_dp.transforms.io.read_rows import ReadRows, matched_files

_SUBJECT = "PublicPartitions"
_NUMBERS = (int, float, int | None, float | None)
_PUBLIC = "Write partitions=dp.PublicPartitions([1, 2, 3])."
BOUNDS = "Write bounds=dp.ContributionBounds(partitions=3)."
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
        hint = (
            "Write PublicPartitions([1, 2, 3]); what is in the data is not public. Of a file "
            "that is: PublicPartitions.from_files(path, columns)."
        )
        _check_list(_SUBJECT, "keys", keys, "public keys", hint)
        object.__setattr__(self, "keys", _listed(keys))
        object.__setattr__(self, "names", names)
        hint = "Write PublicPartitions([1, 2, 3])."
        checks.require(bool(self.keys), _SUBJECT, "keys", "not be empty", hint)

    @classmethod
    def product(cls, **parts: Iterable[object]) -> "PublicPartitions":
        """Name all combinations of public values.

        Args:
            parts: for each partition column its values: day=range(1, 8), country=["DE", "FR"].

        Raises:
            TypeError, ValueError: for a column without values, and for values that are no keys.
        """
        hint = 'Write PublicPartitions.product(day=range(1, 8), country=["DE", "FR"]).'
        for name, values in parts.items():
            _check_list(f"{_SUBJECT}.product", name, values, "values", hint)
        return cls(itertools.product(*parts.values()), tuple(parts))

    @classmethod
    def from_files(
        cls, pattern: str, columns: Sequence[str], csv: CsvFormat = RFC_4180
    ) -> "PublicPartitions":
        """Read the keys from files, now: all combinations that occur, each once.

        A column of a CSV file whose cells are all plain decimal integers has integer keys.

        Args:
            pattern: the files, as for `ReadRows`: .parquet, .csv or .jsonl.
            columns: their columns, which have the names of the partition columns.
            csv: how the cells of CSV files are written: quotes and encoding.

        Raises:
            TypeError, ValueError, OSError: for files that cannot be read or have no such column,
                and for a row without a key.
        """
        read = ReadRows(pattern, columns, csv=csv)
        for each in pattern.split(","):
            matched_files(each, _SUBJECT)
        elements = read.here()
        parts = [cells_of(elements, name) for name in read.columns]
        for name, part in zip(read.columns, parts, strict=True):
            column = f"column {name!r} of {pattern!r}"
            checks.require(None not in part, _SUBJECT, column, "have no empty cell")
        typed = parts if read.format.typed else map(typed_keys, parts)
        return cls(zip(*typed, strict=True), tuple(read.columns))

    def ordered(self, subject: str, columns: tuple[str, ...]) -> "PublicPartitions":
        """Return the same keys with their parts in the order of the partition columns.

        Raises:
            ValueError: for keys of other columns.
        """
        if self.names in ((), columns):
            return self
        rule = f"have the columns of partition, {', '.join(columns)}, not {', '.join(self.names)}"
        checks.require(sorted(self.names) == sorted(columns), subject, "partitions", rule)
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


def _check_list(subject: str, name: str, values: object, of: str, hint: str) -> None:
    """Refuse what is no list; of a collection in a pipeline nothing is public."""
    no_list = isinstance(values, (str, bytes, Mapping, beam.PCollection))
    if no_list or not isinstance(values, Iterable):
        shown = "a PCollection" if isinstance(values, beam.PCollection) else checks.shown(values)
        raise checks.ParameterTypeError(subject, name, f"be a list of {of}, not {shown}", hint)


def _listed(keys: Iterable[object]) -> KeyList:
    """Return each key once, in order; refuse values that are no keys."""
    if isinstance(keys, KeyList):
        return keys
    values = keys if isinstance(keys, (list, tuple, range)) else list(keys)
    if values and not any(issubclass(kind, tuple) for kind in set(map(type, values))):
        return KeyList([pc.unique(plain_column(values))])
    listed = [key if isinstance(key, tuple) else (key,) for key in values]
    same = len(set(map(len, listed))) < 2
    checks.require(same, _SUBJECT, "keys", "all have the same number of parts")
    return KeyList.of(dict.fromkeys(KeyList.of(listed)))


@dataclasses.dataclass(frozen=True)
class PrivatePartitions:
    """Select the partitions to release privately, by their people.

    A partition with few people is kept with a small probability: with one person alone, at most
    delta. Optimal truncated geometric selection counts people (`TruncatedGeometric`), and costs
    once per partition of a person. Weighted selection costs once for all: a person with k
    partitions adds 1 / sqrt(k) to each (`WeightedThreshold`). That is taken which needs fewer
    people, if everybody is in as many partitions as may count: 64, or the bound that is given.
    Partitions are selected before anything is clipped: what people have in others costs no
    accuracy. Needs a delta above 0.

    Args:
        pre_threshold: never release a partition with fewer people than this.
        weight: the part of epsilon for the selection, relative to the metrics' weights.
    """

    pre_threshold: int = 1
    weight: checks.Real = 1

    def __post_init__(self) -> None:
        checks.positive_integer("PrivatePartitions", "pre_threshold", self.pre_threshold)
        checks.fraction_between("PrivatePartitions", "weight", self.weight, 0, math.inf)

    def request(self) -> SelectionRequest:
        """Return the selection as a request to the program."""
        weight = checks.number("PrivatePartitions", "weight", self.weight)
        return SelectionRequest(weight, self.pre_threshold)


Partitions = PublicPartitions | PrivatePartitions


@dataclasses.dataclass(eq=False)
class TopPartitions(beam.PTransform[beam.PCollection[beam.Row], beam.PCollection[beam.Row]]):
    """Keep the k released partitions with the largest number in one output column.

    It ranks rows that were released, and looks at nothing else: post-processing, which costs no
    budget (Dwork, Roth, 2014, Proposition 2.1). So noisy numbers are ranked. The interval of a
    partition that you would have looked at anyway holds in 95 of 100 releases; that of a partition
    which noise has put first holds less often. `docs/top_partitions.md` says when to release the k
    partitions once more. Mechanisms for the k largest return names only, with noise of scale
    k / epsilon.

    Edge cases: rows without a number come last; of equal numbers, the row is kept whose text comes
    last. With fewer than k rows all are kept.

    Args:
        k: how many partitions to keep.
        by: the output column to rank by, like "people_count".

    Raises:
        TypeError, ValueError: when the pipeline is built; also for a column that is none of the
            release, and for batches.
    """

    k: int
    by: str

    def __post_init__(self) -> None:
        checks.positive_integer("TopPartitions", "k", self.k, "Write TopPartitions(10, by=...).")
        checks.column("TopPartitions", "by", self.by)

    def expand(self, released: beam.PCollection[Any]) -> beam.PCollection[beam.Row]:
        """Rank all rows in one place, of which each worker sends its best k there."""
        fields = getattr(released.element_type, "_fields", ())
        numbers = [name for name, kind in fields if kind in _NUMBERS]
        known = ", ".join(numbers) or "of rows, not of batches"
        rule = f"be one of the numbers {known}, not {self.by!r}"
        checks.require(self.by in numbers, "TopPartitions", "by", rule)
        first = functools.partial(_place, by=self.by)
        best = beam.combiners.Top.Of(self.k, key=first).without_defaults()
        taken = beam.FlatMap(lambda rows: rows).with_output_types(released.element_type)
        return released | "KeepBest" >> best | "TakeRows" >> taken


def _place(row: beam.Row, by: str) -> tuple[float, str]:
    """Return what rows are ordered by, the best last; a row without a number is below all."""
    number = getattr(row, by)
    return -math.inf if number is None or math.isnan(number) else number, str(row)


def check_partitions(
    subject: str, columns: tuple[str, ...], partitions: Partitions | None
) -> Partitions | None:
    """Return how partitions are chosen; None without partition columns: there is one partition."""
    if not columns:
        rule = "be left out without partition columns"
        hint = "Name the column as partition, or leave the keys out."
        checks.require(partitions is None, subject, "partitions", rule, hint)
        return None
    if partitions is None:
        return PrivatePartitions()
    if not isinstance(partitions, Partitions):
        rule = f"be PublicPartitions or PrivatePartitions, not {checks.shown(partitions)}"
        raise checks.ParameterTypeError(subject, "partitions", rule, _PUBLIC)
    if isinstance(partitions, PublicPartitions):
        parts = len(partitions.keys.columns)
        rule = f"have one part per partition column ({len(columns)}), not {parts}"
        checks.require(parts == len(columns), subject, "public keys", rule)
        return partitions.ordered(subject, columns)
    return partitions


def check_public(
    subject: str, columns: tuple[str, ...], partitions: PublicPartitions | None
) -> PublicPartitions | None:
    """Return the public partitions, if any; refuse private ones, which only a release selects."""
    rule = "be PublicPartitions or left out: nothing is released here"
    public = not isinstance(partitions, PrivatePartitions)
    checks.require(public, subject, "partitions", rule, _PUBLIC)
    listed = None if partitions is None else check_partitions(subject, columns, partitions)
    return listed if isinstance(listed, PublicPartitions) else None


def check_bounds(
    subject: str, bounds: ContributionBounds | None, asked: Sequence[Metric] | None = None
) -> ContributionBounds:
    """Return the bounds; for None, an automatic one where that is possible, else none.

    Limits on rows alone leave the bound on partitions automatic too, or without a limit.

    Args:
        subject: the name that errors begin with.
        bounds: as the user gave them.
        asked: what is released beside partitions; None: nothing is released here, and so nothing
            can be chosen privately.

    Raises:
        TypeError, ValueError: for what is not bounds, and for "auto" where none can be chosen.
    """
    possible = asked is not None and all(metric.takes_auto_bound for metric in asked)
    if bounds is None:
        return ContributionBounds(AUTO if possible else None)
    checks.of_type(subject, "bounds", bounds, ContributionBounds, BOUNDS)
    if bounds.is_automatic and not possible and bounds.max_rows_per_partition is not None:
        return bounds.up_to(None)  # limits on rows alone were meant
    rule = (
        'be a number or None, not "auto": it is chosen privately only beside what is released, for '
        "rows of one owner, where people are added or removed and all pay the same"
    )
    fits = possible or not bounds.is_automatic
    checks.require(fits, subject, "bounds.partitions", rule, BOUNDS)
    return bounds
