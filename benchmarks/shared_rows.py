"""Time the profiles of rows of several people, and measure how far their releases are off.

    python -m benchmarks.shared_rows                    every question, a process of its own each
    python -m benchmarks.shared_rows --only quantity    one of them

The rows are the order lines of TPC-H at scale 1 that were shipped in 1995 and 1996, each of which
belongs to its customer, its supplier and, where three owners are asked for, the clerk of its order;
triangles of a graph of 300,000 people with hubs; and 700,000 values shared by 100,000 people. Of
each the line says how long the first release took, or the profile where it is released by that (on
whole columns), and the mean error, without the lowest and the highest fifth, of the release and of
the published mechanism on the removal profile, at epsilon 1, in parts of the statistic.
"""

from __future__ import annotations

import argparse
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import beam_dp as dp
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.profiles.from_summaries import MostFrequentItem, RowsOfSeveralOwners
from beam_dp.mechanisms.profiles.packed import by_price, kth_by_price
from beam_dp.mechanisms.profiles.packed.most_frequent import MostFrequent
from beam_dp.mechanisms.profiles.packed.packings import Packed, PackedRows
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.releases import two_phase
from beam_dp.mechanisms.releases.priced import Priced
from beam_dp.mechanisms.summaries.owner_lines import Relation
from benchmarks import relations, tpch
from benchmarks.published import Published

REMOVALS = 620
"""More than K of a release in two phases at epsilon 1."""
RUNS = 200
BETA = 0.05
_CANDIDATES = dp.Candidates.linear(0, 1 << 24, 1)
_COLUMNS = ["l_orderkey", "l_suppkey", "l_partkey", "l_extendedprice", "l_quantity", "l_discount"]
_SEED = 20_230_517

Columns = dict[str, np.ndarray]


def order_lines() -> Columns:
    """Return owners, numbered apart, and values of the order lines of two years."""
    table = tpch.table("lineitem", [*_COLUMNS, "l_shipdate"])
    year = pc.year(table["l_shipdate"])
    kept = pc.or_(pc.equal(year, 1995), pc.equal(year, 1996))
    rows = table.filter(kept)
    place, customer, clerk = relations._orders()
    at = place(rows["l_orderkey"].to_numpy())
    price, discount = (
        np.rint(rows[name].cast(pa.float64()).to_numpy() * 100).astype(np.int64)
        for name in ("l_extendedprice", "l_discount")
    )
    supplier = rows["l_suppkey"].to_numpy()
    first, second = int(customer.max()) + 1, int(supplier.max()) + 1
    return {
        "customer": customer[at],
        "supplier": first + supplier,
        "clerk": first + second + clerk[at],
        "part": rows["l_partkey"].to_numpy(),
        "price": price,
        "discounted": price * (100 - discount),
        "discount": discount,
        "quantity": np.rint(rows["l_quantity"].cast(pa.float64()).to_numpy()).astype(np.int64),
        "ship": rows["l_shipdate"].cast(pa.int32()).to_numpy().astype(np.int64),
    }


def triangles(people: int = 300_000, size: int = 760_000) -> np.ndarray:
    """Return triangles of a graph in which some people have many neighbours close to each other."""
    generator = np.random.default_rng(_SEED)
    shares = np.cumsum((np.arange(people) + 30.0) ** -0.55)
    hub = np.searchsorted(shares, generator.random(size) * shares[-1])
    near = [hub * 7919 + generator.zipf(1.6, size) % 60 + shift for shift in (0, 61)]
    found = np.unique(np.sort(np.stack([hub, *(one % people for one in near)]), axis=0), axis=1)
    return np.asarray(found[:, (found[0] != found[1]) & (found[1] != found[2])])


def shared_values(values: int = 700_000, people: int = 100_000) -> tuple[np.ndarray, np.ndarray]:
    """Return 900,000 rows of two people each, of so many values."""
    generator = np.random.default_rng(_SEED)
    items = np.append(np.arange(values), generator.integers(0, values, 200_000))
    return generator.integers(0, people, (2, len(items))), items


