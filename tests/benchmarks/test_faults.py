"""Two rows of one day are two releases, and what is left of rows is found."""

from pathlib import Path

import pytest

from benchmarks import fault_engines, faults
from benchmarks.fault_job import CANARY, DAYS

WHOLE = [f"{day},{day * 7},1.5" for day in DAYS]


@pytest.mark.parametrize(
    ("shown", "well", "expected"),
    [
        ([*WHOLE, *WHOLE[::-1]], True, faults.SAME),
        (WHOLE, False, faults.FAILED),
        ([], False, faults.FAILED),
        (WHOLE[1:], True, faults.FAILED),
        ([*WHOLE, "3,22,1.5"], True, faults.DIFFERENT),
        ([*WHOLE[:2], "1,7,1.25"], False, faults.DIFFERENT),
    ],
)
def test_outcomes(shown: list[str], well: bool, expected: str) -> None:
    assert faults.outcome(shown, well) == expected


def test_a_line_that_was_cut_was_not_shown(tmp_path: Path) -> None:
    shown = tmp_path / "first"
    assert faults.lines_of(shown) == []
    shown.write_text("1,2,3\n2,3")
    assert faults.lines_of(shown) == ["1,2,3"]


def test_rows_and_cut_outputs_are_leftovers(tmp_path: Path) -> None:
    output, spilled = tmp_path / faults.OUTPUT, tmp_path / "temporary" / "spilled"
    spilled.parent.mkdir()
    spilled.write_text("nothing of anybody")
    output.write_text("\n".join(["day,people_count,sum_value", *WHOLE, ""]))
    assert faults.leftovers(tmp_path) == []
    spilled.write_text(f"...{CANARY}-7...")
    output.write_text("day,people_count,sum_value\n1,2,3\n")
    assert faults.leftovers(tmp_path) == [output, spilled]


def test_what_is_killed_is_below_the_driver() -> None:
    assert not fault_engines.kill_below(1 << 30, "python")


def test_the_lines_of_the_table_have_its_columns() -> None:
    count = {faults.KILLS: 9, faults.JOBS: 5, faults.SAME: 3, faults.FAILED: 2}
    [row] = faults.lines("flink", {"driver": count})
    assert row == ["flink", "driver", "9", "5", "3", "2", "0", "0"]
    assert len(row) == len(faults.HEADS)


@pytest.mark.parametrize(
    ("name", "held"), [("DIFFERENT", False), ("LEFT", False), ("FAILED", True)]
)
def test_a_second_release_and_a_leftover_fail_the_command(name: str, held: bool) -> None:
    assert faults.holds({"driver": {getattr(faults, name): 1, faults.SAME: 5}}) == held
