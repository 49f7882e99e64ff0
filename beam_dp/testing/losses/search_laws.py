"""The exact laws of the searches: the chances of all that one can answer, without a draw.

They are computed from the parameters and the runs of the searches themselves, each chance to about
1e-13 of itself. That the searches draw by them is shown by their own tests. A grid has billions of
places: so a law gives the chances of *cells*, which are neighbouring places between two runs' ends.
"""

import bisect
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.profiles.profile import Profile, loss_at
from beam_dp.mechanisms.search import (
    AboveThreshold,
    ExponentialMechanism,
    NoisyBinarySearch,
    Search,
)
from beam_dp.mechanisms.search.binary import BitAnswer
from beam_dp.mechanisms.search.common import bounded_range
from beam_dp.mechanisms.search.coverage_search import CoverageSearch
from beam_dp.mechanisms.search.exponential import _groups
from beam_dp.mechanisms.search.quantiles.middle_quantile import CentralSearch
from beam_dp.mechanisms.search.quantiles.node import Node
from beam_dp.mechanisms.search.quantiles.tail_quantile import SparseVectorScan
from beam_dp.mechanisms.search.threshold_search import Extension, ThresholdSearch, query

_BLOCK = 2**16  # values of rho at a time


class Law(NamedTuple):
    """The chances of the places of one search, and of none of them.

    Attributes:
        starts: where runs of places begin that have like chances, from the first place on.
        stop: the place behind the last one.
        masses: the chances of the cells that begin at some places, among them all `starts`; the
            last entry is that of no place.
    """

    starts: Sequence[int]
    stop: int
    masses: Callable[[Sequence[int]], Sequence[float]]

    @property
    def chances(self) -> list[float]:
        """The chance of each place, and last that of none."""
        return [*map(float, self.masses(range(self.starts[0], self.stop)))]

    def chance(self, place: int) -> float:
        """Return the chance of one place, which is 0 where a grid has no number."""
        begins = sorted({*self.starts, place, place + 1} - {self.stop})
        return self.masses(begins)[begins.index(place)]


def run_of(starts: Sequence[int], begin: int) -> int:
    """Return the run that a place is in."""
    return bisect.bisect_right(starts, begin) - 1


def law_of(search: Search, profile: Profile, candidates: Candidates) -> Law:
    """Return the law of a search over the loss of a profile."""
    if candidates.size == 1:
        return Law([0], 1, lambda begins: [1.0, 0.0])
    return _law(search, profile, candidates)


@functools.singledispatch
def _law(search: Search, profile: Profile, candidates: Candidates) -> Law:
    raise TypeError(f"{type(search).__name__}: its law stands nowhere here")


def stop_chances(
    needs: Sequence[int], lengths: Sequence[int], first: float, second: float
) -> list[float]:
    """Return the chance to stop in each cell; the last entry is that of passing all queries.

    With rho ~ Geo(first) and nu_i ~ Geo(second), query i stops iff need + rho <= nu_i.

    Args:
        needs: the need of all queries of each cell.
        lengths: how many queries a cell has.
        first, second: the rates.
    """
    # From the largest rho = z / second - need, z = ln(N) + 1, on, every product over N queries is
    # above (1 - 1 / (N e))^N > 1/2 and all terms fall like e^(-first r). 45 / first later, the
    # terms left out are below 1e-18 of the sum.
    far = math.ceil((math.log(sum(lengths) or 1) + 2) / second + 45 / first)
    span = max(0, -min(needs, default=0)) + far
    parts = []
    for start in range(0, span, _BLOCK):
        rho = np.arange(start, min(start + _BLOCK, span), dtype=np.float64)
        passed = -math.expm1(-first) * np.exp(-first * rho)
        sums = []
        for need, length in zip(needs, lengths, strict=True):
            hazard = second * np.maximum(need + rho, 0)
            stops, passes = np.exp(-hazard), -np.expm1(-hazard)
            if length > 1:
                with np.errstate(divide="ignore"):
                    misses = length * np.where(hazard > 1, np.log1p(-stops), np.log(passes))
                stops, passes = -np.expm1(misses), np.exp(misses)
            sums.append(float((passed * stops).sum()))  # pairwise: right to 1e-14
            passed = passed * passes
        parts.append([*sums, float(passed.sum())])
    return [math.fsum(column) for column in zip(*parts, strict=True)]


@_law.register
def _(search: AboveThreshold, profile: Profile, candidates: Candidates) -> Law:
    chosen, runs = search._thresholds(candidates.size), [*search._needs(profile, candidates)]
    starts, last = [start for _, start, _ in runs], candidates.size - 1

    def masses(begins: Sequence[int]) -> list[float]:
        needs = [runs[run_of(starts, begin)][0] for begin in begins]
        rates = float(chosen.first), float(chosen.second)
        asked = stop_chances(needs[:-1], _lengths(begins, last + 1)[:-1], *rates)
        return [*asked, 0.0]  # the last one is returned in any case

    return Law(sorted({*starts, last}), last + 1, masses)


