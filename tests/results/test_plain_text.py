"""Text of keys: short, of one line, and without signs that act."""

import pytest

from beam_dp.results.plain_text import plain, width


@pytest.mark.parametrize(
    ("text", "most", "shown"),
    [
        ("Köln", 0, "Köln"),
        ("a\x1b[31m\r\nb", 0, "a\\x1b[31m\\r\\nb"),
        ("user\u202egnp.exe", 0, "user\\u202egnp.exe"),
        ("\ud800", 0, "\\ud800"),
        ("abcdefgh", 6, "abcd.."),
        ("東京都港区", 6, "東京.."),
        (12, 0, "12"),
        ("", 4, ""),
    ],
)
def test_what_acts_is_shown_by_its_number(text: object, most: int, shown: str) -> None:
    assert plain(text, most) == shown
    assert not most or width(shown) <= most


def test_wide_and_combining_signs_are_counted() -> None:
    assert width("東京") == 4 and width("e\u0301") == 1 and width("abc") == 3
