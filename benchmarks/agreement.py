"""Measure tables that agree beside the same tables as they were drawn.

    python -m benchmarks agreement                         the table
    python -m benchmarks agreement --runs 5 --only rides   a look at one kind
    python -m benchmarks agreement --csv salaries.csv,playerID,yearID,salary

The kinds are those of `many_partitions`: their partitions, groups of ten of these, and all rows are
three tables of one run, with public partitions and epsilon 1; those with few are left out. An error
is the sum of |released - true| over the sum of the true numbers, the mean of the runs; a cell has
that of tables that agree over that of what was drawn. Inside: how many of 100 intervals hold, where
tables agree.
"""

import sys
import warnings
from collections.abc import Sequence
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa

import beam_dp as dp
from beam_dp.mechanisms.consistency import several_metrics
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.metrics.released import Released
from benchmarks import kinds, tables
from benchmarks.kinds import Kind

GROUP = 10
TABLES = ("all rows", "groups of ten", "partitions")


def measured(kind: Kind, metric: Metric, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return, per table, the errors agreed and as drawn, and the share of intervals that hold."""
    part = np.arange(kind.partitions)
    columns = {"person": kind.person, "group": kind.partition // GROUP, "part": kind.partition}
    rows = pa.table({**{n: c.astype(np.int64) for n, c in columns.items()}, "value": kind.value})
    added = kind.value if isinstance(metric, dp.Sum) else np.ones(len(kind.value))
    cells = np.bincount(kind.partition, added, kind.partitions)
    truths = cells.sum(keepdims=True), np.bincount(part // GROUP, cells), cells
    keys = list(zip((part // GROUP).tolist(), part.tolist(), strict=True))
    errors: list[list[float]] = []
    inside: list[float] = []

    def agree(drawn: Sequence[Any], *how: Any) -> list[list[Released]]:
        found = real(drawn, *how)
        for table, [numbers], truth in zip(drawn, found, truths, strict=True):
            parts = table.program.parts(table.drawn, table.sums)
            apart = metric.combine([parts[each] for each in metric.parts()])
            pair = (np.abs(each.values.astype(float) - truth).sum() for each in (numbers, apart))
            errors.append([each / np.abs(truth).sum() for each in pair])
            inside.append(((numbers.low <= truth) & (truth <= numbers.high)).mean())
        return found

    real = several_metrics.agree
    with mock.patch.object(several_metrics, "agree", agree):
        for _ in range(runs):
            dp.release(
                rows,
                person="person",
                partition=["group", "part"],
                metrics=[metric],
                budget=dp.Budget(1.0),
                partitions=dp.PublicPartitions(keys),
                also_by=["group", "total"],
            )
    shape = runs, len(TABLES)
    return np.reshape(errors, (*shape, 2)).mean(axis=0), np.reshape(inside, shape).mean(axis=0)


def main(words: Sequence[str] | None = None) -> int:
    """Print the table."""
    options = tables.options(__doc__, words, runs=100, only="", csv=str)
    tables.say(tables.heads(["kind", "number", *TABLES, f"inside: {', '.join(TABLES)}"]))
    for kind in [kinds.from_csv(options.csv)] if options.csv else kinds.made():
        if options.only not in kind.name or kind.partitions <= GROUP:
            continue
        for metric in [dp.Count()] if (kind.value == 1).all() else [dp.Count(), dp.Sum("value")]:
            with warnings.catch_warnings(action="ignore"):
                errors, inside = measured(kind, metric, options.runs)
            ratios = [f"{agreed / drawn:.2f}" for agreed, drawn in errors]
            shares = ", ".join(f"{100 * share:.0f}" for share in inside)
            tables.say(tables.line([kind.name, metric.output, *ratios, shares]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
