"""What people lose at a clip: the estimate by the histogram, and the share of a partition."""

import itertools
import math
import random

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.histogram_choice.clip import ClipChoice
from beam_dp.mechanisms.histogram_choice.loss import ClipEdges, Cut, Losses, lost
from beam_dp.mechanisms.noise.sampling import Noise

GRID = tuple(1 << power for power in range(12))


def losses(noisy: list[int], top: int, clip: int, scale: float = 2.5):
    """Return total and squares for one row."""
    found = lost(np.array([noisy]), np.array([top]), np.array([clip]), ClipEdges(GRID), scale)
    return float(found.total[0]), float(found.squares[0])


@pytest.mark.parametrize("grid", [GRID, (1, 2, 3, 50), tuple(range(1, 300)), (5, 7000)], ids=len)
def test_a_mean_is_that_of_numbers_even_in_the_logarithm(grid):
    means = ClipEdges(grid).means
    for bucket, (low, high) in enumerate(itertools.pairwise(grid), start=1):
        numbers = range(low + 1, high + 1)
        weights = [1 / number for number in numbers]
        mean = len(weights) / sum(weights)
        assert means[bucket] == pytest.approx(mean, rel=0.03)
        assert low < means[bucket] <= high


def test_beyond_the_last_clip_the_edges_are_octaves():
    for grid in (GRID, (10, 1000), (1, 2, 4, 5), tuple(range(1, 4097))):
        means = ClipEdges(grid).means
        beyond = means[len(grid) :]
        assert (beyond[1:] / beyond[:-1]).tolist() == pytest.approx(
            [2.0] * (len(beyond) - 1), rel=0.1
        )
        assert beyond[0] == pytest.approx(grid[-1] / math.log(2), rel=0.1)


EXTREME = [
    (1, 1 << 120),
    (1 << 60, (1 << 60) + 1),
    (1 << 60, (1 << 60) + 1, (1 << 60) + 2, 1 << 61),
    (1, 10**20),
    ((1 << 120) - 1, 1 << 120),
]


@pytest.mark.parametrize("grid", EXTREME, ids=str)
def test_losses_are_numbers_for_any_clips(grid):
    edges = ClipEdges(grid)
    assert np.isfinite(edges.means).all() and (np.diff(edges.means) >= 0).all()
    choice = ClipChoice((Budget(0.4),), grid)
    for people in np.ndindex(*(2,) * (len(grid) + 1)):
        noisy = np.array([[people]]) * 5000
        drawn = choice.draw(noisy, Noise())
        for clip in range(len(grid)):
            [loss] = choice.losses(drawn, np.array([clip]))
            assert np.isfinite(loss.total).all() and np.isfinite(loss.squares).all()
            assert (loss.total >= 0).all() and (loss.squares >= 0).all()


def test_people_between_the_clip_and_the_top_lose_what_is_above_the_clip():
    # Nothing beyond the top: the counts there are far below 0.
    noisy = [5000, 900, 400, 100, 70, 50, -99, -99, -99, -99, -99, -99, -99]
    means = ClipEdges(GRID).means
    total, squares = losses(noisy, 5, 2, scale=0.0)
    excess = [means[bucket] - 4 for bucket in (3, 4, 5)]
    seen = sum(n * x for n, x in zip((100, 70, 50), excess, strict=True))
    assert total == pytest.approx(seen, rel=1e-9)
    assert squares >= sum(n * x**2 for n, x in zip((100, 70, 50), excess, strict=True))
    # The doubt about these counts is one standard deviation of their noise.
    doubt = math.sqrt(2) * 2.5 * math.sqrt(sum(x**2 for x in excess))
    assert losses(noisy, 5, 2)[0] >= (seen + doubt) * (1 - 1e-9)


