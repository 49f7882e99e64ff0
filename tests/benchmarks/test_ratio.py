"""The table of ratios: right comparisons, and the local form below the naive one."""

import itertools
import sys
import types
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms import ratio
from beam_dp.mechanisms.ratio.mechanisms import BoundedLocalSensitivity
from benchmarks import ratio as figures

SIZES = (30, 400, 1000, 10_000)


# Means of 5,000 errors are within 10% of their own means but for a chance below 1e-10 (Bernstein:
# 5,000 * 0.1^2 / 2 = 25 > 23); the means themselves are a fifth and more apart.
@pytest.mark.parametrize(("share", "b"), [*itertools.product(figures.RATIOS, SIZES)])
def test_the_local_form_is_better_than_the_naive_one(share: float, b: int) -> None:
    draws = figures.methods(ratio.ADD_REMOVE)
    chosen = {name: draws[name] for name in ("naive", "local")}
    found = figures.errors(chosen, round(share * b), b, 5000)
    assert found["local"] < found["naive"]


def test_without_the_bail_out_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: the article's bail-out, only where b may be 1."""
    monkeypatch.setattr(BoundedLocalSensitivity, "_is_better", lambda *given: True)
    draws = figures.methods(ratio.ADD_REMOVE)
    chosen = {name: draws[name] for name in ("naive", "local")}
    found = figures.errors(chosen, 150, 300, 5000)
    assert found["local"] > 2 * found["naive"]


def test_the_default_is_better_but_for_large_counts_near_a_half() -> None:
    draws = figures.methods(ratio.ADD_REMOVE)
    for a, b, better in [(9000, 10_000, "KSW"), (50, 100, "KSW"), (15_000, 30_000, "local")]:
        found = figures.errors({name: draws[name] for name in ("KSW", "local")}, a, b, 20_000)
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
        assert cells[0][2:] == list(figures.methods(neighbours))
        expected = [[str(share), b] for share in figures.RATIOS for b in ("10", "2,000")]
        assert [line[:2] for line in cells[2:]] == expected
        numbers = np.array([line[2:] for line in cells[2:]], float)
        assert np.isfinite(numbers).all() and (numbers >= 0).all()


class Axes:
    """What is drawn on one picture."""

    def __init__(self) -> None:
        self.lines: dict[str, tuple[list[int], list[float]]] = {}
        self.labels: dict[str, object] = {}

    def loglog(self, x: list[int], y: list[float], style: str, label: str, **_: int) -> None:
        self.lines[label] = (x, y)

    semilogx = loglog

    def set(self, **labels: object) -> None:
        self.labels |= labels

    def grid(self, **_: float) -> None:
        pass

    def get_legend_handles_labels(self) -> tuple[list[str], list[str]]:
        return list(self.lines), list(self.lines)


class Figure:
    """Stand-in for matplotlib's, which is an extra."""

    made: "Figure"

    def __init__(self, **options: object) -> None:
        Figure.made = self

    def subplots(self, rows: int, columns: int, **_: object) -> list[list[Axes]]:
        self.axes = [[Axes() for _ in range(columns)] for _ in range(rows)]
        return self.axes

    def legend(self, lines: list[str], names: list[str], **_: object) -> None:
        self.names = names

    def savefig(self, path: str, **_: int) -> None:
        self.path = path


def test_the_picture_shows_the_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = types.ModuleType("matplotlib.figure")
    module.Figure = Figure
    monkeypatch.setitem(sys.modules, "matplotlib", types.ModuleType("matplotlib"))
    monkeypatch.setitem(sys.modules, "matplotlib.figure", module)
    figures.main(["--trials", "20", "--sizes", "10,30", "--plot", "ratio.svg"])
    rows = [line.split("|")[2:-1] for line in capsys.readouterr().out.splitlines()[2:]]
    made = Figure.made
    assert made.path == "ratio.svg" and made.names == list(figures.methods(ratio.ADD_REMOVE))
    assert len(made.names) == len(figures.STYLES) == len({*figures.STYLES})
    upper, lower = (row[1] for row in made.axes)
    assert len(made.axes[0]) == len(figures.RATIOS) and upper.labels["title"] == "a / b = 0.1"
    for i, (sizes, errors) in enumerate(upper.lines.values()):
        assert sizes == [10, 30]
        assert [f"{error:.2e}" for error in errors] == [row[1 + i].strip() for row in rows[2:4]]
        scaled = list(lower.lines.values())[i][1]
        assert scaled == [error * b for error, b in zip(errors, sizes, strict=True)]
