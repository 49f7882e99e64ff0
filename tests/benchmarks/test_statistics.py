"""The tables of the statistics, on a TPC-H of 40 orders and on small graphs."""

import dataclasses
import math
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import beam_dp as dp
from benchmarks import __main__ as everything
from benchmarks import cases, profiles, published, relations, statistics, tpch
from benchmarks.cases import CASES, GIBIBYTE, MAINS, Case, Goal
from benchmarks.measure import Contestant, Run

ORDERS = range(1, 41)
SMALL = {
    "items": "items", "orders": "orders_50", "zipf": "zipf_60_20", "road": "road_40_30",
}  # fmt: skip
BY_PROFILE = [case for case in CASES if case.ways == ("profile", "pure")]


@pytest.fixture(autouse=True)
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the tables where those of tpchgen-cli are looked for."""
    monkeypatch.setattr(tpch, "FOLDER", tmp_path)
    rows = [(order, item) for order in ORDERS for item in range(1, 1 + order % 5)]
    money = pa.decimal128(15, 2)
    lineitem = {
        "l_orderkey": [order for order, _ in rows],
        "l_suppkey": [1 + (order * item) % 4 for order, item in rows],
        "l_partkey": [1 + (order + 3 * item) % 11 for order, item in rows],
        "l_extendedprice": pa.array([Decimal(100 * o + i) / 100 for o, i in rows], money),
        "l_quantity": pa.array([Decimal(1 + order * item % 50) for order, item in rows], money),
    }
    orders = {
        "o_orderkey": list(ORDERS)[::-1],
        "o_custkey": [1 + order % 7 for order in ORDERS][::-1],
        "o_clerk": [f"Clerk#{order % 3}" for order in ORDERS][::-1],
    }
    customer = {"c_custkey": list(range(1, 8))}
    for name, columns in {"lineitem": lineitem, "orders": orders, "customer": customer}.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")


def small(case: Case) -> Case:
    """Return a case of the same kind on few rows, with K = 6."""
    kind, *size = case.file.split("_")
    file = "items_50" if kind == "items" and size else SMALL[kind]
    metrics = tuple(
        (name, dict(options) | ({"k": 5} if "k" in options else {}))
        for name, options in case.metrics
    )
    return dataclasses.replace(case, file=file, metrics=metrics, removals=6)


def truth(case: Case, columns: dict[str, np.ndarray]) -> float:
    """Return the statistic of a small case, by counting."""
    [(kind, options)] = case.metrics
    values = columns[str(options["column"])].tolist() if "column" in options else []
    found = {
        "Count": lambda: len(columns[case.person[0]]),
        "Sum": lambda: sum(values),
        "KthLargest": lambda: sorted(values)[-5],
        "DistinctCount": lambda: len(set(values)),
        "MaxFrequency": lambda: max(Counter(values).values()),
        "SumOfSquares": lambda: sum(count**2 for count in Counter(values).values()),
    }
    return found[kind]()


@pytest.mark.parametrize("case", BY_PROFILE, ids=lambda case: case.name)
def test_the_pipeline_and_the_function_give_one_profile(case: Case) -> None:
    case = small(case)
    levels = profiles.profile(case)
    assert levels == pytest.approx(profiles.pure(case), rel=1e-12)
    assert levels[0] == pytest.approx(truth(case, profiles.read(case)), rel=1e-12)
    assert len(levels) == 7 and levels == sorted(levels, reverse=True) and levels[6] < levels[0]


def test_releases_are_released() -> None:
    asked = [case for case in (*MAINS.values(), *CASES) if "release" in case.ways]
    seen = {name: case for case in asked for name, _ in case.metrics}
    assert set(seen) == {"Count", "Sum", "Median", "DistinctCount"}
    for case in seen.values():
        assert len(profiles.release(small(case))) == len(case.metrics)
    median = small(seen["Median"])
    assert profiles.pure(median) == [
        profiles.read(median)["price"].min(), profiles.read(median)["price"].max()
    ]  # fmt: skip


def test_items_are_joined_with_their_orders() -> None:
    rows = pq.read_table(relations.path("items")).to_pylist()
    assert len(rows) == sum(order % 5 for order in ORDERS)
    for row in rows:
        assert (
            row["customer"] == 1 + row["order"] % 7
            and row["clerk"] == row["order"] % 3 + relations.CLERKS
        )
        assert row["supplier"] >= relations.SUPPLIERS and row["price"] // 1 == row["order"]


def test_graphs_have_their_sizes_and_shapes() -> None:
    edges = pq.read_table(relations.path("zipf_5000_300"))
    ends = Counter([*edges["from"].to_pylist(), *edges["to"].to_pylist()])
    assert len(edges) == 5000 and max(ends) < 300
    assert sum(ends[person] for person in range(10)) > 3 * sum(ends[p] for p in range(290, 300))
    road = pq.read_table(relations.path("road_3000_2000"))
    pairs = set(zip(road["from"].to_pylist(), road["to"].to_pylist(), strict=True))
    degrees = Counter(person for pair in pairs for person in pair)
    assert len(pairs) == len(road) == 2998 and all(a < b < 2000 for a, b in pairs)  # all there are
    assert max(degrees.values()) <= 4


def test_every_case_has_a_name_and_a_main_job() -> None:
    assert len(cases.NAMED) == len(CASES) + len(MAINS)
    assert all(MAINS[case.file].file == case.file for case in CASES)
    assert all(str(case.goal) and set(case.ways) <= set(cases.WAYS) for case in CASES)
    assert str(Goal(300, 8 * GIBIBYTE, 1.3)) == "300 s, 8 GiB, 1.3 x main"


@pytest.mark.parametrize(
    ("goal", "met"),
    [
        (Goal(), True), (Goal(2.0), True), (Goal(1.9), False), (Goal(peak=64), True),
        (Goal(peak=63), False), (Goal(ratio=2.0), True), (Goal(2.0, 64, 1.9), False),
    ],
)  # fmt: skip
def test_goals_are_compared_to_medians(goal: Goal, met: bool) -> None:
    mine = Contestant("mine", [], 1, runs=[Run(wall, 1.0, 64, {}) for wall in (1.0, 2.0, 9.0)])
    main = Contestant("main", [], 1, runs=[Run(wall, 1.0, 64, {}) for wall in (0.5, 1.0, 9.0)])
    assert statistics.is_met(goal, mine, main) is met


def test_a_table_has_the_main_job_and_every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []

    def interleave(contestants: list[Contestant], rounds: int) -> None:
        ran.extend(list(contestant.command) for contestant in contestants)
        for contestant in contestants:
            contestant.runs = [Run(12.0, 20.0, 3 << 20, {})] * rounds

    monkeypatch.setattr(statistics, "interleave", interleave)
    monkeypatch.setattr(statistics, "rows_of", lambda file: 60_000)
    text = statistics.table("orders_60000", CASES, 2)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.split("\n")[2:]]
    assert text.startswith("### orders_60000: 60,000 rows")
    name = "distinct clerks of 60,000 orders"
    numbers = ["12.00", "12.00", "20.00", "3", "1.00"]
    assert cells[0] == statistics.HEAD
    assert cells[2:] == [
        ["main job on orders_60000", "release", "", *numbers, "", ""],
        [name, "profile", "200", *numbers, "10 s", "NO"],
        [name, "pure", "200", *numbers, "10 s", "NO"],
    ]
    module = [sys.executable, "-m", "benchmarks.profiles"]
    assert ran[1:] == [[*module, name, "--way", way] for way in ("profile", "pure")]


def test_the_programs_are_found() -> None:
    words = ["statistics", "--accuracy", "--runs", "3"]
    assert everything.commands(words) == [["benchmarks.statistics", *words[1:]]]


@pytest.mark.parametrize("size", [1, 1000, 3_145_729])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_published_target_is_that_of_the_paper(size: int, epsilon: float) -> None:
    mechanism = published.Published(dp.Budget(epsilon), 0.05)
    tau = math.ceil(2 / epsilon * math.log(size / 0.05))
    # T = 2 tau - 1 of the exponential mechanism, whatever tau; one candidate needs none.
    assert mechanism.shift(size) == (0 if size == 1 else 2 * tau - 1)
    assert mechanism.shift(size) >= dp.ExponentialMechanism(dp.Budget(epsilon), 0.05).shift(size)


def test_the_published_mechanism_has_the_published_probabilities() -> None:
    """P(y_i) is proportional to e^(-epsilon/2 max(l_i - tau, tau - lbar_i))."""
    profile, candidates = dp.Profile([9, 7, 7, 4, 2, 0]), dp.Candidates.linear(0, 10, 1)
    tau = math.ceil(2 * math.log(11 / 0.05))
    losses = profile.loss(candidates)
    strict = [math.inf, *losses[:-1]]
    scores = [max(loss - tau, tau - lbar) for loss, lbar in zip(losses, strict, strict=True)]
    weights = np.exp(-np.array(scores) / 2)
    drawn = published.Published(dp.Budget(1.0), 0.05).distribution(profile, candidates)
    assert drawn == pytest.approx((weights / weights.sum()).tolist(), rel=1e-9)


def by(kind: str) -> published.Question:
    """Return the first question for a metric of that kind, on few rows."""
    found = next(q for q in published.QUESTIONS if type(q.metric).__name__ == kind)
    return dataclasses.replace(found, case=small(found.case))


@pytest.mark.parametrize(
    "kind", sorted({type(question.metric).__name__ for question in published.QUESTIONS})
)
def test_errors_are_measured_for_every_metric(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At epsilon 10^6 a release passes over nobody: it is the truth, but for the candidates."""
    question = by(kind)
    monkeypatch.setattr(published, "EPSILON", 1e6)
    if kind == "KthLargest":
        question = dataclasses.replace(question, metric=dp.KthLargest("price", 5))
    wanted, drawn = published.measure(question, 3)
    assert [one.name for one in drawn] == ["published", "one-sided", "two-phase", "least shift"]
    assert wanted > 0 and drawn[3].people == 0
    for one in drawn[:3]:
        assert len(one.errors) == 3 and (one.people is None) == (one.name == "two-phase")
    # Without noise one person is passed over at most; clips and noise are of less than one unit,
    # and a floor is rounded up to the next candidate, the next dollar.
    loss = 1 - profiles.profile(_directly(question))[1] / wanted + 0.02
    assert max(drawn[1].errors) <= loss * wanted
    assert all(one.errors.max() <= 1 for one in drawn[2:])


