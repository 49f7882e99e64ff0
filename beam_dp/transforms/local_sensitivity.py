"""LocalSensitivity: audit a function of histograms at many histograms, in parallel."""

import dataclasses
import math
import sys
from collections.abc import Iterator
from typing import Any

import apache_beam as beam

from beam_dp.mechanisms import sensitivity
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.numerics.user_functions import check_callable
from beam_dp.mechanisms.sensitivity import gradient
from beam_dp.mechanisms.sensitivity.gradient import Counts, Function, Histogram
from beam_dp.transforms.steps import guards

Direction = tuple[Counts, Counts, int]
_OWNER = "LocalSensitivity"


@dataclasses.dataclass(eq=False)
class LocalSensitivity(beam.PTransform[beam.PCollection[Histogram], beam.PCollection[beam.Row]]):
    """Compute the local sensitivity of a function at every histogram of a collection. NOT PRIVATE.

    For each histogram x (a sequence of counts, one per bin) one row: `histogram` and `sensitivity`,
    the largest p-norm of f(x) - f(x') over all x' with one person more or one fewer. The
    directions of one histogram are spread over the workers, so that a slow f is asked in parallel.
    The rows show how f behaves on these histograms: a tool to test your own f before you trust it,
    on made-up histograms. Keep the output where the input is kept.

    Edge cases: the sensitivity is infinite where one of the two values is infinite, or where it is
    beyond all floats. Equal histograms give one row; a histogram without bins has no neighbours,
    and gives no row. An f that raises fails the run: this is a test of f, not a release.

    Args:
        f: takes an integer array of counts, returns a number or a sequence of numbers; picklable.
        p: which norm, in [1, inf].

    Raises:
        TypeError, ValueError: when the pipeline is built.

    Source: "Sensitivity as the Operator Norm of a Derivative", corrected as `sensitivity` says.
    """

    f: Function
    p: checks.Real = 1

    def __post_init__(self) -> None:
        check_callable(_OWNER, "f", self.f)
        sensitivity.norm([0], self.p)  # refuses what is no p

    def expand(self, histograms: beam.PCollection[Any]) -> beam.PCollection[beam.Row]:
        """Spread the directions, ask f twice for each, and take the largest per histogram."""
        guards.check_input(_OWNER, histograms)
        return (
            histograms
            | "Directions" >> beam.FlatMap(_directions)
            | "Spread" >> beam.Reshuffle()
            | "Move" >> beam.Map(_movement, self.f, self.p)
            | "Largest" >> beam.CombinePerKey(max)
            | "Rows" >> beam.MapTuple(_row)
        )


def _directions(histogram: Histogram) -> Iterator[Direction]:
    """Yield (x, lower, i) for every neighbour: lower and lower + e_i are x and its neighbour."""
    x = gradient.counts(_OWNER, histogram)
    for lower, i in gradient.moves(x):
        yield x, lower, i


def _movement(direction: Direction, f: Function, p: checks.Real) -> tuple[Counts, Number]:
    x, lower, i = direction
    return x, sensitivity.norm(gradient.Values(_OWNER, f).difference(lower, i), p)


def _row(x: Counts, largest: Number) -> beam.Row:
    rounded = math.inf if largest > sys.float_info.max else float(largest)
    return beam.Row(histogram=list(x), sensitivity=rounded)
