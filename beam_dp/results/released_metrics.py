"""The keys and metrics of a released table, as its record tells which columns belong together."""

import dataclasses
import datetime
import itertools
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pyarrow as pa

from beam_dp.results.plain_text import plain
from beam_dp.results.shown_numbers import ShownNumber, shown
from beam_dp.transforms.release_record import COLUMNS

EMPTY = '""'
"""How text of no letters is shown."""
_RANKED = "_rank_error"
_DAY = re.compile(r"\d{4}-\d{2}(-\d{2})?")
_DENSE = 3
_EXTREMES, _WALK, _SHARE = ("Max", "Min"), "walk", "Ratio"


@dataclasses.dataclass(frozen=True)
class Series:
    """One number per partition.

    Attributes:
        name: its output column.
        label: which of several of a metric it is, as "0 to 10" for a bin; "" for the only one.
        numbers: one per row of the table.
    """

    name: str
    label: str
    numbers: tuple[ShownNumber, ...]

    @property
    def is_ranked(self) -> bool:
        """Whether what is known of a number is how far off its rank may be."""
        return any(number.rank is not None for number in self.numbers)

    @property
    def passes_over(self) -> bool:
        """Whether numbers are shown with the people that they may pass over."""
        return any(number.passes_over for number in self.numbers)


@dataclasses.dataclass(frozen=True)
class ShownMetric:
    """A metric of a released table.

    Attributes:
        kind: its class, as "Sum"; "" where it is not known.
        column: the column that it was computed from; "" for none.
        series: its numbers: several for a histogram, and where several quantiles were asked.
    """

    kind: str
    column: str
    series: tuple[Series, ...]

    @property
    def is_histogram(self) -> bool:
        """Whether its series are bins."""
        return self.kind == "Histogram"

    @property
    def name(self) -> str:
        """The output column, or what the output columns have in common."""
        names = [series.name for series in self.series]
        if len(names) == 1:
            return names[0]
        letters = itertools.takewhile(lambda each: len(set(each)) == 1, zip(*names, strict=False))
        return "".join(each[0] for each in letters).rstrip("_")


def keys_of(table: pa.Table, record: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the key of each row."""
    columns = [table[name].to_pylist() for name in record[COLUMNS]["keys"]]
    return list(zip(*columns, strict=True)) if columns else [() for _ in range(len(table))]


def owners_of(record: dict[str, Any]) -> list[str]:
    """Return the columns of the person: several where rows have several owners."""
    person = record.get("parameters", {}).get("person", [])
    return [plain(name) for name in ([person] if isinstance(person, str) else person)]


def label_of(key: Sequence[object]) -> str:
    """Return a key as one text."""
    return " / ".join(str(part) or EMPTY for part in key) if key else "all rows"


def positions_of(keys: Sequence[Sequence[object]]) -> list[float] | None:
    """Return where keys stand on a line, if they have an order that a reader expects.

    These are days and months, and whole numbers of which at least one in three is there, as years
    and hours; not numbers that are names of things, as those of shops.
    """
    if len(keys) < _DENSE or any(len(key) != 1 for key in keys):
        return None
    positions = [each for each in (_position(key[0]) for key in keys) if each is not None]
    if len(positions) < len(keys) or len(set(positions)) < len(keys):
        return None
    days = not isinstance(keys[0][0], int) and not str(keys[0][0]).lstrip("-").isdigit()
    dense = max(positions) - min(positions) < _DENSE * len(keys)
    return positions if days or dense else None


def _position(part: object) -> float | None:
    if isinstance(part, bool):
        return None
    if isinstance(part, int) or re.fullmatch(r"-?(0|[1-9]\d{0,8})", str(part)):
        return float(str(part))
    text = part.isoformat() if isinstance(part, datetime.date) else str(part)
    if not _DAY.fullmatch(text):
        return None
    try:
        return float(datetime.date.fromisoformat(f"{text}-01"[:10]).toordinal())
    except ValueError:
        return None


def metrics_of(table: pa.Table, record: dict[str, Any]) -> list[ShownMetric]:
    """Return the metrics of a table, in the order of its columns."""
    names = record[COLUMNS]["numbers"]
    asked = _asked(record)
    asked = asked if len(asked) == len(names) else [{} for _ in names]
    releases = record.get("releases", ())
    walks = [each for each in releases if each.get("mechanism", "").startswith(_WALK)]
    passed = {each["metric"]: each["shift_T"] for each in walks}
    return [
        _metric(table, columns, said, passed.get(columns[0]))
        for columns, said in zip(names, asked, strict=True)
    ]


def _asked(record: dict[str, Any]) -> list[dict[str, Any]]:
    parameters: dict[str, Any] = record.get("parameters", {})
    single = [parameters["statistic"]] if "statistic" in parameters else []
    listed: list[dict[str, Any]] = parameters.get("metrics", single)
    return listed


def _metric(
    table: pa.Table,
    names: Sequence[str],
    said: dict[str, Any],
    passed: int | None,
) -> ShownMetric:
    ranked = len(names) > 1 and names[1].endswith(_RANKED)
    size = 2 if ranked else 3
    groups = [names[at : at + size] for at in range(0, len(names), size)]
    labels = _labels(said, len(groups))
    beyond = passed if said.get("type") in _EXTREMES else None
    series = [
        _series(table, group, label, beyond, said.get("type") == _SHARE)
        for group, label in zip(groups, labels, strict=True)
    ]
    return ShownMetric(said.get("type", ""), said.get("column") or "", tuple(series))


def _series(
    table: pa.Table, names: Sequence[str], label: str, beyond: int | None, share: bool
) -> Series:
    cells = zip(*(table[name].to_pylist() for name in names), strict=True)
    if len(names) == 2:
        return Series(names[0], label, tuple(shown(value, rank=_rank(off)) for value, off in cells))
    numbers = (shown(value, low, high, beyond=beyond, share=share) for value, low, high in cells)
    return Series(names[0], label, tuple(numbers))


def _rank(off: float | None) -> float:
    return float("inf") if off is None else float(off)


def _labels(said: dict[str, Any], count: int) -> list[str]:
    """Return the names of bins and of quantiles."""
    edges, shares = said.get("edges"), said.get("shares")
    if edges is not None and len(edges) == count + 1:
        return [_bin(low, high) for low, high in itertools.pairwise(map(_decimal, edges))]
    if shares is not None and len(shares) == count:
        return list(map(_decimal, shares))
    return [""] * count


def _bin(low: str, high: str) -> str:
    if low == "-inf":
        return f"below {high}"
    return f"{low} or more" if high == "inf" else f"{low} to below {high}"


def _decimal(number: object) -> str:
    """Return a number of a record, where 1/2 is exact, as a decimal."""
    text = str(number)
    return f"{float(Fraction(text)):g}" if "/" in text else text
