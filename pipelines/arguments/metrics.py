"""Options that say what is released."""

import argparse
import functools
from collections.abc import Callable, Mapping, Sequence

import beam_dp as dp
from beam_dp.mechanisms import ratio
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.search.choose import SearchKind
from pipelines.arguments import forms, spreads, words

Reader = Callable[[str], Metric]


def _of(made: Callable[[str], Metric]) -> Reader:
    return lambda text: made(words.column(text))


_PLAIN = {
    "count": (dp.Count, "number of rows"),
    "people_count": (dp.PeopleCount, "number of people"),
}
_MEANS = forms.counted(dp.Mean, words.column)
_MEDIANS = forms.counted(dp.Median, words.column)
_QUANTILES = forms.counted(forms.quantile, words.share)
_RATIOS = forms.counted(forms.ratio, str)
_CUSTOM = (
    "a monotone statistic of your own, by the Python function of its removal profile, whose module "
    "must be installed on the workers"
)
_OF_A_COLUMN: dict[str, tuple[Reader, str, str]] = {
    "sum": (_of(dp.Sum), "COLUMN", "sum of a column, clipped at a privately chosen bound"),
    "max": (_of(dp.Max), "COLUMN", "largest value of a column"),
    "min": (_of(dp.Min), "COLUMN", "smallest value of a column"),
    "mean": (_MEANS, "COLUMN[:person]", "mean of a column over rows; or over people's totals"),
    "kth_largest": (forms.kth_largest, "COLUMN:K", "K-th largest value of all rows"),
    "quantile": (
        _QUANTILES,
        "COLUMN:P[:row]",
        "value with a share P of the rows at or below, each person once; or each row",
    ),
    "median": (_MEDIANS, "COLUMN[:row]", "the quantile with P = 0.5"),
    "distinct": (_of(dp.DistinctCount), "COLUMN", "number of different values of a column"),
    "max_frequency": (
        _of(dp.MaxFrequency),
        "COLUMN",
        "rows of the most frequent value",
    ),
    "sum_of_squares": (
        forms.sum_of_squares,
        "COLUMN[:PEOPLE]",
        "sum of squared rows over all values; by pairs of the PEOPLE at most",
    ),
    "custom_profile": (
        forms.custom_profile,
        "COLUMN=MODULE:NAME",
        f"{_CUSTOM}; needs --candidates",
    ),
    "ratio": (
        _RATIOS,
        "COLUMN[=VALUE][:person]",
        "share of the rows with VALUE (default 1), which needs --max_rows_per_partition; of people",
    ),
    "variance": (_of(dp.Variance), "COLUMN", "variance of one number per person"),
    "standard_deviation": (_of(dp.StandardDeviation), "COLUMN", "the root of the variance"),
    "trimmed_mean": (
        forms.trimmed_mean,
        "COLUMN[:SHARE]",
        "mean without a tenth, or SHARE, each end",
    ),
}
_MONOTONE = (
    *("count", "sum", "max", "min"),
    *("kth_largest", "distinct", "max_frequency", "sum_of_squares"),
    "custom_profile",
)
_FROM_BELOW = {
    "count": "number of rows, from below",
    "sum": "sum of a column, from below; people whose total is below 0 count as 0",
    "distinct": "number of different values of a column, from below",
    "custom_profile": _CUSTOM,
}
_OUTPUTS = "LOW below HIGH, STEP above 0, like 0:1440:1, or xRATIO with LOW above 0, like 1:1e6:x2"

SEARCHES: dict[str, SearchKind] = {
    "auto": "auto",
    "above_threshold": dp.AboveThreshold,
    "exponential": dp.ExponentialMechanism,
    "binary": dp.NoisyBinarySearch,
    "scale_then_choose": dp.ScaleThenChoose,
}
WAYS: dict[str, SearchKind] = {**SEARCHES, "two_phase": "two-phase"}
"""The searches, and the way that is none: clip and noise in one transform."""


def add(made: argparse.ArgumentParser) -> None:
    """Add --count and all other metrics, and the options that say how they are released."""
    metrics = made.add_argument_group("metrics: as many as wanted, in the order of the output")
    _add(metrics.add_argument, (*_PLAIN, *_OF_A_COLUMN), says={})
    how = made.add_argument_group("how they are released")
    one_sided = (
        "release from below what can be: not above the truth but for 5%%, and further from it"
    )
    how.add_argument("--one_sided", action="store_true", help=one_sided)
    _add_search(how, WAYS)
    clips = f"possible outputs, or clips, of an output column, public; may be repeated: {_OUTPUTS}"
    form = {"type": grid, "metavar": "NAME=LOW:HIGH:STEP", "help": clips}
    how.add_argument("--candidates", action="append", default=[], dest="grids", **form)
    _add_unit(how)
    _add_lowest(how)
    method = f"how a ratio is drawn (default {ratio.METHODS[1]}); auto: the better one, by --delta"
    how.add_argument("--method", choices=ratio.METHODS, help=method)
    spreads.add(how)
    shares = "parts of the budget, by output column: sum_spent=2,count=1 (default 1)"
    how.add_argument("--weights", type=words.weights, default={}, help=shares)


