"""HiGHS as it is used here: a program grows, and a failure is no answer."""

import numpy as np
import pytest

from beam_dp.mechanisms.optimization import highs_model
from beam_dp.mechanisms.optimization.highs_model import HighsModel, Limits, Matrix

INF = np.inf


def one_row(costs, most):
    """Return a program over [0, 1]^n whose columns add up to at most `most`."""
    size = len(costs)
    matrix = Matrix(np.arange(size + 1), np.zeros(size, int), np.ones(size))
    limits = Limits(
        np.array(costs), np.zeros(size), np.ones(size), np.array([-INF]), np.array([most])
    )
    return matrix, limits, (size,), (1,)


@pytest.mark.parametrize("way", range(len(highs_model.WAYS)))
def test_values_and_prices_of_a_program_that_grows(way):
    model = HighsModel()
    model.take(*one_row([-1.0, -2.0], 1.5))
    found = model.solved(way)
    assert found.values == pytest.approx([0.5, 1.0])
    assert found.prices == pytest.approx([-1.0])
    model.take(*one_row([-1.0, -2.0, -3.0], 1.5))
    model.bound(0, -INF, 2.5)
    found = model.solved(way)
    assert found.values == pytest.approx([0.5, 1.0, 1.0])


@pytest.mark.parametrize("way", range(len(highs_model.WAYS)))
def test_a_program_without_a_solution_is_no_answer(way):
    model = HighsModel()
    model.take(*one_row([-1.0, -2.0], -1.0))
    assert model.solved(way) is None
    model.take(*one_row([-1.0, -2.0], 1.0))
    assert model.solved(way).values == pytest.approx([0.0, 1.0])


def test_a_solution_that_takes_too_many_steps_is_no_answer(monkeypatch):
    monkeypatch.setattr(highs_model, "_PIVOTS", 0)
    model = HighsModel()
    model.take(*one_row([-1.0, -2.0], 1.5))
    assert model.solved(0) is None
