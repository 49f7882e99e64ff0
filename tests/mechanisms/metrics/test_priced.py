"""What rows with several owners pack at a price that is chosen privately, with noise."""

import time
from fractions import Fraction

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.metrics.profiled import Priced, TwoPhase
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.program import compile_program
from beam_dp.mechanisms.profiles.from_summaries import MostFrequentItem, RowsOfSeveralOwners
from beam_dp.mechanisms.profiles.packed.packings import PackedRows
from beam_dp.mechanisms.search import price_search
from beam_dp.mechanisms.search.price_search import (
    Narrowed,
    PriceSearch,
    index_of_price,
    price_at,
    query,
)
from beam_dp.mechanisms.summaries.owner_lines import Relation

ALPHA = Fraction(1, 20)
COUNTED = RowsOfSeveralOwners(Relation(others=(1, 2)), 1)
FREQUENT = MostFrequentItem(Relation(others=(1, 2)), 1)


def release(epsilon, unit=Fraction(1)):
    return Priced.of(COUNTED, unit, Budget(epsilon), ALPHA)


def rows(size=2_000, people=400):
    generator = np.random.default_rng(1)
    return generator.integers(0, people, (3, size)), generator.integers(1, 20, size)


def released_as(metric, others=("y", "z")):
    return compile_program([metric], Budget(1), 1, partitions=1, others=others).steps[0].release


@pytest.mark.parametrize("profiler", [COUNTED, FREQUENT])
@pytest.mark.parametrize("budget", [Budget(1.0), Budget.zcdp(0.5)])
def test_both_draws_spend_the_whole_budget(profiler, budget):
    made = Priced.of(profiler, Fraction(1), budget, ALPHA)
    [spent] = made.spends
    assert spent.cost.amount == budget.amount and spent.cost.is_zcdp == budget.is_zcdp
    assert made.prices.cost.amount + made.noise_cost.amount == budget.amount


def test_at_much_epsilon_it_is_the_number_and_its_interval_holds():
    """At epsilon 10^6 noise above 1 has a chance below e^-1000."""
    owners, weights = rows()
    packed = PackedRows(owners, None, weights)
    value, below = release(10**6, Fraction(1, 10)).draw_one(packed, Noise())
    # Few people may be cut, by at most a price each, and V is off by a part of it.
    assert abs(value - packed.total) < packed.total / 50
    assert packed.total / 10 - value / 10 < packed.total / 10 / 50 and below < packed.total


@pytest.mark.parametrize(("profiler", "price"), [(COUNTED, 48), (FREQUENT, 32)])
def test_a_release_takes_a_price_before_the_chosen_one(profiler, price):
    class Chosen(PriceSearch):
        def choose(self, extension, top, usual=None, noise=None):
            return index_of_price(64)

    owners, weights = rows()
    packed = PackedRows(owners, None, weights)
    chosen = Priced(profiler, Fraction(1), Chosen(Budget(1)), Budget(10**9))
    value, _ = chosen.draw_one(packed, Noise())
    assert abs(value - float(packed(Fraction(price)))) <= 1


@pytest.mark.parametrize("seed", range(5))
def test_what_is_known_is_enough_for_every_answer_of_the_search(seed):
    """The lazy comparison is the exact one, at all thresholds around it."""
    generator = np.random.default_rng(seed)
    owners, weights = generator.integers(0, 30, (2, 80)), generator.integers(1, 9, 80)
    for j in range(12):
        exact = query(PackedRows(owners, None, weights), j)
        for most in (exact - 40, exact - 1, exact, exact + 40):
            packed = PackedRows(owners, None, weights)
            assert isinstance(packed, Narrowed)
            assert price_search._is_at_most(packed, j, most) == (exact <= most)


def test_low_prices_take_no_program():
    """Where thousands of people are cut, bounds from how much people have are enough."""
    owners, weights = rows(20_000, 4_000)
    packed = PackedRows(owners, None, weights)
    release(1).draw_one(packed, Noise())
    solved = {*packed._known, *packed._searches}
    assert all(price >= 4 for price in solved)


def test_one_row_a_million_times_as_large_as_others_ends_in_seconds():
    """Issue: 1,000 rows of 0.001 to 0.019, and one of 5,000,000."""
    generator = np.random.default_rng(2)
    owners = generator.integers(0, 60, (3, 1_001))
    weights = np.append(generator.integers(1, 20, 1_000), 1 << 32)
    start = time.process_time()
    packed = PackedRows(owners, None, weights)
    for price in map(price_at, range(index_of_price(1 << 33))):
        assert -price / 50 < packed(Fraction(price)) < packed.total
    for _ in range(20):
        release(1).draw_one(PackedRows(owners, None, weights), Noise())
    assert time.process_time() - start < 60


def test_candidates_are_released_in_two_phases_and_distinct_counts_too():
    outputs = dp.Candidates.linear(0, 100, 1)
    for metric in (dp.Count(candidates=outputs), dp.DistinctCount("v"), dp.Max("v")):
        wanted = metric.for_several_owners("PrivateAggregate")
        assert isinstance(released_as(wanted), TwoPhase)
    for metric in (dp.Count(), dp.Sum("v"), dp.MaxFrequency("v")):
        wanted = metric.for_several_owners("PrivateAggregate")
        assert isinstance(released_as(wanted), Priced)
