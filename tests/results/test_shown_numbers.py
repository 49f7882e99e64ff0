"""Rounding keeps what noise allows, a shown interval holds the exact one, no text acts."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_dp.results.shown_numbers import ComputedNumber, one_line, shown, width

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((8412.37, 7900.2, 9300.8), "8,410 [7,900, 9,310]"),
        ((2_091_480.5, 1_857_600.0, 2_475_321.0), "2,091,000 [1,857,000, 2,476,000]"),
        ((0.12345, 0.1, 0.2), "0.123 [0.100, 0.200]"),
        ((28.56, 28.55, INF), "28.56* [28.55, ?]"),
        ((12, 0, 9_000.0), "10* [0, 9,000]"),
        ((2.5, -INF, INF), "2.5* [?, ?]"),
        ((5.0, 5.0, 5.0), "5.000 [5.000, 5.000]"),
        ((NAN, -INF, INF), "-*"),
        ((4e20, 1e20, 9e20), "4e+20* [1e+20, 9e+20]"),
        ((4e-20, 1e-20, 5e-20), "4e-20* [1e-20, 5e-20]"),
        ((58.861, None, None, 73.0), "58.86 (rank ±73)"),
        ((60.0, None, None, INF), "60* (rank ±?)"),
    ],
)
def test_a_number_is_shown_to_two_digits_beyond_its_interval(numbers, text):
    assert str(shown(*numbers)) == text


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((39.7, 39.69, INF), "39.70 (up to 242 people above)"),
        ((39.7, -INF, 39.71), "39.70 (up to 242 people below)"),
        ((NAN, -INF, INF), "-*"),
    ],
)
def test_a_largest_number_is_of_use_where_few_people_are_beyond_it(numbers, text):
    assert str(shown(*numbers, beyond=242)) == text


FLOATS = st.floats(-1e12, 1e12)


@given(FLOATS, FLOATS, FLOATS)
def test_the_shown_interval_holds_the_exact_one(one, two, three):
    low, value, high = sorted((one, two, three))
    number = shown(value, low, high)
    texts = [text.strip("*").replace(",", "") for text in (number.text, *number.ends)]
    if all("e" not in text for text in texts):
        middle, left, right = map(Fraction, texts)
        assert left <= Fraction(str(low)) and Fraction(str(high)) <= right
        width = Fraction(high) - Fraction(low)
        assert abs(middle - Fraction(value)) <= (width or abs(Fraction(value))) / 100


@pytest.mark.parametrize(
    ("text", "most", "seen"),
    [
        ("Köln", 0, "Köln"),
        ("a\x1b[31m\r\nb", 0, "a\\x1b[31m\\r\\nb"),
        ("\ud800", 0, "\\ud800"),
        ("abcdefgh", 6, "abcd.."),
        ("東京都港区", 6, "東京.."),
        ("", 4, ""),
    ],
)
def test_what_acts_is_shown_by_its_number(text, most, seen):
    assert one_line(text, most) == seen
    assert not most or width(seen) <= most


def test_a_number_without_end_is_shown() -> None:
    """What SQL divides by a released 0."""
    assert str(ComputedNumber(math.inf)) == "inf*" == str(ComputedNumber(math.inf, whole=True))
