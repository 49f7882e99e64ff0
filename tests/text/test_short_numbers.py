"""Short numbers are within half a unit of their third digit, and are read back as they look."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_dp.text.text_tables import short, shortened


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (0.1164, "0.116"),
        (25.0, "25"),
        (999.6, "1,000"),
        (1416, "1,420"),
        (-250_000, "-250,000"),
        (3.2e15, "3.2e15"),
        (0.00012345, "0.000123"),
        (0.0000053124, "5.31e-6"),
        (math.inf, "inf"),
    ],
)
def test_three_digits_are_written_out(number: float, text: str) -> None:
    assert short(number) == text


@given(st.floats(1e-300, 1e300))
def test_a_short_number_is_near_and_has_no_more_than_three_digits(number: float) -> None:
    text = short(number)
    assert abs(float(text.replace(",", "")) - number) <= number * 0.0051
    digits = text.partition("e")[0].replace(",", "").replace(".", "").strip("0")
    assert len(digits) <= 3


def test_numbers_within_a_text_are_shortened_and_words_are_not() -> None:
    text = "12.32 / 31.23 clips, 1.234e+04 people; R^2/n of day_1234 v1.2345.6 0.05312, 1e-06."
    assert shortened(text) == (
        "12.3 / 31.2 clips, 12,300 people; R^2/n of day_1234 v1.2345.6 0.0531, 1e-6."
    )
