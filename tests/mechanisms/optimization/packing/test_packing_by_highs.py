"""HiGHS proposes what is the value, by each of its ways, whatever the weights."""

import numpy as np
import pytest

from beam_dp.mechanisms.optimization.packing import packing_by_highs
from tests.mechanisms.optimization.packing.test_packing_program import some_packing, value_of


@pytest.mark.parametrize("single", [False, True])
def test_every_way_finds_both_sides_of_the_value(single):
    generator = np.random.default_rng(1)
    for _ in range(15):
        packing = some_packing(generator, single=single)
        found = list(packing_by_highs.guesses(packing))
        assert len(found) == len(packing_by_highs.WAYS)
        for guess in found[:2]:  # the last way comes close only
            value = value_of(packing)
            assert float(packing.lower(guess.packed)) == pytest.approx(value, abs=1e-7)
            assert float(packing.upper(guess.removed)[0]) == pytest.approx(value, abs=1e-7)


def test_a_way_that_may_not_take_a_step_proposes_nothing_that_is_believed(monkeypatch):
    """Its bounds are those of any guess."""
    none = {"simplex_iteration_limit": 0, "ipm_iteration_limit": 0, "presolve": "off"}
    ways = tuple({**way, **none} for way in packing_by_highs.WAYS)
    monkeypatch.setattr(packing_by_highs, "WAYS", ways)
    packing = some_packing(np.random.default_rng(2), most=30)
    value = value_of(packing)
    for guess in packing_by_highs.guesses(packing):
        assert float(packing.lower(guess.packed)) <= value + 1e-9
        assert float(packing.upper(guess.removed)[0]) >= value - 1e-9
