"""The distributions of one draw for several numbers, added up over all levels.

Random comparisons are by the bound of Dvoretzky, Kiefer and Wolfowitz with a false alarm of 1e-10
each, as in `test_sampling`; each has a broken twin.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise import noise_on_several_sums
from beam_dp.mechanisms.noise.noise_on_several_sums import OneDraw
from beam_dp.mechanisms.noise.sampling import Noise
from tests.mechanisms.noise.test_sampling import follows

ALPHA = Fraction(1, 20)
UP, BOTH = False, True
SMALL = [
    (Fraction(1), ((1, UP),)),
    (Fraction(1), ((5, UP), (1, UP))),
    (Fraction(1, 3), ((2, UP), (3, UP))),
    (Fraction(7, 3), ((3, BOTH), (2, BOTH))),
    (Fraction(3, 2), ((2, UP), (3, BOTH))),
    (Fraction(1), ((1, UP), (2, UP), (2, UP))),
    (Fraction(2), ((2, UP), (1, BOTH), (3, UP))),
]


def levels_of(hull, most):
    """Return all levels (down, up) with a sum of at most `most`."""
    if not hull.split:
        return np.zeros(most + 1, np.int64), np.arange(most + 1)
    down, up = np.indices((most + 1, most + 1)).reshape(2, -1)
    kept = down + up <= most
    return down[kept], up[kept]


def law(hull, window, most=None):
    """Return P(z) of all z with |z_j| <= window, up to a factor, by its definition.

    A level counts for z if its side towards z reaches z in each number. So for each choice of
    sides the weights are added up by where these sides end, and then over all ends that reach z.
    """
    most = most or math.ceil((window + 3) * hull.levels + 45 / hull.rate)
    down, up = levels_of(hull, most)
    weights = np.exp(-float(hull.rate) * (down + up))
    sides = [[np.minimum(end, window) for end in pair] for pair in hull._ends(down, up)]
    far = np.arange(window + 1)
    shape = (len(far),) * len(sides)
    chances = np.zeros((2 * window + 1,) * len(sides))
    for chosen in itertools.product((0, 1), repeat=len(sides)):
        ends = [pair[which] for pair, which in zip(sides, chosen, strict=True)]
        places = np.ravel_multi_index(ends, shape)
        reaching = np.bincount(places, weights, math.prod(shape)).reshape(shape)
        for axis in range(len(sides)):
            reaching = np.flip(np.flip(reaching, axis).cumsum(axis), axis)
        chances[np.ix_(*(window + (far if which else -far) for which in chosen))] = reaching
    return chances


def moves(sides):
    """Return all moves of a person who is added."""
    return itertools.product(*(range(-clip * both, clip + 1) for clip, both in sides))


def largest_log_ratio(hull, window):
    """Return max |ln P(z) - ln P(z + move)| over all moves and all z within the window."""
    logs = np.log(law(hull, window))
    worst = 0.0
    for move in moves(hull.sides):
        here = tuple(slice(max(0, -step), 2 * window + 1 - max(0, step)) for step in move)
        there = tuple(slice(max(0, step), 2 * window + 1 - max(0, -step)) for step in move)
        worst = max(worst, float(np.abs(logs[here] - logs[there]).max()))
    return worst


def with_levels(levels):
    """Return the hull with another M."""

    class Changed(noise_on_several_sums._Hull):
        pass

    Changed.levels = property(lambda _: levels)
    return Changed


class ShortBox(noise_on_several_sums._Hull):
    """A mutant: the upper ends are one short."""

    def _ends(self, down, up):
        return [(low, np.maximum(high - 1, 0)) for low, high in super()._ends(down, up)]


class WrongLevels(noise_on_several_sums._Hull):
    """A mutant: the sides count one level more per clip than the rate does."""

    def _ends(self, down, up):
        other = with_levels(self.levels + 1)(self.epsilon, self.sides)
        return noise_on_several_sums._Hull._ends(other, down, up)


class WrongRate(noise_on_several_sums._Hull):
    """A mutant: levels fall faster than epsilon allows."""

    @property
    def rate(self):
        return self.epsilon / self.levels * Fraction(101, 100)


class WithoutUp(noise_on_several_sums._Hull):
    """A mutant: signed sides follow one of the two levels only."""

    def _ends(self, down, up):
        return [
            (up * clip // self.levels,) * 2 if both else pair
            for (clip, both), pair in zip(self.sides, super()._ends(down, up), strict=True)
        ]


class TestPrivacy:
    @pytest.mark.parametrize("epsilon, sides", SMALL)
    def test_no_move_changes_a_chance_by_more_than_epsilon_and_some_by_as_much(
        self, epsilon, sides
    ):
        worst = largest_log_ratio(noise_on_several_sums._hull(epsilon, sides), 9)
        assert 0.9999 * float(epsilon) < worst <= float(epsilon) * (1 + 1e-9)

    @pytest.mark.audit
    @pytest.mark.parametrize("levels", [1, 2, 3, 7])
    @pytest.mark.parametrize("epsilon", [Fraction(1, 5), Fraction(4)])
    @pytest.mark.parametrize(
        "sides",
        [
            ((2, UP), (3, UP), (5, UP)),
            ((1, UP), (1, UP), (1, UP), (2, UP)),
            ((1, UP), (4, BOTH), (3, UP)),
            ((2, BOTH), (1, BOTH), (3, BOTH)),
            ((8, BOTH), (5, UP)),
        ],
    )
    def test_no_move_of_more_numbers_changes_a_chance_by_more_than_epsilon(
        self, levels, epsilon, sides
    ):
        window = 12 if len(sides) == 2 else 7
        worst = largest_log_ratio(with_levels(levels)(epsilon, sides), window)
        assert 0.9999 * float(epsilon) < worst <= float(epsilon) * (1 + 1e-9)

    @pytest.mark.parametrize("mutant", [ShortBox, WrongLevels, WrongRate, WithoutUp])
    def test_mutants_are_caught(self, mutant):
        assert any(
            largest_log_ratio(mutant(epsilon, sides), 9) > float(epsilon) * (1 + 1e-9)
            for epsilon, sides in SMALL
        )

    def test_sides_of_clips_of_any_size_hold_what_the_proof_asks(self):
        down, up = np.indices((40, 40)).reshape(2, -1)
        for clip, both in itertools.product((1, 63, 10**6 + 1, 10**12, 10**30), (UP, BOTH)):
            hull = noise_on_several_sums._hull(Fraction(3), ((clip, both), (10**13, UP)))
            low, high = hull._ends(down, up)[0]
            low_after, high_after = hull._ends(down, up + hull.levels)[0]
            assert np.all(high_after == high + clip)
            assert np.all(low_after == low + clip * both)
            low_after, high_after = hull._ends(down + hull.levels, up)[0]
            assert np.all(low_after == low + clip)
            assert np.all(high_after == high + clip * both)


class Recorder(Noise):
    """Proposes given levels, and keeps the chances of the coins."""

    def __init__(self, totals, ups):
        object.__setattr__(self, "given", (totals, ups))
        object.__setattr__(self, "told", [])

    def geometric(self, rate, size):
        self.told.append(rate)
        return self.given[0]

    def below(self, limits):
        assert np.all(limits == self.given[0] + 1)
        return self.given[1]

    def coins_near(self, chances, bound_of):
        self.told.extend([chances, bound_of])
        return np.ones(len(chances), bool)


LARGE = [
    (Fraction(1), ((1, UP),) * 12),
    (Fraction(1), ((10**12, UP), (7, BOTH), (10**30, UP), (1, UP))),
    (Fraction(1, 2**40), ((3, UP), (10**12, BOTH))),
    (Fraction(40), ((1, UP), (1000, UP))),
]


class TestSampler:
    @pytest.mark.parametrize("epsilon, sides", SMALL + LARGE)
    def test_levels_are_kept_in_proportion_to_their_weights(self, epsilon, sides):
        hull = noise_on_several_sums._hull(epsilon, sides)
        down, up = levels_of(hull, 60)
        recorder = Recorder(down + up, up)
        kept = hull._proposed(recorder, len(up))
        assert np.array_equal(kept[0], down) and np.array_equal(kept[1], up)
        slow, chances, bound_of = recorder.told
        # Proposed with chance in proportion to e^(-slow r) / (r + 1), or without the division.
        weights = sum(np.log((low + high + 1).astype(float)) for low, high in hull._ends(down, up))
        logs = weights - float(hull.rate) * (down + up)
        shares = np.log(chances) - float(slow) * (down + up)
        if hull.split:
            shares -= np.log(down + up + 1.0)
        gaps = shares - logs
        assert np.ptp(gaps) < 1e-9
        assert chances.max() < 1
        for index in range(0, len(up), 97):
            low, high = bound_of(index)(80)
            assert high - low <= Fraction(1, 2**80)
            assert abs(float(low) - chances[index]) < 1e-9

    @pytest.mark.parametrize("epsilon, sides", LARGE)
    def test_no_level_has_a_chance_above_one(self, epsilon, sides):
        hull = noise_on_several_sums._hull(epsilon, sides)
        most = 60 * (len(sides) + 2) / float(hull.rate)
        totals = np.unique(np.geomspace(1, most, 4000).astype(np.int64))
        recorder = Recorder(totals, totals)
        hull._proposed(recorder, len(totals))
        assert 0.2 < recorder.told[1].max() < 1

    @pytest.mark.parametrize("epsilon, sides", [SMALL[2], SMALL[4]])
    def test_what_is_drawn_follows_the_law(self, epsilon, sides):
        hull, window, size = noise_on_several_sums._hull(epsilon, sides), 120, 40_000
        chances = law(hull, window)
        chances /= chances.sum()
        clips, signed = zip(*sides, strict=True)
        first, second = OneDraw(Budget(epsilon), clips, signed).draw(Noise(), size)
        other = OneDraw(Budget(epsilon * Fraction(5, 4)), clips, signed).draw(Noise(), size)
        grid = np.indices(chances.shape) - window
        for left, right in ((1, 0), (0, 1), (1, 1), (1, -1), (3, 7)):
            sums = (left * grid[0] + right * grid[1]).ravel()
            order = np.argsort(sums)
            totals = np.cumsum(chances.ravel()[order])

            def cdf(k, sums=sums[order], totals=totals):
                return np.concatenate([[0.0], totals])[np.searchsorted(sums, k, side="right")]

            assert follows(left * first + right * second, cdf)
        assert not follows(3 * other[0] + 7 * other[1], cdf)  # broken twin: less noise

    def test_uniform_integers(self):
        noise = Noise()
        for limit in (1, 2, 3, 6, 1000, 2**62 + 5):
            draws = noise.below(np.full(40_000, limit))
            assert draws.dtype == np.int64 and 0 <= draws.min() <= draws.max() < limit
            assert follows(draws, lambda k, n=limit: np.clip((k + 1.0) / n, 0, 1))
            if limit > 3:
                assert not follows(draws, lambda k, n=limit: np.clip((k + 1.0) / n, 0, 1) ** 1.1)
        wide = noise.below(np.full(4000, 3 * 10**30, object))
        assert all(type(draw) is int for draw in wide.tolist())
        assert follows(wide // 10**25, lambda k: (k + 1.0) / 300_000)
        assert follows((wide % 1000).astype(np.int64), lambda k: (k + 1.0) / 1000)


class TestMarginals:
    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("epsilon, sides", SMALL)
    def test_bounds_and_deviations_are_those_of_the_law(self, epsilon, sides):
        window = math.ceil(max(clip for clip, _ in sides) * 26 / epsilon)
        hull = noise_on_several_sums._hull(epsilon, sides)
        window = min(window, 160 if len(sides) < 3 else 60)
        chances = law(hull, window)
        axes = range(len(sides))
        for place in axes:
            marginal = chances.sum(axis=tuple(axis for axis in axes if axis != place))
            marginal /= marginal.sum()
            steps = np.abs(np.arange(-window, window + 1))
            for alpha in (Fraction(1, 2), ALPHA, Fraction(1, 1000)):
                tails = [marginal[steps > t].sum() for t in range(window)]
                smallest = int(np.argmax(np.array(tails) <= float(alpha)))
                bound = hull.bound(place, alpha)
                assert smallest <= bound
                assert bound == smallest or tails[bound - 1] > 0.99 * float(alpha)
            deviation = math.sqrt(float(marginal @ steps**2))
            assert hull.deviation(place) == pytest.approx(deviation, rel=1e-3)
            assert hull.mean_error(place) == pytest.approx(float(marginal @ steps), rel=1e-3)


class TestGaussians:
    @pytest.mark.parametrize("rho", [Fraction(1, 100), Fraction(5)])
    @pytest.mark.parametrize("numbers", [2, 4, 12])
    def test_the_cost_of_every_move_is_at_most_rho_and_of_some_as_much(self, rho, numbers):
        noise = noise_on_several_sums._gaussian(rho, ((3, UP),) * numbers)
        a, b = noise.variances
        assert noise.shares == (rho, 0)

        def cost(move):
            best = sum(move) * b / (a + numbers * b)
            floor = math.floor(best * noise.parts)
            shifts = [Fraction(floor + step, noise.parts) for step in (0, 1)]
            far = [sum((part - s) ** 2 for part in move) / (2 * a) for s in shifts]
            return min(s**2 / (2 * b) + each for s, each in zip(shifts, far, strict=True))

        corners = [(1,) * ones + (0,) * (numbers - ones) for ones in range(numbers + 1)]
        inside = [tuple(Fraction(k * j % 8, 7) for j in range(numbers)) for k in range(1, 8)]
        costs = [cost(move) for move in corners]
        assert max(costs) <= rho and max(map(cost, inside)) <= rho
        assert max(costs) > rho * Fraction(4, 5)

    @staticmethod
    def joint(noise, window):
        """Return the law of two correlated numbers, and of a third by itself."""
        parts = noise.parts
        a, b = map(float, noise.variances)

        def mass(variance):
            span = math.ceil(9 * math.sqrt(variance))
            chances = np.exp(-(np.arange(-span, span + 1.0) ** 2) / (2 * variance))
            return span, chances / chances.sum()

        span, common = mass(b * parts**2)
        rows = []
        for clip, _ in noise.sides[:2]:
            wide, alone = mass(a * (clip * parts) ** 2)
            below = np.concatenate([[0.0], np.cumsum(alone)])
            # z >= k iff g + C h >= L (k - 1/2), that is g >= L k - (L - 1) / 2 - C h.
            edges = parts * np.arange(-window, window + 2) - (parts - 1) // 2
            first = edges[None, :] - clip * np.arange(-span, span + 1)[:, None]
            rows.append(np.diff(below[np.clip(first + wide, 0, len(alone))], axis=1))
        return np.einsum("h,hi,hj->ij", common, *rows)

    @pytest.mark.parametrize("clips", [(1, 1), (1, 2)])
    def test_the_divergence_of_the_released_numbers_is_within_rho(self, clips):
        rho, window = Fraction(1, 2), 18
        sides = tuple((clip, UP) for clip in clips)
        chances = self.joint(noise_on_several_sums._gaussian(rho, sides), window)
        assert chances.sum() == pytest.approx(1, abs=1e-9)
        worst = {alpha: self.divergence(chances, clips, alpha) for alpha in (1.5, 2.0, 6.0)}
        assert all(value <= alpha * float(rho) for alpha, value in worst.items())
        # A mutant: with the variances of twice the rho it is not.
        mutant = self.joint(noise_on_several_sums._gaussian(2 * rho, sides), window)
        assert self.divergence(mutant, clips, 2.0) > 2 * float(rho)

    @staticmethod
    def divergence(chances, clips, alpha):
        worst = 0.0
        size = chances.shape[0]
        for one, two in itertools.product(range(clips[0] + 1), range(clips[1] + 1)):
            near = chances[: size - one, : size - two]
            far = chances[one:, two:]
            for p, q in ((near, far), (far, near)):
                seen = (p > 1e-15) & (q > 1e-15)
                found = np.sum(p[seen] ** alpha * q[seen] ** (1 - alpha))
                worst = max(worst, math.log(found) / (alpha - 1))
        return worst

    def test_what_is_drawn_follows_the_law(self):
        noise = noise_on_several_sums._gaussian(Fraction(1, 20), ((2, UP), (3, UP)))
        window = 60
        chances = self.joint(noise, window)
        first, second = noise.draw(Noise(), 40_000)
        grid = np.indices(chances.shape) - window
        for left, right in ((1, 0), (0, 1), (1, 1), (1, -1)):
            sums = (left * grid[0] + right * grid[1]).ravel()
            totals = np.cumsum(np.bincount(sums + 2 * window, chances.ravel()))

            def cdf(k, totals=totals):
                return totals[np.clip(k + 2 * window, 0, len(totals) - 1)]

            assert follows(left * first + right * second, cdf)
        assert not follows(first - np.roll(second, 1), cdf)  # broken twin: not one draw
        for place, sums in ((0, chances.sum(axis=1)), (1, chances.sum(axis=0))):
            bound = noise.bound(place, ALPHA)
            strays = np.abs(np.arange(-window, window + 1))
            assert sums[strays > bound].sum() <= 0.05 < sums[strays > bound - 3].sum()
            assert noise.deviation(place) ** 2 == pytest.approx(sums @ strays**2, rel=0.02)
