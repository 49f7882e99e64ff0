"""A page that shows a released table to readers who did not run the job.

The page is one file of HTML: charts, the table, what was spent, and in words what the numbers
protect. It asks for nothing from the network, and all of it is made of the released table and its
record; what it says stands in `report.html`. Keys and names are hostile text: whatever the template
shows is made plain and escaped, and the page allows no script but its own, by its hash.
"""

import base64
import dataclasses
import functools
import hashlib
import importlib.util
import itertools
import json
import math
import os
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from apache_beam.io.filesystems import FileSystems

from beam_dp.mechanisms.accounting.periods import in_unit
from beam_dp.mechanisms.numerics import checks
from beam_dp.results.shown_numbers import ShownNumber, one_line
from beam_dp.results.view import Series, View, label_of
from beam_dp.text.text_tables import short, shortened
from beam_dp.transforms.io import whole_files
from beam_dp.transforms.run_record import text_of

MOST_ROWS = 5_000
"""How many rows the table of a page has."""
PLAIN = "1,234.5"
"""How numbers are written where nothing else is asked for."""
_STYLE = re.compile(r"1(?P<thousands>[,.' \u00a0\u202f\u2019]?)234(?P<decimal>[.,])5")
_NUMBER = re.compile(r"(?<![\w.,])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?(?!\w|[.,]\d)")
_ENDS = re.compile(r"(\[[^\[\]]+?), (?=[^\[\]]+\])")
MOST_BARS, MOST_PANELS = 60, 12
"""How much one chart draws: of more partitions the largest ones."""
_SUBJECT = "report"
_FOLDER = Path(__file__).parent


def check(
    path: str | os.PathLike[str] | None, number_style: str = PLAIN, overwrite: bool = True
) -> None:
    """Refuse a page that could not be written, before a release that would be paid for."""
    signs = _STYLE.fullmatch(number_style) if isinstance(number_style, str) else None
    rule = f"be 1234.5 with the signs to use, not {checks.shown(number_style)}"
    is_clear = signs is not None and signs["thousands"] != signs["decimal"]
    checks.require(is_clear, _SUBJECT, "number_style", rule, "Write 1.234,5 or 1 234.5.")
    is_there = importlib.util.find_spec("jinja2") is not None
    checks.require(is_there, _SUBJECT, "jinja2", "be installed", "Write: pip install jinja2.")
    if path is not None:
        name = os.fspath(path)
        rule = f"end in .html, not {checks.shown(name)}"
        checks.require(name.endswith(".html"), _SUBJECT, "path", rule, "Write report.html.")
        whole_files.check(_SUBJECT, name)
        rule, hint = f"name a new file, not {name!r}", "Write overwrite=True to replace it."
        checks.require(overwrite or not FileSystems.exists(name), _SUBJECT, "path", rule, hint)


@functools.cache
def _template(number_style: str) -> Any:
    """Return the template of a page, with the filters that it uses."""
    import jinja2  # here, for it comes with an extra
    from markupsafe import Markup, escape

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else one_line(value),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (one_line, short, shortened, rational, amount, text_of)
    environment.filters.update({function.__name__: function for function in filters})
    signs = _STYLE.fullmatch(number_style)
    environment.filters["styled"] = lambda text: Markup(
        styled(text if isinstance(text, Markup) else escape(one_line(text)), signs)
    )
    return environment.get_template("report.html")


