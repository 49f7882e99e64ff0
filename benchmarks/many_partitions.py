"""Measure tables of many partitions beside an expert who knows the best two bounds for these data.

    python -m benchmarks many_partitions                         the table (five minutes)
    python -m benchmarks many_partitions --runs 4 --only rides   a look at one kind
    python -m benchmarks many_partitions --epsilon 0.3 --zcdp    another budget; rho is epsilon^2 / 2
    python -m benchmarks many_partitions --csv salaries.csv,playerID,yearID,salary

The expert keeps L partitions of a person, cuts what they add to each at C, spends all of the budget
on noise, and knows the L and the C that err least for these very data. Means and variances are made
of sums, each with an equal part of the budget; numbers that are released together share these. Of
different values the expert keeps the best number of pairs (partition, value) of each person. Of a
histogram each bin of each partition has a number of people, which the expert takes for a partition.
All partitions are public.

An error of sums, counts and distinct counts is the sum of |released - true| over the sum of the true numbers; of
others it is the median over partitions of |released - true|, in units of the spread of the true
numbers. It is the middle of all releases, with one partition the 95% quantile of ten times as many.
Inside: how many of 100 intervals hold, by partitions and by size; the third number is of those that
`SuppressUnreliable` leaves. Plan: by which factor noise differs from what the plan says of it, at
most. The last lines, always at epsilon 1, are three quantiles of people who tie: errors are people,
and a rank error holds or not.
"""

import dataclasses
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence

import numpy as np

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.text.plan import describe
from beam_dp.transforms.suppress_unreliable import doubtful
from benchmarks import draws, experts, kinds, other_statistics, tables
from benchmarks.draws import Interval, Releases
from benchmarks.kinds import Asked, Kind

LIMITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 200)
QUANTILES = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999, 1.0)
ASIDE = ("hopeless", "unseen")
"""Kinds that no mechanism serves, or that no release may know; they do not count."""
TOTALS = (dp.Sum, dp.Count, dp.DistinctCount, dp.Histogram)
"""What has errors beside the sum of the true numbers."""
PAIRS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)
"""So many pairs of a person an expert may keep."""
ALONE = 10
"""So many more releases are drawn of one partition."""
TIED, PEOPLE = "60% are 100", 10_000
Noise = Callable[[float, float, tuple[int, ...]], np.ndarray]
"""Draws noise for an L1 or an L2 norm."""
Sums = Sequence[np.ndarray]
"""For each partition the rows, the sum of distances from the centre, and that of their squares."""


def noise_of(epsilon: float, zcdp: bool) -> Noise:
    random = np.random.default_rng(5)
    if zcdp:
        return lambda _, norm, shape: random.normal(0, norm / epsilon, shape)
    return lambda norm, _, shape: random.laplace(0, norm / epsilon, shape)


def number(metric: Metric, sums: Sums, centre: float) -> np.ndarray:
    """Return what a metric is of the sums of a table."""
    rows, distances, squares = sums
    if isinstance(metric, dp.Count):
        return rows
    if isinstance(metric, dp.Sum):
        return distances + centre * rows
    mean = distances / np.maximum(rows, 1)
    if isinstance(metric, (dp.Mean, dp.Ratio, dp.Min, dp.Max)):
        return centre + mean  # the ends are asked of a constant only
    spread = np.maximum(squares / np.maximum(rows, 1) - mean**2, 0)
    return np.sqrt(spread) if isinstance(metric, dp.StandardDeviation) else spread


def needed(metrics: Asked) -> tuple[bool, bool, bool]:
    """Return which sums an expert needs: rows, distances, squares."""
    spread = any(isinstance(metric, (dp.Variance, dp.StandardDeviation)) for metric in metrics)
    only = metrics[0] if len(metrics) == 1 else None
    return not isinstance(only, dp.Sum), not isinstance(only, dp.Count), spread


def true_sums(kind: Kind, centre: float) -> Sums:
    distances = kind.value - centre
    columns = (np.ones(len(distances)), distances, distances**2)
    return [np.bincount(kind.partition, column, kind.partitions) for column in columns]


def error(metric: Metric, drawn: np.ndarray, truth: np.ndarray) -> float:
    """Return the error of draws: an array (draws, partitions)."""
    off = np.abs(drawn - truth)
    if isinstance(metric, TOTALS):
        found = np.nansum(off, axis=1) / (np.abs(truth).sum() or 1.0)
    else:
        found = np.nanmedian(off, axis=1) / (truth.std() or np.abs(truth).mean())
    return float(np.nanquantile(found, draws.QUANTILE if len(truth) == 1 else 0.5))


