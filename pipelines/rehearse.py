"""Rehearse a release on public or old data: what would be named, and how far off numbers would be.

    beam-dp rehearse --config release.yaml --input last_year.csv --runs 100

It makes the same release many times, without the cost of a pipeline, and prints the TRUE numbers:
1,350 ±42 (96% hold) says that 1,350 is the truth, that 95 of 100 released numbers are at most 42
away, and that the interval beside them holds the truth in 96 of 100 releases. Before them stands
what `beam-dp check` says of the files. NOTHING OF THIS IS PRIVATE: take public data, or rows that may
be shown. It reads in this process; no ledger is charged, and no file is written but the page that
--report names.
"""

import dataclasses
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import beam_dp as dp
from beam_dp.mechanisms.numerics import checks
from beam_dp.results import report
from beam_dp.results.shown_numbers import MARK, ShownNumber
from beam_dp.results.view import NOT_PRIVATE, REHEARSED, Series, View
from beam_dp.text.plan import cost
from beam_dp.text.text_tables import short
from beam_dp.transforms import rehearsal, run_record
from beam_dp.transforms.io import whole_files
from pipelines import check, command_line, terminal
from pipelines.description import Description, without_folders

_MARK = "a rehearsal of {} releases, which shows the true numbers of the input"
_NOT_DONE = {
    "suppress": "suppress",
    "top_partitions": "top_partitions",
    "post_process": "HAVING, ORDER BY, LIMIT and columns computed of aggregates (post_process)",
}


_HALF = 0.5
"""A number is marked where more than so many of its draws are missing, or without a rank error."""


@dataclasses.dataclass(frozen=True)
class Rehearsed(ShownNumber):
    """A true number, between the ends of 95 of 100 released ones, with what is said of these."""

    remark: str = ""

    @property
    def text(self) -> str:
        """The number with its own digits, however far off draws are."""
        return ShownNumber(self.value, whole=self.whole).text.rstrip(MARK) + MARK * self.is_doubtful

    def __str__(self) -> str:
        return f"{self.text}{self.remark}"


def main(given: Sequence[str] | None = None) -> int:
    """Rehearse; returns the exit code."""
    line = command_line.parser("rehearse", __doc__)
    line.usage = "%(prog)s [--config FILE] --input FILES --person COLUMN --epsilon E ..."
    line.add_argument("--runs", metavar="N", default=100, type=int, help="default 100")
    options = line.only(given)
    with line.refusing(options.config):
        asked = Description(command_line.described(options))
        checks.require(options.runs > 1, "release", "runs", "be 2 or more")
        checks.require(bool(asked.given.get("input")), "release", "input", "be given")
        checks.require(not options.plan, "release", "plan", "be left out: it reads no row")
        page = asked.given.get("report")
        if page:
            style = asked.page.get("number_style", report.PLAIN)
            report.check(page, style)
        scans = check.scanned(asked)
        for each in scans:
            if each.refused:
                raise ValueError(each.refused)
    rows = [row for each in scans for row in each.elements]
    left = [says for name, says in _NOT_DONE.items() if asked.given.get(name)]
    said = f"not rehearsed: {'; '.join(left)}\n" * bool(left)
    sys.stdout.write(check.text_of(asked, scans) + said)
    columns = terminal.width()
    every = rehearsal.draws(asked.run, rows, options.runs)
    for table, drawn in zip(asked.tables, every, strict=True):
        view = rehearsed(asked, table.release, rows, drawn)
        which = table.release.title if asked.together else ""
        text = f"{view.cost}{which and f'; {which}'}\n{view.text(columns)}\n{view.cost}\n"
        if page:
            source = run_record.file_names(asked.input)
            title = asked.page.get("title", f"Rehearsal: {source}")
            heading = f"{title}{which and f', {which}'}"
            with whole_files.written(table.file(page)) as file:
                file.write(report.html(view, heading, style).encode())
            text += f"report: {table.file(page)}\n"
        sys.stdout.write(text)
    return 0


def rehearsed(
    asked: Description,
    release: dp.PrivateAggregate,
    rows: Sequence[Any],
    drawn: Sequence[rehearsal.Numbers],
) -> View:
    """Return the true numbers of rows, with what these draws say of them."""
    true, runs = rehearsal.truth(release, rows), len(drawn)
    named = {key: [each[key] for each in drawn if key in each] for key in true}
    is_private = isinstance(release.partitions, dp.PrivatePartitions)
    keys = sorted(sorted(true, key=str) if is_private else true, key=lambda key: -len(named[key]))
    mark = {"budget": cost(release.budget), NOT_PRIVATE: _MARK.format(runs), REHEARSED: runs}
    record = run_record.facts(release, without_folders(asked.given)) | mark
    record["parameters"].pop("suppress", None)  # it is not applied
    of = record[run_record.COLUMNS]
    names = [name for group in of["numbers"] for name in group]
    empty = dict.fromkeys([*of["keys"], *names], pa.nulls(len(keys), pa.float64()))
    view = View.of(pa.table(empty), record)

    def with_numbers(series: Series) -> Series:
        at = names.index(series.name)
        ends = f"{series.name}_low" in names, f"{series.name}_rank_error" in names
        size = 1 + 2 * ends[0] + ends[1]
        numbers = (
            _number(true[key][at], [row[at : at + size] for row in named[key]]) for key in keys
        )
        return dataclasses.replace(series, numbers=tuple(numbers))

    series = list(map(with_numbers, view.series))
    if is_private:
        shares = (round(100 * len(named[key]) / runs) for key in keys)
        cells = (
            Rehearsed(share, share, share, whole=True, share=True, remark="%") for share in shares
        )
        series.insert(0, Series("named", "", "", "named", "", tuple(cells)))
    return dataclasses.replace(view, keys=tuple(keys), series=tuple(series))


def _number(true: float, rows: Sequence[Sequence[float]]) -> Rehearsed:
    """Return a true number, with what its draws say of it.

    Each is a number, one with its rank error, or one with its two ends.
    """
    drawn = np.array([row for row in rows if not math.isnan(row[0])], float)
    if math.isnan(true) or not len(drawn):
        return Rehearsed(None if math.isnan(true) else true, remark=" (no number)")
    low, high = np.quantile(drawn[:, 0], [0.025, 0.975], method="inverted_cdf").tolist()
    remark = f" ±{short(float(np.quantile(abs(drawn[:, 0] - true), 0.95, method='inverted_cdf')))}"
    missing = 1 - len(drawn) / len(rows)
    remark += f" ({missing:.0%} missing)" * (missing > 0)
    unknown = float(np.isinf(drawn[:, 1]).mean()) if drawn.shape[1] == 2 else 0.0
    remark += f" ({unknown:.0%} rank ±?)" * (unknown > 0)
    rank = math.inf if missing + (1 - missing) * unknown > _HALF else None
    if drawn.shape[1] > 2:
        slack = 1e-9 * abs(true)
        holds = (drawn[:, 1] <= true + slack) & (drawn[:, 2] >= true - slack)
        remark += f" ({holds.mean():.0%} hold)"
    return Rehearsed(true, low, high, rank, whole=float(true).is_integer(), remark=remark)


if __name__ == "__main__":
    sys.exit(main())
