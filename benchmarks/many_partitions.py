"""Measure tables of many partitions beside an expert who knows the best two bounds for these data.

    python -m benchmarks many_partitions                         the table (half an hour)
    python -m benchmarks many_partitions --runs 1 --only rides   a look at one kind
    python -m benchmarks many_partitions --epsilon 0.3 --zcdp    another budget; rho is epsilon^2 / 2
    python -m benchmarks many_partitions --csv salaries.csv,playerID,yearID,salary

The expert keeps L partitions of a person, cuts what they add to each at C, spends all of the budget
on noise, and knows the L and the C that err least for these very data. All partitions are public. An
error is the sum of |released - true| over the sum of the true numbers, medians; of means the median
over partitions of |released - true|, in units of the spread of the true means. Inside: how many of
100 intervals hold, by partitions and by size; the third number is of those that
`SuppressUnreliable` leaves.
"""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.csv

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.transforms.suppress_unreliable import doubtful
from benchmarks import tables

LIMITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 200)
QUANTILES = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999, 1.0)
DRAWS = 25
Ints = np.ndarray


@dataclass(frozen=True)
class Kind:
    """Rows: people, partitions from 0 on, and values."""

    name: str
    person: Ints
    partition: Ints
    value: np.ndarray

    @property
    def partitions(self) -> int:
        return int(self.partition.max()) + 1


def zipf(random: np.random.Generator, size: int, power: float, count: int) -> Ints:
    weights = np.cumsum(1.0 / np.arange(1, size + 1) ** power)
    return np.searchsorted(weights / weights[-1], random.random(count)).clip(0, size - 1)


def kinds() -> Iterator[Kind]:
    """Yield made-up rows, as users have them."""
    random = np.random.default_rng(8)

    def rows(each: np.ndarray) -> Ints:
        return np.repeat(np.arange(len(each)), each.astype(np.int64))

    def money(count: int) -> np.ndarray:
        return np.round(random.gamma(2, 15, count), 2)

    for people, power, count in ((8_000, 0.8, 200_000), (100_000, 0.6, 400_000)):
        name = f"{people:,} people by Zipf, 500 partitions by Zipf, rows"
        person, part = zipf(random, people, power, count), zipf(random, 500, 1.1, count)
        yield Kind(name, person, part, np.ones(count))
    person = rows(np.ceil(random.lognormal(2, 1, 8_000)))
    size = len(person)
    yield Kind(
        "lognormal rows, 100 partitions, money", person, random.integers(0, 100, size), money(size)
    )
    person = rows(1 + random.geometric(0.35, 10_000))
    yield Kind("rows per weekday", person, random.integers(0, 7, len(person)), np.ones(len(person)))
    home, person = random.integers(0, 50, 20_000), rows(1 + random.poisson(4, 20_000))
    away = random.random(len(person)) < 0.1
    part = np.where(away, random.integers(0, 50, len(person)), home[person])
    yield Kind("home region, 50 regions, money", person, part, money(len(person)))
    person, favourite = rows(1 + random.geometric(0.1, 5_000)), zipf(random, 300, 1, 5_000)
    stays = random.random(len(person)) < 0.6
    part = np.where(stays, favourite[person], zipf(random, 300, 1, len(person)))
    yield Kind("favourite page, 300 pages, clicks", person, part, np.ones(len(person)))
    yield Kind(
        "one row each, 20 partitions, money",
        np.arange(30_000),
        zipf(random, 20, 0.7, 30_000),
        money(30_000),
    )
    person = rows(np.minimum(np.ceil(random.lognormal(1, 1.6, 20_000)), 5_000))
    part = random.normal(12, 5, len(person)).astype(int) % 24
    yield Kind("rows per hour, heavy tail", person, part, np.ones(len(person)))
    person, part = rows(np.full(20_000, 30)), random.integers(0, 800, 600_000)
    values = np.round(random.uniform(1, 5, 600_000) + part % 20 / 2, 2)
    yield Kind("800 partitions, 30 rows each, values", person, part, values)
    person = rows(random.integers(1, 6, 6_000))
    days = np.where(random.random(len(person)) < 0.93, 0, random.integers(1, 51, len(person)))
    yield Kind(
        "hospital stays, mostly 0, 5 years", person, random.integers(0, 5, len(person)), days * 1.0
    )
    rides = np.minimum(np.ceil(random.lognormal(2.6, 0.9, 40_000)), 2_000)
    rides[:3] = 5_000
    person, line = rows(rides), zipf(random, 28, 0.8, 40_000)
    stays = random.random(len(person)) < 0.6
    line = np.where(stays, line[person], random.integers(0, 28, len(person)))
    early = random.random(len(person)) < 0.5
    hour = np.where(early, random.normal(8, 1.5, len(person)), random.normal(17, 2.5, len(person)))
    part = line * 24 + hour.clip(0, 23.9).astype(int)
    yield Kind("rides by line and hour, 3 cards with 5,000", person, part, np.ones(len(person)))
    owners = np.repeat(20_000 + np.arange(20), 4_000)
    person = np.concatenate([random.integers(0, 20_000, 60_000), owners])
    part = np.concatenate([zipf(random, 50, 1.2, 60_000), 10 + owners % 3])
    yield Kind("hopeless: 20 people own 57%, in 3 partitions", person, part, np.ones(len(person)))
    person = rows(random.integers(1, 6, 20_000))
    ones = (random.random(len(person)) < 0.01) * 1.0
    yield Kind("rare flags, 12 months", person, random.integers(0, 12, len(person)), ones)


