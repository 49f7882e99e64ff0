"""The samplers follow their formulas.

Whole distributions are compared by the bound of Dvoretzky, Kiefer and Wolfowitz (Massart's
constant): P(sup |F_n - F| > t) <= 2 e^(-2 n t^2), for discrete F too. With a false alarm of 1e-10
per comparison t = sqrt(ln(2e10) / (2 n)); chances of one event are the same with two values.
Every comparison has a broken twin, whose F differs by more than 2 t.
"""

import functools
import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.noise import sampling
from beam_dp.mechanisms.noise.sampling import Noise, Stop
from beam_dp.mechanisms.numerics.enclosures import exp_interval, leading_bits

N = 200_000  # t = 0.0077
FALSE_ALARM = 1e-10
WIDE = Fraction(1, 2**90)


def distance(draws, cdf):
    """Return sup over the integers of |F_n - F|: reached at a value drawn or just before one."""
    values, counts = np.unique(draws, return_counts=True)
    after = np.cumsum(counts) / len(draws)
    before = np.concatenate([[0.0], after[:-1]])
    gaps = [abs(after - cdf(values)), abs(before - cdf(values - 1))]
    return float(np.max(gaps))


def follows(draws, cdf):
    return distance(draws, cdf) <= math.sqrt(math.log(2 / FALSE_ALARM) / (2 * len(draws)))


def geometric_cdf(rate):
    # F(-1) = 0 comes out of the formula by itself.
    return lambda k: -np.expm1(-float(rate) * (k + 1).astype(float))


def laplace_cdf(rate):
    rate = float(rate)

    def cdf(k):
        tail = np.exp(-rate * (np.abs(k + 0.5) + 0.5).astype(float)) / (1 + math.exp(-rate))
        return np.where(k >= 0, 1 - tail, tail)

    return cdf


def gaussian_cdf(variance):
    deviation = math.sqrt(variance)
    if deviation > 10**4:  # the continuous one is closer than 1e-5
        return np.vectorize(lambda k: 0.5 + math.erf((float(k) + 0.5) / deviation / 2**0.5) / 2)
    span = math.ceil(12 * deviation) + 3
    mass = np.exp(-(np.arange(-span, span + 1.0) ** 2) / (2 * float(variance)))
    sums = np.cumsum(mass) / np.sum(mass)
    return lambda k: sums[np.clip(k.astype(np.int64) + span, 0, 2 * span)]


def repeated(draw, times):
    return np.concatenate([draw() for _ in range(times)])


RATES = [Fraction(1, 1000), Fraction(2, 7), Fraction(1), Fraction(5)]


