"""The demonstration: TPC-H orders, released per nation of the customer, who is the person.

`beam-dp demo` generates the data (scale 1, the same on every machine: 1,500,000 orders
of 4,000 customers per nation), joins each order to its customer's nation and runs the job of
`pipelines.aggregate` on it, which also writes a page of charts. Needs the extra `demo`.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines import aggregate, command_line, terminal

BUILD = Path("build")
GENERATOR = Path(sys.executable).with_name("tpchgen-cli")
SCALE = "1"
WIDE = 100
"""How many columns the lines have where the output is no terminal."""
TABLES = BUILD / "tpch"
ORDERS = TABLES / "orders_by_nation.parquet"


def generate() -> None:
    """Write the tables orders, customer and nation of TPC-H as Parquet."""
    tables = ["--tables=orders,customer,nation", f"--output-dir={TABLES}"]
    subprocess.run([GENERATOR, "parquet", "-s", SCALE, *tables], check=True)


def nations() -> list[str]:
    """Return the names of the 25 nations, by their keys: public, from TPC-H's specification."""
    names: list[str] = pq.read_table(TABLES / "nation.parquet")["n_name"].to_pylist()
    return names


def join() -> None:
    """Write one row per order: the customer, the price, and the customer's nation."""
    orders = pq.read_table(TABLES / "orders.parquet", columns=["o_custkey", "o_totalprice"])
    customers = pq.read_table(TABLES / "customer.parquet", columns=["c_nationkey"])
    # The keys of customers and nations count their rows, from 1 and from 0.
    customer = pc.subtract(orders["o_custkey"], 1)
    nation = pa.array(nations()).take(customers["c_nationkey"].take(customer).combine_chunks())
    pq.write_table(orders.append_column("nation", nation), ORDERS)


def words(keys: Sequence[str]) -> list[str]:
    """Return the command line of the job.

    A mean beside its sum and count costs nothing; the number of people tells a reader how few of
    them may be above a largest price.
    """
    files = ["--input", str(ORDERS), "--output", str(BUILD / "released.csv"), "--overwrite"]
    files += ["--report", str(BUILD / "released.html")]
    rows = ["--person", "o_custkey", "--partition", "nation"]
    metrics = ["--people_count", "--count", "--sum", "o_totalprice", "--mean", "o_totalprice"]
    metrics += ["--max", "o_totalprice", "--median", "o_totalprice"]
    metrics += ["--histogram", "o_totalprice,edges=0,100000,150000,200000,inf"]
    privacy = ["--epsilon", "1", "--bounds", "partitions=1"]
    public = ["--public_partitions", ",".join(keys)]
    return [*files, *rows, *metrics, *privacy, *public]


def main(given: Sequence[str] | None = None) -> int:
    """Generate, join, release; returns the exit code."""
    line = command_line.alone("demo", __doc__)
    line.parse_args(given)
    if not GENERATOR.exists():
        line.error("the extra demo must be installed: pip install 'beam_dp[demo]'")
    generate()
    join()
    os.environ["COLUMNS"] = os.environ.get("COLUMNS") or str(terminal.width() or WIDE)
    # The data is made up: an error has nothing to hide.
    return aggregate.main([*words(nations()), "--show_errors"])


if __name__ == "__main__":
    sys.exit(main())
