"""Numbers that share a draw: the joint law of what is released for neighbours, and what it costs."""

import dataclasses
import itertools
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.metrics import clipped
from beam_dp.mechanisms.metrics.clipped import ClippedSum, Pool, PoolNoise, draw_together, people_of
from beam_dp.mechanisms.metrics.totals import Count, PeopleCount, Sum
from beam_dp.mechanisms.noise import one_draw
from beam_dp.mechanisms.noise.one_draw import OneDraw
from beam_dp.mechanisms.planning.builder import pools_of
from beam_dp.mechanisms.planning.program import compile_program
from beam_dp.mechanisms.summaries.histograms import ROWS
from tests.doubles import ZeroNoise
from tests.mechanisms.metrics.test_clipped_sum import cells_of
from tests.mechanisms.noise.test_one_draw import law
from tests.reference import Row

WINDOW = 9
CROWD = [Row((person, 0), (0, 0), (person - 2,)) for person in range(5)]
PERSONS = [(1,), (-9,), (9, 9), (0,), (2, -1, 4)]


def pool(*costs: Fraction) -> list[ClippedSum]:
    """Return a count of rows, a sum and a number of people, with given clips, in one pool."""
    budgets = [Budget(cost) for cost in costs]
    count = ClippedSum(ROWS, False, (2,), Fraction(1), (), (budgets[0],))
    total = ClippedSum(0, True, (3,), Fraction(1), (), (budgets[1],))
    numbers = [count, total, people_of(budgets[2])]
    shared = Pool(tuple(n.signed for n in numbers), tuple(n.noise_costs for n in numbers))
    return [
        dataclasses.replace(number, pool=shared, place=place)
        for place, number in enumerate(numbers)
    ]


def worst_of_pool(epsilon: Fraction) -> float:
    """Return the largest |log ratio| of the joint law when a person is added, by enumeration."""
    asked: list[OneDraw] = []

    class Recorded(OneDraw):
        def draw(self, noise, size=1):
            asked.append(self)
            return super().draw(noise, size)

    def totals(rows):
        views = [cells_of(rows, number.measures, 1).at(0) for number in numbers]
        released = draw_together(numbers, views, ZeroNoise())
        return np.array([int(each.values[0]) for each in released])

    numbers, worst = pool(epsilon / 2, epsilon / 4, epsilon / 4), 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clipped, "OneDraw", Recorded)
        before = totals(CROWD)
        for values in PERSONS:
            added = [Row((99, 0), (0, 0), (value,)) for value in values]
            move = totals(CROWD + added) - before
            first, last = asked[0], asked[-1]
            assert first == last and first.budget == Budget(epsilon)  # the noise is of no data
            sides = tuple(zip(first.clips, first.signed, strict=True))
            chances = np.zeros((2 * WINDOW + 1,) * 3)
            moving = [place for place, (clip, _) in enumerate(sides) if clip]
            hull = one_draw._hull(epsilon, tuple(sides[place] for place in moving))
            at = tuple(slice(None) if place in moving else WINDOW for place in range(3))
            chances[at] = law(hull, WINDOW)
            here = tuple(slice(max(0, -m), 2 * WINDOW + 1 - max(0, m)) for m in move.tolist())
            there = tuple(slice(max(0, m), 2 * WINDOW + 1 - max(0, -m)) for m in move.tolist())
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.abs(np.log(chances[here]) - np.log(chances[there]))
            worst = max(worst, float(np.nan_to_num(ratio, nan=0.0, posinf=np.inf).max()))
    return worst


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_one_more_person_changes_the_joint_law_by_at_most_epsilon(epsilon: Fraction) -> None:
    worst = worst_of_pool(epsilon)
    assert 0.999 * epsilon < worst <= epsilon * (1 + 1e-9)


def noise_of_smaller_clips(self, clips, noise):
    """Draw noise for clips that are one too small."""
    return DRAW(self, [np.maximum(each - 1, 0) for each in clips], noise)


DRAW = PoolNoise.draw


def test_the_enumeration_notices_noise_for_a_smaller_clip(monkeypatch) -> None:
    monkeypatch.setattr(PoolNoise, "draw", noise_of_smaller_clips)
    assert worst_of_pool(Fraction(2)) > 2.1


@pytest.mark.parametrize("budget", [Budget(Fraction(3)), Budget.zcdp(Fraction(1, 2))], ids=str)
@pytest.mark.parametrize(("reach", "partitions"), [(1, 1), (3, 7)])
def test_whatever_looks_were_taken_the_whole_is_spent_and_no_more(
    budget: Budget, reach: int, partitions: int
) -> None:
    asked = [Count(), Sum("x"), PeopleCount()]
    made = compile_program(asked, budget, reach, partitions=partitions)
    [(shared, indexes)] = pools_of(made.steps).items()
    numbers = [made.steps[index].release for index in indexes]
    ways = list(itertools.product(*(range(len(number.noise_costs)) for number in numbers)))
    assert len(ways) == (4 if partitions == 1 and not budget.is_zcdp else 1)
    for looks in ways:
        pairs = zip(numbers, looks, strict=True)
        seen = sum(number.looks[look].amount for number, look in pairs if number.looks)
        assert seen + reach * shared.noise(looks).budget.amount == budget.amount
    assert sum(cost.amount * times for _, cost, times in made.entries) == budget.amount


def test_other_weights_have_a_draw_of_their_own() -> None:
    made = compile_program([Count(), Sum("x"), PeopleCount(weight=2)], Budget(1.0), 1)
    assert sorted(pools_of(made.steps).values()) == [[0, 1], [2]]


def test_one_number_alone_has_the_noise_that_it_had() -> None:
    [alone] = compile_program([PeopleCount()], Budget(1.0), 1).steps
    assert alone.release.in_pool.noise().name == "discrete Laplace"
