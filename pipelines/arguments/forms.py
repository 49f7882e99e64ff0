"""Read the word after the flag of a metric, by the form that the metric states."""

import argparse
import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.transforms.io.read_rows import ReadRows
from beam_dp.transforms.public.public_partitions import cells_of
from pipelines.arguments import language, words

Words = tuple[str, dict[str, Any]]
"""A column, and the other words of a form by their names."""

PER = ("row", "person")
_PER = re.compile(rf"\[:({'|'.join(PER)})\]$")
_NUMBER = re.compile(r":[-+.e0-9]+$")
_TRIM = "COLUMN, or COLUMN:SHARE with a share below 0.5 that is left out at each end: minutes:0.05"
_SHARES = "COLUMN:P:P... with every P above 0 and below 1, like minutes:0.25:0.5:0.75"
_EDGES = (
    "COLUMN:EDGE:EDGE... with two or more rising numbers (or inf), like age:0:18:30:65:inf, or "
    "LOW..HIGH..STEP, like age:0..100..10:inf, or a file of edges with that column: age:@edges.csv"
)
_MOST_EDGES = 10_000
_EQUALS = "COLUMN, or COLUMN=VALUE with the value that counts: clicked, device=mobile"


def plain_form(form: str) -> str:
    """Return a form without its end [:row] or [:person]."""
    return _PER.sub("", form)


def reader(kind: type[Metric], form: str) -> Callable[[str], Metric]:
    """Return the reader of the word after the flag of a metric.

    Args:
        kind: the metric.
        form: one of `_FORMS`, like "COLUMN:K"; with the end "[:row]" or "[:person]" the word may
            end so.
    """
    read = _FORMS[plain_form(form)]

    def plain(text: str, **options: str) -> Metric:
        column, given = read(text)
        try:
            return kind.from_command(column, **given, **options)
        except (TypeError, ValueError) as error:
            rule = _RULES.get(form, form)
            raise argparse.ArgumentTypeError(f"must be {rule}, not {text!r}") from error

    return _counted(plain) if _PER.search(form) else plain


def _counted(made: Callable[..., Metric]) -> Callable[[str], Metric]:
    """Return the reader of a metric whose word may end in :row or :person."""

    def read(text: str) -> Metric:
        word, colon, per = text.rpartition(":")
        return made(word, per=per) if colon and per in PER else made(text)

    return read


def _column(text: str) -> Words:
    return words.column(text), {}


def _rank(text: str) -> Words:
    column, k = words.rank(text)
    return column, {"k": int(k)}


def _share(text: str) -> Words:
    column, p = words.share(text)
    return column, {"p": p}


def _shares(text: str) -> Words:
    column, shares = text, []
    while match := _NUMBER.search(column):
        column, share = column[: match.start()], column[match.start() + 1 :]
        shares.append(words.number(_SHARES, lambda p: 0 < p < 1)(share))
    words.require(bool(column and shares), _SHARES, text)
    return column, {"shares": tuple(shares)}


def _edges(text: str) -> Words:
    column, *edges = text.split(":")
    if len(edges) == 1 and edges[0].startswith("@"):
        return words.column(column), {"edges": _edges_in(edges[0][1:], column)}
    listed = [edge for word in edges for edge in _range(word)]
    words.require(len(listed) > 1, _EDGES, text)
    return words.column(column), {"edges": listed}


def _range(word: str) -> list[Fraction | float]:
    """Return the edges of a word: one number, or all of LOW..HIGH..STEP."""
    ends: dict[str, float] = {"inf": math.inf, "-inf": -math.inf}
    read = words.number(_EDGES, lambda edge: True)
    low, *rest = (ends[each] if each in ends else read(each) for each in word.split(".."))
    if not rest:
        return [low]
    words.require(len(rest) == 2 and not {low, *rest} & {*ends.values()}, _EDGES, word)
    first, high, step = Fraction(low), Fraction(rest[0]), Fraction(rest[1])
    count = math.floor((high - first) / step) if step > 0 else 0
    words.require(1 <= count <= _MOST_EDGES, _EDGES, word)
    return [first + step * number for number in range(count + 1)]


def _edges_in(path: str, column: str) -> list[float]:
    """Return the edges in a file: its numbers in the column of that name, which are public."""
    try:
        read = ReadRows(path, [column], [column])
        cells = [cell for element in read.here() for cell in cells_of(element, column)]
    except (OSError, TypeError, ValueError) as error:
        why = language.of_file(error)
        raise argparse.ArgumentTypeError(f"cannot read edges: {why}") from error
    return [float(str(cell)) for cell in cells if cell is not None]


def _trim(text: str) -> Words:
    if not _NUMBER.search(text):
        return _column(text)
    words.of_column(_TRIM, lambda share: 0 < share < Fraction(1, 2))(text)
    column, _, share = text.rpartition(":")
    return column, {"share": share}


def _function(text: str) -> Words:
    column, function = words.function_of_column(text)
    return column, {"function": function}


def _value(text: str) -> Words:
    column, equals, value = text.partition("=")
    words.require(bool(column) and bool(value or not equals), _EQUALS, text)
    return column, {"value": value} if equals else {}


_FORMS: dict[str, Callable[[str], Words]] = {
    "COLUMN": _column,
    "COLUMN:K": _rank,
    "COLUMN:P": _share,
    "COLUMN:P:P...": _shares,
    "COLUMN:EDGE:EDGE...": _edges,
    "COLUMN[:SHARE]": _trim,
    "COLUMN=MODULE:NAME": _function,
    "COLUMN[=VALUE]": _value,
}
_RULES = {"COLUMN:EDGE:EDGE...": _EDGES}
