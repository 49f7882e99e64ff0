"""What a reader sees of a release: keys, numbers and remarks; on a terminal, a page.

All of it is made of the released table and its record, which says which columns belong together.
"""

import dataclasses
import itertools
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from beam_dp.mechanisms.consistency.tables import interval_of_sum
from beam_dp.results.shown_numbers import (
    MARK,
    UNKNOWN,
    ComputedNumber,
    ShownNumber,
    one_line,
    shown,
)
from beam_dp.text.plan import protected
from beam_dp.text.text_tables import text_table, wrapped
from beam_dp.transforms.run_record import COLUMNS, SUMS, text_of

ROWS = 50
"""How many rows are shown where it is not a page."""
NOT_PRIVATE = "NOT PRIVATE"
"""The entry of a record whose numbers have no noise, and why; and the words that say it."""
REHEARSED = "rehearsed"
"""The entry of the record of a rehearsal: how many releases it drew."""
_OTHER = "(other)"
_KEY = 32  # columns of a terminal
_COUNTS = ("Count", "PeopleCount")
_RANKED, _SHARE = "_rank_error", "Ratio"


@dataclasses.dataclass(frozen=True)
class Series:
    """One number per partition.

    Attributes:
        metric: the output column of the metric, or what its several output columns have in common.
        kind: its class, as "Sum"; "" where it is not known.
        column: the column that it was computed from; "" for none.
        name: the output column of this number.
        label: which of several of the metric it is, as "0 to below 10" for a bin; "" for the only
            one.
        numbers: one per row of the table.
    """

    metric: str
    kind: str
    column: str
    name: str
    label: str
    numbers: tuple[ShownNumber, ...]

    @property
    def doubts(self) -> np.ndarray:
        """Which of its numbers may be of little use."""
        kind = type(self.numbers[0]) if self.numbers else ShownNumber
        return kind.doubts(self.numbers)


