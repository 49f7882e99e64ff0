"""Programs for every bound on partitions per person that a private search may choose.

What is chosen first (`first_choices`) is part of what the whole budget pays for:

* the search for the bound (`mechanisms.reach`) draws its histogram from the whole budget, and
  spends one of two shares of it; each centre costs a part of what its metrics may spend;
* what they leave goes to a program for the bound that it chose, compiled where it runs, from public
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

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.metrics.base import CENTRE, Metric
from beam_dp.mechanisms.metrics.part import CentreRequest
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.allocation import SelectionRequest, share_out, weights_of
from beam_dp.mechanisms.planning.first_choices import Chosen, FirstVotes, centre_of
from beam_dp.mechanisms.planning.program import Program, compile_program
from beam_dp.mechanisms.reach import reach_choice
from beam_dp.mechanisms.reach.looks import FIRST, SECOND, TwoLooks, left_after, noise_scale
from beam_dp.mechanisms.reach.reach_choice import StepNoise
from beam_dp.mechanisms.releases.clipped import ClippedSum
from beam_dp.mechanisms.summaries.histograms import Summary

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

    def program(
        self, budget: Budget, reach: int, about: int | None = None, jointly: bool = False
    ) -> Program:
        """Return the program for a bound, with what is left of the budget.

        Args:
            budget: what is left.
            reach: the bound.
            about: a guess of the number of partitions where it is unknown; None: none.
            jointly: whether all partitions share one draw of noise.
        """
        return compile_program(
            self.asked,
            budget,
            reach,
            depth=self.depth,
            selection=self.selection,
            partitions=self.partitions,
            about=about,
            jointly=jointly,
        )

    def counted(self) -> Budget:
        """Return the whole budget, as zCDP where all of it is spent so whatever the bound.

        The noise of pure composition grows with the bound, that of zCDP with its root: where zCDP
        is better for one partition, it is for more.
        """
        return share_out(self.budget, weights_of(self.asked), 1, self.selection)[0]

    def centres(self) -> dict[CentreRequest, Fraction]:
        """Return the centres that are chosen first, each with its part of the whole budget."""
        weights = [checks.number("weight", "weight", metric.weight) for metric in self.asked]
        selected = self.selection.weight if self.selection is not None else Fraction(0)
        whole = sum(weights, selected)
        parts: dict[CentreRequest, Fraction] = {}
        for metric, weight in zip(self.asked, weights, strict=True):
            wanted = {part.asked_centre for part in metric.parts()} - {None}
            for centre in filter(None, wanted):
                parts[centre] = parts.get(centre, Fraction(0)) + CENTRE * weight / whole
        return parts


def _scale(costs: Sequence[Budget]) -> float:
    """Return the scale of noise that costs so much: Gauss's if any part is counted in rho."""
    rho = sum(float(cost.amount) for cost in costs if cost.is_zcdp)
    epsilon = sum(float(cost.amount) for cost in costs if not cost.is_zcdp)
    return math.sqrt(1 / (2 * rho)) if rho else 1 / epsilon


