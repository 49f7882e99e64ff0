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
from beam_dp.results.view import ShownMetric, View, label_of, positions_of
from beam_dp.transforms.io import released_files, whole_files
from beam_dp.transforms.run_record import said

MOST_ROWS = 5_000
"""How many rows the table of a page has."""
MOST_BARS, MOST_PANELS, MOST_POINTS = 30, 12, 400
"""How much one chart draws; of more partitions the largest ones, and none on a line."""
_OWNER = "report"
_FOLDER = Path(__file__).parent
_SIGN = 3  # percent of a line that a letter of a label takes on a narrow page


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
    """A number in a chart. Places are percentages of the chart's scale, and of its width.

    Attributes:
        label: its key or bin.
        number: the number.
        place: where it stands; None where there is none.
        ends: the two ends of its interval, and what each is: "known", "beyond" the picture, or
            "open", where nothing is known; none for a rank.
        across: where it stands on a line.
    """

    label: str
    number: ShownNumber
    place: float | None
    ends: tuple[tuple[float, str], ...]
    across: float


class Scale(NamedTuple):
    """What the axis of a chart shows."""

    low: float
    high: float

    def place(self, value: float) -> float:
        """Return where a number stands; of one beyond the picture, its edge."""
        share = (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)  # without overflow
        return round(100 * min(max(share, 0.0), 1.0), 2)

    def end(self, value: float | None, edge: float) -> tuple[float, str]:
        """Return where an end of an interval stands, and what it is."""
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
        is_line: whether the numbers stand in the order of their keys, else they are bars.
    """

    name: str
    metric: ShownMetric
    label: str
    panels: list[tuple[str, list[Mark]]]
    scale: Scale
    left_out: int
    is_line: bool = False

    @property
    def marks(self) -> list[Mark]:
        """All numbers that are drawn."""
        return [mark for _, marks in self.panels for mark in marks]

    @property
    def labelled(self) -> list[Mark]:
        """The numbers of a line whose keys have a place below it."""
        shown: list[Mark] = []
        apart = _SIGN * max((len(mark.label) for mark in self.marks), default=0)
        for mark in self.marks:
            if not shown or mark.across - shown[-1].across >= apart:
                shown.append(mark)
        return shown


def _figures(metric: ShownMetric, view: View) -> list[Figure]:
    if metric.kind == "Histogram":
        return [_histogram(metric, view)]
    return [_single(metric, at, view) for at in range(len(metric.series))]


def _single(metric: ShownMetric, at: int, view: View) -> Figure:
    """Return bars, the largest first, or a line where keys have an order."""
    series, size = metric.series[at], len(view.keys)
    positions = positions_of(view.keys) if size <= MOST_POINTS else None
    if positions is None:
        drawn = _largest([number.value for number in series.numbers], MOST_BARS)
        across = [0.0] * size
    else:
        drawn = sorted(range(size), key=positions.__getitem__)
        axis = Scale(min(positions), max(positions))
        across = list(map(axis.place, positions))
    scale = _scale([series.numbers[row] for row in drawn], zero=positions is None)
    marks = [
        _mark(label_of(view.keys[row]), series.numbers[row], scale, across[row]) for row in drawn
    ]
    left = size - len(drawn)
    panels = [("", marks)]
    is_line = positions is not None
    return Figure(series.name, metric, series.label, panels, scale, left, is_line=is_line)


def _histogram(metric: ShownMetric, view: View) -> Figure:
    """Return bars for the bins of each partition, on one scale."""
    sums = [
        sum(number.value or 0 for number in numbers)
        for numbers in zip(*(each.numbers for each in metric.series), strict=True)
    ]
    drawn = sorted(_largest(sums, MOST_PANELS))
    scale = _scale([each.numbers[row] for each in metric.series for row in drawn], zero=True)
    panels = []
    for row in drawn:
        marks = [_mark(each.label, each.numbers[row], scale) for each in metric.series]
        named = " / ".join(f"{name} {part}" for name, part in zip(view.by, view.keys[row]))
        panels.append((named, marks))
    return Figure(metric.name, metric, "", panels, scale, len(sums) - len(drawn))


def _largest(values: Sequence[float | None], most: int) -> list[int]:
    """Return the rows with the largest released numbers, which are all that it looks at."""
    sizes = [-math.inf if value is None else value for value in values]
    return sorted(range(len(sizes)), key=lambda row: -sizes[row])[:most]


def _scale(numbers: Sequence[ShownNumber], zero: bool) -> Scale:
    """Return what an axis shows: numbers of use with their intervals, and all other numbers.

    It begins at 0 if `zero`, and where the numbers would not stand in its upper half.
    """
    useful = [each for each in numbers if not each.is_of_little_use] or numbers
    ends = [end for each in useful for end in (each.low, each.high)]
    known = [end for end in (*ends, *(each.value for each in numbers)) if end is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    if zero or not 0 < high / 2 < low:
        low, high = min(low, 0.0), max(high, 0.0)
    return Scale(low, high if high > low else low + 1)


def _mark(label: str, number: ShownNumber, scale: Scale, across: float = 0.0) -> Mark:
    if number.value is None:
        return Mark(label, number, None, (), across)
    ends: tuple[tuple[float, str], ...] = ()
    if (number.low, number.high) != (None, None):
        ends = (scale.end(number.low, scale.low), scale.end(number.high, scale.high))
    return Mark(label, number, scale.place(number.value), ends, across)