def test_where_nobody_is_shown_nobody_loses():
    assert losses([50] * 13, -1, 3) == (0.0, 0.0)
    total, _ = losses([5000, 900, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 1, 1)
    assert total > 0  # a few may be above all that are shown


def test_people_beyond_the_top_fall_as_the_counts_do():
    # 400, 100: a fourth each; the noise is next to none, so that q is.
    found = lost(
        np.array([[6400, 1600, 400, 100, 0, 0, 0, 0, 0, 0, 0, 0, 0]]),
        *(np.array([2]), np.array([2])),
        ClipEdges(GRID),
        1e-9,
    )
    each = ClipEdges(GRID).means[3:5] - 4
    people = np.array([100.0, 0.0])  # what is beyond has been counted, too
    assert found.total == pytest.approx((people * each).sum())
    assert found.beyond == pytest.approx((people * each**2).sum())
    assert found.squares == found.beyond
    # Where counts are uncertain, the fall goes on beyond them: u_4 = u_3 / 4.
    noisy = np.array([[6400, 1600, 400, 100, 25, 6, 9, 9, 9, 9, 9, 9, 9]])
    found = lost(noisy, np.array([2]), np.array([2]), ClipEdges(GRID), 1e-9)
    people = 100 * 0.25 ** np.arange(5)
    people[2] = 6  # as counted
    people[3:] = 6 * 0.25 ** np.arange(1, 3)
    each = ClipEdges(GRID).means[3:8] - 4
    assert found.total == pytest.approx((people * each).sum())
    assert found.beyond == pytest.approx((people * each**2).sum())


def test_beside_noise_what_is_lost_is_joined_by_squares():
    found = Losses(np.array([10.0, 0.0, 7.0]), np.array([99.0, 0.0, 5.0]), np.array([4.0, 0, 0]))
    assert found.beside(0.0) == pytest.approx([10 + math.sqrt(19 * 4), 0, 7])
    assert found.beside(5.0) == pytest.approx([10 + math.sqrt(25 + 19 * 4) - 5, 0, 7])
    each = found.beside(np.array([0.0, 3.0, 1e300]))
    assert each[1:] == pytest.approx([0, 7]) and each[0] == found.beside(0.0)[0]


@pytest.mark.parametrize("fall", [0.2, 0.35, 0.45])
def test_samples_of_people_lose_no_more_than_is_said_but_for_one_in_twenty(fall):
    # Poisson people in each bucket beyond the top, as expected. By Cantelli's inequality at most
    # 5% of the 4,000 sums are above: more than 6.5% would be a false alarm of 4.35 deviations.
    generator = np.random.default_rng(11)
    expected = 12 * fall ** np.arange(8)
    each = ClipEdges(GRID).means[3:11] - 4
    total, beyond = (expected * each).sum(), (expected * each**2).sum()
    said = Losses(np.array([total]), np.array([beyond]), np.array([beyond])).beside(0.0)
    drawn = generator.poisson(expected, (4000, 8)) @ each
    assert (drawn > said).mean() <= 0.065
    assert (drawn > total).mean() > 0.2  # what is expected alone would be exceeded often


def test_a_higher_clip_loses_less():
    generator = random.Random(3)
    for _ in range(200):
        noisy = [generator.choice((-5, 0, 3, 90, 4000)) for _ in range(13)]
        top = generator.randrange(13)
        by_clip = [losses(noisy, top, clip) for clip in range(len(GRID))]
        totals, squares = zip(*by_clip, strict=True)
        assert list(totals) == sorted(totals, reverse=True)
        assert list(squares) == sorted(squares, reverse=True)
        assert min(totals) >= 0 and min(squares) >= 0


def test_rows_are_each_by_itself():
    generator = np.random.default_rng(4)
    noisy = generator.integers(-5, 300, (40, 13))
    tops, clips = generator.integers(-1, 13, 40), generator.integers(0, 12, 40)
    whole = lost(noisy, tops, clips, ClipEdges(GRID), 2.5)
    for row in range(40):
        one = losses(noisy[row].tolist(), int(tops[row]), int(clips[row]))
        assert one == pytest.approx((whole.total[row], whole.squares[row]))


# ------------------------------------------------------------------- the share of a partition


CUT = Cut(30.0, 8.0, 10.0, (400.0, 95.0), (5000.0, 1400.0))


def test_one_partition_loses_all():
    for value in (-1e6, -3.0, 0.0, 10.0, 12345.0):
        values = np.array([value])
        below, above = CUT.widths(values, CUT.sums(values))
        assert below.tolist() == [430.0] and above.tolist() == [5030.0]


def test_losses_are_shared_by_sizes():
    values = np.array([0.0, -500.0, 500.0, 2000.0, 1e-9, 9.0])
    sizes = CUT.sizes(values)
    assert sizes.tolist() == [1, 50, 50, 200, 1, 1]
    sums = CUT.sums(values)
    assert sums.tolist() == [sizes.sum(), (sizes**2).sum()]
    # The sums of parts add up to that of the whole.
    parts = CUT.sums(values[:2]) + CUT.sums(values[2:]) + CUT.sums(values[:0])
    assert parts.tolist() == sums.tolist()
    below, above = CUT.widths(values, sums)
    share = np.maximum(sizes / sizes.sum(), sizes**2 / (sizes**2).sum())
    for widths, (total, root) in ((below, CUT.below), (above, CUT.above)):
        expected = 2 * share * total + np.sqrt(900 + 2 * share * root**2) - 30
        assert widths == pytest.approx(30 + np.minimum(total, expected))
        assert (30 <= widths).all() and (widths <= 30 + total).all()
        assert widths[0] == widths[4] == widths[5] and widths[1] == widths[2]
        assert widths[3] == max(widths)
        # All together they account for twice of what is lost, at least.
        assert (widths - 30).sum() >= min(total, 2 * total)


def test_a_larger_partition_has_no_smaller_share():
    generator = np.random.default_rng(5)
    for _ in range(50):
        values = generator.normal(0, 1, 30) * 10 ** generator.uniform(0, 6, 30)
        below, above = CUT.widths(values, CUT.sums(values))
        order = np.argsort(np.maximum(np.abs(values), 10))
        assert (np.diff(below[order]) >= 0).all() and (np.diff(above[order]) >= 0).all()


def test_without_loss_it_is_the_noise():
    cut = Cut(30.0, 8.0, 10.0, (0.0, 0.0), (0.0, 0.0))
    values = np.array([0.0, 99.0])
    for widths in cut.widths(values, cut.sums(values)):
        assert widths.tolist() == [30.0, 30.0]


@pytest.mark.parametrize("largest", [0, 1 << 60, 1 << 64, 1 << 120, 1 << 400])
def test_widths_are_numbers_for_any_released_numbers(largest):
    values = np.array([0, largest, -largest, 1], object)
    for whole in (values, values.astype(float)):
        for cut in (CUT, Cut(1e200, 1e194, 1e195, (0.0, 0.0), (1e201, 1e195))):
            for widths in cut.widths(whole, cut.sums(whole)):
                assert widths.dtype == np.float64 and np.isfinite(widths).all()
                assert (widths >= cut.noise).all()
    assert all(len(widths) == 0 for widths in CUT.widths(values[:0], np.zeros(2)))
