"""The table of errors, on a TPC-H of 40 orders: the right truth, and errors from the job's code."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import beam_dp as dp
from benchmarks import accuracy, tpch

ORDERS = range(1, 41)
CUSTOMER = {order: 1 + order % 7 for order in ORDERS}
ITEMS = [
    (order, Decimal(order * item % 50)) for order in ORDERS for item in range(1, 1 + order % 5)
]
QUESTIONS = [tpch.COUNT, tpch.SUM]


ENOUGH = 1000.0
"""An epsilon for so few people: with less a sum may be NaN, as no clip can be chosen."""


@pytest.fixture(autouse=True)
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the tables where those of tpchgen-cli are looked for."""
    monkeypatch.setattr(tpch, "FOLDER", tmp_path)
    order, quantity = zip(*ITEMS, strict=True)
    tables = {
        "lineitem": {"l_orderkey": order, "l_quantity": pa.array(quantity, pa.decimal128(15, 2))},
        "orders": {"o_orderkey": ORDERS, "o_custkey": [CUSTOMER[order] for order in ORDERS]},
        "customer": {"c_custkey": sorted(set(CUSTOMER.values()))},
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")


def own(question: tpch.Question) -> list[int]:
    """Return each person's own number by brute force, largest first."""
    sums: dict[int, int] = {}
    for order, quantity in ITEMS:
        person = order if question is tpch.COUNT else CUSTOMER[order]
        sums[person] = sums.get(person, 0) + (1 if question is tpch.COUNT else int(quantity))
    return sorted(sums.values(), reverse=True)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_the_truth_is_that_of_brute_force(question: tpch.Question) -> None:
    assert question.contributions.tolist() == own(question)
    assert accuracy.truth(question) == sum(own(question))
    rows = pq.read_table(question.rows)
    assert rows.column_names == accuracy.COLUMNS and len(rows) == len(ITEMS)
    assert set(rows["partition"].to_pylist()) == {0}
    assert sum(rows["value"].to_pylist()) == sum(own(question))


@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_without_noise_there_is_no_error(
    question: tpch.Question, one_sided: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At epsilon 10^6 the releases, and whole jobs, are the truth: units and people are right."""
    monkeypatch.setattr(accuracy, "EPSILON", 1e6)
    errors = [
        *accuracy.release_errors(question, 20, one_sided),
        *accuracy.job_errors(question, 1, one_sided),
    ]
    # The noise is of scale below 2^11 / (10^6 / 8) < 0.02 in the statistic, 0.5 is e^-25 and more;
    # nobody is above the clip chosen. One-sided: a person is passed over, and the grid is coarse.
    limit = own(question)[0] + 0.01 * sum(own(question)) if one_sided else 0.5
    assert len(errors) == 21 and max(errors) <= limit


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_the_program_is_that_of_the_job(
    question: tpch.Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accuracy, "EPSILON", ENOUGH)
    aggregate = accuracy.transform(question, False)
    program = accuracy.program_of(aggregate)
    assert program.metrics == tuple(aggregate.metrics) and program.reach == 1
    assert program.question.budget == dp.Budget(accuracy.EPSILON)
    assert np.isfinite(accuracy.release_errors(question, 3, False)).all()


def test_the_middle_leaves_out_the_lowest_and_the_highest_fifth() -> None:
    assert accuracy.middle(np.array([1e9, 1.0, 2.0, 3.0, -1e9])) == 2.0
    assert accuracy.middle(np.array([5.0])) == 5.0


def test_the_table_has_a_line_for_each_release(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accuracy, "EPSILON", ENOUGH)
    accuracy.main(["--runs", "5", "--jobs", "1"])
    lines = capsys.readouterr().out.splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [line[:4] for line in cells[2:]] == [
        [question.name, release, kind, runs]
        for question in QUESTIONS
        for release in ("two-phase", "one-sided")
        for kind, runs in (("release", "5"), ("whole job", "1"))
    ]
    numbers = [float(cell.replace(",", "")) for line in cells[2:] for cell in line[4:]]
    assert np.isfinite(numbers).all() and min(numbers) >= 0
