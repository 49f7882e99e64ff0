"""The private ratios: outputs, edge cases, choices, refusals."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms import ratio
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.noise.sampling import Noise

BUDGET = Budget(1.0, 1e-6)


def test_a_noisy_count_that_passes_where_nobody_is_gives_a_half() -> None:
    class Far(Noise):
        """Noise that makes an empty partition look full, then none."""

        def discrete_laplace(self, rate, size):
            """Return thousands for the counts, zeros for the ratio."""
            return np.full(size, 5000 if rate >= Fraction(1, 20) else 0)

    found = ratio.LocalSensitivity(BUDGET).release(np.zeros(2, int), np.zeros(2, int), Far())
    assert np.abs(found.values - 0.5).max() <= 1e-6


# Of 4,000 releases those outside of their error bounds are at most Binomial(4000, 0.05); more than
# 0.10 of them is a chance of e^(-4000 KL(.10, .05)) = e^-67 < 1e-28 (Chernoff).
@pytest.mark.parametrize("method", ratio.METHODS)
def test_the_error_bounds_hold(method) -> None:
    """Also where the local sensitivity is used, and not its fallback: for a half of many."""
    for a, b, rows in [(0, 0, 1), (5000, 10**4, 1), (900, 10**4, 7)]:
        found = ratio.METHODS[method](BUDGET, rows).release(np.full(4000, a), np.full(4000, b))
        off = np.abs(found.values - (a / b if b else 0.5)) > found.errors + 1e-12
        assert off.mean() <= 0.10


def test_too_small_error_bounds_are_noticed() -> None:
    """The broken twin: bounds for alpha = 1/2 fail more than a tenth of the time."""
    found = ratio.METHODS["local_sensitivity"](BUDGET).release(
        np.full(4000, 5000), np.full(4000, 10**4), alpha=Fraction(1, 2)
    )
    assert (np.abs(found.values - 0.5) > found.errors).mean() > 0.10


class Aimed(Noise):
    """Noise that makes the counts what is wanted, then none; it remembers how much was drawn."""

    def __init__(self, *added: int) -> None:
        object.__setattr__(self, "added", list(added))
        object.__setattr__(self, "sizes", [])

    def discrete_laplace(self, rate, size):
        """Return the next number, zeros when there are no more."""
        self.sizes.append(size)
        return np.full(size, self.added.pop(0) if self.added else 0)


def test_the_bail_out_is_chosen_by_the_noisy_counts_only() -> None:
    """With the same noisy counts, whatever the data, the same noise is drawn."""
    chosen = {}
    for ones, zeros in [(5000, 5000), (9000, 1000), (5, 5)]:
        seen = []
        for a, z in [(0, 0), (5000, 5000), (30, 10**6)]:
            noise = Aimed(zeros - z, ones - a)
            ratio.LocalSensitivity(BUDGET).release(np.array([a]), np.array([a + z]), noise)
            seen.append([size for size in noise.sizes if size])
        assert seen[0] == seen[1] == seen[2]
        chosen[ones, zeros] = seen[0]
    # The counts, then the two noises of the default, or the one of the local form.
    assert chosen[5000, 5000] == [1, 1, 1]
    assert chosen[9000, 1000] == chosen[5, 5] == [1, 1, 1, 1]


EXTREME = [
    BUDGET,
    Budget(50.0, 0.5),
    Budget(Fraction(1, 2**46), 1e-300),
    Budget(10**400, 0.999),
    Budget.zcdp(Fraction(1, 2**20), 1e-9),
    Budget.zcdp(10**700, Fraction(1, 10**400)),
]


@pytest.mark.sampled(9)
@pytest.mark.parametrize("method", ratio.METHODS)
@pytest.mark.parametrize("budget", EXTREME, ids=repr)
def test_no_size_of_a_parameter_or_a_count_raises(budget, method) -> None:
    """Also where the noise is beyond all floats, and int64; and for nobody."""
    ones = np.array([0, 0, 1, 5, 2**62], object)
    totals = np.array([0, 1, 1, 10**6, 2**62 + 2**61], object)
    for rows, size in itertools.product((1, 10**330), (0, 5)):
        found = ratio.METHODS[method](budget, rows).release(ones[:size], totals[:size])
        assert len(found.values) == len(found.errors) == size
        for numbers in (found.values, found.errors):
            assert numbers.dtype == np.float64 and ((numbers >= 0) & (numbers <= 1)).all()


@pytest.mark.parametrize("method", ["naive", "local_sensitivity"])
def test_half_of_the_least_budget_is_refused_before_there_is_data(method) -> None:
    with pytest.raises(ValueError, match="at least 2\\^-50"):
        ratio.METHODS[method](Budget(Fraction(1, 2**50), 1e-9))


BAD = [
    (lambda: ratio.LocalSensitivity(Budget(1.0)), ValueError, "delta must be above 0"),
    (lambda: ratio.LocalSensitivity(BUDGET, share=0), ValueError, "share must be above 0"),
    (lambda: ratio.Mechanism(BUDGET), TypeError, "abstract"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_wrong_calls_are_refused(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()
