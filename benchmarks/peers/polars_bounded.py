"""Polars: keep 3 random partitions of every person, then sum and count per partition; no privacy.

    python -m benchmarks.peers.polars_bounded --input rows.parquet --output sums.csv

Four ways to keep a uniform sample of each person's (person, partition) groups, all correct. Which
one is the fastest depends on the data: the benchmark runs all and compares with the fastest.
"""

import sys
import time
from collections.abc import Sequence

from benchmarks import peers

pl = peers.imported("polars")


def grouped(path: str) -> pl.LazyFrame:
    """Sum and count the rows of every person in every partition."""
    sums = [pl.col("value").sum().alias("sum"), pl.len().alias("count")]
    return pl.scan_parquet(path).group_by("person", "partition").agg(sums)


def aggregate(groups: pl.LazyFrame, limit: int) -> pl.LazyFrame:
    """Shuffle, then keep the first groups of each person by an aggregation."""
    kept = pl.col("partition", "sum", "count")
    return shuffled(groups).group_by("person").agg(kept.head(limit)).explode(kept)


def window(groups: pl.LazyFrame, limit: int) -> pl.LazyFrame:
    """Shuffle, then keep the first groups of each person by a running number over the person."""
    return shuffled(groups).filter(pl.int_range(pl.len()).over("person") < limit)


def threshold(groups: pl.LazyFrame, limit: int) -> pl.LazyFrame:
    """Number the groups at random and keep those up to the person's `limit`-th lowest number."""
    numbered = groups.with_columns(priority=pl.int_range(pl.len()).shuffle())
    last = pl.col("priority").bottom_k(limit).max().over("person")
    return numbered.filter(pl.col("priority") <= last)


def rank(groups: pl.LazyFrame, limit: int) -> pl.LazyFrame:
    """Keep the groups of each person with the lowest ranks, by a hash of both; all in memory."""
    place = pl.struct("person", "partition").hash(5).rank("ordinal")
    return groups.filter(place.over("person") <= limit)


def shuffled(groups: pl.LazyFrame) -> pl.LazyFrame:
    """Put the groups in random order (Polars shuffles only frames that are in memory)."""
    return groups.collect(engine="streaming").sample(fraction=1, shuffle=True).lazy()


WAYS = {"aggregate": aggregate, "window": window, "threshold": threshold, "rank": rank}


def main(words: Sequence[str] | None = None) -> None:
    """Run one way on one file, write the table, print how many rows and partitions it holds."""
    started = time.perf_counter()
    parser = peers.options(__doc__)
    parser.add_argument("--way", choices=list(WAYS), default="aggregate")
    arguments = parser.parse_args(words)
    bounded = WAYS[arguments.way](grouped(arguments.input), arguments.max_partitions)
    totals = bounded.group_by("partition").agg(pl.col("sum").sum(), pl.col("count").sum())
    table = totals.collect(engine="in-memory" if arguments.way == "rank" else "streaming")
    table.write_csv(arguments.output)
    sys.stdout.write(peers.line_of(table.height, table["count"].sum(), started))


if __name__ == "__main__":
    main()
