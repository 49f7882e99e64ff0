"""The choice of a clip: what is revealed, and which clip it is.

Evidence: people are seen where they are, and hardly ever where nobody is.

False alarms are bounded by exact tails of what the decision is seen to ask for, and for few buckets
by trying all values of the noise.

What people lose at a clip: the estimate by the histogram, and the share of a partition.
"""

import dataclasses
import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.histogram_choice.clip_choice import (
    BEYOND,
    NOBODY,
    WINDOWS,
    ClipChoice,
    clip_share_of_norm,
    clip_share_of_partition,
)
from beam_dp.mechanisms.histogram_choice.clipping_loss import (
    SHARED_CLIP,
    SINGLE_PARTITION,
    SUMS,
    ClippingLoss,
    Losses,
    _unseen,
    even_spread,
    falling_spread,
    lost,
    tail_of,
)
from beam_dp.mechanisms.histogram_choice.noisy_histogram import HistogramNoise, beyond
from beam_dp.mechanisms.noise.sampling import Noise
from tests.doubles import ZeroNoise
from tests.mechanisms.histogram_choice.test_noisy_histogram import tail

GRID = tuple(1 << power for power in range(10))
PURE = Budget(Fraction(2, 5))


def histogram(buckets: int = 11, sides: int = 1, **people: int) -> np.ndarray:
    """Return one row's histogram; b3=7: 7 people in the bucket 3."""
    numbers = np.zeros((1, sides, buckets), np.int64)
    for name, number in people.items():
        numbers[0, 0, int(name[1:])] = number
    return numbers


def test_the_shares_follow_the_partitions():
    assert clip_share_of_partition(1, 1) == Fraction(2, 5)
    assert clip_share_of_partition(None, 1) == clip_share_of_partition(None, 9) == Fraction(1, 8)
    for partitions in (1, 2, 3, 4, 5, 10, 100, 1000, 10**6):
        for max_partitions in (1, 2, 7):
            share = clip_share_of_partition(partitions, max_partitions)
            assert Fraction(1, 32) <= share <= Fraction(2, 5)
            expected = min(0.4, max(1 / 32, 0.8 / math.sqrt(partitions * max_partitions)))
            assert float(share) == pytest.approx(expected, abs=1e-3)


def test_the_share_of_a_norm_and_the_tail_pass_from_one_partition_to_many():
    for budget, least in ((Budget(1), 1 / 6), (Budget.zcdp(0.5), 0.1), (Budget(0.01), 0.4)):
        shares = [
            float(clip_share_of_norm(budget, partitions)) for partitions in (1, 2, 8, 100, None)
        ]
        expected = [max(least, 0.4 * each**-0.3) for each in (1, 2, 8, 100)]
        assert shares == pytest.approx([*expected, least], abs=5e-3)
    tails = [tail_of(partitions) for partitions in (0, 1, 2, 10**9)]
    assert tails[0] == tails[1] == SINGLE_PARTITION
    assert tails[2] == pytest.approx((1.25, 0.95)) and tails[3] == pytest.approx(SHARED_CLIP)


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
    choice = ClipChoice(PURE, GRID, sides)
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
    tops = choice.highest(noisy)
    for scale, partitions in ((0.0, 1), (1.7, 1), (1.7, 30), (2.5, 1000)):
        clips = choice.clips(noisy, scale, partitions)
        for row, clip in enumerate(clips.tolist()):
            if tops[row].max() < 0:
                assert clip == -1
                continue
            # Of each side what is up to its own top counts.
            seen = [
                np.where(np.arange(choice.buckets) <= top, side, 0)
                for side, top in zip(noisy[row], tops[row], strict=True)
            ]
            assert clip == smallest(seen, int(tops[row].max()), scale * partitions)
    assert (choice.clips(noisy, 0.0)[:5] == -1).all()


@pytest.mark.parametrize("grid", [(3, 5000), (1, 2, 3, 4, 70, 71, 10**6), (7, 1 << 100)], ids=str)
@pytest.mark.parametrize("sides", [1, 2])
def test_any_clips_can_be_given(grid, sides):
    choice = ClipChoice(PURE, grid, sides, anchored=sides == 1)
    for bucket in range(len(grid) + 1):
        people = np.zeros((1, sides, len(grid) + 1), np.int64)
        people[0, -1, bucket] = 5000
        drawn = choice.draw(people, ZeroNoise())
        assert choice.clips(drawn, 1.7).tolist() == [min(bucket, len(grid) - 1)]


