"""What is chosen privately before numbers are summarised: bounds on partitions, and centres.

All are chosen from the lines of whole people. Each person has one vote in every choice: for one
step of the ladder of partitions (`histogram_choice.partition_bound`), for one candidate of each
centre, and for how many of their partitions count where these are selected (`CapChoice`).

*A centre* (`metrics.mean`) is the median of people's own means of a column, over all their rows in
all partitions that the ladder leaves. For means over people it is the median of people's mean
totals of a partition. Each person has one number, so ranks are searched, everybody counts once
(`CentralSearch`), and it is paid once, however many partitions there are. It may be a bad guess:
what follows is private for any centre. Where people are too few, it is the middle of the ends, or
0 where none are given.
"""

import dataclasses
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget, cost_of_all
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.ordering import changes
from beam_dp.mechanisms.bounding.table import Field, Table, concatenate
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.candidates.decimal_grid import finer, values_between
from beam_dp.mechanisms.histogram_choice import partition_bound
from beam_dp.mechanisms.histogram_choice.clip_choice import ClipChoice
from beam_dp.mechanisms.metrics.base import CentreRequest, units_between
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise
from beam_dp.mechanisms.noise.partition_selection import MOST, CapChoice
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.planning.compile import program_at
from beam_dp.mechanisms.planning.program import Adaptive, Program
from beam_dp.mechanisms.planning.request import Request
from beam_dp.mechanisms.search.quantiles.middle_quantile import CentralSearch
from beam_dp.mechanisms.search.quantiles.node import Node
from beam_dp.mechanisms.summaries import histograms
from beam_dp.mechanisms.summaries.histograms import PEOPLE, Measure, Summary


@dataclasses.dataclass(frozen=True)
class Centre:
    """How the centre of a column is chosen.

    Attributes:
        request: whose centre it is.
        total: the index of the field that sums a person's values.
        count: the index of the field that counts them.
        budget: what the choice costs.
    """

    request: CentreRequest
    total: int
    count: int
    budget: Budget

    @property
    def candidates(self) -> Candidates:
        """The public centres: decimals of up to eight digits, between the ends that hold for them."""
        return finer(values_between(self._unit, *self.request.span))

    @property
    def _unit(self) -> Fraction:
        return Fraction(self.request.column.detail)

    def votes(self, table: Table, fields: Sequence[np.ndarray]) -> np.ndarray:
        """Return the index of the candidate of each person who has a value.

        Args:
            table: the lines of whole people; those of a person, and of a pair, stand together.
            fields: the fields of each line.
        """
        if not len(table):
            return np.zeros(0, np.int64)
        new_person = changes(table.person)
        starts = np.flatnonzero(new_person)
        totals = integers.segment_sums(fields[self.total], starts)
        counts = integers.segment_sums(fields[self.count], starts).astype(np.float64)
        present = counts > 0
        values = integers.scale(totals[present], self._unit).astype(np.float64)
        if self.request.by_person:
            pairs = np.flatnonzero(new_person | changes(table.partition))
            valued = np.add.reduceat(fields[self.count], pairs) > 0
            counts = np.add.reduceat(valued.astype(np.float64), np.flatnonzero(new_person[pairs]))
        each = values / counts[present]
        return np.minimum(self.candidates.indexes(each), self.candidates.size - 1)

    def choose(self, buckets: np.ndarray, people: np.ndarray, noise: Noise) -> int | None:
        """Draw the centre, in units; where too few people are, the middle of the ends, or None.

        Args:
            buckets: the candidates that somebody votes for.
            people: how many people vote for each.
            noise: the randomness.
        """
        node = Node.of(buckets, people, self.candidates.size)
        answer = CentralSearch(self.budget, Fraction(1, 2), 1).choose_at(
            node, self.candidates, noise
        )
        if answer.candidate is None:
            low, high = self.request.span
            return None if low is None or high is None else round((low + high) / 2 / self._unit)
        return round(Fraction(self.candidates[answer.candidate]) / self._unit)