def html(view: View, title: str, number_style: str = PLAIN, others: Sequence[View] = ()) -> str:
    """Return the page of a released table."""
    from markupsafe import Markup, escape  # here, for it comes with an extra

    template = _template(number_style)
    script = (_FOLDER / "report.js").read_text(encoding="utf-8")
    record = view.record
    rows = zip(view.keys, *(each.numbers for each in view.series), strict=True)
    page: str = template.render(
        title=title,
        view=view,
        record=record,
        columns=record["columns"],
        parameters=record.get("parameters", {}),
        unit=functools.partial(in_unit, period=view.period),
        figures=_figures(view),
        tree=_tree([view, *others]),
        rows=[(key, cells) for key, *cells in itertools.islice(rows, MOST_ROWS)],
        metric_of={each["label"]: each["metric"] for each in record.get("releases", ())},
        whole_record=Markup(escape(json.dumps(record, indent=1))),
        script=Markup(script),
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    return page


class TreeRow(NamedTuple):
    """A row of a table, with the rows of the next finer table that are parts of it."""

    label: str
    numbers: list[str]
    parts: list["TreeRow"]


def _tree(views: Sequence[View]) -> list[TreeRow]:
    """Return the rows of the coarsest table, with their parts; [] for a table alone.

    Numbers that add up are written with all digits, as a reader adds them up.
    """
    chain: list[View] = []
    for view in sorted(views, key=lambda view: len(view.by)):
        if not chain or {*chain[-1].by} < {*view.by}:
            chain.append(view)
    if len(chain) < 2:
        return []
    nodes: dict[tuple[Any, ...], list[TreeRow]] = {}
    for view, above in zip(reversed(chain), [*reversed(chain[:-1]), None], strict=True):
        here: dict[tuple[Any, ...], list[TreeRow]] = {}
        of = [view.by.index(name) for name in above.by] if above else []
        for at, key in enumerate(view.keys[:MOST_ROWS]):
            own = [str(part) for place, part in enumerate(key) if place not in of]
            numbers = [_exact(series.numbers[at]) for series in view.series]
            node = TreeRow(
                " / ".join(own) or "all rows", numbers, nodes.get(tuple(map(str, key)), [])
            )
            here.setdefault(tuple(str(key[place]) for place in of), []).append(node)
        nodes = here
    return nodes.get((), [])  # HAVING may have left all of the coarsest table out


def _exact(number: ShownNumber) -> str:
    return number.text if number.value is None else f"{number.value:,.15g}"


def styled(text: str, signs: "re.Match[str] | None") -> str:
    """Return a text of this package with its numbers in other signs; no key is in it."""
    if signs is None:
        return text
    changed = str.maketrans({",": signs["thousands"], ".": signs["decimal"]})
    found = _NUMBER.sub(lambda number: number[0].translate(changed), str(text))
    return _ENDS.sub(r"\1; ", found) if signs["decimal"] == "," else found


def rational(text: str | int) -> float:
    """Return a rational of the record as a number."""
    return float(Fraction(text))


def amount(cost: dict[str, Any], times: int = 1) -> str:
    """Return what is spent by something that is done so many times: "epsilon 0.5"."""
    parts = {name: Fraction(cost.get(name, 0)) * times for name in ("epsilon", "rho", "delta")}
    return ", ".join(f"{name} {short(float(part))}" for name, part in parts.items() if part)


@dataclasses.dataclass(frozen=True)
class Figure:
    """A chart with what its words need.

    Attributes:
        name: the output column, or what those of a histogram have in common.
        series: the numbers; of a histogram the first ones.
        label: which of several numbers of the metric it shows; "" for the only one, or for all.
        panels: one part of the chart, or one per partition: its heading, and its numbers, each
            below its key or bin.
        left_out: how many partitions are not drawn.
    """

    name: str
    series: Series
    label: str
    panels: list[tuple[str, list[tuple[str, ShownNumber]]]]
    left_out: int

    @property
    def numbers(self) -> list[ShownNumber]:
        """All numbers that are drawn."""
        return [number for _, bars in self.panels for _, number in bars]

    @functools.cached_property
    def _axis(self) -> tuple[float, float]:
        """What the axis shows: 0, numbers of use with their intervals, and all other numbers."""
        useful = [each for each in self.numbers if not each.is_doubtful] or self.numbers
        ends = [end for each in useful for end in (each.low, each.high)]
        every = (0.0, *ends, *(each.value for each in self.numbers))
        known = [end for end in every if end is not None and math.isfinite(end)]
        return min(known), max(known) if max(known) > min(known) else 1.0

    def place(self, value: float) -> float:
        """Return where a number stands: from 1% to 99%, outside 0% to 100% if beyond the picture."""
        low, high = self._axis
        share = (value / 2 - low / 2) / (high / 2 - low / 2)  # without overflow
        return round(1 + 98 * min(max(share, -1.0), 2.0), 2)


def _figures(view: View) -> list[Figure]:
    """Return bars for the bins of each partition, or for the partitions of each number."""
    keys = list(map(label_of, view.keys))
    figures = []
    for name, group in itertools.groupby(view.series, lambda each: each.metric):
        several = list(group)
        if several[0].kind == "Histogram":
            rows = list(zip(*(each.numbers for each in several), strict=True))
            drawn = _largest([sum(each.value or 0 for each in row) for row in rows], MOST_PANELS)
            bins = [each.label for each in several]
            panels = [(keys[row], list(zip(bins, rows[row], strict=True))) for row in drawn]
            figures.append(Figure(name, several[0], "", panels, len(keys) - len(drawn)))
            continue
        for each in several:
            values = [-math.inf if n.value is None else n.value for n in each.numbers]
            drawn = _largest(values, MOST_BARS)
            if len(keys) > MOST_BARS:  # what is empty takes no place of theirs
                drawn = [row for row in drawn if each.numbers[row].value is not None]
            bars = [(keys[row], each.numbers[row]) for row in drawn]
            left = len(keys) - len(drawn)
            figures.append(Figure(each.name, each, each.label, [("", bars)], left))
    return figures


def _largest(values: Sequence[float], most: int) -> list[int]:
    """Return all rows in the order of the table; or the largest of too many, by their size."""
    if len(values) <= most:
        return list(range(len(values)))
    return sorted(range(len(values)), key=lambda row: -values[row])[:most]
