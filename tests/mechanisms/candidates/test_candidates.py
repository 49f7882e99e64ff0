"""The candidates are the values that they emit, and every comparison with data is exact."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beam_dp.mechanisms.candidates import candidates as candidates_module
from beam_dp.mechanisms.candidates.candidates import Candidates, RoundedGrid

SETS = {
    "ints": Candidates.linear(-7, 30, 3),
    "huge ints": Candidates.linear(0, 2**64, 1),
    "wide ints": Candidates.linear(-(2**70), 2**70, 2**60),
    "decimals": Candidates.linear(0, 1, 0.1),
    "fine decimals": Candidates.linear(-3.0, 5.0, 0.001),
    "odd decimals": Candidates.linear(0.1, 1e9, 0.7),
    "thirds": Candidates.linear(Fraction(1, 3), 10.0, Fraction(2, 7)),
    "beyond 2^53": Candidates.linear(0.0, 1e17, 1024.5),
    "edge of floats": Candidates.linear(0.0, 4.5e12, 0.001),
    "powers": Candidates.geometric(1, 2**70, 3),
    "float powers": Candidates.geometric(0.01, 1e12, 1.1),
    "mixed": Candidates.of([2**53, 2**53 + 1, 0.5, Fraction(1, 3), -1e300, 10**400, -5]),
}


@pytest.mark.parametrize(
    ("low", "high", "step", "expected"),
    [
        (1, 10, 3, [1, 4, 7, 10]),
        (1, 12, 3, [1, 4, 7, 10]),  # 12 is not on the grid
        (5, 5, 2, [5]),
        (-3, 3, 2, [-3, -1, 1, 3]),
        (0, 1, Fraction(1, 3), [0.0, 1 / 3, 2 / 3, 1.0]),
        (-0.0, 0.5, 0.25, [0.0, 0.25, 0.5]),
        (1e-07, 3e-07, 1e-07, [1e-07, 2e-07, 3e-07]),
        (0, 1, 0.1, [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]),
    ],
)
def test_linear_goes_up_to_high(low, high, step, expected):
    candidates = Candidates.linear(low, high, step)
    assert list(candidates) == expected
    assert {type(value) for value in candidates} == {type(expected[0])}
    assert candidates.size == len(candidates) == len(expected)


def test_three_ints_give_ints_of_any_size():
    candidates = Candidates.linear(0, 2**64, 1)
    assert candidates.size == 2**64 + 1
    assert candidates[2**64] == candidates[-1] == 2**64
    assert type(candidates[17]) is int
    assert candidates.index(2**63 + 5) == 2**63 + 5
    assert candidates.index(2.0**63 + 4096) == 2**63 + 4096
    assert candidates.index(0.5) == 1
    assert candidates.index(math.inf) == candidates.size
    assert candidates.index(-math.inf) == 0
    with pytest.raises(OverflowError):
        len(candidates)


@pytest.mark.parametrize(
    ("low", "high", "ratio", "expected"),
    [
        (1, 100, 2, [1, 2, 4, 8, 16, 32, 64, 100]),
        (1, 64, 2, [1, 2, 4, 8, 16, 32, 64]),
        (0.1, 100, 10, [0.1, 1.0, 10.0, 100.0]),
        (0.3, 0.3, 2, [0.3]),
        (2, 5, 1.5, [2.0, 3.0, 4.5, 5.0]),
    ],
)
def test_geometric_ends_with_high(low, high, ratio, expected):
    values = list(Candidates.geometric(low, high, ratio))
    assert values == expected
    assert {type(value) for value in values} == {type(expected[0])}


def test_of_sorts_and_drops_equal_values():
    candidates = Candidates.of([3, 1.5, 1, 1.0, np.int64(7), np.float64(2.5)])
    assert list(candidates) == [1, 1.5, 2.5, 3, 7]
    assert [type(value) for value in Candidates.of(np.array([2, 1]))] == [int, int]


@pytest.mark.parametrize("name", SETS)
def test_index_follows_the_definition(name):
    candidates = SETS[name]
    count = min(candidates.size, 200)
    picked = [candidates[i * (candidates.size - 1) // max(count - 1, 1)] for i in range(count)]
    for value in picked:
        i = candidates.index(value)
        assert candidates[i] == value
        assert candidates.index(Fraction(value) + Fraction(1, 10**30)) == i + 1
        assert candidates.index(Fraction(value) - Fraction(1, 10**30)) == i


NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.integers(-40, 40),
    st.floats(allow_nan=False),
    st.fractions(max_denominator=1000),
)


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(NUMBERS, max_size=8),
    near=st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from([-1, 0, 1])), max_size=8),
    name=st.sampled_from(sorted(set(SETS) - {"huge ints"})),
    kind=st.sampled_from([np.int64, np.uint64, np.int32, np.float64, np.float32, object]),
)
def test_indexes_agree_with_index(values, near, name, kind):
    candidates = SETS[name]
    for i, side in near:  # on a candidate and one unit in the last place beside it
        value = candidates[i % candidates.size]
        beside = math.nextafter(float(value), math.inf * side) if side and value < 1e300 else value
        values.append(beside)
    with np.errstate(all="ignore"):
        if np.dtype(kind).kind in "iu":
            bounds = np.iinfo(kind)
            values = [min(max(int(v), bounds.min), bounds.max) for v in values if abs(v) < 10**30]
        elif kind is not object:
            values = [float(v) for v in values if abs(v) < 1e300]
        array = np.array(values, dtype=kind)
    found = candidates.indexes(array)
    assert found.dtype == np.int64
    assert found.tolist() == [candidates.index(value) for value in array]


@pytest.mark.parametrize(
    "candidates",
    [
        Candidates.linear(0.0, 4.5e12, 0.001),
        Candidates.linear(-2.5e12, 4.5e12, 0.001),
        Candidates.linear(0.003, 4.5e14, 0.7),
        Candidates.linear(1.7, 9e6, 1e-7),
    ],
)
def test_indexes_are_exact_where_floats_hardly_tell_neighbours_apart(candidates):
    places = [k * 2654435761 * 40503 % (candidates.size - 2) + 1 for k in range(3_000)]
    values = np.array([candidates[i] for i in places])
    expected = np.array(places)
    assert (candidates.indexes(values) == expected).all()
    assert (candidates.indexes(np.nextafter(values, np.inf)) == expected + 1).all()
    # Where neighbours are one unit in the last place apart, the float below is the one before.
    below = np.nextafter(values, -np.inf)
    before = np.array([candidates[i - 1] for i in places])
    assert (candidates.indexes(below) == expected - (below == before)).all()


@pytest.mark.parametrize("name", ["ints", "decimals", "powers", "beyond 2^53"])
def test_indexes_keep_the_shape_and_send_nan_above_the_top(name):
    candidates = SETS[name]
    found = candidates.indexes(np.array([[math.nan, math.inf], [-math.inf, float(candidates[1])]]))
    assert found.tolist() == [[candidates.size, candidates.size], [0, 1]]


def test_indexes_refuse_sizes_beyond_int64():
    with pytest.raises(ValueError, match=r"size must be below 2\*\*62"):
        SETS["huge ints"].indexes([1])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Candidates.linear(0, 1, 0), ValueError, "step must be above 0, not 0"),
        (lambda: Candidates.linear(2, 1, 1), ValueError, "high must be at least low=2, not 1"),
        (lambda: Candidates.linear(0, math.nan, 1), ValueError, "high must be finite, not nan"),
        (lambda: Candidates.linear("0", 1, 1), TypeError, "low must be a real number"),
        (lambda: Candidates.linear(0, 1, True), TypeError, "step must be a real number"),
        (lambda: Candidates.linear(0.0, 2.0**60, 1), ValueError, "step must be above 256.0"),
        (lambda: Candidates.linear(0, 10**400, 0.5), ValueError, "within the range of floats"),
        (lambda: Candidates.geometric(0, 1, 2), ValueError, "low must be above 0, not 0"),
        (
            lambda: Candidates.geometric(1, 0.5, 2),
            ValueError,
            "high must be at least low=1, not 0.5",
        ),
        (lambda: Candidates.geometric(1, 10, 1), ValueError, "ratio must be above 1, not 1"),
        (
            lambda: Candidates.geometric(1, 10, 1 + 1e-9),
            ValueError,
            "ratio must be at least 1.0000",
        ),
        (lambda: Candidates.geometric(1, 10**400, 1.5), ValueError, "within the range of floats"),
        (lambda: Candidates.of([]), ValueError, "values must have at least one number"),
        (lambda: Candidates.of([1, math.nan]), ValueError, "values must be finite, not nan"),
        (lambda: Candidates.of([True]), TypeError, "values must be a real number"),
        (lambda: Candidates.of("123"), TypeError, "values must be a list of numbers, not '123'"),
        (lambda: Candidates.of(5), TypeError, "values must be a list of numbers, not 5"),
        (lambda: Candidates([1, 2]), TypeError, "points must be made by Candidates.of"),
        (lambda: Candidates.of([1])[1], IndexError, "index must be below 1, not 1"),
    ],
)
def test_wrong_parameters_are_refused(make, error, message):
    with pytest.raises(error, match=r"^Candidates[a-z.]*: ") as caught:
        make()
    assert message in str(caught.value)


def test_the_smallest_ratio_that_the_message_names_is_accepted(monkeypatch):
    monkeypatch.setattr(candidates_module, "MATERIALISED", 1000)
    with pytest.raises(ValueError) as caught:
        Candidates.geometric(1, 10, 1.001)
    ratio = float(str(caught.value).split("at least ")[1].split(" ")[0])
    assert 900 < Candidates.geometric(1, 10, ratio).size <= 1001


def test_rounded_grid_has_all_numbers_of_few_bits_and_no_others():
    grid = RoundedGrid(1, 1 << 12, 4)
    few = [n for n in range((1 << 12) + 1) if len(bin(n)[2:].rstrip("0")) <= 4]
    assert list(grid) == few
    assert grid.size == len(grid) == len(few)


@pytest.mark.parametrize("divisor", [1, 3, 10**6])
def test_rounded_grid_indexes_are_the_first_at_least(divisor):
    grid = RoundedGrid(divisor, 50 * divisor, 6)
    values = list(grid)
    assert values == sorted(set(values))
    probes = [*values, *(math.nextafter(v, 99) for v in values), -1, Fraction(1, 7), 1e9, math.inf]
    for probe in probes:
        expected = next((i for i, value in enumerate(values) if value >= probe), grid.size)
        assert grid.index(probe) == expected
    assert grid.indexes(np.array(values)).tolist() == list(range(grid.size))


@pytest.mark.parametrize(
    "grid",
    [Candidates.linear(-3, 9, 2), Candidates.linear(0, 1, 0.1), Candidates.of([-2, 0.5, 7])],
)
def test_mirrored_values_are_the_negatives_in_rising_order(grid):
    assert list(grid.mirrored()) == sorted(-value for value in grid)
    assert grid.mirrored().mirrored() == grid


@pytest.mark.parametrize(
    "candidates",
    [Candidates.linear(-3, 4, 1), Candidates.geometric(1, 1000, 1.5), Candidates.of([2, 7, 7.5])],
)
def test_the_nearest_candidate_is_nearest(candidates):
    for value in (-100, 0, 0.4999, 2, 4.5, 7.25, 7.2, 10**30):
        best = min(abs(Fraction(point) - Fraction(value)) for point in candidates)
        assert abs(Fraction(candidates.nearest(value)) - Fraction(value)) == best