def add_statistic(made: argparse.ArgumentParser) -> None:
    """Add the options that name one monotone statistic, its possible outputs, and the search."""
    group = made.add_argument_group("statistic: one of")
    one = group.add_mutually_exclusive_group(required=True)
    _add(one.add_argument, _MONOTONE, _FROM_BELOW)
    outputs = f"the values that may be released, public: {_OUTPUTS}"
    form = {"type": candidates, "metavar": "LOW:HIGH:STEP", "help": outputs}
    group.add_argument("--candidates", required=True, **form)
    _add_search(group, SEARCHES)
    _add_unit(group)
    _add_lowest(group)
    made.set_defaults(weights={}, one_sided=True, grids=[])


def _add(
    argument: Callable[..., argparse.Action], names: Sequence[str], says: Mapping[str, str]
) -> None:
    """Add the metrics; `says`: what is said of some of them instead of the usual."""
    into = functools.partial(argument, dest="metrics", default=[])
    for name in names:
        if name in _PLAIN:
            metric, usual = _PLAIN[name]
            form = {"action": "append_const", "const": metric()}
        else:
            read, place, usual = _OF_A_COLUMN[name]
            form = {"action": "append", "type": read, "metavar": place}
        into(f"--{name}", help=says.get(name, usual), **form)


def _add_search(group: argparse._ArgumentGroup, ways: Mapping[str, SearchKind]) -> None:
    help_ = "how a release from below is searched; auto: by the smallest proved shift T"
    if ways is WAYS:
        help_ += "; two_phase: a private clip and noise, the default"
    kind = functools.partial(search, ways=ways)
    form = {"type": kind, "metavar": "NAME", "help": f"{help_} ({', '.join(ways)})"}
    group.add_argument("--search", **form)


def _add_unit(group: argparse._ArgumentGroup) -> None:
    grid_ = "the grid of a column's values: spent=0.01,minutes=1 (default 0.000001)"
    form = {"type": words.units, "metavar": "COLUMN=UNIT", "default": {}}
    group.add_argument("--unit", dest="units", help=grid_, **form)


def _add_lowest(group: argparse._ArgumentGroup) -> None:
    nobody = "the statistic of nobody, for --custom_profile: minutes=0 (default: below everything)"
    form = {"type": words.lowest, "metavar": "COLUMN=VALUE", "default": {}}
    group.add_argument("--lowest", **form, help=nobody)


def search(text: str, ways: Mapping[str, SearchKind] = WAYS) -> SearchKind:
    """Return the search of this name."""
    rule = f"one of {', '.join(ways)}"
    if text == "unbounded":
        rule += " (an unbounded search is not for jobs: its shift T is known with the answer only)"
    words.require(text in ways, rule, text)
    return ways[text]


def candidates(text: str) -> dp.Candidates:
    """Return the possible outputs in LOW:HIGH:STEP or LOW:HIGH:xRATIO."""
    exact = words.number("LOW:HIGH:STEP, like 0:1440:1", lambda value: True)
    try:
        low, high, step = text.split(":")
        if step.startswith("x"):
            return dp.Candidates.geometric(exact(low), exact(high), exact(step[1:]))
        return dp.Candidates.linear(exact(low), exact(high), exact(step))
    except (argparse.ArgumentTypeError, ValueError) as error:
        rule = (
            "LOW:HIGH:STEP with LOW below HIGH and a STEP above 0, like 0:1440:1 (or "
            "LOW:HIGH:xRATIO with LOW above 0 and a RATIO above 1, like 1:1000000:x2)"
        )
        raise argparse.ArgumentTypeError(f"must be {rule}, not {text!r}") from error


def grid(text: str) -> tuple[str, dp.Candidates]:
    """Return an output column and its candidates, in NAME=LOW:HIGH:STEP."""
    name, equals, outputs = text.rpartition("=")
    rule = "an output column and its candidates, like max_minutes=0:1440:1"
    words.require(bool(name and equals), rule, text)
    return name, candidates(outputs)
