"""What version 0.1.0 wrote is read: a released file, its record and a ledger.

`version_0_1_0` holds the files as that version wrote them; nobody writes them again.
"""

import math
import shutil
from fractions import Fraction
from pathlib import Path

import pytest

import beam_dp as dp
from pipelines import card

WRITTEN = Path(__file__).parent / "version_0_1_0"
RELEASED = WRITTEN / "released.csv"


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return Path(shutil.copy(WRITTEN / "visits.ledger.jsonl", tmp_path))


def test_the_released_numbers_are_read():
    table = dp.Released.read(RELEASED).table
    assert table.num_rows == 3 and table["median_minutes_rank_error"].to_pylist() == [math.inf] * 3
    assert table.slice(1, 1).drop_columns("median_minutes_rank_error").to_pylist() == [
        {
            "day": "2",
            "count": 768,
            "count_low": 713.0,
            "count_high": 1115.0,
            "sum_spent": 14573.314905,
            "sum_spent_low": 12761.893618,
            "sum_spent_high": 21938.43699085372,
            "median_minutes": 16.29,
        }
    ]


def test_the_record_adds_up_shows_and_explains():
    released = dp.Released.read(RELEASED)
    spent = [each["times"] * Fraction(each["epsilon"]) for each in released.record["spent"]]
    assert sum(spent) == Fraction(1, 2) == Fraction(released.record["budget"]["epsilon"])
    shown = repr(released)
    assert "epsilon 0.5" in shown and "768 [713, 1,115]" in shown
    assert released.total()["count"] == pytest.approx((2325, 2228, 3308), abs=1)
    assert "median_minutes" in released.report(title="Visits")


def test_the_card_of_the_record_names_budget_and_ledger(ledger, capsys):
    assert card.main([f"{RELEASED}.json", "--ledger", str(ledger)]) == 0
    made = capsys.readouterr().out
    assert "      epsilon: 0.5\n" in made and "2 runs: epsilon 0.75 of 2" in made


def test_the_ledger_is_read_and_goes_on(ledger):
    balance = dp.Ledger(ledger).balance
    assert balance.left == (Fraction(5, 4), 0)
    assert [charge.label for charge in balance.charges] == ["aggregate: released.csv", "a map"]
    assert {(charge.who, charge.person) for charge in balance.charges} == {("ann", ("visitor_id",))}
    dp.Ledger(ledger).charge(dp.Budget(1), "a third run", person="visitor_id")
    assert dp.Ledger(ledger).balance.left == (Fraction(1, 4), 0)
    assert ledger.read_bytes().startswith((WRITTEN / "visits.ledger.jsonl").read_bytes())