def best_by_trying(choice, noisy, noise, partitions, weight=1.0) -> tuple[int, float]:
    """Return the index of the best clip by its definition, and its error, clip by clip."""
    [tops], ends, errors = choice.highest(noisy), choice.ends, []
    spread = falling_spread(noisy[0], tops, ends, HistogramNoise(choice.cost).scale)
    highest = ends[min(tops.max(), len(ends) - 1)]
    for at, clip in enumerate(clip for clip in choice.thresholds if clip <= highest):
        excess, lost = spread.excess(np.full((sides := len(tops), 1), clip))[:, 0], 0.0
        for side in range(sides):
            for bucket in range(tops[side] + 1):
                lost += max(int(noisy[0, side, bucket]), 0) * excess[side, bucket]
        errors.append(weight * lost / partitions + noise[at])
    return errors.index(min(errors)), min(errors)


GRIDS = [
    (GRID, ()),
    ((1, 2, 3, 4, 6, 8, 12), ()),
    ((64, 90, 128, 181, 1000), ()),
    ((1, 2, 3, 4, 6, 7, 8, 12), (1, 2, 4, 8, 12)),
    ((64, 70, 90, 128, 150, 181), (64, 128, 181)),
]


@pytest.mark.parametrize(("grid", "edges"), GRIDS, ids=str)
@pytest.mark.parametrize("sides", [1, 2])
def test_the_clip_of_several_is_the_one_of_least_error(grid, edges, sides):
    generator, choice = np.random.default_rng(5), ClipChoice(PURE, grid, sides, edges=edges)
    chosen = set()
    for _ in range(30):
        noisy = generator.choice((-9, 0, 40, 900, 30_000), (1, sides, len(choice.ends) + 1))
        for partitions, scale in itertools.product((2, 30, 1000), (0.5, 40.0)):
            noise, weight = scale * np.array(grid), generator.choice((0.5, 1.0))
            best, error = best_by_trying(choice, noisy, noise, partitions, weight)
            chosen.add(best)
            index, errs = choice.best_clip(noisy, noise, partitions, weight)
            assert index == best and errs == pytest.approx(error)
    assert chosen >= set(choice.places.tolist()) and len(chosen) >= len(grid) - 1
    nobody = np.full((1, sides, len(choice.ends) + 1), -3)
    assert choice.best_clip(nobody, np.array(grid, float), 9)[0] == -1


# ---------------------------------------------------------------------------------- extremes

BUDGETS = [Budget(1e-6), Budget(50.0), Budget(1e6), Budget.zcdp(1e-9), Budget.zcdp(1e5)]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("number", [0, 1, 1 << 60])
def test_extreme_budgets_and_numbers_of_people(budget, number):
    for sides in (1, 2):
        choice = ClipChoice(budget.scaled(Fraction(2, 5)), GRID, sides)
        people = np.zeros((1, sides, 11), np.int64)
        people[0, 0, 4] = number
        drawn = choice.draw(people, Noise())
        scale = 1.7 / float(budget.amount)
        clips = choice.clips(drawn, scale)
        assert clips.shape == (1,) and -1 <= clips[0] < len(GRID)
        if number > 1 << 40:
            # Noise is taken for people further up with 2.9% at most: in 12 of 20 draws with 1e-13.
            drawn_again = [choice.draw(people, Noise()) for _ in range(20)]
            found = [choice.clips(again, scale)[0] for again in drawn_again]
            assert min(found) == 4 and found.count(4) > 8
        for loss in choice.losses(drawn, np.maximum(clips, 0)):
            assert np.isfinite(loss.total).all() and np.isfinite(loss.squares).all()
            assert (loss.total >= 0).all() and (loss.squares >= 0).all()


def test_counts_beyond_64_bits_are_what_they_are():
    # The noise of the smallest budgets may need them.
    choice = ClipChoice(Budget(Fraction(1, 1 << 48)), GRID)
    wide = histogram(b4=1).astype(object) * (1 << 80)
    assert choice.clips(wide, 1.0).tolist() == [4]
    [loss] = choice.losses(wide, np.array([4]))
    assert math.isfinite(loss.total[0]) and math.isfinite(loss.squares[0])