class Programs:
    """What is chosen first, and the program for each bound that may be chosen.

    Args:
        question: the public parameters.
        edges: the bounds to choose from, in rising order; one, where it was given.
    """

    def __init__(self, question: Question, edges: tuple[int, ...]) -> None:
        self._question, self._edges = question, edges
        self._budget = question.counted()
        self._centres = question.centres()
        self._compiled: dict[tuple[Any, ...], Program] = {}

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
    def searches(self) -> bool:
        """Whether the bound is chosen."""
        return len(self._edges) > 1

    @property
    def shares(self) -> tuple[Fraction, Fraction]:
        """What the search spends of the budget with one look, and with two."""
        return (FIRST, SECOND) if self.searches else (Fraction(0), Fraction(0))

    @property
    def costs(self) -> tuple[Budget, Budget]:
        """What the search costs with one look, and with two."""
        whole = self._budget.without_delta()
        return whole.scaled(FIRST), whole.scaled(SECOND)

    @property
    def centre_costs(self) -> dict[CentreRequest, Budget]:
        """What the choice of each centre costs."""
        whole = self._budget.without_delta()
        return {request: whole.scaled(share) for request, share in self._centres.items()}

    @property
    def votes(self) -> FirstVotes:
        """What is counted for the choices."""
        model, costs = self.model, self.centre_costs
        centres = (centre_of(*item, model.fields, model.columns) for item in costs.items())
        return FirstVotes(self._edges, tuple(centres))

    @property
    def scales(self) -> tuple[float, float]:
        """The scale of the histogram's noise with one look, and with two."""
        one, two = self.costs
        return noise_scale(one), noise_scale(two)

    def is_zcdp_at(self, reach: int) -> bool:
        """Return whether what two looks leave is spent as zCDP at a bound; so it is above it."""
        weights, selection = weights_of(self._question.asked), self._question.selection
        left = self._left_after(SECOND)
        return share_out(left, weights, reach, selection)[0].is_zcdp

    def _left_after(self, share: Fraction) -> Budget:
        """Return what the choices leave, where the search has spent a share of the budget."""
        return left_after(self._budget, share + sum(self._centres.values(), Fraction(0)))

    @property
    def model(self) -> Program:
        """The program for a bound of 1: what to read and to summarise is the same for all bounds.

        The columns, the fields, the requests and which of them share a clip depend on the metrics
        alone.
        """
        return self.program(self._edges[0], self.shares[1])

    def program(
        self,
        reach: int,
        share: Fraction,
        about: int | None = None,
        centres: tuple[int, ...] = (),
        *,
        jointly: bool = False,
    ) -> Program:
        """Return the program for a bound, where the search has spent a share of the budget.

        Args:
            reach: the bound.
            share: what the search has spent.
            about: its guess of the number of partitions; None: none.
            centres: the centres that were chosen, in units; none: 0 stands for each.
            jointly: whether all partitions share one draw of noise.
        """
        key = reach, share, about, centres, jointly
        if key not in self._compiled:
            program = self._question.program(self._left_after(share), reach, about, jointly)
            known = dict(zip(self._centres, centres, strict=False))
            whole = self._budget.without_delta()
            first = ((SEARCH, whole.scaled(share), 1),) if self.searches else ()
            chosen = (
                (f"centre of {request.column.name}", cost, 1)
                for request, cost in self.centre_costs.items()
            )
            self._compiled[key] = dataclasses.replace(
                program,
                steps=tuple(step.about(known) for step in program.steps),
                entries=(*first, *chosen, *program.entries),
                asked=self._question.budget,
            )
        return self._compiled[key]

    def at(self, chosen: Chosen | None) -> Program:
        """Return the program for what was chosen; None: `model`."""
        if chosen is None:
            return self.model
        found = chosen.reach
        if found is None:
            return self.program(self._edges[0], self.shares[0], None, chosen.centres)
        about = None if self._question.partitions else _power(found.guess)
        known = found.reach, found.look.share, about, chosen.centres
        program = self.program(*known, jointly=found.jointly)
        return dataclasses.replace(program, chosen=found)

    def noise_at(self, share: Fraction, reach: int, jointly: bool = False) -> StepNoise:
        """Return the noise per partition and unit at a bound: the mean over what is released.

        It is that of the costs per partition; what is spent once for all of them chooses clips.

        Args:
            share: the part of the budget that the search has spent.
            reach: the bound.
            jointly: whether all partitions share one draw of noise.
        """
        program = self.program(reach, share, jointly=jointly)
        releases = [step.release for step in program.steps]
        scales = [each.price for each in releases if isinstance(each, ClippedSum)]
        others = [each for each in releases if not isinstance(each, ClippedSum)]
        costs = [[s.cost for s in each.spends if not s.once] for each in others]
        scales += [_scale(each) for each in costs if each]
        scales = scales or [_scale([cost for _, cost, _ in program.entries[1:]])]
        return StepNoise(sum(scales) / len(scales), program.budget.is_zcdp)

    @property
    def may_draw_jointly(self) -> bool:
        """Whether all partitions may share a draw, and nobody is cut: where they are all public."""
        partitions = self._question.partitions
        return partitions == self._edges[-1] and self.model.may_draw_jointly(partitions)

    def _joint_noise(self, share: Fraction) -> StepNoise | None:
        """Return the noise where all partitions share a draw; None where they cannot."""
        return (
            self.noise_at(share, self._edges[-1], jointly=True) if self.may_draw_jointly else None
        )

    def choose(self, summary: Summary, noise: Noise) -> Chosen:
        """Draw the centres, and the histogram that chooses the bound.

        Args:
            summary: the votes of everybody.
            noise: the randomness.
        """
        votes = self.votes
        pairs = zip(votes.centres, votes.counted(summary)[1:], strict=True)
        centres = tuple(centre.choose(*counted, noise) for centre, counted in pairs)
        if not self.searches:
            return Chosen(None, centres)
        look = TwoLooks(self._budget).draw(votes.people_per_step(summary), noise)
        weighed = functools.partial(self.noise_at, look.share)
        partitions = self._question.partitions
        joint = self._joint_noise(look.share)
        reach = reach_choice.choose(look, self._edges, weighed, partitions, joint)
        return Chosen(reach, centres)


def compile_programs(
    asked: Sequence[Metric],
    budget: Budget,
    edges: tuple[int, ...],
    *,
    depth: int | None = None,
    selection: SelectionRequest | None = None,
    partitions: int | None = None,
) -> "Programs | Program":
    """Return the programs for every bound that can be chosen; the program, if nothing is chosen.

    The ladder ends where a metric can no longer be released with its part of the budget, which
    falls as the bound grows.

    Args:
        asked: the metrics.
        budget: the whole budget.
        edges: the bounds that can be chosen, in rising order; one, where it was given.
        depth: the most rows per person and partition; None: unknown.
        selection: how to select partitions; None for public ones.
        partitions: how many partitions there are; None: unknown.

    Raises:
        ValueError: as `compile_program`, for a bound of 1.
    """
    together = tuple(metric.beside(asked) for metric in asked)
    question = Question(together, budget, depth, selection, partitions)
    if len(edges) == 1:
        return _with_centres(question, edges[0])
    programs = Programs(question, edges)
    possible = edges
    # As the bound grows, what a partition may cost falls, but where pure composition ends.
    pure = bisect.bisect_left(edges, True, key=programs.is_zcdp_at)
    if not all(_is_possible(programs, edge) for edge in {edges[max(pure - 1, 0)], edges[-1]}):
        within = functools.partial(_is_possible, programs)
        possible = tuple(itertools.takewhile(within, edges))
    if len(possible) <= 1:
        return _with_centres(question, edges[0])
    return Programs(question, possible)


def _with_centres(question: Question, reach: int) -> "Programs | Program":
    """Return the programs of one bound, where centres are chosen; else the one program."""
    if question.centres():
        return Programs(question, (reach,))
    return question.program(question.budget, reach)


def _power(number: float) -> int:
    """Return the power of two next to a number: few programs are compiled."""
    return 1 << max(0, round(math.log2(number)))


def _is_possible(programs: Programs, reach: int) -> bool:
    """Return whether every metric can be released at a bound with what two looks leave."""
    try:
        return bool(programs.costs and programs.program(reach, SECOND))
    except checks.ParameterError:
        return False
