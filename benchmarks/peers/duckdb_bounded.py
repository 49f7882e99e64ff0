"""DuckDB: keep 3 random partitions of every person, then sum and count per partition; no privacy.

    python -m benchmarks.peers.duckdb_bounded --input rows.parquet --output sums.csv

With --all no row is left out. What does not fit into memory goes to a folder beside the output.
"""

import csv
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import peers

duckdb = peers.imported("duckdb")

GROUPS = """
    SELECT person, partition, sum(value) AS sum, count(*) AS count, random() AS place
    FROM read_parquet(?) GROUP BY person, partition
"""
KEPT = """
    SELECT * FROM groups QUALIFY row_number() OVER (PARTITION BY person ORDER BY place) <= ?
"""
TOTALS = "SELECT partition, sum(sum)::DOUBLE, sum(count)::BIGINT FROM kept GROUP BY partition"

ALL = """
    SELECT partition, sum(value) AS sum, count(*) AS count FROM read_parquet(?) GROUP BY partition
"""


def totals(path: str, limit: int, folder: Path) -> list[tuple[object, float, int]]:
    """Return each partition with its sum and its count."""
    query = f"WITH groups AS ({GROUPS}), kept AS ({KEPT}) {TOTALS}"
    with duckdb.connect(config={"temp_directory": str(folder / "spilled")}) as connection:
        return connection.execute(query, [path, limit]).fetchall()


def written(path: str, output: str) -> None:
    """Write the sums and counts of all rows."""
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({ALL}) TO '{output}' (HEADER)", [path])


def main(words: Sequence[str] | None = None) -> None:
    """Run on one file, write the table, print how many rows and partitions it holds."""
    started = time.perf_counter()
    parser = peers.options(__doc__)
    parser.add_argument("--all", action="store_true", help="no bound: the totals of all rows")
    arguments = parser.parse_args(words)
    if arguments.all:
        written(arguments.input, arguments.output)
        sys.stdout.write(peers.report(arguments.output, started, header=True))
        return
    output = Path(arguments.output)
    rows = totals(arguments.input, arguments.max_partitions, output.parent)
    with output.open("w", newline="") as file:
        csv.writer(file).writerows([("partition", "sum", "count"), *rows])
    sys.stdout.write(peers.line_of(len(rows), sum(row[2] for row in rows), started))


if __name__ == "__main__":
    main()
