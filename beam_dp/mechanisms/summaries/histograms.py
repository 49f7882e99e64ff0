"""Summarise people per partition: histograms over a public grid, or the top K with a total.

A `Measure` turns a person's contribution to a partition into one number s >= 0 (or, for extremes,
any number), and says what is kept of these numbers over all people:

* a **histogram** over public thresholds y_0 < y_1 < ...: for every bucket (y_{j-1}, y_j] the number
  of people in it and the sum of their s. It gives exactly, for every j, the number of people above
  y_j, which is the removal loss of max_i s_i at y_j, and sum_i min(s_i, y_j);
* a histogram **of norms**, over the norm of a person's numbers in all partitions: see `norms`;
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
from typing import NamedTuple

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

_NORM_BITS = 30
_WORD_BITS = 62
_ROOM = 1 << 62
_CELLS_PER_LINE = 4  # with more cells, most of them empty, lines are sorted sooner than counted
RESIDUAL = np.iinfo(np.int64).min
_SIGN = np.int64(np.iinfo(np.int64).max)


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
        cap: numbers are cut to this magnitude; None: they are not.
        fine: numbers are multiplied by this: a norm is then rounded by less.
        norm: 0; or 1 or 2: buckets are those of the L1 or L2 norm of a person's numbers in all
            partitions (`norms`), and in place of people stand shares of that norm.
        steps: how many steps a whole share has.
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
    cap: int | None = None
    fine: int = 1
    norm: int = 0
    steps: int = 1

    def of(self, table: Table) -> tuple[np.ndarray, np.ndarray]:
        """Return the lines of `table` that have a number, and these numbers (exact, in units)."""
        numbers = _numbers(table, self.source)
        if self.centre:
            numbers = self._about_centre(table, numbers)
        if self.once and not self.centre:
            numbers = np.minimum(numbers, 1)
        if self.cap is not None:
            numbers = np.clip(numbers, -self.cap, self.cap)
        if self.fine > 1:
            numbers = integers.product(numbers, np.array([self.fine]))
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
            numbers = integers.add(numbers, integers.product(each, integers.alone(factor)))
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
            return self._between_thresholds(numbers)
        side = np.where(np.asarray(numbers < 0, bool), len(self.thresholds) + 1, 0)
        return self._between_thresholds(abs(numbers)) + side

    def _between_thresholds(self, numbers: np.ndarray) -> np.ndarray:
        """Return for each number how many thresholds are below it."""
        if numbers.dtype == object:
            return np.searchsorted(np.array(self.thresholds, object), numbers)
        # Numbers of 64 bits lie strictly between the sentinels: so far out, all edges are alike.
        inside = [max(integers.LOWEST, min(integers.HIGHEST, each)) for each in self.thresholds]
        return np.searchsorted(np.array(inside, np.int64), numbers)


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
        people: what counts for each person who has a value; if it has a norm, each bucket is cut
            into further ones by that.
    """

    count: int
    mean: bool
    people: Measure

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
        return self._between_thresholds(numbers)


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

    @classmethod
    def nothing(cls) -> "Summary":
        """Return a summary without lines."""
        empty = np.empty(0, np.int64)
        return cls(np.empty((1, 0), np.uint64), empty, empty, empty, empty)


class Vectors(NamedTuple):
    """The numbers that people have in all their partitions.

    Attributes:
        present: the lines that have a number.
        numbers: these numbers.
        starts: where each person begins among them.
        norms: the norm of each person; without a norm, their largest number.
    """

    present: np.ndarray
    numbers: np.ndarray
    starts: np.ndarray
    norms: np.ndarray


@dataclasses.dataclass(eq=False)
class Contributions:
    """Settled contributions, one line per (person, partition); the lines of a person stand together.

    Attributes:
        table: all of them.
        bounded: those of a bounded number of partitions of each person, from which all measures but
            norms are made; None: the same.
    """

    table: Table
    bounded: Table | None = None
    _vectors: dict[Measure, Vectors] = dataclasses.field(default_factory=dict, init=False)

    def of(self, measure: Measure) -> Table:
        """Return those that a measure is made from."""
        return self.table if self.bounded is None or measure.norm else self.bounded

    def vectors(self, measure: Measure) -> Vectors:
        """Return the numbers of people, and their norms, which are found once."""
        if measure in self._vectors:
            return self._vectors[measure]
        table = self.of(measure)
        present, numbers = measure.of(table)
        person = table.person if len(present) == len(table) else pick(table.person, present)
        starts = np.flatnonzero(changes(person)) if len(present) else present
        if not measure.norm:
            return Vectors(present, numbers, starts, _largest(numbers, starts, measure.sign))
        found = Vectors(present, numbers, starts, norms(numbers, starts, measure.norm))
        self._vectors[measure] = found
        return found


