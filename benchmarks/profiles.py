"""Answer one case of `benchmarks.cases` in one way, as a process of its own.

    python -m benchmarks.profiles "edges of a Zipf graph" --way profile

It prints B[0], the last B[K] and, where it is no release, how long the work took without imports.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow.parquet as pq

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.profiles import coverage, frequency, kth_largest
from beam_dp.mechanisms.profiles.packed import by_price
from beam_dp.mechanisms.profiles.packed.packings import PackedRows
from beam_dp.mechanisms.search.ranks.node import Node, increments
from benchmarks import cases, relations
from benchmarks.cases import Case

Columns = dict[str, np.ndarray]
EPSILON = 1.0


def metrics_of(case: Case) -> list[Metric]:
    """Return the metrics that a case names."""
    return [getattr(dp, kind)(**options) for kind, options in case.metrics]


def read(case: Case) -> Columns:
    """Return the columns of a case."""
    table = pq.read_table(relations.path(case.file), columns=list(case.columns))
    return {name: table[name].to_numpy() for name in table.column_names}


def profile(case: Case) -> list[float]:
    """Return B[0..K] by `RemovalLoss`, from Parquet."""
    [metric] = metrics_of(case)
    person = case.person[0] if len(case.person) == 1 else list(case.person)
    loss = dp.RemovalLoss(metric, person, removals=case.removals)
    return _run(case, loss, "profile")


def release(case: Case) -> list[float]:
    """Return what `PrivateAggregate` releases at epsilon 1, from Parquet."""
    person = case.person[0] if len(case.person) == 1 else list(case.person)
    asked = metrics_of(case)
    aggregate = dp.PrivateAggregate(person, asked, dp.Budget(EPSILON))
    return _run(case, aggregate, *(metric.output for metric in asked))


def _run(case: Case, transform: beam.PTransform, *names: str) -> list[float]:
    """Run one pipeline over the rows of a case; return the fields of its one row, flattened."""
    path, columns = str(relations.path(case.file)), list(case.columns)
    numbers = [name for name in columns if name in ("price", "quantity")]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "row.json"
        with beam.Pipeline(runner="FnApiRunner") as pipeline:
            rows = pipeline | "Read" >> dp.ReadRows(path, columns=columns, numbers=numbers)
            found = rows | "Answer" >> transform
            found | "Write" >> beam.Map(_write, str(output), names)
        return [float(number) for number in json.loads(output.read_text())]


def _write(row: beam.Row, output: str, names: Sequence[str]) -> None:
    found = [getattr(row, name) for name in names]
    numbers = found[0] if isinstance(found[0], list) else found
    Path(output).write_text(json.dumps([float(number) for number in numbers]))


def codes(column: np.ndarray) -> np.ndarray:
    """Return the values of a column as numbers from 0 on."""
    return np.unique(column, return_inverse=True)[1]


def _of_sums(case: Case, columns: Columns) -> list[float]:
    """Return the profile of a count or a sum of one owner: the total without the largest."""
    [(kind, options)] = case.metrics
    values = columns[str(options["column"])] if kind == "Sum" else None
    sums = np.bincount(codes(columns[case.person[0]]), values)
    largest = -np.sort(-np.partition(sums, -case.removals)[-case.removals :])
    return [float(sums.sum() - cut) for cut in np.append(0, largest.cumsum())]


def _of_edges(case: Case, columns: Columns) -> list[float]:
    [(kind, options)] = case.metrics
    weights = columns[str(options["column"])] if kind == "Sum" else None
    owners = codes(np.stack([columns[name] for name in case.person]))
    packed = PackedRows(owners.reshape(len(case.person), -1), None, weights)
    return [float(value) for value in by_price.profile(packed, case.removals)]


def _sums(case: Case, columns: Columns) -> list[float]:
    return (_of_sums if len(case.person) == 1 else _of_edges)(case, columns)


def _kth(case: Case, columns: Columns) -> list[float]:
    [(_, options)] = case.metrics
    values, places = np.unique(columns["price"], return_inverse=True)
    ones, people = np.ones(len(places), np.int64), codes(columns[case.person[0]])
    found = kth_largest.profile(people, places, ones, int(str(options["k"])), case.removals)
    return [float(values[place]) for place in found]


def _median(case: Case, columns: Columns) -> list[float]:
    """Return the increments of the ranks of all different values."""
    values, places = np.unique(columns["price"], return_inverse=True)
    ones, people = np.ones(len(places), np.int64), codes(columns[case.person[0]])
    Node.of(*increments(people, places, ones), len(values))
    return [float(values[0]), float(values[-1])]


def _distinct(case: Case, columns: Columns) -> list[float]:
    people, items = (columns[name] for name in case.columns)
    return [float(value) for value in coverage.profile(people, items, case.removals)]


def _frequency(case: Case, columns: Columns) -> list[float]:
    [(kind, _)] = case.metrics
    people, items = (codes(columns[name]) for name in case.columns)
    counts = np.ones(len(people), np.int64)
    function = frequency.max_profile if kind == "MaxFrequency" else frequency.squares_profile
    return [float(value) for value in function(people, items, counts, case.removals)]


PURE: dict[str, Callable[[Case, Columns], list[float]]] = {
    "Count": _sums,
    "Sum": _sums,
    "KthLargest": _kth,
    "Median": _median,
    "DistinctCount": _distinct,
    "MaxFrequency": _frequency,
    "SumOfSquares": _frequency,
}


def pure(case: Case) -> list[float]:
    """Return B[0..K] by the function of the mechanisms, on whole columns."""
    return PURE[case.metrics[0][0]](case, read(case))


ANSWERS: dict[str, Callable[[Case], list[float]]] = {
    "release": release,
    "profile": profile,
    "pure": pure,
}


def main(words: Sequence[str] | None = None) -> None:
    """Answer one case and print its ends as a JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", choices=list(cases.NAMED))
    parser.add_argument("--way", choices=cases.WAYS, required=True)
    arguments = parser.parse_args(words)
    begin = time.perf_counter()
    found = ANSWERS[arguments.way](cases.NAMED[arguments.case])
    inner = round(time.perf_counter() - begin, 2)
    sys.stdout.write(f"{json.dumps({'first': found[0], 'last': found[-1], 'inner': inner})}\n")


if __name__ == "__main__":
    main()
