"""Measure tables that agree beside the same tables as they were drawn.

    python -m benchmarks agreement                         the table
    python -m benchmarks agreement --runs 5 --only rides   a look at one kind
    python -m benchmarks agreement --csv salaries.csv,playerID,yearID,salary

The kinds are those of `many_partitions`: their partitions, groups of ten of these, and all rows are
three tables of one run, with public partitions and epsilon 1; those with few are left out. An error is the sum of
|released - true| over the sum of the true numbers, the mean of the runs; a cell has that of tables
that agree over that of tables apart. Inside: how many of 100 intervals hold, where tables agree.
"""

import sys
import warnings
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric
from benchmarks import many_partitions, tables
from benchmarks.many_partitions import Kind

GROUP = 10
TABLES = ("partitions", "groups of ten", "all rows")


def measured(kind: Kind, metric: Metric, totals: str, runs: int) -> np.ndarray:
    """Return the error of each table, and the share of its intervals that hold: shape (2, 3)."""
    part = np.arange(kind.partitions)
    columns = {"person": kind.person, "group": kind.partition // GROUP, "part": kind.partition}
    rows = pa.table({**{n: c.astype(np.int64) for n, c in columns.items()}, "value": kind.value})
    added = kind.value if isinstance(metric, dp.Sum) else np.ones(len(kind.value))
    cells = np.bincount(kind.partition, added, kind.partitions)
    truths = cells, np.bincount(part // GROUP, cells), cells.sum(keepdims=True)
    keys = list(zip((part // GROUP).tolist(), part.tolist(), strict=True))
    found = []
    for _ in range(runs):
        first = dp.release(
            rows,
            person="person",
            partition=["group", "part"],
            metrics=[metric],
            budget=dp.Budget(1.0),
            partitions=dp.PublicPartitions(keys),
            also_by=["group", "total"],
            totals=totals,
        )
        errors = []
        triples = zip((first, *first.others), truths, ("part", "group", ""), strict=True)
        for released, truth, key in triples:
            table = released.table.to_pydict()
            order = np.argsort(table[key]) if key else [0]
            x, low, high = (
                np.array(table[metric.output + end], float)[order] for end in ("", "_low", "_high")
            )
            inside = (low <= truth) & (truth <= high)
            errors.append((np.nansum(np.abs(x - truth)) / np.abs(truth).sum(), inside.mean()))
        found.append(errors)
    return np.asarray(np.array(found).mean(axis=0).T)


def main(words: Sequence[str] | None = None) -> int:
    """Print the table."""
    options = tables.options(__doc__, words, runs=100, only="", csv=str)
    tables.say(tables.heads(["kind", "number", *TABLES, f"inside: {', '.join(TABLES)}"]))
    for kind in [many_partitions.from_csv(options.csv)] if options.csv else many_partitions.kinds():
        if options.only not in kind.name or kind.partitions <= GROUP:
            continue
        metrics: list[Metric] = [dp.Count()]
        metrics += [] if (kind.value == 1).all() else [dp.Sum("value")]
        for metric in metrics:
            with warnings.catch_warnings(action="ignore"):
                apart, agreed = (
                    measured(kind, metric, totals, options.runs) for totals in ("apart", "agree")
                )
            ratios = [f"{ratio:.2f}" for ratio in agreed[0] / apart[0]]
            inside = ", ".join(f"{100 * share:.0f}" for share in agreed[1])
            tables.say(tables.line([kind.name, metric.output, *ratios, inside]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
