"""A ledger lets no more through than its limit, whoever charges it, and whatever fails."""

import dataclasses
import os
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
    keys = dp.PublicPartitions(range(30))
    searched = dp.PrivateAggregate("person", [dp.Count()], dp.Budget(1), ["day"], partitions=keys)
    ledger = Ledger(path, dp.Budget(3))
    ledger.charge(release(4), "four sums")
    ledger.charge(searched, "a bound on partitions that is searched")
    four, whole = Ledger(path).balance.charges
    assert four.cost.budget == dp.Budget(1) and four.label == "four sums" and four.who
    assert sum(cost.amount * times for cost, times in four.cost.pieces) <= 1
    assert len(four.cost.pieces) >= 4 and whole.cost.pieces == ((dp.Budget(1), 1),)


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
    assert path.read_bytes() == before and not Path(f"{path}.new").exists()
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
    assert header.split() == ["date", "who", "what", "person", "budget"]
    assert "visits per day  ?" in row and row.endswith("epsilon 1, delta 1e-07")
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


@pytest.mark.parametrize(
    ("made", "changed"),
    [
        (dp.Budget(1), dp.Budget(Fraction(1, 100))),
        (dp.Budget(1), dp.Budget(10)),
        (dp.Budget(1), dp.Budget.zcdp(Fraction(1, 4))),
        (dp.Budget(1, 1e-6), dp.Budget(1, 1e-7)),
        (dp.Budget.zcdp(1, 1e-6), dp.Budget.zcdp(1)),
    ],
    ids=["cheaper", "dearer", "in rho", "less delta", "no delta"],
)
def test_a_budget_that_was_changed_is_refused(
    path: Path, made: dp.Budget, changed: dp.Budget
) -> None:
    bounds = dp.ContributionBounds(3)
    by = {"partition": ["day"], "bounds": bounds} if made.delta else {}
    release = dp.PrivateAggregate("p", [dp.Count()], made, **by)
    release.budget = changed
    with pytest.raises(ValueError, match="whose releases cost its budget together"):
        Ledger(path, dp.Budget.zcdp(200, Fraction(1, 2))).charge(release, "changed")
    assert not path.exists()


@dataclasses.dataclass
class Priced:
    """A transform with any price."""

    budget: dp.Budget
    each: list[tuple[dp.Budget, int]]
    person: str | list[str] = "visitor"

    def pieces(self) -> list[tuple[dp.Budget, int]]:
        return self.each


ONE_MILLIONTH = dp.Budget(1, 1e-6)
AS_RHO = ONE_MILLIONTH.to_zcdp()
WRONG_PRICES = {
    "none": Priced(dp.Budget(1), []),
    "too cheap": Priced(dp.Budget(1), [(dp.Budget(TENTH), 9)]),
    "too dear": Priced(dp.Budget(1), [(dp.Budget(TENTH), 11)]),
    "too cheap in rho": Priced(dp.Budget.zcdp(1), [(dp.Budget.zcdp(TENTH), 9)]),
    "too dear in rho": Priced(dp.Budget.zcdp(1), [(dp.Budget.zcdp(TENTH), 11)]),
    "too much delta": Priced(ONE_MILLIONTH, [(dp.Budget(Fraction(1, 2), 1e-6), 2)]),
    "too cheap as rho": Priced(ONE_MILLIONTH, [(AS_RHO.scaled(TENTH), 9)]),
    "too dear as rho": Priced(ONE_MILLIONTH, [(AS_RHO.scaled(TENTH), 11)]),
    "the delta twice": Priced(ONE_MILLIONTH, [(dp.Budget.zcdp(AS_RHO.amount, 1e-6), 1)]),
    "rho without a delta": Priced(dp.Budget(1), [(dp.Budget.zcdp(TENTH), 1)]),
}
RIGHT_PRICES = {
    "epsilon": Priced(dp.Budget(1), [(dp.Budget(TENTH), 10)]),
    "rho": Priced(dp.Budget.zcdp(1), [(dp.Budget.zcdp(TENTH), 10)]),
    "epsilon within rho": Priced(dp.Budget.zcdp(1), [(dp.Budget(1), 2)]),
    "epsilon as rho": Priced(ONE_MILLIONTH, [(AS_RHO.scaled(TENTH), 10)]),
    "a part of the delta": Priced(ONE_MILLIONTH, [(dp.Budget(1, 1e-7), 1)]),
}


@pytest.mark.parametrize("priced", WRONG_PRICES.values(), ids=WRONG_PRICES)
def test_releases_that_do_not_cost_their_budget_are_refused(path: Path, priced: Priced) -> None:
    with pytest.raises(ValueError, match="whose releases cost its budget together"):
        Ledger(path, dp.Budget.zcdp(200, Fraction(1, 2))).charge(priced, "wrong")


