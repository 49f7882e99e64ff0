"""Measure the private choice of the bound on partitions per person beside the best fixed bound.

    python -m benchmarks reach                 exit 1 where a goal is missed; some two minutes
    python -m benchmarks reach --draws 20      a quicker, rougher look

A data set is people with rows in so many partitions (a kind), drawn once; counts of people per
partition are released. The error of a bound is the mean over its noise of sum_p |released - true|,
what the bound cuts included; it is computed, not drawn. The library chooses the bound and spends
its share, so many times with fresh noise; its mean error is divided by that of the best fixed bound
(of 1, 2, 3, ... all) that has all of the budget for its noise. A partition that is not
selected says 0, and errs by all its people. "Kinds" are those the constants were
tuned on, "other kinds" were not looked at then.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import stats

import beam_dp as dp
from beam_dp.mechanisms.histogram_choice import reach as choice
from beam_dp.mechanisms.noise.partition_selection import GaussianThreshold, Selection
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.allocation import SelectionRequest
from beam_dp.mechanisms.planning.program import Program
from beam_dp.mechanisms.summaries.histograms import Summary
from benchmarks import tables
from benchmarks.best_clips import Scale
from benchmarks.tables import geometric, line, say

Draw = Callable[[np.random.Generator, int], np.ndarray]
GOALS = {300: 1.4, 1_000: 1.4, 10_000: 1.15, 100_000: 1.15}
PURE, ZCDP = dp.Budget(1), dp.Budget.zcdp(0.0171)
"""Epsilon 1; and the rho that implies it with delta 1e-6."""
SELECTED = dp.Budget(1, Fraction(1, 10**6))
"""Privately selected partitions need delta."""
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

    def error(self, program: Program) -> float:
        """Return the mean error of numbers of people, summed over the partitions."""
        [spending] = program.steps[0].release.spends
        cost = float(spending.cost.amount)
        scale = Scale.normal(cost, 1) if spending.cost.is_zcdp else Scale.laplace(cost, 1)
        lost, people = self.lost[min(program.reach, len(self.lost) - 1)], self.lost[0]
        errors = scale.mean(lost, np.ones(len(lost)))
        if program.selection is None:
            return float(errors.sum())
        kept = kept_chance(program.selection, people - lost)
        return float((kept * errors + (1 - kept) * people).sum())

    def votes(self, edges: Sequence[int]) -> Summary:
        """Return the votes of everybody in the choice among so many bounds."""
        counts = choice.people_per_step(self.reaches, edges)
        nothing = np.zeros(len(counts), np.int64)
        partition = nothing.astype(np.uint64)[None]
        return Summary(partition, nothing, np.arange(len(counts)), counts, nothing)


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
    table = [float(selection.probability(count)) for count in range(selection.threshold + 1)]
    return np.array(table)[np.minimum(people, selection.threshold)]


class Apart(Program):
    """A program without one draw for all partitions, whose error is not that of one number."""

    may_draw_jointly = False


def question_of(budget: dp.Budget, partitions: int | None = None) -> Apart:
    """Return what is asked: the number of people, of partitions that are selected if delta is."""
    selection = SelectionRequest(Fraction(1), 1) if budget.delta else None
    edges = choice.edges_up_to(partitions)
    metrics, share = (dp.PeopleCount(),), choice.SECOND
    return Apart(
        metrics, budget, edges, edges[0], share, selecting=selection, partitions=partitions
    )


def at_bound(question: Program, bound: int) -> Program:
    """Return the program for a given bound, which has all of the budget."""
    return dataclasses.replace(question, edges=(bound,), reach=bound, share=Fraction(0))


def best_fixed(data: Data, question: Program) -> float:
    """Return the least error of a fixed bound: it falls to one minimum, which is looked for."""

    def error(bound: int) -> float:
        return data.error(at_bound(question, bound))

    tried = choice.edges_up_to(len(data.lost) - 1)
    near = int(np.argmin([error(bound) for bound in tried]))
    low, high = tried[max(near - 1, 0)], tried[min(near + 1, len(tried) - 1)]
    return min(error(int(bound)) for bound in np.unique(np.linspace(low, high, 40).astype(int)))


def ratio(data: Data, question: Program, draws: int) -> float:
    """Return the mean error of the private choice over that of the best fixed bound."""
    best = best_fixed(data, question)
    votes, errors, known = data.votes(question.edges), [], {}
    for _ in range(draws):
        program = question.at(question.choose(votes, Noise()))
        key = program.reach, program.entries
        if key not in known:
            known[key] = data.error(program)
        errors.append(known[key])
    return float(np.mean(errors)) / best


def column(
    kinds: dict[str, Draw],
    people: int,
    partitions: int,
    sizes: Iterable[float],
    question: Program,
    draws: int,
) -> list[float]:
    """Return the ratios of all kinds."""
    return [
        ratio(data_of(draw, people, partitions, exponent, 100 * people + number), question, draws)
        for number, draw in enumerate(kinds.values())
        for exponent in sizes
    ]


def cell(ratios: Sequence[float]) -> str:
    return f"{geometric(ratios):.2f} ({max(ratios):.1f})"


def report(suite: str, public: bool, draws: int) -> int:
    """Print a table, and return how many goals are missed, which are those of a public number."""
    kinds, partitions = SUITES[suite]
    known, missed = "public" if public else "unknown", 0
    say(f"\n{suite}, number of partitions {known}: geometric mean (worst cell)\n\n")
    asked = list(itertools.product((("pure", PURE), ("zCDP", ZCDP)), partitions))
    heads = [f"{name} P={count}" for (name, _), count in asked]
    say(tables.heads(["people", *heads, "all", "goal"]))
    for people, goal in GOALS.items():
        columns = []
        for (_, budget), count in asked:
            question = question_of(budget, count if public else None)
            columns.append(column(kinds, people, count, SIZES.values(), question, draws))
        every = geometric(itertools.chain(*columns))
        met = ("yes" if every <= goal else "NO") if public else ""
        missed += met == "NO"
        say(line([f"{people:,}", *map(cell, columns), f"{every:.2f}", f"{goal} {met}"]))
    return missed


def report_selected(suite: str, draws: int) -> None:
    """Print a table for privately selected partitions; no goal is promised there."""
    kinds, partitions = SUITES[suite]
    say(f"\n{suite}, partitions selected privately: geometric mean (worst cell)\n\n")
    asked = list(itertools.product(partitions, SIZES.items()))
    say(tables.heads(["people", *(f"P={count}, {size} sizes" for count, (size, _) in asked)]))
    for people in GOALS:
        question = question_of(SELECTED)
        cells = (
            cell(column(kinds, people, count, [exponent], question, draws))
            for count, (_, exponent) in asked
        )
        say(line([f"{people:,}", *cells]))


def main(words: Sequence[str] | None = None) -> int:
    """Print the tables; return 1 where a goal is missed."""
    draws = tables.options(__doc__, words, draws=60).draws
    missed = sum(report(suite, True, draws) for suite in SUITES)
    for suite in SUITES:
        report(suite, False, draws)
        report_selected(suite, draws)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
