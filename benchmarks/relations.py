"""Rows about who owns what: TPC-H at scale 1 in one wide file, parts of it, and kinds of graphs.

    python -m benchmarks.relations items      print the path (made unless it is there) and the rows

* `items`: one row per line item: its order, customer, supplier, part, clerk, price and quantity. No
  customer, supplier and clerk have the same number.
* `shipped`: the 1.8 million of them that were shipped in 1995 and 1996, with the day, the discount in
  percent and the discounted price in hundredths of a cent; money is in cents.
* `orders_N`, `items_N`: N rows of it, spread evenly: (customer, clerk) of N orders, and (customer,
  part) of the items of N of them.
* `zipf_EDGES_PEOPLE`: a graph in which person i has edges in proportion to (i + 10)^-0.7.
* `road_EDGES_PEOPLE`: a strip of squares, everybody with two to four neighbours, as roads have.
* `shared_VALUES_PEOPLE`: values shared by two people; 200,000 of them in a second row.
* `alike_VALUES_PEOPLE`: values with ten rows each, of three people who are all alike.
* `triangles_TRIANGLES_PEOPLE`: triangles (a, b, c) of a graph of groups in which all know each other.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks import tpch

Columns = dict[str, np.ndarray]
SUPPLIERS, CLERKS = 1 << 20, 1 << 21
"""What is added to the number of a supplier and of a clerk, so that no customer has it."""
_SEED = 20_230_517


def path(name: str) -> Path:
    """Return the Parquet file of that name, made unless it is there."""
    file = tpch.FOLDER / f"{name}.parquet"
    if not file.exists():
        kind, *sizes = name.split("_")
        table = pa.table(MAKERS[kind](*map(int, sizes)))
        tpch.FOLDER.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, file, row_group_size=1 << 17, compression="zstd")
    return file


def items() -> Columns:
    """Return one row per line item; money is in dollars, as floats."""
    names = ["l_orderkey", "l_suppkey", "l_partkey", "l_extendedprice", "l_quantity"]
    rows = tpch.table("lineitem", names)
    order = rows["l_orderkey"].to_numpy()
    place, customer, clerk = _orders()
    at = place(order)
    return {
        "order": order,
        "customer": customer[at],
        "supplier": rows["l_suppkey"].to_numpy() + SUPPLIERS,
        "part": rows["l_partkey"].to_numpy(),
        "clerk": clerk[at] + CLERKS,
        "price": rows["l_extendedprice"].cast(pa.float64()).to_numpy(),
        "quantity": rows["l_quantity"].cast(pa.float64()).to_numpy().astype(np.int64),
    }


def shipped() -> Columns:
    """Return the line items of two years."""
    names = ["l_orderkey", "l_suppkey", "l_partkey", "l_extendedprice", "l_quantity", "l_discount"]
    rows = tpch.table("lineitem", [*names, "l_shipdate"])
    year = pc.year(rows["l_shipdate"])
    rows = rows.filter(pc.or_(pc.equal(year, 1995), pc.equal(year, 1996)))
    place, customer, clerk = _orders()
    at = place(rows["l_orderkey"].to_numpy())
    price, quantity, discount = (
        np.rint(rows[name].cast(pa.float64()).to_numpy() * factor).astype(np.int64)
        for name, factor in zip(names[3:], (100, 1, 100), strict=True)
    )
    return {
        "customer": customer[at],
        "supplier": rows["l_suppkey"].to_numpy() + SUPPLIERS,
        "clerk": clerk[at] + CLERKS,
        "part": rows["l_partkey"].to_numpy(),
        "price": price,
        "quantity": quantity,
        "discount": discount,
        "discounted": price * (100 - discount),
        "ship": rows["l_shipdate"].cast(pa.int32()).to_numpy().astype(np.int64),
    }


def _orders() -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray, np.ndarray]:
    """Return how to find the place of an order, and the customer and the clerk of each place."""
    rows = tpch.table("orders", ["o_orderkey", "o_custkey", "o_clerk"])
    keys, customer = rows["o_orderkey"].to_numpy(), rows["o_custkey"].to_numpy()
    _, clerk = np.unique(rows["o_clerk"].to_numpy(), return_inverse=True)
    order = np.argsort(keys)
    keys, customer, clerk = keys[order], customer[order], clerk[order]
    return lambda wanted: np.searchsorted(keys, wanted), customer, clerk


def some_orders(size: int) -> Columns:
    """Return the customer and the clerk of `size` orders, spread evenly."""
    _, customer, clerk = _orders()
    at = np.linspace(0, len(customer) - 1, size).astype(np.int64)
    return {"customer": customer[at], "clerk": clerk[at]}


def some_items(size: int) -> Columns:
    """Return the customer and the part of `size` line items, spread evenly."""
    rows = pq.read_table(path("items"), columns=["customer", "part"])
    at = np.linspace(0, len(rows) - 1, size).astype(np.int64)
    return {name: rows[name].to_numpy()[at] for name in rows.column_names}


def zipf(edges: int, people: int) -> Columns:
    """Return a graph with few people of many edges and many of few."""
    generator = np.random.default_rng(_SEED)
    shares = np.cumsum((np.arange(people) + 10.0) ** -0.7)
    ends = np.searchsorted(shares, generator.random((2, edges)) * shares[-1])
    return {"from": ends[0], "to": ends[1]}


def road(edges: int, people: int) -> Columns:
    """Return a strip of squares from which edges are left out at random until `edges` are left."""
    generator = np.random.default_rng(_SEED)
    width = 1000
    here = np.arange(people)
    across = here[(here % width < width - 1) & (here + 1 < people)]
    along = here[here + width < people]
    pairs = np.concatenate([[across, across + 1], [along, along + width]], axis=1)
    kept = generator.permutation(pairs.shape[1])[:edges]
    return {"from": pairs[0, kept], "to": pairs[1, kept]}


def shared(values: int, people: int) -> Columns:
    """Return rows of two people each, of so many values."""
    generator = np.random.default_rng(_SEED)
    items = np.append(np.arange(values), generator.integers(0, values, 200_000))
    owners = generator.integers(0, people, (2, len(items)))
    return {"a": owners[0], "b": owners[1], "item": items}


def alike(values: int, people: int) -> Columns:
    """Return ten rows of three people for each of so many values."""
    owners = np.random.default_rng(_SEED).integers(0, people, (3, values * 10))
    return dict(zip("abc", owners, strict=True)) | {"item": np.repeat(np.arange(values), 10)}


def triangles(count: int, people: int) -> Columns:
    """Return `count` triangles of a graph in which groups of 3 to 12 people all know each other.

    The first people are in many groups, most are in one or none.
    """
    generator = np.random.default_rng(_SEED)
    shares = np.arange(3, 13) ** -3.0
    sizes = generator.choice(np.arange(3, 13), count, p=shares / shares.sum())
    sizes = sizes[np.cumsum(sizes * (sizes - 1) * (sizes - 2) // 6) <= 1.02 * count]
    pairs = [np.empty((2, 0), np.int64)]
    for size in range(3, 13):
        members = (people * generator.random((int((sizes == size).sum()), size)) ** 1.5).astype(int)
        left, right = np.triu_indices(size, 1)
        pairs.append(np.stack([members[:, left].ravel(), members[:, right].ravel()]))
    found = _triangles(np.concatenate(pairs, axis=1), people)
    kept = generator.permutation(found.shape[1])[:count]
    return dict(zip("abc", found[:, kept], strict=True))


def _triangles(pairs: np.ndarray, people: int) -> np.ndarray:
    """Return all triangles of a graph, each once, as three rows of people."""
    pairs = pairs[:, pairs[0] != pairs[1]]
    degrees = np.bincount(pairs.ravel(), minlength=people)
    ranks = np.empty(people, np.int64)
    ranks[np.argsort(degrees, kind="stable")] = np.arange(people)
    low, high = np.sort(ranks[pairs], axis=0)  # so nobody has many neighbours above
    edges = np.unique(low * people + high)
    low, high = np.divmod(edges, people)
    last = np.searchsorted(low, low, "right")
    after = last - np.arange(len(low)) - 1  # the later edges of the same lower end
    first = np.repeat(np.arange(len(low)), after)
    second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(after) - after, after)
    closing = high[first] * people + high[second]
    place = np.minimum(np.searchsorted(edges, closing), len(edges) - 1)
    closed = edges[place] == closing
    names = np.argsort(ranks)
    return names[np.stack([low[first], high[first], high[second]])[:, closed]]


MAKERS: dict[str, Callable[..., Columns]] = {
    "items": lambda size=0: some_items(size) if size else items(),
    "orders": some_orders,
    "shipped": shipped,
    "shared": shared,
    "alike": alike,
    "zipf": zipf,
    "road": road,
    "triangles": triangles,
}


def main(words: Sequence[str] | None = None) -> None:
    """Print the path of one file and its number of rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    file = path(parser.parse_args(words).name)
    sys.stdout.write(f"{file} {pq.read_metadata(file).num_rows}\n")


if __name__ == "__main__":
    main()