LAPLACE = HistogramNoise(Budget(0.4))
GAUSSIAN = HistogramNoise(Budget.zcdp(0.0068))
NOISES = pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN], ids=["Laplace", "Gaussian"])
SURELY, ANYWHERE = NOBODY
TWO_ABOVE = 2**-1.25 + 2**-2.5  # the first and the second bucket above
NOTHING = -(1 << 40)
EVERYBODY = 1 << 45


def law_of(noise: HistogramNoise, span: int) -> np.ndarray:
    """Return P(X = k) for k from -span to span."""
    k = np.arange(-span, span + 1.0)
    amount = float(noise.budget.amount)
    weights = np.exp(-amount * (k**2 if noise.budget.is_zcdp else np.abs(k)))
    return weights / weights.sum()


def choice_of(noise: HistogramNoise, buckets: int, sides: int = 1, **more) -> ClipChoice:
    """Return the choice of a clip by a histogram of so many buckets."""
    return ClipChoice(noise.budget, tuple(range(1, buckets)), sides, **more)


def asked(evidence: ClipChoice, start: int, width: int, top: int | None) -> int:
    """Return what a window must have to be shown, by trying: spread evenly, so that no part is.

    Args:
        evidence: what decides.
        start: the lowest bucket of the window.
        width: how many buckets it has.
        top: a bucket of very many people, far below; None: nobody is anywhere else.
    """
    low, high = 0, 1 << 20
    while high - low > 1:
        middle = (low + high) // 2
        noisy = np.full((1, evidence.sides, evidence.buckets), NOTHING)
        if top is not None:
            noisy[0, :, top] = EVERYBODY
        noisy[0, -1, start : start + width] = [(middle + part) // width for part in range(width)]
        shown = evidence.highest(noisy)[0, -1] >= start
        low, high = (low, middle) if shown else (middle, high)
    return high


@pytest.mark.sampled(3)
@NOISES
@pytest.mark.parametrize(("buckets", "sides"), [(6, 1), (85, 1), (85, 2), (1500, 1)])
def test_where_nobody_is_nobody_is_shown(noise, buckets, sides):
    evidence, law = choice_of(noise, buckets, sides), law_of(noise, 300)
    chances = [tail(law, width, asked(evidence, 1, width, None) - 1) for width in WINDOWS]
    # The union of all windows; most of it is not wasted, but for whole numbers.
    assert ANYWHERE / 3 < sides * buckets * sum(chances) <= ANYWHERE
    assert evidence.highest(np.zeros((3, sides, buckets))).tolist() == [[-1] * sides] * 3


@pytest.mark.sampled(3)
@NOISES
@pytest.mark.parametrize("sides", [1, 2])
def test_above_people_false_alarms_are_as_rare_as_said_in_all(noise, sides):
    evidence, law = choice_of(noise, 30, sides), law_of(noise, 500)
    total = 0.0
    for distance in range(1, 20):
        chance = sides * sum(
            tail(law, width, asked(evidence, 5 + distance, width, 5) - 1) for width in WINDOWS
        )
        # Far above, a bucket is tested as all are.
        most = max(BEYOND * 2 ** (-1.25 * distance), SURELY / 30)
        assert most / 4 < chance <= most
        total += chance
    assert total <= 0.73 * BEYOND + SURELY


def chance_of_any(evidence: ClipChoice, span: int) -> float:
    """Return the exact chance that anything shows where nobody is, for three buckets."""
    law, values = law_of(HistogramNoise(evidence.cost), span), np.arange(-span, span + 1)
    grid = np.array(list(itertools.product(values, repeat=3)))
    weights = law[grid + span].prod(axis=1)
    shown = evidence.highest(grid[:, None, :])[:, 0] >= 0
    return float(weights[shown].sum())


@pytest.mark.parametrize("noise", [HistogramNoise(Budget(1.0)), HistogramNoise(Budget.zcdp(0.1))])
def test_the_exact_chance_of_any_false_alarm(noise):
    assert ANYWHERE / 20 < chance_of_any(choice_of(noise, 3), 22) <= ANYWHERE
    # Anchored, the first bucket is tested as those near people are.
    chance = chance_of_any(choice_of(noise, 3, anchored=True), 22)
    assert BEYOND / 10 < chance <= ANYWHERE + BEYOND * TWO_ABOVE


@pytest.mark.parametrize("noise", [HistogramNoise(Budget(1.0)), HistogramNoise(Budget.zcdp(0.1))])
def test_the_exact_chance_of_a_false_alarm_above_few_people(noise):
    # Wherever the anchor is: few people in the first bucket may be seen there or not.
    span, law = 22, law_of(noise, 22)
    grid = np.array(list(itertools.product(range(-span, span + 1), repeat=3)))
    weights = law[grid + span].prod(axis=1)
    for people in (1, 8, 12, 1000):
        noisy = grid[:, None, :] + np.array([people, 0, 0])
        above = choice_of(noise, 3).highest(noisy)[:, 0] >= 1
        assert float(weights[above].sum()) <= ANYWHERE + BEYOND * TWO_ABOVE


CLIPS = tuple(1 << power for power in range(12))
EVEN = even_spread(CLIPS)
NOISE = HistogramNoise(Budget(0.4))


def losses(noisy: list[int], top: int, clip: int, scale: float = 2.5):
    """Return total and squares for one row."""
    found = lost(np.array([noisy]), np.array([top]), np.array([CLIPS[clip]]), EVEN, scale)
    return float(found.total[0]), float(found.squares[0])


EXTREME = [
    (1, 1 << 120),
    (1 << 60, (1 << 60) + 1),
    (1 << 60, (1 << 60) + 1, (1 << 60) + 2, 1 << 61),
    (1, 10**20),
    ((1 << 120) - 1, 1 << 120),
]


@pytest.mark.parametrize("grid", EXTREME, ids=str)
def test_losses_are_numbers_for_any_clips(grid):
    means = even_spread(grid).means[0]
    assert np.isfinite(means).all() and (np.diff(means) >= 0).all()
    choice = ClipChoice(Budget(0.4), grid)
    for people in np.ndindex(*(2,) * (len(grid) + 1)):
        noisy = np.array([[people]]) * 5000
        drawn = choice.draw(noisy, Noise())
        for clip in range(len(grid)):
            for partitions in (1, 2, 1000):
                [loss] = choice.losses(drawn, np.array([clip]), partitions)
                assert np.isfinite(loss.total).all() and np.isfinite(loss.squares).all()
                assert (loss.total >= 0).all() and (loss.squares >= 0).all()


def test_squares_may_fall_half_as_fast():
    # 0.45 of the people are left in each octave of numbers, so 0.67 in each octave of squares.
    def beyond(noisy, squared):
        rows = (
            np.array([noisy]),
            np.array([4]),
            np.array([CLIPS[4]]),
            EVEN,
            NOISE,
            SINGLE_PARTITION,
            squared,
        )
        return float(lost(*rows).total[0])

    slowly, sharply = [0, 400, 300, 220, 150, 4, 0, 0], [0, 400, 300, 20, 150, 0, 0, 0]
    assert beyond(slowly, True) >= beyond(slowly, False) > 0
    assert beyond([0, 0, 0, 0, 10, 8, 9, 4], True) > 1.5 * beyond([0, 0, 0, 0, 10, 8, 9, 4], False)
    # Where people are seen to end, nothing is wider.
    wide = [0, 9000, 9000, 9000, 9000, 0, 0, 0]
    assert beyond(wide, True) == beyond(wide, False)
    assert beyond(sharply, True) > 0


@pytest.mark.parametrize("fall", [0.2, 0.35, 0.45])
def test_samples_of_people_lose_no_more_than_is_said_but_for_one_in_twenty(fall):
    # Poisson people in each bucket beyond the top, as expected. By Cantelli's inequality at most
    # 5% of the 4,000 sums are above: more than 6.5% would be a false alarm of 4.35 deviations.
    generator = np.random.default_rng(11)
    expected = 12 * fall ** np.arange(8)
    each = EVEN.means[0, 3:11] - 4
    total, beyond = (expected * each).sum(), (expected * each**2).sum()
    shown = np.zeros((3, 1, 1))
    said = Losses(*np.array([[total], [beyond], [beyond]]), *shown).beside(0.0)
    drawn = generator.poisson(expected, (4000, 8)) @ each
    assert (drawn > said).mean() <= 0.065
    assert (drawn > total).mean() > 0.2  # what is expected alone would be exceeded often


# ------------------------------------------------------------------- the share of a partition


LOSS = ClippingLoss(30.0, 8.0, 10.0, (400.0, 95.0, 60.0), (5000.0, 1400.0, 900.0))


def test_a_number_of_many_bins_may_have_lost_more_of_its_share():
    values = np.array([0.0, -500.0, 500.0, 2000.0])
    sums = LOSS.sums(values)
    twice = dataclasses.replace(LOSS, spread=3.5).widths(values, sums)
    for widths, wider, (total, *_) in zip(
        LOSS.widths(values, sums), twice, (LOSS.below, LOSS.above), strict=True
    ):
        assert (wider >= widths).all() and wider[0] - widths[0] >= 1.75 * total / 301


def test_losses_are_shared_by_sizes():
    values = np.array([0.0, -500.0, 500.0, 2000.0, 1e-9, 9.0])
    sizes = LOSS.sizes(values)
    assert sizes.tolist() == [1, 50, 50, 200, 1, 1]
    sums = LOSS.sums(values)
    assert sums.tolist()[:2] == [sizes.sum(), (sizes**2).sum()]
    # The sums of parts add up to that of the whole.
    parts = LOSS.sums(values[:2]) + LOSS.sums(values[2:]) + LOSS.sums(values[:0])
    assert parts.tolist() == sums.tolist()
    below, above = LOSS.widths(values, sums)
    share = 1.75 * np.maximum(sizes / sizes.sum(), sizes**2 / (sizes**2).sum())
    for widths, (total, root, unseen) in ((below, LOSS.below), (above, LOSS.above)):
        sample = 19 * np.minimum(share, 1) ** 2 * unseen**2
        expected = share * total + np.sqrt(900 + share * root**2 + sample)
        most = total + math.sqrt(900 + 19 * unseen**2)
        assert widths == pytest.approx(np.minimum(most, expected))
        assert (30 <= widths).all()
        assert widths[0] == widths[4] == widths[5] and widths[1] == widths[2]
        assert widths[3] == max(widths)
        # All together they account for more than is lost, by `SPREAD` at least.
        assert (widths - 30).sum() >= min(total, 1.75 * total)


@pytest.mark.parametrize("value", [-31.0, -30.0, 30.0, 31.0])
def test_people_beyond_the_top_are_on_the_side_of_a_number_that_is_beyond_its_noise(value):
    """Of one partition the interval is that of a single number (`Losses.beside`), on that side."""
    side = (500.0, 140.0, 90.0)
    of_sizes = dataclasses.replace(LOSS, below=side, above=side, folded=True)
    values = np.array([value])
    below, above = of_sizes.widths(values, of_sizes.sums(values))
    alone, sample = 530.0, 500 + math.hypot(30, math.sqrt(19) * 90)
    assert below == pytest.approx(sample if value < -30 else alone)
    assert above == pytest.approx(sample if value > 30 else alone)
    both = dataclasses.replace(of_sizes, folded=False).widths(values, of_sizes.sums(values))
    assert both == pytest.approx((sample, sample))


def test_distances_are_lost_where_rows_are_though_they_cancel_out_there():
    """Of 100 partitions one has half of the rows, and the noise alone for its sum of distances."""
    side = (5000.0, 0.0, 0.0)
    loss = dataclasses.replace(LOSS, below=side, above=side, folded=True, norm=1)
    values, rows = np.zeros(100), np.append(0.5, np.full(99, 0.5 / 99))
    least = loss.widths(values, loss.sums(values))
    found = loss.widths(values, loss.sums(values), rows)
    for alone, known in zip(least, found, strict=True):
        assert known[0] == pytest.approx(30 + 0.75 * 0.5 * 5000)
        assert known[1:] == pytest.approx(alone[1:])  # their share of 1 / 100, 1.75 times


def test_who_is_seen_above_a_cliff_is_taken_to_lose_the_most_that_their_bucket_holds():
    """900 people have 1, and 100 have 2: at a clip of 1 they lose 100, and no more is counted."""
    noise = HistogramNoise(Budget(1000.0))
    row = np.array([[900, 100, 0, 0]]), np.array([0]), np.array([1.0])
    loss = lost(*row, even_spread((1, 2, 4)), noise, SINGLE_PARTITION)
    assert loss.total[0] == pytest.approx(100, abs=0.1)
    # No more people are counted there than are expected: 100, as in the bucket below.
    loss = lost(
        np.array([[100, 900, 0, 0]]), *row[1:], even_spread((1, 2, 4)), noise, SINGLE_PARTITION
    )
    assert loss.total[0] == pytest.approx(100, abs=0.1)


def test_where_nobody_is_shown_nobody_loses_anything():
    noise, even = HistogramNoise(Budget(0.4)), even_spread((1, 2, 4))
    row = np.array([[900, 100, 9, 0]])
    nothing = lost(row, np.array([-1]), np.array([1.0]), even, noise, SINGLE_PARTITION)
    assert nothing.total.tolist() == [0.0] and nothing.beyond.tolist() == [0.0]


def test_the_shares_of_rows_add_up_to_all_of_them():
    values = np.array([100.0, 300.0, -5.0, 600.0])
    counts = dataclasses.replace(LOSS, below=(0.0, 0.0, 0.0), norm=1)
    shares = counts.share(values, counts.sums(values))
    assert shares == pytest.approx(np.array([100, 300, 0, 600]) / 995)


@pytest.mark.parametrize("cost", [Budget(0.4), Budget.zcdp(0.05)])
@pytest.mark.parametrize("distance", [2, 3, 4, 9])
def test_people_are_counted_above_a_gap_where_noise_alone_seldom_is(cost, distance):
    """Of noise alone less than 1 in 23 histograms are taken for people there."""
    noise = HistogramNoise(cost)
    level = beyond(cost, 1, 0.025 * 2 ** (-1.25 * (distance - 2)))
    for people, seen in ((level * 0.99, False), (level * 1.01, True)):
        noisy = np.zeros((1, 12))
        noisy[0, :2], noisy[0, 1 + distance] = 1000, people
        found = _unseen(noisy, np.array([1]), SHARED_CLIP, noise, False)[distance - 1][0]
        assert (found == people) == seen
    chances = [0.025 * 2 ** (-1.25 * d) for d in range(8)]
    assert sum(chances) < 1 / 23


@pytest.mark.parametrize("last", [4000.0, -8000.0])
def test_of_many_empty_partitions_those_that_stand_out_share_the_loss(last):
    """999 partitions have the noise alone; sizes of noise add up to 1,000, the numbers to 400."""
    nothing, above = (0.0, 0.0, 0.0), (5000.0, 1400.0, 0.0)
    loss = dataclasses.replace(LOSS, below=nothing, above=above, norm=1)
    values = np.append(np.zeros(999), last)
    found = loss.widths(values, loss.sums(values))[1] - 30
    share = 1.75 * 1 / (999 + abs(last) / 10)
    if last > 0:
        assert found[-1] == pytest.approx(5000)  # all of the loss: it is nearly all that there is
    assert found[0] == pytest.approx(share * 5000 + np.hypot(30, share**0.5 * 1400) - 30)


@pytest.mark.parametrize("signed", [False, True])
def test_the_loss_is_given_back_in_proportion_to_what_was_released(signed):
    """Of numbers from 0 on those above 0 get it; of both signs each, on its own side."""
    values = np.array([-40.0, 0.0, 100.0, 260.0])
    below = LOSS.below if signed else (0.0, 0.0, 0.0)
    loss = dataclasses.replace(LOSS, below=below, lost=80.0, kept=100.0)
    sharing = np.abs(values) if signed else np.maximum(values, 0)
    parts = [loss.sums(values[place : place + 1]) for place in range(4)]
    back = loss.given_back(values, sum(parts))
    assert back == pytest.approx(80 * np.sign(values) * sharing / sharing.sum())
    # What cancels within partitions is not given back to what is left of it.
    kept = dataclasses.replace(loss, kept=2000.0)
    real = 1 if signed else values.sum() / sharing.sum()  # noise below 0 counts too
    expected = np.sign(values) * sharing * 80 / 2000 * real
    assert kept.given_back(values, sum(parts)) == pytest.approx(expected)
    # An L2 norm is no sum: its part, 0.8, is of the sum of numbers.
    euclidean = dataclasses.replace(loss, norm=2)
    assert euclidean.given_back(values, sum(parts)) == pytest.approx(expected * 20)
    assert not dataclasses.replace(loss, lost=0.0).given_back(values, sum(parts)).any()


def test_of_an_l2_norm_more_is_lost_by_as_much_as_sums_are_more_than_it():
    """In a hundred partitions alike the sum of numbers is ten times what is kept of the norm."""
    values = np.full(100, 50.0)
    loss = ClippingLoss(
        30.0, 8.0, 10.0, (0.0, 0.0, 0.0), (400.0, 95.0, 20.0), lost=300.0, kept=500.0
    )
    euclidean = dataclasses.replace(loss, norm=2)
    tenfold = dataclasses.replace(loss, above=(4000.0, 950.0, 200.0))
    sums = loss.sums(values)
    assert euclidean.widths(values, sums)[1] == pytest.approx(tenfold.widths(values, sums)[1])
    few = dataclasses.replace(euclidean, kept=1e6)
    assert few.widths(values, sums)[1] == pytest.approx(loss.widths(values, sums)[1])


NORMS = np.array([1.0, 2.0, 4.0, 8.0, 16.0])


def of_people(people: list[int], clip: float) -> Losses:
    """Return what people with these norms lose, without noise."""
    excess = np.maximum(NORMS - clip, 0.0)[None]
    return Losses(*np.zeros((3, 1)), np.array([people]), NORMS[None], excess)


@pytest.mark.parametrize("power", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("clip", [8.0, 16.0])
def test_sums_that_grow_by_a_power_of_the_norm_are_found_by_their_total(power, clip):
    """Power 1: with n^2 rows in as many partitions the norm is n. 0: all are in one partition."""
    losses = of_people([400, 100, 50, 20, 5], clip)
    sums = losses.people[0] * NORMS**power
    [kept], [lost] = losses.kept, losses.shown
    loss = ClippingLoss(
        3.0, clip, 1.0, (0.0, 0.0, 0.0), (lost, 9.0, 0.0), lost, kept, 2, losses.by_norm()
    )
    total = (sums * (NORMS - losses.excess[0])).sum()
    true = (sums * losses.excess[0]).sum() / lost if lost else NORMS[-1] ** power
    given, most = loss._sum_of_norm(total)
    assert most == pytest.approx(true, rel=1e-3) and total / kept <= given * 1.001 <= most * 1.002
    # No power up to 1 adds up to that: all people are in many partitions, and given back is so too.
    given, most = loss._sum_of_norm(1e6 * kept)
    assert given == pytest.approx(1e6) and most > 1.2e6
    given, most = loss._sum_of_norm(total)
    # Numbers take what `given` says, and intervals hold what `most` says.
    values = np.full(50, total / 50)
    sums = loss.sums(values)
    assert loss.given_back(values, sums).sum() == pytest.approx(lost * given)
    assert (loss.widths(values, sums)[1] - 3).sum() >= min(1.75 * lost * most, 49 * lost * most)


def test_who_keeps_all_below_the_clip_keeps_no_more_than_it():
    """Also in the first bucket, whose mean is its end."""
    choice = ClipChoice(PURE, GRID)
    noisy = histogram(b0=5000, b1=1000, b2=300)
    [losses] = choice.losses(noisy, np.array([0]))
    assert losses.kept[0] == 6300


def test_numbers_that_are_noise_below_0_in_all_get_nothing_back():
    losses = of_people([400, 100, 50, 20, 5], 4.0)
    loss = ClippingLoss(3, 4, 1, (0, 0, 0), (90, 9, 0), 90, 880, 2, losses.by_norm())
    values = np.array([5.0, -40.0])
    assert loss.given_back(values, loss.sums(values)).tolist() == [0, 0]


def test_people_far_above_the_clip_are_taken_to_be_in_no_more_partitions():
    near, far = (of_people(people, 2.0) for people in ([400, 90, 0, 9, 0], [400, 90, 0, 0, 9]))
    made = [
        ClippingLoss(3, 2, 1, (0, 0, 0), (9, 9, 0), 9, 580, 2, each.by_norm())
        for each in (near, far)
    ]
    near, far = (each._sum_of_norm(700)[1] for each in made)
    assert near == pytest.approx(far) and near > 1.2


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 3.0, 6.0])
def test_means_within_buckets_are_those_of_people_who_get_fewer_by_a_power(power):
    """Numbers with the density x^-(power + 1), 10^15 of them: the noise has no weight."""
    edges = tuple(1000 << octave for octave in range(6))
    ends = np.array([500.0, *map(float, edges), 2.0 * edges[-1]])

    def below(exponent):  # the integral of x^(exponent - 1)
        return np.diff(ends**exponent / exponent if exponent else np.log(ends))

    people = below(-power) / below(-power).sum() * 1e15
    found = falling_spread(people[None], np.array([6]), edges, 1.0).means[0]
    exact = below(1 - power) / below(-power)
    assert found[1:7] == pytest.approx(exact[1:], rel=2e-3)  # whole numbers: each half above
    assert found[7:].tolist() == even_spread(edges).means[0, 7:].tolist()


