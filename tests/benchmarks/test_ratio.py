"""The table of ratios: right comparisons, and the local form below the naive one."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from beam_dp.mechanisms import ratio
from beam_dp.mechanisms.ratio.mechanisms import BoundedLocalSensitivity
from benchmarks import ratio as figures

SIZES = (30, 400, 1000, 10_000)


def errors(draws: dict[str, Any], a: int, b: int, trials: int) -> dict[str, float]:
    """Return the mean absolute error of each method."""
    return {name: float(np.abs(draw(a, b, trials) - a / b).mean()) for name, draw in draws.items()}


# Means of 5,000 errors are within 10% of their own means but for a chance below 1e-10 (Bernstein:
# 5,000 * 0.1^2 / 2 = 25 > 23); the means themselves are a fifth and more apart.
@pytest.mark.parametrize(("share", "b"), [*itertools.product(figures.RATIOS, SIZES)])
def test_the_local_form_is_better_than_the_naive_one(share: float, b: int) -> None:
    draws = figures.draws(ratio.ADD_REMOVE)
    chosen = {name: draws[name] for name in ("naive", "local")}
    found = errors(chosen, round(share * b), b, 5000)
    assert found["local"] < found["naive"]


def test_without_the_bail_out_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: the article's bail-out, only where b may be 1."""
    monkeypatch.setattr(BoundedLocalSensitivity, "_is_better", lambda *given: True)
    draws = figures.draws(ratio.ADD_REMOVE)
    chosen = {name: draws[name] for name in ("naive", "local")}
    found = errors(chosen, 150, 300, 5000)
    assert found["local"] > 2 * found["naive"]


def test_the_default_is_better_but_for_large_counts_near_a_half() -> None:
    draws = figures.draws(ratio.ADD_REMOVE)
    for a, b, better in [(9000, 10_000, "KSW"), (50, 100, "KSW"), (15_000, 30_000, "local")]:
        found = errors({name: draws[name] for name in ("KSW", "local")}, a, b, 20_000)
        assert min(found, key=found.__getitem__) == better


def test_the_local_sensitivity_is_that_of_all_neighbours() -> None:
    assert figures.local_sensitivity(3, 10, ratio.ADD_REMOVE) == Fraction(7, 90)
    assert figures.local_sensitivity(0, 10, ratio.ADD_REMOVE) == Fraction(1, 11)
    assert figures.local_sensitivity(3, 10, ratio.SUBSTITUTION) == Fraction(1, 10)


def test_the_table_has_a_line_for_each_size(capsys: pytest.CaptureFixture[str]) -> None:
    for neighbours in (ratio.ADD_REMOVE, ratio.SUBSTITUTION):
        figures.main(["--trials", "20", "--sizes", "10,2000", "--neighbours", neighbours])
        lines = capsys.readouterr().out.splitlines()
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        assert cells[0][2:] == list(figures.draws(neighbours))
        expected = [[str(share), b] for share in figures.RATIOS for b in ("10", "2,000")]
        assert [line[:2] for line in cells[2:]] == expected
        numbers = np.array([line[2:] for line in cells[2:]], float)
        assert np.isfinite(numbers).all() and (numbers >= 0).all()