def _of_lines(owners: Sequence[str], ask: Callable[[np.ndarray, Columns], Any]) -> Any:
    columns = order_lines()
    return lambda: ask(np.stack([columns[name] for name in owners]), columns)


_TWO, _THREE = ("customer", "supplier"), ("customer", "supplier", "clerk")


def _frequent(owners: Sequence[str], item: str) -> Any:
    return _of_lines(
        owners,
        lambda people, rows: MostFrequent(people, rows[item], np.ones(people.shape[1], np.int64)),
    )


def _largest(owners: Sequence[str], k: int) -> Any:
    return _of_lines(
        owners,
        lambda people, rows: kth_by_price.profile(
            people, rows["price"], np.ones(people.shape[1], np.int64), k, REMOVALS, -math.inf
        ),
    )


def _distinct(owners: Sequence[str], item: str) -> Any:
    return _of_lines(owners, lambda people, rows: _different(people, rows[item]))


def _different(owners: np.ndarray, items: np.ndarray) -> list[int]:
    return by_price.profile(PackedRows(owners, items), REMOVALS)


def _distinct_values() -> Any:
    owners, items = shared_values()
    return lambda: _different(owners, items)


def _of_all_lines(items: str, ask: Callable[[np.ndarray, np.ndarray], Any]) -> Any:
    """Ask about a column of all order lines, of customer, supplier and clerk."""
    rows = pq.read_table(relations.path("items"), columns=[*_THREE, items])
    owners = np.stack([rows[name].to_numpy() for name in _THREE])
    return lambda: ask(owners, rows[items].to_numpy())


def _alike(values: int = 200_000, rows: int = 10, people: int = 10_000) -> Any:
    """Ask for values of so many rows of three people who are alike."""
    owners = np.random.default_rng(_SEED).integers(0, people, (3, values * rows))
    items = np.repeat(np.arange(values), rows)
    return lambda: _different(owners, items)


def _count(owners: Sequence[str]) -> Any:
    return _of_lines(owners, lambda people, _: PackedRows(people, None))


def _triangles() -> Any:
    owners = triangles()
    return lambda: PackedRows(owners, None)


def _rows_of(owners: np.ndarray, items: np.ndarray) -> Packed:
    return MostFrequent(owners, items, np.ones(len(items), np.int64))


QUESTIONS: dict[str, tuple[float, Callable[[], Any]]] = {
    "largest price": (10, lambda: _largest(_TWO, 1)),
    "largest price, three owners": (300, lambda: _largest(_THREE, 1)),
    "100th largest price": (300, lambda: _largest(_TWO, 100)),
    "100th largest price, three owners": (300, lambda: _largest(_THREE, 100)),
    "count": (300, lambda: _count(_TWO)),
    "count, three owners": (300, lambda: _count(_THREE)),
    "count of 6 million, three owners": (
        300,
        lambda: _of_all_lines("part", lambda owners, _: PackedRows(owners, None)),
    ),
    "sum of prices, three owners": (
        300,
        lambda: _of_lines(_THREE, lambda people, rows: PackedRows(people, None, rows["price"])),
    ),
    "distinct discounted prices": (300, lambda: _distinct(_TWO, "discounted")),
    "distinct parts": (300, lambda: _distinct(_TWO, "part")),
    "distinct parts, three owners": (300, lambda: _distinct(_THREE, "part")),
    "distinct parts of 6 million, three owners": (300, lambda: _of_all_lines("part", _different)),
    "distinct values of people alike, three owners": (300, _alike),
    "most frequent quantity": (120, lambda: _frequent(_TWO, "quantity")),
    "most frequent discount": (120, lambda: _frequent(_TWO, "discount")),
    "most frequent ship date": (120, lambda: _frequent(_TWO, "ship")),
    "most frequent quantity, three owners": (300, lambda: _frequent(_THREE, "quantity")),
    "most frequent part of 6 million, three owners": (60, lambda: _of_all_lines("part", _rows_of)),
    "triangles": (300, _triangles),
    "distinct values of 100,000 people": (300, _distinct_values),
}
"""Seconds that a release or a profile may take, and what makes the rows and returns how to ask."""


