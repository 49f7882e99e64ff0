"""What is asked of which rows, for the tables of `benchmarks.statistics`; imports nothing heavy."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

GIBIBYTE = 1 << 30
WAYS = ("release", "profile", "pure")
"""`PrivateAggregate`, `RemovalLoss`, and the function of the mechanisms that it calls."""


@dataclasses.dataclass(frozen=True)
class Goal:
    """What a whole process may take: seconds, bytes, or a multiple of the main job's time."""

    seconds: float | None = None
    peak: int | None = None
    ratio: float | None = None

    def __str__(self) -> str:
        found = []
        if self.seconds is not None:
            found.append(f"{self.seconds:g} s")
        if self.peak is not None:
            found.append(f"{self.peak / GIBIBYTE:g} GiB")
        if self.ratio is not None:
            found.append(f"{self.ratio:g} x main")
        return ", ".join(found)


@dataclasses.dataclass(frozen=True)
class Case:
    """One question to one file.

    Attributes:
        name: unique.
        file: a name of `benchmarks.relations`.
        person: the column of the owner, or those of two.
        metrics: names of metrics of `beam_dp` with their arguments.
        removals: K; 0 where a release fixes it.
        goal: what it may take.
        ways: how it is answered, of `WAYS`.
    """

    name: str
    file: str
    person: tuple[str, ...]
    metrics: tuple[tuple[str, Mapping[str, object]], ...]
    removals: int = 70
    goal: Goal = Goal()
    ways: tuple[str, ...] = ("profile", "pure")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        asked = [str(options["column"]) for _, options in self.metrics if "column" in options]
        return tuple(dict.fromkeys([*self.person, *asked]))


def _one(kind: str, **options: object) -> tuple[tuple[str, Mapping[str, object]], ...]:
    return ((kind, options),)


_TEN, _HALF, _MINUTE = Goal(10), Goal(30), Goal(60)
_LARGE = Goal(300, 8 * GIBIBYTE)
_SIDED = {"one_sided": True}
_PRICE = {"column": "price"}
_BOTH = (("Count", _SIDED), ("Sum", _SIDED | _PRICE))

CASES = (
    Case("count, a profile", "items", ("order",), _BOTH[:1], 69, Goal(ratio=1.3)),
    Case("sum, a profile", "items", ("order",), _BOTH[1:], 70, Goal(ratio=1.3)),
    Case("count and sum, both profiles", "items", ("order",), _BOTH, 0, Goal(ratio=1.3), WAYS[:1]),
    Case(
        "1000th largest, person = order",
        "items",
        ("order",),
        _one("KthLargest", column="price", k=1000),
        63,
        _TEN,
    ),
    Case(
        "1000th largest, person = customer",
        "items",
        ("customer",),
        _one("KthLargest", column="price", k=1000),
        63,
        _TEN,
    ),
    Case(
        "3,000,608th largest, person = order",
        "items",
        ("order",),
        _one("KthLargest", column="price", k=3_000_608),
        63,
        _TEN,
    ),
    Case(
        "3,000,608th largest, person = customer",
        "items",
        ("customer",),
        _one("KthLargest", column="price", k=3_000_608),
        63,
        _TEN,
    ),
    Case(
        "median, person = order",
        "items",
        ("order",),
        _one("Median", **_PRICE, per="person"),
        0,
        _TEN,
        WAYS[::2],
    ),
    Case(
        "median, person = customer",
        "items",
        ("customer",),
        _one("Median", **_PRICE, per="person"),
        0,
        _TEN,
        WAYS[::2],
    ),
    Case(
        "median of rows, person = customer",
        "items",
        ("customer",),
        _one("Median", **_PRICE),
        0,
        _TEN,
        WAYS[:1],
    ),
    Case(
        "distinct clerks of 60,000 orders",
        "orders_60000",
        ("customer",),
        _one("DistinctCount", column="clerk"),
        200,
        _TEN,
    ),
    Case(
        "distinct parts of 60,000 items",
        "items_60000",
        ("customer",),
        _one("DistinctCount", column="part"),
        200,
        _TEN,
    ),
    Case(
        "distinct clerks of 600,000 orders",
        "orders_600000",
        ("customer",),
        _one("DistinctCount", column="clerk"),
        200,
        _MINUTE,
    ),
    Case(
        "distinct parts of 600,000 items",
        "items_600000",
        ("customer",),
        _one("DistinctCount", column="part"),
        200,
        _MINUTE,
    ),
    Case(
        "distinct parts of 600,000 items, released",
        "items_600000",
        ("customer",),
        _one("DistinctCount", column="part"),
        0,
        _MINUTE,
        WAYS[:1],
    ),
    Case(
        "distinct parts of all items",
        "items",
        ("customer",),
        _one("DistinctCount", column="part"),
        200,
        _MINUTE,
        WAYS[:2],
    ),
    Case(
        "edges of a Zipf graph",
        "zipf_150000_60000",
        ("from", "to"),
        _one("Count"),
        130,
        _HALF,
    ),
    Case(
        "edges of a large Zipf graph",
        "zipf_1900000_1400000",
        ("from", "to"),
        _one("Count"),
        130,
        _LARGE,
    ),
    Case(
        "edges of a road graph",
        "road_1900000_1400000",
        ("from", "to"),
        _one("Count"),
        130,
        _LARGE,
    ),
    Case(
        "items of customer and supplier",
        "items",
        ("customer", "supplier"),
        _one("Count"),
        69,
        _LARGE,
    ),
    Case(
        "quantity of customer and supplier",
        "items",
        ("customer", "supplier"),
        _one("Sum", column="quantity", unit=1),
        70,
        _LARGE,
    ),
    Case(
        "most frequent clerk of 300,000 orders",
        "orders_300000",
        ("customer",),
        _one("MaxFrequency", column="clerk"),
        69,
        _HALF,
    ),
    Case(
        "self-join size of clerks of 300,000 orders",
        "orders_300000",
        ("customer",),
        _one("SumOfSquares", column="clerk"),
        69,
        _HALF,
    ),
)


def _main(file: str) -> Case:
    """Return the main job's pass over a file: what every other line of its table is compared to."""
    first = next(case for case in CASES if case.file == file)
    metrics = (("Count", {}), ("Sum", _PRICE)) if file == "items" else (("Count", {}),)
    return Case(f"main job on {file}", file, first.person[:1], metrics, 0, ways=WAYS[:1])


MAINS = {file: _main(file) for file in dict.fromkeys(case.file for case in CASES)}
"""Per file the main job on the same rows: private sums and counts by clip and noise."""
NAMED = {case.name: case for case in (*MAINS.values(), *CASES)}
