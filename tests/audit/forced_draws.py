"""Forced draws: the exact privacy loss of one whole release, summed over its private draws.

`losses_between` runs a release on a database x with a seeded source of randomness, and notes every
private draw: what it was computed from, and what came out. Then it runs it on x' = x and one person
more, with the same outcomes forced. What is released must be equal, and the loss is the sum of
ln P_x(outcome) / P_x'(outcome) over the draws, each given the outcomes before it: of additive noise
and noisy histograms in fractions, of several numbers at once from the sum of all levels, and of
searches from their exact distributions, to `ROUNDING`.
Epsilon-DP says that it is from -epsilon to epsilon for all outcomes that are possible, likely or
not: so a run may *lean* to one side, which finds more than chance does. Under zCDP the divergences
of the draws, each over its order, are added up at these outcomes, to at most rho. Where epsilon is
spent and some noise is Gaussian, the divergences of that are kept apart.

What draws and how it is weighed is in `KINDS`, one entry for each method of the library that draws.
A method that reads entropy and has no entry fails the run. That searches and selections draw what
their distributions say is shown elsewhere (`tests.mechanisms.search`, `tests.mechanisms.noise`).
"""

import contextlib
import dataclasses
import functools
import inspect
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from beam_dp.mechanisms.histogram_choice.cliff import CliffChoice
from beam_dp.mechanisms.histogram_choice.noisy_histogram import HistogramNoise
from beam_dp.mechanisms.metrics.additive.joint_noise import JointNoise
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise
from beam_dp.mechanisms.noise.noise_on_several_sums import OneDraw
from beam_dp.mechanisms.noise.partition_selection import WeightedThreshold
from beam_dp.mechanisms.noise.sampling import Noise, Stop
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.numerics.enclosures import exp_interval
from beam_dp.mechanisms.planning.compile import SELECTION
from beam_dp.mechanisms.planning.program import Program
from beam_dp.mechanisms.search import AboveThreshold, ExponentialMechanism, NoisyBinarySearch
from beam_dp.mechanisms.search.quantiles.middle_quantile import CentralSearch
from beam_dp.mechanisms.search.quantiles.node import Answer
from beam_dp.mechanisms.search.quantiles.tail_quantile import SparseVectorScan
from beam_dp.mechanisms.search.threshold_search import ThresholdSearch
from beam_dp.mechanisms.summaries.histograms import Summary, partitions
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from beam_dp.transforms.columns import layout
from beam_dp.transforms.stages.draws_folder import Barriers
from tests import laws

ROUNDING = Fraction(1, 10**9)
"""How far the logarithm of a probability in floats may be off; they are right to 1e-12."""
ORDERS = (1.1, 1.5, 2, 4, 8, 16, 64, 256, 1024)
POSSIBLE, LEAST = 1e-9, 1e-200
LAPLACE, GAUSS = "Laplace", "Gauss"
MARK = 1 << 200
"""Above any number: what is drawn carries a mark until it is known which number it was added to."""

RELEASE = Program.release

Law = tuple[str, Fraction]
"""The noise of one number: its kind, and its rate or variance."""


class Fault(Exception):
    """A release that is not private: what was noticed."""


@dataclasses.dataclass(frozen=True)
class Loss:
    """What draws cost at their outcomes.

    Attributes:
        pure: ln P_x(outcome) / P_x'(outcome).
        rho: the largest divergence of any order, over the order.
        delta: by how much chances exceed e^epsilon times those of the other database.
        rounded: how many numbers are rounded to `ROUNDING`.
        normal: the part of rho that is of Gaussian noise, which has no `pure`.
    """

    pure: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rounded: int = 0
    normal: Fraction = Fraction(0)

    def __add__(self, other: "Loss") -> "Loss":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Loss(*(a + b for a, b in pairs))


