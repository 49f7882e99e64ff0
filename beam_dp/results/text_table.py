"""A released table as text for a terminal: `number [low, high]` in one cell, cut to its width."""

import dataclasses
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from beam_dp.mechanisms.planning.plan import several_owners
from beam_dp.results.plain_text import plain, width
from beam_dp.results.released_metrics import Series, keys_of, metrics_of, owners_of
from beam_dp.results.shown_numbers import MARK, NOT_SHOWN, OF_LITTLE_USE, PASSED_OVER, UNKNOWN
from beam_dp.transforms.release_record import COLUMNS

ROWS = 50
_KEY = 32  # columns of a terminal
_GAP = "  "
_NARROW = 40
PLAN = "plan(people=N) says what to expect"
"""How a reader learns beforehand what is of use."""


@dataclasses.dataclass(frozen=True)
class TextTable:
    """A table for a terminal; `str(table)` is the table with its remarks.

    Attributes:
        names: the heading.
        cells: the cells of the rows that are shown.
        rows: how many rows the released table has.
        left_out: rows and columns that are not shown, in words.
        doubtful: for each column of numbers, in how many rows it is of little use.
        open: the same, in how many its error could not be shown.
        empty: the columns of numbers that are missing in every row.
        ranked: whether quantiles are among the numbers.
        passing: whether numbers that may pass over people are among them.
        owners: what to say of rows with several owners; "" for one.
        unknown: whether an interval has an end of which nothing is known.
        columns: how wide the terminal is; None: as wide as need be.
        plan: how a reader learns beforehand what is of use.
    """

    names: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    rows: int
    left_out: tuple[str, ...]
    doubtful: dict[str, int]
    open: dict[str, int]
    empty: tuple[str, ...]
    ranked: bool
    passing: bool
    unknown: bool
    owners: str = ""
    columns: int | None = None
    plan: str = PLAN

    @property
    def remarks(self) -> list[str]:
        """What to say below the table."""
        said = list(self.left_out)
        if self.rows and self.ranked:
            said.append(
                "(rank ±n): the number may stand n people, or rows, away from the rank asked for"
            )
        if self.passing:
            said.append(f"(up to n people above or below): {PASSED_OVER}")
        if self.unknown:
            said.append(f"{UNKNOWN}: nothing is known on that side")
        return [*said, *self._doubts, *filter(None, [self.owners])]

    @property
    def _doubts(self) -> list[str]:
        said = [
            f"{MARK} {count} are of little use: {OF_LITTLE_USE}: {each}. More people per "
            f"partition, fewer metrics or a larger budget would help: {self.plan}"
            for count, each in self._counted(self.doubtful)
        ]
        said += [
            f"{MARK} {count}: {NOT_SHOWN} ({each})" for count, each in self._counted(self.open)
        ]
        if self.empty and self.rows:
            said.append(
                f"{', '.join(map(plain, self.empty))}: no number could be released. There are too "
                "few people, or the column of the input holds no plain numbers (1234.5 is one, "
                "1,234.5 and text are none)"
            )
        return said

    def _counted(self, marked: dict[str, int]) -> Iterator[tuple[str, str]]:
        """Yield how many numbers have a mark, and of which columns, if some have."""
        counts = {name: count for name, count in marked.items() if count}
        if counts:
            numbers = f"{sum(counts.values())} of {self.rows * len(marked)} numbers"
            yield numbers, ", ".join(f"{count} of {plain(name)}" for name, count in counts.items())

    @property
    def lines(self) -> list[str]:
        """The heading and the rows, whose cells end at the same place."""
        table = [self.names, *self.cells]
        widths = [max(map(width, column)) for column in zip(*table, strict=True)]
        padded = (
            [" " * (most - width(cell)) + cell for cell, most in zip(row, widths, strict=True)]
            for row in table
        )
        return list(map(_GAP.join, padded))

    def __str__(self) -> str:
        return "\n".join([*self.lines, *map(self._wrapped, self.remarks)])

    def _wrapped(self, remark: str) -> str:
        if self.columns is None:
            return remark
        return textwrap.fill(remark, max(self.columns, _NARROW), subsequent_indent=_GAP)


def text_table(
    table: pa.Table,
    record: dict[str, Any],
    columns: int | None = None,
    whole: str = "the whole table",
    plan: str = PLAN,
    rows: int = ROWS,
) -> TextTable:
    """Return a released table as text.

    Args:
        table: the table.
        record: its record, of which the names of the columns are read.
        columns: how wide the terminal is; None: as wide as need be.
        whole: where all of it can be seen.
        plan: how a reader learns beforehand what is of use.
        rows: how many rows are shown.
    """
    keys = keys_of(table.slice(0, rows), record)
    series = [each for metric in metrics_of(table, record) for each in metric.series]
    names = record[COLUMNS]["keys"]
    shown = [
        (plain(name, _KEY), *(plain(key[at], _KEY) for key in keys))
        for at, name in enumerate(names)
    ]
    fixed = len(shown)
    shown += [(plain(each.name), *map(str, each.numbers[:rows])) for each in series]
    taken = _fitting(shown, fixed, columns)
    heading, *cells = zip(*shown[:taken], strict=True)
    seen = series[: taken - fixed]
    beyond, left = len(table) - rows, []
    if beyond > 0:
        left.append(f"... and {beyond:,} more rows in {whole}")
    if taken < len(shown):
        lost = [each.name for each in series[taken - fixed :]]
        left.append(f"... and {_listed(lost)} in {whole}: the terminal is too narrow")
    return TextTable(
        heading,
        tuple(cells),
        len(table),
        tuple(left),
        doubtful={each.name: sum(n.is_of_little_use for n in each.numbers) for each in series},
        open={each.name: sum(n.is_not_shown for n in each.numbers) for each in series},
        empty=tuple(each.name for each in series if all(n.value is None for n in each.numbers)),
        ranked=any(each.is_ranked for each in seen),
        passing=any(each.passes_over for each in seen),
        unknown=any(map(_is_open, seen)),
        owners=several_owners(owners_of(record)),
        columns=columns,
        plan=plan,
    )


def _fitting(shown: Sequence[Sequence[str]], fixed: int, columns: int | None) -> int:
    """Return how many columns a line has place for: all keys and one number at least."""
    if columns is None:
        return len(shown)
    taken, used = 0, -len(_GAP)
    for column in shown:
        used += len(_GAP) + max(map(width, column))
        if used > columns and taken > fixed:
            break
        taken += 1
    return taken


def _listed(names: Sequence[str]) -> str:
    some = ", ".join(map(plain, names[:3]))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{len(names)} more number{'s' * (len(names) > 1)} per row ({some}{more})"


def _is_open(series: Series) -> bool:
    return any(UNKNOWN in str(number) for number in series.numbers)
