"""The exact audit of the private ratios: no sampling, only sums over all outcomes of the noise.

What is cut off far from the truth is counted against the claim.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms import ratio
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.interval_widths import laplace_bound
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.ratio import mechanisms
from beam_dp.mechanisms.ratio.mechanisms import (
    BoundedLocalSensitivity,
    GridLaplace,
    KuleszaSureshWang,
    Naive,
)
from tests.laws import laplace

PAIRS = [(a, b) for b in range(31) for a in range(b + 1)]
TAIL = 1e-14
ROUNDING = 1e-12


def people(rows: int) -> list[tuple[int, int]]:
    """Return what one person may add to (a, b - a)."""
    return [(i, j) for i in range(rows + 1) for j in range(rows + 1 - i)]


def neighbours(a: int, b: int, rows: int = 1) -> Iterator[tuple[int, int]]:
    """Return the (a, b) of every neighbour, by its definition."""
    for i, j in people(rows):
        yield a + i, b + i + j
        if i <= a and j <= b - a:
            yield a - i, b - i - j


def exact_ratio(a: int, b: int) -> Fraction:
    return Fraction(a, b) if b else Fraction(1, 2)


def true_local_sensitivity(a: int, b: int, rows: int = 1) -> Fraction:
    near = neighbours(a, b, rows)
    return max(abs(exact_ratio(a, b) - exact_ratio(*other)) for other in near)


# ------------------------------------------------------------- the bound is an upper bound


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_the_bound_is_above_the_local_sensitivity_and_reached(rows: int) -> None:
    reached = 0
    for a, b in PAIRS:
        if b > rows:
            true = true_local_sensitivity(a, b, rows)
            claimed = Fraction(*mechanisms.largest_bound((a, a), (b - a, b - a), rows))
            assert true <= claimed
            reached += true == claimed
            inside = rows <= a <= b - rows  # nobody is missing whom the bound has in mind
            assert true == claimed or not inside
    assert reached >= 300


# ------------------------------------------------- the exact failure probability of the bound


Bound = Callable[[int, int], Fraction | float | None]


def failure(bound: Bound, centre: tuple[int, int], rate: Fraction, true: Fraction, delta) -> float:
    """Return P[bound < true] over both noises, and a little more: the whole of the far tails."""
    span = laplace_bound(rate, Fraction(delta) / 10_000)
    weights = laplace(rate, span)
    failed = np.zeros((2 * span + 1, 2 * span + 1), bool)
    for i, j in itertools.product(range(2 * span + 1), repeat=2):
        found = bound(centre[0] + i - span, centre[1] + j - span)
        failed[i, j] = found is not None and found < true
    return float(weights @ failed @ weights) + float(delta) / 5_000


def claimed_bound(mechanism: BoundedLocalSensitivity) -> Bound:
    def bound(first: int, second: int) -> Fraction | None:
        found = mechanism.bound(first, second)
        return None if found is None else Fraction(*found)

    return bound


def failure_of(mechanism: BoundedLocalSensitivity, a: int, b: int) -> float:
    """Return the exact failure probability of a mechanism's own bound at (a, b)."""
    centre = (a, b - a)
    true = true_local_sensitivity(a, b, mechanism.rows)
    rate = mechanism._adder.budget.amount / mechanism.rows
    return failure(claimed_bound(mechanism), centre, rate, true, mechanism.budget.delta)


GRID = [
    (8.0, 1e-6, 1 / 10, (20, 60, 1000)),
    (8.0, 1e-3, 1 / 10, (20, 300)),
    (8.0, 0.05, 1 / 10, (8, 20, 1000)),
    (4.0, 1e-3, 1 / 2, (8, 20, 300)),
    (1.0, 0.05, 1 / 2, (20, 60)),
    (1.0, 1e-3, 1 / 2, (60, 1000)),
    (0.5, 0.05, 1 / 2, (60, 2000)),
]


@pytest.mark.parametrize(("epsilon", "delta", "share", "sizes"), GRID)
def test_the_bound_fails_with_probability_at_most_delta(epsilon, delta, share, sizes):
    mechanism = BoundedLocalSensitivity(Budget(epsilon, delta), share=share)
    for b in sizes:
        for a in sorted({0, 1, b // 2, b}):
            assert failure_of(mechanism, a, b) <= delta


@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.3])
def test_both_counts_stray_together_with_probability_at_most_delta(rows, delta):
    """The union bound of the proof, which the sums above do not use up."""
    mechanism = BoundedLocalSensitivity(Budget(2.0, delta), rows)
    q = math.exp(-mechanism._adder.budget.amount / rows)
    tail = 2 * q ** (mechanism.tail_bound + 1) / (1 + q)
    assert 2 * tail <= delta < 2 * tail / q