@pytest.mark.parametrize("priced", RIGHT_PRICES.values(), ids=RIGHT_PRICES)
def test_releases_that_cost_their_budget_are_charged(path: Path, priced: Priced) -> None:
    ledger = Ledger(path, dp.Budget.zcdp(200, Fraction(1, 2)))
    assert len(ledger.charge(priced, "right").charges) == 1


BUDGETS = [ONE_MILLIONTH, dp.Budget(Fraction(1, 3), 1e-9), dp.Budget.zcdp(0.1, 1e-6)]
BOUNDS = dp.ContributionBounds(3, rows_per_partition=2)
KEYS = {
    "none": {"bounds": dp.ContributionBounds(None, rows_per_partition=2)},
    "few": {"partition": ["day"], "partitions": dp.PublicPartitions(range(3)), "bounds": BOUNDS},
    "many": {"partition": ["day"], "partitions": dp.PublicPartitions(range(99)), "bounds": BOUNDS},
    "private": {"partition": ["day"], "bounds": BOUNDS},
    "searched": {
        "partition": ["day"],
        "bounds": dp.ContributionBounds("auto", rows_per_partition=2),
    },
}
ASKED = {
    "totals": [dp.Count(), dp.Sum("spent"), dp.PeopleCount()],
    "a mean and a clip": [dp.Mean("spent"), dp.Sum("minutes", clip=60)],
    "ranks": [dp.Max("spent"), dp.Median("spent"), dp.Quantiles("minutes", [0.1, 0.9])],
    "items": [dp.DistinctCount("page"), dp.MaxFrequency("page")],
    "one-sided": [dp.Count(search=dp.AboveThreshold), dp.SumOfSquares("page")],
    "a share": [dp.Ratio("clicked"), dp.Ratio("paid", method="local_sensitivity")],
    "a variance": [dp.Variance("spent"), dp.Histogram("minutes", [0, 10, 60])],
}


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_what_a_release_costs_is_charged_whole_however_it_is_shared_out(
    path: Path, asked: list[object], keys: dict[str, object]
) -> None:
    ledger = Ledger(path, dp.Budget.zcdp(200, Fraction(1, 2)))
    for budget in BUDGETS:
        ledger.charge(dp.PrivateAggregate("p", asked, budget, **keys), "whole")
    assert len(ledger.balance.charges) == 3


@pytest.mark.filterwarnings("ignore::beam_dp.transforms.steps.trial.NotPrivate")
def test_a_trial_is_charged_with_what_the_release_costs(path: Path) -> None:
    """A trial computes with a large budget; its user's tests charge what their code would."""
    made = release()
    with without_noise():
        rows = beam.Pipeline("FnApiRunner") | beam.Create([{"person": 1, "column0": 1}])
        _ = rows | made
        assert Ledger(path, dp.Budget(3)).charge(made, "a test").left == (2, 0)


def test_a_hard_link_is_refused(path: Path) -> None:
    ledger = Ledger(path, dp.Budget(3))
    ledger.charge(dp.Budget(1), "one")
    other = path.with_name("other")
    os.link(path, other)
    for name in (path, other):
        refused = pytest.raises(ValueError, match="must have one name.*find / -samefile")
        with refused as raised:
            Ledger(name).charge(dp.Budget(1), "two")
        with refused:
            Ledger(name).foresee(dp.Budget(1), "two")
        with refused:
            _ = Ledger(name).balance
        assert "\n" not in str(raised.value) and str(name) in str(raised.value)
    other.unlink()
    assert ledger.charge(dp.Budget(1), "two").left == (1, 0)


@pytest.mark.parametrize("target", ["visits.ledger.jsonl", "new.ledger.jsonl"])
def test_symbolic_links_lead_to_one_ledger(path: Path, target: str) -> None:
    Ledger(path, dp.Budget(3)).charge(dp.Budget(1), "one")
    real = path.with_name(target)
    folder, chain = path.parent / "folder", path.parent / "chain"
    folder.symlink_to(path.parent, target_is_directory=True)
    (path.parent / "link").symlink_to(target)
    chain.symlink_to(folder / "link")
    names = [real, folder / target, path.parent / "link", folder / "link", chain]
    before = len(Ledger(real, dp.Budget(3)).balance.charges)
    for count, name in enumerate(names, before + 1):
        Ledger(name, dp.Budget(3)).charge(dp.Budget(TENTH), "through a link")
        assert len(Ledger(real).balance.charges) == count
    assert not real.is_symlink() and chain.is_symlink()
    assert {lock.name for lock in path.parent.glob("*.lock")} <= {
        f"{path.name}.lock",
        f"{target}.lock",
    }