@dataclasses.dataclass(frozen=True)
class View:
    """A released table, for readers.

    Attributes:
        record: its record.
        by: the names of the key columns.
        keys: the key of each row.
        series: the numbers, in the order of the columns.
        others: the places of rows that are what is not listed.
    """

    record: dict[str, Any]
    by: tuple[str, ...]
    keys: tuple[tuple[Any, ...], ...]
    series: tuple[Series, ...]
    others: frozenset[int] = frozenset()

    @classmethod
    def of(cls, table: pa.Table, record: dict[str, Any]) -> "View":
        """Return the view of a table."""
        by = tuple(record[COLUMNS]["keys"])
        parts = (["" if key is None else key for key in table[name].to_pylist()] for name in by)
        keys: tuple[tuple[Any, ...], ...] = (
            tuple(zip(*parts, strict=True)) if by else ((),) * len(table)
        )
        others: frozenset[int] = frozenset()
        if "other" in record[COLUMNS]:
            others = frozenset(at for at, key in enumerate(keys) if str(key[-1]).lower() == "true")
            by, keys = by[:-1], tuple(map(_named, keys))
        return cls(record, by, keys, _series(table, record), others)

    def total(self, rows: Iterable[int] | None = None) -> dict[str, ShownNumber]:
        """Return the sums of what adds up over some rows, with intervals that hold in 95 of 100.

        Args:
            rows: their places in the table; None: all but (other).
        """
        at = [*(sorted({*range(len(self.keys))} - self.others) if rows is None else rows)]
        found = {}
        for each in self.series:
            if each.name not in self.record.get(SUMS, {}):
                continue
            cells = [each.numbers[row] for row in at]
            lows = [-math.inf if cell.low is None else cell.low for cell in cells]
            highs = [math.inf if cell.high is None else cell.high for cell in cells]
            values = [cell.value for cell in cells if cell.value is not None]
            if len(values) == len(cells):
                noise = self.record[SUMS][each.name]
                low, high = interval_of_sum(lows, highs, *noise)
                total = sum(values)
                found[each.name] = shown(total, min(low, total), max(high, total))
        return found

    @property
    def owners(self) -> list[str]:
        """The columns of the person: several where rows have several owners."""
        person = self.record.get("parameters", {}).get("person", [])
        return [one_line(name) for name in ([person] if isinstance(person, str) else person)]

    @property
    def period(self) -> str | None:
        """The column of the period; None: a person is protected with all rows."""
        period = self.record.get("parameters", {}).get("period")
        return None if period is None else one_line(period)

    @property
    def unit(self) -> str:
        """What to say of several owners, or of periods; "" for one person with all rows."""
        known = self.record.get("parameters", {})
        texts = [
            known.get(name) and one_line(known[name]) for name in ("ledger_period", "period_source")
        ]
        return protected(self.owners, self.period, self.record.get("budget", {}), *texts)

    @property
    def left_out(self) -> str:
        """Which rows and cells are not in the numbers, by rule; "" where the rule is not known."""
        return left_out(self.record)

    @property
    def legend(self) -> list[str]:
        """What the signs beside the first numbers say."""
        numbers = [number for each in self.series for number in each.numbers[:ROWS]]
        texts = []
        if REHEARSED in self.record:
            texts.append(
                "N ±E (P% hold): N is the true number, 95 of 100 released ones are at most E away "
                "from it, and P of 100 intervals hold it"
            )
        ranks = {number.rank for number in numbers if number.value is not None} - {None}
        if ranks - {math.inf}:
            texts.append(
                "(rank ±n): in 95 of 100 releases the number stands at most n people, or rows, "
                "away from the rank asked for"
            )
        if math.inf in ranks:
            texts.append(
                "(rank ±?): the rank error may be above a tenth of the people, or rows. Of people, with "
                "per=person, it is mostly smaller"
            )
        if any(number.passes_over for number in numbers):
            texts.append(
                "(up to n people above or below): so many people may be beyond the number; how far is "
                "not known"
            )
        ends = f"[{UNKNOWN}", f"{UNKNOWN}]"
        if any(end in str(number) for number in numbers for end in ends):
            texts.append(f"{UNKNOWN}: nothing is known on that side")
        texts += zeros(self.record)
        if given := self._given():
            texts.append(f"the intervals hold only if nobody has more than was given: {given}")
        return texts

    def _given(self) -> str:
        """Return the bounds that intervals take for granted; "" for none."""
        parameters = self.record.get("parameters", {})
        most = (parameters.get("bounds") or {}).get("partitions")
        texts = [f"partitions={most}"] if self.by and isinstance(most, int) else []
        metrics = zip(self.record[COLUMNS]["numbers"], parameters.get("metrics", ()), strict=False)
        given = ((names[0], each["clip"]) for names, each in metrics if each.get("clip"))
        return ", ".join(
            texts + [f"clip={_decimal(clip)} of {one_line(name)}" for name, clip in given]
        )

    def doubts(self) -> list[str]:
        """Return what to say of numbers that may be of little use."""
        texts = []
        suppress = self.record.get("parameters", {}).get("suppress")
        counts = {each.name: int(each.doubts.sum()) for each in self.series if each.numbers}
        if total := sum(counts.values()):
            named = (f"{count:,} of {one_line(name)}" for name, count in counts.items() if count)
            all_numbers = f"{MARK} {total:,} of {len(self.keys) * len(counts):,} numbers"
            of_each = ", ".join(named)
            why = (
                f"were too uncertain to show, so they are empty, by the rule {text_of(suppress)}"
                if suppress
                else "may be of little use: they are missing or infinite, their interval is open or as "
                "wide as the "
                "number (a share: 0.25), or their rank error is ±?"
                + ", or they are computed of such"
                * ("computed" in self.record[COLUMNS])
            )
            texts.append(
                f"{all_numbers} {why} ({of_each}). More people per partition, fewer metrics or a "
                "larger budget would help"
            )
            of_counts = [each for each in self.series if each.kind in _COUNTS]
            if of_counts and all(counts[each.name] == len(each.numbers) for each in of_counts):
                texts[-1] += ". Are these the right columns and keys? beam-dp check says it"
        empty = [each.name for each in self.series if all(n.value is None for n in each.numbers)]
        if empty and self.keys and not suppress:
            texts.append(
                f"{', '.join(map(one_line, empty))}: no number could be released. There are too few "
                "people, or too few whose number is not 0 (of a spread: whose numbers "
                "differ), or the column of the input holds no plain numbers (1234.5 is one, "
                "1,234.5 and text are none)"
            )
        return texts

    @property
    def cost(self) -> str:
        """What the release cost; of a trial that it has no noise."""
        if NOT_PRIVATE in self.record:
            return f"{NOT_PRIVATE}: {self.record[NOT_PRIVATE]}"
        if "composition" not in self.record:
            return ""
        chosen = ", chosen privately" * bool(self.record.get("partitions_chosen"))
        return f"in all: {self.record['composition']}{chosen}"

    @property
    def together(self) -> str:
        """What to say of the tables of one run, of which it is one; "" for one alone."""
        return one_line(self.record.get("job", {}).get("tables", ""))

    def text(self, columns: int | None = None) -> str:
        """Return the first rows as `number [low, high]`, with remarks.

        Args:
            columns: how wide the terminal is; None: as wide as need be.
        """
        heading, *rows = zip(*self._columns(), strict=True)
        lines = text_table(heading, rows, columns, ">>", least=len(self.by) + 1)
        return "\n".join([*lines, *(wrapped(note, columns) for note in self._remarks())])

    def _columns(self) -> list[list[str]]:
        """Return the cells of the first rows by column, below their headings."""
        keys = [
            [one_line(name, _KEY), *(one_line(key[at], _KEY) for key in self.keys[:ROWS])]
            for at, name in enumerate(self.by)
        ]
        return keys + [
            [one_line(each.name), *map(str, each.numbers[:ROWS])] for each in self.series
        ]

    def _remarks(self) -> list[str]:
        left = len(self.keys) - ROWS
        more = [f"... and {left:,} more rows"] if left > 0 else []
        last = filter(None, (self.left_out, self.unit))
        return [*more, *self.legend, *self.doubts(), *last]


