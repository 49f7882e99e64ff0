"""Two looks cost what the one that is taken costs: exact distributions, by way of the code."""

import collections
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.reach import looks
from beam_dp.mechanisms.reach.looks import Look, TwoLooks

EPSILON = 4
LOW, HIGH = Fraction(1), Fraction(2)  # the rates of the two looks below


def laplace(rate, size):
    """Return the probabilities of -size..size under the discrete Laplace distribution."""
    a = math.exp(-rate)
    return (1 - a) / (1 + a) * a ** abs(np.arange(-size, size + 1))


def chance_of_more(low, high):
    """Return the chance that a fine count gets more noise; that it is so: `test_histogram_noise`."""
    return 1 - (math.expm1(-low) / math.expm1(-high)) ** 2 * math.exp(low - high)


class Scripted(Noise):
    """Noise that is told what to draw; the rates that are asked for must be the two looks'."""

    def __init__(self, fine, added, more):
        vars(self).update(values={HIGH: fine, LOW: more}, added=added)

    def discrete_laplace(self, rate, size):
        return np.array([self.values[rate]] * size, np.int64)

    def bernoullis_below(self, bound, size):
        return np.array([not self.added] * size)


def outcomes(count, twolooks):
    """Return the exact distribution of (share, released count) for a histogram of one step.

    Every draw of noise up to 18 / 36 is played through the code, with its probability.
    """
    found = collections.Counter()
    chance = chance_of_more(LOW, HIGH)
    fine, more = laplace(HIGH, 18), laplace(LOW, 36)
    for k, p in enumerate(fine):
        kept = twolooks.draw(np.array([count]), Scripted(k - 18, False, 0))
        found[kept.share, float(kept.counts[0])] += p * (1 - chance)
        for d, q in enumerate(more):
            look = twolooks.draw(np.array([count]), Scripted(k - 18, True, d - 36))
            found[look.share, float(look.counts[0])] += p * chance * q
    return found


def worst(kind, enough, counts=(3, 4)):
    """Return the largest log-ratio between neighbours, less what the look costs."""
    twolooks = kind(Budget(EPSILON), Fraction(1, 4), Fraction(1, 2), enough)
    one, other = (outcomes(count, twolooks) for count in counts)
    excess = []
    for share, value in one.keys() | other.keys():
        if abs(value - 3.5) <= 7:
            p, q = one[share, value], other[share, value]
            excess.append(abs(math.log(p / q)) - float(share) * EPSILON if p and q else math.inf)
    return max(excess)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("enough", [-1, 1, 3, 4, 9])
def test_no_outcome_tells_more_than_its_look_costs(enough):
    assert worst(TwoLooks, enough) == pytest.approx(0, abs=1e-9)  # and the cost is tight


class Fresh(TwoLooks):
    """The broken twin: a second look with fresh noise, at the price of the second alone."""

    def _draw_laplace(self, counts, noise):
        coarse = self._look(counts + noise.discrete_laplace(LOW, 1), self.first)
        again = self._look(counts + noise.discrete_laplace(HIGH, 1), self.second)
        return coarse if self._is_enough(coarse) else again


class Peeking(TwoLooks):
    """The broken twin: the fine counts decide whether the coarse ones are enough."""

    def _draw_laplace(self, counts, noise):
        fine = counts + noise.discrete_laplace(HIGH, 1)
        more = noise.discrete_laplace(LOW, 1) if not noise.bernoullis_below(None, 1)[0] else 0
        enough = self._is_enough(self._look(fine, self.first))
        return self._look(fine + more, self.first) if enough else self._look(fine, self.second)


class Revealing(TwoLooks):
    """The broken twin: the fine counts come out at the price of the coarse ones."""

    def _draw_laplace(self, counts, noise):
        look = super()._draw_laplace(counts, noise)
        return Look(counts + noise.discrete_laplace(HIGH, 1), look.share, self.budget)


def fresh_worst(enough):
    """Return `worst` for the fresh twin, whose two draws are independent."""
    low, high = laplace(LOW, 40), laplace(HIGH, 40)
    values = np.arange(-40, 41)
    go_on = [low[values + count < enough].sum() for count in (3, 4)]
    ratio = np.log(go_on[0] / go_on[1]) + np.log(high[40] / high[39])
    return ratio - EPSILON / 2


def test_the_broken_twins_are_noticed():
    assert worst(Peeking, 4) > 0.5
    assert worst(Revealing, 4) > 0.5
    assert fresh_worst(1) > 0.5
    with pytest.raises(AssertionError):
        assert worst(Fresh, 1) == pytest.approx(0, abs=1e-9)


def test_two_steps_cost_no_more_than_one():
    """Neighbours differ in one of two steps; the look depends on the sum: an exact sum over both."""
    size, enough = 24, 5
    values = np.arange(-size, size + 1)
    chance = chance_of_more(LOW, HIGH)
    fine, more = laplace(HIGH, size), laplace(LOW, 4 * size)
    # joint[k, j]: fine noise k and coarse noise j of one step
    joint = np.array([chance * more[4 * size - k + values] for k in values]) * fine[:, None]
    joint[np.diag_indices(len(values))] += (1 - chance) * fine

    def released(counts):
        stop = np.add.outer(values + counts[0], values + counts[1]) >= enough
        coarse = joint.sum(axis=0)
        went_on = joint @ (~stop).astype(float) @ joint.T  # by the two fine noises
        return np.outer(coarse, coarse) * stop, went_on

    (stop_one, on_one), (stop_two, on_two) = released((1, 2)), released((2, 2))
    inner = slice(size - 6, size + 7)
    shifted = slice(size - 7, size + 6)  # the same outcome has one less noise
    for one, two, cost in ((stop_one, stop_two, 1.0), (on_one, on_two, 2.0)):
        p, q = one[inner, inner], two[shifted, inner]
        assert ((p > 0) == (q > 0)).all()
        ratios = np.log(p[p > 0] / q[p > 0])
        assert abs(ratios).max() == pytest.approx(cost, abs=1e-6)