@pytest.mark.parametrize("slope", [0.0, 0.4, 3.0, 5.5])
def test_what_people_of_a_bucket_have_above_a_clip_is_the_mean_over_them(slope):
    """By a sum over 100,000 people, spread over the logarithms as it is said."""
    edges = (1, 2, 4, 8, 1000)
    spread = even_spread(edges)._replace(slopes=np.full((1, 15), slope))
    u = (np.arange(100_000) + 0.5) / 100_000
    clips = np.array([[0.0, 1.0, 3.0, 4.0, 6.0, 90.0, 700.0, 1000.0, 9000.0, 1e9]])
    found = spread.excess(clips)[0]
    weights = np.exp(-slope * u) / np.exp(-slope * u).sum()
    for bucket, (low, high) in enumerate(zip(spread.lowers, spread.uppers, strict=True)):
        numbers = low * (high / low) ** u
        exact = [weights @ np.maximum(numbers - clip, 0) for clip in clips[0]]
        most = np.maximum(high - 0.5 - clips[0], 0)  # nobody has more than the edge
        expected = np.minimum(exact, most)
        assert found[:, bucket] == pytest.approx(expected, rel=1e-4, abs=1e-4 * high)
    assert found[3, 2] == 0 < found[2, 2]  # who is up to an edge loses nothing there