def from_csv(words: str) -> Kind:
    """Return the rows of a file: path,person,partition[,value]."""
    path, *columns = words.split(",")
    table = pyarrow.csv.read_csv(path)
    codes = (np.unique(table[name].to_numpy(), return_inverse=True)[1] for name in columns[:2])
    person, part = codes
    value = (
        np.nan_to_num(table[columns[2]].to_numpy().astype(float))
        if columns[2:]
        else np.ones(len(person))
    )
    return Kind(words.split("/")[-1], person, part, value)


Noise = Callable[[float, float, tuple[int, ...]], np.ndarray]
"""Draws noise for an L1 or an L2 norm."""


def noise_of(random: np.random.Generator, epsilon: float, zcdp: bool) -> Noise:
    if zcdp:
        return lambda _, norm, shape: random.normal(0, norm / epsilon, shape)
    return lambda norm, _, shape: random.laplace(0, norm / epsilon, shape)


def expert(kind: Kind, values: np.ndarray, noise: Noise) -> tuple[float, np.ndarray]:
    """Return the least error of two bounds, and draws of the numbers at these."""
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
    truth, best, taken = np.bincount(part, each, parts), np.inf, np.zeros((1, parts))
    for limit in (limit for limit in LIMITS if limit <= sizes.max() * 1.3):
        kept = rank < limit
        for clip in np.unique(np.quantile(np.abs(each), QUANTILES)):
            sums = np.bincount(part[kept], np.clip(each[kept], -clip, clip), parts)
            drawn = sums + noise(limit * clip, np.sqrt(limit) * clip, (DRAWS, parts))
            error = float(np.abs(drawn - truth).sum(axis=1).mean())
            if error < best:
                best, taken = error, drawn
    return best / max(float(np.abs(truth).sum()), 1e-9), taken


@dataclass(frozen=True)
class Result:
    """What some releases came out as: errors, and shares of intervals that hold."""

    error: float
    cells: float
    size: float
    kept: float