@dataclasses.dataclass
class Call:
    """One private draw of a run.

    Attributes:
        owner: the mechanism.
        given: the arguments of its method.
        spy: the noise that was added inside.
        numbers: what additive noise was added to.
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
    def chances(self) -> dict[Hashable, float]:
        """All outcomes with their exact chances, of a search."""
        return dict(KIND_OF[type(self.owner)].chances(self))


@dataclasses.dataclass(frozen=True)
class Kind:
    """How one method draws.

    Attributes:
        owner: the class.
        method: the method that draws; it has a parameter `noise`.
        weigh: the loss between two calls, at the outcome of the first.
        public: what must be the same in both.
        chances: all outcomes with their exact chances, for mechanisms that can say it.
        outcome: what came out, by what the method returned; `result` is the way back.
        counts: the argument that has the numbers; where it has none nothing is drawn.
        leans: the least lean, up or down, with which its additive noise is on one side.
        marked: whether what is drawn inside carries marks.
    """

    owner: type
    method: str
    weigh: Callable[[Call, Call], Loss]
    public: Callable[[Call], Any]
    chances: Callable[[Call], list[tuple[Hashable, float]]] | None = None
    outcome: Callable[[Call, Any], Any] = lambda _, result: result
    result: Callable[[Call, Any], Any] = lambda _, outcome: outcome
    counts: str = ""
    leans: int = 3
    marked: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class Seeded(Noise):
    """The samplers of the library with a seeded source."""

    source: np.random.Generator

    def words(self, size):
        return self.source.integers(0, 2**64, size, np.uint64)


class Drawn(NamedTuple):
    """The noise of one number: of all numbers that share a draw, or of one alone.

    Attributes:
        law: how it was drawn.
        draw: which draw of the call.
        value: what came out.
    """

    law: Law | OneDraw
    draw: int
    value: int


@dataclasses.dataclass(frozen=True, eq=False)
class Spy(Seeded):
    """Seeded samplers that note what noise was added, and put it on one side if they lean."""

    lean: int = 0
    marked: bool = False
    laws: list[Law] = dataclasses.field(default_factory=list)
    drawn: list[Drawn] = dataclasses.field(default_factory=list)

    def discrete_laplace(self, rate, size):
        drawn = Seeded(self.source).discrete_laplace(rate, size)
        return self._noted((LAPLACE, Fraction(rate)), drawn)

    def discrete_gaussian(self, variance, size):
        drawn = Seeded(self.source).discrete_gaussian(variance, size)
        return self._noted((GAUSS, Fraction(variance)), drawn)

    def _noted(self, law, drawn):
        self.laws.extend([law] * len(drawn))
        return self._leaning(drawn)

    def _leaning(self, drawn):
        return self.lean * abs(drawn) if self.lean else drawn

    def marks(self, law: Law | OneDraw, columns: list[np.ndarray]) -> list[np.ndarray]:
        """Return marks for what was drawn: a column for each number, a row for each draw."""
        first, width = len(self.drawn), len(columns)
        for row in zip(*(whole(self._leaning(column)) for column in columns), strict=True):
            draw = len(self.drawn)
            self.drawn.extend(Drawn(law, draw, value) for value in row)
        marks = MARK + np.arange(first, len(self.drawn)).astype(object)
        return [marks[place::width] for place in range(width)]


# ---------------------------------------------------------------- additive noise


def weigh_numbers(laws, outcomes, ones, others) -> Loss:
    """Return what numbers with noise cost, `ones` on x and `others` on x' without it."""
    loss = Loss()
    for (name, parameter), outcome, one, other in zip(laws, outcomes, ones, others, strict=True):
        shift = abs(one - other)
        if name == GAUSS:
            loss += _normal(shift**2 / (2 * parameter))
        elif shift:
            pure = parameter * (abs(outcome - other) - abs(outcome - one))
            loss += Loss(pure, (parameter * shift) ** 2 / 2)
    return loss


def _normal(rho: Fraction) -> Loss:
    return Loss(rho=rho, normal=rho)


def whole(numbers: Any) -> list[int]:
    """Return an array of whole numbers as Python integers."""
    return [int(number) for number in np.ravel(numbers).tolist()]


