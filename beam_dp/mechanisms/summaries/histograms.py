"""Summarise people per partition: histograms over a public grid, or the top K with a total.

A `Measure` turns a person's contribution to a partition into one number s >= 0 (or, for extremes,
any number), and says what is kept of these numbers over all people:

* a **histogram** over public thresholds y_0 < y_1 < ...: for every bucket (y_{j-1}, y_j] the number
  of people in it and the sum of their s. It gives exactly, for every j, the number of people above
  y_j, which is the removal loss of max_i s_i at y_j, and sum_i min(s_i, y_j);
* the **top K**: the K largest numbers of single people and the total of all. It gives the removal
  profile of a sum, B[k] = total - (k largest), and of a maximum, B[k] = (k+1)-th largest.

Summaries are merged by adding equal lines and, for the top K, by dropping lines with K people above
them (their total stays, in one residual line). A line dropped from a part of the data has K people
above it there, hence in the whole: the reduction is associative and commutative. One person is one
line, because bounding has already brought each person's rows in a partition together.
"""

import dataclasses
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.bounding.ordering import changes, pick
from beam_dp.mechanisms.bounding.table import Columnar, Table, concatenate
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.partition_selection import weights_of
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.summaries.owner_lines import Relation

PEOPLE, ROWS, WEIGHTS = -1, -2, -3
"""Sources of a measure that are no fields: 1 for each person, the number of their rows, and what a
person adds to each of their partitions (`partition_selection.weights_of`)."""

_DENSE = 1 << 16
RESIDUAL = np.iinfo(np.int64).min
_SIGN = np.int64(np.iinfo(np.int64).max)


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of what a person has: rows with a given value among rows that have any.

    Attributes:
        field: the field that holds the part.
        rest: whether the rest is meant, not the part.
        steps: 0 for the part itself, else its share of the whole in so many steps, rounded down.
    """

    field: int
    rest: bool
    steps: int

    def of(self, table: Table, present: np.ndarray, whole: np.ndarray) -> np.ndarray:
        """Return the part of each person.

        Args:
            table: the people.
            present: the lines that have something.
            whole: what these lines have, at least 1.
        """
        part = np.clip(table.values[self.field][present], 0, whole)
        part = whole - part if self.rest else part
        return np.asarray(part * self.steps // whole if self.steps else part)


@dataclasses.dataclass(frozen=True)
class Measure:
    """Which number a person has in a partition, and what is kept of these numbers over people.

    Attributes:
        source: the index of the field that is read, or PEOPLE, ROWS or WEIGHTS.
        sign: 1 for the numbers, -1 for the mirrored numbers. 0, for a histogram, for both: the
            buckets of numbers below 0 follow those of the others.
        thresholds: the public grid of the histogram, in units; empty for the top K.
        keep: K, how many of the largest numbers are kept; 0 for a histogram.
        additive: whether totals matter: numbers that are not above 0 then count as absent.
        outputs: public candidates, each a bucket of the numbers that are rounded up to it; numbers
            above the last one count there. None: the buckets are those of `thresholds`.
        unit: what one unit is worth in the scale of `outputs`.
        counted: the field that says how many values a person has, where `centre` is not 0.
        centre: the numbers are sums of distances from it: it is taken off for each value.
        totals: for sums of squared distances, of a field "squares", the field that sums the values;
            None: the numbers are sums of distances.
        once: whether people are counted: numbers above 1 are taken for 1, and about a centre the
            values of a person are counted once.
        part: a part of these numbers, whose totals are kept in their place; None: the whole.
    """

    source: int
    sign: int = 1
    thresholds: tuple[int, ...] = ()
    keep: int = 0
    additive: bool = True
    outputs: Candidates | None = None
    unit: Fraction = Fraction(1)
    counted: int = PEOPLE
    centre: int = 0
    totals: int | None = None
    once: bool = False
    part: Part | None = None

    def of(self, table: Table) -> tuple[np.ndarray, np.ndarray]:
        """Return the lines of `table` that have a number, and these numbers (exact, in units)."""
        numbers = _numbers(table, self.source)
        if self.centre:
            numbers = self._about_centre(table, numbers)
        if self.once and not self.centre:
            numbers = np.minimum(numbers, 1)
        if not self.additive:
            present = ~integers.is_missing(
                numbers, integers.LOWEST if self.sign > 0 else integers.HIGHEST
            )
            return np.flatnonzero(present), numbers[present] * self.sign
        if self.sign < 0:
            numbers = -numbers
        wanted = numbers > 0 if self.sign else numbers != 0
        present = np.flatnonzero(np.asarray(wanted, bool))
        return present, numbers[present] if len(present) < len(numbers) else numbers

    def _about_centre(self, table: Table, numbers: np.ndarray) -> np.ndarray:
        """Return sums of v - c, or of (v - c)^2 = v^2 - 2 c v + c^2."""
        counts = _numbers(table, self.counted)
        parts = [(np.minimum(counts, 1) if self.once else counts, -self.centre)]
        if self.totals is not None:
            parts = [(_numbers(table, self.totals), -2 * self.centre), (counts, self.centre**2)]
        for each, factor in parts:
            factors = integers.narrow(np.array([factor], object))
            numbers = integers.add(numbers, integers.product(each, factors))
        return numbers

    def buckets(self, numbers: np.ndarray) -> np.ndarray:
        """Return the bucket of each number: of the histogram, or its rank among all floats.

        For the top K a number is first rounded to a double (a function of that person alone).
        """
        if self.keep:
            return ordered_bits(numbers.astype(np.float64))
        if self.outputs is not None:
            values = integers.scale(numbers, self.unit).astype(np.float64)
            return np.minimum(self.outputs.indexes(values), self.outputs.size - 1)
        if self.sign:
            return self._of_magnitudes(numbers)
        side = np.where(np.asarray(numbers < 0, bool), len(self.thresholds) + 1, 0)
        return self._of_magnitudes(abs(numbers)) + side

    def _of_magnitudes(self, numbers: np.ndarray) -> np.ndarray:
        """Return the bucket of each of these numbers above 0."""
        if numbers.dtype == object:
            grid = np.array(self.thresholds, object)
        else:
            grid = np.array([y for y in self.thresholds if y < 1 << 63], np.int64)
        return np.searchsorted(grid, numbers)


OPERATIONS = {"mean": "sum", "sum": "sum", "max": "max", "min": "min"}
"""For each person value that can be put in a bin, the field that it is made of."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PersonBins(Measure):
    """The number of people per bin of one number per person.

    Bucket j holds the numbers above threshold j - 1, up to threshold j; the last one those above
    all thresholds. A person without a value is in no bucket, everybody else in exactly one, which
    depends on the rows of that person alone: adding or removing a person changes one count by 1.

    Attributes:
        count: the index of the field that counts a person's values.
        mean: whether the number is `source` by `count`, rounded down; else it is `source`.
    """

    count: int
    mean: bool

    def of(self, table: Table) -> tuple[np.ndarray, np.ndarray]:
        """Return the lines of the people who have a number, and these numbers (in units)."""
        counts = table.values[self.count]
        present = np.flatnonzero(np.asarray(counts > 0, bool))
        numbers = table.values[self.source][present]
        if self.mean:
            numbers = integers.narrow(numbers // counts[present])
        return present, numbers

    def buckets(self, numbers: np.ndarray) -> np.ndarray:
        """Return the bucket of each number."""
        if numbers.dtype == object:
            return np.searchsorted(np.array(self.thresholds, object), numbers)
        # Numbers of 64 bits lie strictly between the sentinels: so far out, all edges are alike.
        inside = [max(integers.LOWEST, min(integers.HIGHEST, each)) for each in self.thresholds]
        return np.searchsorted(np.array(inside, np.int64), numbers)


def _numbers(table: Table, source: int) -> np.ndarray:
    """Return one number per line: a field, 1 for each person, their rows, or their weight."""
    if source == PEOPLE:
        return np.ones(len(table), np.int64)
    if source == WEIGHTS:  # the lines of a person stand together
        partitions = np.diff(np.flatnonzero(changes(table.person)), append=len(table))
        return np.repeat(weights_of(partitions), partitions)
    return table.rows if source == ROWS else table.values[source]


@dataclasses.dataclass
class Summary(Columnar):
    """Lines (partition, measure, bucket) with the number of people in it and their total."""

    partition: np.ndarray
    measure: np.ndarray
    bucket: np.ndarray
    people: np.ndarray
    total: np.ndarray
    names: dict[tuple[int, int], bytes] = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.measure)


