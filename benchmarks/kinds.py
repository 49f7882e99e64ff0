"""Made-up rows as users have them: people, partitions and values, and what is asked of them."""

import dataclasses
from collections.abc import Iterator

import numpy as np
import pyarrow.csv

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric
from benchmarks import suites

Ints = np.ndarray
Asked = tuple[Metric, ...]
"""Metrics that share a budget."""
COUNT, SUM, MEAN = dp.Count(), dp.Sum("value"), dp.Mean("value")


@dataclasses.dataclass(frozen=True, eq=False)
class Kind:
    """Rows: people, partitions from 0 on, and values.

    Attributes:
        asked: the releases, each of metrics that share the budget; empty: counts if all values are
            1, else sums, counts and means, each alone.
    """

    name: str
    person: Ints
    partition: Ints
    value: np.ndarray
    asked: tuple[Asked, ...] = ()

    @property
    def partitions(self) -> int:
        return int(self.partition.max()) + 1

    @property
    def releases(self) -> tuple[Asked, ...]:
        return self.asked or (
            ((COUNT,),) if (self.value == 1).all() else ((SUM,), (COUNT,), (MEAN,))
        )

    def rows(self) -> suites.Rows:
        """Return the rows as those of other tables."""
        person, partition = self.person.astype(np.int64), self.partition.astype(np.int64)
        return suites.Rows(person, partition, {"value": self.value}, self.partitions, None)


def from_csv(words: str) -> Kind:
    """Return the rows of a file: path,person,partition[,value]."""
    path, *columns = words.split(",")
    table = pyarrow.csv.read_csv(path)
    codes = (np.unique(table[name].to_numpy(), return_inverse=True)[1] for name in columns[:2])
    person, part = codes
    value = np.ones(len(person))
    if columns[2:]:
        value = np.nan_to_num(table[columns[2]].to_numpy().astype(float))
    return Kind(words.split("/")[-1], person, part, value)


def zipf(random: np.random.Generator, size: int, power: float, count: int) -> Ints:
    weights = np.cumsum(1.0 / np.arange(1, size + 1) ** power)
    return np.searchsorted(weights / weights[-1], random.random(count)).clip(0, size - 1)


def each(counts: np.ndarray) -> Ints:
    """Return the people of the rows: so many of each person."""
    return np.repeat(np.arange(len(counts)), counts.astype(np.int64))


def money(random: np.random.Generator, count: int) -> np.ndarray:
    return np.round(random.gamma(2, 15, count), 2)


def made() -> Iterator[Kind]:
    """Yield tables of many partitions, then single numbers."""
    random = np.random.default_rng(8)
    yield from _counts(random)
    yield from _values(random)
    yield from _single(random)


def _counts(random: np.random.Generator) -> Iterator[Kind]:
    for people, power, count in ((8_000, 0.8, 200_000), (100_000, 0.6, 400_000)):
        name = f"{people:,} people by Zipf, 500 partitions by Zipf, rows"
        person, part = zipf(random, people, power, count), zipf(random, 500, 1.1, count)
        yield Kind(name, person, part, np.ones(count))
    person = each(1 + random.geometric(0.35, 10_000))
    yield Kind("rows per weekday", person, random.integers(0, 7, len(person)), np.ones(len(person)))
    person, favourite = each(1 + random.geometric(0.1, 5_000)), zipf(random, 300, 1, 5_000)
    stays = random.random(len(person)) < 0.6
    part = np.where(stays, favourite[person], zipf(random, 300, 1, len(person)))
    yield Kind("favourite page, 300 pages, clicks", person, part, np.ones(len(person)))
    person = each(np.minimum(np.ceil(random.lognormal(1, 1.6, 20_000)), 5_000))
    part = random.normal(12, 5, len(person)).astype(int) % 24
    yield Kind("rows per hour, heavy tail", person, part, np.ones(len(person)))
    person, part = rides(random)
    yield Kind("rides by line and hour, 3 cards with 5,000", person, part, np.ones(len(person)))
    owners = np.repeat(20_000 + np.arange(20), 4_000)
    person = np.concatenate([random.integers(0, 20_000, 60_000), owners])
    part = np.concatenate([zipf(random, 50, 1.2, 60_000), 10 + owners % 3])
    yield Kind("hopeless: 20 people own 57%, in 3 partitions", person, part, np.ones(len(person)))


def rides(random: np.random.Generator) -> tuple[Ints, Ints]:
    """Return the cards of rides, and their line and hour; 3 cards have 5,000."""
    counts = np.minimum(np.ceil(random.lognormal(2.6, 0.9, 40_000)), 2_000)
    counts[:3] = 5_000
    person, line = each(counts), zipf(random, 28, 0.8, 40_000)
    stays = random.random(len(person)) < 0.6
    line = np.where(stays, line[person], random.integers(0, 28, len(person)))
    early = random.random(len(person)) < 0.5
    hour = np.where(early, random.normal(8, 1.5, len(person)), random.normal(17, 2.5, len(person)))
    return person, line * 24 + hour.clip(0, 23.9).astype(int)


