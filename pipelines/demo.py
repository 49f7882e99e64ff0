"""The demonstration: TPC-H orders, released per nation of the customer, who is the person.

`python -m pipelines.demo` generates the data (scale 1, the same on every machine: 1,500,000 orders
of 4,000 customers per nation), joins each order to its customer's nation and runs the job of
`pipelines.aggregate` on it, which also writes a page of charts. Needs the extra `demo`.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines import aggregate, command_line

BUILD = Path("build")
SCALE = "1"
TABLES = BUILD / "tpch"
ORDERS = TABLES / "orders_by_nation.parquet"


def generate() -> None:
    """Write the tables orders, customer and nation of TPC-H as Parquet."""
    generator = Path(sys.executable).with_name("tpchgen-cli")
    tables = ["--tables=orders,customer,nation", f"--output-dir={TABLES}"]
    subprocess.run([generator, "parquet", "-s", SCALE, *tables], check=True)


def nations() -> list[str]:
    """Return the names of the 25 nations: public, from TPC-H's specification."""
    return sorted(pq.read_table(TABLES / "nation.parquet")["n_name"].to_pylist())


def join() -> None:
    """Write one row per order: the customer, the price, and the customer's nation."""
    orders = _table("orders", "o_custkey", "o_totalprice")
    customers = _table("customer", "c_custkey", "c_nationkey")
    named = _table("nation", "n_nationkey", "n_name").rename_columns(["n_nationkey", "nation"])
    of_customers = customers.join(named, "c_nationkey", "n_nationkey")
    joined = orders.join(of_customers, "o_custkey", "c_custkey")
    pq.write_table(joined.select(["o_custkey", "o_totalprice", "nation"]), ORDERS)


def _table(name: str, *columns: str) -> pa.Table:
    # Plain text columns: Arrow cannot join views.
    table = pq.read_table(TABLES / f"{name}.parquet", columns=list(columns))
    plain = [
        pa.field(field.name, pa.string() if pa.types.is_string_view(field.type) else field.type)
        for field in table.schema
    ]
    return table.cast(pa.schema(plain))


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


def release() -> int:
    """Run the job on the joined table; returns its exit code."""
    # The data is made up: an error has nothing to hide.
    return aggregate.main([*words(nations()), "--show_errors"])


def main(given: Sequence[str] | None = None) -> int:
    """Generate, join, release; returns the exit code."""
    command_line.alone("demo", __doc__).parse_args(given)
    generate()
    join()
    return release()


if __name__ == "__main__":
    sys.exit(main())
