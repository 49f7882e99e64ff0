"""The demonstration: TPC-H orders, a person is a customer, released per nation of the customer.

`python -m pipelines.demo` generates the data (scale 0.1, the same on every machine), joins
each order to its customer's nation and runs the job of `pipelines.aggregate` on it. Needs
the extra `demo` (tpchgen-cli).
"""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

BUILD = Path("build")
SCALE = "0.1"
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
    """Write one row per order: the customer, the price, the day and the customer's nation."""
    orders = _table("orders", "o_custkey", "o_totalprice", "o_orderdate")
    customers = _table("customer", "c_custkey", "c_nationkey")
    named = _table("nation", "n_nationkey", "n_name").rename_columns(["n_nationkey", "nation"])
    of_customers = customers.join(named, "c_nationkey", "n_nationkey")
    joined = orders.join(of_customers, "o_custkey", "c_custkey")
    columns = ["o_custkey", "o_totalprice", "o_orderdate", "nation"]
    pq.write_table(joined.select(columns), ORDERS)


def _table(name: str, *columns: str) -> pa.Table:
    # Plain text columns: a join does not take views.
    table = pq.read_table(TABLES / f"{name}.parquet", columns=list(columns))
    plain = [
        pa.field(field.name, pa.string() if pa.types.is_string_view(field.type) else field.type)
        for field in table.schema
    ]
    return table.cast(pa.schema(plain))


def release() -> int:
    """Run the job on the joined table; returns its exit code."""
    job: list[str | Path] = [sys.executable, "-m", "pipelines.aggregate", "--input", ORDERS]
    output: list[str | Path] = ["--output", BUILD / "released.csv", "--overwrite"]
    rows = ["--person", "o_custkey", "--partition", "nation"]
    metrics = ["--sum", "o_totalprice", "--count", "--max", "o_totalprice"]
    metrics += ["--median", "o_totalprice", "--distinct", "o_orderdate"]
    privacy = ["--epsilon", "1", "--max_partitions", "1"]
    public = ["--public_partitions", ",".join(nations())]
    arguments = [*output, *rows, *metrics, *privacy, *public]
    return subprocess.run([*job, *arguments], check=False).returncode


def main() -> int:
    """Generate, join, release."""
    generate()
    join()
    return release()


if __name__ == "__main__":
    sys.exit(main())