def summarise(people: Contributions, measures: Sequence[Measure | Relation]) -> Summary:
    """Return the summary of settled contributions.

    It is reduced for each measure alone, and in their order: `reduce` brings all lines of a
    partition together. A relation keeps its index in the list, and has no lines here (see `owner_lines`).

    Args:
        people: the contributions.
        measures: what is summarised.
    """
    lines = [
        reduce(_lines(people, measure, index), measures)
        for index, measure in enumerate(measures)
        if isinstance(measure, Measure)
    ]
    return concatenate(lines or [Summary.nothing()])


def summarise_people(people: Contributions, measures: Sequence[Measure]) -> Summary:
    """Return the summary of each person's norm, or largest number, over all partitions.

    A norm has the sign of the sum of their numbers. The result has one partition, whose identity is
    0; the arguments are as of `summarise`.
    """
    lines = []
    for index, measure in enumerate(measures):
        _, numbers, starts, found = people.vectors(measure)
        if measure.norm and not measure.sign and len(starts):
            below = np.asarray(integers.segment_sums(numbers, starts) < 0, bool)
            found = np.asarray(np.where(below, -found, found))
        nothing = np.zeros(len(found), np.int64)
        nowhere, each = nothing.view(np.uint64)[None], nothing + 1
        line = Summary(nowhere, nothing + index, measure.buckets(found), each, nothing)
        lines.append(reduce(line, measures))
    return concatenate(lines)


def _largest(numbers: np.ndarray, starts: np.ndarray, sign: int) -> np.ndarray:
    """Return each person's largest number; for sign 0 that of the largest magnitude."""
    high = np.maximum.reduceat(numbers, starts)
    if sign:
        return high
    low = np.minimum.reduceat(numbers, starts)
    return np.asarray(np.where(np.asarray(low + high < 0, bool), low, high))


def norms(numbers: np.ndarray, starts: np.ndarray, norm: int) -> np.ndarray:
    """Return for each segment of numbers a whole number T that is at least their norm.

    *L1*: the sum of the magnitudes, exactly. *L2*: magnitudes a are taken as multiples of 2^k,
    rounded up, with k such that their sum has about 30 bits; T is 2^k times the root of the sum of
    their squares, rounded up, and no more than the sum of the magnitudes. For a single number it
    is exact, else too large by about a part of 2^-30 for each number.

    Args:
        numbers: exact columns; of narrow ones a segment has fewer than 2^29.
        starts: where the segments begin.
        norm: 1 or 2.
    """
    sizes = abs(numbers)
    sums = integers.segment_sums(sizes, starts)
    if norm == 1:
        return sums
    shift = np.maximum(_bits(sums) - _NORM_BITS, 0)
    coarse = sizes
    if shift.any():
        lines = np.repeat(shift, np.diff(starts, append=len(sizes)))
        coarse = (-(-sizes >> lines)).astype(np.int64)
    squares = np.add.reduceat(coarse * coarse, starts)
    roots = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    roots -= roots * roots > squares
    roots += roots * roots < squares
    return integers.narrow(np.minimum(roots.astype(sums.dtype) << shift, sums))


def shares(numbers: np.ndarray, whole: np.ndarray, lengths: np.ndarray, steps: int) -> np.ndarray:
    """Return numbers over their norms in so many steps, rounded towards 0.

    So the norm of the shares of a person is at most `steps`: each is at most `steps` |a| / T. Of
    wide words the last bits are left out first, of T upwards, unless the number is all of T.

    Args:
        numbers: what a person has in each partition.
        whole: T of each person, at least 1.
        lengths: in how many partitions each person has something.
        steps: a power of two.
    """
    sizes, wholes = abs(numbers), np.repeat(whole, lengths)
    shift = np.maximum(_bits(whole) + (steps.bit_length() - 1) - _WORD_BITS, 0)
    if shift.any():
        lines = np.repeat(shift, lengths)
        found = (sizes >> lines) * steps // ((wholes >> lines) + (lines > 0))
        found = np.where(np.asarray(sizes == wholes, bool), steps, found)
    else:
        found = sizes * steps // wholes
    found = np.asarray(found, np.int64)
    below = np.asarray(numbers < 0, bool)
    return np.asarray(np.where(below, -found, found)) if below.any() else found


def _bits(numbers: np.ndarray) -> np.ndarray:
    """Return so many bits that the numbers, from 0 on, surely have no more."""
    return np.frexp(numbers.astype(np.float64))[1].astype(np.int64)


