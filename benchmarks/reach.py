"""Measure the private choice of the bound on partitions per person beside the best fixed bound.

    python -m benchmarks.reach                 exit 1 where a goal is missed; some two minutes
    python -m benchmarks.reach --draws 20      a quicker, rougher look

A data set is people with rows in so many partitions (a kind), drawn once; counts of people per
partition are released. The error of a bound is the mean over its noise of sum_p |released - true|,
what the bound cuts included; it is computed, not drawn. The library chooses the bound and spends
its share, so many times with fresh noise; its mean error is divided by that of the best fixed bound
(of 1, 2, 3, ... all) that has all of the budget for its noise. "Kinds" are those the constants were
tuned on, "other kinds" were not looked at then.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import stats

import beam_dp as dp
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.histogram_choice import reach as choice
from beam_dp.mechanisms.histogram_choice.reach import StepNoise, left_after
from beam_dp.mechanisms.noise.additive import AdditiveNoise
from beam_dp.mechanisms.noise.partition_selection import (
    GaussianThreshold,
    Selection,
    TruncatedGeometric,
)
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.allocation import SelectionRequest
from beam_dp.mechanisms.planning.program import Program, Question
from beam_dp.mechanisms.summaries.histograms import Summary

Draw = Callable[[np.random.Generator, int], np.ndarray]
GOALS = {300: 1.4, 1_000: 1.4, 10_000: 1.15, 100_000: 1.15}
BUDGETS = {"pure": Budget(1), "zCDP": Budget.zcdp(0.0171)}
"""Epsilon 1; and the rho that implies it with delta 1e-6."""
SIZES = {"equal": 0.0, "Zipf": 1.0}

KINDS: dict[str, Draw] = {
    "Poisson(2) + 1": lambda random, n: random.poisson(2, n) + 1,
    "Zipf 1.6": lambda random, n: random.zipf(1.6, n),
    "all 1": lambda _, n: np.ones(n, np.int64),
    "all 30": lambda _, n: np.full(n, 30),
    "95% 1 to 3, 5% 50 to 200": lambda random, n: mixed(random, n),
    "geometric, mean 10": lambda random, n: random.geometric(0.1, n),
}
OTHERS: dict[str, Draw] = {
    "lognormal": lambda random, n: np.ceil(random.lognormal(1, 1, n)).astype(np.int64),
    "uniform 1 to 12": lambda random, n: random.integers(1, 13, n),
    "Pareto 2": lambda random, n: np.ceil(random.pareto(2, n) + 1).astype(np.int64),
    "all 5": lambda _, n: np.full(n, 5),
    "negative binomial": lambda random, n: random.negative_binomial(1, 1 / 20, n) + 1,
    "80% 2, 20% 15": lambda random, n: np.where(random.random(n) < 0.2, 15, 2),
}
SELECTED = Budget(1, Fraction(1, 10**6))
"""Privately selected partitions need delta."""
SUITES = {"kinds": (KINDS, (7, 50, 1_000)), "other kinds": (OTHERS, (5, 20, 150, 1_000))}


def mixed(random: np.random.Generator, people: int) -> np.ndarray:
    """Return 1 to 3 partitions for most people, and 50 to 200 for every twentieth."""
    many = random.integers(50, 201, people)
    return np.where(random.random(people) < 0.05, many, random.integers(1, 4, people))


@dataclass(frozen=True)
class Data:
    """One data set.

    Attributes:
        reaches: the number of partitions of each person.
        lost: the pairs that each bound 0, 1, 2, ... cuts, per partition: (bounds, partitions).
    """

    reaches: np.ndarray
    lost: np.ndarray

    def error(self, bound: int, noise: StepNoise) -> float:
        """Return the mean error of a bound, summed over the partitions."""
        lost = self.lost[min(bound, len(self.lost) - 1)]
        different, times = np.unique(lost, return_counts=True)
        errors = [noise.error(float(bias)) for bias in different]
        return float(np.dot(errors, times))


def data_of(draw: Draw, people: int, partitions: int, exponent: float, seed: int) -> Data:
    """Return people with rows in as many partitions as `draw` says, at most all.

    Each person takes partitions at even steps of the cumulated weights from a random point on, and
    so the large ones more often; a partition that is hit twice counts once. The bound keeps the
    first of each person's partitions in a random order.
    """
    random = np.random.default_rng(seed)
    wanted = np.minimum(draw(random, people), partitions)
    weights = np.arange(1, partitions + 1, dtype=np.float64) ** -exponent
    ends = np.cumsum(weights / weights.sum())
    person = np.repeat(np.arange(people), wanted)
    turn = np.arange(len(person)) - np.repeat(np.cumsum(wanted) - wanted, wanted)
    points = (turn + random.random(people)[person]) / wanted[person]
    partition = np.minimum(np.searchsorted(ends, points, side="right"), partitions - 1)
    new = np.append(True, (partition[1:] != partition[:-1]) | (person[1:] != person[:-1]))
    person, partition = person[new], partition[new]
    shuffled = np.lexsort((random.random(len(person)), person))
    partition = partition[shuffled]
    reaches = np.bincount(person)
    rank = np.arange(len(person)) - np.repeat(np.cumsum(reaches) - reaches, reaches)
    kept = np.zeros((int(reaches.max()) + 1, partitions), np.int64)
    np.add.at(kept, (rank + 1, partition), 1)
    kept = np.cumsum(kept, axis=0)
    return Data(reaches, kept[-1] - kept)


def kept_chance(selection: Selection, people: np.ndarray) -> np.ndarray:
    """Return with which chance partitions with so many people are selected."""
    if isinstance(selection, GaussianThreshold):
        beyond = (1.5 + selection.slack - people) / math.sqrt(selection.variance)
        return np.where(people > 0, stats.norm.sf(beyond), 0.0)
    assert isinstance(selection, TruncatedGeometric)
    table = [float(selection.probability(count)) for count in range(selection.threshold + 1)]
    return np.array(table)[np.minimum(people, selection.threshold)]


def selected_error(data: Data, program: Program) -> float:
    """Return the mean error of numbers of people of partitions that are selected privately.

    A partition that is not selected says 0, and errs by all its people.
    """
    assert program.selection is not None
    [spending] = program.steps[0].release.spends
    noise = StepNoise(AdditiveNoise(spending.cost).scale, spending.cost.is_zcdp)
    lost, people = data.lost[min(program.reach, len(data.lost) - 1)], data.lost[0]
    kept = kept_chance(program.selection, people - lost)
    errors = np.array([noise.error(float(bias)) for bias in lost])
    return float((kept * errors + (1 - kept) * people).sum())


def selected_ratio(data: Data, draws: int) -> float:
    """Return the mean error of the private choice over that of the best fixed bound."""
    asked, selection = (dp.PeopleCount(),), SelectionRequest(Fraction(1), 1)
    tried = choice.edges_up_to(len(data.lost) - 1)
    given = (Question(asked, SELECTED, (bound,), selection=selection) for bound in tried)
    best = min(selected_error(data, question.model) for question in given)
    question = Question(asked, SELECTED, choice.edges_up_to(None), selection=selection)
    counts = choice.people_per_step(data.reaches, question.edges)
    nothing = np.zeros(len(counts), np.int64)
    votes = Summary(
        nothing.astype(np.uint64)[None], nothing, np.arange(len(counts)), counts, nothing
    )
    known: dict[tuple[int, Fraction], float] = {}
    errors = []
    for _ in range(draws):
        first = question.choose(votes, Noise())
        assert first.reach is not None
        key = first.reach.reach, first.reach.look.share
        if key not in known:
            known[key] = selected_error(data, question.at(first))
        errors.append(known[key])
    return float(np.mean(errors)) / best


def noise_at(left: Budget, bound: int) -> StepNoise:
    """Return the noise of one count per partition."""
    if left.is_zcdp:
        return StepNoise(float(bound / (2 * left.amount)) ** 0.5, True)
    return StepNoise(float(bound / left.amount), False)


def best_fixed(data: Data, budget: Budget) -> float:
    """Return the least error of a fixed bound: it falls to one minimum, which is looked for."""
    tried = choice.edges_up_to(len(data.lost) - 1)
    errors = [data.error(bound, noise_at(budget, bound)) for bound in tried]
    near = int(np.argmin(errors))
    low, high = tried[max(near - 1, 0)], tried[min(near + 1, len(tried) - 1)]
    between = np.unique(np.linspace(low, high, 40).astype(int))
    return min(data.error(int(bound), noise_at(budget, int(bound))) for bound in between)


def ratio(data: Data, budget: Budget, partitions: int, public: bool, draws: int) -> float:
    """Return the mean error of the private choice over that of the best fixed bound."""
    edges = choice.edges_up_to(partitions if public else None)
    counts = choice.people_per_step(data.reaches, edges)
    known: dict[tuple[int, float], float] = {}
    errors = []
    for _ in range(draws):
        look = choice.draw(counts, budget, Noise())
        left = left_after(budget, look.share)
        noise = functools.partial(noise_at, left)
        chosen = choice.choose(look, edges, noise, partitions if public else None).reach
        key = chosen, float(look.share)
        if key not in known:
            known[key] = data.error(chosen, noise_at(left, chosen))
        errors.append(known[key])
    return float(np.mean(errors)) / best_fixed(data, budget)


def cells(
    kinds: dict[str, Draw], people: int, partitions: int, public: bool, draws: int
) -> dict[str, list[float]]:
    """Return the ratios of all kinds and both sizes of partitions, per budget."""
    found: dict[str, list[float]] = {name: [] for name in BUDGETS}
    for number, draw in enumerate(kinds.values()):
        for exponent in SIZES.values():
            data = data_of(draw, people, partitions, exponent, 100 * people + number)
            for name, budget in BUDGETS.items():
                found[name].append(ratio(data, budget, partitions, public, draws))
    return found


def report_selected(suite: str, draws: int) -> None:
    """Print a table for privately selected partitions; no goal is promised there."""
    kinds, partitions = SUITES[suite]
    sys.stdout.write(f"\n{suite}, partitions selected privately: geometric mean (worst cell)\n\n")
    heads = [f"P={count}, {size} sizes" for count in partitions for size in SIZES]
    sys.stdout.write(f"| people | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 1)}\n")
    for people in GOALS:
        texts = []
        for count, exponent in itertools.product(partitions, SIZES.values()):
            found = [
                selected_ratio(data_of(draw, people, count, exponent, 100 * people + number), draws)
                for number, draw in enumerate(kinds.values())
            ]
            texts.append(f"{middle(found):.2f} ({max(found):.1f})")
        sys.stdout.write(f"| {people:,} | {' | '.join(texts)} |\n")
        sys.stdout.flush()


def middle(ratios: Sequence[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(ratios))))


def report(suite: str, public: bool, draws: int) -> list[str]:
    """Print a table, and return its misses: lines where the mean over all cells exceeds the goal."""
    kinds, partitions = SUITES[suite]
    known = "public" if public else "unknown"
    sys.stdout.write(f"\n{suite}, number of partitions {known}: geometric mean (worst cell)\n\n")
    heads = [f"{name} P={count}" for name in BUDGETS for count in partitions]
    sys.stdout.write(f"| people | {' | '.join(heads)} | all | goal |\n")
    sys.stdout.write(f"|{'---|' * (len(heads) + 3)}\n")
    misses = []
    for people, goal in GOALS.items():
        by_count = [cells(kinds, people, count, public, draws) for count in partitions]
        columns = [found[name] for name in BUDGETS for found in by_count]
        every = middle([each for column in columns for each in column])
        texts = [f"{middle(column):.2f} ({max(column):.1f})" for column in columns]
        sys.stdout.write(f"| {people:,} | {' | '.join(texts)} | {every:.2f} | {goal} |\n")
        sys.stdout.flush()
        if every > goal:
            misses.append(f"{suite}, {known}, {people:,} people: {every:.2f} > {goal}")
    return misses


def main(words: Sequence[str] | None = None) -> int:
    """Print the tables; return 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=60, help="choices per cell")
    draws = parser.parse_args(words).draws
    misses = [miss for suite in SUITES for miss in report(suite, True, draws)]
    sys.stdout.write("".join(f"missed: {miss}\n" for miss in misses))
    # Without a public number of partitions no goal is promised; the figures are shown.
    for suite in SUITES:
        report(suite, False, draws)
    for suite in SUITES:
        report_selected(suite, draws)
    return int(bool(misses))


if __name__ == "__main__":
    sys.exit(main())