def ours(
    kind: Kind, metric: Metric, budget: dp.Budget, truth: np.ndarray, runs: int, scale: float
) -> Result:
    """Return the results of our default; `scale` is of means, 0 of sums."""
    rows = pa.table(
        {
            "person": kind.person.astype(np.int64),
            "part": kind.partition.astype(np.int64),
            "value": kind.value,
        }
    )
    found = []
    for _ in range(runs):
        released = dp.release(
            rows, person="person", partition=["part"], metrics=[metric], budget=budget,
            partitions=dp.PublicPartitions(range(kind.partitions)),
        )  # fmt: skip
        table = released.table.to_pydict()
        order = np.argsort(table["part"])
        x, low, high = (
            np.array(table[metric.output + end], float)[order] for end in ("", "_low", "_high")
        )
        off, holds, sure = (
            np.abs(x - truth),
            (low <= truth) & (truth <= high),
            ~doubtful(x, low, high),
        )
        size = truth if not scale else np.bincount(kind.partition, minlength=len(truth))
        error = np.nanmedian(off) / scale if scale else np.nansum(off) / np.abs(truth).sum()
        reliable = holds[sure].mean() if sure.any() else np.nan
        found.append(
            (error, holds.mean(), np.abs(size[holds]).sum() / np.abs(size).sum(), reliable)
        )
    return Result(*np.nanmedian(found, axis=0)[:1], *np.nanmean(found, axis=0)[1:])


def main(words: Sequence[str] | None = None) -> int:
    """Print the table."""
    options = tables.options(__doc__, words, runs=5, epsilon=1.0, zcdp=False, only="", csv=str)
    budget = dp.Budget.zcdp(options.epsilon**2 / 2) if options.zcdp else dp.Budget(options.epsilon)
    noise = noise_of(np.random.default_rng(5), options.epsilon, options.zcdp)
    tables.say(
        tables.heads(
            ["kind", "number", "expert", "ours", "ratio", "inside: partitions, size, kept"]
        )
    )
    ratios, inside = [], []
    for kind in [from_csv(options.csv)] if options.csv else kinds():
        if options.only not in kind.name:
            continue
        count = np.bincount(kind.partition, minlength=kind.partitions)
        total = np.bincount(kind.partition, kind.value, kind.partitions)
        whole = (kind.value == 1).all()
        asked = [dp.Count()] if whole else [dp.Sum("value"), dp.Count(), dp.Mean("value")]
        if set(kind.value) == {0, 1}:
            asked = [dp.Sum("value"), dp.Mean("value", low=0, high=1), dp.Ratio("value")]
        for metric in asked:
            if isinstance(metric, (dp.Mean, dp.Ratio)):
                truth, centre = total / count, float(np.median(kind.value))
                scale = max(float(truth.std()), 1e-9)
                half = noise_of(
                    np.random.default_rng(6),
                    options.epsilon / (2**0.5 if options.zcdp else 2),
                    options.zcdp,
                )
                _, sums = expert(kind, kind.value - centre, half)
                _, rows = expert(kind, np.ones(len(kind.value)), half)
                known = (
                    float(np.median(np.abs(centre + sums / np.maximum(rows, 1) - truth))) / scale
                )
            else:
                truth, scale = (count, 0.0) if isinstance(metric, dp.Count) else (total, 0.0)
                known, _ = expert(
                    kind, kind.value if truth is total else np.ones(len(kind.value)), noise
                )
            with warnings.catch_warnings(action="ignore"):
                mine = ours(kind, metric, budget, truth, options.runs, scale)
            shares = ", ".join(f"{100 * each:.0f}" for each in (mine.cells, mine.size, mine.kept))
            cells = [
                kind.name,
                metric.output,
                f"{known:.3g}",
                f"{mine.error:.3g}",
                f"{mine.error / known:.2f}",
                shares,
            ]
            tables.say(tables.line(cells))
            if not kind.name.startswith("hopeless"):
                ratios.append(mine.error / known)
                inside.append((mine.cells, mine.size))
    cells, size = np.mean(inside, axis=0)
    tables.say(
        f"\ngeometric mean of ratios {tables.geometric(ratios):.2f}, inside {cells:.1%} by partitions, {size:.1%} by size\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
