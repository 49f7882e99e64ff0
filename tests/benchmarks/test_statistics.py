"""The tables of the statistics, on a TPC-H of 40 orders and on small graphs."""

import dataclasses
import datetime
import math
from collections import Counter
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import beam_dp as dp
from benchmarks import relations, statistics, tpch
from tests import laws

ORDERS = range(1, 41)
SMALL = {
    "items": "items", "orders": "orders_50", "zipf": "zipf_60_20", "road": "road_40_30",
    "shipped": "shipped", "triangles": "triangles_60_20", "shared": "shared_60_20",
    "alike": "alike_9_20",
}  # fmt: skip


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    lineitem["l_discount"] = pa.array([Decimal(item) / 100 for _, item in rows], money)
    lineitem["l_shipdate"] = [datetime.date(1994 + item % 4, 2, item) for _, item in rows]
    orders = {
        "o_orderkey": list(ORDERS)[::-1],
        "o_custkey": [1 + order % 7 for order in ORDERS][::-1],
        "o_clerk": [f"Clerk#{order % 3}" for order in ORDERS][::-1],
    }
    customer = {"c_custkey": list(range(1, 8))}
    for name, columns in {"lineitem": lineitem, "orders": orders, "customer": customer}.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")


def few(file: str) -> str:
    """Return a file of the same kind with few rows."""
    kind, *size = file.split("_")
    return "items_50" if kind == "items" and size else SMALL[kind]


def test_the_published_mechanism_has_the_published_probabilities():
    """P(y_i) is proportional to e^(-epsilon/2 max(l_i - tau, tau - lbar_i))."""
    profile, candidates = dp.Profile([9, 7, 7, 4, 2, 0]), dp.Candidates.linear(0, 10, 1)
    tau = math.ceil(2 * math.log(11 / 0.05))
    losses = profile.loss(candidates)
    strict = [math.inf, *losses[:-1]]
    scores = [max(loss - tau, tau - lbar) for loss, lbar in zip(losses, strict, strict=True)]
    weights = np.exp(-np.array(scores) / 2)
    drawn = laws.distribution(statistics.Published(dp.Budget(1.0), 0.05), profile, candidates)
    assert drawn == pytest.approx((weights / weights.sum()).tolist(), rel=1e-9)


def smaller(question: statistics.Question) -> statistics.Question:
    """Return the same question to few rows."""
    metric = question.metric
    if isinstance(metric, dp.KthLargest):
        metric = dataclasses.replace(metric, k=5)
    return question._replace(file=few(question.file), metric=metric)


EVERY = {(type(q.metric), len(q.person.split())): q for q in statistics.QUESTIONS}


@pytest.mark.parametrize("question", EVERY.values(), ids=lambda question: question.name)
def test_errors_are_measured_for_every_metric(question, monkeypatch):
    """At epsilon 10^6 a release passes over nobody: it is the truth, but for the candidates."""
    question = smaller(question)
    monkeypatch.setattr(statistics, "EPSILON", 1e6)
    found = statistics.measure(question, 3)
    rows, asked = (
        pq.read_table(relations.path(question.file)),
        getattr(question.metric, "column", ""),
    )
    values = Counter(rows[asked].to_pylist()) if asked else Counter()
    wanted = {
        dp.Count: lambda: len(rows),
        dp.Sum: lambda: sum(values.elements()),
        dp.Max: lambda: max(values),
        dp.KthLargest: lambda: sorted(values.elements())[-5],
        dp.DistinctCount: lambda: len(values),
        dp.MaxFrequency: lambda: max(values.values()),
        dp.SumOfSquares: lambda: sum(count**2 for count in values.values()),
    }
    assert found.truth == pytest.approx(wanted[type(question.metric)](), rel=1e-9)
    assert list(found.errors) == ["published", "one-sided", "default"]
    assert [len(errors) for errors in found.errors.values()] == [3, 3, 3]
    # With several owners a price is paid for a person: some rows, a few in a hundred of the total.
    limit = 1 if len(question.person.split()) == 1 else 0.05 * found.truth + 2
    assert found.errors["default"].max() <= limit and found.seconds >= 0
