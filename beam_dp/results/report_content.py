"""What stands on the page of a report: charts, tables and sentences, from the record.

It needs jinja2 and matplotlib, which come with the extra `report`: `report` loads it when asked.
"""

import base64
import dataclasses
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
import pyarrow as pa
from markupsafe import Markup

from beam_dp.results import charts, record_words
from beam_dp.results.plain_text import plain
from beam_dp.results.record_words import Fact
from beam_dp.results.released_metrics import (
    EMPTY,
    Series,
    ShownMetric,
    keys_of,
    label_of,
    metrics_of,
    positions_of,
)
from beam_dp.results.shown_numbers import ShownNumber
from beam_dp.transforms.release_record import COLUMNS

Keys = list[tuple[Any, ...]]
MOST_ROWS = 5_000
"""How many rows the table of a page has."""
_FOLDER = Path(__file__).parent
_TEMPLATE, _SCRIPT = "report.html", "report.js"
_KEY, _TITLE, _NAME = 80, 120, 48  # columns of text


@dataclasses.dataclass(frozen=True)
class Figure:
    """A chart with its words.

    Attributes:
        name: the output column.
        says: what it is.
        svg: the chart; "" where there is no number to draw.
        notes: what to say below it.
    """

    name: str
    says: str
    svg: Markup
    notes: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Cell:
    """A cell of the table.

    Attributes:
        text: what is shown.
        order: what it is sorted by; "" for its text.
        is_number: whether it is a number.
        doubtful: whether it is a number of little use.
    """

    text: str
    order: str
    is_number: bool = False
    doubtful: bool = False


@dataclasses.dataclass(frozen=True)
class Page:
    """Everything that the template shows."""

    title: str
    summary: str
    protects: tuple[str, ...]
    reading: tuple[str, ...]
    warnings: tuple[str, ...]
    figures: tuple[Figure, ...]
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    more_rows: int
    spent: tuple[tuple[str, ...], ...]
    composition: str
    limits: tuple[Fact, ...]
    asked: tuple[Fact, ...]
    origin: tuple[Fact, ...]
    record: str
    script: Markup
    digest: str


def html(table: pa.Table, record: dict[str, Any], title: str) -> str:
    """Return the page of a released table. All text is escaped but the charts and the script."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(_TEMPLATE).render(page=page_of(table, record, title))


def page_of(table: pa.Table, record: dict[str, Any], title: str) -> Page:
    """Return the content of the page of a released table.

    Args:
        table: the released table.
        record: its record.
        title: the heading; "": one that names the input.
    """
    keys, metrics = keys_of(table, record), metrics_of(table, record)
    script = (_FOLDER / _SCRIPT).read_text(encoding="utf-8")
    first = table.slice(0, MOST_ROWS)
    rows = _rows(first, record)
    by = record[COLUMNS]["keys"]
    names = [*by, *(each.name for m in metrics for each in m.series)]
    return Page(
        title=plain(title or record_words.title(record), _TITLE),
        summary=record_words.summary(record, len(table)),
        protects=record_words.protects(record),
        reading=record_words.reading(metrics_of(first, record)),
        warnings=record_words.warnings(record, metrics, len(table)),
        figures=tuple(figure for metric in metrics for figure in _figures(metric, keys, by)),
        headings=tuple(plain(name, _NAME) for name in names),
        rows=rows,
        more_rows=len(table) - len(rows),
        spent=record_words.spent(record),
        composition=record.get("composition") or record_words.amount(record["budget"]),
        limits=record_words.limits(record),
        asked=record_words.asked(record),
        origin=record_words.origin(record),
        record=json.dumps(record, indent=1, ensure_ascii=False),
        script=Markup(script),
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _rows(table: pa.Table, record: dict[str, Any]) -> tuple[tuple[Cell, ...], ...]:
    series = [each.numbers for metric in metrics_of(table, record) for each in metric.series]
    return tuple(
        (*map(_key, key), *map(_number, numbers))
        for key, *numbers in zip(keys_of(table, record), *series, strict=True)
    )


def _key(part: object) -> Cell:
    number = isinstance(part, (int, float)) and not isinstance(part, bool)
    return Cell(plain(part, _KEY) or EMPTY, repr(part) if number else "", number)


def _number(number: ShownNumber) -> Cell:
    order = "" if number.value is None else repr(float(number.value))
    return Cell(str(number), order, True, number.is_of_little_use)


def _figures(metric: ShownMetric, keys: Keys, by: Sequence[str]) -> list[Figure]:
    if metric.is_histogram:
        return [_histogram(metric, keys, by)]
    return [_series(metric, series, keys, by) for series in metric.series]


def _series(metric: ShownMetric, series: Series, keys: Keys, by: Sequence[str]) -> Figure:
    points = [
        charts.ChartPoint(label_of(key), number)
        for key, number in zip(keys, series.numbers, strict=True)
    ]
    says = record_words.metric(metric, series, by)
    if all(number.value is None for number in series.numbers):
        return Figure(plain(series.name), says, Markup(""), ("No number could be released.",))
    positions = positions_of(keys) if len(points) <= charts.MOST_POINTS else None
    svg = charts.bars(points) if positions is None else charts.line(points, positions)
    shown = charts.largest(points) if positions is None else points
    left = len(points) - len(shown)
    drawn = [
        f"The {charts.MOST} largest released numbers are drawn; {left:,} more are in the table."
    ]
    drawn = drawn[: left > 0]
    if not charts.begins_at_zero(shown):
        drawn.append("The axis of the numbers does not begin at 0.")
    doubts = record_words.doubts([each.number for each in shown], marked=positions is None)
    notes = (*drawn, *doubts)
    return Figure(plain(series.name), says, Markup(svg), notes)


def _histogram(metric: ShownMetric, keys: Keys, by: Sequence[str]) -> Figure:
    totals = [sum(each.numbers[at].value or 0 for each in metric.series) for at in range(len(keys))]
    most = sorted(range(len(keys)), key=lambda at: -totals[at])[: charts.MOST_PANELS]
    panels = [
        (
            _panel(keys[at], by),
            [charts.ChartPoint(each.label, each.numbers[at]) for each in metric.series],
        )
        for at in sorted(most)
    ]
    left = len(keys) - len(panels)
    drawn = f"The {len(panels)} partitions with the largest released sums are drawn; {left:,} more"
    notes = [f"{drawn} are in the table."] * (left > 0)
    bins = [point.number for _, points in panels for point in points]
    doubts = record_words.doubts(bins, marked=False)
    says = record_words.metric(metric, metric.series[0], by)
    svg = charts.histogram(panels) if panels else ""
    return Figure(plain(metric.name), says, Markup(svg), (*notes, *doubts))


def _panel(key: tuple[Any, ...], by: Sequence[str]) -> str:
    """Return the heading of a panel: a number alone would not say what it is."""
    label = label_of(key)
    return f"{plain(by[0])} {label}" if len(key) == 1 and _key(key[0]).is_number else label
