"""Options that say what is released."""

import argparse
import dataclasses
import functools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import beam_dp as dp
from beam_dp.mechanisms.metrics import Metric, SearchKind
from beam_dp.transforms.rows import plain_name
from pipelines.arguments import words


def _kth_largest(of: tuple[str, Fraction]) -> Metric:
    return dp.KthLargest(of[0], int(of[1]))


def _quantile(of: tuple[str, Fraction]) -> Metric:
    return dp.Quantile(*of)


_PLAIN = {
    "count": (dp.Count, "number of rows"),
    "people_count": (dp.PeopleCount, "number of people"),
}
_OF_A_COLUMN: dict[str, tuple[Callable[[Any], Metric], str]] = {
    "sum": (dp.Sum, "sum of a column, clipped at a privately chosen bound"),
    "max": (dp.Max, "value that nearly nobody exceeds"),
    "min": (dp.Min, "value that nearly nobody is below"),
    "mean": (dp.Mean, "mean of a column over rows"),
    "kth_largest": (_kth_largest, "K-th largest value of all rows, from below"),
    "quantile": (_quantile, "value with a share P of the rows at or below, each person once"),
    "median": (dp.Median, "the quantile with P = 0.5"),
    "distinct": (dp.DistinctCount, "number of different values of a column"),
    "max_frequency": (dp.MaxFrequency, "rows of the most frequent value, from below"),
    "sum_of_squares": (dp.SumOfSquares, "sum of squared rows over all values, from below"),
}
# How the word of an option is read where it is more than the name of a column.
_WORDS: dict[str, tuple[Callable[[str], Any], str]] = {
    "kth_largest": (words.rank, "COLUMN:K"),
    "quantile": (words.share, "COLUMN:P"),
}
_MONOTONE = (
    *("count", "sum", "max", "min"),
    *("kth_largest", "distinct", "max_frequency", "sum_of_squares"),
)
_TWO_SIDED = (dp.Count, dp.Sum, dp.DistinctCount)
_OUTPUTS = "the values that may be released, public: LOW below HIGH, STEP above 0, like 0:1440:1"

SEARCHES: dict[str, SearchKind] = {
    "auto": "auto",
    "above_threshold": dp.AboveThreshold,
    "exponential": dp.ExponentialMechanism,
    "binary": dp.NoisyBinarySearch,
    "scale_then_choose": dp.ScaleThenChoose,
}


def add(made: argparse.ArgumentParser) -> None:
    """Add --count and all other metrics, --one_sided, --search and --weights."""
    metrics = made.add_argument_group("metrics: as many as wanted, in the order of the output")
    _add(metrics.add_argument, (*_PLAIN, *_OF_A_COLUMN))
    one_sided = (
        "release counts, sums and distinct counts from below: not above the truth but for 5%%"
    )
    metrics.add_argument("--one_sided", action="store_true", help=one_sided)
    # The parts of a budget that is shared out have no delta, which the last one needs.
    _add_search(metrics, list(SEARCHES)[:-1])
    shares = "parts of the budget, by output column: sum_spent=2,count=1 (default 1)"
    metrics.add_argument("--weights", type=words.weights, default={}, help=shares)


def add_statistic(made: argparse.ArgumentParser) -> None:
    """Add the options that name one monotone statistic, its possible outputs, and the search."""
    group = made.add_argument_group("statistic: one of")
    one = group.add_mutually_exclusive_group(required=True)
    _add(one.add_argument, _MONOTONE)
    outputs = {"type": candidates, "metavar": "LOW:HIGH:STEP", "help": _OUTPUTS}
    group.add_argument("--candidates", required=True, **outputs)
    _add_search(group, list(SEARCHES))
    made.set_defaults(weights={}, one_sided=True)


def _add(argument: Callable[..., argparse.Action], names: Sequence[str]) -> None:
    into = functools.partial(argument, dest="metrics", default=[])
    for name in names:
        if name in _PLAIN:
            metric, help_ = _PLAIN[name]
            into(f"--{name}", action="append_const", const=metric(), help=help_)
        else:
            made, help_ = _OF_A_COLUMN[name]
            read, form = _WORDS.get(name, (words.column, "COLUMN"))
            into(f"--{name}", action="append", type=_of(made, read), metavar=form, help=help_)


def _of(made: Callable[[Any], Metric], read: Callable[[str], Any]) -> Callable[[str], Metric]:
    return lambda text: made(read(text))


def _add_search(group: argparse._ArgumentGroup, names: Sequence[str]) -> None:
    help_ = "how what is released from below is searched; auto: by the smallest proved shift T"
    group.add_argument("--search", choices=names, help=f"{help_} (default above_threshold)")


def candidates(text: str) -> dp.Candidates:
    """Return the possible outputs in LOW:HIGH:STEP."""
    exact = words.number("LOW:HIGH:STEP, like 0:1440:1", lambda value: True)
    try:
        low, high, step = map(exact, text.split(":"))
        return dp.Candidates.linear(low, high, step)
    except (argparse.ArgumentTypeError, ValueError) as error:
        rule = "LOW:HIGH:STEP with LOW below HIGH and a STEP above 0, like 0:1440:1"
        raise argparse.ArgumentTypeError(f"must be {rule}, not {text!r}") from error


def asked(options: argparse.Namespace) -> list[Metric]:
    """Return the metrics with their names, sides, searches and weights."""
    left, found = dict(options.weights), {}
    for metric in options.metrics:
        name = plain_name(metric.output)
        if name in found:
            raise ValueError(f"two metrics would be the output column {name!r}: ask for it once")
        weight, chosen = left.pop(name, 1), _chosen(metric, options)
        found[name] = dataclasses.replace(metric, name=name, weight=weight, **chosen)
    if not found:
        raise ValueError("a metric is required: --count, --people_count, --sum COLUMN, ...")
    if left:
        names = ", ".join(found)
        raise ValueError(f"--weights: {min(left)!r} is none of the output columns {names}")
    if options.search and not any(_is_searched(metric, options) for metric in options.metrics):
        raise ValueError(
            "--search is for what is released from below: --max, --min, --kth_largest, "
            "--max_frequency, --sum_of_squares, and with --one_sided --count, --sum and --distinct"
        )
    return list(found.values())


def _chosen(metric: Metric, options: argparse.Namespace) -> dict[str, Any]:
    """Return the side and the search of a metric that has them."""
    one_sided = options.one_sided or _two_owners(options)
    sides = {"one_sided": one_sided} if isinstance(metric, _TWO_SIDED) else {}
    if not options.search or not _is_searched(metric, options):
        return sides
    return {**sides, "search": SEARCHES[options.search]}


def _is_searched(metric: Metric, options: argparse.Namespace) -> bool:
    from_below = _two_owners(options) or options.one_sided or not isinstance(metric, _TWO_SIDED)
    return "search" in vars(metric) and from_below


def _two_owners(options: argparse.Namespace) -> bool:
    return len(options.person) > 1
