"""Two rows of one day are two releases, and what is left of rows is found."""

from pathlib import Path

import pytest

from benchmarks import faults
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


def test_rows_and_cut_outputs_are_leftovers(tmp_path: Path) -> None:
    output, spilled = tmp_path / faults.OUTPUT, tmp_path / "temporary" / "spilled"
    spilled.parent.mkdir()
    spilled.write_text("nothing of anybody")
    output.write_text("\n".join(["day,people_count,sum_value", *WHOLE, ""]))
    assert faults.leftovers(tmp_path) == []
    spilled.write_text(f"...{CANARY}-7...")
    output.write_text("day,people_count,sum_value\n1,2,3\n")
    assert faults.leftovers(tmp_path) == [output, spilled]


@pytest.mark.parametrize(
    ("name", "held"), [("DIFFERENT", False), ("LEFT", False), ("FAILED", True)]
)
def test_a_second_release_and_a_leftover_fail_the_command(name: str, held: bool) -> None:
    assert faults.holds({"driver": {getattr(faults, name): 1, faults.SAME: 5}}) == held
