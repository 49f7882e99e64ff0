"""Jobs charge a ledger before they draw, and are refused where its limit would be passed."""

import sys
from pathlib import Path

import pytest

import beam_dp as dp
from pipelines import aggregate, ledger, releasing, shifted_inverse, terminal

COMMON = ["--person", "visitor", "--partition", "day", "--public_partitions", "1,2,3"]
TOTAL = ["--total_epsilon", "1.5", "--total_delta", "1e-6"]


@pytest.fixture
def call(tmp_path: Path, visits: str) -> list[str]:
    files = ["--input", visits, "--output", str(tmp_path / "out.csv"), "--overwrite"]
    return [*files, *COMMON, "--epsilon", "1", "--ledger", str(tmp_path / "l.jsonl")]


def refused(capsys: pytest.CaptureFixture[str], job: object, *words: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        job.main(list(words))
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_a_run_is_charged_and_the_next_one_refused(
    call: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert aggregate.main([*call, "--count", *TOTAL]) == 0
    assert "ledger l.jsonl: 1 run: epsilon 1 of 1.5" in capsys.readouterr().out
    written = (tmp_path / "out.csv").read_bytes()
    said = refused(capsys, aggregate, *call, "--count")
    assert "must be at most epsilon 1.5" in said and "Left are epsilon 0.5" in said
    assert (tmp_path / "out.csv").read_bytes() == written
    ledger.main([str(tmp_path / "l.jsonl")])
    said = capsys.readouterr().out
    assert "aggregate: out.csv" in said and "1 run: epsilon 1 of 1.5" in said


def test_the_plan_says_what_would_be_left_and_charges_nothing(
    call: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert aggregate.main([*call, "--count", *TOTAL, "--plan"]) == 0
    said = capsys.readouterr().out
    assert "l.jsonl after this run: 1 run" in said and "left: epsilon 0.5, delta 1e-06" in said
    assert not (tmp_path / "l.jsonl").exists()
    dp.Ledger(tmp_path / "l.jsonl", dp.Budget(1.5, 1e-6)).charge(dp.Budget(1), "before")
    assert aggregate.main([*call, "--count", "--plan"]) == 0
    said = capsys.readouterr().out
    assert "1 run: epsilon 1 of 1.5, " in said and "left: epsilon 0.5, delta 1e-06; " in said
    assert "this run would need epsilon 1, delta 0: THIS RUN WOULD BE REFUSED" in said


def test_input_that_is_not_there_charges_nothing(
    call: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = [*call, "--count", *TOTAL, "--input", str(tmp_path / "vsits.csv")]
    assert "--input must match a file" in refused(capsys, aggregate, *missing)
    search = ["--max", "minutes", "--candidates", "0:60:1"]
    words = [word for word in missing if word != "--count"]
    assert "--input must match a file" in refused(capsys, shifted_inverse, *words, *search)
    assert not (tmp_path / "l.jsonl").exists()


def test_a_run_that_fails_stays_charged(
    call: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object, **named: object) -> None:
        sys.exit("error: the disk is gone")

    monkeypatch.setattr(terminal, "run", fail)
    with pytest.raises(SystemExit):
        aggregate.main([*call, "--count", *TOTAL])
    assert len(dp.Ledger(tmp_path / "l.jsonl").balance.charges) == 1


def test_the_balance_is_that_of_the_charge(
    call: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another job charges the ledger after this one looked at it, and before its charge."""
    shared = dp.Ledger(tmp_path / "l.jsonl", dp.Budget(1.5))

    def meanwhile(*given: object) -> object:
        shared.charge(dp.Budget(0.25), "another job")
        return pipeline(*given)

    pipeline = releasing.pipeline
    monkeypatch.setattr(releasing, "pipeline", meanwhile)
    assert aggregate.main([*call, "--count", "--total_epsilon", "1.5"]) == 0
    assert "2 runs: epsilon 1.25 of 1.5" in capsys.readouterr().out


def test_a_wrong_call_is_not_charged(
    call: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(capsys, aggregate, *call, "--count", "--weight", "sum=2", *TOTAL)
    assert not (tmp_path / "l.jsonl").exists()


def test_the_two_steps_of_a_search_are_charged_once(
    call: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--max", "minutes", "--candidates", "0:60:1"]
    assert shifted_inverse.main([*call, *words, *TOTAL]) == 0
    assert "epsilon 1 of 1.5" in capsys.readouterr().out
    said = refused(capsys, shifted_inverse, *call, *words)
    assert "must be at most epsilon 1.5" in said


WRONG = {
    "no ledger": (["--total_epsilon", "3"], "need --ledger FILE"),
    "a delta alone": (["--ledger", "l", "--total_delta", "1e-6"], "needs --total_epsilon or"),
    "no limit": (["--ledger", "nowhere.jsonl"], "--total_delta must be given for a new ledger"),
    "two limits": (["--ledger", "l", *TOTAL, "--total_rho", "1"], "not allowed with argument"),
    "a bucket": (
        ["--ledger", "gs://b/l", *TOTAL],
        "--ledger must be on a file system of this mach",
    ),
    "a template": (["--ledger", "l", *TOTAL, "--template_location", "t"], "the runs of a template"),
}


@pytest.mark.parametrize(("words", "said"), WRONG.values(), ids=WRONG)
def test_wrong_calls_are_told_in_one_line(
    words: list[str],
    said: str,
    tmp_path: Path,
    visits: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    call = ["--input", visits, "--output", "out.csv", *COMMON, "--epsilon", "1", "--count"]
    assert said in refused(capsys, aggregate, *call, *words)
    assert not Path("l").exists()


def test_a_file_that_is_no_ledger_is_told_in_one_line(
    visits: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "line 1 of" in refused(capsys, ledger, visits)
    said = refused(capsys, ledger, "nowhere.jsonl")
    assert "there is no ledger 'nowhere.jsonl'" in said and "--total" not in said


def test_the_help_shows_the_call_on_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        ledger.main(["--help"])
    assert "\n    python -m pipelines.ledger visits.ledger.jsonl\n" in capsys.readouterr().out


def test_another_limit_is_told_in_numbers(
    call: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dp.Ledger(tmp_path / "l.jsonl", dp.Budget(1)).charge(dp.Budget(0.5), "before")
    said = refused(capsys, aggregate, *call, "--count", "--total_epsilon", "3")
    assert "must be epsilon 1, which" in said and "not epsilon 3." in said