def _lines(people: Contributions, measure: Measure, index: int) -> Summary:
    """Return one line for each person of each partition, with what counts for them there."""
    table, counted, bins = people.of(measure), measure, None
    if isinstance(measure, PersonBins):  # those who have a number are those who have a value
        counted, bins = measure.people, measure.buckets(measure.of(table)[1])
    vectors = people.vectors(counted) if counted.norm else None
    present, numbers = counted.of(table) if vectors is None else (vectors.present, vectors.numbers)
    total = numbers if counted.additive else np.zeros(len(present), np.int64)
    whole = len(present) == len(table)
    partition = table.partition if whole else pick(table.partition, present)
    counts = np.ones(len(present), np.int64)
    if vectors is not None and len(present):
        lengths = np.diff(vectors.starts, append=len(present))
        counts = shares(total, vectors.norms, lengths, counted.steps)
        bucket = np.repeat(counted.buckets(vectors.norms), lengths)
        if bins is not None:
            bucket += bins * (len(counted.thresholds) + 1)
    else:
        bucket = counted.buckets(numbers) if bins is None else bins
    if measure.keep and measure.additive:
        total = from_bits(bucket)
    return Summary(partition, np.full(len(present), index), bucket, counts, total, table.names)


def reduce(summary: Summary, measures: Sequence[Measure | Relation]) -> Summary:
    """Merge equal lines and keep the top K, in the order of partition, measure and bucket."""
    if not len(summary):
        return summary
    words, size = _words(summary)
    if words is not None and size <= _CELLS_PER_LINE * len(summary):
        summary = _counted(summary, words, size)
    else:
        summary = _merge_equal(summary, *_order(summary, words, size))
    if not any(measure.keep for measure in measures):
        return summary
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
    return _merge_equal(summary, np.arange(len(summary)), _new_lines(summary))


def _words(summary: Summary) -> tuple[np.ndarray | None, int]:
    """Return a number of each line, in the order of partition, measure, bucket, and how many there
    may be; None where a number has no room."""
    codes, size, words = summary.partition[0], 1, np.zeros(len(summary), np.int64)
    if summary.partition.shape[0] > 1 or int(codes.max()) >= _ROOM:
        return None, size
    for column in (codes.view(np.int64), summary.measure, summary.bucket):
        low = int(column.min())
        size *= (span := int(column.max()) - low + 1)
        if size >= _ROOM:
            return None, size
        words = words * span + (column - low)
    return words, size


def _counted(summary: Summary, words: np.ndarray, size: int) -> Summary:
    """Return equal lines merged, in the order of their words, which are few."""
    lines = np.full(size, -1)
    lines[words] = np.arange(len(summary))  # any of the equal ones
    found = np.flatnonzero(lines >= 0)
    people, total = (
        integers.sums_at(words, column, size)[found] for column in (summary.people, summary.total)
    )
    return dataclasses.replace(summary.take(lines[found]), people=people, total=total)


def _order(summary: Summary, words: np.ndarray | None, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the order by partition, measure, bucket, and where a line differs from that before it.

    It sorts one packed word where that fits. It takes a quarter of the time to sort words that end
    in the index of the line.
    """
    bits = len(summary).bit_length()
    if words is not None and size <= _ROOM >> bits:
        packed = words << bits
        packed |= np.arange(len(summary))
        packed.sort()
        return packed & (1 << bits) - 1, changes(packed[None] >> bits)
    order = np.lexsort((summary.bucket, summary.measure, *summary.partition))
    return order, _new_lines(summary.take(order))


def _new_cell(summary: Summary) -> np.ndarray:
    """Return where the lines of another (partition, measure) begin."""
    return np.asarray(changes(summary.partition) | changes(summary.measure[None]))


def _new_lines(summary: Summary) -> np.ndarray:
    """Return where a line differs from the line before it, but for its people and total."""
    return np.asarray(_new_cell(summary) | changes(summary.bucket[None]))


def _merge_equal(summary: Summary, order: np.ndarray, new: np.ndarray) -> Summary:
    """Return lines in an order in which equal ones stand together, each of these merged."""
    starts = np.flatnonzero(new)
    heads = order[starts]
    people, total = summary.people[order], summary.total[order]
    if len(heads) < len(order):
        people, total = (integers.segment_sums(column, starts) for column in (people, total))
    partition, measure = pick(summary.partition, heads), summary.measure[heads]
    return Summary(partition, measure, summary.bucket[heads], people, total, summary.names)


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
