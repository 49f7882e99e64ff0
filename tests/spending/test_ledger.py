"""A ledger lets no more through than its limit, whoever charges it, and whatever fails."""

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import apache_beam as beam
import pytest

import beam_dp as dp
from beam_dp.spending import ledger_file
from beam_dp.spending.ledger import Ledger
from beam_dp.testing import without_noise

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


def test_the_limit_holds_exactly(path):
    ledger = Ledger(path, dp.Budget(1, 1e-6))
    for _ in range(9):
        ledger.charge(dp.Budget(TENTH), "a tenth")
    ledger.charge(dp.Budget(TENTH, 1e-6), "the last tenth, and the whole delta")
    before = path.read_bytes()
    for more in (dp.Budget(2.0**-50), dp.Budget(2.0**-50, 1e-12)):
        with pytest.raises(
            ValueError, match="must be at most epsilon 1, delta 1e-06 over all runs"
        ):
            ledger.charge(more, "a little more")
    assert path.read_bytes() == before
    assert Ledger(path).balance.left == (0, 0)


def test_a_delta_beyond_the_limit_is_refused(path):
    ledger = Ledger(path, dp.Budget(10))
    with pytest.raises(ValueError, match="must be at most"):
        ledger.charge(dp.Budget(1, 1e-12), "more")


def test_a_transform_is_charged_with_the_budget_that_it_was_made_with(path):
    made = release(4)
    made.budget = dp.Budget(TENTH)
    Ledger(path, dp.Budget(3)).charge(made, "four sums")
    [four] = Ledger(path).balance.charges
    assert four.budget == dp.Budget(1) and four.label == "four sums" and four.who


def test_a_limit_in_rho_takes_both_and_one_in_epsilon_no_rho(path):
    with pytest.raises(ValueError, match="cost must be an epsilon and a delta, as the limit is"):
        Ledger(path, dp.Budget(3, 1e-6)).charge(dp.Budget.zcdp(0.1), "rho")
    assert not path.exists()
    ledger = Ledger(path, dp.Budget.zcdp(1, 1e-6))
    ledger.charge(dp.Budget.zcdp(TENTH), "rho")
    # (epsilon, delta)-DP is delta-approximate epsilon^2 / 2-zCDP.
    balance = ledger.charge(dp.Budget(1, 1e-6), "epsilon")
    assert balance.left == (Fraction(2, 5), 0)


def by_day():
    """Return a release by days."""
    listed = dp.PublicPartitions([1, 2])
    return dp.PrivateAggregate("p", [dp.Count()], dp.Budget(1), ["day"], partitions=listed)


@pytest.mark.parametrize(
    "made",
    [
        dp.SelectPartitions("p", ["day"], dp.Budget(1, 1e-6), dp.ContributionBounds(2)),
        dp.PrivateRatio("clicked", "p", dp.Budget(1), bounds=dp.ContributionBounds(None, 3)),
        dp.ShiftedInverse(dp.Max("spent"), "p", dp.Budget(1)),
        dp.PreprocessSensitivity(dp.Mean("spent"), "p", dp.Budget(1)),
        dp.PrivateTables(by_day(), ["total"], totals="apart"),
        dp.PrivateTables(by_day(), ["total"]),
        dp.Select("SELECT sum(x) AS x FROM rows", person="p", budget=dp.Budget(1)),
    ],
    ids=lambda made: type(made).__name__,
)
def test_every_private_transform_can_be_charged(path, made):
    balance = Ledger(path, dp.Budget(1, 1e-6)).charge(made, "all")
    assert balance.amount == 1 and balance.charges[0].person == ("p",)


def test_a_class_is_no_transform(path):
    with pytest.raises(TypeError, match="not the class PrivateTables"):
        Ledger(path, dp.Budget(1)).charge(dp.PrivateTables, "all")


