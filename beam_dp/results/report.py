"""`report`: a page that shows a released table to readers who did not run the job.

The page is one file of HTML: charts, the table, what was spent, and in words what the numbers
protect. It asks for nothing from the network, and all of it is made of the released table and its
record; what it says stands in `report.html`. Keys and names are hostile text: whatever the template
shows is made plain and escaped, and the page allows no script but its own, by its hash.
"""

import base64
import dataclasses
import hashlib
import importlib.util
import itertools
import json
import math
import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.short_numbers import short, shortened
from beam_dp.mechanisms.planning.plan import several_owners
from beam_dp.results.shown_numbers import ShownNumber, plain
from beam_dp.results.view import ShownMetric, View, label_of
from beam_dp.transforms.io import released_files, whole_files
from beam_dp.transforms.run_record import said

MOST_ROWS = 5_000
"""How many rows the table of a page has."""
MOST_BARS, MOST_PANELS = 60, 12
"""How much one chart draws: of more partitions the largest ones."""
_OWNER = "report"
_FOLDER = Path(__file__).parent


def report(source: Any, path: str | os.PathLike[str] | None = None, title: str = "") -> str:
    """Return a released table as a page of HTML, and write the page to a file.

    It costs no budget, as it looks at nothing but the released table and its record.

    Args:
        source: what `release` returned, or the path of a released file, whose record is beside it.
        path: the file to write, which ends in .html and is replaced if it exists; None: none.
        title: the heading of the page; "": one that names the input.

    Raises:
        TypeError, ValueError: for a wrong source or path.
        ValueError: where jinja2 is not installed: the extra `report` has it.
    """
    check(path)
    if isinstance(source, (str, os.PathLike)):
        table, record = released_files.read(_OWNER, os.fspath(source))
    else:
        table, record = getattr(source, "table", None), getattr(source, "record", {})
    if not isinstance(table, pa.Table):
        raise checks.ParameterTypeError(
            _OWNER,
            "source",
            f"be what release() returned, or a path, not {type(source).__name__}",
            'Write dp.report("released.csv", "released.html").',
        )
    page = html(View.of(table, record), title)
    if path is not None:
        with whole_files.written(os.fspath(path)) as file:
            file.write(page.encode())
    return page


def check(path: str | os.PathLike[str] | None) -> None:
    """Refuse a page that could not be written, before a release that would be paid for."""
    checks.require(
        importlib.util.find_spec("jinja2") is not None,
        _OWNER,
        "jinja2",
        "be installed",
        "Write: pip install jinja2.",
    )
    if path is not None:
        name = os.fspath(path)
        checks.require(
            name.endswith(".html"), _OWNER, "path", f"end in .html, not {checks.shown(name)}"
        )
        whole_files.check(_OWNER, name)


