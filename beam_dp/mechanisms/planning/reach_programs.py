"""Programs for every bound on partitions per person that a private search may choose.

The search (`mechanisms.reach`) is part of what the whole budget pays for:

* it draws its histogram from the whole budget, and spends one of two shares of it;
* what it leaves goes to a program for the bound that it chose, compiled where it runs, from public
  parameters and the released choice alone, exactly as for a bound that was given.

Together they cost the whole: see `reach.looks` for the composition. Where (epsilon, delta) is spent
as zCDP whatever the bound, the search is counted in rho too; else it spends epsilon, and what is
left of (epsilon, delta) may be spent as zCDP or not, as the bound has it.
"""

import bisect
import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.allocation import SelectionRequest, share_out, weights_of
from beam_dp.mechanisms.planning.program import Program, compile_program
from beam_dp.mechanisms.reach import reach_choice
from beam_dp.mechanisms.reach.ladder import edges_up_to
from beam_dp.mechanisms.reach.looks import FIRST, SECOND, TwoLooks, left_after, noise_scale
from beam_dp.mechanisms.reach.reach_choice import ReachChoice, StepNoise

SEARCH = "partitions per person"
"""The name of the cost of the search in the account."""


@dataclasses.dataclass(frozen=True)
class Question:
    """The public parameters of a program but for the bound.

    Attributes:
        asked: the metrics; empty only where partitions are selected.
        budget: the whole budget.
        depth: the most rows per person and partition; None: unknown.
        selection: how to select partitions; None for public ones.
        partitions: how many partitions there are; None: unknown.
    """

    asked: tuple[Metric, ...]
    budget: Budget
    depth: int | None = None
    selection: SelectionRequest | None = None
    partitions: int | None = None

    def program(self, budget: Budget, reach: int, about: int | None = None) -> Program:
        """Return the program for a bound, with what is left of the budget.

        Args:
            budget: what is left.
            reach: the bound.
            about: a guess of the number of partitions where it is unknown; None: none.
        """
        return compile_program(
            self.asked,
            budget,
            reach,
            depth=self.depth,
            selection=self.selection,
            partitions=self.partitions,
            about=about,
        )

    def counted(self) -> Budget:
        """Return the whole budget, as zCDP where all of it is spent so whatever the bound.

        The noise of pure composition grows with the bound, that of zCDP with its root: where zCDP
        is better for one partition, it is for more.
        """
        return share_out(self.budget, weights_of(self.asked), 1, self.selection)[0]


def _scale(costs: Sequence[Budget]) -> float:
    """Return the scale of noise that costs so much: Gauss's if any part is counted in rho."""
    rho = sum(float(cost.amount) for cost in costs if cost.is_zcdp)
    epsilon = sum(float(cost.amount) for cost in costs if not cost.is_zcdp)
    return math.sqrt(1 / (2 * rho)) if rho else 1 / epsilon


