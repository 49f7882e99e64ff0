"""Other statistics and their experts: errors are what they are called, laws are those they claim."""

import math

import numpy as np
import pytest

from benchmarks import coverage, expert_laws, experts, other_statistics, suites
from benchmarks.draws import Interval
from benchmarks.experts import Compared
from benchmarks.other_statistics import ITEMS, OTHERS, Cell, Distance, Found
from benchmarks.suites import Rows

NAMED = {other.name: other for other in OTHERS}
TEN = Rows(np.arange(10), np.zeros(10, np.int64), {"v": np.arange(1.0, 11.0)})
UNKNOWN = np.array([np.inf])


def released(value: float, people: float = math.inf) -> Interval:
    one, no = np.array([value]), np.array([False])
    return Interval(one, one - 1, one + 1, np.array([people]), no, no)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("median", 5.0, 0.0),
        ("median", 5.5, 0.0),
        ("median", 4.0, 1.0),
        ("median", 8.0, 2.0),
        ("0.9-quantile", 9.0, 0.0),
        ("0.9-quantile", 3.0, 6.0),
        ("0.9-quantile", 99.0, 1.0),
        ("10th largest", 1.0, 0.0),
        ("10th largest", 3.0, 2.0),
        ("10th largest", 0.5, 1.0),
        ("largest", 10.0, 0.0),
        ("largest", 5.0, math.log(2)),
        ("largest", 20.0, math.log(2)),
        ("largest", -3.0, 10.0),
    ],
)
def test_errors_of_ranks_and_extremes(name: str, value: float, error: float) -> None:
    assert NAMED[name].errors(TEN, np.array([value]))[0] == pytest.approx(error)


def test_ties_are_no_errors() -> None:
    rows = Rows(np.arange(9), np.zeros(9, np.int64), {"v": np.repeat([1.0, 2.0, 3.0], 3)})
    assert NAMED["median"].errors(rows, np.array([2.0, 1.0, 3.0])).tolist() == [0, 1.5, 1.5]


def test_what_is_stated_is_true_or_not() -> None:
    median, largest = NAMED["median"], NAMED["largest"]
    assert median.inside(TEN, released(8.0, 2)).all() and not median.inside(TEN, released(8, 1))
    assert largest.inside(TEN, released(9.5)).all() and not largest.inside(TEN, released(8.5))
    nothing = Interval(
        *(np.array([part]) for part in (0.0, -np.inf, np.inf, 0.0)), UNKNOWN > 0, UNKNOWN < 0
    )
    assert median.inside(TEN, nothing).all() and largest.inside(TEN, nothing).all()


def test_answers_far_from_the_data_are_absurd() -> None:
    found = NAMED["median"].absurd(TEN, np.array([5.0, 99.0, 101.0, -88.0, -90.0]))
    assert found.tolist() == [False, False, True, False, True]


@pytest.mark.parametrize("kind", ITEMS)
def test_truths_of_items_are_those_of_brute_force(kind: str) -> None:
    values = other_statistics.items(kind, 200, 0).columns["v"]
    owned = values.tolist()
    assert NAMED["distinct count"].truth(values) == len(set(owned))
    assert NAMED["most frequent"].truth(values) == max(map(owned.count, set(owned)))


def test_the_mean_is_in_units_of_its_sampling_error() -> None:
    other = NAMED["mean of rows"]
    rows = other.make("normal(10, 30)", 5000, 0)
    [one] = other.errors(rows, np.array([rows.columns["v"].mean() + 1.0]))
    assert one == pytest.approx(math.sqrt(len(rows.person)) / rows.columns["v"].std())


def test_the_law_of_quantiles_is_that_of_noisy_maxima() -> None:
    """Of two candidates the better wins with 1 - e^-d / 2, d the distance over the scale.

    With 40,000 draws the share is within 7 standard errors, a chance below 1e-11.
    """
    drawn = expert_laws.noisy_best(
        np.array([1.0, 2.0]), np.array([-3.0, -1.0]), 1.0, np.random.default_rng(0), 40_000
    )
    chance = 1 - math.exp(-2) / 2
    assert abs((drawn == 2).mean() - chance) < 7 * math.sqrt(chance * (1 - chance) / 40_000)