def zeros(record: Mapping[str, Any]) -> list[str]:
    """Return what to say of means beside a sum and a count; [] without any."""
    means = map(one_line, record.get("parameters", {}).get("means_of_sums", ()))
    rule = "beside a sum and a count, empty cells count as 0, unless own_count is given"
    return [f"{mean}: {rule}" for mean in means]


def left_out(record: Mapping[str, Any]) -> str:
    """Return which rows and cells a release leaves out by rule, whoever they are of; never how many.

    Args:
        record: its record; "" comes of one that has no parameters.
    """
    parameters = record.get("parameters", {})
    if "person" not in parameters:
        return ""
    person, period = parameters["person"], parameters.get("period")
    owners = " and ".join([person] if isinstance(person, str) else person)
    by = list(parameters.get("partition") or ())
    needed = " or ".join(map(one_line, dict.fromkeys(filter(None, [owners, period, *by]))))
    texts = ["rows that cannot be read", f"rows without {needed}"]
    if record.get("job", {}).get("query"):
        texts.append("rows that the query drops")
    if parameters.get("ledger_period"):
        texts.append(f"rows of other periods than {one_line(parameters['ledger_period'])}")
    if keys := (parameters.get("partitions") or {}).get("keys"):
        texts.append(f"rows with {', '.join(map(one_line, by))} other than the {keys:,} named")
    metrics = parameters.get("metrics") or [parameters.get("statistic") or {}]
    columns = dict.fromkeys(each["column"] for each in metrics if each.get("column"))
    if columns:
        texts.append(f"cells of {', '.join(map(one_line, columns))} without a plain value")
    for each in metrics:
        low, *_, high = map(_decimal, each.get("edges") or ("-inf", "inf"))
        if (low, high) != ("-inf", "inf"):
            texts.append(
                f"people whose number of {one_line(each['column'])} is outside {low} to {high}"
            )
    bounds = parameters.get("bounds") or {}
    limits = [bounds.get(name) for name in ("rows_per_partition", "rows")]
    limits += [bounds.get("partitions"), record.get("partitions_of_one_person")] * bool(by)
    if any(isinstance(each, int) for each in limits):
        texts.append("what a person has beyond the bounds")
    return f"not counted, if any: {'; '.join(texts)}"


