"""Draw exact integer noise: the only module that draws randomness.

Every bit comes from the operating system at the moment it is needed (`os.urandom`). There is
no generator, no seed and no buffer, so nothing can be pickled, forked, seeded or replayed, and
where the system has no entropy the draw raises before any value exists. Every coin is decided
by comparing uniform bits with the exact binary expansion of its probability, extended as far
as the comparison needs: the distributions are those of the formulas, not of floats near them.

*The first success of many independent trials* is found from one uniform real U, exactly. With
E = -ln U, P(floor(E / h) >= k) = P(U <= e^(-h k)) = e^(-h k): floor(E / h) is the number of
failures before the first success where every trial fails with probability e^-h.
The uniform is read bit by bit until the floor is certain, so no rounding error can reach it.
"""

import dataclasses
import functools
import math
import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.enclosures import (
    QUICK_BITS,
    Bound,
    Interval,
    exp_interval,
    leading_bits,
    log_interval,
)


def first_success(uniform: Bound, rate: Fraction, limit: int) -> int:
    """Return min(G, limit), P(G >= n) = (1 - e^-rate)^n, for rate > 0 and limit >= 0.

    Args:
        uniform: bits -> (low, high), low <= U < high, at most 2^-bits apart; later calls
            refine the same U.
        rate: minus the logarithm of the chance of success of one trial.
        limit: as large as one likes; the time grows with its length in bits only.
    """
    # G <= limit is known to less than 1 once the chance p is known to within p 2^-64 / limit.
    depth = min(limit.bit_length(), 3 * math.ceil(rate) // 2)
    bits = 64 + 2 * depth + leading_zeros(rate)
    while True:
        low, high = uniform(bits)
        slowest, fastest = _hazard(rate, bits)
        fewest, most = 0, limit
        if low > 0:
            # ln low <= ln U < ln high = ln low + ln(1 + (high - low) / low)
            #                        <= ln low + (high - low) / low
            log_low, log_high = log_interval(low, bits)
            fewest = max(0, _floor_ratio(-log_high - (high - low) / low, fastest))
            most = _floor_ratio(-log_low, slowest) if slowest > 0 else limit
        if min(fewest, limit) == min(most, limit):
            return min(most, limit)
        bits *= 2


def leading_zeros(rate: Fraction) -> int:
    """Return some n >= 0 with 2^n rate >= 1, the smallest or one more."""
    return max(0, rate.denominator.bit_length() - rate.numerator.bit_length() + 1)


def _floor_ratio(top: Fraction, bottom: Fraction) -> int:
    """Return floor(top / bottom), bottom > 0, without reducing the fraction."""
    return top.numerator * bottom.denominator // (top.denominator * bottom.numerator)


def _hazard(rate: Fraction, bits: int) -> Interval:
    """Enclose -ln(1 - e^-rate).

    With bits >= leading_zeros(rate) + 2 the upper end of e^-rate stays below 1.
    """
    low, high = exp_interval(-rate, bits)
    return -log_interval(1 - low, bits)[1], -log_interval(1 - high, bits)[0]


Integers = npt.NDArray[Any]  # int64, or Python ints as objects
Enclosing = Callable[[Fraction, int], Interval]

# From this rate on a geometric value exceeds 2^62 with probability e^(-2^22): int64 holds it.
SMALLEST_INT64_RATE = Fraction(1, 1 << 40)
BLOCK = 1 << 16  # values drawn at a time: the working arrays stay in the cache
BAND = 2.0**-20  # how wrong the float chance of a coin may be


class LazyUniform:
    """One uniform real in [0, 1), known to as many bits as were asked for so far.

    It cannot be copied or pickled: two copies would agree on bits that are yet to be drawn.
    """

    __slots__ = ("_bits", "_noise", "_numerator")

    def __init__(self, noise: "Noise", numerator: int = 0, bits: int = 0) -> None:
        """Start with the `bits` leading bits in `numerator`; further ones come from `noise`."""
        self._noise = noise
        self._numerator = numerator
        self._bits = bits

    def interval(self, bits: int) -> Interval:
        """Return low, high with low <= U < high and high - low <= 2^-bits.

        Later calls refine the same number.
        """
        if bits > self._bits:
            words = self._noise.words(-(-(bits - self._bits) // 64))
            for word in words.tolist():
                self._numerator = self._numerator << 64 | word
            self._bits += 64 * len(words)
        whole = 1 << self._bits
        return Fraction(self._numerator, whole), Fraction(self._numerator + 1, whole)

    def is_below(self, bound: Bound) -> bool:
        """Decide U < p for the real p that `bound` encloses; it ends with probability 1."""
        bits = QUICK_BITS
        while True:
            low, high = self.interval(bits)
            p_low, p_high = bound(bits)
            if high <= p_low or p_high <= low:
                return high <= p_low
            bits *= 2

    def __reduce__(self) -> NoReturn:
        """Refuse pickling and copying."""
        raise checks.ParameterTypeError("LazyUniform", "randomness", "not be copied or pickled")


class Stop(NamedTuple):
    """Where a scan ended: in which run, and how many candidates of the run it passed."""

    run: int
    passed: int


@dataclasses.dataclass(frozen=True)
class Noise:
    """The exact samplers, without any state.

    Every value follows its formula exactly. Two `Noise` objects are equal, and what they draw
    is independent: after pickling, forking and in threads too.

    Attributes:
        is_off: whether all is 0 in a trial, which asks for true numbers.
    """

    is_off: ClassVar[bool] = False

    def words(self, size: int) -> npt.NDArray[np.uint64]:
        """Return `size` independent uniform 64-bit words of the operating system.

        Raises:
            OSError: from the system, where it has no entropy.
        """
        return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)

    def uniform(self) -> LazyUniform:
        """Return a fresh uniform real in [0, 1)."""
        return LazyUniform(self)

    def bernoulli_below(self, bound: Bound) -> bool:
        """Return True with probability exactly p, for the real p that `bound` encloses.

        Args:
            bound: for each number of bits a pair of rationals, low <= p <= high, at most
                2^-bits apart.
        """
        return self.uniform().is_below(bound)

    def coins_near(
        self, chances: npt.NDArray[np.float64], bound_of: Callable[[int], Bound]
    ) -> npt.NDArray[np.bool_]:
        """Return independent coins whose exact chances floats are near to.

        Args:
            chances: each within 2^-21 of the exact chance; NaN says nothing of it.
            bound_of: from an index, what encloses its exact chance; see `bernoulli_below`.
        """
        words = self.words(-(-len(chances) // 2)).view(np.uint32)[: len(chances)]
        uniforms = words * 2.0**-32
        heads = uniforms < chances - BAND
        unsure = ~(heads | (uniforms > chances + BAND))
        for i in np.flatnonzero(unsure).tolist():
            heads[i] = LazyUniform(self, int(words[i]), 32).is_below(bound_of(i))
        return heads

    def below(self, limits: Integers) -> Integers:
        """Return independent integers, each uniform from 0 to before its limit, of at least 1."""
        drawn = np.zeros_like(limits)
        undecided = np.arange(len(limits))
        while undecided.size:
            most = limits[undecided] - 1
            tried = self._bits(most)
            drawn[undecided] = tried
            undecided = undecided[tried > most]
        return drawn

    def _bits(self, most: Integers) -> Integers:
        """Return as many uniform bits as each number has."""
        if most.dtype != object:
            mask = most.copy()
            for shift in (1, 2, 4, 8, 16, 32):
                mask |= mask >> shift
            return self.words(len(most)).view(np.int64) & mask
        lengths = [int(number).bit_length() for number in most.tolist()]
        return np.array([self._integer(length) for length in lengths] or [0], object)[: len(most)]

    def _integer(self, bits: int) -> int:
        words = self.words(1 + bits // 64)
        return int.from_bytes(words.tobytes(), "little") & ((1 << bits) - 1)

    def geometric(self, rate: checks.Real, size: int) -> Integers:
        """Return independent values with P(k) = (1 - e^-rate) e^(-rate k), k >= 0.

        Exact for every rational rate > 0. The type depends on the rate alone: int64 from
        2^-40 on, Python ints in an object array below.

        Raises:
            ValueError: unless rate > 0.
        """
        exact = _positive("Noise.geometric", "rate", rate)
        sizes = [min(BLOCK, size - start) for start in range(0, size, BLOCK)] or [0]
        return np.concatenate([self._block(exact, length) for length in sizes])

    def discrete_laplace(self, rate: checks.Real, size: int) -> Integers:
        """Return independent values with P(k) = (1 - q) / (1 + q) q^|k|, q = e^-rate.

        Exact for every rational rate > 0; the type is that of `geometric`.

        Raises:
            ValueError: unless rate > 0.
        """
        # It is the difference of two independent geometric values G, H: for k >= 0,
        # P(G - H = k) = sum_j P(G = k + j) P(H = j) = (1 - q)^2 q^k sum_j q^(2 j)
        #              = (1 - q)^2 q^k / (1 - q^2) = (1 - q) / (1 + q) q^k,
        # and the difference is symmetric. No sign is drawn, so 0 needs no correction.
        _positive("Noise.discrete_laplace", "rate", rate)
        pair = self.geometric(rate, 2 * size)
        return pair[:size] - pair[size:]

    def discrete_gaussian(self, variance: checks.Real, size: int) -> Integers:
        """Return independent values with P(k) proportional to e^(-k^2 / (2 variance)).

        Exact for every rational variance > 0. int64 where floor(sqrt(variance)) < 2^40,
        Python ints in an object array above. The true variance is at most `variance`.

        Raises:
            ValueError: unless variance > 0.

        Source: Canonne, Kamath, Steinke (2004.00010), Algorithm 3.
        """
        exact = _positive("Noise.discrete_gaussian", "variance", variance)
        missing = size
        scale = math.isqrt(math.floor(exact)) + 1  # floor(sqrt(variance)) + 1
        kept: list[Integers] = [np.empty(0, _type(Fraction(1, scale)))]
        while missing:
            draws = self.discrete_laplace(Fraction(1, scale), missing)
            draws = draws[self._gaussian_coins(draws, exact, scale)]
            kept.append(draws)
            missing -= len(draws)
        return np.concatenate(kept)

    def first_success(
        self, unit: Fraction, needs: Sequence[int], lengths: Sequence[int]
    ) -> "Stop | None":
        """Return where the first of many independent trials succeeds; None where none does.

        Trials stand in runs: each of `lengths` trials succeeds with probability e^(-unit need), or
        surely for a need of at most 0. The time does not grow with the lengths, which may be 2^64
        and more.

        Args:
            unit: above 0.
            needs: one per run.
            lengths: one per run, at least 1.
        """
        # A run of n trials is passed where U <= (1 - p)^n, which is at least 1 - n p.
        words = self.words(len(needs)).tolist()
        for run, (need, length, word) in enumerate(zip(needs, lengths, words, strict=True)):
            if need <= 0:
                return Stop(run, 0)
            rarity = float(unit) * need - math.log(length)
            if rarity > 0 and word * 2.0**-64 < 1 - math.exp(-rarity) - BAND:
                continue
            uniform = LazyUniform(self, word, 64)
            passed = first_success(uniform.interval, unit * need, length)
            if passed < length:
                return Stop(run, passed)
        return None

    def _block(self, rate: Fraction, size: int) -> Integers:
        """Return geometric values: the low binary digits, and the number above them."""
        # With q = e^-rate, a value with l in the n low digits and j above, g = l + j 2^n, has
        #   (1 - q) q^g = [ (1 - q) / (1 - Q) q^l ] * (1 - Q) Q^j, Q = q^(2^n).
        # So l and j are independent, and j is a geometric value of rate 2^n rate, which is at
        # least 1/4, and below 1 if there are any low digits.
        digits = leading_zeros(4 * rate)
        values = self._low_digits(rate, digits, size)
        values += self._runs(rate * (1 << digits), size).astype(values.dtype) << digits
        return values

    def _low_digits(self, rate: Fraction, digits: int, size: int) -> Integers:
        """Return numbers of so many binary digits, l with a chance in proportion to e^(-rate l)."""
        # A uniform one is kept with probability e^(-rate l) > 1/e, as 2^digits rate < 1 (Canonne,
        # Kamath, Steinke, Algorithm 2).
        kept: list[Integers] = []
        while size and digits:
            tried = self._bits(np.full(size, (1 << digits) - 1, _type(rate)))
            chances = np.exp(-float(rate * (1 << digits)) * _ratio(tried, 1 << digits))
            tried = tried[self.coins_near(chances, functools.partial(_kept_chance, rate, tried))]
            kept.append(tried)
            size -= len(tried)
        return np.concatenate([np.zeros(size, _type(rate)), *kept])

    def _runs(self, rate: Fraction, size: int) -> npt.NDArray[np.int64]:
        """Return geometric values: heads in a row, of coins of e^-rate."""
        runs = np.zeros(size, np.int64)
        alive = np.flatnonzero(self._fixed_coins(exp_interval, -rate, size))
        while alive.size:
            runs[alive] += 1
            alive = alive[self._fixed_coins(exp_interval, -rate, alive.size)]
        return runs

    def _fixed_coins(self, enclosing: Enclosing, x: Fraction, size: int) -> npt.NDArray[np.bool_]:
        """Return exact coins of the p that is enclosed.

        16 uniform bits decide unless they equal those of p: then more bits are drawn.
        """
        bound, first = functools.partial(enclosing, x), _first_bits(enclosing, x)
        uniforms = self.words(-(-size // 4)).view(np.uint16)[:size]
        heads = uniforms < first
        for tie in np.flatnonzero(uniforms == first).tolist():
            heads[tie] = LazyUniform(self, first, 16).is_below(bound)
        return heads

    def _gaussian_coins(
        self, draws: Integers, variance: Fraction, scale: int
    ) -> npt.NDArray[np.bool_]:
        """Return exact coins of e^-gamma, gamma = (|draw| - variance / scale)^2 / (2 variance)."""
        # With r = |draw| / scale and s = variance / scale^2 < 1, gamma = (r - s)^2 / (2 s): no
        # overflow at any size. r and s have relative errors of 2^-52, which moves e^-gamma by less
        # than 2^-48; any exp that is right to 2^-21 keeps within BAND. Rationals decide the
        # uniforms inside the band, and NaN (s = 0 as a float).
        with np.errstate(all="ignore"):
            share = np.float64(variance / scale**2)
            chances = np.exp(-((_ratio(draws, scale) - share) ** 2) / (2 * share))

        def bound_of(index: int) -> Bound:
            gamma = (abs(int(draws[index])) - variance / scale) ** 2 / (2 * variance)
            return functools.partial(exp_interval, -gamma)

        return self.coins_near(chances, bound_of)


SYSTEM_NOISE = Noise()


def _kept_chance(rate: Fraction, tried: Integers, index: int) -> Bound:
    """Return what encloses e^(-rate tried[index])."""
    return functools.partial(exp_interval, -rate * int(tried[index]))


# The table below holds functions of parameters, never anything random.
@functools.lru_cache(maxsize=1 << 14)
def _first_bits(enclosing: Enclosing, x: Fraction) -> int:
    return leading_bits(functools.partial(enclosing, x), 16)


def _ratio(draws: Integers, scale: int) -> npt.NDArray[np.float64]:
    """Return |draws| / scale as floats, whatever the size of the integers."""
    if draws.dtype != object:
        return np.asarray(np.abs(draws) / scale, np.float64)
    return ((np.abs(draws) << 64) // scale).astype(np.float64) * 2.0**-64


def _type(rate: Fraction) -> type:
    return np.int64 if rate >= SMALLEST_INT64_RATE else object


def _positive(subject: str, name: str, value: object) -> Fraction:
    return checks.fraction_between(subject, name, value, 0, math.inf)
