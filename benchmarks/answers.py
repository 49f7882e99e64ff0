"""Answer one case of `benchmarks.statistics`, as a process of its own.

    python -m benchmarks.answers "edges of a Zipf graph"

It prints B[0] and the last B[K], or what is released first and last.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import apache_beam as beam

import beam_dp as dp
from benchmarks import relations, statistics
from benchmarks.statistics import Case


def answer(case: Case) -> list[float]:
    """Return B[0..K], or what is released at epsilon 1, from Parquet by one pipeline."""
    metrics = [getattr(dp, kind)(**options) for kind, options in case.metrics]
    person = case.person[0] if len(case.person) == 1 else list(case.person)
    transform: beam.PTransform = dp.PrivateAggregate(person, metrics, dp.Budget(1.0))
    names = [metric.output for metric in metrics]
    if case.removals:
        transform = dp.RemovalLoss(metrics[0], person, removals=case.removals)
        names = ["profile"]
    numbers = [name for name in case.columns if name in ("price", "quantity")]
    path = str(relations.path(case.file))
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "row.json"
        with beam.Pipeline(runner="FnApiRunner") as pipeline:
            rows = pipeline | "Read" >> dp.ReadRows(path, columns=case.columns, numbers=numbers)
            found = rows | "Answer" >> transform
            _ = found | "Write" >> beam.Map(_write, str(output), names)
        return json.loads(output.read_text())


def _write(row: beam.Row, output: str, names: Sequence[str]) -> None:
    found = [getattr(row, name) for name in names]
    numbers = found[0] if isinstance(found[0], list) else found
    Path(output).write_text(json.dumps([float(number) for number in numbers]))


if __name__ == "__main__":
    answered = answer(statistics.NAMED[sys.argv[1]])
    sys.stdout.write(json.dumps({"first": answered[0], "last": answered[-1]}) + "\n")