def test_an_expert_bounds_every_person() -> None:
    person = np.array([0, 0, 0, 1, 2, 2])
    kept = expert_laws.first_of_each(person, 2)
    assert kept.tolist() == [True, True, False, True, True, True]
    rows = Rows(person, np.zeros(6, np.int64), {"v": np.array([1, 2, 3, 3, 3, 3])})
    drawn = np.random.default_rng(0)
    several = expert_laws.distinct("", rows)["2 items each"](drawn, 20_000)
    # The mean of Laplace noise of scale 2, within 7 standard errors of 20,000.
    assert abs(several.mean() - 3) < 7 * 2 * math.sqrt(2 / 20_000)
    most = expert_laws.frequency("", rows)["8 rows each"](drawn, 2000)
    assert most.min() > -200 and most.mean() > 3  # the largest of noisy counts is biased upwards


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: other.name)
def test_experts_are_private_numbers_near_the_truth(other: Distance) -> None:
    """Of some choices the best is never far off: a tenth of the people, or of the number."""
    cell = Cell(other, other.kinds[1], 1000)
    middle, error, choice = experts.expert(cell, 100, 1)
    limit = {"people": 100, "values": 100, "rows": 300}.get(other.unit, 10.0)
    assert 0 <= middle <= error < limit and choice


def test_the_population_is_none_of_the_samples() -> None:
    assert expert_laws.population("uniform", 0.5) == pytest.approx(0.5, abs=0.01)
    assert expert_laws.population("lognormal 1", 0.98) == pytest.approx(math.exp(2.054), rel=0.02)
    ours = suites.numbers("uniform", expert_laws.POPULATION, 0)
    assert np.quantile(ours, 0.5) != expert_laws.population("uniform", 0.5)


def compared(ours: float, theirs: float, other: str = "median") -> Compared:
    cell = Cell(NAMED[other], "uniform", 300)
    return Compared(Found(cell, ours, ours, 1.0, 1.0, 0.0, 0.0), theirs, theirs, "a choice")


def test_ratios_of_whole_errors_have_one_added() -> None:
    assert compared(5, 2).ratio == 2.0 and compared(0, 0).ratio == 1.0
    assert compared(0.5, 0.1, "largest").ratio == pytest.approx(5)
    assert compared(0.0, 0.0, "mean of rows").ratio == 1.0
    text = experts.table(NAMED["median"], [[compared(8, 2)]])
    assert "| uniform | 8, 8 : 2, 2 = **3** |" in text
    assert "* median of 300 people, uniform: 3 times the expert's (bounds: a choice)" in text
    assert "times the expert's" not in experts.table(NAMED["median"], [[compared(5, 2)]])


def test_the_last_table_of_experts_has_means_and_the_worst() -> None:
    found = {NAMED["median"]: [[compared(5, 2)], [compared(8, 0)]]}
    text = other_statistics.overview("head", found, experts.summary)
    assert text.splitlines()[2] == "| median: people | 4.2 (9) |"


def test_goals_of_statistics() -> None:
    def found(inside: float, absurd: float) -> Found:
        return Found(Cell(NAMED["median"], "uniform", 300), 1, 2, inside, 1, 0.0, absurd)

    assert other_statistics.misses([found(0.95, 0.0), found(0.92, 0.01)]) == []
    assert other_statistics.misses([found(0.95, 0.02)]) == ["absurd"]
    assert other_statistics.misses([found(1.0, 0.0), found(0.79, 0.0)]) == ["true", "a true"]


def test_the_tables_have_a_line_for_each_kind(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--runs", "10", "--seeds", "1", "--quick", "--only", "0.9-quantile"]
    code = coverage.main(["--statistics", *words])
    out = capsys.readouterr().out
    assert out.startswith("| 0.9-quantile: people | 300 | 1,000 |") and code == int("NO: " in out)
    assert out.count("\n| ") == 5 + len(other_statistics.VALUES)
    assert experts.main(words) == 0
    out = capsys.readouterr().out
    assert out.startswith("| 0.9-quantile: people, ours : theirs | 300 | 1,000 |")
