"""Enclose exp, log and the normal distribution function between exact rationals.

A sampler that must decide "is this uniform below e^-x" asks for an interval around e^-x and,
where that does not decide, for a smaller one. So a rounding error here costs a second look,
never a biased coin. Every function answers `(low, high)` with low <= true value <= high and
high - low <= 2^-bits.
"""

import decimal
import functools
import math
from collections.abc import Callable
from fractions import Fraction

from beam_dp.mechanisms.numerics import checks

Interval = tuple[Fraction, Fraction]
Bound = Callable[[int], Interval]

# Up to so many bits the platform's exp and erf answer, widened by 2^-25 each way: 2^15 times their
# error, if they are right to 2^-40 (libm's are right to 2^-50). It settles all but one in 2^23 of
# the coins; every finer question is answered by proved arithmetic.
QUICK_BITS = 24

HALF = Fraction(1, 2)
ONE = Fraction(1)
ZERO = Fraction(0)


def exp_interval(x: Fraction, bits: int) -> Interval:
    """Enclose e^x.

    The interval holds e^x and is at most 2^-bits wide; it stays within [0, 1] for x <= 0.
    Where x <= -bits it is (0, 2^-bits) at once, however large -x is; x = 0 gives (1, 1). For
    positive x the work grows with x, since e^x has about 1.45 x bits before the point.

    Source: `decimal.Decimal.exp` is correctly rounded, as its documentation promises.
    """
    if x == 0:
        return ONE, ONE
    step = Fraction(1, 1 << bits)
    if x <= -bits:  # e^x <= e^-bits < 2^-bits
        return ZERO, step
    if abs(x) <= step / 2:  # |e^x - 1| <= 2 |x|
        return (ONE, ONE + step) if x > 0 else (ONE - step, ONE)
    if bits <= QUICK_BITS and x < 0:
        return _around(math.exp(x), ONE)
    # 2^whole >= max(1, e^x), for 1.5 > 1 / ln 2. Let u = 10^(1 - digits). x is rounded to x' with
    # |x' - x| <= |x| u, so |e^x' - e^x| <= 2 |x| u e^x, and rounding the result adds at most
    # u e^x' <= 2 u e^x: together 2^whole (2 |x| + 2) u <= 2^-(bits + 2) for the digits below.
    magnitude = math.ceil(abs(x))
    whole = 3 * magnitude // 2 + 1 if x > 0 else 0
    context = _context(bits + 2 + whole + (2 * magnitude + 2).bit_length())
    low, high = _widen(context.exp(_rounded(x, context)), bits)
    return max(low, ZERO), min(high, ONE) if x < 0 else high


def log_interval(x: Fraction, bits: int) -> Interval:
    """Enclose the natural logarithm of x > 0.

    The interval holds ln x and is at most 2^-bits wide.

    Source: `decimal.Decimal.ln` is correctly rounded, as its documentation promises.
    """
    checks.require(x > 0, "log_interval", "x", "be above 0")
    # |ln x| <= size. Let u = 10^(1 - digits): rounding x moves the logarithm by at most 2 u and
    # rounding the result by at most (size + 1) u: together at most 2^-(bits + 2).
    size = max(x.numerator.bit_length(), x.denominator.bit_length())
    context = _context(bits + 2 + (size + 3).bit_length())
    return _widen(context.ln(_rounded(x, context)), bits)


def normal_cdf_interval(d: int, variance: Fraction, bits: int) -> Interval:
    """Enclose Phi(d / sqrt(variance)), Phi being the standard normal distribution function.

    The interval holds the value, lies within [0, 1] and is at most 2^-bits wide. d = 0 gives
    (1/2, 1/2). Where |d| is beyond sqrt(2 bits variance) the answer is one step of 2^-bits at
    0 or at 1, however large |d| is.
    """
    checks.require(variance > 0, "normal_cdf_interval", "variance", "be above 0")
    if d == 0:
        return HALF, HALF
    square = Fraction(d * d) / variance
    if square >= 2 * bits:  # 1 - Phi(z) <= e^(-z^2 / 2) / 2 <= e^-bits / 2 < 2^-bits
        low, high = HALF - Fraction(1, 1 << bits), HALF
    elif bits <= QUICK_BITS:
        low, high = _around(math.erf(math.sqrt(square / 2)) / 2, HALF)
    else:
        low, high = _half_normal(square, bits)
    return (HALF + low, HALF + high) if d > 0 else (HALF - high, HALF - low)


def leading_bits(bound: Bound, count: int) -> int:
    """Return floor(2^count p) for the real p >= 0 that `bound` encloses.

    It ends unless 2^count p is an integer that `bound` never pins down exactly; the callers'
    p are transcendental.
    """
    bits = count + 64
    while True:
        low, high = (math.floor(side * (1 << count)) for side in bound(bits))
        if low == high:
            return low
        bits *= 2


