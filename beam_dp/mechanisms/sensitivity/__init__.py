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
- The rules of the calculus of differences hold: with d_i f(x) = f(x + e_i) - f(x), for f, g with
  values in R,

      d_i (f + g)(x) = d_i f(x) + d_i g(x),
      d_i (f g)(x)   = f(x + e_i) d_i g(x) + g(x) d_i f(x),
      d_i (f / g)(x) = d_i f(x) / g(x + e_i) - f(x) d_i g(x) / (g(x) g(x + e_i)),

  so that Delta(f + g) <= Delta(f) + Delta(g), Delta(f g) <= sup|f| Delta(g) + sup|g| Delta(f), and
  Delta(f / g) <= Delta(f) / m + sup|f| Delta(g) / m^2 where |g| >= m.
- There is no chain rule: d_i (h o f)(x) is not h'(f(x)) d_i f(x), nor bounded by sup |h'| over the
  values that f takes. For f(x) = x and h(t) = sin^2(pi t / 2), h' is 0 at every integer, but h o f
  moves by 1 with every person. What holds is Delta(h o f) <= Lip(h) Delta(f), with the Lipschitz
  constant of h between all values of f.

None of this is private: a local sensitivity is data.

Source: "Sensitivity as the Operator Norm of a Derivative", corrected.
"""

from beam_dp.mechanisms.sensitivity.gradient import discrete_gradient as discrete_gradient
from beam_dp.mechanisms.sensitivity.gradient import global_sensitivity as global_sensitivity
from beam_dp.mechanisms.sensitivity.gradient import histograms as histograms
from beam_dp.mechanisms.sensitivity.gradient import local_sensitivity as local_sensitivity
from beam_dp.mechanisms.sensitivity.gradient import norm as norm
from beam_dp.mechanisms.sensitivity.gradient import operator_norm as operator_norm
from beam_dp.mechanisms.sensitivity.monotone import down_sensitivity as down_sensitivity