def _named(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the key of a row without its mark; what is not listed is said in words."""
    *parts, mark = key
    is_other = str(mark).lower() == "true"
    return tuple(_OTHER if is_other and part in (None, "") else part for part in parts)


def label_of(key: Sequence[object]) -> str:
    """Return a key as one text."""
    return " / ".join(str(part) or '""' for part in key) if key else "all rows"


def _series(table: pa.Table, record: dict[str, Any]) -> tuple[Series, ...]:
    names = record[COLUMNS]["numbers"]
    parameters = record.get("parameters", {})
    asked = parameters.get("metrics") or [parameters.get("statistic", {})]
    asked = [*asked, *({} for each in names if len(each) == 1)]
    asked = asked if len(asked) == len(names) else [{}] * len(names)
    passed = {e["metric"]: e.get("people_beyond") for e in record.get("releases", ())}
    computed = record[COLUMNS].get("computed", {})
    found: list[Series] = []
    doubts: dict[str, np.ndarray] = {}
    for of_metric, options in zip(names, asked, strict=True):
        parts = [doubts[part] for part in computed.get(of_metric[0], ()) if part in doubts]
        for each in _of_metric(table, of_metric, options, passed, parts):
            found.append(each)
            if computed:
                names_of = each.name, f"{each.name}_low", f"{each.name}_high"
                doubts |= dict.fromkeys(names_of, each.doubts)
    return tuple(found)


def _of_metric(
    table: pa.Table,
    names: Sequence[str],
    asked: dict[str, Any],
    passed: dict[str, int | None],
    parts: Sequence[np.ndarray],
) -> Iterator[Series]:
    if len(names) == 1:  # computed of the others
        marks = np.any([np.zeros(len(table), bool), *parts], axis=0).tolist()
        marked = zip(table[names[0]].to_pylist(), marks, strict=True)
        computed = tuple(ComputedNumber(cell, of_doubtful=mark) for cell, mark in marked)
        yield Series(names[0], "", "", names[0], "", computed)
        return
    kind = asked.get("type", "")
    size = 2 if len(names) > 1 and names[1].endswith(_RANKED) else 3
    metric = os.path.commonprefix(names[::size]).rstrip("_") if len(names) > size else names[0]
    beyond = passed.get(names[0])
    for at, label in enumerate(_labels(asked, len(names) // size)):
        group = names[size * at : size * (at + 1)]
        cells = zip(*(table[each].to_pylist() for each in group), strict=True)
        if size == 2:
            numbers = [shown(v, rank=math.inf if off is None else float(off)) for v, off in cells]
        else:
            share = kind == _SHARE
            whole = kind == "Sum" and str(asked.get("unit")) == "1"
            numbers = [
                shown(v, low, high, whole=whole, beyond=beyond, share=share)
                for v, low, high in cells
            ]
        yield Series(metric, kind, asked.get("column") or "", group[0], label, tuple(numbers))


def _labels(asked: dict[str, Any], count: int) -> list[str]:
    """Return the names of bins and of quantiles."""
    edges, shares = (list(map(_decimal, asked.get(name) or ())) for name in ("edges", "shares"))
    if len(edges) == count + 1:
        return [_bin(low, high) for low, high in itertools.pairwise(edges)]
    return shares if len(shares) == count else [""] * count


def _bin(low: str, high: str) -> str:
    if low == "-inf":
        return f"below {high}"
    return f"{low} or more" if high == "inf" else f"{low} to below {high}"


def _decimal(number: object) -> str:
    """Return a number of a record, where 1/2 is exact, as a decimal."""
    text = str(number)
    return f"{float(Fraction(text)):g}" if "/" in text else text
