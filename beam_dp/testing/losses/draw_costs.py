"""What each private draw costs: the exact logarithm of its chances on two databases.

`KINDS` has one entry for each method of the library that draws: what comes out of it, what must be
public of it, and what it costs at an outcome. Additive noise and noisy histograms are weighed in
fractions, several numbers of one draw by the sum of all levels, searches by their exact laws
(`search_laws`), to `ROUNDING`.
"""

import dataclasses
import functools
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from beam_dp.mechanisms.histogram_choice.cliff import CliffChoice
from beam_dp.mechanisms.histogram_choice.clip_choice import ClipChoice
from beam_dp.mechanisms.histogram_choice.noisy_histogram import HistogramNoise
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise, JointNoise
from beam_dp.mechanisms.noise.noise_on_several_sums import OneDraw
from beam_dp.mechanisms.noise.partition_selection import WeightedThreshold
from beam_dp.mechanisms.noise.sampling import Noise, Stop
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.numerics.enclosures import exp_interval
from beam_dp.mechanisms.planning.compile import SELECTION
from beam_dp.mechanisms.planning.program import Program
from beam_dp.mechanisms.search import AboveThreshold, ExponentialMechanism, NoisyBinarySearch
from beam_dp.mechanisms.search.coverage_search import CoverageSearch
from beam_dp.mechanisms.search.quantiles.middle_quantile import CentralSearch
from beam_dp.mechanisms.search.quantiles.node import Answer
from beam_dp.mechanisms.search.quantiles.tail_quantile import SparseVectorScan
from beam_dp.mechanisms.search.threshold_search import ThresholdSearch
from beam_dp.mechanisms.summaries.histograms import Summary, partitions
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from beam_dp.testing.losses import search_laws
from beam_dp.testing.losses.search_laws import Law

ROUNDING = Fraction(1, 10**9)
"""How far the logarithm of a probability in floats may be off; they are right to 1e-12."""
ORDERS = (1.1, 1.5, 2, 4, 8, 16, 64, 256, 1024)
LEAST = 1e-200
LAPLACE, GAUSS = "Laplace", "Gauss"
MARK = 1 << 200
"""Above any number: what is drawn carries a mark until it is known which number it was added to."""

NoiseLaw = tuple[str, Fraction]
"""The noise of one number: its kind, and its rate or variance."""


class Fault(Exception):
    """A release that is not private: what was noticed."""


class UnknownDraw(Fault):
    """A private draw of no method among `KINDS`: what it costs is not known."""


@dataclasses.dataclass(frozen=True)
class Cost:
    """What draws cost at their outcomes.

    Attributes:
        pure: ln P_x(outcome) / P_x'(outcome).
        rho: the largest divergence of any order, over the order.
        delta: by how much chances exceed e^epsilon times those of the other database.
        rounded: how many numbers are rounded to `ROUNDING`.
        normal: the part of rho that is of Gaussian noise, which has no `pure`.
        above, below: how much larger and smaller `pure` is at other outcomes of a search.
    """

    pure: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rounded: int = 0
    normal: Fraction = Fraction(0)
    above: Fraction = Fraction(0)
    below: Fraction = Fraction(0)

    def __add__(self, other: "Cost") -> "Cost":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Cost(*(a + b for a, b in pairs))

    def __sub__(self, other: "Cost") -> "Cost":
        return self + Cost(*(-each for each in vars(other).values()))


@dataclasses.dataclass
class Call:
    """One private draw of a run.

    Attributes:
        owner: the mechanism.
        given: the arguments of its method.
        spy: the noise that was added inside.
        numbers: what noise was added to; none of a search or a selection.
        outcome: what came out.
        marks: which of the noise was added to each number.
    """

    owner: Any
    given: dict[str, Any]
    spy: "Spy"
    numbers: list[int] = dataclasses.field(default_factory=list)
    outcome: Any = None
    marks: list[int] = dataclasses.field(default_factory=list)

    @functools.cached_property
    def law(self) -> Law:
        """The chances of all outcomes, of a search."""
        law = KIND_OF[type(self.owner)].law
        assert law is not None
        return law(self)


