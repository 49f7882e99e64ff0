"""The job in two steps: the loss it writes is right, private while it lies there, and gone after."""

import collections
import csv
import gzip
import itertools
import math
import stat
from fractions import Fraction
from pathlib import Path

import apache_beam as beam
import pytest

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.search.choose import BY_WORD, build_search
from beam_dp.transforms.inputs import wanted_columns
from pipelines import running, shifted_inverse
from pipelines.description import Description
from tests.pipelines.conftest import PEOPLE
from tests.row_files import write

RUN = ["--runner", "FnApiRunner"]
PUBLIC = ["--person", "visitor", "--partition", "day", "--public_partitions", "1,2,3"]


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    return directory


def command(visits: str, out: Path, *words: str) -> list[str]:
    budget = ["--epsilon", "3", "--candidates", "0:60:1", *RUN]
    return ["--input", visits, "--output", str(out), *PUBLIC, *budget, *words]


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "search", ["auto", "above_threshold", "exponential_mechanism", "noisy_binary_search"]
)
def test_a_value_that_all_people_have_is_never_missed(
    visits: str, tmp_path: Path, search: str
) -> None:
    cap = build_search(BY_WORD[search], dp.Budget(3), 0.05, 61).cap(61)
    assert cap < PEOPLE
    # Everybody has 30, so B[k] = 30 for every k up to the cap K, and a search over B[0..K]
    # stops on the wrong side with probability at most that of the cap, 1e-12 per partition.
    for metric, side in (("--max", 1), ("--min", -1)):
        out = tmp_path / f"{metric}.csv"
        words = command(visits, out, metric, "minutes", "--search", search)
        words[words.index("--epsilon") + 1] = "9"
        assert shifted_inverse.main(words) == 0
        released = read(out)
        assert [row["day"] for row in released] == ["1", "2", "3"]
        column = f"{metric[2:]}_minutes"
        assert all(side * (float(row[column]) - 30) >= 0 for row in released)
        assert all(0 <= float(row[column]) <= 60 for row in released)


def test_the_loss_between_the_steps_is_that_of_brute_force(tmp_path: Path) -> None:
    spent = [5, 1, 3, 8, 2]
    rows = [{"visitor": str(i), "day": 1, "spent": value} for i, value in enumerate(spent)]
    source = write(tmp_path / "in.csv", rows)
    loss = dp.RemovalLoss(dp.Sum("spent"), "visitor", ["day"], 3, None, dp.PublicPartitions([1, 2]))
    read = wanted_columns.reader(source, ["visitor"], ["day"], [loss.statistic])
    lost = beam.Pipeline("FnApiRunner") | read | loss
    written(lost, tmp_path)
    left = [sum(sorted(spent)[: len(spent) - k]) for k in range(4)]
    assert sorted(shifted_inverse.read_lines(str(tmp_path))) == [[1, left], [2, [0, 0, 0, 0]]]


def written(lost: beam.PCollection[beam.Row], path: Path) -> None:
    """Write a loss as the job does."""
    shifted_inverse.write_lines(lost, str(path))
    running.run(lost.pipeline, "Reading")


def profile(source: str, statistic: Metric, owners: list[str], path: Path) -> list[float]:
    person = owners if len(owners) > 1 else owners[0]
    path.mkdir()
    read = wanted_columns.reader(source, owners, [], [statistic])
    loss = dp.RemovalLoss(statistic, person, removals=3)
    written(beam.Pipeline("FnApiRunner") | read | loss, path)
    [[values]] = shifted_inverse.read_lines(str(path))
    return values


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
    for place, (statistic, right) in enumerate(zip((*asked, *relaxed), exact, strict=True)):
        found = profile(source, statistic, ["who"], tmp_path / str(place))
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
    for place, (statistic, right) in enumerate(
        {dp.Count(): [6, 1, 0, 0], dp.Sum("spent"): [19, 4, 0, 0]}.items()
    ):
        found = profile(source, statistic, ["from", "to"], tmp_path / str(place))
        assert [found[0], *found[2:]] == [right[0], *right[2:]]
        assert 0.9 * right[1] <= found[1] <= right[1]  # but for the grid of prices
    largest = profile(source, dp.Max("spent"), ["to", "from"], tmp_path / "largest")
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
    for place, (statistic, right) in enumerate(right_of.items()):
        assert profile(source, statistic, names, tmp_path / str(place)) == right, statistic


def test_the_loss_is_for_this_user_only_and_deleted(
    visits: str,
    tmp_path: Path,
    temporary: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    modes: list[int] = []
    read_lines = shifted_inverse.read_lines

    def spy(path: str) -> object:
        modes.append(stat.S_IMODE(Path(path).stat().st_mode))
        return read_lines(path)

    monkeypatch.setattr(shifted_inverse, "read_lines", spy)
    assert shifted_inverse.main(command(visits, tmp_path / "out.csv", "--max", "minutes")) == 0
    assert modes == [0o700]
    assert list(temporary.iterdir()) == []
    said = capfd.readouterr().err
    assert said.startswith("Warning: the loss is not private; it is in ")
    assert said.endswith("Reading and bounding\nSearching\nWriting\n")


def test_the_loss_is_deleted_after_a_failure(tmp_path: Path, temporary: Path) -> None:
    damaged = tmp_path / "damaged.csv.gz"
    rows = b"".join(b"%d,1,%d\n" % (row, row % 7) for row in range(50_000))
    damaged.write_bytes(gzip.compress(b"visitor,day,minutes\n" + rows)[:-9])  # at its end
    with pytest.raises(SystemExit):
        shifted_inverse.main(command(str(damaged), tmp_path / "out.csv", "--max", "minutes"))
    assert list(temporary.iterdir()) == []
    assert not (tmp_path / "out.csv").exists()


def test_temp_location_is_used_and_cleaned(visits: str, tmp_path: Path, temporary: Path) -> None:
    shared = tmp_path / "shared"
    words = command(visits, tmp_path / "out.csv", "--max", "minutes")
    assert shifted_inverse.main([*words, "--temp_location", str(shared)]) == 0
    assert list(temporary.iterdir()) == list(shared.iterdir()) == []


def test_a_unit_a_size_and_a_geometric_grid_reach_the_steps() -> None:
    grid = {"low": 1, "high": 64, "ratio": 2}
    asked = {"sum_of_squares": "a", "candidates": grid, "search": "auto"}
    given = {"person": "p", "budget": {"epsilon": 1}, "partition_rows": 100, "shards": 2}
    loss, _, outputs = shifted_inverse.steps(Description({**given, "metrics": [asked]}))
    assert list(outputs) == [1, 2, 4, 8, 16, 32, 64]
    assert (loss.partition_rows, loss.shards) == (100, 2)
    asked = {"max": "a", "unit": 0.5, "candidates": grid, "search": "above_threshold"}
    loss, *_ = shifted_inverse.steps(Description({**given, "metrics": [asked]}))
    assert vars(loss.statistic)["unit"] == Fraction(1, 2)
