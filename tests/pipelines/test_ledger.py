"""Jobs charge a ledger before they draw, and are refused where its limit would be passed."""

import sys
from pathlib import Path

import pytest

import beam_dp as dp
from pipelines import aggregate, description, ledger, releasing, running

COMMON = ["--person", "visitor", "--partition", "day", "--public_partitions", "1,2,3"]
TOTAL = ["--total_epsilon", "1.5", "--total_delta", "1e-6"]


@pytest.fixture
def call(tmp_path: Path, visits: str) -> list[str]:
    files = ["--input", visits, "--output", str(tmp_path / "out.csv"), "--overwrite"]
    return [*files, *COMMON, "--epsilon", "1", "--ledger", str(tmp_path / "l.jsonl")]


def test_a_run_is_charged_and_the_next_one_refused(call, tmp_path, capfd, refused):
    assert aggregate.main([*call, "--count", *TOTAL]) == 0
    assert "ledger l.jsonl: 1 run: epsilon 1 of 1.5" in capfd.readouterr().out
    written = (tmp_path / "out.csv").read_bytes()
    said = refused(aggregate, *call, "--count")
    assert "must be at most epsilon 1.5" in said and "Left are epsilon 0.5" in said
    assert (tmp_path / "out.csv").read_bytes() == written
    ledger.main([str(tmp_path / "l.jsonl")])
    said = capfd.readouterr().out
    assert "aggregate: out.csv" in said and "1 run: epsilon 1 of 1.5" in said


def test_the_plan_says_what_would_be_left_and_charges_nothing(call, tmp_path, capfd):
    assert aggregate.main([*call, "--count", *TOTAL, "--plan"]) == 0
    said = capfd.readouterr().out
    assert "l.jsonl after this run: 1 run" in said and "left: epsilon 0.5, delta 1e-06" in said
    assert not (tmp_path / "l.jsonl").exists()
    dp.Ledger(tmp_path / "l.jsonl", dp.Budget(1.5, 1e-6)).charge(dp.Budget(1), "before")
    assert aggregate.main([*call, "--count", "--plan"]) == 0
    said = capfd.readouterr().out
    assert "2 runs: epsilon 2 of 1.5, " in said and said.endswith(": THIS RUN WOULD BE REFUSED\n")


def test_an_output_that_cannot_be_written_charges_nothing(call, tmp_path, refused):
    words = [*call, "--count", *TOTAL]
    missing = [word.replace("out.csv", "no/deep/out.csv") for word in words]
    said = refused(aggregate, *missing)
    assert "output must be one that can be written" in said
    said = refused(aggregate, *words, "--report", str(tmp_path / "no/deep/out.html"))
    assert "report must be one that can be written" in said
    assert [path.name for path in tmp_path.iterdir()] == ["visits.csv"]


def test_a_run_that_fails_stays_charged(call, tmp_path, monkeypatch):
    def fail(*given: object, **named: object) -> None:
        sys.exit("error: the disk is gone")

    monkeypatch.setattr(running, "run", fail)
    with pytest.raises(SystemExit):
        aggregate.main([*call, "--count", *TOTAL])
    assert len(dp.Ledger(tmp_path / "l.jsonl").balance.charges) == 1


def test_the_balance_is_that_of_the_charge(call, tmp_path, capfd, monkeypatch):
    """Another job charges the ledger after this one looked at it, and before its charge."""
    shared = dp.Ledger(tmp_path / "l.jsonl", dp.Budget(1.5))

    def meanwhile(*given: object) -> object:
        shared.charge(dp.Budget(0.25), "another job")
        return pipeline(*given)

    pipeline = releasing.pipeline
    monkeypatch.setattr(releasing, "pipeline", meanwhile)
    monkeypatch.setattr(running, "run", lambda *_: None)
    assert aggregate.main([*call, "--count", "--total_epsilon", "1.5"]) == 0
    assert "2 runs: epsilon 1.25 of 1.5" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--total_epsilon", "3"], "need --ledger FILE"),
        (["--ledger", "l", "--total_delta", "1e-6"], "must have either an epsilon or a rho"),
        (["--ledger", "l"], "the limit of the ledger must be given for a new ledger"),
        (["--ledger", "l", *TOTAL, "--template_location", "t"], "the runs of a template"),
    ],
)
def test_wrong_calls_are_told_in_one_line(words, said, call, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said in refused(aggregate, *call[: call.index("--ledger")], "--count", *words)
    assert not Path("l").exists()


def test_a_file_that_is_no_ledger_is_told_in_one_line(visits, refused):
    assert "line 1 of" in refused(ledger, visits)
    said = refused(ledger, "nowhere.jsonl")
    assert "there is no ledger 'nowhere.jsonl'" in said and "--total" not in said


def test_runs_over_disjoint_periods_are_charged_side_by_side(call, capfd, refused, monkeypatch):
    monkeypatch.setattr(running, "run", lambda *_: None)
    daily = [*call, "--people_count", "--period", "day", "--ledger_period"]
    for day in ("1", "2"):
        assert aggregate.main([*daily, day, *TOTAL]) == 0
        said = capfd.readouterr().out
    assert "2 runs: per person and day: epsilon 1 of 1.5, delta 0 of 1e-06; left for a" in said
    assert "per person over all: at most epsilon 2, delta 0" in said
    assert "protected: one person's rows of one day (epsilon 1)" in " ".join(said.split())
    assert "must be at most epsilon 1.5" in refused(aggregate, *daily, "1")
    assert aggregate.main([*daily[:-1], "--plan"]) == 0
    assert capfd.readouterr().out.endswith("REFUSED. Name the day: --ledger_period\n")
    assert aggregate.main([*daily, "1", "--plan"]) == 0
    assert capfd.readouterr().out.endswith("REFUSED\n")
    assert "period must be day as in earlier runs" in refused(
        aggregate, *call, "--count", "--period", "minutes"
    )
    assert "period must be given where" in refused(
        aggregate, *call, "--count", "--ledger_period", "1"
    )


def test_a_date_in_a_file_is_a_period(tmp_path):
    path = tmp_path / "daily.yaml"
    path.write_text("ledger_period: 2026-11-22\nperiod: day\nmetrics: [count]")
    given = description.read(str(path)) | {"person": "visitor", "budget": {"epsilon": 9}}
    assert description.Description(given).release.ledger_period == "2026-11-22"


def test_a_schedule_is_printed(capfd):
    asked = ["schedule", "--runs", "30", "--total_epsilon", "3"]
    assert ledger.main([*asked, "--delta", "1e-6"]) == 0
    said = capfd.readouterr().out
    for row in (["pure", "0.1", "-"], ["zCDP", "0.111", "0.006168"], ["PLD", "0.1261", "-"]):
        assert any(line.split()[:3] == row for line in said.splitlines())
    assert ledger.main(asked) == 0
    assert "PLD  " not in capfd.readouterr().out


@pytest.mark.parametrize(
    "words", [["--runs", "0", "--total_epsilon", "3"], ["--runs", "30"]], ids=" ".join
)
def test_a_wrong_schedule_is_one_line(words, capfd):
    with pytest.raises(SystemExit) as stopped:
        ledger.main(["schedule", *words])
    said = capfd.readouterr().err
    assert stopped.value.code == 2 and said.count("\n") == 1 and "schedule: error: " in said