def _around(value: float, ceiling: Fraction) -> Interval:
    """Return the interval of half-width 2^-(QUICK_BITS + 1) around a float, within [0, ceiling]."""
    margin = Fraction(1, 2 << QUICK_BITS)
    return max(Fraction(value) - margin, ZERO), min(Fraction(value) + margin, ceiling)


def _half_normal(square: Fraction, bits: int) -> Interval:
    """Enclose Phi(z) - 1/2 for z > 0, z^2 = square, by the series without subtraction.

    Phi(z) - 1/2 = z e^(-z^2 / 2) / sqrt(2 pi) * sum_k (z^2)^k / (1 * 3 * ... * (2 k + 1)): all
    terms are positive (Abramowitz and Stegun 26.2.11), so the product of the lower
    ends is below the value, and that of the upper ends above it. The work precision grows until the
    interval is narrow enough.
    """
    work = bits + 32 + math.ceil(square)
    while True:
        power = exp_interval(-square / 2, work)
        root, total = _root(square, work), _sum(square, work)
        low, high = (root[end] * power[end] * total[end] for end in (0, 1))
        if high - low <= Fraction(1, 1 << bits):
            return low, min(high, HALF)
        work *= 2


def _root(square: Fraction, work: int) -> Interval:
    """Enclose sqrt(square / (2 pi)) in steps of 2^-work."""
    pi_low, pi_high = pi_interval(work)
    low = math.isqrt(math.floor(square / (2 * pi_high) * (1 << 2 * work)))
    high = math.isqrt(math.floor(square / (2 * pi_low) * (1 << 2 * work))) + 1
    return Fraction(low, 1 << work), Fraction(high, 1 << work)


def _sum(square: Fraction, work: int) -> Interval:
    """Enclose sum_k square^k / (1 * 3 * ... * (2 k + 1)) in steps of 2^-work.

    Each term is the last one times square / (2 k + 1), rounded down in one sum and up in the
    other. The sums stop once that ratio is at most 1/2, so that all later terms together are at
    most the last one, and the last term is at most one step.
    """
    step_low = math.floor(square * (1 << work))
    step_high = step_low + 1
    low = high = term_low = term_high = 1 << work
    odd = 1
    while term_high > 1 or 2 * square > odd:
        odd += 2
        term_low = (term_low * step_low >> work) // odd
        term_high = -((-term_high * step_high >> work) // odd)
        low, high = low + term_low, high + term_high
    return Fraction(low, 1 << work), Fraction(high + term_high, 1 << work)


@functools.lru_cache(maxsize=64)
def pi_interval(bits: int) -> Interval:
    """Enclose pi = 16 atan(1/5) - 4 atan(1/239) (Machin, 1706) within 2^-bits."""
    # Each arctangent is off by less than one unit per term (its floor) and one for the rest of
    # the alternating series: fewer than `work` units, as 5^2 > 2 and so terms <= work / 2 + 1.
    guard = bits.bit_length() + 16
    work = bits + guard
    centre = 16 * _inverse_arctangent(5, work) - 4 * _inverse_arctangent(239, work)
    return Fraction(centre - 20 * work, 1 << work), Fraction(centre + 20 * work, 1 << work)


def _inverse_arctangent(k: int, work: int) -> int:
    """Return 2^work atan(1 / k), each term of its alternating series rounded down."""
    total, power, odd = 0, (1 << work) // k, 1
    while power:
        total += power // odd if odd % 4 == 1 else -(power // odd)
        power //= k * k
        odd += 2
    return total


def _context(bits: int) -> decimal.Context:
    """Return a decimal context with u = 10^(1 - digits) <= 2^-bits, independent of the user's.

    0.30103 > log10(2), so digits - 1 >= bits log10(2).
    """
    return decimal.Context(
        prec=bits * 30103 // 100000 + 2,
        rounding=decimal.ROUND_HALF_EVEN,
        Emin=decimal.MIN_EMIN,
        Emax=decimal.MAX_EMAX,
        capitals=1,
        clamp=0,
        flags=[],
        traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
    )


def _rounded(x: Fraction, context: decimal.Context) -> decimal.Decimal:
    """Return x rounded once: integers become decimals without rounding."""
    return context.divide(decimal.Decimal(x.numerator), decimal.Decimal(x.denominator))


def _widen(value: decimal.Decimal, bits: int) -> Interval:
    """Enclose every real within 2^-(bits + 2) of `value` by dyadic rationals.

    With step = 2^-(bits + 2) and n step <= value < (n + 1) step, these reals lie between
    (n - 1) step and (n + 2) step: 3/4 of 2^-bits.
    """
    top, bottom = value.as_integer_ratio()
    units = (top << bits + 2) // bottom
    return Fraction(units - 1, 4 << bits), Fraction(units + 2, 4 << bits)


def root_below(square: Fraction) -> Fraction:
    """Return a rational just below the root of `square`, by less than one part in 2^62 of it."""
    shift = 64 + max(0, square.denominator.bit_length() - square.numerator.bit_length())
    scaled = (square.numerator << 2 * shift) // square.denominator
    return Fraction(math.isqrt(scaled), 1 << shift)