def html(view: View, title: str) -> str:
    """Return the page of a released table."""
    import jinja2  # here, for it comes with an extra
    from markupsafe import Markup, escape

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else plain(value),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (plain, short, shortened, rational, amount, said)
    environment.filters.update({function.__name__: function for function in filters})
    script = (_FOLDER / "report.js").read_text(encoding="utf-8")
    record = view.record
    rows = zip(view.keys, *(each.numbers for each in view.series), strict=True)
    return environment.get_template("report.html").render(
        title=title,
        view=view,
        record=record,
        columns=record["columns"],
        parameters=record.get("parameters", {}),
        owners=several_owners(view.owners),
        figures=[figure for metric in view.metrics for figure in _figures(metric, view)],
        rows=[(key, cells) for key, *cells in itertools.islice(rows, MOST_ROWS)],
        metric_of={each["label"]: each["metric"] for each in record.get("releases", ())},
        whole_record=Markup(escape(json.dumps(record, indent=1))),
        script=Markup(script),
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def rational(text: str | int) -> float:
    """Return a rational of the record as a number."""
    return float(Fraction(text))


def amount(cost: dict[str, Any], times: int = 1) -> str:
    """Return what is spent by something that is done so many times: "epsilon 0.5"."""
    parts = {name: Fraction(cost.get(name, 0)) * times for name in ("epsilon", "rho", "delta")}
    return ", ".join(f"{name} {short(float(part))}" for name, part in parts.items() if part)


class Mark(NamedTuple):
    """A number in a chart. Places are percentages of the chart's scale.

    Attributes:
        label: its key or bin.
        number: the number.
        place: where it stands; None where there is none.
        ends: the two ends of its interval, and what each is: "known", "beyond" the picture, or
            "open", where nothing is known; none for a rank.
    """

    label: str
    number: ShownNumber
    place: float | None
    ends: tuple[tuple[float, str], ...]


class Scale(NamedTuple):
    """What the axis of a chart shows."""

    low: float
    high: float

    def place(self, value: float) -> float:
        """Return where a number stands; for one beyond the picture, the edge of the picture."""
        share = (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)  # without overflow
        return round(100 * min(max(share, 0.0), 1.0), 2)

    def mark(self, label: str, number: ShownNumber) -> Mark:
        """Return a number in its place."""
        if number.value is None:
            return Mark(label, number, None, ())
        ends: tuple[tuple[float, str], ...] = ()
        if (number.low, number.high) != (None, None):
            ends = self._end(number.low, self.low), self._end(number.high, self.high)
        return Mark(label, number, self.place(number.value), ends)

    def _end(self, value: float | None, edge: float) -> tuple[float, str]:
        if value is None:
            return self.place(edge), "open"
        return self.place(value), "known" if self.low <= value <= self.high else "beyond"


@dataclasses.dataclass(frozen=True)
class Figure:
    """A chart with what its words need.

    Attributes:
        name: the output column.
        metric: the metric.
        label: which of several numbers of the metric it shows; "" for the only one, or for all.
        panels: one part of the chart, or one per partition: its heading, and its numbers.
        scale: what the axis shows.
        left_out: how many partitions are not drawn.
    """

    name: str
    metric: ShownMetric
    label: str
    panels: list[tuple[str, list[Mark]]]
    scale: Scale
    left_out: int

    @property
    def marks(self) -> list[Mark]:
        """All numbers that are drawn."""
        return [mark for _, marks in self.panels for mark in marks]


def _figures(metric: ShownMetric, view: View) -> list[Figure]:
    """Return bars for the bins of each partition, or for the partitions of each number."""
    if metric.kind == "Histogram":
        rows = list(zip(*(each.numbers for each in metric.series), strict=True))
        drawn = _largest([sum(each.value or 0 for each in row) for row in rows], MOST_PANELS)
        scale = _scale([number for row in drawn for number in rows[row]])
        bins = [each.label for each in metric.series]
        panels = []
        for row in drawn:
            named = (f"{name} {part}" for name, part in zip(view.by, view.keys[row]))
            panels.append((" / ".join(named), list(map(scale.mark, bins, rows[row]))))
        return [Figure(metric.name, metric, "", panels, scale, len(rows) - len(drawn))]
    figures = []
    for series in metric.series:
        values = [-math.inf if each.value is None else each.value for each in series.numbers]
        drawn = _largest(values, MOST_BARS)
        scale = _scale([series.numbers[row] for row in drawn])
        marks = [scale.mark(label_of(view.keys[row]), series.numbers[row]) for row in drawn]
        left = len(values) - len(drawn)
        figures.append(Figure(series.name, metric, series.label, [("", marks)], scale, left))
    return figures


def _largest(values: Sequence[float], most: int) -> list[int]:
    """Return the rows with the largest released numbers, in the order of the table."""
    return sorted(sorted(range(len(values)), key=lambda row: -values[row])[:most])


def _scale(numbers: Sequence[ShownNumber]) -> Scale:
    """Return what an axis shows: 0, all numbers, and the intervals of those that are of use."""
    useful = [each for each in numbers if not each.is_doubtful] or numbers
    ends = [end for each in useful for end in (each.low, each.high)]
    known = [end for end in (*ends, *(each.value for each in numbers)) if end is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    low, high = min(low, 0.0), max(high, 0.0)
    return Scale(low, high if high > low else low + 1)