class TestDistributions:
    @pytest.mark.parametrize("rate", [*RATES, Fraction(10**40 + 1, 3 * 10**41)])
    def test_geometric(self, rate):
        assert follows(Noise().geometric(rate, N), geometric_cdf(rate))

    @pytest.mark.parametrize("rate", RATES)
    def test_discrete_laplace(self, rate):
        assert follows(Noise().discrete_laplace(rate, N), laplace_cdf(rate))

    @pytest.mark.parametrize("variance", [Fraction(1, 9), Fraction(1), Fraction(50, 7), 10**6])
    def test_discrete_gaussian(self, variance):
        assert follows(Noise().discrete_gaussian(variance, N), gaussian_cdf(variance))

    @pytest.mark.parametrize("rate", [Fraction(255, 2**14), WIDE * 255 / 256])
    def test_low_digits_by_exact_coins_alone(self, rate, monkeypatch):
        # Of n digits with 2^n rate = 255 / 256, the largest that there is.
        monkeypatch.setattr(sampling, "BAND", 2.0)
        digits = sampling.leading_zeros(4 * rate)
        assert float(rate * 2**digits) == 255 / 256
        draws = Noise()._low_digits(rate, digits, 4000)

        def cdf(k):
            return np.expm1(-float(rate) * (k + 1).astype(float)) / math.expm1(-255 / 256)

        assert len(draws) == 4000 and draws.max() < 2**digits and follows(draws, cdf)
        # Broken twin: none is dropped.
        assert not follows(draws, lambda k: (k + 1).astype(float) / 2.0**digits)

    @pytest.mark.audit
    def test_wide_values_follow_the_same_laws(self):
        noise = Noise()
        assert follows(noise.geometric(WIDE, 20_000), geometric_cdf(WIDE))
        assert follows(noise.discrete_laplace(WIDE, 10_000), laplace_cdf(WIDE))
        assert follows(noise.discrete_gaussian(2**180, 5_000), gaussian_cdf(2**180))
        few = repeated(lambda: noise.geometric(WIDE, 32), 200)
        assert follows(few, geometric_cdf(WIDE))
        # The low digits, which that cannot see: all but uniform at this rate.
        for draws in (few, noise.geometric(WIDE, 10_000)):
            low = (draws % 2**20).astype(np.int64)
            assert follows(low, lambda k: (k + 1) / 2.0**20)

    def test_neighbouring_values_are_independent(self):
        # Sums of two: F(k) = 1 - q^(k+1) (1 + (k+1) (1 - q)), negative binomial.
        rate = 0.2
        draws = Noise().geometric(Fraction(1, 5), 2 * N)

        def cdf(k):
            return 1 - np.exp(-rate * (k + 1)) * (1 + (k + 1) * -math.expm1(-rate))

        assert follows(draws[::2] + draws[1::2], cdf)
        assert follows(draws[:N] + draws[N:], cdf)
        assert not follows(2 * draws[::2], cdf)  # broken twin: one value used twice

    @pytest.mark.audit
    @pytest.mark.parametrize("sure", [True, False])
    def test_first_success(self, sure, monkeypatch):
        # By the quick answer for runs that are passed, and by the exact one alone.
        if not sure:
            monkeypatch.setattr(sampling, "BAND", 2.0)
        needs, lengths = [5, 2, 7, 1], [4, 1, 40, 2]
        draws = [Noise().first_success(Fraction(1, 2), needs, lengths) for _ in range(10_000)]
        begins = [0, 4, 5, 45, 47]
        places = np.array([begins[d.run] + d.passed if d else begins[-1] for d in draws])
        failing = -np.expm1(-np.repeat(needs, lengths) / 2)

        def cdf(k, failing=failing):
            left = np.append(np.cumprod(failing), 0)
            return np.where(k < 0, 0, 1 - left[np.clip(k, 0, 47).astype(int)])

        assert follows(places, cdf)
        assert not follows(places, lambda k: cdf(k, failing * 0.97))

    def test_first_success_among_2_to_the_64(self):
        # p = e^-44 = 2^-63.5, so all are passed with probability e^(-2^64 p) = 0.237.
        limit, p = 2**64, math.exp(-44)
        found = [Noise().first_success(Fraction(11), [4], [limit]) for _ in range(1500)]
        draws = np.array([stop.passed if stop else limit for stop in found], dtype=object)
        assert all(type(value) is int and 0 <= value <= limit for value in draws.tolist())

        def cdf(k, p=p):
            return np.where(k >= limit, 1.0, -np.expm1(-p * (k + 1).astype(float)))

        assert follows(draws, cdf)
        assert not follows(draws, lambda k: cdf(k, p * 2))

    def test_bernoulli_below(self):
        bound = functools.partial(exp_interval, Fraction(-3, 4))
        heads = np.array([Noise().bernoulli_below(bound) for _ in range(10_000)]).astype(np.int64)
        assert follows(heads, self.coin(math.exp(-0.75)))
        assert not follows(heads, self.coin(math.exp(-0.5)))
        whole = functools.partial(exp_interval, Fraction(0))
        assert all(Noise().bernoulli_below(whole) for _ in range(100))
        for p in (Fraction(0), Fraction(1)):  # a chance of 1/3 is below, word by word
            assert {Noise().bernoulli_below(lambda bits, p=p: (p, p)) for _ in range(99)} == {p > 0}

    @staticmethod
    def coin(p):
        return lambda k: np.where(k < 0, 0.0, np.where(k < 1, 1 - p, 1.0))


class TestBrokenTwinsFail:
    def test_scale_off_by_a_tenth(self):
        rate = RATES[1]
        for factor in (Fraction(10, 11), Fraction(11, 10)):
            assert not follows(Noise().geometric(rate * factor, N), geometric_cdf(rate))
            assert not follows(Noise().discrete_laplace(rate * factor, N), laplace_cdf(rate))

    def test_double_weight_at_zero(self):
        # A sign drawn for the magnitude without rejecting minus zero (CKS20, Algorithm 2).
        noise, rate = Noise(), Fraction(1, 2)
        signs = 1 - 2 * (noise.words(N) >> np.uint64(63)).astype(np.int64)
        assert not follows(noise.geometric(rate, N) * signs, laplace_cdf(rate))

    def test_variance_for_deviation_and_a_tenth_more_deviation(self):
        for wrong in (Fraction(5), Fraction(25 * 121, 100)):
            assert not follows(Noise().discrete_gaussian(wrong, N), gaussian_cdf(25))


class GivenWords(Noise):
    """Feeds given words, and refuses to go on when they are used up."""

    def __init__(self, words):
        object.__setattr__(self, "queue", list(words))

    def words(self, size):
        taken, rest = self.queue[:size], self.queue[size:]
        if len(taken) < size:
            raise RuntimeError("no words left")
        object.__setattr__(self, "queue", rest)
        return np.array(taken, dtype=np.uint64)


ALL_SHORT_WORDS = np.arange(2**16, dtype=np.uint16).view(np.uint64).tolist()
NO_HEADS = 2**64 - 1


