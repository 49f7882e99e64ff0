"""The search for wrong neighbours finds what is wrong."""

import numpy as np
import pytest

from beam_dp.mechanisms.packing import packing_cells
from beam_dp.mechanisms.packing.packing_program import Packing
from tests.mechanisms.profiles.packed import neighbours
from tests.mechanisms.profiles.packed.neighbours import SHARED, STATISTICS, Rows, Statistic


def marginals(rows: Rows) -> list[int]:
    """Return the twin that is broken: the sum less the largest losses by one person."""
    people = np.unique(rows.owners[rows.owners >= 0]).tolist()
    owned = rows.owned
    lost = [int(owned.weights.sum() - owned.without([one]).weights.sum()) for one in people]
    cuts = np.append(0, np.cumsum(np.sort(lost)[::-1]))[: neighbours.REMOVALS + 1]
    left = (int(owned.weights.sum()) - cuts).tolist()
    return left + [left[-1]] * (neighbours.REMOVALS + 1 - len(left))


def test_a_profile_that_does_not_interlace_is_found() -> None:
    broken = Statistic(marginals, neighbours.total)
    assert neighbours.violations(broken, 3, 300, 1) > 10
    assert neighbours.violations(SHARED["total"], 3, 20, 1) == 0


@pytest.mark.parametrize("of_values", [False, True])
def test_wrong_proofs_are_found(of_values: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: what a person carries above the price is not subtracted; nothing stays of a row."""
    assert neighbours.wrong_proofs(of_values, 3, 200, 1) == 0
    with monkeypatch.context() as patch:
        patch.setattr(Packing, "loads", lambda self, packed: np.zeros(self.people))
        assert neighbours.wrong_proofs(of_values, 3, 200, 1) > 10
    taken = Packing.taken
    monkeypatch.setattr(Packing, "taken", lambda self, removed: 4 * taken(self, removed))
    assert neighbours.wrong_proofs(of_values, 3, 200, 1) > 10


def test_the_first_order_method_is_met_where_it_is_forced_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, known = [], packing_cells.refined

    def recorded(packing: Packing) -> object:
        asked.append(packing)
        return known(packing)

    monkeypatch.setattr(packing_cells, "refined", recorded)
    for name, met in (("total", True), ("total, first order", False)):
        asked.clear()
        assert neighbours.violations(STATISTICS[name], 3, 20, 1) == 0
        assert bool(asked) == met
