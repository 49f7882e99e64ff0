"""The data of the yardsticks: the kinds are what they are called, and seeds fix them."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import suites
from benchmarks.suites import KINDS, File, Layout

LAYOUTS = [Layout(10), Layout(100, 3), Layout(100, 3, True), Layout(5, 5, True), Layout(20, 1)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [100, 1000])
def test_numbers_are_fixed_by_their_seed(kind: str, size: int) -> None:
    found = suites.numbers(kind, size, 7)
    assert len(found) == size and np.isfinite(found).all()
    assert (found == suites.numbers(kind, size, 7)).all()
    assert (np.round(found * 1e6) / 1e6 == found).all()
    assert found.min() >= 0 or kind == "normal(10, 30)"
    if kind not in ("all alike", "1 and 1,000", "one giant"):
        assert (found != suites.numbers(kind, size, 8)).any()


def test_kinds_without_chance_are_as_they_are_called() -> None:
    assert set(suites.numbers("all alike", 1000, 0)) == {1.0}
    assert (suites.numbers("5% are not 0", 1000, 0) != 0).sum() == 50
    values, counts = np.unique(suites.numbers("1 and 1,000", 1000, 0), return_counts=True)
    assert values.tolist() == [1, 1000] and counts.tolist() == [990, 10]
    giant = np.sort(suites.numbers("one giant", 1000, 0))
    assert giant[:-1].tolist() == [1.0] * 999 and giant[-1] == giant[:-1].sum()
    far = np.sort(suites.numbers("150 people x1,000", 10_000, 0))
    assert far[-150] > 10 * far[-151]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_people_are_in_as_many_different_partitions_as_asked(layout: Layout) -> None:
    rows = suites.spread("exponential", 400, layout, 0)
    pairs = set(zip(rows.person.tolist(), rows.partition.tolist(), strict=True))
    assert len(pairs) == len(rows.person) == 400 * layout.reach
    assert np.bincount(rows.person).tolist() == [layout.reach] * 400
    assert rows.partition.max() < rows.partitions == layout.partitions
    assert rows.reach == layout.reach


def test_totals_are_those_of_brute_force() -> None:
    rows = suites.several_rows("lognormal 1", 50, 0)
    place, totals = rows.per_pair("v")
    owned: dict[int, list[float]] = {}
    for person, value in zip(rows.person.tolist(), rows.columns["v"].tolist(), strict=True):
        owned.setdefault(person, []).append(value)
    assert set(place) == {0} and np.allclose(totals, [sum(owned[i]) for i in range(50)])
    assert rows.per_pair(None)[1].tolist() == [len(owned[i]) for i in range(50)]


def test_files_are_read_in_all_and_by_group(tmp_path: Path) -> None:
    path = tmp_path / "a:b.csv"
    path.write_text("who,day,spent,note\na,1,2.5,x\nb,1,,y\na,2,oops,z\nb,2,4,\n")
    file = File.of(f"{path}:who:day,note:spent")
    assert file.path == path and file.groups == ["day", "note"]
    found = suites.read(file)
    assert list(found) == ["", "day", "note"]
    assert found[""].partitions == 1 and found[""].person.max() == 1
    assert found["day"].partition.tolist() == [0, 0, 1, 1] and found["note"].partitions == 4
    assert np.array_equal(found["day"].columns["spent"], [2.5, np.nan, np.nan, 4], equal_nan=True)
    assert found["day"].per_pair("spent")[1].tolist() == [2.5, 0.0, 0.0, 4.0]
