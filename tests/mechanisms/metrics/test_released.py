"""Released numbers and their intervals: what low and high say, and that it holds.

Chances are sums of exact ones, over all outcomes of the noise but a tail that is counted as failed.
"""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms import ratio
from beam_dp.mechanisms.histogram_choice.clipping_loss import ClippingLoss
from beam_dp.mechanisms.metrics.additive.additive_release import AdditiveRelease
from beam_dp.mechanisms.metrics.released import Released
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.summaries.histograms import Summary
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from tests.doubles import compile_program

INF = math.inf


def ends(released: Released) -> list[tuple[float, float]]:
    """Return the interval of each number."""
    return list(zip(released.low.tolist(), released.high.tolist(), strict=True))


@pytest.mark.parametrize(("below", "above"), [(1.0, 2.0), (0.0, 0.0), (INF, 1.0)])
def test_of_no_number_nothing_is_known(below: float, above: float) -> None:
    """Whatever is said of its sides: the ends are infinite, never NaN."""
    values, sides = np.array([math.nan, 1.5]), (np.full(2, below), np.full(2, above))
    assert ends(Released.between(values, *sides)) == [(-INF, INF), (1.5 - below, 1.5 + above)]
    assert ends(Released.between(values, below, INF)) == [(-INF, INF), (1.5 - below, INF)]


def test_ranks_say_nothing_of_a_distance() -> None:
    found = Released.between(np.array([1.5, math.nan]), INF, INF, 7.0)
    assert found.rank.tolist() == [7, 7] and ends(found) == [(-INF, INF)] * 2


def test_infinite_ends_win_over_every_number() -> None:
    values = np.array([INF, -INF, 2**80, -(2**80)], object)
    found = Released.between(values, INF, INF)
    assert ends(found) == [(-INF, INF)] * 4


def test_an_interval_where_the_truth_cannot_be_moves_and_is_no_point() -> None:
    found = Released.between(np.array([-6, -6, -3, 4]), 3.0, np.array([4.0, 8.0, 3.0, INF]))
    columns = dp.Count().output_columns(found)
    assert [column.tolist() for column in columns] == [
        [-6, -6, -3, 4],
        [0, 0, 0, 1],
        [4, 2, 3, INF],
    ]
    share = Released.between(np.array([1.5, 0.9]), 0.25, 0.25)
    low, high = dp.Ratio("x").output_columns(share)[1:]
    assert (low.tolist(), high.tolist()) == ([0.75, 0.65], [1.0, 1.0])
    mean = share.inside(Fraction(2), Fraction(3))
    assert ends(mean) == [(2.0, 2.25), (2.0, 2.25)] and mean.values.tolist() == [2, 2]
    true = Released.between(np.array([0]), 0.0, 0.0)  # without noise
    assert [column.tolist() for column in dp.Count().output_columns(true)] == [[0], [0], [0]]


def test_a_share_of_no_rows_is_not_0_for_certain() -> None:
    ones = Released.between(np.array([-9]), 5.0, 5.0)
    rest = Released.between(np.array([100]), 5.0, 5.0)
    [low], [high] = dp.Ratio("x", equals=1).output_columns(dp.Ratio("x").combine([ones, rest]))[1:]
    assert low == 0 and 5 / 105 <= high < 0.06


def test_a_variance_of_0_has_no_upper_end() -> None:
    parts = [Released.between(np.array([v]), w, w) for v, w in ((9, 1.0), (-50, 9.0))]
    people = Released.between(np.array([100]), 5.0, 5.0)
    found = dp.Variance("x").combine([*parts, people])
    assert found.values.tolist() == [0] and ends(found) == [(0, INF)]


def test_integers_of_any_size_have_ends() -> None:
    sides = np.array([2.0**60, 0.0])
    found = Released.between(np.array([2**70, -(2**70)], object), sides, sides)
    assert ends(found) == [(2.0**70 - 2.0**60, 2.0**70 + 2.0**60), (-(2.0**70), -(2.0**70))]


def test_whole_numbers_have_ends_that_are_whole_and_hold_what_the_others_held() -> None:
    below, above = np.array([1.0, INF, 0.0]), np.array([0.5, 3.7, INF])
    found = Released.between(np.array([2.4, -2.6, 7.0]), below, above).rounded()
    assert found.values.tolist() == [2, -3, 7]
    assert ends(found) == [(1, 3), (-INF, 2), (7, INF)]


