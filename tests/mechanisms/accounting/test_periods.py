"""A text names the periods that it says, and what is said of a person fits the protected unit."""

import pytest

from beam_dp.mechanisms.accounting.periods import MOST, in_unit, meant, named


def test_a_range_of_dates_names_each_of_them_and_all_else_itself() -> None:
    assert named("2026-02-27..2026-03-01") == ("2026-02-27", "2026-02-28", "2026-03-01")
    assert named("2026-11-22..2026-11-22") == ("2026-11-22",)
    assert named("2026-W47") == ("2026-W47",) and named("17") == ("17",)
    assert len(named("2024-01-01..2024-12-31")) == MOST


@pytest.mark.parametrize(
    "given",
    [
        *("", "a\nb", None, 7, "1..7", "2026-11-30..2026-11-01", "2026-02-30..2026-03-01"),
        *("2025-01-01..2026-01-02", "2026-11-01..", "..", "2026-11-01..2026-11-02..2026-11-03"),
    ],
)
def test_what_names_no_periods_is_refused_with_an_example(given: object) -> None:
    with pytest.raises((TypeError, ValueError), match=r'ledger_period must be .*"2026-11-22"'):
        named(given)


def test_one_person_is_one_persons_rows_of_one_period() -> None:
    text = "what one person counts for; one person in at most 3"
    assert in_unit(text, None) == text
    assert in_unit(text, "day") == (
        "what one person's rows of one day count for; one person's rows of one day in at most 3"
    )


@pytest.mark.parametrize("name", ["day", "visit_day", "Date", "order date", "month_2"])
def test_an_owner_that_looks_like_a_period_is_named(name: str) -> None:
    assert meant(["visitor", name]).endswith(f"write --period {name}")


@pytest.mark.parametrize("name", ["payee", "daylight", "updated"])
def test_other_owners_are_not(name: str) -> None:
    assert not meant(["visitor", name])