@pytest.mark.parametrize("rows", [2, 5])
def test_it_does_with_several_rows_per_person(rows: int) -> None:
    mechanism = BoundedLocalSensitivity(Budget(8.0, 0.01), rows, share=1 / 2)
    for a, b in [(0, 30), (15, 30), (30, 30), (7, 12)]:
        assert failure_of(mechanism, a, b) <= 0.01


def test_the_grid_sees_failures() -> None:
    """The claim is not met by a bound that is far too high: here it fails where both counts stray."""
    mechanism = BoundedLocalSensitivity(Budget(4.0, 1e-3), share=1 / 2)
    assert failure_of(mechanism, 1, 100) >= 1e-5


class Exchanged(BoundedLocalSensitivity):
    """The broken twin: lower and upper bound of the counts exchanged, as in the article's code."""

    def bound(self, first, second):
        far = self.tail_bound
        ones, zeros = (max(0, first + far), max(0, first - far)), (second + far, second - far)
        if ones[1] + zeros[1] <= self.rows:
            return None
        return mechanisms.largest_bound(ones, (max(0, zeros[0]), max(0, zeros[1])), self.rows)


class HalfTail(BoundedLocalSensitivity):
    """The broken twin: half of the noise that may stray is reckoned with."""

    @property
    def tail_bound(self) -> int:
        return super().tail_bound // 2


@pytest.mark.parametrize("twin", [Exchanged, HalfTail])
def test_broken_bounds_fail_the_same_check(twin: type[BoundedLocalSensitivity]) -> None:
    assert failure_of(twin(Budget(8.0, 1e-3), share=1 / 10), 1, 300) > 1e-3


# --------------------------------------------------------- exact ratios of what is released


class Arranged(Noise):
    """Noise that returns prepared columns, and remembers the rates that it was asked for."""

    def __init__(self, *columns: np.ndarray) -> None:
        object.__setattr__(self, "columns", list(columns))
        object.__setattr__(self, "rates", [])

    def discrete_laplace(self, rate, size):
        """Return the next column."""
        self.rates.append(rate)
        column = self.columns.pop(0)
        assert len(column) == size
        return column


def distribution(mechanism: ratio.Mechanism, a: int, b: int, span: int) -> dict[float, float]:
    """Return the probability of each output, by the mechanism's own code on all outcomes."""
    outcomes = np.arange(-span, span + 1)
    first, second = (grid.ravel() for grid in np.meshgrid(outcomes, outcomes))
    noise, size = Arranged(first, second), len(first)
    values = mechanism.release(np.full(size, a), np.full(size, b), noise).values
    assert ((values >= 0) & (values <= 1)).all()
    weights = (
        laplace(noise.rates[0], span)[first + span] * laplace(noise.rates[1], span)[second + span]
    )
    outputs, places = np.unique(values, return_inverse=True)
    return dict(zip(outputs.tolist(), np.bincount(places, weights).tolist(), strict=True))


def worst_excess(mechanism: ratio.Mechanism, epsilon: float, span: int) -> float:
    """Return the largest P(out | x) - e^epsilon P(out | x') over outputs and neighbours."""
    found = {pair: distribution(mechanism, *pair, span) for pair in PAIRS}
    grown = math.exp(epsilon)
    return max(
        mass - grown * found[other].get(output, 0.0)
        for pair in PAIRS
        for other in set(neighbours(*pair, mechanism.rows)) & found.keys()
        for output, mass in found[pair].items()
    )


@pytest.mark.parametrize("method", [Naive, KuleszaSureshWang])
def test_the_outputs_of_neighbours_are_epsilon_close(method) -> None:
    # For epsilon 3 a noise of rate 1.5 or 3 is beyond 24 with a chance below 5e-16.
    assert worst_excess(method(Budget(3.0)), 3.0, 24) <= TAIL


def test_the_outputs_need_all_of_epsilon() -> None:
    assert worst_excess(KuleszaSureshWang(Budget(3.0)), 2.9, 24) > 1e-4


class Whole(Naive):
    """The broken twin: the whole budget for each of a and b."""

    @property
    def _adder(self) -> AdditiveNoise:
        return AdditiveNoise(self.budget)


def test_too_little_noise_is_seen() -> None:
    assert worst_excess(Whole(Budget(3.0)), 3.0, 16) > 1e-3