@dataclasses.dataclass(frozen=True)
class Kind:
    """How one method draws.

    Attributes:
        owner: the class.
        method: the method that draws; it has a parameter `noise`.
        weigh: the cost between two calls, at the outcome of the first.
        public: what must be the same in both.
        law: the chances of all outcomes, of searches: these are places, and None.
        outcome: what came out, by what the method returned; `result` is the way back.
        counts: the argument that has the numbers; where it has none nothing is drawn.
        leans: the least lean, up or down, with which its additive noise is on one side; with 1 what
            is drawn inside carries marks.
    """

    owner: type
    method: str
    weigh: Callable[[Call, Call], Cost]
    public: Callable[[Call], Any]
    law: Callable[[Call], Law] | None = None
    outcome: Callable[[Call, Any], Any] = lambda _, result: result
    result: Callable[[Call, Any], Any] = lambda _, outcome: outcome
    counts: str = ""
    leans: int = 3


@dataclasses.dataclass(frozen=True, eq=False)
class Seeded(Noise):
    """The samplers of the library with a seeded source."""

    source: np.random.Generator

    def words(self, size: int) -> Any:
        """Return words of the source."""
        return self.source.integers(0, 2**64, size, np.uint64)


class AddedNoise(NamedTuple):
    """The noise of one number: of all numbers that share a draw, or of one alone.

    Attributes:
        law: how it was drawn.
        draw: which draw of the call.
        value: what came out.
    """

    law: NoiseLaw | OneDraw
    draw: int
    value: int


@dataclasses.dataclass(frozen=True, eq=False)
class Spy(Seeded):
    """Seeded samplers that note what noise was added, and put it on one side if they lean."""

    lean: int = 0
    marked: bool = False
    laws: list[NoiseLaw] = dataclasses.field(default_factory=list)
    drawn: list[AddedNoise] = dataclasses.field(default_factory=list)

    def discrete_laplace(self, rate: Any, size: int) -> Any:
        """Return noise, and note its rate."""
        drawn = Seeded(self.source).discrete_laplace(rate, size)
        return self._noted((LAPLACE, Fraction(rate)), drawn)

    def discrete_gaussian(self, variance: Any, size: int) -> Any:
        """Return noise, and note its variance."""
        drawn = Seeded(self.source).discrete_gaussian(variance, size)
        return self._noted((GAUSS, Fraction(variance)), drawn)

    def _noted(self, law: NoiseLaw, drawn: Any) -> Any:
        self.laws.extend([law] * len(drawn))
        return self._leaning(drawn)

    def _leaning(self, drawn: Any) -> Any:
        return self.lean * abs(drawn) if self.lean else drawn

    def marks(self, law: NoiseLaw | OneDraw, columns: Sequence[Any]) -> list[Any]:
        """Return marks for what was drawn: a column for each number, a row for each draw."""
        first, width = len(self.drawn), len(columns)
        for row in zip(*(whole(self._leaning(column)) for column in columns), strict=True):
            draw = len(self.drawn)
            self.drawn.extend(AddedNoise(law, draw, value) for value in row)
        marks = MARK + np.arange(first, len(self.drawn)).astype(object)
        return [marks[place::width] for place in range(width)]


# ---------------------------------------------------------------- additive noise


def weigh_numbers(
    laws: Sequence[NoiseLaw],
    outcomes: Sequence[int],
    ones: Sequence[int],
    others: Sequence[int],
) -> Cost:
    """Return what numbers with noise cost, `ones` on x and `others` on x' without it."""
    cost = Cost()
    for (name, parameter), outcome, one, other in zip(laws, outcomes, ones, others, strict=True):
        shift = abs(one - other)
        if name == GAUSS:
            cost += _normal(shift**2 / (2 * parameter))
        elif shift:
            pure = parameter * (abs(outcome - other) - abs(outcome - one))
            cost += Cost(pure, (parameter * shift) ** 2 / 2)
    return cost


