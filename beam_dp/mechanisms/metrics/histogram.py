"""Numbers of people per public bin: `Histogram`."""

import dataclasses
import itertools
import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.metrics.base import (
    UNIT,
    Command,
    Metric,
    Output,
    check_unit,
    interval_outputs,
)
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.releases.people_by_bin import HistogramRelease
from beam_dp.mechanisms.releases.released import Release, Released
from beam_dp.mechanisms.releases.request import ColumnRequest, Context, Request
from beam_dp.mechanisms.summaries.histograms import OPERATIONS, PersonBins

_OWNER = "Histogram"
_MEND = 'Write dp.Histogram("age", edges=[0, 18, 30, 65]).'
_MOST_BINS = 1000  # there are three output columns per bin
Edge = Fraction | float


@dataclasses.dataclass(frozen=True)
class Histogram(Metric):
    """Count the people per public bin of one number per person.

    A bin holds the numbers from one edge to below the next: of [0, 18, 30, 65] the first one has
    the ages 0 to 17. Whoever has a number below the first edge, or from the last edge on, is in no
    bin; with `-math.inf` or `math.inf` as the outermost edge there is a bin for them. Each person
    of a partition is in one bin at most, so all bins together cost as much as one number of people,
    and each has the same noise, however many there are.

    A bin has the columns `histogram_<column>_<from>_<to>`, `..._low` and `..._high`; with a name,
    `<name>_<from>_<to>`. Of a number below 0 or no integer the name says `minus_5` and `0_5`. Each
    interval holds with 95% alone, not all of them together.

    Attributes:
        column: the value column; rows without a valid value do not count.
        edges: two or more public numbers, rising.
        person_value: what a person with several rows counts as: the "mean" of their values, the
            "sum", the "max" or the "min".
        unit: the grid of values.
    """

    whole: ClassVar[bool] = True
    command: ClassVar[Command] = Command(
        "COLUMN:EDGE:EDGE...", "number of people with a value from each EDGE to below the next"
    )

    column: str
    edges: Sequence[checks.Real]
    _: dataclasses.KW_ONLY
    person_value: str = "mean"
    unit: checks.Real = UNIT

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(_OWNER, "person_value", self.person_value, tuple(OPERATIONS))
        check_unit(_OWNER, self.unit)
        if isinstance(self.edges, str) or not isinstance(self.edges, (Sequence, np.ndarray)):
            rule = f"be a list of numbers, not {checks.shown(self.edges)}"
            raise checks.ParameterTypeError(_OWNER, "edges", rule, _MEND)
        edges = tuple(_edge(each) for each in self.edges)
        _check_edges(edges)
        object.__setattr__(self, "edges", edges)

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The columns of each bin: its number of people, and the ends of the interval."""
        names = (f"{self.output}_{_word(low)}_{_word(high)}" for low, high in self._bins)
        return tuple(output for name in names for output in interval_outputs(name, True))

    @property
    def _bins(self) -> list[tuple[Edge, Edge]]:
        return list(itertools.pairwise(_edge(each) for each in self.edges))

    def requests(self) -> tuple[Request, ...]:
        """Return all bins as one request."""
        [column] = self.columns()
        finite = tuple(each for each in map(_edge, self.edges) if isinstance(each, Fraction))
        first = int(isinstance(self.edges[0], Fraction))
        return (HistogramRequest(column, finite, first, len(self._bins), self.person_value),)

    def output_columns(self, released: Released) -> tuple[np.ndarray, ...]:
        """Return the number and the interval of every bin; no true number is below 0."""
        ends = (np.maximum(end, 0.0) for end in (released.low, released.high))
        triples = zip(*(each.T for each in (released.values, *ends)), strict=True)
        return tuple(column for triple in triples for column in triple)


@dataclasses.dataclass(frozen=True)
class HistogramRequest(ColumnRequest):
    """The number of people per bin.

    Attributes:
        edges: the finite edges, in the scale of the column.
        first: the first bucket that is a bin: 0 if numbers below all edges have one.
        bins: how many bins there are.
        person_value: what a person's values become.
    """

    word: ClassVar[str] = "histogram"

    edges: tuple[Fraction, ...]
    first: int
    bins: int
    person_value: str

    def build(self, context: Context, share: Budget) -> Release:
        """Return the counts plus noise; a partition's share is for all of its bins."""
        assert self.column is not None
        unit = self.column.detail
        measure = PersonBins(
            source=context.field(self.column, OPERATIONS[self.person_value]),
            # A multiple of the unit is below an edge if it is at most the last one below.
            thresholds=tuple(math.ceil(edge / unit) - 1 for edge in self.edges),
            additive=False,
            count=context.field(self.column, "count"),
            mean=self.person_value == "mean",
        )
        return HistogramRelease(measure, self.first, self.bins, context.each(share), context.alpha)


def _edge(value: object) -> Edge:
    """Return an edge as the decimal that it was written as; the infinities as they are."""
    if isinstance(value, (float, np.floating)) and math.isinf(value):
        return float(value)
    exact = checks.decimal(_OWNER, "every edge", value)
    rule = "be a number that floats can hold, below 1.8e308, or infinite"
    checks.require(abs(exact) <= sys.float_info.max, _OWNER, "every edge", rule)
    return exact


def _check_edges(edges: tuple[Edge, ...]) -> None:
    """Refuse edges that bound no bin, do not rise, or are too many."""
    enough = 2 <= len(edges) <= _MOST_BINS + 1
    rule = f"be 2 to {_MOST_BINS + 1} numbers, not {len(edges)}"
    checks.require(enough, _OWNER, "edges", rule, _MEND)
    rising = all(low < high for low, high in itertools.pairwise(edges))
    checks.require(rising, _OWNER, "edges", "rise: each is above the one before", _MEND)


def _word(edge: Edge) -> str:
    """Return an edge as a part of a column's name."""
    whole = isinstance(edge, Fraction) and edge.denominator == 1
    return (str(int(edge)) if whole else str(float(edge))).replace("-", "minus_", 1)
