"""Runs over disjoint periods cost the largest of them; what a person can lose in all is said too."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import beam_dp as dp

TENTH = Fraction(1, 10)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "visits.ledger.jsonl"


def release(kept: str | None = None, budget: dp.Budget | None = None, **named: Any) -> Any:
    asked: dict[str, Any] = {"period": "day", "ledger_period": kept} | named
    return dp.PrivateAggregate("person", [dp.Sum("spent")], budget or dp.Budget(TENTH), **asked)


def test_disjoint_periods_cost_the_largest_and_overlapping_ones_add_up(path):
    ledger = dp.Ledger(path, dp.Budget(Fraction(3, 10)))
    for day in range(1, 31):
        ledger.charge(release(f"2026-11-{day:02}"), "a day")
    assert ledger.balance.amount == TENTH and ledger.balance.of_persons == (3, 0)
    week = release("2026-11-22..2026-11-28", dp.Budget(2 * TENTH))
    assert ledger.preview(week, "a week").amount == 3 * TENTH
    ledger.charge(week, "a week")
    for overlapping in (release("2026-11-28..2026-12-04"), release(), dp.Budget(TENTH)):
        before = path.read_bytes()
        with pytest.raises(ValueError, match="at most epsilon 0.3, delta 0 over all runs of one d"):
            ledger.charge(overlapping, "one more")
        assert path.read_bytes() == before
    after = ledger.charge(release("2026-11-29..2026-12-04", dp.Budget(2 * TENTH)), "the next")
    assert after.amount == 3 * TENTH and dp.Ledger(path).balance == after
    assert "32 runs: per person and day: epsilon 0.3 of 0.3, delta 0 of 0" in after.line
    assert (
        "left for a day that no run named: epsilon 0.3, delta 0; for others: at least" in after.line
    )
    assert after.line.endswith("per person over all: at most epsilon 5.6, delta 0")
    assert "'person' by 'day': 2026-11-22..2026-11-28" in str(after)


def test_two_names_of_the_same_booleans_are_one_period(path):
    names = ("0", "false")
    rows = pa.table({"person": range(500), "open": [False] * 500})
    found = []
    for name in names:
        with dp.testing.without_noise():
            asked = {"period": "open", "ledger_period": name}
            made = dp.release(
                rows, person="person", metrics=[dp.Count()], budget=dp.Budget(1), **asked
            )
        found += made.table["count"].to_pylist()
    assert found == [500, 500]
    ledger = dp.Ledger(path, dp.Budget(1))
    ledger.charge(release(names[0], period="open"), "one")
    assert ledger.preview(release(names[1], period="open"), "other").amount == 2 * TENTH


def test_a_run_without_a_period_counts_in_each_and_all_are_not_bounded(path):
    ledger = dp.Ledger(path, dp.Budget(1))
    ledger.charge(release("2026-11-22"), "a day")
    ledger.charge(release(period="day"), "all days, each protected")
    whole = dp.PrivateAggregate("person", [dp.Count()], dp.Budget(TENTH))
    assert ledger.charge(whole, "persons").amount == 3 * TENTH
    assert ledger.balance.of_persons is None
    assert ledger.balance.line.endswith("per person over all: not bounded")


@pytest.mark.parametrize(
    ("limit", "budget", "most"),
    [
        (
            dp.Budget(1, TENTH),
            dp.Budget(TENTH, 1e-6),
            (3 * TENTH, 1e-6 * sum(map(math.exp, (0, 0.1, 0.2)))),
        ),
        (dp.Budget(2000, TENTH), dp.Budget(1000, 1e-6), (3000, 1.0)),
        (dp.Budget.zcdp(1), dp.Budget.zcdp(TENTH), (9 * TENTH, 0)),
        (dp.Budget.zcdp(1), dp.Budget(TENTH), (9 * TENTH**2 / 2, 0)),
        (dp.Budget.zcdp(1, TENTH), dp.Budget.zcdp(TENTH, 1e-6), None),
    ],
)
def test_a_run_over_several_periods_is_as_many_steps_for_a_person(limit, budget, most, path):
    made = release(
        "2026-11-01..2026-11-03", budget, partition=["city"], partitions=dp.PublicPartitions(["a"])
    )
    balance = dp.Ledger(path, limit).charge(made, "three days")
    assert balance.of_persons == (most if most is None else pytest.approx(most))


def test_the_unit_of_the_limit_stays_what_it_was(path):
    ledger = dp.Ledger(path, dp.Budget(1))
    ledger.charge(dp.PrivateAggregate("person", [dp.Count()], dp.Budget(TENTH)), "persons")
    with pytest.raises(ValueError, match="period must be none as in earlier runs"):
        ledger.charge(release("2026-11-22"), "a day")
    other = dp.Ledger(path.with_name("other.jsonl"), dp.Budget(1))
    other.charge(release("2026-11-22"), "a day")
    with pytest.raises(ValueError, match="period must be day as in earlier runs"):
        other.charge(release("2026-W47", period="week"), "a week")