def test_a_part_of_the_loss_moves_a_number_and_leaves_its_ends() -> None:
    """But where the number is moved beyond an end: then that is the number."""
    values = np.array([100.0, 40.0, -7.0, 0.0])
    for total in (60.0, 10.0):
        loss = ClippingLoss(
            5.0, 8.0, 2.0, (0.0, 0.0, 0.0), (total, 9.0, 0.0), lost=50.0, kept=140.0
        )
        drawn = Released(values, np.full(4, 5.0), np.full(4, 5.0), np.zeros(4), loss)
        sums = loss.sums(values)
        below, above = loss.widths(values, sums)
        found = drawn.spread(sums)
        back = loss.given_back(values, sums)
        assert found.values.tolist() == (values + back).tolist()
        assert back.sum() == pytest.approx(50 * (140 - 7) / 140)  # noise alone gets nothing
        assert found.low == pytest.approx(values - below)
        assert found.high == pytest.approx(np.maximum(values + above, found.values))


# --------------------------------------------------------------------- the claim, exactly


def laplace(rate: float, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers up to `most`, and the chances of discrete Laplace noise."""
    numbers = np.arange(-most, most + 1)
    return numbers, np.tanh(rate / 2) * np.exp(-rate * np.abs(numbers))


class Given(Noise):
    """Noise that is given, one list per draw."""

    def __init__(self, *draws: np.ndarray) -> None:
        self._draws = iter(draws)

    def discrete_laplace(self, rate: object, size: int) -> np.ndarray:
        """Return the next list."""
        return next(self._draws)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_number_of_people_is_in_its_interval(epsilon: float) -> None:
    """With 95%, and not with one less on each side: nothing is given away."""
    [step] = compile_program([dp.PeopleCount()], dp.Budget(epsilon), 1, partitions=1).steps
    assert isinstance(step.release, AdditiveRelease)
    numbers, chances = laplace(epsilon, round(60 / epsilon))
    nobody = empty(len(numbers))
    found = step.release.draw(nobody, Given(numbers))
    assert found.values.tolist() == numbers.tolist()  # the truth is 0
    held = (found.low <= 0) & (found.high >= 0)
    tighter = (found.low + 1 <= 0) & (found.high - 1 >= 0)
    assert 0.95 <= chances[held].sum() and chances[tighter].sum() < 0.96


def empty(size: int) -> PartitionView:
    """Return partitions without anybody."""
    none = np.empty(0, np.int64)
    summary = Summary(np.empty((1, 0), np.uint64), none, none, none, none)
    return PartitionView(summary, none, size)


COUNTS = [(0, 1), (1, 1), (2, 5), (3, 40), (39, 40)]


@pytest.mark.parametrize(("ones", "total"), COUNTS)
def test_a_share_is_in_its_interval(ones: int, total: int) -> None:
    """Of the default method, whose two draws are all of its chance: both at once, in a square."""
    mechanism = ratio.METHODS["kulesza_suresh_wang"](dp.Budget(1.0), 1)
    numbers, chances = laplace(1.0, 50)
    first, second = (side.ravel() for side in np.meshgrid(numbers, numbers))
    counts = np.full(len(first), ones), np.full(len(first), total)
    drawn = mechanism.release(*counts, Given(first, second))
    found = Released.between(drawn.values, drawn.errors, drawn.errors)
    held = (found.low <= ones / total + 1e-12) & (ones / total - 1e-12 <= found.high)
    assert np.outer(chances, chances).ravel()[held].sum() >= 0.95


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.5, INF])
def test_what_cut_pairs_would_have_added_leaves_ends_that_are_numbers(
    share: float, signed: bool
) -> None:
    """Also where a side is open already, as that of a count where nobody was shown, or no number."""
    values = np.array([5.0, -3.0, 0.0, math.nan])
    sides = np.array([2.0, 0.5, 1.0, 1.0])
    for given in (Released.between(values, 2.0, INF), Released.between(values, sides, sides)):
        found = given.plus_lost(share, signed)
        assert not np.isnan(found.low).any() and not np.isnan(found.high).any()
        assert (found.low <= given.low).all() and (found.high >= given.high).all()
        assert (found.low < given.low)[0] == (signed and share > 0)
        if not signed:
            assert found.low.tolist() == given.low.tolist()


@pytest.mark.parametrize("shape", [(0,), (1000, 3)])
def test_a_column_of_one_number_is_pickled_as_one_and_comes_back(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(1).integers(-9, 9, shape)
    several = np.arange(values.size, dtype=float).reshape(shape)
    for side in (2.5, INF, math.nan):
        constant = np.full(shape, side)
        for below, above in ((constant, constant), (several, constant), (constant, several)):
            given = Released(values, below, above, np.zeros(shape), None, 3.0)
            found = pickle.loads(pickle.dumps(given))
            assert vars(found).keys() == vars(given).keys() and found.origin == 3.0
            for mine, theirs in zip(found.columns, given.columns, strict=True):
                assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
                np.testing.assert_array_equal(mine, theirs)
    shortened = pickle.dumps(Released.between(np.arange(1000.0), 2.5, 2.5))
    assert len(shortened) < 1.2 * np.arange(1000.0).nbytes
