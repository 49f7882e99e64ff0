"""Charts of released numbers with their intervals, as SVG that stands in a page.

Keys are text that people wrote, and never reach the drawing: each is drawn as a placeholder, for
which its escaped text is put into the finished picture. Everything is told by shape as well as by
shade: a number of little use is hollow, an interval that goes on beyond the picture has an arrow.
"""

import io
import itertools
import math
import re
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from beam_dp.results.plain_text import plain, width
from beam_dp.results.shown_numbers import ShownNumber

MOST = 30
"""How many partitions are drawn, the largest first."""
MOST_POINTS = 400
MOST_PANELS = 12
_INCHES, _COLUMN = 5.0, 0.087  # the width of a picture, and of one column of text
_LABEL, _TICK = 22, 14  # columns of text
_APART = 0.8  # inches between two ticks, at least
_ROW = 0.26
_INK, _FILL, _GRID, _PAPER = "#1a1f2b", "#c3cddc", "#dfe3ea", "#ffffff"
_SETTINGS = {
    "svg.fonttype": "none",  # text stays text: for readers of screens, and in every script
    "svg.hashsalt": "beam_dp",
    "text.parse_math": False,
    "axes.formatter.useoffset": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Arial"],
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.edgecolor": _INK,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
}
_SHADES = {_INK: "ink", _FILL: "fill", _GRID: "grid", _PAPER: "paper"}
"""What a page calls the shades; a page in the dark has others."""
_BIN = re.compile(r"(?:(\S+) to )?below (\S+)|(\S+) or more")
_PLACEHOLDER = re.compile(r"\[(\d{6})\]")


class ChartPoint(NamedTuple):
    """One number to draw.

    Attributes:
        label: the key.
        number: the number.
    """

    label: str
    number: ShownNumber