def _values(random: np.random.Generator) -> Iterator[Kind]:
    person = each(np.ceil(random.lognormal(2, 1, 8_000)))
    size = len(person)
    part = random.integers(0, 100, size)
    yield Kind("lognormal rows, 100 partitions, money", person, part, money(random, size))
    home, person = random.integers(0, 50, 20_000), each(1 + random.poisson(4, 20_000))
    away = random.random(len(person)) < 0.1
    part = np.where(away, random.integers(0, 50, len(person)), home[person])
    yield Kind("home region, 50 regions, money", person, part, money(random, len(person)))
    part = zipf(random, 20, 0.7, 30_000)
    values = money(random, 30_000)
    yield Kind("one row each, 20 partitions, money", np.arange(30_000), part, values)
    ages = random.normal(45, 16, 30_000).round().clip(0, 110)
    together = ((SUM, COUNT, MEAN),)
    yield Kind("ages, 20 partitions, together", np.arange(30_000), part, ages, together)
    person, part = each(np.full(20_000, 30)), random.integers(0, 800, 600_000)
    values = np.round(random.uniform(1, 5, 600_000) + part % 20 / 2, 2)
    alone = ((SUM,), (COUNT,), (MEAN,), (dp.Variance("value"),))
    yield Kind("800 partitions, 30 rows each, values", person, part, values, alone)
    person = each(random.integers(1, 6, 6_000))
    days = np.where(random.random(len(person)) < 0.93, 0, random.integers(1, 51, len(person)))
    part = random.integers(0, 5, len(person))
    alone = ((SUM,), (COUNT,), (MEAN,), (dp.StandardDeviation("value"),))
    yield Kind("hospital stays, mostly 0, 5 years", person, part, days * 1.0, alone)
    person = each(random.integers(1, 6, 20_000))
    ones, part = _flags(random, len(person), 0.01), random.integers(0, 12, len(person))
    ends = dp.Mean("value", low=0, high=1)
    flags = ((SUM,), (ends,), (dp.Ratio("value"),))
    yield Kind("rare flags, 12 months", person, part, ones, flags)
    person = each(np.full(5_000, 160))
    part = (random.integers(0, 50, 5_000)[person] + np.arange(len(person)) % 8) % 50
    share = ((dp.Ratio("value"),),)
    clicks = _flags(random, len(person), 0.3)
    yield Kind("clicks, 20 rows in 8 of 50 partitions", person, part, clicks, share)
    person = each(np.minimum(np.ceil(random.lognormal(1, 1.6, 5_000)), 5_000))
    part = np.minimum(random.integers(0, 5, len(person)), 2)
    yield Kind("rows in 3 regions, heavy tail", person, part, np.ones(len(person)))
    person = np.repeat(np.arange(1_000), np.where(np.arange(1_000) < 30, 7, 1))
    part = np.append(np.arange(210) % 7, random.integers(0, 7, 970))
    yield Kind("1,000 people, 30 come on all 7 days", person, part, np.ones(len(person)))
    person = each(np.minimum(np.ceil(random.lognormal(1, 1, 10_000)), 500))
    part, alone = zipf(random, 1_000, 1, len(person)), ((SUM,), (MEAN,))
    yield Kind("1,000 partitions by Zipf, money", person, part, money(random, len(person)), alone)
    person = each(np.minimum(np.ceil(random.lognormal(0.7, 1.2, 20_000)), 48))
    part, own = random.integers(0, 24, len(person)), 1_000 + np.arange(len(person))
    by_zipf = np.minimum(random.zipf(1.4, len(person)), 300)
    even = random.integers(0, 300, len(person))
    values = {
        "300 items by Zipf": by_zipf,
        "300 items": even,
        "half of the items are one person's": np.where(even % 2, even, own),
        "all items are one person's": own,
        "own items of people with many": np.where(np.bincount(person)[person] > 8, own, even % 30),
    }
    for name, item in values.items():
        asked = ((dp.DistinctCount("value"),),)
        yield Kind(f"24 partitions, {name}", person, part, item.astype(float), asked)
    person = np.append(random.integers(0, 5_000, 20_000), np.repeat(np.arange(5_000, 5_100), 60))
    part = random.integers(0, 30, len(person))
    item = np.append(random.integers(0, 10, 20_000), 1_000.0 + np.arange(6_000))
    yield Kind("30 partitions, own items of 100 people", person, part, item, asked)
    random = np.random.default_rng(9)  # what follows is as it would be without
    person = each(np.minimum(np.ceil(random.lognormal(0.7, 1.2, 10_000)), 200))
    part = random.integers(0, 100, len(person))
    for bins in (5, 25):
        one = random.integers(0, bins, 10_000)[person]
        asked = ((dp.Histogram("value", range(bins + 1)),),)
        yield Kind(f"100 partitions, {bins} bins", person, part, one.astype(float), asked)


def _flags(random: np.random.Generator, size: int, share: float) -> np.ndarray:
    return (random.random(size) < share) * 1.0


def _single(random: np.random.Generator) -> Iterator[Kind]:
    def alone(name: str, value: np.ndarray, *asked: Metric) -> Kind:
        people = np.arange(len(value))
        return Kind(name, people, 0 * people, value, tuple((metric,) for metric in asked))

    size = 10_000
    yield alone("cliff: order lines", random.integers(1, 8, size) * 1.0, SUM)
    halves = np.clip(np.round(random.normal(3.5, 1.05, size) * 2) / 2, 0.5, 5)
    yield alone("cliff: ratings", halves, SUM)
    yield alone("cliff: minutes", random.uniform(0, 90, size).round(), SUM)
    yield alone("cliff: ages", random.normal(45, 16, size).round().clip(0, 90), SUM)
    yield alone("cliff: flags of 30%", _flags(random, size, 0.3), SUM)
    ends = dp.Mean("value", low=0, high=1)
    yield alone("30 flags of 3,000 people", (np.arange(3_000) < 30) * 1.0, MEAN, ends)
    largest, least = dp.Max("value"), dp.Min("value")
    yield alone("constant: all 5", np.full(size, 5.0), MEAN, largest, least)
    yield alone("constant: all 0", np.zeros(size), SUM)
    person, _ = rides(random)
    several = ((COUNT,), (MEAN,))
    value = money(random, len(person))
    yield Kind("unseen: 3 of 40,000 have 5,000 rows", person, 0 * person, value, several)