class Recording(Noise):
    """Noise that is 0 and notes the variances that are asked for."""

    def __init__(self):
        vars(self)["asked"] = []

    def discrete_gaussian(self, variance, size):
        self.asked.append(variance)
        return np.zeros(size, np.int64)


def gauss(variance, shift, size=400):
    """Return the logarithms of the probabilities."""
    logs = -((np.arange(-size, size + 1) - shift) ** 2) / (2 * float(variance))
    return logs - np.logaddexp.reduce(logs)


@pytest.mark.parametrize("alpha", [1.01, 2, 5, 20])
@pytest.mark.parametrize("enough", [-60, -5, 0, 1, 12])
def test_zcdp_looks_and_what_follows_cost_rho(alpha, enough):
    rho, first, second = Fraction(1, 10), Fraction(1, 5), Fraction(2, 5)
    recording = Recording()
    look = TwoLooks(Budget.zcdp(rho), first, second, 10**6).draw(np.array([0]), recording)
    assert look.share == second and len(recording.asked) == 2
    (p1, q1), (p2, q2) = ((gauss(v, 0), gauss(v, 1)) for v in recording.asked)
    first_moments = np.exp(alpha * p1 + (1 - alpha) * q1)
    again = float(np.exp(alpha * p2 + (1 - alpha) * q2).sum())
    stops = np.arange(-400, 401) >= enough

    def rest(share):
        return math.exp(alpha * (alpha - 1) * float(rho * (1 - share)))

    after = np.where(stops, rest(first), again * rest(second))
    moment = float((first_moments * after).sum())
    assert math.log(moment) / (alpha - 1) <= float(rho) * alpha * (1 + 1e-9)
    wrong = np.where(stops, rest(first), again * rest(second - first))  # forgets the first look
    moment = float((first_moments * wrong).sum())
    assert enough < 0 or math.log(moment) / (alpha - 1) > float(rho) * alpha


def test_the_second_zcdp_look_has_the_variance_of_its_share():
    """Weights 1/3 and 2/3 of variances 1/(2 rho/25) and 1/(2 rho 2/25)."""
    recording = Recording()
    look = TwoLooks(Budget.zcdp(1)).draw(np.array([0, 1]), recording)
    one, two = map(float, recording.asked)
    assert one / 9 + 4 * two / 9 == pytest.approx(look.scale**2)
    assert look.counts.tolist() == [0, 1] and look.share == looks.SECOND


@pytest.mark.parametrize("budget", [Budget(1), Budget(2, 1e-6), Budget.zcdp(0.5, 1e-6)])
@pytest.mark.parametrize("people", [0, 10**6])
def test_what_is_spent_and_what_is_left_make_the_budget(budget, people):
    look = TwoLooks(budget).draw(np.array([people, 0]), Noise())
    # Wrong with a chance below 1e-10: the first look's sum would have to stray by 200 scales.
    assert look.share == (looks.FIRST if people else looks.SECOND)
    assert look.spent.amount + look.left.amount == budget.amount
    assert look.spent.delta == 0 and look.left.delta == budget.delta
    assert look.spent.is_zcdp == look.left.is_zcdp == budget.is_zcdp


def test_noise_of_the_counts_is_that_of_the_share():
    """A mean of 5,000 squares strays by 3.2%: 9 deviations, a chance below 1e-10."""
    for people, share in ((0, looks.SECOND), (10**6, looks.FIRST)):
        counts = np.full(5_000, people)
        drawn = TwoLooks(Budget(1), enough=10.0**7).draw(counts, Noise()).counts - people
        found = float((drawn**2).mean())
        assert found == pytest.approx(2 / float(share) ** 2, rel=0.3)


def test_a_share_and_the_rest_are_parts_of_the_whole():
    shares = itertools.product((looks.FIRST, looks.SECOND), (Budget(1), Budget.zcdp(1)))
    for share, budget in shares:
        assert looks.left_after(budget, share).amount == 1 - share
        assert looks.noise_scale(budget.scaled(share)) == pytest.approx(
            float(1 / share) if not budget.is_zcdp else float(1 / (2 * share)) ** 0.5
        )


def test_thresholds_are_quantiles_of_the_noise():
    look = Look(np.zeros(1), Fraction(1, 25), Budget(1))
    size = 2000
    tail = laplace(1 / 25, size)[size + math.ceil(look.surely_noise(1e-4)) :].sum()
    assert tail == pytest.approx(1e-4, rel=0.05)
    gaussian = Look(np.zeros(1), Fraction(1, 25), Budget.zcdp(Fraction(25, 2)))
    assert gaussian.scale == 1 and gaussian.surely_noise(0.025) == pytest.approx(1.96, abs=1e-2)