def test_another_limit_is_refused_and_none_takes_that_of_the_file(path):
    Ledger(path, dp.Budget(3)).charge(dp.Budget(1), "one")
    with pytest.raises(ValueError, match="which the ledger was started with"):
        Ledger(path, dp.Budget(30)).charge(dp.Budget(1), "two")
    assert Ledger(path).charge(dp.Budget(1), "two").left == (1, 0)
    with pytest.raises(ValueError, match="limit must be given for a new ledger"):
        Ledger(path.with_name("other")).charge(dp.Budget(1), "one")


def test_what_would_be_left_is_told_without_writing(path):
    ledger = Ledger(path, dp.Budget(3))
    balance = ledger.preview(release(), "sums")
    assert balance.left == (2, 0) and not path.exists() and [*path.parent.iterdir()] == []
    assert not ledger.preview(dp.Budget(4), "too much").is_within


def test_jobs_that_charge_at_once_wait_for_each_other(path):
    words = [sys.executable, "-c", TWENTY_AT_ONCE, str(path)]
    jobs = [
        subprocess.Popen([*words, name], stdout=subprocess.PIPE, text=True) for name in ("a", "b")
    ]
    charged = [int(job.communicate(timeout=120)[0]) for job in jobs]
    balance = Ledger(path).balance
    assert sum(charged) == 25 == len(balance.charges) and balance.left == (0, 0)


def test_a_full_disk_refuses_and_charges_nothing(path, monkeypatch):
    ledger = Ledger(path, dp.Budget(3))
    ledger.charge(dp.Budget(1), "one")
    before = path.read_bytes()

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ledger_file.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        ledger.charge(dp.Budget(1), "two")
    monkeypatch.undo()
    assert path.read_bytes() == before and not Path(f"{path}.new").exists()
    assert ledger.charge(dp.Budget(1), "two").left == (1, 0)  # the lock is free


class Unpriced:
    person = "visitor"

    def cost(self) -> object:
        return 3


@pytest.mark.parametrize("cost", [1.0, dp.PrivateAggregate, Unpriced()])
def test_what_has_no_cost_is_refused(path, cost):
    with pytest.raises(TypeError, match="cost must be a transform with a budget, or a Budget"):
        Ledger(path, dp.Budget(1)).charge(cost, "what")
    assert not path.exists()


@pytest.mark.parametrize("label", ["", "a\nb"])
def test_a_label_is_one_line_of_text(path, label):
    with pytest.raises(TypeError, match="label must be text of one line"):
        Ledger(path, dp.Budget(1)).charge(dp.Budget(1), label)


def test_the_table_names_who_spent_what(path):
    Ledger(path, dp.Budget(3, 1e-6)).charge(dp.Budget(1, 1e-7), "visits per day")
    header, row, total = str(Ledger(path).balance).splitlines()
    assert header.split() == ["date", "who", "what", "person", "budget"]
    assert "visits per day  ?" in row and row.endswith("epsilon 1, delta 1e-07")
    assert total.startswith(
        "1 run: epsilon 1 of 3, delta 1e-07 of 1e-06; left: epsilon 2, delta 9e"
    )


@pytest.mark.filterwarnings("ignore::beam_dp.transforms.stages.noise_off.NotPrivate")
def test_a_trial_is_charged_with_what_the_release_costs(path):
    """A trial computes with a large budget; its user's tests charge what their code would."""
    made = release()
    with without_noise():
        rows = beam.Pipeline("FnApiRunner") | beam.Create([{"person": 1, "column0": 1}])
        _ = rows | made
        assert Ledger(path, dp.Budget(3)).charge(made, "a test").left == (2, 0)


@pytest.mark.parametrize("target", ["visits.ledger.jsonl", "new.ledger.jsonl"])
def test_symbolic_links_lead_to_one_ledger(path, target):
    Ledger(path, dp.Budget(3)).charge(dp.Budget(1), "one")
    real = path.with_name(target)
    folder, chain = path.parent / "folder", path.parent / "chain"
    folder.symlink_to(path.parent, target_is_directory=True)
    (path.parent / "link").symlink_to(target)
    chain.symlink_to(folder / "link")
    names = [real, folder / target, folder / "link", chain]
    before = len(Ledger(real, dp.Budget(3)).balance.charges)
    for count, name in enumerate(names, before + 1):
        Ledger(name, dp.Budget(3)).charge(dp.Budget(TENTH), "through a link")
        assert len(Ledger(real).balance.charges) == count
    assert not real.is_symlink() and chain.is_symlink()
    assert {lock.name for lock in path.parent.glob("*.lock")} <= {
        f"{path.name}.lock",
        f"{target}.lock",
    }


