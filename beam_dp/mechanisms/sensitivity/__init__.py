"""Sensitivity: how far people can move a statistic, as the operator norm of a derivative.

A database of people is a histogram x: x[i] people have the record i. For f from histograms to R^k,
the discrete gradient at x is the k by |X| matrix of the forward differences f(x + e_i) - f(x), and

    Delta_p(f) = sup over x of || grad f(x) ||_{1 -> p},

where ||M||_{1 -> p} = sup over ||v||_1 <= 1 of ||M v||_p is the largest p-norm of a column (the sup
of a convex function over a cross-polytope is at one of its corners), and p is in [1, inf]. The
articles, corrected:

- At a single x the identity is false: the neighbours of x include x - e_i, and grad f(x) does not
  see them. f(x) = [x >= 1] has grad f(1) = 0 and local sensitivity 1. `local_sensitivity` looks
  both ways. The global identity is true: every pair of neighbours is (x, x + e_i) for one of them.
- Histograms are no vector space, so the norm is one of columns, and the sup need not be attained.
- The mean: mean(x + e_i) - mean(x) = (i - mean(x)) / (||x||_1 + 1), with a 1 where 123 was printed.
  For ages 0 to 122 its global sensitivity is 61 on non-empty data ({0}, then {0, 122}), 122 if the
  mean of nobody is 0, and 61 if that is 61; never 123.
- There is no chain rule (see `sensitivity.rules`).

None of this is private: a local sensitivity is data.

Source: "Sensitivity as the Operator Norm of a Derivative", corrected.
"""

from beam_dp.mechanisms.sensitivity.down import down_sensitivity
from beam_dp.mechanisms.sensitivity.gradient import (
    discrete_gradient,
    global_sensitivity,
    histograms,
    local_sensitivity,
)
from beam_dp.mechanisms.sensitivity.norms import norm, operator_norm
from beam_dp.mechanisms.sensitivity.rules import (
    composition_bound,
    product_bound,
    quotient_bound,
    scaled_bound,
    sum_bound,
)

__all__ = [
    "composition_bound",
    "discrete_gradient",
    "down_sensitivity",
    "global_sensitivity",
    "histograms",
    "local_sensitivity",
    "norm",
    "operator_norm",
    "product_bound",
    "quotient_bound",
    "scaled_bound",
    "sum_bound",
]
