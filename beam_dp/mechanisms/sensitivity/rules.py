"""Upper bounds of the sensitivity of sums, products, quotients and compositions of functions.

They follow from the calculus of differences. With d_i f(x) = f(x + e_i) - f(x), for f, g with
values in R (f may be a vector, with a norm):

    d_i (f + g)(x) = d_i f(x) + d_i g(x),
    d_i (f g)(x)   = f(x + e_i) d_i g(x) + g(x) d_i f(x),
    d_i (f / g)(x) = d_i f(x) / g(x + e_i) - f(x) d_i g(x) / (g(x) g(x + e_i)).

*There is no chain rule*: d_i (h o f)(x) is not h'(f(x)) d_i f(x), nor bounded by sup |h'| over the
values that f takes. For f(x) = x and h(t) = sin^2(pi t / 2), h' is 0 at every integer, but h o f
still moves by 1 with every person: h' says nothing about the jump between two values. What holds is
|h(s) - h(t)| <= Lip(h) |s - t|, with the Lipschitz constant on a convex set around the values (or
on the values themselves, compared two by two).

All bounds hold for local sensitivities as well, if the sup and the inf are over x and all of its
neighbours. Every result is exact for ints and Fractions; a float counts as the exact number it
holds.

Source: "Sensitivity as the Operator Norm of a Derivative", with the rules for differences.
"""

import math
from fractions import Fraction

from beam_dp.mechanisms.numerics import checks


def sum_bound(*sensitivities: checks.Real) -> Fraction:
    """Return an upper bound of the sensitivity of f + g + ...: the sum of their sensitivities."""
    return sum((_at_least_0("sum_bound", "each", delta) for delta in sensitivities), Fraction(0))


def scaled_bound(factor: checks.Real, sensitivity: checks.Real) -> Fraction:
    """Return the sensitivity of c f: |c| times the sensitivity of f."""
    exact = checks.number("scaled_bound", "factor", factor)
    return abs(exact) * _at_least_0("scaled_bound", "sensitivity", sensitivity)


def product_bound(
    f_sensitivity: checks.Real, g_sensitivity: checks.Real, f_most: checks.Real, g_most: checks.Real
) -> Fraction:
    """Return an upper bound of the sensitivity of f g: sup|f| Delta(g) + sup|g| Delta(f).

    Args:
        f_sensitivity: that of f, which may be a vector (then sup|f| is of its norm).
        g_sensitivity: that of g, a number.
        f_most: at least |f| everywhere.
        g_most: at least |g| everywhere.

    Raises:
        TypeError, ValueError: unless all are finite numbers of at least 0.
    """
    owner = "product_bound"
    f, g = (
        _at_least_0(owner, "f_sensitivity", f_sensitivity),
        _at_least_0(owner, "g_sensitivity", g_sensitivity),
    )
    return _at_least_0(owner, "f_most", f_most) * g + _at_least_0(owner, "g_most", g_most) * f


def quotient_bound(
    f_sensitivity: checks.Real,
    g_sensitivity: checks.Real,
    f_most: checks.Real,
    g_least: checks.Real,
) -> Fraction:
    """Return an upper bound of the sensitivity of f / g: Delta(f) / m + sup|f| Delta(g) / m^2.

    Args:
        f_sensitivity: that of f, which may be a vector (then sup|f| is of its norm).
        g_sensitivity: that of g, a number.
        f_most: at least |f| everywhere.
        g_least: m > 0, at most |g| everywhere.

    Raises:
        TypeError, ValueError: unless all are finite, the first three at least 0 and the last above.
    """
    owner = "quotient_bound"
    f = _at_least_0(owner, "f_sensitivity", f_sensitivity)
    g = _at_least_0(owner, "g_sensitivity", g_sensitivity)
    least = checks.fraction_between(owner, "g_least", g_least, 0, math.inf)
    return f / least + _at_least_0(owner, "f_most", f_most) * g / least**2


def composition_bound(lipschitz: checks.Real, sensitivity: checks.Real) -> Fraction:
    """Return an upper bound of the sensitivity of h o f: Lip(h) Delta(f).

    Lip(h) is the Lipschitz constant of h between *all* values of f, not its derivative at some of
    them: the chain rule is false for differences (see the module).

    Args:
        lipschitz: at least |h(s) - h(t)| / |s - t| for all values s, t of f.
        sensitivity: that of f, in the norm of the Lipschitz constant.

    Raises:
        TypeError, ValueError: unless both are finite numbers of at least 0.
    """
    owner = "composition_bound"
    constant = _at_least_0(owner, "lipschitz", lipschitz)
    return constant * _at_least_0(owner, "sensitivity", sensitivity)


def _at_least_0(owner: str, name: str, value: object) -> Fraction:
    exact = checks.number(owner, name, value)
    checks.require(exact >= 0, owner, name, f"be at least 0, not {value!r}")
    return exact