def test_no_folder_is_made_for_a_ledger(path):
    """One in a folder of another name would forget what was charged."""
    with pytest.raises(ValueError, match="path must be in a folder of this machine"):
        Ledger(path.parent / "new" / "l.jsonl", dp.Budget(3))
    (path.parent / "old").mkdir()
    ledger = Ledger(path.parent / "old" / "l.jsonl", dp.Budget(3))
    (path.parent / "old").rename(path.parent / "moved")
    for call in (ledger.charge, ledger.preview):
        with pytest.raises(ValueError, match="path must be in a folder of this machine"):
            call(dp.Budget(1), "one")
    assert [each.name for each in path.parent.iterdir()] == ["moved"]


def test_a_relative_name_stays_where_it_was(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    ledger = Ledger(path.name, dp.Budget(3))
    ledger.charge(dp.Budget(1), "one")
    (path.parent / "other").mkdir()
    monkeypatch.chdir("other")
    assert ledger.charge(dp.Budget(1), "two").left == (1, 0)


def counted_by(person: str | list[str]) -> dp.PrivateAggregate:
    return dp.PrivateAggregate(person, [dp.Count()], dp.Budget(TENTH))


@pytest.mark.parametrize("other", ["visit", ["visitor", "shop"]])
def test_what_is_counted_by_another_column_is_refused(path, other):
    ledger = Ledger(path, dp.Budget(3))
    ledger.charge(counted_by("visitor"), "one")
    before = path.read_bytes()
    for call in (ledger.charge, ledger.preview):
        with pytest.raises(ValueError, match=r"person must be 'visitor' as in.*another ledger"):
            call(counted_by(other), "two")
        with pytest.raises(ValueError, match="person must be 'visitor' as in"):
            call(dp.Budget(TENTH), "two", person=other)
    assert path.read_bytes() == before
    assert [each.person for each in ledger.charge(counted_by("visitor"), "two").charges] == [
        ("visitor",)
    ] * 2


def test_owners_are_the_same_in_any_order(path):
    ledger = Ledger(path, dp.Budget(3))
    ledger.charge(counted_by(["host", "guest"]), "one")
    ledger.charge(counted_by(["guest", "host"]), "two")
    assert "'guest', 'host'  epsilon" in str(ledger.balance)
    with pytest.raises(ValueError, match="person must be 'guest', 'host' as in.*not 'guest'"):
        ledger.charge(counted_by("guest"), "three")


def test_a_run_without_a_column_binds_nobody(path):
    """A budget alone names no column; nor do lines that were written before there was one."""
    ledger = Ledger(path, dp.Budget(3))
    ledger.charge(dp.Budget(TENTH), "unknown")
    ledger.charge(counted_by("visitor"), "the first that says it")
    ledger.charge(dp.Budget(TENTH), "unknown")
    with pytest.raises(ValueError, match="person must be 'visitor'"):
        ledger.charge(counted_by("visit"), "others")
    assert [each.person for each in ledger.balance.charges] == [(), ("visitor",), ()]


@pytest.mark.parametrize("person", ["", 3, ["a", "a"]])
def test_what_is_no_column_is_refused(path, person):
    with pytest.raises((TypeError, ValueError), match="person must"):
        Ledger(path, dp.Budget(3)).charge(dp.Budget(1), "one", person=person)
    with pytest.raises(ValueError, match="person must be left out: the transform names it"):
        Ledger(path, dp.Budget(3)).charge(counted_by("visitor"), "one", person="visitor")