def summarise(
    table: Table, measures: Sequence[Measure | Relation], counted: Table | None = None
) -> Summary:
    """Return the summary of settled contributions, one line per (person, partition).

    A relation keeps its index in the list, and has no lines here (see `owner_lines`).

    Args:
        table: the contributions.
        measures: what is summarised.
        counted: the pairs of the first measure, where those are others.
    """
    lines = [
        _lines(table if index or counted is None else counted, measure, index)
        for index, measure in enumerate(measures)
        if isinstance(measure, Measure)
    ]
    return reduce(concatenate(lines), measures)


def summarise_people(table: Table, measures: Sequence[Measure]) -> Summary:
    """Return the summary of each person's largest number over all partitions.

    The lines of one person must be consecutive, as `Bounder.settle` returns them. The result has
    one partition, whose identity is 0.
    """
    lines = []
    for index, measure in enumerate(measures):
        present, numbers = measure.of(table)
        person = table.person if len(present) == len(table) else pick(table.person, present)
        starts = np.flatnonzero(changes(person)) if len(present) else present
        largest = _largest(numbers, starts, measure.sign) if len(starts) else numbers
        lines.append(_people_lines(measure, index, largest))
    return reduce(concatenate(lines), measures)


def _largest(numbers: np.ndarray, starts: np.ndarray, sign: int) -> np.ndarray:
    """Return each person's largest number; for sign 0 that of the largest magnitude."""
    high = np.maximum.reduceat(numbers, starts)
    if sign:
        return high
    low = np.minimum.reduceat(numbers, starts)
    return np.asarray(np.where(np.asarray(low + high < 0, bool), low, high))