def certificate(mechanism: BoundedLocalSensitivity) -> tuple[float, float]:
    """Return the epsilon and the delta that the local form is proved to have for b <= 30.

    The output is the noisy counts and the noisy step of the grid. Where the steps of x and x' are
    at most `resolution` apart, the ratio of the joint probabilities is at most e^(count exponent +
    rate * steps): epsilon is the largest exponent of all. All other counts go to delta.
    """
    grid = GridLaplace(mechanism.costs[1].amount)
    rate = mechanism._adder.budget.amount
    span = laplace_bound(rate, Fraction(1, 10**9))
    weights, cells = laplace(rate, span), range(-span, 31 + span)
    found = {cell: mechanism.bound(*cell) for cell in itertools.product(cells, repeat=2)}
    local = np.array([cell for cell, bound in found.items() if bound])
    tops, bottoms = np.array([bound for bound in found.values() if bound]).T

    def steps(a: int, b: int) -> np.ndarray:
        a, b = (a, b) if b else (1, 2)
        return (2 * a * grid.resolution * bottoms + b * tops) // (2 * b * tops)

    spots = [(0, 30, 31), (15, 29, 0), (2, 17, 5)]
    for a, b, place in spots:
        expected = grid.steps((a, b), (int(tops[place]), int(bottoms[place])))
        assert steps(a, b)[place] == expected
    epsilon, delta = 0.0, 0.0
    known = {pair: steps(*pair) for pair in PAIRS}
    for (a, b), (c, d) in [
        (pair, other) for pair in PAIRS for other in set(neighbours(*pair)) & known.keys() - {pair}
    ]:
        apart = np.abs(known[a, b] - known[c, d])
        kept = apart <= grid.resolution
        moved = abs((b - a) - (d - c)) + abs(a - c)
        most = int(apart[kept].max(initial=0))
        epsilon = max(epsilon, float(rate) * moved + float(grid.rate) * most)
        first, second = local[~kept, 0] - a, local[~kept, 1] - (b - a)
        inside = np.abs(second) <= span
        mass = weights[second[inside] + span]
        first = first[inside]
        mass = mass[np.abs(first) <= span] * weights[first[np.abs(first) <= span] + span]
        delta = max(delta, float(mass.sum()) + 2e-9)
    return epsilon, delta


def test_the_local_form_is_epsilon_delta_private() -> None:
    mechanism = BoundedLocalSensitivity(Budget(10.0, 0.02), share=0.4)
    assert any(mechanism.bound(10, each) for each in range(31))  # not all are the bail-out
    epsilon, delta = certificate(mechanism)
    assert epsilon <= 10 + ROUNDING and delta <= 0.02
    assert epsilon >= 9.5 and delta > 1e-5


@pytest.mark.parametrize("twin", [Exchanged, HalfTail])
def test_broken_local_forms_are_not(twin: type[BoundedLocalSensitivity]) -> None:
    epsilon, delta = certificate(twin(Budget(10.0, 1e-4), share=0.4))
    assert epsilon > 10 + ROUNDING or delta > 1e-4


def test_the_local_form_draws_what_was_audited(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the rule that takes the fallback where it is better: here the bound is always taken."""
    monkeypatch.setattr(BoundedLocalSensitivity, "_is_better", lambda *given: True)
    mechanism = BoundedLocalSensitivity(Budget(10.0, 0.02), share=0.4)
    drawn = [(0, 0, 0), (1, -2, 5), (-1, 1, -7), (-18, -12, 3), (300, 2, 1)]
    zeros, ones, last = (np.array(column) for column in zip(*drawn, strict=True))
    noisy = [(12 + int(i), 18 + int(j)) for j, i in zip(zeros, ones, strict=True)]
    found = [mechanism.bound(*pair) for pair in noisy]
    local = np.array([bound is not None for bound in found])
    assert local.tolist() == [True, True, True, False, True]
    fallback = np.zeros(int((~local).sum()), np.int64)
    noise = Arranged(zeros, ones, fallback, fallback, last[local])
    values = mechanism.release(np.full(5, 12), np.full(5, 30), noise).values
    grid = GridLaplace(mechanism.costs[1].amount)
    assert noise.rates == [4, 4, 6, 6, grid.rate] or np.allclose(
        [float(rate) for rate in noise.rates], [4, 4, 6, 6, float(grid.rate)]
    )
    for value, bound, added in zip(values, found, last, strict=True):
        if bound is None:
            assert value == 0.4
        else:
            unit = Fraction(*bound) / grid.resolution
            expected = (math.floor(Fraction(2, 5) / unit + Fraction(1, 2)) + int(added)) * unit
            assert value == float(min(max(expected, 0), 1))


@pytest.mark.parametrize("rows", [1, 2])
def test_the_bail_out_has_the_noise_of_the_default_for_what_is_left(rows):
    """Of epsilon 10 the counts have 4 in all, and the default 6, for each part."""
    mechanism = BoundedLocalSensitivity(Budget(10.0, 1e-6), rows, Fraction(2, 5))
    rates = [Fraction(each, rows) for each in (4, 4, 6, 6)]
    zeros, nothing = np.zeros(1, np.int64), np.empty(0, np.int64)
    noise = Arranged(*[zeros] * len(rates), nothing)
    values = mechanism.release(np.array([1]), np.array([2]), noise).values
    assert values.tolist() == [0.5] and noise.rates[:-1] == rates
