"""The choice of a clip: what is revealed, when a first look is enough, and which clip it is."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.histogram_choice.clip import EARLY, FULL, ClipChoice, shares
from beam_dp.mechanisms.histogram_choice.noisy_histogram import Choice
from beam_dp.mechanisms.noise.sampling import Noise
from tests.doubles import ZeroNoise

GRID = tuple(1 << power for power in range(10))
PURE = Budget(Fraction(2, 5))
LOOKS = (Budget(Fraction(1, 4)), Budget(Fraction(2, 5)))


def histogram(buckets: int = 11, sides: int = 1, **people: int) -> np.ndarray:
    """Return one row's histogram; b3=7: 7 people in the bucket 3."""
    numbers = np.zeros((1, sides, buckets), np.int64)
    for name, number in people.items():
        numbers[0, 0, int(name[1:])] = number
    return numbers


def test_the_shares_follow_the_partitions():
    assert shares(1, 1, True) == (EARLY, FULL) == (Fraction(1, 4), Fraction(2, 5))
    assert shares(1, 1, False) == (FULL,)
    assert shares(None, 1, True) == shares(None, 9, False) == (Fraction(1, 8),)
    assert shares(1, 1, True, 50) == (EARLY, FULL) and shares(None, 1, True, 1) == (FULL,)
    for partitions in (1, 2, 3, 4, 5, 10, 100, 1000, 10**6):
        for reach in (1, 2, 7):
            # A guess takes the place of the number where that is unknown, and only there.
            assert shares(None, reach, True, partitions)[-1] == shares(partitions, reach, True)[-1]
            assert shares(7, reach, True, partitions) == shares(7, reach, True)
            if partitions * reach == 1:
                continue
            [share] = shares(partitions, reach, True)
            assert Fraction(1, 32) <= share <= FULL
            expected = min(0.4, max(1 / 32, 0.8 / math.sqrt(partitions * reach)))
            assert float(share) == pytest.approx(expected, abs=1e-3)


def smallest(noisy: np.ndarray, top: int, allowed: float) -> int:
    """Return the smallest edge that at most so many people are above, from the top down."""
    for edge in range(len(GRID)):
        above = sum(max(0, int(n)) for side in noisy for n in side[edge + 1 : top + 1])
        if above <= allowed:
            return edge
    return len(GRID) - 1


@pytest.mark.parametrize("sides", [1, 2])
def test_the_clip_is_the_smallest_that_few_enough_people_are_above(sides):
    generator = random.Random(1)
    choice = ClipChoice((PURE,), GRID, sides)
    noisy = np.array(
        [
            [
                [generator.choice((-9, 0, 3, 40, 900)) for _ in range(choice.buckets)]
                for _ in range(sides)
            ]
            for _ in range(300)
        ]
    )
    noisy[:5] = -3
    drawn = Choice(noisy, 0)
    tops = choice.tops(drawn)
    assert (tops == choice.evidence(0).highest(noisy)).all()
    for price, partitions in ((0.0, 1), (1.7, 1), (1.7, 30), (2.5, 1000)):
        clips = choice.clips(drawn, price, partitions)
        for row, clip in enumerate(clips.tolist()):
            if tops[row].max() < 0:
                assert clip == -1
                continue
            # Of each side what is up to its own top counts.
            seen = [
                np.where(np.arange(choice.buckets) <= top, side, 0)
                for side, top in zip(noisy[row], tops[row], strict=True)
            ]
            assert clip == smallest(seen, int(tops[row].max()), price * partitions)
    assert (choice.clips(drawn, 0.0)[:5] == -1).all()


def test_people_above_all_clips_take_the_last_one():
    choice = ClipChoice((PURE,), GRID)
    drawn = Choice(histogram(b10=10_000), 0)
    assert choice.tops(drawn).tolist() == [[10]] and choice.clips(drawn, 1.7).tolist() == [9]


@pytest.mark.parametrize("grid", [(3, 5000), (1, 2, 3, 4, 70, 71, 10**6), (7, 1 << 100)], ids=str)
@pytest.mark.parametrize("sides", [1, 2])
def test_any_clips_can_be_given(grid, sides):
    choice = ClipChoice((PURE,), grid, sides, anchored=sides == 1)
    for bucket in range(len(grid) + 1):
        people = np.zeros((1, sides, len(grid) + 1), np.int64)
        people[0, -1, bucket] = 5000
        drawn = choice.draw(people, ZeroNoise())
        assert choice.clips(drawn, 1.7).tolist() == [min(bucket, len(grid) - 1)]


# --------------------------------------------------------------------------------- two looks


