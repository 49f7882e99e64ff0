"""Print the tables of docs/statistics.md: `python -m docs.tables`.

Every number is computed here, from public parameters; no data is read.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from statistics import NormalDist

from scipy.stats import binom

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.planning import partition_rows
from beam_dp.mechanisms.search.published.binary import _gaussian_rho as gaussian_rho

BETA = 0.05
SEARCHED = dp.AboveThreshold
PURE, ZCDP, WITH_DELTA = dp.Budget(1), dp.Budget.zcdp(Fraction(1, 2)), dp.Budget(1, 1e-6)
_MANY = 1_000_000  # comparisons, where more of them change nothing any more
_WALKED = 3  # comparisons in every step of a walk: both ends of the interval, and its middle


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def metrics() -> str:
    """Return what each metric costs in accuracy by default: epsilon 1, one partition."""
    asked = {
        "`PeopleCount()`": dp.PeopleCount(),
        "`Count()`": dp.Count(),
        '`Sum("a")`': dp.Sum("a"),
        '`DistinctCount("a")`': dp.DistinctCount("a"),
        '`MaxFrequency("a")`': dp.MaxFrequency("a"),
        '`SumOfSquares("a")`': dp.SumOfSquares("a"),
        '`Max("a")`, `Min("a")`': dp.Max("a"),
        '`KthLargest("a", 10)`': dp.KthLargest("a", 10),
        "`Count(one_sided=True)`": dp.Count(one_sided=True),
        '`Sum("a", one_sided=True)`': dp.Sum("a", one_sided=True),
        '`DistinctCount("a", one_sided=True)`': dp.DistinctCount("a", one_sided=True),
        '`SumOfSquares("a", search=dp.AboveThreshold)`': dp.SumOfSquares("a", search=SEARCHED),
        '`Max("a", search=dp.AboveThreshold)`': dp.Max("a", search=SEARCHED),
        '`Median("a")`': dp.Median("a"),
        '`Quantile("a", 0.9)`': dp.Quantile("a", 0.9),
        '`Median("a", per="person")`': dp.Median("a", per="person"),
    }
    return table(["metric", "noise scale", "shift T"], [_metric(*pair) for pair in asked.items()])


def _metric(name: str, metric: object) -> list[object]:
    [row] = dp.PrivateAggregate("person", [metric], PURE).plan().rows
    return [name, row.noise_scale, row.shift or "-"]


def sizes() -> str:
    """Return how many rows of one partition each metric takes, by one owner and by several."""
    candidates = dp.Candidates.linear(0, 1, 1)
    asked = {
        "`PeopleCount`, `Mean`, `Ratio`, `Variance`, `StandardDeviation`": (
            *(dp.PeopleCount(), dp.Mean("a"), dp.Ratio("a")),
            *(dp.Variance("a"), dp.StandardDeviation("a")),
        ),
        "`Count`, `Sum`, `Max`, `Min`": (dp.Count(), dp.Sum("a"), dp.Max("a"), dp.Min("a")),
        "`KthLargest`": (dp.KthLargest("a", 1),),
        "`Quantile`, `Median`, `SumOfSquares`": (
            *(dp.Quantile("a", 0.5), dp.Median("a", per="person"), dp.Median("a")),
            dp.SumOfSquares("a"),
        ),
        "`MaxFrequency`": (dp.MaxFrequency("a"),),
        "`CustomProfile`": (dp.CustomProfile("a", len, candidates=candidates),),
        "`TrimmedMean`, `Preprocessed`": (dp.TrimmedMean("a"), dp.Preprocessed("a", "mean")),
        "`BlackBox`": (dp.BlackBox("a", len),),
        "`DistinctCount`": (dp.DistinctCount("a"), dp.DistinctCount("a", one_sided=True)),
    }
    rows = [_size(name, kinds) for name, kinds in asked.items()]
    return table(["metric", "most rows of a partition", "with several owners"], rows)


def _size(name: str, kinds: Sequence[Metric]) -> list[object]:
    [most] = {partition_rows.most_rows(metric) for metric in kinds}
    two = (
        partition_rows.most_rows(kinds[0], several_owners=True) if kinds[0].several_owners else None
    )
    return [name, f"{most:,}" if most else "any", f"{two:,}" if two else "-"]


def searches() -> str:
    """Return the proved shifts T of all searches at beta = 0.05."""
    sizes = [2**8, 2**16, 2**64]
    rows = [
        ["`AboveThreshold`", *_shifts(dp.AboveThreshold, sizes)],
        ["`ExponentialMechanism`", *_shifts(dp.ExponentialMechanism, sizes)],
        ['`NoisyBinarySearch`, "laplace"', *_shifts(dp.NoisyBinarySearch, sizes)],
    ]
    for noise in ("gaussian", "bit"):
        search = dp.NoisyBinarySearch(ZCDP, BETA, noise)
        shifts = [search.shift(n) for n in sizes]
        rows.append([f'`NoisyBinarySearch`, "{noise}"', *["-"] * len(sizes), *shifts])
    published = [2 * math.ceil(2 * math.log(n / BETA)) for n in sizes]
    rows.append(["the published mechanism, 2 tau", *published, *["-"] * len(sizes)])
    kinds = [f"{budget}, 2^{n}" for budget in ("epsilon 1", "rho 0.5") for n in (8, 16, 64)]
    return table(["search", *kinds], rows)


def _shifts(kind: Callable[..., dp.AboveThreshold], sizes: Sequence[int]) -> list[int]:
    return [kind(budget, BETA).shift(n) for budget in (PURE, ZCDP) for n in sizes]


def far() -> str:
    """Return the shifts for very many candidates, epsilon 1 and delta 1e-6."""
    bits = (64, crossing() - 1, crossing(), 512, 670, 1024)
    known: list[tuple[str, dp.AboveThreshold | dp.ScaleThenChoose]] = [
        ("`AboveThreshold`", dp.AboveThreshold(WITH_DELTA)),
        ("`ScaleThenChoose`", dp.ScaleThenChoose(WITH_DELTA)),
    ]
    rows = [[name, *(search.shift(2**n) for n in bits)] for name, search in known]
    return table(["epsilon 1, delta 1e-6", *(f"2^{n}" for n in bits)], rows)


def crossing() -> int:
    """Return the least b for which ScaleThenChoose has the smaller shift for 2^b candidates."""
    scale, above = dp.ScaleThenChoose(WITH_DELTA), dp.AboveThreshold(WITH_DELTA)
    return next(b for b in range(64, 2048) if scale.shift(2**b) < above.shift(2**b))


def tolerant() -> str:
    """Return what binary search that tolerates wrong answers would guarantee, were it proved."""
    rows = [_tolerant("rho 0.5", ZCDP, Fraction(1, 2), n) for n in (16, 64, 128, 512)]
    rho = gaussian_rho(WITH_DELTA)
    rows += [_tolerant("epsilon 1, delta 1e-6", WITH_DELTA, rho, n) for n in (64, 128, 512)]
    return table(["budget", "N", "walk", "ideal", "gaussian", "bit", "`AboveThreshold`"], rows)


def _tolerant(name: str, budget: dp.Budget, rho: Fraction, bits: int) -> list[object]:
    n, kinds = 2**bits, ("gaussian", "bit") if budget.is_zcdp else ("gaussian",)
    shifts: list[object] = [dp.NoisyBinarySearch(budget, BETA, kind).shift(n) for kind in kinds]
    shifts += ["-"] * (2 - len(shifts))
    guessed = _walk(float(rho), bits), ideal(float(rho), bits)
    return [name, f"2^{bits}", *guessed, *shifts, dp.AboveThreshold(budget).shift(n)]


def _wrong(rho: float, comparisons: int, shift: int) -> float:
    """Return how often a gaussian comparison is wrong at a loss of 0 or T + 1."""
    deviation = math.sqrt(comparisons / (2 * rho))
    return NormalDist().cdf(-(shift + 1) / 2 / deviation)


def _walk(rho: float, bits: int) -> int:
    """Return T of a walk with backtracking: of M steps, `bits` more are right than wrong."""

    def holds(steps: int, shift: int) -> bool:
        step = 1 - (1 - _wrong(rho, _WALKED * steps, shift)) ** _WALKED
        return bool(binom.sf((steps - bits) // 2, steps, step) <= BETA)

    tried = range(bits, 4 * bits, max(1, bits // 32))
    return min(_least(lambda shift, m=steps: holds(m, shift)) for steps in tried)


def ideal(rho: float, bits: int) -> int:
    """Return T by N (1/2 + sqrt(p (1 - p)))^M <= beta, for a large number M of comparisons."""

    def holds(shift: int) -> bool:
        p = _wrong(rho, _MANY, shift)
        base = math.log(0.5 + math.sqrt(p * (1 - p)))
        return bits * math.log(2) + _MANY * base <= math.log(BETA)

    return _least(holds)


def _least(holds: Callable[[int], bool]) -> int:
    """Return the least T >= 0 for which a monotone condition holds."""
    low, high = 0, 1 << 12
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def tables() -> Iterator[str]:
    """Yield all tables, in the order of the page."""
    yield from (metrics(), sizes(), searches(), far(), tolerant())


if __name__ == "__main__":
    sys.stdout.write("\n".join(tables()))