class Programs:
    """The search for the bound, and the program for each bound that it may choose.

    Args:
        question: the public parameters.
        edges: the bounds to choose from, in rising order.
    """

    def __init__(self, question: Question, edges: tuple[int, ...]) -> None:
        self._question, self._edges = question, edges
        self._budget = question.counted()
        self._compiled: dict[tuple[int, Fraction, int | None], Program] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Programs, (self._question, self._edges)

    @property
    def edges(self) -> tuple[int, ...]:
        """The bounds to choose from."""
        return self._edges

    @property
    def asked(self) -> Budget:
        """The whole budget as the user asked for it."""
        return self._question.budget

    @property
    def pieces(self) -> tuple[tuple[Budget, int], ...]:
        """What the output costs: the whole, for what its releases cost depends on the search."""
        return ((self._budget, 1),)

    @property
    def costs(self) -> tuple[Budget, Budget]:
        """What the search costs with one look, and with two."""
        whole = self._budget.without_delta()
        return whole.scaled(FIRST), whole.scaled(SECOND)

    @property
    def scales(self) -> tuple[float, float]:
        """The scale of the histogram's noise with one look, and with two."""
        one, two = self.costs
        return noise_scale(one), noise_scale(two)

    def is_zcdp_at(self, reach: int) -> bool:
        """Return whether what two looks leave is spent as zCDP at a bound; so it is above it."""
        weights, selection = weights_of(self._question.asked), self._question.selection
        return share_out(left_after(self._budget, SECOND), weights, reach, selection)[0].is_zcdp

    @property
    def model(self) -> Program:
        """The program for a bound of 1: what to read and to summarise is the same for all bounds.

        The columns, the fields, the requests and which of them share a clip depend on the metrics
        alone.
        """
        return self.program(self._edges[0], SECOND)

    def program(self, reach: int, share: Fraction, about: int | None = None) -> Program:
        """Return the program for a bound, where the search has spent a share of the budget.

        Args:
            reach: the bound.
            share: what the search has spent.
            about: its guess of the number of partitions; None: none.
        """
        key = reach, share, about
        if key not in self._compiled:
            left = left_after(self._budget, share)
            spent = self._budget.without_delta().scaled(share)
            program = self._question.program(left, reach, about)
            entries = ((SEARCH, spent, 1), *program.entries)
            self._compiled[key] = dataclasses.replace(
                program, entries=entries, asked=self._question.budget
            )
        return self._compiled[key]

    def at(self, chosen: ReachChoice | None) -> Program:
        """Return the program for what the search chose; None: `model`."""
        if chosen is None:
            return self.model
        about = None if self._question.partitions else _power(chosen.guess)
        program = self.program(chosen.reach, chosen.look.share, about)
        return dataclasses.replace(program, chosen=chosen)

    def noise_at(self, share: Fraction, reach: int) -> StepNoise:
        """Return the noise per partition and unit at a bound: the mean over what is released.

        It is that of the costs per partition; what is spent once for all of them chooses clips.

        Args:
            share: the part of the budget that the search has spent.
            reach: the bound.
        """
        program = self.program(reach, share)
        costs = [[s.cost for s in step.release.spends if not s.once] for step in program.steps]
        noisy = [each for each in costs if each] or [[cost for _, cost, _ in program.entries[1:]]]
        scales = [_scale(each) for each in noisy]
        return StepNoise(sum(scales) / len(scales), program.budget.is_zcdp)

    def choose(self, counts: np.ndarray, noise: Noise) -> ReachChoice:
        """Draw the histogram and choose the bound.

        Args:
            counts: how many people stand on each step of the ladder.
            noise: the randomness.
        """
        look = TwoLooks(self._budget).draw(counts, noise)
        weighed = functools.partial(self.noise_at, look.share)
        return reach_choice.choose(look, self._edges, weighed, self._question.partitions)


def compile_programs(
    asked: Sequence[Metric],
    budget: Budget,
    limit: int | None,
    *,
    depth: int | None = None,
    selection: SelectionRequest | None = None,
    partitions: int | None = None,
) -> "Programs | Program":
    """Return the programs for every bound that can be chosen; the one program if there is but one.

    The ladder ends where a metric can no longer be released with its part of the budget, which
    falls as the bound grows.

    Args:
        asked: the metrics.
        budget: the whole budget.
        limit: the most partitions that anybody can have rows in; None: not known.
        depth: the most rows per person and partition; None: unknown.
        selection: how to select partitions; None for public ones.
        partitions: how many partitions there are; None: unknown.

    Raises:
        ValueError: as `compile_program`, for a bound of 1.
    """
    together = tuple(metric.beside(asked) for metric in asked)
    question = Question(together, budget, depth, selection, partitions)
    edges = edges_up_to(limit)
    if len(edges) == 1:
        return question.program(budget, edges[0])
    programs = Programs(question, edges)
    possible = edges
    # As the bound grows, what a partition may cost falls, but where pure composition ends.
    pure = bisect.bisect_left(edges, True, key=programs.is_zcdp_at)
    if not all(_is_possible(programs, edge) for edge in {edges[max(pure - 1, 0)], edges[-1]}):
        within = functools.partial(_is_possible, programs)
        possible = tuple(itertools.takewhile(within, edges))
    if len(possible) <= 1:
        return question.program(budget, edges[0])
    return Programs(question, possible)


def _power(number: float) -> int:
    """Return the power of two next to a number: few programs are compiled."""
    return 1 << max(0, round(math.log2(number)))


def _is_possible(programs: Programs, reach: int) -> bool:
    """Return whether every metric can be released at a bound with what two looks leave."""
    try:
        return bool(programs.costs and programs.program(reach, SECOND))
    except checks.ParameterError:
        return False
