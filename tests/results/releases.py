"""Released tables of any size, with the record of a small release: nobody's data is in them."""

import functools
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa

import beam_dp as dp

HOSTILE = "</td><script>document.title='owned'</script><b>$x_{"
HOSTILE_KEYS = [HOSTILE, "a", "\x1b[2J\u202e", "東京" * 30, "", "&amp;"]
METRICS = (
    dp.Sum("spent"),
    dp.Median("ms"),
    dp.Histogram("age", edges=[0, 18, 30, 65]),
    dp.Max("ms"),
)
PEOPLE = 5_000  # so many that clips show people, but for a chance below 1e-12
_ROWS = pa.table(
    {
        "who": list(range(PEOPLE)) * 2,
        "day": ["a"] * PEOPLE + ["b"] * PEOPLE,
        **{name: [30.0] * 2 * PEOPLE for name in ("spent", "ms", "age")},
    }
)


class Made(NamedTuple):
    """What `release` would return."""

    table: pa.Table
    record: dict[str, Any]


@functools.cache
def record(metrics: tuple[Any, ...] = METRICS, partitioned: bool = True) -> dict[str, Any]:
    """Return the record of a small release of private partitions, or of one."""
    options: dict[str, Any] = {"partition": ["day"]} if partitioned else {}
    budget = dp.Budget(1.0, 1e-6) if partitioned else dp.Budget.zcdp(0.5)
    found = dp.release(_ROWS, person="who", metrics=metrics, budget=budget, **options).record
    if found["partitions_chosen"]:  # noise decides it, and a page warns of pairs that are lost
        found["partitions_chosen"]["pairs_lost_estimate"] = 0.0
    return found


def made(keys: list[Any], metrics: tuple[Any, ...] = METRICS, **changed: Any) -> Made:
    """Return a release with one row per key: numbers that grow with the row, the last hopeless.

    Args:
        keys: the keys; [()] for a release without partitions.
        metrics: what was released.
        changed: entries of the record.
    """
    known = {**record(metrics, keys != [()]), **changed}
    columns = known["columns"]
    rows = [
        [
            *([key] if columns["keys"] else []),
            *chain(*(_numbers(n, at, len(keys)) for n in columns["numbers"])),
        ]
        for at, key in enumerate(keys)
    ]
    names = [*columns["keys"], *chain(*columns["numbers"])]
    cells = list(zip(*rows, strict=True)) or [()] * len(names)
    return Made(pa.table(dict(zip(names, map(list, cells), strict=True))), known)


def _numbers(names: list[str], at: int, rows: int) -> list[float | None]:
    value, last = 1000.0 + 37.25 * at, rows > 1 and at == rows - 1
    if names[1].endswith("_rank_error"):
        return [None if last else value, 73.0]
    three = [value, 0.0 if last else value - 200.125, None if last else value + 320.5]
    return three * (len(names) // 3)
