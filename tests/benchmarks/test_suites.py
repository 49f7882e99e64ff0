"""The data of the yardsticks: the kinds are what they are called, and seeds fix them."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import suites
from benchmarks.suites import CHECKS, KINDS, SUITE, File, Layout

ASKED = {"uniform", "exponential", "all alike", "5% are not 0", "1 and 1,000", "one giant"}
LAYOUTS = [Layout(10), Layout(100, 3), Layout(100, 3, True), Layout(5, 5, True), Layout(20, 1)]


def test_the_suite_has_the_kinds_that_goals_are_stated_on() -> None:
    assert set(SUITE) >= ASKED and len(SUITE) == 13 and not set(SUITE) & set(CHECKS)
    assert {f"lognormal {sigma}" for sigma in ("0.5", "1", "2")} <= set(SUITE)
    assert {f"Pareto {power}" for power in ("1.5", "2", "3")} <= set(SUITE)


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


def test_zipf_sizes_fall_and_a_tenth_is_ten_times_as_large() -> None:
    rows = suites.spread("all alike", 20_000, Layout(100, 1, True, True), 0)
    sizes = np.bincount(rows.partition, minlength=100)
    # 20,000 / 5.19 = 3,855 expected in the first, a tenth of that in the tenth: 6 deviations.
    assert abs(sizes[0] - 3855) < 360 and abs(sizes[9] - 385) < 120
    large = set(rows.partition[rows.columns["v"] == 10].tolist())
    assert large <= set(range(3, 100, 10)) and set(rows.columns["v"]) == {1.0, 10.0}
    plain = suites.spread("all alike", 20_000, Layout(100), 0)
    assert abs(np.bincount(plain.partition) - 200).max() < 100


def test_totals_are_those_of_brute_force() -> None:
    rows = suites.several_rows("lognormal 1", 50, 0)
    place, totals = rows.per_pair("v")
    owned: dict[int, list[float]] = {}
    for person, value in zip(rows.person.tolist(), rows.columns["v"].tolist(), strict=True):
        owned.setdefault(person, []).append(value)
    assert set(place) == {0} and np.allclose(totals, [sum(owned[i]) for i in range(50)])
    assert rows.per_pair(None)[1].tolist() == [len(owned[i]) for i in range(50)]


@pytest.mark.parametrize("most", [1, 2, 3, 9])
def test_people_keep_so_many_of_their_partitions(most: int) -> None:
    rows = suites.spread("uniform", 60, Layout(7, 3), 0)
    twice = suites.Rows(
        np.tile(rows.person, 2),
        np.tile(rows.partition, 2),
        {"v": np.tile(rows.columns["v"], 2)},
        7,
        None,
    )
    left = twice.kept(most)
    pairs = set(zip(left.person.tolist(), left.partition.tolist(), strict=True))
    assert len(left.person) == 2 * len(pairs) == 2 * 60 * min(most, 3) and left.reach == most
    assert pairs <= set(zip(rows.person.tolist(), rows.partition.tolist(), strict=True))
    assert left.columns["v"].sum() <= twice.columns["v"].sum()


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


@pytest.mark.parametrize("words", ["a.csv", "a.csv:who", "a.csv:who:day", "a.csv:who::spent"])
def test_half_a_question_to_a_file_is_refused(words: str) -> None:
    with pytest.raises(ValueError, match="FILE:PERSON:GROUP"):
        File.of(words)
