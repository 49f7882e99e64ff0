"""The data that releases are measured on: people's numbers in partitions, drawn or from files.

Every draw of data is seeded: the same question is asked of the same data each time. The noise of
the library never is.

`SUITE` is what goals are stated on. `CHECKS` are kinds that no constant of the library was settled
on but those of false alarms in the choice of a clip; they are looked at, and have no goals. A file is asked about by `read`: which column is a
person, which columns people would group by, and which are summed.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable

import numpy as np

Draw = Callable[[int, np.random.Generator], np.ndarray]
"""Takes the number of people, and returns one number each."""


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """A table of rows, by columns.

    Attributes:
        person: who owns a row, from 0 on.
        partition: in which of the partitions 0, 1, ... it is.
        columns: the values by name; NaN where there is none.
        partitions: how many partitions there are.
        max_partitions: the most partitions that a person has rows in, which is public; None: nobody
            knows.
        selected: whether partitions are selected privately; else the list of them is public.
    """

    person: np.ndarray
    partition: np.ndarray
    columns: dict[str, np.ndarray]
    partitions: int = 1
    max_partitions: int | None = 1
    selected: bool = False

    @classmethod
    def together(cls, person: np.ndarray, **columns: np.ndarray) -> Rows:
        """Return rows of one partition."""
        return cls(person, np.zeros(len(person), np.int64), columns)

    def kept(self, most: int) -> Rows:
        """Return the rows that are left where each person keeps so many of their partitions.

        Which ones is chosen at random, by a seed.
        """
        pairs = self.person.astype(np.int64) * self.partitions + self.partition
        each, places = np.unique(pairs, return_inverse=True)
        order = np.lexsort((np.random.default_rng(0).random(len(each)), each // self.partitions))
        ranks = np.empty(len(each), np.int64)
        ranks[order] = first_ranks(each[order] // self.partitions)
        return dataclasses.replace(self._where(ranks[places] < most), max_partitions=most)

    def only(self, places: np.ndarray) -> Rows:
        """Return the rows of some partitions, which are numbered 0, 1, ... anew."""
        left = self._where(np.isin(self.partition, places))
        partition = np.searchsorted(places, left.partition)
        return dataclasses.replace(left, partition=partition, partitions=len(places))

    def _where(self, keep: np.ndarray) -> Rows:
        columns = {name: values[keep] for name, values in self.columns.items()}
        person, partition = self.person[keep], self.partition[keep]
        return dataclasses.replace(self, person=person, partition=partition, columns=columns)

    def per_pair(self, column: str | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the partition and the total of each person in each of theirs.

        Args:
            column: whose values are summed; None: rows are counted.
        """
        pairs, places = np.unique(
            self.person.astype(np.int64) * self.partitions + self.partition, return_inverse=True
        )
        weights = None if column is None else np.nan_to_num(self.columns[column])
        return pairs % self.partitions, np.bincount(places, weights, len(pairs)).astype(float)


def first_ranks(person: np.ndarray) -> np.ndarray:
    """Return 0, 1, ... for the entries of each person, who stand together."""
    starts = np.flatnonzero(np.append(True, person[1:] != person[:-1])[: len(person)])
    sizes = np.diff(np.append(starts, len(person)))
    return np.arange(len(person)) - np.repeat(starts, sizes)


@dataclasses.dataclass(frozen=True)
class Layout:
    """How people are spread over partitions.

    Attributes:
        partitions: how many there are.
        max_partitions: how many of them each person is in.
        zipf: the i-th partition draws people like 1 / i; else all alike.
        tenth: a tenth of the partitions has ten times as large numbers.
    """

    partitions: int = 1
    max_partitions: int = 1
    zipf: bool = False
    tenth: bool = False

    @property
    def name(self) -> str:
        sizes = ("Zipf" if self.zipf else "equal") + " sizes" + ", a tenth x10" * self.tenth
        return f"{self.partitions:,} partitions, {self.max_partitions} each, {sizes}"


def few_above(people: float, value: Callable[..., object], others: Draw) -> Draw:
    """Return a kind in which so many people, or that share of all, have another number.

    `value` takes how many people there are, the generator and what they would have.
    """

    def draw(size: int, drawn: np.random.Generator) -> np.ndarray:
        numbers = others(size, drawn)
        few = people if isinstance(people, int) else int(size * people)
        numbers[:few] = value(size, drawn, numbers[:few])
        return numbers

    return draw


def _alike(size: int, drawn: np.random.Generator) -> np.ndarray:
    return np.ones(size)


def _group(people: int, factor: float) -> Draw:
    near = SUITE["lognormal 0.5"]
    return few_above(people, lambda size, drawn, numbers: factor * numbers, near)