class _Labels:
    """Text that is put into a picture when it is drawn."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def add(self, text: str, most: int = _LABEL) -> str:
        """Return what is drawn in the place of a text."""
        self._texts.append(plain(text, most))
        return f"[{len(self._texts) - 1:06}]"

    def filled(self, svg: str) -> str:
        """Return a picture with its text."""
        return _PLACEHOLDER.sub(lambda match: escape(self._texts[int(match[1])]), svg)


def bars(points: Sequence[ChartPoint]) -> str:
    """Return horizontal bars, the largest on top, each with its interval and its number."""
    with matplotlib.rc_context(_SETTINGS):
        return _bars(points)


def _bars(points: Sequence[ChartPoint]) -> str:
    drawn = largest(points)
    labels, size = _Labels(), len(drawn)
    names = [each.label for each in drawn]
    values = [each.number.cells[0] + each.number.mark for each in drawn]
    left = min(_LABEL, max(map(width, map(plain, names)))) * _COLUMN + 0.2
    right = max(map(len, values)) * _COLUMN + 0.2
    figure, axes = _figure(size * _ROW + 0.45, left, right, top=0.05)
    zero = begins_at_zero(drawn)
    low, high = _range([each.number for each in drawn], zero)
    for index, (_, number) in enumerate(drawn):
        mark = _bar if zero else _dot
        mark(axes, size - 1 - index, number, (low, high))
    axes.set_xlim(low, high)
    axes.set_ylim(-0.6, size - 0.4)
    axes.set_yticks(range(size), [labels.add(name) for name in reversed(names)])
    other = axes.twinx()
    other.set_ylim(axes.get_ylim())
    other.set_yticks(range(size), list(reversed(values)))
    for each in (axes, other):
        each.tick_params(axis="y", length=0, pad=8)
    other.spines["left"].set_visible(False)
    if zero:
        axes.axvline(0, color=_INK, linewidth=0.8)
    _numbers(axes, "x")
    return labels.filled(_drawn(figure))


def line(points: Sequence[ChartPoint], positions: Sequence[float]) -> str:
    """Return a line through the numbers in the order of their keys, each with its interval."""
    with matplotlib.rc_context(_SETTINGS):
        return _line(points, positions)


def _line(points: Sequence[ChartPoint], positions: Sequence[float]) -> str:
    ordered = sorted(zip(positions, points, strict=True), key=lambda each: each[0])
    labels = _Labels()
    numbers = [point.number for _, point in ordered]
    low, high = _range(numbers, begins_at_zero(points))
    figure, axes = _figure(2.9, 0.95, 0.15, top=0.1)
    known = [math.nan if each.value is None else each.value for each in numbers]
    axes.plot([at for at, _ in ordered], known, color=_INK, linewidth=0.8)  # broken where none is
    for at, (_, number) in ordered:
        _dot(axes, at, number, (low, high), upright=True)
    axes.set_ylim(low, high)
    marks = [at for at, _ in ordered]
    margin = 0.04 * (marks[-1] - marks[0]) or 0.5
    axes.set_xlim(marks[0] - margin, marks[-1] + margin)
    shown = _some([(at, point.label) for at, point in ordered], len(ordered), 44)
    axes.set_xticks([at for at, _ in shown], [labels.add(text, _TICK) for _, text in shown])
    _numbers(axes, "y")
    return labels.filled(_drawn(figure))


def histogram(panels: Sequence[tuple[str, Sequence[ChartPoint]]]) -> str:
    """Return upright bars for the bins of each partition, on one scale.

    Args:
        panels: for each partition its key and its bins; at most `MOST_PANELS` of them.
    """
    with matplotlib.rc_context(_SETTINGS):
        return _histogram(panels)


def _histogram(panels: Sequence[tuple[str, Sequence[ChartPoint]]]) -> str:
    labels = _Labels()
    across = min(2, len(panels))
    down = math.ceil(len(panels) / across)
    tall = 2.4 if across == 1 else 1.75
    figure = Figure(figsize=(_INCHES, tall * down + 0.1))
    numbers = [number for _, bins in panels for _, number in bins]
    low, high = _range(numbers, zero=True)
    for index, (name, bins) in enumerate(panels):
        axes = figure.add_subplot(down, across, index + 1)
        for at, (_, number) in enumerate(bins):
            _bar(axes, at, number, (low, high), upright=True)
        room = 50 if across == 1 else 24
        shown = _some(_named([label for label, _ in bins]), len(bins) + 0.4, room)
        axes.set_xticks([at for at, _ in shown], [labels.add(text, _TICK) for _, text in shown])
        axes.set_xlim(-0.7, len(bins) - 0.3)
        axes.set_ylim(low, high)
        axes.tick_params(axis="x", length=0)
        if len(panels) > 1:
            axes.set_title(labels.add(name), fontsize=9.5, fontweight="bold", loc="left")
        axes.axhline(0, color=_INK, linewidth=0.8)
        _numbers(axes, "y")
        axes.tick_params(axis="y", labelleft=index % across == 0)
    figure.subplots_adjust(0.13, 0.3 / (tall * down), 0.98, 1 - 0.28 / (tall * down), 0.12, 0.45)
    return labels.filled(_drawn(figure))


def largest(points: Sequence[ChartPoint], most: int = MOST) -> list[ChartPoint]:
    """Return the points with the largest released numbers, which costs nothing: it looks at no
    other number."""
    return sorted(points, key=lambda each: -_or_lowest(each.number.value))[:most]


def _or_lowest(value: float | None) -> float:
    return -math.inf if value is None else value


def _figure(tall: float, left: float, right: float, top: float) -> tuple[Figure, Axes]:
    """Return a picture of a height in inches, with margins in inches."""
    figure = Figure(figsize=(_INCHES, tall))
    bottom = 0.35
    wide, high = 1 - (left + right) / _INCHES, 1 - (bottom + top) / tall
    return figure, figure.add_axes((left / _INCHES, bottom / tall, wide, high))


def _numbers(axes: Axes, side: str) -> None:
    """Give an axis of numbers its ticks and grid."""
    axis = axes.xaxis if side == "x" else axes.yaxis
    room = axes.get_position().width * _INCHES / _APART if side == "x" else 5
    axis.set_major_locator(MaxNLocator(max(1, min(5, int(room)))))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    axes.grid(axis="x" if side == "x" else "y", color=_GRID, linewidth=0.6)
    axes.set_axisbelow(True)


def _tick(value: float) -> str:
    size = abs(value)
    for least, unit, word in ((1e12, 1.0, ""), (1e9, 1e9, " billion"), (1e7, 1e6, " million")):
        if size >= least:
            return f"{value / unit:.4g}{word}"
    return f"{value:,.10g}"


def _range(numbers: Sequence[ShownNumber], zero: bool) -> tuple[float, float]:
    """Return what an axis shows: numbers of use with their intervals, and all other numbers."""
    useful = [each for each in numbers if not each.is_of_little_use] or list(numbers)
    ends = [end for each in useful for end in (each.low, each.high)]
    known = [end for end in (*ends, *(each.value for each in numbers)) if end is not None]
    known += [0.0] if zero or not known else []
    low, high = min(known), max(known)
    margin = 0.03 * (high - low) or 0.5
    return low - margin * (low < 0 or not zero), high + margin


def begins_at_zero(points: Sequence[ChartPoint]) -> bool:
    """Return whether an axis begins at 0: if not, the numbers would stand in its upper half."""
    low, high = _range([each.number for each in points], zero=False)
    return len(points) == 1 or not 0 < high / 2 < low


def _dot(
    axes: Axes,
    at: float,
    number: ShownNumber,
    edges: tuple[float, float],
    upright: bool = False,
) -> None:
    """Draw a number as a dot, and its interval."""
    _interval(axes, at, number, edges, upright)
    if number.value is not None:
        face = _PAPER if number.is_of_little_use else _INK
        position = ([at], [number.value]) if upright else ([number.value], [at])
        style: dict[str, Any] = {"markerfacecolor": face, "markeredgecolor": _INK}
        axes.plot(*position, "o", markersize=4.5, zorder=3, **style)


def _bar(
    axes: Axes,
    at: float,
    number: ShownNumber,
    edges: tuple[float, float],
    upright: bool = False,
) -> None:
    """Draw a bar from 0 to a number, and its interval."""
    if number.value is not None:
        doubtful = number.is_of_little_use
        style: dict[str, Any] = {
            "facecolor": "none" if doubtful else _FILL,
            "edgecolor": _INK,
            "linewidth": 0.8,
            "linestyle": (0, (3, 2)) if doubtful else "solid",
        }
        if upright:
            axes.bar(at, number.value, 0.72, **style)
        else:
            axes.barh(at, number.value, 0.66, **style)
    _interval(axes, at, number, edges, upright)


def _interval(
    axes: Axes, at: float, number: ShownNumber, edges: tuple[float, float], upright: bool
) -> None:
    """Draw what is known of the truth: with caps; with arrows where it goes beyond the picture.

    It is dotted where nothing is known.
    """
    nothing = number.low is None and number.high is None
    if number.value is None or nothing:
        return
    for end, edge, beyond in ((number.low, edges[0], -1), (number.high, edges[1], 1)):
        known = end is not None and edges[0] <= end <= edges[1]
        to = end if known else edge
        span = [number.value, to]
        style: dict[str, Any] = {"color": _INK, "linewidth": 1.1 if known else 0.8, "zorder": 2}
        style["linestyle"] = (0, (1, 2)) if end is None else "solid"
        marks = ("_", "|") if known else (("v", "<") if beyond < 0 else ("^", ">"))
        line = ([at, at], span) if upright else (span, [at, at])
        axes.plot(*line, **style)
        tip = ([at], [to]) if upright else ([to], [at])
        axes.plot(
            *tip,
            marks[0 if upright else 1],
            color=_INK,
            markersize=6 if known else 4,
            clip_on=False,
        )


def _some(
    labels: Sequence[tuple[float, str]], steps: float, columns: int
) -> list[tuple[float, str]]:
    """Return labels at equal steps, as many as stand side by side.

    Args:
        labels: where they stand, and what they say.
        steps: how many of the distances between two labels the axis has.
        columns: how wide it is, in columns of text.
    """
    longest = max(width(plain(text, _TICK)) for _, text in labels)
    step = math.ceil(steps * (longest + 1.2) / columns)
    return list(labels)[:: max(1, step)]


def _named(bins: Sequence[str]) -> list[tuple[float, str]]:
    """Return what stands below bins: the edges between them; their names, if these tell no edges.

    The bins `below 18`, `18 to below 30` and `30 or more` have `less` 18 30 `more`.
    """
    ends = [(match[1] or match[3], match[2]) for match in map(_BIN.fullmatch, bins) if match]
    meet = all(one[1] == other[0] for one, other in itertools.pairwise(ends))
    if len(ends) < len(bins) or not meet:
        return [(float(at), name) for at, name in enumerate(bins)]
    edges = [ends[0][0] or "less", *(high or "more" for _, high in ends)]
    return [(at - 0.5, _short_edge(edge)) for at, edge in enumerate(edges)]


def _short_edge(text: str) -> str:
    return re.sub(r"\d{5,}(?![.\d])", lambda match: _short_number(int(match[0])), text)


def _short_number(number: int) -> str:
    for unit, sign in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= unit:
            return f"{number / unit:.4g}{sign}"
    return str(number)


def _drawn(figure: Figure) -> str:
    """Return a figure as an element that stands in a page."""
    written = io.StringIO()
    FigureCanvasSVG(figure).print_svg(written, metadata={"Date": None, "Creator": None})
    svg = written.getvalue()
    for shade, name in _SHADES.items():
        svg = svg.replace(shade, f"var(--{name}, {shade})")
    return svg[svg.index("<svg") :]