def test_the_histogram_is_of_octaves_where_clips_are_finer():
    choice = ClipChoice(PURE, (1, 2, 3, 4, 6, 7, 8), edges=(1, 2, 4, 8))
    drawn = choice.draw(np.arange(8)[None, None] + 1, ZeroNoise())
    assert drawn.tolist() == [[[1, 2, 3 + 4, 5 + 6 + 7, 8]]]
    [(cost, edges, shown)] = choice.histograms(drawn)
    assert (cost, edges) == (PURE, (1, 2, 4, 8)) and shown is drawn


def test_noise_and_people_who_get_more_make_no_slope():
    for noisy in ([3, -4, 1, 2, 0, 0], [10, 100, 1000, 9000, 9000, 0]):
        found = falling_spread(np.array([noisy]), np.array([4]), CLIPS[:5], 60.0).means[0]
        even = even_spread(CLIPS[:5]).means[0]
        assert found[1:5] == pytest.approx(even[1:5], rel=0.03) and (found <= even * 1.0001).all()


@pytest.mark.parametrize(
    ("squared", "fall", "bend"), [(False, 0.45, 0.9), (True, 0.45**0.5, 0.9**0.25)]
)
def test_the_tail_of_a_shared_clip_bends(squared, fall, bend):
    """5 people in each bucket show no fall: it is the largest that is taken to be."""
    noisy = np.full((1, 12), 5)
    found = _unseen(noisy, np.array([4]), SHARED_CLIP, NOISE, squared)
    expected = [7.5 * fall**d * bend ** (d * (d + 1) / 2) for d in range(4)]
    assert [float(people[0]) for people in found[:4]] == pytest.approx(expected)


@pytest.mark.parametrize("largest", [0, 1 << 60, 1 << 64, 1 << 120, 1 << 400])
def test_widths_are_numbers_for_any_released_numbers(largest):
    values = np.array([0, largest, -largest, 1], object)
    for whole in (values, values.astype(float)):
        for loss in (
            LOSS,
            ClippingLoss(1e200, 1e194, 1e195, (0.0, 0.0, 0.0), (1e201, 1e195, 1e190)),
        ):
            for widths in loss.widths(whole, loss.sums(whole)):
                assert widths.dtype == np.float64 and np.isfinite(widths).all()
                assert (widths >= loss.noise).all()
    assert all(len(widths) == 0 for widths in LOSS.widths(values[:0], np.zeros(SUMS)))