class TestEveryWord:
    """All 2^16 first words in turn: the chance is then known exactly, not estimated."""

    # These words decide the first trial of the run: there are no low digits.
    @pytest.mark.parametrize("rate", [Fraction(5), Fraction(8)])
    @pytest.mark.parametrize("tie", [True, False])
    @pytest.mark.parametrize("equal_words", [0, 3])
    def test_heads_are_the_words_below_p_and_a_tie_reads_on(self, rate, tie, equal_words):
        def bound(bits):
            return exp_interval(-rate, bits)

        first = leading_bits(bound, 16)
        # The tie's next words: some equal to those of p, then one below or above it, and then the
        # word that speaks most for the other side.
        following = [leading_bits(bound, 16 + 64 * n) & NO_HEADS for n in range(1, 6)]
        apart = following[equal_words] + (-1 if tie else 1)
        extension = [*following[:equal_words], apart, NO_HEADS if tie else 0]
        noise = GivenWords([*ALL_SHORT_WORDS, *extension, *[NO_HEADS] * (2**14 + 8)])
        heads = np.arange(2**16) < first
        heads[first] = tie
        assert noise.geometric(rate, 2**16).tolist() == heads.astype(int).tolist()

    def test_a_bernoulli_tie_of_64_bits_reads_on(self):
        third = (2**64 - 1) // 3  # 1/3 = 0.010101...

        def exactly_a_third(bits):
            return Fraction(1, 3), Fraction(1, 3)

        assert GivenWords([third - 1]).bernoulli_below(exactly_a_third)
        assert not GivenWords([third + 1]).bernoulli_below(exactly_a_third)
        assert GivenWords([third, third, third - 1]).bernoulli_below(exactly_a_third)
        assert not GivenWords([third, third, third + 1]).bernoulli_below(exactly_a_third)
        with pytest.raises(RuntimeError):
            GivenWords([third]).bernoulli_below(exactly_a_third)

    @pytest.mark.parametrize("gap", [-1, 1])
    @pytest.mark.parametrize("draw", [0, 1, -1])
    @pytest.mark.parametrize("variance", [Fraction(n, 4) for n in (5, 8, 11, 15)])
    def test_a_gaussian_coin_next_to_its_chance_is_decided_by_rationals(self, variance, draw, gap):
        # The Laplace law of scale 2 proposes, and e^-gamma keeps: CKS20, Algorithm 3.
        gamma = (abs(draw) - variance / 2) ** 2 / (2 * variance)
        chance = leading_bits(lambda bits: exp_interval(-gamma - Fraction(1, 2**200), bits), 96)
        first, near = divmod(min(chance + gap, 2**96 - 1), 2**64)
        words = [first, near, *[NO_HEADS if gap < 0 else 0] * 2]
        [kept] = GivenWords(words)._gaussian_coins(np.array([draw]), variance, 2)
        assert kept == (gap < 0) or chance + gap == 2**96

    @pytest.mark.parametrize("error", [2.0**-22, -(2.0**-22)])
    def test_a_float_exp_that_wrong_changes_no_coin(self, error, monkeypatch):
        exact_exp = np.exp
        monkeypatch.setattr(np, "exp", lambda x: exact_exp(x) + error)
        for gap in (-1, 1):
            self.test_a_gaussian_coin_next_to_its_chance_is_decided_by_rationals(
                Fraction(2), 0, gap
            )


class TestSizesAndParameters:
    @pytest.mark.parametrize("size", [0, 2**16 + 1])
    def test_the_type_depends_on_the_rate_alone(self, size):
        noise = Noise()
        for draws in (noise.geometric(Fraction(1, 2**40), size), noise.discrete_laplace(3, size)):
            assert draws.dtype == np.int64 and draws.shape == (size,)
        assert noise.discrete_gaussian(2**70, size).dtype == np.int64

    def test_enormous_rates_and_tiny_variances_give_zeros(self):
        noise = Noise()
        for size in (3, 1000):
            assert not noise.discrete_laplace(10**30, size).any()
            assert not noise.discrete_laplace(Fraction(10**400, 3), size).any()
            assert not noise.discrete_gaussian(Fraction(1, 10**30), size).any()
            assert not noise.discrete_gaussian(Fraction(1, 10**400), size).any()

    def test_first_success_at_the_ends(self):
        noise = Noise()
        unit = Fraction(1, 2)
        assert noise.first_success(unit, [0], [2**64]) == Stop(0, 0)
        assert noise.first_success(unit, [10**4, -7], [3, 9]) == Stop(1, 0)
        assert noise.first_success(unit, [], []) is None
        assert noise.first_success(Fraction(10**30), [1, 2], [2**70, 2**2000]) is None
        assert noise.first_success(Fraction(1, 10**30), [1], [2**70]) == Stop(0, 0)

    @pytest.mark.parametrize("method", ["geometric", "discrete_laplace", "discrete_gaussian"])
    def test_wrong_parameters_are_refused(self, method):
        draw = getattr(Noise(), method)
        for amount in (0, -1, float("nan"), float("inf")):
            with pytest.raises(ValueError, match=f"Noise.{method}: "):
                draw(amount, 3)
        for amount in (True, "1", None):
            with pytest.raises(TypeError, match=f"Noise.{method}: "):
                draw(amount, 3)