def _normal(rho: Fraction) -> Cost:
    return Cost(rho=rho, normal=rho)


def whole(numbers: Any) -> list[int]:
    """Return an array of whole numbers as Python integers."""
    return [int(number) for number in np.ravel(numbers).tolist()]


def hull_levels(hull: Any, noise: list[int]) -> tuple[int, int]:
    """Return t and k of P(noise): q^t (k + 1 / (1 - q)) up to a factor, q = e^-rate.

    P(z) is the sum of q^(u + v) over all levels (u, v) whose box holds z
    (`noise.noise_on_several_sums`). As floor(u C / M) >= n iff u >= ceil(n M / C), that is
    u >= u0, v >= v0 and u + v >= w0: u0 is the largest ceil(-z_j M / C_j) of one-signed numbers,
    v0 the largest ceil(z_j M / C_j), and w0 that of |z_j| of signed ones; each at least 0. Let t = max(u0 + v0, w0) and k = t - u0 - v0.
    For r >= t there are r - u0 - v0 + 1 levels with u + v = r, so the sum is that of
    (k + 1 + i) q^(t + i) over i >= 0: q^t ((k + 1) / (1 - q) + q / (1 - q)^2), which is
    q^t (k + 1 / (1 - q)) / (1 - q). Without one-signed numbers there is one level r >= w0 and the
    sum is q^t / (1 - q): t alone counts, and k is 0.
    """
    down = up = both = 0
    for each, (clip, signed) in zip(noise, hull.sides, strict=True):
        level = -(-abs(each) * hull.levels // clip)
        if signed:
            both = max(both, level)
        elif each < 0:
            down = max(down, level)
        else:
            up = max(up, level)
    least = max(down + up, both)
    return least, least - down - up if hull.split else 0


def weigh_one_draw(
    draw: OneDraw, outcomes: Sequence[int], ones: Sequence[int], others: Sequence[int]
) -> Cost:
    """Return what several numbers cost that share one draw."""
    moved = [one - other for one, other in zip(ones, others, strict=True)]
    if not any(moved):
        return Cost()
    law: Any = draw.law
    if draw.budget.is_zcdp:
        return _normal(divergence(law, moved))
    (t, k), (u, m) = (
        hull_levels(law, [a - b for a, b in zip(outcomes, numbers, strict=True)])
        for numbers in (ones, others)
    )
    pure, rounded = law.rate * (u - t), int(k != m)
    if rounded:
        step = -1 / math.expm1(-law.rate)
        pure += Fraction(math.log((k + step) / (m + step)))
    return Cost(pure, draw.budget.amount**2 / 2, rounded=rounded)


def divergence(law: Any, moved: list[int]) -> Fraction:
    """Return what a move costs by correlated Gaussians: the least f(s) there."""
    pairs = list(zip(moved, law.sides, strict=True))
    parts = [Fraction(move, clip) for move, (clip, signed) in pairs if law._is_together(signed)]
    alone = [Fraction(move, clip) for move, (clip, signed) in pairs if not law._is_together(signed)]
    cost = sum((part**2 for part in alone), Fraction(0)) / (2 * law.apart) if alone else Fraction(0)
    if not parts:
        return cost
    a, b = law.variances
    best = math.floor(sum(parts) * b / (a + len(parts) * b) * law.parts)
    shifts = [Fraction(best + step, law.parts) for step in (0, 1)]
    found = (s**2 / (2 * b) + sum((part - s) ** 2 for part in parts) / (2 * a) for s in shifts)
    return Fraction(cost + min(found))


def outcome_of(call: Call, result: Any) -> list[int]:
    """Return the numbers with their noise, and note which noise each of them has."""
    marks = zip(whole(result), call.numbers, strict=True)
    found = [mark - number - MARK for mark, number in marks]
    if sorted(found) != list(range(len(call.spy.drawn))):
        raise Fault("the sum is not that of number and noise")
    call.marks = found
    values = (call.spy.drawn[mark].value for mark in found)
    return [number + value for number, value in zip(call.numbers, values, strict=True)]


def sums_of(_: Call, outcome: list[int]) -> np.ndarray:
    """Return numbers with their noise as the library has them."""
    return np.asarray(integers.narrow(np.array(outcome, object)))


def joint_noise_of(call: Call, outcome: list[int]) -> list[np.ndarray]:
    """Return the same of several numbers, each of all partitions."""
    parts = np.split(np.array(outcome, object), len(call.given["clips"]))
    return [np.asarray(integers.narrow(part)) for part in parts]


def drawn_by(call: Call, sizes: str) -> Any:
    """Return how noise was drawn: what is public of it."""
    laws = [(each.law, each.draw) for each in call.spy.drawn]
    return laws, call.marks, whole(call.given[sizes])


def weigh_sums(x: Call, y: Call) -> Cost:
    """Return what numbers with noise cost, of which some share a draw."""
    draws = defaultdict(list)
    numbers = zip(x.marks, x.outcome, x.numbers, y.numbers, strict=True)
    for mark, *number in sorted(numbers):
        draws[x.spy.drawn[mark].draw].append(number)
    cost = Cost()
    for draw, each in draws.items():
        law, columns = x.spy.drawn[draw].law, zip(*each, strict=True)
        cost += (
            weigh_one_draw(law, *columns)
            if isinstance(law, OneDraw)
            else weigh_numbers([law], *columns)
        )
    return cost


def weigh_histogram(x: Call, y: Call) -> Cost:
    """Return what a noisy histogram costs."""
    return weigh_numbers(x.spy.laws, whole(x.outcome), x.numbers, y.numbers)


def weigh_two_histograms(x: Call, y: Call) -> Cost:
    """Return what two histograms cost: the second alone, of which the first is made; or both apart."""
    first, second, octaves, cells = x.owner._split(x.outcome)
    people = [call.given["people"] for call in (x, y)]
    counts = [whole(np.add.reduceat(each, x.owner.starts, axis=-1)) for each in people]

    def blurred(choice: ClipChoice) -> list[NoiseLaw]:
        return [(LAPLACE, choice.cost.amount)] * first.size

    if octaves is not None:
        laws = x.spy.laws if octaves.cost == x.owner.cost else blurred(octaves)
        return weigh_numbers(laws, whole(second), *counts)
    return weigh_numbers(blurred(x.owner._first), whole(first), *counts) + weigh_numbers(
        x.spy.laws[first.size :], whole(second), *(whole(each[..., cells]) for each in people)
    )


# ---------------------------------------------------------------- selection of partitions


def people_of(call: Call) -> dict[Hashable, tuple[int, int]]:
    """Return the people of each partition that anybody is in, and the sum of their weights."""
    view = call.given["view"]
    names = map(tuple, partitions(view._summary).T.tolist())
    index = call.owner.request.caps.index(call.owner.cap)
    people, weights = (column[:, 0].tolist() for column in view.histogram(index, 1))
    return dict(zip(names, zip(people, weights, strict=True), strict=True))


NOBODY = {"view": PartitionView.of_all(Summary.nothing())}


def kept_names(call: Call, kept: np.ndarray) -> frozenset[Hashable]:
    """Return the names of the partitions that were selected."""
    names = list(people_of(call))
    return frozenset(names[index] for index in kept.tolist())


def kept_indexes(call: Call, names: frozenset[Hashable]) -> np.ndarray:
    """Return the places of the partitions of these names."""
    return np.array([i for i, name in enumerate(people_of(call)) if name in names], np.int64)


def weigh_selection(x: Call, y: Call) -> Cost:
    """Return what the partitions cost that are named or not; the part of delta is kept apart."""
    selection, ones, others = y.owner.selection, people_of(x), people_of(y)
    pairs = {name: (ones.get(name, (0, 0)), others.get(name, (0, 0))) for name in ones | others}
    moved = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    if isinstance(selection, WeightedThreshold):
        return weigh_weights(selection, list(moved.values()))
    costs = [
        _weigh_decision(selection, name in x.outcome, one[0], other[0])
        for name, (one, other) in moved.items()
        if one[0] != other[0]
    ]
    return sum(costs, Cost())


def weigh_weights(
    selection: WeightedThreshold, moved: list[tuple[tuple[int, int], tuple[int, int]]]
) -> Cost:
    """Return what weighted selection costs, whatever its outcome.

    Sums of partitions that are open in both databases move in L2; of the others the chance that one
    of them is kept counts, by the tail of the normal distribution, which is above that of the
    noise.
    """
    cost, deviation = Cost(), math.sqrt(selection.variance)
    for (people, weights), (others, sums) in moved:
        if min(people, others) >= selection.pre_threshold:
            cost += weigh_numbers([(GAUSS, selection.variance)], [0], [weights], [sums])
        elif max(people, others) >= selection.pre_threshold:
            missing = selection.threshold - max(weights, sums)
            cost += Cost(delta=Fraction(math.erfc(missing / deviation / math.sqrt(2)) / 2))
    return cost


def selected_once(costs: Mapping[str, Cost], program: Program) -> Mapping[str, Cost]:
    """Return the costs with that of weighted selection in all buckets together.

    Where epsilon is spent, it may cost its share if it costs no more than its rho and delta.
    """
    selection = program.selection
    if not isinstance(selection, WeightedThreshold):
        return costs
    names = [name for name in costs if name.startswith("selected-")]
    whole = sum((costs[name] for name in names), Cost())
    if whole.rho > selection.rho or whole.delta > selection.delta:
        raise Fault("the selection of partitions costs more than its share")
    if not program.composed.is_zcdp:
        [share] = [cost for label, cost, _ in program.entries if label == SELECTION]
        whole = Cost(share.amount, share.amount**2 / 2, share.delta)
    return {name: cost for name, cost in costs.items() if name not in names} | {"all": whole}


def _weigh_decision(selection: Any, kept: bool, one: int, other: int) -> Cost:
    keeping = [selection.probability(number) for number in (one, other)]
    p, q = keeping if kept else (1 - chance for chance in keeping)
    if p == q:
        return Cost()
    least = exp_interval(selection.epsilon, 256)[0]
    beyond = max(Fraction(0), p - least * q, q - least * p)
    most = float(selection.epsilon)
    pure = most if not q else -most if not p else math.log(p / q)
    capped = Fraction(max(-most, min(most, pure)))
    return Cost(capped, selection.epsilon**2 / 2, beyond, 1)


# ---------------------------------------------------------------- searches


def weigh_search(x: Call, y: Call) -> Cost:
    """Return what a choice costs at its outcome, and by all cells of both laws under zCDP."""
    own = [] if x.outcome is None else [x.outcome, x.outcome + 1]
    begins = sorted({*x.law.starts, *y.law.starts, *own} - {x.law.stop})
    ones, others = (np.array(call.law.masses(begins)) for call in (x, y))
    possible = np.maximum(ones, others) > LEAST
    if (np.minimum(ones, others)[possible] <= 0).any():
        raise Fault(f"{type(x.owner).__name__} can end elsewhere")
    at = -1 if x.outcome is None else begins.index(x.outcome)
    pure = Fraction(math.log(ones[at]) - math.log(others[at]))
    pairs = np.log(ones[possible]), np.log(others[possible])
    ratios = pairs[0] - pairs[1]
    above, below = (Fraction(float(each)) for each in (ratios.max(), ratios.min()))
    rho = max(
        np.logaddexp.reduce(order * p + (1 - order) * q) / (order - 1) / order
        for p, q in (pairs, pairs[::-1])
        for order in ORDERS
    )
    beside = {"above": above - pure, "below": pure - below}
    return Cost(pure, Fraction(rho), rounded=1, **beside)


def _of_thresholds(call: Call) -> Law:
    given = (call.given[name] for name in ("extension", "top", "usual"))
    return search_laws.law_of_thresholds(call.owner, *given)


def _place(call: Call, stop: Stop | None) -> int | None:
    return stop and int(call.owner.lengths[: stop.run].sum()) + stop.passed


def _stop(call: Call, place: int | None) -> Stop | None:
    if place is None:
        return None
    ends = np.cumsum(call.owner.lengths)
    run = int(np.searchsorted(ends, place, side="right"))
    return Stop(run, place - int(ends[run] - call.owner.lengths[run]))


def _searched(owner: type) -> Kind:
    return Kind(
        owner,
        "choose",
        weigh_search,
        lambda call: (call.owner, call.given["candidates"]),
        lambda call: search_laws.law_of(
            call.owner, call.given["profile"], call.given["candidates"]
        ),
        lambda call, value: call.given["candidates"].index(value),
        lambda call, index: call.given["candidates"][index],
    )


KINDS = [
    Kind(
        AdditiveNoise,
        "add",
        weigh_sums,
        lambda call: drawn_by(call, "sensitivity"),
        outcome=outcome_of,
        result=sums_of,
        counts="numbers",
        leans=1,
    ),
    Kind(
        JointNoise,
        "add",
        weigh_sums,
        lambda call: (drawn_by(call, "clips"), call.owner),
        outcome=outcome_of,
        result=joint_noise_of,
        counts="totals",
        leans=1,
    ),
    Kind(
        HistogramNoise,
        "add",
        weigh_histogram,
        lambda call: (call.owner, call.spy.laws, call.given["people"].shape),
        counts="people",
        leans=2,
    ),
    Kind(
        CliffChoice,
        "draw",
        weigh_two_histograms,
        lambda call: (call.owner, call.given["people"].shape),
        counts="people",
        leans=2,
    ),
    Kind(
        Program,
        "select",
        weigh_selection,
        lambda call: call.owner.selection,
        outcome=kept_names,
        result=kept_indexes,
    ),
    *map(_searched, (AboveThreshold, ExponentialMechanism, NoisyBinarySearch)),
    Kind(
        ThresholdSearch,
        "choose",
        weigh_search,
        lambda call: (call.owner, call.given["top"], call.given["usual"]),
        _of_thresholds,
    ),
    Kind(
        CoverageSearch,
        "choose",
        weigh_search,
        lambda call: (
            call.owner,
            *(call.given[name] for name in ("root", "cost_of_noise", "octaves")),
        ),
        lambda call: search_laws.law_of_octaves(
            call.owner,
            *(call.given[name] for name in ("covered", "root", "cost_of_noise", "octaves")),
        ),
    ),
    Kind(
        CentralSearch,
        "choose_at",
        weigh_search,
        lambda call: (call.owner, call.given["candidates"], call.given["node"].first),
        lambda call: search_laws.law_of_node(
            call.owner, call.given["node"], call.given["candidates"]
        ),
        lambda _, answer: answer.candidate,
        lambda call, index: Answer() if index is None else Answer(index, call.owner.usual_error),
    ),
    Kind(
        SparseVectorScan,
        "stop",
        weigh_search,
        lambda call: (call.owner.rate, int(call.owner.lengths.sum())),
        lambda call: search_laws.law_of_scan(call.owner),
        _place,
        _stop,
    ),
]
KIND_OF = {kind.owner: kind for kind in KINDS}
