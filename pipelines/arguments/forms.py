"""How the word of an option becomes a metric, where it is more than the name of a column."""

import argparse
import dataclasses
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.transforms.steps.output_rows import plain_name
from pipelines.arguments import words

PER = ("row", "person")
NO_CANDIDATES = dp.Candidates.of([0])
"""What stands for candidates that an option of its own gives; known by its identity."""
_NUMBER = re.compile(r":[-+.e0-9]+$")
_TRUTH = {"true": "1", "false": "0"}
_PAIRS = (
    "COLUMN, or COLUMN:N with the most people of a partition, at most 6324, to take pairs of people"
)
_TRIM = "COLUMN, or COLUMN:SHARE with a share below 0.5 that is left out at each end: minutes:0.05"
_RATIO = "COLUMN, or COLUMN=VALUE with the value that counts: clicked, device=mobile"


def compared(text: str) -> str:
    """Return the value that a column is compared with, as files write it."""
    return _TRUTH.get(text.lower(), text)


def counted(made: Callable[..., Metric], read: Callable[[str], Any]) -> Callable[[str], Metric]:
    """Return the reader of a metric whose word may end in :row or :person.

    What is not the default of the metric becomes part of its name, so that both can be asked for.

    Args:
        made: the metric of what is read, with the option `per`.
        read: how the word without its end is read.
    """

    def reader(text: str) -> Metric:
        word, colon, per = text.rpartition(":")
        if not colon or per not in PER:
            return made(read(text))
        plain, metric = made(read(word)), made(read(word), per=per)
        if metric == plain:
            return plain
        return dataclasses.replace(metric, name=f"{plain.output}_per_{per}")

    return reader


def kth_largest(text: str) -> Metric:
    """Return the metric of COLUMN:K."""
    column, k = words.rank(text)
    return dp.KthLargest(column, int(k))


def quantile(of: tuple[str, Fraction], **options: str) -> Metric:
    """Return the quantile of a column and a share."""
    return dp.Quantile(*of, **options)


def sum_of_squares(text: str) -> Metric:
    """Return the metric of COLUMN, by items, or of COLUMN:PEOPLE, by pairs."""
    column, colon, people = text.rpartition(":")
    if not colon or not people.isdigit():
        return dp.SumOfSquares(words.column(text))
    try:
        pairs = dp.SumOfSquares(column, relaxation="pairs", people=int(people))
        return dataclasses.replace(pairs, name=f"{pairs.output}_by_pairs")
    except (TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"must be {_PAIRS}, not {text!r}") from error


def custom_profile(text: str) -> dp.CustomProfile:
    """Return the metric of COLUMN=MODULE:NAME, to which `chosen` gives what else it needs."""
    column, profile = words.function_of_column(text)
    return dp.CustomProfile(column, profile, candidates=NO_CANDIDATES)


def black_box(text: str) -> dp.BlackBox:
    """Return the metric of COLUMN=MODULE:NAME."""
    return dp.BlackBox(*words.function_of_column(text))


def trimmed_mean(text: str) -> dp.TrimmedMean:
    """Return the metric of COLUMN, or of COLUMN:SHARE."""
    if not _NUMBER.search(text):
        return dp.TrimmedMean(words.column(text))
    name, share = words.of_column(_TRIM, lambda share: 0 < share < Fraction(1, 2))(text)
    return dp.TrimmedMean(name, trim=share, name=f"trimmed_mean_{plain_name(text)}")


def ratio(text: str, per: str = "row") -> Metric:
    """Return the metric of COLUMN, or of COLUMN=VALUE, whose name has the value."""
    column, equals, value = text.partition("=")
    words.require(bool(column) and bool(value or not equals), _RATIO, text)
    if not equals:
        return dp.Ratio(column, equals="1", per=per)
    name = f"ratio_{column}_{value}"
    return dp.Ratio(column, equals=compared(value), per=per, name=name)