SUITE: dict[str, Draw] = {
    "lognormal 0.5": lambda size, drawn: drawn.lognormal(0.0, 0.5, size),
    "lognormal 1": lambda size, drawn: drawn.lognormal(0.0, 1.0, size),
    "lognormal 2": lambda size, drawn: drawn.lognormal(0.0, 2.0, size),
    "exponential": lambda size, drawn: drawn.exponential(1.0, size),
    "uniform": lambda size, drawn: drawn.uniform(0.0, 1.0, size),
    "Pareto 1.5": lambda size, drawn: 1.0 + drawn.pareto(1.5, size),
    "Pareto 2": lambda size, drawn: 1.0 + drawn.pareto(2.0, size),
    "Pareto 3": lambda size, drawn: 1.0 + drawn.pareto(3.0, size),
    "all alike": _alike,
    "5% are not 0": few_above(
        0.05,
        lambda size, drawn, numbers: drawn.lognormal(0.0, 1.0, len(numbers)),
        lambda size, drawn: np.zeros(size),
    ),
    "1 and 1,000": few_above(0.01, lambda *_: 1000.0, _alike),
    "Poisson 5": lambda size, drawn: drawn.poisson(5.0, size).astype(float),
    "one giant": few_above(1, lambda size, *_: size - 1, _alike),
}
CHECKS: dict[str, Draw] = {
    "gamma 0.5": lambda size, drawn: drawn.gamma(0.5, 1.0, size),
    "Weibull 0.6": lambda size, drawn: drawn.weibull(0.6, size),
    "half-normal": lambda size, drawn: abs(drawn.normal(0.0, 1.0, size)),
    "geometric 0.2": lambda size, drawn: drawn.geometric(0.2, size).astype(float),
    "40 people x100": _group(40, 100.0),
    "80 people x30": _group(80, 30.0),
    "150 people x1,000": _group(150, 1000.0),
    "normal(10, 30)": lambda size, drawn: drawn.normal(10.0, 30.0, size),
}
TIES: dict[str, Draw] = {
    "whole years": lambda size, drawn: np.clip(np.round(drawn.normal(42.0, 15.0, size)), 0, 100),
    "60% are 100": few_above(
        0.6, lambda *_: 100.0, lambda size, drawn: drawn.integers(1, 100, size).astype(float)
    ),
    "0 and 1": lambda size, drawn: (drawn.random(size) < 0.3).astype(float),
    "prices of .99": lambda size, drawn: np.floor(drawn.lognormal(2.0, 1.0, size)) + 0.99,
    "all are 5": lambda size, drawn: np.full(size, 5.0),
    "90% are 0": few_above(
        0.9, lambda *_: 0.0, lambda size, drawn: np.ceil(drawn.lognormal(1.0, 1.0, size))
    ),
}
"""Many people have the same value."""
KINDS = SUITE | CHECKS | TIES


def numbers(kind: str, size: int, seed: int) -> np.ndarray:
    """Return the numbers of so many people: multiples of a millionth, the same for a seed."""
    drawn = np.random.default_rng([zlib.crc32(kind.encode()), size, seed])
    return np.round(KINDS[kind](size, drawn), 6)


def alone(kind: str, size: int, seed: int) -> Rows:
    """Return one row per person, in one partition."""
    return Rows.together(np.arange(size), v=numbers(kind, size, seed))


def spread(kind: str, size: int, layout: Layout, seed: int) -> Rows:
    """Return one row per person and partition; each person has a fresh number in each of theirs."""
    drawn = np.random.default_rng(
        [size, layout.partitions, layout.max_partitions, layout.zipf, seed]
    )
    chosen = choose(size, layout, drawn)
    values = drawn.permutation(numbers(kind, size * layout.max_partitions, seed))
    if layout.tenth:
        values = np.where(chosen.ravel() % 10 == 3, 10 * values, values)
    person = np.repeat(np.arange(size), layout.max_partitions)
    return Rows(person, chosen.ravel(), {"v": values}, layout.partitions, layout.max_partitions)


def choose(size: int, layout: Layout, drawn: np.random.Generator) -> np.ndarray:
    """Return the different partitions of each person: an array (people, max_partitions)."""
    ranks = np.arange(1, layout.partitions + 1)
    weights = 1.0 / ranks if layout.zipf else np.ones(layout.partitions)
    weights /= weights.sum()
    chosen = drawn.choice(layout.partitions, (size, layout.max_partitions), p=weights)
    while True:
        ordered = np.sort(chosen, axis=1)
        twice = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        if not len(twice):
            return chosen
        chosen[twice] = drawn.choice(
            layout.partitions, (len(twice), layout.max_partitions), p=weights
        )


def several_rows(kind: str, size: int, seed: int) -> Rows:
    """Return 1, 2, ... rows per person in one partition (3 on average), each with a number."""
    drawn = np.random.default_rng([size, seed])
    person = np.repeat(np.arange(size), 1 + drawn.poisson(2.0, size))
    return Rows.together(person, v=drawn.permutation(numbers(kind, len(person), seed)))


def people_rows(kind: str, size: int, seed: int) -> Rows:
    """Return as many rows per person as a kind of numbers says, rounded up; at most 10,000."""
    counts = np.minimum(np.ceil(numbers(kind, size, seed)), 1e4).astype(np.int64)
    return Rows.together(np.repeat(np.arange(size), counts))