def priced(asked: Packed) -> Priced:
    """Return the release of what is known at every price."""
    kind = MostFrequentItem if isinstance(asked, MostFrequent) else RowsOfSeveralOwners
    profiler = kind(Relation(others=(1,)), 1)
    return Priced.of(profiler, Fraction(1), dp.Budget(epsilon=1), Fraction(1, 20))


def errors(asked: Packed | Sequence[Any]) -> tuple[Sequence[Any], float, float]:
    """Return a profile, and the mean errors of ours and the published mechanism in its parts."""
    noise, budget = Noise(), dp.Budget(epsilon=1)
    if isinstance(asked, Packed):
        ours = [float(priced(asked).draw_one(asked, noise)[0]) for _ in range(RUNS)]
        levels: Sequence[Any] = by_price.profile(asked, REMOVALS)
    else:
        levels, release = asked, _two_phases(budget)
        ours = [float(release.draw_one(Profile(levels), noise)[0]) for _ in range(RUNS)]
    candidates, published = _CANDIDATES, Published(budget, BETA)
    if levels[0] > _CANDIDATES[-1]:
        candidates = dp.Candidates.geometric(1, 1e12, 1.001)
    theirs = [float(published.choose(Profile(levels), candidates, noise)) for _ in range(RUNS)]
    return levels, _middle(ours, levels[0]), _middle(theirs, levels[0])


def _two_phases(budget: dp.Budget) -> two_phase.TwoPhase:
    floor, prices, rest = two_phase.split(budget)
    return two_phase.TwoPhase(
        profiler=SimpleNamespace(sign=1),
        unit=Fraction(1),
        search=two_phase.floor_search(floor, BETA),
        prices=prices,
        noise_cost=rest,
        candidates=_CANDIDATES,
        beta=BETA,
    )


def _middle(values: Sequence[float], truth: float) -> float:
    cut = len(values) // 5
    off = sorted(abs(value - truth) for value in values)[cut:-cut]
    return float(np.mean(off)) / float(truth)


def answer(name: str) -> str:
    """Return the line of one question."""
    goal, make = QUESTIONS[name]
    ask = make()
    wall, processor = time.perf_counter(), time.process_time()
    asked = ask()
    if isinstance(asked, Packed):
        priced(asked).draw_one(asked, Noise())
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    levels, ours, theirs = errors(asked)
    shown = [f"{wall:.1f}", f"{processor:.1f}", f"{peak:.0f}", f"{goal:.0f}"]
    shown += [f"{levels[0]:,}", f"{levels[150]:,}", f"{ours:.5%}", f"{theirs:.5%}"]
    return f"| {name} | {' | '.join(shown)} | {ours / theirs:.3f} |"


def main(words: Sequence[str] | None = None) -> int:
    """Print a table, each line by a process of its own; return 1 where one fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="a part of the names of the questions")
    parser.add_argument("--alone", default="", help="the question that this process answers")
    given = parser.parse_args(words)
    if given.alone:
        sys.stdout.write(answer(given.alone) + "\n")
        return 0
    head = "what | wall s | cpu s | peak MiB | goal s | B[0] | B[150] | ours | published | ratio"
    sys.stdout.write(f"| {head} |\n|{' --- |' * 10}\n")
    sys.stdout.flush()
    failed = 0
    for name in QUESTIONS:
        if given.only in name:
            command = [sys.executable, "-m", "benchmarks.shared_rows", "--alone", name]
            failed += subprocess.run(command, check=False).returncode != 0
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