@_law.register
def _(search: ExponentialMechanism, profile: Profile, candidates: Candidates) -> Law:
    groups = _groups(profile, candidates, search._tau(candidates.size))
    starts, best = [each.start for each in groups], min(each.loss for each in groups)
    half = float(bounded_range(search.budget)) / 2
    weights = [math.exp(-half * (each.loss - best)) for each in groups]
    pairs = zip(weights, _lengths(starts, candidates.size), strict=True)
    total = math.fsum(weight * length for weight, length in pairs)

    def masses(begins: Sequence[int]) -> list[float]:
        pairs = zip(begins, _lengths(begins, candidates.size), strict=True)
        chances = [weights[run_of(starts, begin)] * length / total for begin, length in pairs]
        return [*chances, 0.0]

    return Law(starts, candidates.size, masses)


def answers(answer: Any, loss: int) -> tuple[float, float]:
    """Return the probabilities of down and up of one comparison."""
    if isinstance(answer, BitAnswer):
        tail, is_down = answer._coin(loss)
        return (1 - tail, tail) if is_down else (tail, 1 - tail)
    # P(X > t) = e^(-rate (t + 1)) / (1 + e^-rate).
    rate, t = float(answer.rate), answer.theta - loss
    tail = math.exp(-rate * (t + 1 if t >= 0 else -t)) / (1 + math.exp(-rate))
    return (1 - tail, tail) if t >= 0 else (tail, 1 - tail)


@_law.register
def _(search: NoisyBinarySearch, profile: Profile, candidates: Candidates) -> Law:
    answer, steps = search._answer(candidates.size), profile.steps(candidates)

    def masses(begins: Sequence[int]) -> list[float]:
        chances = [0.0] * (len(begins) + 1)

        def share_out(low: int, high: int, chance: float) -> None:
            """Share out the chance of the places from low + 1 to high."""
            cell = run_of(begins, high)
            if begins[cell] <= low + 1:
                chances[cell] += chance
                return
            middle = (low + high) // 2
            down, up = answers(answer, loss_at(steps, middle))
            share_out(low, middle, chance * down)
            share_out(middle, high, chance * up)

        share_out(-1, candidates.size - 1, 1.0)
        return chances

    starts = [start for _, start, _ in profile.plateaus(candidates)]
    return Law(starts, candidates.size, masses)


def law_of_thresholds(search: ThresholdSearch, extension: Extension, top: int, usual: int) -> Law:
    """Return the law of the prices 0, ..., top."""
    needs = [query(extension, j) - search._theta(j - usual) for j in range(top + 1)]
    chances = stop_chances(needs, [1] * len(needs), *map(float, search._rates))
    return Law(range(top + 1), top + 1, lambda begins: chances)


def law_of_octaves(
    search: CoverageSearch, covered: np.ndarray, root: int, cost_of_noise: float, octaves: int
) -> Law:
    """Return the law of the octaves."""
    needs = search.needs(covered, root, cost_of_noise, octaves)
    chances = stop_chances(needs, [1] * len(needs), *map(float, search._rates))
    return Law(range(len(needs)), len(needs), lambda begins: chances)


def law_of_node(search: CentralSearch, node: Node, candidates: Candidates) -> Law:
    """Return the law of the candidates of a node."""
    runs = search._runs(node, candidates)
    scales = np.exp(-float(search._rate) * (runs.losses - runs.losses.min()).astype(np.float64))
    none = float(runs.weights[-1]) * scales[-1]
    total = math.fsum([*(runs.weights[:-1].astype(np.float64) * scales[:-1]).tolist(), none])
    starts = [*map(int, runs.starts)]

    def masses(begins: Sequence[int]) -> list[float]:
        indexes = np.array([*begins, node.stop])
        weights = np.diff(candidates.weight_before(indexes)).astype(np.float64)
        of_cells = scales[[run_of(starts, begin) for begin in begins]]
        return [float(mass) / total for mass in (*(weights * of_cells), none)]

    return Law(starts, node.stop, masses)


def law_of_scan(scan: SparseVectorScan) -> Law:
    """Return the law of the places at which a scan stops."""
    weights, ends = scan._floats()
    stops = np.cumsum(scan.lengths).tolist()
    starts, last = [0, *stops[:-1]], float(ends[-1])
    passed = 1 - last / 2 if last < 1 else 1 / (2 * last)

    def masses(begins: Sequence[int]) -> list[float]:
        runs = [run_of(starts, begin) for begin in begins]
        inside = np.array([b - starts[run] for b, run in zip(begins, runs, strict=True)], float)
        low = np.append(0.0, ends)[runs] + weights[runs] * inside
        wide = weights[runs] * np.array(_lengths(begins, stops[-1]), float)
        high = low + wide
        # P(low < U <= high) without a difference of like numbers.
        with np.errstate(divide="ignore", invalid="ignore"):
            across = (1 - low) / 2 + (1 - 1 / high) / 2
            chances = np.where(low >= 1, wide / high / low / 2, across)
        return [*np.where(high <= 1, wide / 2, chances).tolist(), passed]

    return Law(starts, stops[-1], masses)


def _lengths(begins: Sequence[int], stop: int) -> list[int]:
    """Return how many places each cell has."""
    return [end - begin for begin, end in zip(begins, [*begins[1:], stop], strict=True)]