def hull_levels(hull: Any, noise: list[int]) -> tuple[int, int]:
    """Return t and k of P(noise): q^t (k + 1 / (1 - q)) up to a factor, q = e^-rate.

    P(z) is the sum of q^(u + v) over all levels (u, v) whose box holds z (`noise.noise_on_several_sums`). As
    floor(u C / M) >= n iff u >= ceil(n M / C), that is u >= u0, v >= v0 and u + v >= w0: u0 is
    the largest ceil(-z_j M / C_j) of one-signed numbers, v0 the largest ceil(z_j M / C_j), and w0
    that of |z_j| of signed ones; each at least 0. Let t = max(u0 + v0, w0) and k = t - u0 - v0.
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


def weigh_one_draw(draw: OneDraw, outcomes, ones, others) -> Loss:
    """Return what several numbers cost that share one draw."""
    moved = [one - other for one, other in zip(ones, others, strict=True)]
    if not any(moved):
        return Loss()
    law = draw._law
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
    return Loss(pure, draw.budget.amount**2 / 2, rounded=rounded)


def divergence(law: Any, moved: list[int]) -> Fraction:
    """Return what a move costs by correlated Gaussians: the least f(s) of `noise.noise_on_several_sums`."""
    pairs = list(zip(moved, law.sides, strict=True))
    parts = [Fraction(move, clip) for move, (clip, signed) in pairs if law._is_together(signed)]
    alone = [Fraction(move, clip) for move, (clip, signed) in pairs if not law._is_together(signed)]
    cost = sum((part**2 for part in alone), Fraction(0)) / (2 * law.apart) if alone else Fraction(0)
    if not parts:
        return cost
    a, b = law.variances
    best = math.floor(sum(parts) * b / (a + len(parts) * b) * law.parts)
    shifts = [Fraction(best + step, law.parts) for step in (0, 1)]
    return cost + min(
        s**2 / (2 * b) + sum((part - s) ** 2 for part in parts) / (2 * a) for s in shifts
    )


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
    return np.asarray(integers.narrow(np.array(outcome, object)))


def joint_noise_of(call: Call, outcome: list[int]) -> list[np.ndarray]:
    parts = np.split(np.array(outcome, object), len(call.given["clips"]))
    return [np.asarray(integers.narrow(part)) for part in parts]


def drawn_by(call: Call, sizes: str) -> Any:
    """Return how noise was drawn: what is public of it."""
    laws = [(each.law, each.draw) for each in call.spy.drawn]
    return laws, call.marks, whole(call.given[sizes])


def weigh_sums(x: Call, y: Call) -> Loss:
    """Return what numbers with noise cost, of which some share a draw."""
    draws = defaultdict(list)
    numbers = zip(x.marks, x.outcome, x.numbers, y.numbers, strict=True)
    for mark, *number in sorted(numbers):
        draws[x.spy.drawn[mark].draw].append(number)
    loss = Loss()
    for draw, each in draws.items():
        law, columns = x.spy.drawn[draw].law, zip(*each, strict=True)
        loss += (
            weigh_one_draw(law, *columns)
            if isinstance(law, OneDraw)
            else weigh_numbers([law], *columns)
        )
    return loss


def weigh_histogram(x: Call, y: Call) -> Loss:
    """Return what a noisy histogram costs."""
    ones, others = (whole(call.given["people"]) for call in (x, y))
    return weigh_numbers(x.spy.laws, whole(x.outcome), ones, others)


def weigh_looks(x: Call, y: Call) -> Loss:
    """Return what two looks cost: the second alone, of which the first is made; or both apart."""
    first, second, cells = x.owner._split(x.outcome)
    people = [call.given["people"] for call in (x, y)]
    octaves = [whole(np.add.reduceat(each, x.owner._starts, axis=-1)) for each in people]
    if cells is None:
        return weigh_numbers(x.spy.laws, whole(second), *octaves)
    blurred = [(LAPLACE, x.owner._first.cost.amount)] * first.size
    laws = x.spy.laws[first.size :]
    return weigh_numbers(blurred, whole(first), *octaves) + weigh_numbers(
        laws, whole(second), *(whole(each[..., cells]) for each in people)
    )


# ---------------------------------------------------------------- selection of partitions


def people_of(call: Call) -> dict[Hashable, tuple[int, int]]:
    """Return the people of each partition that anybody is in, and the sum of their weights."""
    view = call.given["view"]
    names = map(tuple, partitions(view._summary).T.tolist())
    index = call.owner.request.caps.index(call.owner.counted)
    people, weights = (column[:, 0].tolist() for column in view.histogram(index, 1))
    return dict(zip(names, zip(people, weights, strict=True), strict=True))


NOBODY = {"view": PartitionView.of_all(Summary.nothing())}


def kept_names(call: Call, kept: np.ndarray) -> frozenset:
    names = list(people_of(call))
    return frozenset(names[index] for index in kept.tolist())


def kept_indexes(call: Call, names: frozenset) -> np.ndarray:
    return np.array([i for i, name in enumerate(people_of(call)) if name in names], np.int64)


def weigh_selection(x: Call, y: Call) -> Loss:
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
    return sum(costs, Loss())


def weigh_weights(
    selection: WeightedThreshold, moved: list[tuple[tuple[int, int], tuple[int, int]]]
) -> Loss:
    """Return what weighted selection costs, whatever its outcome.

    Sums of partitions that are open in both databases move in L2; of the others the chance that one
    of them is kept counts, by the tail of the normal distribution, which is above that of the
    noise.
    """
    loss, deviation = Loss(), math.sqrt(selection.variance)
    for (people, weights), (others, sums) in moved:
        if min(people, others) >= selection.pre_threshold:
            loss += weigh_numbers([(GAUSS, selection.variance)], [0], [weights], [sums])
        elif max(people, others) >= selection.pre_threshold:
            missing = selection.threshold - max(weights, sums)
            loss += Loss(delta=Fraction(math.erfc(missing / deviation / math.sqrt(2)) / 2))
    return loss


def selected_once(losses: dict[str, Loss], program: Program) -> dict[str, Loss]:
    """Return the losses with that of weighted selection in all buckets together.

    Where epsilon is spent, it may cost its share if it costs no more than its rho and delta.
    """
    selection = program.selection
    if not isinstance(selection, WeightedThreshold):
        return losses
    names = [name for name in losses if name.startswith("selected-")]
    whole = sum((losses[name] for name in names), Loss())
    if whole.rho > selection.rho or whole.delta > selection.delta:
        raise Fault("the selection of partitions costs more than its share")
    if not program.composed.is_zcdp:
        [share] = [cost for label, cost, _ in program.entries if label == SELECTION]
        whole = Loss(share.amount, share.amount**2 / 2, share.delta)
    return {name: loss for name, loss in losses.items() if name not in names} | {"all": whole}


def _weigh_decision(selection, kept: bool, one: int, other: int) -> Loss:
    keeping = [selection.probability(number) for number in (one, other)]
    p, q = keeping if kept else (1 - chance for chance in keeping)
    if p == q:
        return Loss()
    least = exp_interval(selection.epsilon, 256)[0]
    beyond = max(Fraction(0), p - least * q, q - least * p)
    most = float(selection.epsilon)
    pure = most if not q else -most if not p else math.log(p / q)
    capped = Fraction(max(-most, min(most, pure)))
    return Loss(capped, selection.epsilon**2 / 2, beyond, 1)


# ---------------------------------------------------------------- searches


def weigh_search(x: Call, y: Call) -> Loss:
    """Return what a choice costs by its whole distributions."""
    one, other = x.chances, y.chances
    possible = [each for each in one | other if max(one.get(each, 0), other.get(each, 0)) > LEAST]
    if any(not one.get(each) or not other.get(each) for each in possible):
        raise Fault(f"{type(x.owner).__name__} can end elsewhere")
    pure = Fraction(math.log(one[x.outcome]) - math.log(other[x.outcome]))
    ps, qs = (np.log([chances[each] for each in possible]) for chances in (one, other))
    rho = max(
        np.logaddexp.reduce(order * p + (1 - order) * q) / (order - 1) / order
        for p, q in ((ps, qs), (qs, ps))
        for order in ORDERS
    )
    return Loss(pure, Fraction(rho), rounded=1)


def _of_candidates(call: Call) -> list[tuple[Hashable, float]]:
    chances = laws.distribution(call.owner, call.given["profile"], call.given["candidates"])
    return list(enumerate(chances))


def _of_thresholds(call: Call) -> list[tuple[Hashable, float]]:
    extension, top, usual = (call.given[name] for name in ("extension", "top", "usual"))
    chances = laws.thresholds(call.owner, extension, top, top if usual is None else usual)
    return list(zip([*range(top + 1), None], chances, strict=True))


def _of_node(call: Call) -> list[tuple[Hashable, float]]:
    node = call.given["node"]
    chances = laws.chances_at(call.owner, node, call.given["candidates"])
    return list(zip([*range(node.first, node.stop), None], chances, strict=True))


def _of_scan(call: Call) -> list[tuple[Hashable, float]]:
    chances = laws.scan_chances(call.owner)
    return list(zip([*range(len(chances) - 1), None], chances, strict=True))


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
        _of_candidates,
        lambda call, value: list(call.given["candidates"]).index(value),
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
        marked=True,
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
        marked=True,
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
        weigh_looks,
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
        CentralSearch,
        "choose_at",
        weigh_search,
        lambda call: (call.owner, call.given["candidates"], call.given["node"].first),
        _of_node,
        lambda _, answer: answer.candidate,
        lambda call, index: Answer() if index is None else Answer(index, call.owner.usual_error),
    ),
    Kind(
        SparseVectorScan,
        "stop",
        weigh_search,
        lambda call: call.owner.rate,
        _of_scan,
        _place,
        _stop,
    ),
]
KIND_OF = {kind.owner: kind for kind in KINDS}


# ---------------------------------------------------------------- runs


class Run:
    """One run, which notes its draws under the name of the step that draws them.

    Args:
        seed: of the randomness, and of the key by which rows stay.
        lean: from -2 to 2. Below 0 additive noise is below 0, above 0 above it, and that of noisy
            histograms too from 2 on; searches choose any possible candidate. 0: nothing leans.
        before: the run whose outcomes are forced.
    """

    def __init__(self, seed: int, lean: int = 0, before: "Run | None" = None) -> None:
        self.calls: dict[str, list[Call]] = defaultdict(list)
        self.losses: dict[str, Loss] = defaultdict(Loss)
        self._source = np.random.default_rng((seed, before is not None))
        self._key = np.random.default_rng(seed).bytes(32)
        self._lean, self._before = lean, before
        self.program: Program | None = None
        self._left = {name: [*calls] for name, calls in before.calls.items()} if before else {}
        self._name, self._inside = "", False

    @contextlib.contextmanager
    def patched(self) -> Iterator[None]:
        """Let every private draw of the library be one of this run, in this block."""

        def once(_, name, draw):
            self._name = name
            return draw()

        def release(program, *args):
            self.program = program
            return RELEASE(program, *args)

        with contextlib.ExitStack() as stack:
            for owner, method in ((AdditiveNoise, "_draw"), (OneDraw, "draw")):
                stack.enter_context(mock.patch.object(owner, method, _marking(owner, method)))
            for kind in KINDS:
                method = self._method(kind, getattr(kind.owner, kind.method))
                stack.enter_context(mock.patch.object(kind.owner, kind.method, method))
            stack.enter_context(mock.patch.object(Barriers, "once", once))
            stack.enter_context(mock.patch.object(Program, "release", release))
            stack.enter_context(mock.patch.object(layout, "fresh_key", lambda: self._key))
            stack.enter_context(mock.patch.object(Noise, "words", _unknown))
            yield
        for name, calls in self._left.items():
            if calls:
                raise Fault(f"{name}: fewer draws than before")

    def _method(self, kind: Kind, original: Callable[..., Any]) -> Callable[..., Any]:
        parameters = inspect.signature(original)

        def method(*args: Any, **kwargs: Any) -> Any:
            bound = parameters.bind(*args, **kwargs)
            bound.apply_defaults()
            if self._inside:
                return original(*bound.args, **bound.kwargs)
            leans = int(np.sign(self._lean)) * (abs(self._lean) >= kind.leans)
            spy = Spy(self._source, leans, kind.marked)
            given = dict(bound.arguments) | {"noise": spy}
            owner = given.pop("self")
            self._inside = True
            try:
                result = original(owner, **given)
                if kind.counts and not np.size(given[kind.counts]):
                    return result
                call = Call(owner, given, spy, self._numbers(kind, given))
                call.outcome = kind.outcome(call, result)
                if kind.chances and kind.result(call, call.outcome) != result:
                    raise Fault(f"{kind.owner.__name__} returns more than its outcome")
                drawn = self._noted if self._before is None else self._forced
                return kind.result(call, drawn(kind, call))
            finally:
                self._inside = False

        return method

    def _numbers(self, kind: Kind, given: dict[str, Any]) -> list[int]:
        if kind.owner is JointNoise:
            return whole(integers.concatenate(given["totals"]))
        return whole(given["numbers"]) if kind.owner is AdditiveNoise else []

    def _noted(self, kind: Kind, call: Call) -> Any:
        if self._lean and kind.chances is not None:
            possible = [each for each, chance in call.chances.items() if chance > POSSIBLE]
            call.outcome = possible[self._source.integers(len(possible))]
        self.calls[self._name].append(call)
        return call.outcome

    def _forced(self, kind: Kind, call: Call) -> Any:
        left = self._left.get(self._name, [])
        alike = [each for each in left if type(each.owner) is kind.owner]
        if not alike and kind.owner is Program:  # nobody was in that bucket, and nothing was kept
            alike = [dataclasses.replace(call, given=NOBODY, outcome=frozenset())]
        if not alike:
            raise Fault(f"{self._name}: another draw than before, of {kind.owner.__name__}")
        # Several tables draw under the same names, in any order, by parameters of their own.
        known = next((each for each in alike if kind.public(each) == kind.public(call)), None)
        if known is None:
            raise Fault(f"{self._name}: {kind.owner.__name__} draws by other parameters")
        left[:] = [each for each in left if each is not known]
        self.losses[self._name] += kind.weigh(known, call)
        return known.outcome


def _marking(owner: type, method: str) -> Callable[..., Any]:
    """Return a method that draws noise, as one that returns marks where a spy asks for them."""
    original, parameters = getattr(owner, method), inspect.signature(getattr(owner, method))

    def marking(*args: Any, **kwargs: Any) -> Any:
        drawn, noise = (
            original(*args, **kwargs),
            parameters.bind(*args, **kwargs).arguments["noise"],
        )
        if not getattr(noise, "marked", False):
            return drawn
        if owner is OneDraw:
            return noise.marks(args[0], drawn)
        return noise.marks(noise.laws[-1], [drawn])[0] if len(drawn) else drawn

    return marking


def _unknown(*_: Any) -> Any:
    raise Fault("a private draw that is not among KINDS")


def losses_between(
    release: Callable[[Any], Any], less: Any, more: Sequence[Any], seed: int, lean: int = 0
) -> Iterator[tuple[dict[str, Loss], Program]]:
    """Yield the loss of each step of one release between a database and each of its neighbours.

    Args:
        release: database -> a `Released`.
        less: the smaller database: what can be drawn of it can be drawn of the others.
        more: databases with the same people and one person more.
        seed: of all randomness.
        lean: as in `Run`.

    Yields:
        The losses, and the program that released.

    Raises:
        Fault: where what was released differs, or depends on data in another way.
    """
    first = Run(seed, lean)
    with first.patched():
        one = release(less)
    for each in more:
        second = Run(seed, lean, first)
        with second.patched():
            other = release(each)
        if _told(one) != _told(other):
            raise Fault("what was released differs")
        yield selected_once(second.losses, second.program), second.program


def _told(released: Any) -> str:
    tables = []
    for each in (released, *released.others):
        record = {name: part for name, part in each.record.items() if name != "date"}
        tables.append((each.table.schema, each.table.to_pydict(), record))
    return repr(tables)