def test_a_ledger_that_moved_behind_a_link_is_one_ledger(path: Path) -> None:
    """A process holds the ledger while somebody moves the file, and leaves a link in its place."""
    ledger = Ledger(path, dp.Budget(3))
    ledger.charge(dp.Budget(1), "one")
    moved = path.with_name("moved")
    path.rename(moved)
    path.symlink_to(moved)
    ledger.charge(dp.Budget(1), "two")
    assert path.is_symlink() and len(Ledger(moved).balance.charges) == 2


def test_no_folder_is_made_for_a_ledger(path: Path) -> None:
    """One in a folder of another name would forget what was charged."""
    with pytest.raises(ValueError, match="path must be in a folder that exists, not "):
        Ledger(path.parent / "new" / "l.jsonl", dp.Budget(3))
    (path.parent / "old").mkdir()
    ledger = Ledger(path.parent / "old" / "l.jsonl", dp.Budget(3))
    (path.parent / "old").rename(path.parent / "moved")
    for call in (ledger.charge, ledger.foresee):
        with pytest.raises(ValueError, match="path must be in a folder that exists, not "):
            call(dp.Budget(1), "one")
    assert [each.name for each in path.parent.iterdir()] == ["moved"]


def test_a_relative_name_stays_where_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    ledger = Ledger(path.name, dp.Budget(3))
    ledger.charge(dp.Budget(1), "one")
    monkeypatch.chdir("/")
    assert ledger.charge(dp.Budget(1), "two").left == (1, 0)


def counted_by(person: str | list[str]) -> dp.PrivateAggregate:
    return dp.PrivateAggregate(person, [dp.Count()], dp.Budget(TENTH))


@pytest.mark.parametrize("other", ["visit", ["visitor", "shop"], ["visitor", "host"], "Visitor"])
def test_what_is_counted_by_another_column_is_refused(path: Path, other: str | list[str]) -> None:
    ledger = Ledger(path, dp.Budget(3))
    ledger.charge(counted_by("visitor"), "one")
    before = path.read_bytes()
    for call in (ledger.charge, ledger.foresee):
        with pytest.raises(ValueError, match=r"person must be 'visitor' as in.*another ledger"):
            call(counted_by(other), "two")
        with pytest.raises(ValueError, match="person must be 'visitor' as in"):
            call(dp.Budget(TENTH), "two", person=other)
    assert path.read_bytes() == before
    assert [each.person for each in ledger.charge(counted_by("visitor"), "two").charges] == [
        ("visitor",)
    ] * 2


def test_owners_are_the_same_in_any_order(path: Path) -> None:
    ledger = Ledger(path, dp.Budget(3))
    ledger.charge(counted_by(["host", "guest"]), "one")
    ledger.charge(counted_by(["guest", "host"]), "two")
    assert "'guest', 'host'  epsilon" in str(ledger.balance)
    with pytest.raises(ValueError, match="person must be 'guest', 'host' as in.*not 'guest'"):
        ledger.charge(counted_by("guest"), "three")


def test_a_run_without_a_column_binds_nobody(path: Path) -> None:
    """A budget alone names no column; nor do lines that were written before there was one."""
    ledger = Ledger(path, dp.Budget(3))
    ledger.charge(dp.Budget(TENTH), "unknown")
    ledger.charge(counted_by("visitor"), "the first that says it")
    ledger.charge(dp.Budget(TENTH), "unknown")
    with pytest.raises(ValueError, match="person must be 'visitor'"):
        ledger.charge(counted_by("visit"), "others")
    assert [each.person for each in ledger.balance.charges] == [(), ("visitor",), ()]


@pytest.mark.parametrize("person", ["", 3, ["a", "a"], [""], {"a"}])
def test_what_is_no_column_is_refused(path: Path, person: object) -> None:
    with pytest.raises((TypeError, ValueError), match="person must"):
        Ledger(path, dp.Budget(3)).charge(dp.Budget(1), "one", person=person)
    with pytest.raises(ValueError, match="person must be left out: the transform says it"):
        Ledger(path, dp.Budget(3)).charge(counted_by("visitor"), "one", person="visitor")


def test_a_column_with_a_line_feed_stays_on_the_line_of_its_charge(path: Path) -> None:
    balance = Ledger(path, dp.Budget(3)).charge(counted_by("a\nb"), "one")
    assert len(str(balance).splitlines()) == 3 and r"'a\nb'" in str(balance)
