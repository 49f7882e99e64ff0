"""`Histogram`: its bins and names, in a pipeline and from the command line.

Where numbers are compared epsilon is 100 or more: noise is not 0 with a chance below e^-99.
"""

import csv
import json
import math
import pickle
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric
from pipelines import aggregate, preprocess
from tests.hostile import support

AGES = [17, 18, 29, 30, 64, 65, -1, 0, 17.9999994, 17.9999996, None, math.nan]
ROWS: list[dict[str, Any]] = [
    *({"person": n, "day": "a", "age": age} for n, age in enumerate(AGES)),
    *({"person": n, "day": "b", "age": age} for n in range(3) for age in (10, 20, 60)),
]


def released(*asked: Metric, budget: dp.Budget | None = None) -> list[beam.Row]:
    """Return what the in-memory runner releases of both days, in their order."""
    transform = dp.PrivateAggregate(
        "person",
        asked,
        budget or dp.Budget(400.0),
        ["day"],
        dp.ContributionBounds(2),
        dp.PublicPartitions(["a", "b"]),
    )
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        kept = support.keep(pipeline | beam.Create(ROWS) | transform)
    return sorted(kept, key=lambda row: row.day)


def bins(row: beam.Row, metric: Metric) -> list[int]:
    """Return the numbers of people of a histogram."""
    return [getattr(row, output.name) for output in metric.outputs[::3]]


def test_a_bin_is_from_an_edge_to_below_the_next() -> None:
    asked = dp.Histogram("age", [0, 18, 30, 65])
    first, second = released(asked)
    # 17.9999994 is 17.999999 on the grid of millionths, 17.9999996 is 18.
    assert bins(first, asked) == [3, 3, 2]
    assert bins(second, asked) == [0, 0, 3]  # the mean is 30
    assert first.histogram_age_0_18_low == 3 == first.histogram_age_0_18_high
    names = list(first._fields if hasattr(first, "_fields") else vars(first))
    assert names[:4] == [
        "day",
        "histogram_age_0_18",
        "histogram_age_0_18_low",
        "histogram_age_0_18_high",
    ]


def test_open_ends_and_person_values() -> None:
    edges = [-math.inf, 0, 15, 25, math.inf]
    asked = [
        dp.Histogram("age", edges, person_value=kind, name=kind)
        for kind in ("mean", "sum", "max", "min")
    ]
    first, second = released(*asked)
    for metric in asked:
        assert bins(first, metric) == [1, 1, 4, 4]
    assert [bins(second, metric) for metric in asked] == [
        [0, 0, 0, 3],
        [0, 0, 0, 3],
        [0, 0, 0, 3],
        [0, 3, 0, 0],
    ]


def test_names_of_bins_are_plain() -> None:
    asked = dp.Histogram("t", [-math.inf, -5, Fraction(1, 2), 1.25, np.float64(10**20), math.inf])
    assert [output.name for output in asked.outputs[::3]] == [
        "histogram_t_minus_inf_minus_5",
        "histogram_t_minus_5_0.5",
        "histogram_t_0.5_1.25",
        "histogram_t_1.25_100000000000000000000",
        "histogram_t_100000000000000000000_inf",
    ]
    assert [output.whole for output in asked.outputs[:3]] == [True, False, False]
    assert dp.Histogram("t", [0, 1], name="x").outputs[0].name == "x_0_1"
    assert dp.Histogram("t", (0, 1)) == dp.Histogram("t", np.array([0.0, 1.0]))
    assert pickle.loads(pickle.dumps(asked)) == asked


def test_all_bins_are_one_row_of_the_plan_and_cost_one_share() -> None:
    asked = [dp.Histogram("age", range(101)), dp.PeopleCount()]
    rows = dp.PrivateAggregate("person", asked, dp.Budget(1.0)).plan().rows
    assert [(row.metric, row.epsilon) for row in rows] == [
        ("histogram_age", pytest.approx(0.5)),
        ("people_count", pytest.approx(0.5)),
    ]
    zcdp = dp.PrivateAggregate("person", asked, dp.Budget.zcdp(1.0)).plan().rows
    assert [row.rho for row in zcdp] == pytest.approx([0.5, 0.5])


def test_intervals_begin_at_zero() -> None:
    """At epsilon 0.01 an empty bin is released below 0 sometimes; its truth never is."""
    asked = dp.Histogram("age", range(200, 300))
    for row in released(asked, budget=dp.Budget(0.01)):
        values = bins(row, asked)
        low = [getattr(row, output.name) for output in asked.outputs[1::3]]
        high = [getattr(row, output.name) for output in asked.outputs[2::3]]
        assert min(low) == 0 and min(high) >= 0
        assert min(values) < 0  # all 100 are not with a chance of about 2^-100
        assert len({high_ - value for value, high_ in zip(values, high) if high_ > 0}) == 1