def _people_lines(measure: Measure, index: int, numbers: np.ndarray) -> Summary:
    nowhere, nothing = np.zeros((1, len(numbers)), np.uint64), np.zeros(len(numbers), np.int64)
    return _summary(measure, index, numbers, nothing, nowhere)


def _lines(table: Table, measure: Measure, index: int) -> Summary:
    present, numbers = measure.of(table)
    total = numbers if measure.additive else np.zeros(len(present), np.int64)
    if measure.part is not None:
        total = measure.part.of(table, present, numbers)
    whole = len(present) == len(table)
    partition = table.partition if whole else pick(table.partition, present)
    return dataclasses.replace(
        _summary(measure, index, numbers, total, partition), names=table.names
    )


def _summary(
    measure: Measure, index: int, numbers: np.ndarray, total: np.ndarray, partition: np.ndarray
) -> Summary:
    """Return one line per person, or per bucket of a histogram where buckets are few."""
    bucket = measure.buckets(numbers).astype(np.int64)
    if measure.keep and measure.additive:
        total = from_bits(bucket)
    if not measure.keep and partition.shape[0] == 1 and total.dtype != object and len(bucket):
        rows, width = int(partition.max()) + 1, int(bucket.max()) + 1
        if rows * width <= max(len(bucket), _DENSE) and integers.magnitude(total) < 1 << 62:
            return _dense(partition[0].astype(np.int64) * width + bucket, width, index, total)
    ones = np.ones(len(bucket), np.int64)
    return Summary(partition, np.full(len(bucket), index), bucket, ones, total)


def _dense(cell: np.ndarray, width: int, index: int, total: np.ndarray) -> Summary:
    """Return the merged lines; a cell is partition * width + bucket. Needs no sort."""
    people = np.bincount(cell)
    totals = np.zeros(len(people), np.int64)
    np.add.at(totals, cell, total)
    cells = np.flatnonzero(people)
    partition = (cells // width).astype(np.uint64)[None]
    measure = np.full(len(cells), index)
    return Summary(partition, measure, cells % width, people[cells], totals[cells])


def reduce(summary: Summary, measures: Sequence[Measure | Relation]) -> Summary:
    """Merge equal lines and keep the top K, in the order of partition, measure and bucket."""
    if not len(summary):
        return summary
    summary = summary.take(_order(summary))
    summary = _merge_equal(summary)
    keep = np.array([measure.keep for measure in measures], np.int64)[summary.measure]
    starts = np.flatnonzero(_new_cell(summary))
    sizes = np.diff(starts, append=len(summary))
    running = np.cumsum(summary.people)
    ends = np.repeat(running[starts + sizes - 1], sizes)
    dropped = (keep > 0) & (ends - running >= keep)
    if not dropped.any():
        return summary
    summary = dataclasses.replace(
        summary,
        bucket=np.where(dropped, RESIDUAL, summary.bucket),
        people=np.where(dropped, 0, summary.people),
    )
    return _merge_equal(summary)


def _order(summary: Summary) -> np.ndarray:
    """Return the order by partition, measure, bucket; it sorts one packed word where that fits."""
    codes = summary.partition[0]
    if summary.partition.shape[0] == 1 and int(codes.max()) < 1 << 40:
        spans = int(summary.measure.max()) + 1, int(summary.bucket.max()) + 1
        small = int(summary.bucket.min()) >= 0
        if small and int(codes.max() + np.uint64(1)) * spans[0] * spans[1] < 1 << 62:
            packed = (codes.astype(np.int64) * spans[0] + summary.measure) * spans[1]
            return np.argsort(packed + summary.bucket)
    return np.lexsort((summary.bucket, summary.measure, *summary.partition))


def _new_cell(summary: Summary) -> np.ndarray:
    """Return where the lines of another (partition, measure) begin."""
    return np.asarray(changes(summary.partition) | changes(summary.measure[None]))


def _merge_equal(summary: Summary) -> Summary:
    starts = np.flatnonzero(_new_cell(summary) | changes(summary.bucket[None]))
    merged = summary.take(starts)
    merged.people = np.add.reduceat(summary.people, starts)
    merged.total = integers.segment_sums(summary.total, starts)
    return merged


def partitions(summary: Summary) -> np.ndarray:
    """Return the identities of the partitions of a reduced summary, in its order."""
    return pick(summary.partition, changes(summary.partition))


def ordered_bits(numbers: np.ndarray) -> np.ndarray:
    """Return integers in the order of the floats; -0.0 and 0.0 give the same integer."""
    bits = (numbers + 0.0).view(np.int64)
    return np.where(bits < 0, bits ^ _SIGN, bits)


def from_bits(ordered: np.ndarray) -> np.ndarray:
    """Return the integers (as an exact column) that the ordered bits stand for."""
    numbers = np.where(ordered < 0, ordered ^ _SIGN, ordered).view(np.float64)
    if np.abs(numbers).max(initial=0.0) < 1 << 62:
        return numbers.astype(np.int64)
    wide = np.empty(len(numbers), object)
    wide[:] = [int(number) for number in numbers]
    return wide