def two_bounds(kind: Kind, values: np.ndarray, noise: Noise) -> np.ndarray:
    """Return draws of sums at the two bounds that err least: an array (draws, partitions)."""
    random, parts = np.random.default_rng(3), kind.partitions
    pairs, codes = np.unique(
        kind.person.astype(np.int64) * parts + kind.partition, return_inverse=True
    )
    each, person, part = np.bincount(codes, values), pairs // parts, pairs % parts
    order = np.lexsort((random.random(len(each)), person))
    starts = np.flatnonzero(np.diff(person[order], prepend=-1))
    sizes = np.diff(starts, append=len(each))
    rank = np.empty(len(each), int)
    rank[order] = np.arange(len(each)) - np.repeat(starts, sizes)
    truth, shape = np.bincount(part, each, parts), (25 + 2_000 // parts, parts)
    best, taken = math.inf, np.zeros(shape)
    for limit in (limit for limit in LIMITS if limit <= sizes.max() * 1.3):
        kept = rank < limit
        for clip in np.unique(np.quantile(np.abs(each), QUANTILES)):
            sums = np.bincount(part[kept], np.clip(each[kept], -clip, clip), parts)
            drawn = sums + noise(limit * clip, np.sqrt(limit) * clip, shape)
            found = error(dp.Count(), drawn, truth)
            if found < best:
                best, taken = found, drawn
    return taken


def different(kind: Kind) -> np.ndarray:
    """Return how many different values each partition has."""
    pairs = np.unique(np.stack([kind.partition, kind.value]), axis=1)
    return np.bincount(pairs[0].astype(int), minlength=kind.partitions).astype(float)


def best_pairs(kind: Kind, noise: Noise) -> float:
    """Return the error of numbers of different values, of the best number of pairs."""
    random, truth = np.random.default_rng(3), different(kind)
    own = np.unique(np.stack([kind.person, kind.partition, kind.value]), axis=1)
    own = own[:, np.lexsort((random.random(own.shape[1]), own[0]))]
    starts = np.flatnonzero(np.diff(own[0], prepend=-1))
    sizes = np.diff(starts, append=own.shape[1])
    rank = np.arange(own.shape[1]) - np.repeat(starts, sizes)
    found = []
    for most in PAIRS:
        person, part, value = own[:, rank < most]
        counted = different(dataclasses.replace(kind, person=person, partition=part, value=value))
        counted = np.pad(counted, (0, len(truth) - len(counted)))
        drawn = counted + noise(most, most, (50, len(truth)))
        found.append(error(dp.Count(), drawn, truth))
    return min(found)


def people_of_bins(kind: Kind) -> Kind:
    """Return a row of each person in a partition, with its bins as partitions, bin by bin.

    A person has one value, the number of their bin.
    """
    person, part, value = np.unique(
        np.stack([kind.person, kind.partition, kind.value]).astype(int), axis=1
    )
    cells = value * kind.partitions + part
    return dataclasses.replace(kind, person=person, partition=cells, value=np.ones(len(cells)))


def expert(kind: Kind, metrics: Asked, epsilon: float, zcdp: bool) -> list[float]:
    """Return the expert's error of each metric."""
    if isinstance(metrics[0], dp.Histogram):
        of_bins = people_of_bins(kind)
        drawn_of_bins = two_bounds(of_bins, of_bins.value, noise_of(epsilon, zcdp))
        return [error(metrics[0], drawn_of_bins, np.bincount(of_bins.partition).astype(float))]
    if isinstance(metrics[0], dp.DistinctCount):
        return [best_pairs(kind, noise_of(epsilon, zcdp))]
    asked = needed(metrics)
    centre = float(np.median(kind.value)) if sum(asked) > 1 else 0.0
    noise = noise_of(epsilon / (math.sqrt(sum(asked)) if zcdp else sum(asked)), zcdp)
    distances = kind.value - centre
    columns = (np.ones(len(distances)), distances, distances**2)
    drawn = [
        two_bounds(kind, column, noise) if is_needed else np.ones(1)
        for column, is_needed in zip(columns, asked, strict=True)
    ]
    truth = true_sums(kind, centre)
    return [
        error(metric, number(metric, drawn, centre), number(metric, truth, centre))
        for metric in metrics
    ]


@dataclasses.dataclass(frozen=True)
class Line:
    """One number beside the expert's, and the shares of intervals that hold."""

    kind: str
    name: str
    expert: float
    ours: float
    cells: float
    size: float
    kept: float
    plan: float = 1.0

    @property
    def counts(self) -> bool:
        return not self.kind.startswith(ASIDE)

    @property
    def ratio(self) -> float:
        """Our error over the expert's; 1 where neither errs."""
        tiny = 1e-12
        return (self.ours + tiny) / (self.expert + tiny)

    def __str__(self) -> str:
        shares = ", ".join(f"{100 * share:.0f}" for share in (self.cells, self.size, self.kept))
        errors = f"{self.expert:.3g}", f"{self.ours:.3g}", f"{self.ratio:.2f}"
        return tables.line([self.kind, self.name, *errors, shares, f"{self.plan:.2f}"])


def planned(releases: Releases) -> float:
    """Return by which factor the noise of a run differs from what the plan says, at most."""
    program, factors = releases.rehearsal.program, [1.0]
    block, *_ = releases.rehearsal.draw()
    rows = describe(program).rows[-len(program.steps) :]
    for row, drawn in zip(rows, block.drawn, strict=True):
        said = re.findall(r"[\d.]+(?= clips)", row.noise_scale)
        if said and drawn.loss is not None:
            run = drawn.loss.scale / drawn.loss.clip
            factors.append(math.exp(min(abs(math.log(float(each) / run)) for each in said)))
    return max(factors)


def compare(kind: Kind, metric: Metric, known: float, drawn: Interval, plan: float) -> Line:
    """Compare releases of a number with the truth and the expert's error."""
    if isinstance(metric, dp.DistinctCount):
        truth = different(kind)
    elif isinstance(metric, dp.Histogram):
        truth = np.bincount(people_of_bins(kind).partition).astype(float)
    else:
        truth = number(metric, true_sums(kind, 0.0), 0.0)
    value, low, high = (np.where(drawn.empty, np.nan, end) for end in drawn[:3])
    holds = drawn.holds(truth)
    kept = ~doubtful(value.ravel(), low.ravel(), high.ravel()).reshape(holds.shape)
    size = (
        np.abs(
            truth
            if isinstance(metric, TOTALS)
            else np.bincount(kind.partition, minlength=len(truth))
        )
        + 1e-12
    )
    return Line(
        kind.name,
        metric.output,
        known,
        error(metric, value, truth),
        holds.mean(),
        (holds * size).sum() / size.sum() / len(holds),
        holds[kept].mean() if kept.any() else math.nan,
        plan,
    )


def lines(kind: Kind, epsilon: float, zcdp: bool, runs: int) -> Iterator[Line]:
    """Yield the lines of a kind of rows."""
    budget = dp.Budget.zcdp(epsilon**2 / 2) if zcdp else dp.Budget(epsilon)
    for metrics in kind.releases:
        times = runs * (ALONE if kind.partitions == 1 else 1)
        releases = draws.summarise(kind.rows(), metrics, budget)
        drawn, plan = releases.draws(times), planned(releases)
        if isinstance(metrics[0], dp.Histogram):  # bin by bin
            drawn = [Interval(*(np.concatenate(ends, axis=1) for ends in zip(*drawn, strict=True)))]
        errors = expert(kind, metrics, epsilon, zcdp)
        for metric, known, one in zip(metrics, errors, drawn, strict=True):
            yield compare(kind, metric, known, one, plan)


def ties(runs: int) -> Iterator[Line]:
    """Yield the lines of quantiles of people who tie, at epsilon 1."""
    for other in other_statistics.TOGETHER:
        cell = other_statistics.Cell(other, TIED, PEOPLE)
        found = experts.compare(cell, ALONE * runs, 1, math.inf)
        inside = found.ours.inside
        name = f"{PEOPLE:,} people, {TIED}"
        yield Line(name, other.name, found.error + 1, found.ours.error + 1, inside, inside, inside)


def main(words: Sequence[str] | None = None) -> int:
    """Print the table."""
    options = tables.options(__doc__, words, runs=40, epsilon=1.0, zcdp=False, only="", csv=str)
    heads = ["kind", "number", "expert", "ours", "ratio", "inside: partitions, size, kept", "plan"]
    tables.say(tables.heads(heads))
    asked = [kinds.from_csv(options.csv)] if options.csv else kinds.made()
    found: list[Line] = []
    for kind in (kind for kind in asked if options.only in kind.name):
        with warnings.catch_warnings(action="ignore"):
            for one in lines(kind, options.epsilon, options.zcdp, options.runs):
                found.append(one)
                tables.say(str(one))
    if not options.csv and options.only in TIED:
        for one in ties(options.runs):
            found.append(one)
            tables.say(str(one))
    counted = [one for one in found if one.counts] or found
    ratios = [one.ratio for one in counted]
    inside, size = (np.mean([getattr(one, name) for one in counted]) for name in ("cells", "size"))
    tables.say(
        f"\nratios {tables.geometric(ratios):.2f} in the geometric mean, {max(ratios):.2f} at worst; "
        f"inside {inside:.1%} by partitions, {size:.1%} by size; "
        f"plan {max(one.plan for one in found):.2f}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
