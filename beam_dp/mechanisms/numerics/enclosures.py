"""Enclose exp and log between exact rationals.

A sampler that must decide "is this uniform below e^-x" asks for an interval around e^-x and,
where that does not decide, for a smaller one. So a rounding error here costs a second look,
never a biased coin. Every function answers `(low, high)` with low <= true value <= high and
high - low <= 2^-bits.
"""

import decimal
import math
from collections.abc import Callable
from fractions import Fraction

Interval = tuple[Fraction, Fraction]
Bound = Callable[[int], Interval]

# Up to so many bits the platform's exp answers, widened by 2^-25 each way: 2^15 times their
# error, if it is right to 2^-40 (libm's is right to 2^-50). It settles all but one in 2^23 of
# the coins; every finer question is answered by proved arithmetic.
QUICK_BITS = 24

ONE = Fraction(1)
ZERO = Fraction(0)
_HALVINGS = 80  # of an interval of floats: more than they tell apart


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
        margin, value = Fraction(1, 2 << QUICK_BITS), Fraction(math.exp(x))
        return max(value - margin, ZERO), min(value + margin, ONE)
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
    # |ln x| <= size. Let u = 10^(1 - digits): rounding x moves the logarithm by at most 2 u and
    # rounding the result by at most (size + 1) u: together at most 2^-(bits + 2).
    size = max(x.numerator.bit_length(), x.denominator.bit_length())
    context = _context(bits + 2 + (size + 3).bit_length())
    return _widen(context.ln(_rounded(x, context)), bits)


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


def last_where(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the last float, or just beside, where something holds that holds from `low` on."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def root_below(square: Fraction) -> Fraction:
    """Return a rational just below the root of `square`, by less than one part in 2^62 of it."""
    shift = 64 + max(0, square.denominator.bit_length() - square.numerator.bit_length())
    scaled = (square.numerator << 2 * shift) // square.denominator
    return Fraction(math.isqrt(scaled), 1 << shift)
