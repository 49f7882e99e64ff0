"""The job of searches; and the removal loss of rows in files is that of brute force."""

import collections
import itertools
import math
from collections.abc import Callable
from pathlib import Path

import apache_beam as beam
import pytest

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.search.choose import BY_WORD, build_search
from beam_dp.transforms.io import read_rows
from pipelines import shifted_inverse
from tests.hostile import support
from tests.pipelines.conftest import PEOPLE
from tests.row_files import write

PUBLIC = ["--person", "visitor", "--partition", "day", "--public_partitions", "1,2,3"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "search", ["auto", "above_threshold", "exponential_mechanism", "noisy_binary_search"]
)
def test_a_value_that_all_people_have_is_never_missed(
    released: Callable[..., list[dict[str, str]]], search: str
) -> None:
    cap = build_search(BY_WORD[search], dp.Budget(3), 0.05, 61).cap(61)
    assert cap < PEOPLE
    # Everybody has 30, so B[k] = 30 for every k up to the cap K, and a search over B[0..K]
    # stops on the wrong side with probability at most that of the cap, 1e-12 per partition.
    words = [*PUBLIC, "--epsilon=9", "--bounds=partitions=3", "--candidates=0:60:1"]
    for metric, side in (("max", 1), ("min", -1)):
        found = released(shifted_inverse, *words, f"--{metric}=minutes", "--search", search)
        assert [row["day"] for row in found] == ["1", "2", "3"]
        numbers = [float(row[f"{metric}_minutes"]) for row in found]
        assert all(side * (number - 30) >= 0 and 0 <= number <= 60 for number in numbers)


def test_the_loss_of_a_file_is_that_of_brute_force(tmp_path: Path) -> None:
    spent = [5, 1, 3, 8, 2]
    rows = [{"visitor": str(i), "day": 1, "spent": value} for i, value in enumerate(spent)]
    source = write(tmp_path / "in.csv", rows)
    loss = dp.RemovalLoss(dp.Sum("spent"), "visitor", ["day"], 3, None, dp.PublicPartitions([1, 2]))
    read = read_rows.reader_of(source, ["visitor"], ["day"], [loss.statistic])
    with beam.Pipeline("FnApiRunner") as pipeline:
        lost = support.keep(pipeline | read | loss)
    left = [sum(sorted(spent)[: len(spent) - k]) for k in range(4)]
    found = sorted((row.day, list(row.profile)) for row in lost)
    assert found == [(1, left), (2, [0, 0, 0, 0])]


def profile(source: str, statistic: Metric, owners: list[str]) -> list[float]:
    person = owners if len(owners) > 1 else owners[0]
    read = read_rows.reader_of(source, owners, [], [statistic])
    with beam.Pipeline("FnApiRunner") as pipeline:
        loss = dp.RemovalLoss(statistic, person, removals=3)
        lost = support.keep(pipeline | read | loss)
    [row] = lost
    return list(row.profile)


# As numbers 2^60 and 2^60 + 1 would be one double, "017" would be 17, and "a" none.
ITEMS = ["017", "17", str(2**60), str(2**60 + 1), "a"]
OWNED = {"ann": ITEMS, "bob": ITEMS[:2], "col": ["a", "a", "a"]}


def statistics(people: tuple[str, ...]) -> tuple[float, ...]:
    """The second largest place, different items, the most frequent one's rows, and their squares."""
    places = sorted(place for who in people for place, _ in enumerate(OWNED[who]))
    counts = collections.Counter(item for who in people for item in OWNED[who]).values()
    second = places[-2] if len(places) > 1 else -math.inf
    return second, len(counts), max(counts, default=0), sum(count**2 for count in counts)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("extension", ["csv", "parquet", "jsonl"])
def test_losses_of_rows_and_values_are_those_of_brute_force(tmp_path: Path, extension: str) -> None:
    rows: list[dict[str, object]] = [
        {"who": who, "item": item, "place": place}
        for who, of in OWNED.items()
        for place, item in enumerate(of)
    ]
    source = write(tmp_path / f"in.{extension}", rows)
    left = [map(statistics, itertools.combinations(OWNED, 3 - k)) for k in range(4)]
    exact = list(zip(*(map(min, zip(*numbers, strict=True)) for numbers in left), strict=True))
    asked = dp.KthLargest("place", 2), dp.DistinctCount("item")
    relaxed = dp.MaxFrequency("item"), dp.SumOfSquares("item")
    for statistic, right in zip((*asked, *relaxed), exact, strict=True):
        found = profile(source, statistic, ["who"])
        assert found[0] == right[0], statistic
        assert all(low <= high for low, high in zip(found, right, strict=True)), statistic
        assert statistic in relaxed or found == list(right), statistic


@pytest.mark.sampled(2)
@pytest.mark.parametrize("extension", ["csv", "parquet", "jsonl"])
def test_rows_with_two_owners_disappear_with_either(tmp_path: Path, extension: str) -> None:
    rows: list[dict[str, object]] = [
        {"from": "007", "to": f"{pair:03}", "spent": pair} for pair in range(1, 6)
    ] + [{"from": "8", "to": "9", "spent": 4}]
    source = write(tmp_path / f"in.{extension}", rows)
    for statistic, right in {dp.Count(): [6, 1, 0, 0], dp.Sum("spent"): [19, 4, 0, 0]}.items():
        found = profile(source, statistic, ["from", "to"])
        assert [found[0], *found[2:]] == [right[0], *right[2:]]
        assert 0.9 * right[1] <= found[1] <= right[1]  # but for the grid of prices
    largest = profile(source, dp.Max("spent"), ["to", "from"])
    assert largest == [5, 4, -math.inf, -math.inf]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("extension", ["csv", "parquet", "jsonl"])
def test_rows_with_three_owners_disappear_with_any_and_have_empty_roles(
    tmp_path: Path, extension: str
) -> None:
    """The first person owns five rows in three roles, and the rest is the supplier's alone."""
    owners = [("007", "a", "b"), ("c", "007", None), ("d", "e", "007"), ("007", None, None)]
    owners += [("f", "007", "007"), (None, "s", None), ("s", "s", None), (None, None, None)]
    names = ["customer", "supplier", "clerk"]
    rows: list[dict[str, object]] = [
        {**dict(zip(names, each, strict=True)), "part": place % 2, "spent": place}
        for place, each in enumerate(owners)
    ]
    source = write(tmp_path / f"in.{extension}", rows)
    right_of: dict[Metric, list[float]] = {
        dp.Count(): [7, 2, 0, 0],
        dp.KthLargest("spent", 2): [5, 3, -math.inf, -math.inf],
        dp.DistinctCount("part"): [2, 1, 0, 0],
        dp.MaxFrequency("part"): [4, 1, 0, 0],
    }
    for statistic, right in right_of.items():
        assert profile(source, statistic, names) == right, statistic
