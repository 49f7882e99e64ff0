"""A ledger lets no more through than its limit, whoever charges it, and whatever fails."""

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import beam_dp as dp
from beam_dp.spending import ledger_file
from beam_dp.spending.ledger import Ledger

TENTH = Fraction(1, 10)
TWENTY_AT_ONCE = """
import sys
import beam_dp as dp
from fractions import Fraction
charged = 0
for _ in range(20):
    try:
        dp.Ledger(sys.argv[1], dp.Budget(1)).charge(dp.Budget(Fraction(1, 25)), sys.argv[2])
        charged += 1
    except ValueError as error:
        assert "must be at most epsilon 1" in str(error)
print(charged)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "visits.ledger.jsonl"


def release(metrics: int = 1) -> dp.PrivateAggregate:
    asked = [dp.Sum(f"column{place}") for place in range(metrics)]
    return dp.PrivateAggregate("person", asked, dp.Budget(1))


def test_the_limit_holds_exactly(path: Path) -> None:
    ledger = Ledger(path, dp.Budget(1))
    for _ in range(10):
        ledger.charge(dp.Budget(TENTH), "a tenth")
    before = path.read_bytes()
    with pytest.raises(ValueError, match="must be at most epsilon 1, delta 0 over all runs"):
        ledger.charge(dp.Budget(2.0**-50), "a little more")
    assert path.read_bytes() == before
    assert Ledger(path).balance.left == (0, 0)


def test_a_delta_beyond_the_limit_is_refused(path: Path) -> None:
    ledger = Ledger(path, dp.Budget(10, 1e-6))
    ledger.charge(dp.Budget(1, 1e-6), "whole delta")
    with pytest.raises(ValueError, match="must be at most"):
        ledger.charge(dp.Budget(1, 1e-12), "more")
    ledger.charge(dp.Budget(1), "pure")


def test_a_transform_is_charged_with_what_its_releases_cost(path: Path) -> None:
    ledger = Ledger(path, dp.Budget(3))
    ledger.charge(release(4), "four sums")
    [charge] = Ledger(path).balance.charges
    assert charge.cost.budget == dp.Budget(1)
    assert sum(cost.amount * times for cost, times in charge.cost.pieces) <= 1
    assert len(charge.cost.pieces) >= 4 and charge.label == "four sums" and charge.who


def test_a_private_bound_on_partitions_is_charged_whole(path: Path) -> None:
    keys = dp.PublicPartitions(range(30))
    searched = dp.PrivateAggregate("p", [dp.Count()], dp.Budget(1), ["day"], partitions=keys)
    Ledger(path, dp.Budget(3)).charge(searched, "searched")
    [charge] = Ledger(path).balance.charges
    assert charge.cost.pieces == ((dp.Budget(1), 1),)


@pytest.mark.parametrize(
    "made",
    [
        dp.SelectPartitions("p", ["day"], dp.Budget(1, 1e-6), dp.ContributionBounds(2)),
        dp.PrivateRatio("clicked", "p", dp.Budget(1), bounds=dp.ContributionBounds(None, 3)),
        dp.ShiftedInverse(dp.Max("spent"), "p", dp.Budget(1)),
        dp.PreprocessSensitivity(dp.Mean("spent"), "p", dp.Budget(1)),
    ],
    ids=lambda made: type(made).__name__,
)
def test_every_private_transform_can_be_charged(path: Path, made: dp.PrivateAggregate) -> None:
    balance = Ledger(path, dp.Budget(1, 1e-6)).charge(made, "all")
    assert balance.spent.amount == 1
    assert made.pieces()


def test_planned_costs_take_less_of_the_limit(path: Path) -> None:
    planned = Ledger(path, dp.Budget(3, 1e-6), planned=True)
    for _ in range(4):
        balance = planned.charge(release(20), "twenty sums")
    assert balance.spent.way == "PLD" and balance.spent.amount < 3 < balance.spent.ways["sum"]
    with pytest.raises(ValueError, match="planned must be True, which"):
        Ledger(path, planned=False).charge(release(), "more")


def test_another_limit_is_refused_and_none_takes_that_of_the_file(path: Path) -> None:
    Ledger(path, dp.Budget(3)).charge(dp.Budget(1), "one")
    with pytest.raises(ValueError, match="which the ledger was started with"):
        Ledger(path, dp.Budget(30)).charge(dp.Budget(1), "two")
    assert Ledger(path).charge(dp.Budget(1), "two").left == (1, 0)
    with pytest.raises(ValueError, match="limit must be given for a new ledger"):
        Ledger(path.with_name("other")).charge(dp.Budget(1), "one")


def test_what_would_be_left_is_told_without_writing(path: Path) -> None:
    ledger = Ledger(path, dp.Budget(3))
    balance = ledger.foresee(release(), "sums")
    assert balance.left == (2, 0) and not path.exists() and [*path.parent.iterdir()] == []
    assert not ledger.foresee(dp.Budget(4), "too much").is_within


def test_jobs_that_charge_at_once_wait_for_each_other(path: Path) -> None:
    words = [sys.executable, "-c", TWENTY_AT_ONCE, str(path)]
    jobs = [
        subprocess.Popen([*words, name], stdout=subprocess.PIPE, text=True) for name in ("a", "b")
    ]
    charged = [int(job.communicate(timeout=120)[0]) for job in jobs]
    balance = Ledger(path).balance
    assert sum(charged) == 25 == len(balance.charges) and balance.left == (0, 0)


def test_a_damaged_line_refuses_every_charge(path: Path) -> None:
    ledger = Ledger(path, dp.Budget(3))
    ledger.charge(dp.Budget(1), "one")
    damaged = path.read_bytes().replace(b'"1"', b'"0"')
    path.write_bytes(damaged)
    with pytest.raises(
        ValueError, match=r"line 2 of .* is damaged\. Nothing is charged\. Put back"
    ):
        ledger.charge(dp.Budget(1), "two")
    assert path.read_bytes() == damaged
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="line 1 of"):
        ledger.charge(dp.Budget(1), "two")


def test_a_full_disk_refuses_and_charges_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(path, dp.Budget(3))
    ledger.charge(dp.Budget(1), "one")
    before = path.read_bytes()

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ledger_file.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        ledger.charge(dp.Budget(1), "two")
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert ledger.charge(dp.Budget(1), "two").left == (1, 0)  # the lock is free


def test_a_cost_in_rho_needs_a_limit_in_rho_or_planned_costs(path: Path) -> None:
    with pytest.raises(ValueError, match="a cost in rho needs a limit in rho, or planned costs"):
        Ledger(path, dp.Budget(3, 1e-6)).charge(dp.Budget.zcdp(0.1), "rho")
    ledger = Ledger(path, dp.Budget.zcdp(1))
    assert ledger.charge(dp.Budget(1), "epsilon").left == (Fraction(1, 2), 0)


@pytest.mark.parametrize("cost", [1.0, None, dp.Count(), dp.PrivateAggregate, dp.RemovalLoss])
def test_what_has_no_cost_is_refused(path: Path, cost: object) -> None:
    with pytest.raises(TypeError, match="cost must be a transform with a budget, or a Budget"):
        Ledger(path, dp.Budget(1)).charge(cost, "what")
    assert not path.exists()


@pytest.mark.parametrize("label", ["", "a\nb", None, 3])
def test_a_label_is_one_line_of_text(path: Path, label: str) -> None:
    with pytest.raises(TypeError, match="label must be text of one line"):
        Ledger(path, dp.Budget(1)).charge(dp.Budget(1), label)


def test_the_table_names_who_spent_what(path: Path) -> None:
    Ledger(path, dp.Budget(3, 1e-6)).charge(dp.Budget(1, 1e-7), "visits per day")
    header, row, total = str(Ledger(path).balance).splitlines()
    assert header.split() == ["date", "who", "what", "budget"]
    assert "visits per day" in row and row.endswith("epsilon 1, delta 1e-07")
    assert total.startswith(
        "1 run: epsilon 1 of 3, delta 1e-07 of 1e-06; left: epsilon 2, delta 9e"
    )


def test_each_way_that_a_release_can_go_is_charged(path: Path) -> None:
    """A clip of one partition spends 1/4 and 3/4, or 2/5 and 3/5: the squares of 1 are above both.

    With a limit in rho 26 of such releases of epsilon 1/10 were charged 0.26 by the second way, and
    cost 0.3125 by the first.
    """
    release = dp.PrivateAggregate("p", [dp.Sum("v"), dp.Count()], dp.Budget(Fraction(1, 10)))
    assert sum((piece.amount**2 * times for piece, times in release.pieces()), Fraction(0)) == (
        2 * Fraction(1, 20) ** 2
    )
    ledger = Ledger(path, dp.Budget.zcdp(Fraction(1, 200)))
    single = dp.PrivateAggregate("p", [dp.Sum("v")], dp.Budget(Fraction(1, 10)))
    assert ledger.charge(single, "one").spent.amount == Fraction(1, 200)


def test_a_budget_that_was_changed_is_refused(path: Path) -> None:
    release = dp.PrivateAggregate("p", [dp.Count()], dp.Budget(10))
    release.budget = dp.Budget(Fraction(1, 100))
    with pytest.raises(ValueError, match="whose releases cost its budget together"):
        Ledger(path, dp.Budget(20)).charge(release, "cheap")
