"""The table that compares preprocessing with the default."""

import pytest

from benchmarks import preprocessing


@pytest.mark.parametrize("statistic", preprocessing.STATISTICS)
def test_a_cell_has_both_errors_and_the_truth(statistic: str) -> None:
    cell = preprocessing.cell(statistic, "ages, N(45, 16)", 2_000, 10)
    errors, _, truth = cell.partition(" of ")
    wanted = {"mean": 45, "median": 45, "maximum": 98, "standard deviation": 16}
    assert float(truth) == pytest.approx(wanted[statistic], abs=3)
    assert all(0 <= float(error) < 200 for error in errors.split(" / "))