WRONG: list[tuple[Callable[[], Metric], type[Exception], str]] = [
    (lambda: dp.Histogram("age", [1]), ValueError, "edges must be 2 to 1001 numbers, not 1"),
    (lambda: dp.Histogram("age", range(2000)), ValueError, "edges must be 2 to 1001 numbers"),
    (lambda: dp.Histogram("age", [0, 5, 5]), ValueError, "edges must rise"),
    (lambda: dp.Histogram("age", [5, 0]), ValueError, "edges must rise"),
    (lambda: dp.Histogram("age", "0:5"), TypeError, "edges must be a list of numbers"),
    (lambda: dp.Histogram("age", 5), TypeError, "edges must be a list of numbers"),
    (lambda: dp.Histogram("age", [0, "5"]), TypeError, "every edge must be a real number"),
    (lambda: dp.Histogram("age", [0, math.nan]), ValueError, "every edge must be finite"),
    (lambda: dp.Histogram("age", [0, 10**400]), ValueError, "every edge must be a number that"),
    (lambda: dp.Histogram("age", [0, 1], person_value="last"), ValueError, "person_value must"),
    (lambda: dp.Histogram("age", [0, 1], unit=0), ValueError, "unit must be above 0"),
    (lambda: dp.Histogram("", [0, 1]), TypeError, "column must"),
]


@pytest.mark.parametrize(("build", "kind", "message"), WRONG)
def test_wrong_parameters_are_refused(
    build: Callable[[], Metric], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=f"^Histogram: {message}"):
        build()


# ------------------------------------------------------------------------- the command line


def job(tmp_path: Path, *words: str) -> list[dict[str, str]]:
    """Return the rows that the job releases of both days."""
    source, out = tmp_path / "visits.csv", tmp_path / "released.csv"
    lines = [f"{row['person']},{row['day']},{row['age']}" for row in ROWS if row["age"] is not None]
    source.write_text("\n".join(["person,day,age", *lines]) + "\n")
    given = ["--input", str(source), "--output", str(out), "--person", "person"]
    given += ["--partition", "day", "--public_partitions", "a,b", "--bounds", "partitions=2"]
    assert aggregate.main([*given, *words, "--epsilon", "400", "--runner", "FnApiRunner"]) == 0
    return list(csv.DictReader(out.open()))


def test_the_job_releases_it(tmp_path: Path) -> None:
    asked = {"histogram": "age", "edges": [0, 18, 30.5, "inf"], "person_value": "max"}
    (tmp_path / "release.json").write_text(json.dumps({"metrics": [asked]}))
    first, second = job(tmp_path, "--config", str(tmp_path / "release.json"))
    names = ["0_18", "18_30_5", "30_5_inf"]
    columns = [f"histogram_age_{name}{end}" for name in names for end in ("", "_low", "_high")]
    assert list(first) == ["day", *columns]
    assert [first[f"histogram_age_{name}"] for name in names] == ["3", "4", "2"]
    assert [second[f"histogram_age_{name}"] for name in names] == ["0", "0", "3"]


@pytest.mark.parametrize("word", ["age", "age:1", "age:5:1", "age:1:x", "age:0:nan", ":0:1"])
def test_the_job_says_what_edges_are(word: str, capfd: pytest.CaptureFixture[str]) -> None:
    words: Sequence[str] = ["--person", "p", "--histogram", word, "--epsilon", "1", "--plan"]
    with pytest.raises(SystemExit):
        aggregate.main(words)
    said = capfd.readouterr().err
    assert said.count("\n") == 1 and " must " in said


def test_the_job_refuses_an_option_that_it_does_not_take(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for more, said in (
        ({"last_by": "t"}, "not have the word 'last_by'"),
        ({"person_value": "last"}, "last"),
    ):
        asked = {"person": "p", "budget": {"epsilon": 1}}
        asked["metrics"] = [{"histogram": "age", "edges": [0, 1], **more}]
        (tmp_path / "release.json").write_text(json.dumps(asked))
        with pytest.raises(SystemExit) as ended:
            aggregate.main(["--config", str(tmp_path / "release.json"), "--plan"])
        assert ended.value.code == 2 and said in capfd.readouterr().err


def test_it_is_no_statistic_for_preprocessing() -> None:
    asked = dp.Histogram("age", [0, 1])
    with pytest.raises(TypeError, match="^PreprocessSensitivity: statistic must be one of Max, "):
        dp.PreprocessSensitivity(asked, "p", dp.Budget(1.0))
    assert "--histogram" not in preprocess.parser().format_help()
    assert "--histogram" in aggregate.parser().format_help()