@dataclasses.dataclass(frozen=True)
class FirstVotes:
    """The votes of people in the choices that come first; private data, until they are drawn.

    Attributes:
        edges: the steps of the ladder; of one step there is nothing to choose.
        centres: how the centres are chosen.
    """

    edges: tuple[int, ...]
    centres: tuple[Centre, ...]

    def of(self, table: Table, bounder: Bounder) -> Summary:
        """Return the votes of whole people: for the ladder, each centre, and the cap."""
        found = partition_bound.partitions_of(table)
        parts = [np.searchsorted(self.edges, found)]
        fields = bounder.reduced_fields(table) if self.centres else []
        parts += [centre.votes(table, fields) for centre in self.centres]
        parts += [np.minimum(found, MOST)]
        lines = [np.unique(part, return_counts=True) for part in parts]
        measures = np.repeat(np.arange(len(lines)), [len(buckets) for buckets, _ in lines])
        buckets, people = (np.concatenate(column) for column in zip(*lines, strict=True))
        nothing = np.zeros(len(buckets), np.int64)
        return Summary(np.zeros((1, len(buckets)), np.uint64), measures, buckets, people, nothing)

    def merged(self, votes: Sequence[Summary]) -> Summary:
        """Return the votes of several groups of people as those of one."""
        measures = [Measure(PEOPLE)] * (2 + len(self.centres))
        return histograms.reduce(concatenate([Summary.nothing(), *votes]), measures)

    def counted(self, votes: Summary) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return for each measure the different votes, and how many people have each."""
        wanted = [votes.measure == measure for measure in range(2 + len(self.centres))]
        return [(votes.bucket[lines], votes.people[lines]) for lines in wanted]


def votes_of(program: Program) -> FirstVotes:
    """Return what is counted for the choices."""
    centres, find = [], program.fields.index
    for request, cost in program.request.centre_costs.items():
        ends = units_between(request.ends, Fraction(request.column.detail))
        column = program.columns.index(request.column)
        total, count = find(Field(column, "sum", *ends)), find(Field(column, "count"))
        centres.append(Centre(request, total, count, cost))
    return FirstVotes(program.request.ladder, tuple(centres))


def choose(program: Program, summary: Summary, noise: Noise) -> Adaptive:
    """Draw the centres, the cap of the selection, and the histogram that chooses the bound.

    Args:
        program: the program for which nothing was chosen yet.
        summary: the votes of everybody.
        noise: the randomness.
    """
    votes, request = votes_of(program), program.request
    (steps, people), *of_centres, of_caps = votes.counted(summary)
    pairs = zip(votes.centres, of_centres, strict=True)
    centres = tuple(centre.choose(*each, noise) for centre, each in pairs)
    cap = None
    if request.chooses_cap:
        programs = (
            program_at(request, request.ladder[0], Adaptive(cap=each)) for each in request.caps
        )
        selections = [each.selection for each in programs if each.selection is not None]
        cap = CapChoice(request.cap_cost, *selections).choose(*of_caps, noise)
    if not request.searches:
        return Adaptive(None, centres, cap=cap)
    choice = ClipChoice(request.search_cost, request.ladder)
    standing = np.bincount(steps, people, choice.buckets).astype(np.int64)
    noisy = choice.draw(standing[None, None], noise)
    noises = [noise_at(request, bound) for bound in request.ladder]
    bound = partition_bound.choose(choice, noisy, noises, request.partitions)
    return Adaptive(bound, centres, cap=cap)


def noise_at(request: Request, max_partitions: int) -> float:
    """Return the mean absolute noise per partition and unit at a bound on partitions.

    It is that of the costs per partition; what is spent once needs no bound.
    """
    each = [step.costs_per_partition for step in program_at(request, max_partitions).steps]
    paid = [AdditiveNoise(cost_of_all(costs)).mean_error for costs in each if costs]
    return sum(paid) / len(paid)