ENOUGH = [
    (histogram(b3=6000), True),
    (histogram(b3=4999), False),  # thousands of people
    (histogram(b1=4990, b3=79), False),
    (histogram(b1=4990, b3=80), True),  # 20 scales of 4
    (histogram(b3=6000, b4=10), True),  # 2.5 scales just above
    (histogram(b3=6000, b4=11), False),
    (histogram(b3=6000, b6=11), False),
    (histogram(b3=6000, b7=24), True),  # 6 scales further up
    (histogram(b3=6000, b7=25), False),
    (histogram(b3=6000, b4=10, b5=10, b6=10, b7=2), True),
    (histogram(b3=6000, b4=10, b5=10, b6=10, b7=3), False),  # 8 scales in a window of four
    (histogram(b10=6000), True),
    (histogram(), False),
    (histogram(b0=-6000), False),
]


@pytest.mark.parametrize(("first", "enough"), ENOUGH)
def test_a_first_look_is_enough_where_people_end_clearly(first, enough):
    choice = ClipChoice(LOOKS, GRID)
    assert choice._is_enough(first) == enough
    two = np.concatenate([first, np.zeros_like(first)], axis=1)
    assert ClipChoice(LOOKS, GRID, 2)._is_enough(two) == enough
    assert ClipChoice(LOOKS, GRID, 2)._is_enough(two[:, ::-1]) == enough
    assert not choice._is_enough(np.concatenate([first, first]))  # one row only has two looks


def test_on_another_side_people_above_the_top_are_looked_for_too():
    choice = ClipChoice(LOOKS, GRID, 2)
    for number, enough in ((10, True), (11, False)):
        two = np.concatenate([histogram(b3=6000), histogram(b5=number)], axis=1)
        assert choice._is_enough(two) == enough


def test_below_a_mean_a_first_look_is_enough_that_shows_many_people():
    choice = ClipChoice(LOOKS, GRID, anchored=True, early=True)
    for people, enough in ((159, False), (160, True), (6000, True)):  # 40 scales of 4
        assert choice._is_enough(histogram(b3=people)) == enough
        assert choice._is_enough(histogram(b3=people, b4=90, b7=50)) == (people >= 160 - 90 - 50)
    assert not choice._is_enough(histogram(b3=-9000))
    assert not ClipChoice(LOOKS, GRID, early=True)._is_enough(histogram())


# ---------------------------------------------------------------------------------- extremes

BUDGETS = [Budget(1e-6), Budget(50.0), Budget(1e6), Budget.zcdp(1e-9), Budget.zcdp(1e5)]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("number", [0, 1, 1 << 60])
def test_extreme_budgets_and_numbers_of_people(budget, number):
    looks = [budget.scaled(share) for share in ((FULL,) if budget.is_zcdp else (EARLY, FULL))]
    for sides in (1, 2):
        choice = ClipChoice(tuple(looks), GRID, sides)
        people = np.zeros((1, sides, 11), np.int64)
        people[0, 0, 4] = number
        drawn = choice.draw(people, Noise())
        price = 1.7 / float(budget.amount)
        clips = choice.clips(drawn, price)
        assert clips.shape == (1,) and -1 <= clips[0] < len(GRID)
        if number > 1 << 40:
            # Noise is taken for people further up with 1.7% at most: in ten of 20 draws with 1e-12.
            drawn_again = [choice.draw(people, Noise()) for _ in range(20)]
            found = [choice.clips(again, price)[0] for again in drawn_again]
            assert min(found) == 4 and found.count(4) > 10
        for loss in choice.losses(drawn, np.maximum(clips, 0)):
            assert np.isfinite(loss.total).all() and np.isfinite(loss.squares).all()
            assert (loss.total >= 0).all() and (loss.squares >= 0).all()


@pytest.mark.parametrize("looks", [(PURE,), LOOKS, (Budget.zcdp(0.1),)], ids=str)
def test_no_rows_are_no_clips(looks):
    choice = ClipChoice(looks, GRID, 2)
    drawn = choice.draw(np.zeros((0, 2, 11), np.int64), Noise())
    assert drawn.noisy.shape == (0, 2, 11)
    assert choice.clips(drawn, 1.0).shape == (0,) and choice.tops(drawn).shape == (0, 2)
    for loss in choice.losses(drawn, np.zeros(0, np.int64)):
        assert loss.total.shape == loss.squares.shape == (0,)


def test_thousands_of_clips():
    choice = ClipChoice(LOOKS, tuple(range(1, 4097)))
    people = np.zeros((1, 1, 4097), np.int64)
    people[0, 0, 1000] = 6000
    drawn = choice.draw(people, ZeroNoise())
    assert choice.clips(drawn, 1.7).tolist() == [1000]


def test_counts_beyond_64_bits_are_what_they_are():
    # The noise of the smallest budgets may need them.
    choice = ClipChoice((Budget(Fraction(1, 1 << 48)),), GRID)
    wide = histogram(b4=1).astype(object) * (1 << 80)
    drawn = Choice(wide, 0)
    assert choice.clips(drawn, 1.0).tolist() == [4]
    [loss] = choice.losses(drawn, np.array([4]))
    assert math.isfinite(loss.total[0]) and math.isfinite(loss.squares[0])
