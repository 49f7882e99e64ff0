"""The command that looks for neighbours: it finds what is wrong, and says so."""

import itertools

import numpy as np
import pytest

from beam_dp.mechanisms.optimization import removal_bounds, removal_levels
from beam_dp.mechanisms.optimization.interior import interior_points
from beam_dp.mechanisms.optimization.packing import packing_cells
from benchmarks import neighbours
from benchmarks.neighbours import SHARED, STATISTICS, Rows, Statistic


def test_neighbours_differ_by_one_person() -> None:
    generator = np.random.default_rng(1)
    for _ in range(20):
        rows = list(neighbours.chain(generator, 3))
        for more, less in itertools.pairwise(rows):
            assert set(map(tuple, less.owners.T)) <= set(map(tuple, more.owners.T))
        assert (rows[-1].owners < 0).all()


def test_interlacing_is_what_it_is() -> None:
    assert neighbours.interlace([3, 1, 0], [4, 3, 0])
    assert not neighbours.interlace([3, 1, 0], [2, 1, 0])  # falls with a person more
    assert not neighbours.interlace([3, 1, 0], [4, 4, 0])  # rises by two steps
    assert neighbours.falls([3, 3, -1]) and not neighbours.falls([1, 2])


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
    assert neighbours.violations(SHARED["total"], 3, 300, 1) == 0


def test_wrong_proofs_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert neighbours.wrong_proofs(True, 3, 200, 1) == 0
    monkeypatch.setattr(removal_bounds.RemovalBounds, "_feasible", lambda self, guess, bits: guess)
    assert neighbours.wrong_proofs(True, 3, 200, 1) > 10


def test_removals_that_are_not_cut_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal_levels, "_feasible", lambda removed, k, bits: removed)
    assert neighbours.wrong_proofs(False, 2, 200, 1) > 10


def test_the_command_says_what_it_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert neighbours.main(["--pairs", "5", "--only", "third largest"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 5 and all("| 5 | 0 |" in line for line in lines[2:])
    monkeypatch.setitem(neighbours.STATISTICS, "broken", Statistic(marginals, neighbours.total))
    assert neighbours.main(["--pairs", "200", "--only", "broken"]) == 1


def test_by_guesses_programs_of_any_size_are_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_TINY", "_MANY", "_FEW", "_VARIED"):
        monkeypatch.setattr(removal_levels, name, getattr(removal_levels, name))
    assert neighbours.main(["--pairs", "4", "--only", "most frequent", "--by_guesses"]) == 0
    assert removal_levels._TINY == removal_levels._MANY == removal_levels._FEW == 0


@pytest.mark.parametrize(
    ("name", "module", "solver"),
    [
        ("most frequent, by interior points", interior_points, "proposals"),
        ("distinct, by price, by guesses", packing_cells, "PackingProposals"),
    ],
)
def test_the_solvers_of_large_programs_are_met_where_they_are_forced_only(
    name: str, module: object, solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, known = [], getattr(module, solver)

    def recorded(*given: object) -> object:
        asked.append(given)
        return known(*given)

    monkeypatch.setattr(module, solver, recorded)
    for line, met in ((name.rsplit(",", 1)[0], False), (name, True)):
        for roles in range(1, 5):
            asked.clear()
            assert neighbours.violations(STATISTICS[line], roles, 20, 1) == 0
            assert bool(asked) == met
    assert removal_levels._TINY == packing_cells._TINY == 1000