def _directly(question: published.Question) -> Case:
    kind = type(question.metric).__name__
    column = getattr(question.metric, "column", None)
    options = ({"column": column} if column else {}) | ({"k": 5} if kind == "KthLargest" else {})
    return dataclasses.replace(question.case, metrics=((kind, options),))


def test_rows_of_two_owners_are_measured_too() -> None:
    found = next(q for q in published.QUESTIONS if len(q.case.person) == 2)
    wanted, drawn = published.measure(dataclasses.replace(found, case=small(found.case)), 3)
    names = ["published", "one-sided", "two-phase", "least shift"]
    assert wanted == 60 and [one.name for one in drawn] == names


def test_the_table_of_errors_compares_to_the_published(capsys: pytest.CaptureFixture[str]) -> None:
    published.QUESTIONS, questions = (by("MaxFrequency"), by("Count")), published.QUESTIONS
    try:
        published.main(["--runs", "5", "--only", "most"])
    finally:
        published.QUESTIONS = questions
    lines = capsys.readouterr().out.splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0] == published.HEADS
    names = ["published", "one-sided", "two-phase", "least shift"]
    assert [line[:2] for line in cells[2:6]] == [["most frequent clerk", name] for name in names]
    assert [cells[at][-1] in ("yes", "NO") for at in range(2, 6)] == [False, True, True, False]
    assert cells[7] == published.SHORT and cells[9][-1] in ("yes", "NO")
    assert len(cells) == 10


def test_a_missed_goal_is_an_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = published.Drawn(published.PUBLISHED, np.full(5, 10.0), None)
    near, good = (published.Drawn("two-phase", np.full(5, error), None) for error in (9.0, 4.0))
    side = published.Drawn("one-sided", np.full(5, 1.0), None)
    floor = published.Drawn(published.FLOOR, np.zeros(5), 0.0)
    monkeypatch.setattr(published, "QUESTIONS", (by("Count"),))
    for found, code in (([wide, side, near, floor], 1), ([wide, side, good, floor], 0)):
        monkeypatch.setattr(published, "measure", lambda *_, found=found: (1.0, found))
        assert published.main([]) == code


def test_the_least_shift_is_that_of_the_packing() -> None:
    # ln(1000 0.95) = 6.86: seven people may tell 1000 databases apart, six may not.
    profile, candidates = dp.Profile(range(20, 0, -1)), dp.Candidates.linear(0, 999, 1)
    found = published.least_shift(profile, candidates)
    assert found.people == 6 and found.errors.tolist() == [6.0]
