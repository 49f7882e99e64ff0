"""Options that say what is released."""

import argparse
import dataclasses
import functools
from collections.abc import Callable, Sequence

import beam_dp as dp
from beam_dp.mechanisms.metrics import Metric
from beam_dp.transforms.rows import plain_name
from pipelines.arguments import words

_PLAIN = {
    "count": (dp.Count, "number of rows"),
    "people_count": (dp.PeopleCount, "number of people"),
}
_OF_A_COLUMN = {
    "sum": (dp.Sum, "sum of a column, clipped at a privately chosen bound"),
    "max": (dp.Max, "value that nearly nobody exceeds"),
    "min": (dp.Min, "value that nearly nobody is below"),
    "mean": (dp.Mean, "mean of a column over rows"),
}
_OUTPUTS = "the values that may be released, public: LOW below HIGH, STEP above 0, like 0:1440:1"


def add(made: argparse.ArgumentParser) -> None:
    """Add --count, --people_count, --sum, --max, --min, --mean, --one_sided and --weights."""
    metrics = made.add_argument_group("metrics: as many as wanted, in the order of the output")
    _add(metrics.add_argument, (*_PLAIN, *_OF_A_COLUMN))
    one_sided = "release counts and sums from below: not above the truth but for 5%%"
    metrics.add_argument("--one_sided", action="store_true", help=one_sided)
    shares = "parts of the budget, by output column: sum_spent=2,count=1 (default 1)"
    metrics.add_argument("--weights", type=words.weights, default={}, help=shares)


def add_statistic(made: argparse.ArgumentParser) -> None:
    """Add the options that name one monotone statistic, and its possible outputs."""
    group = made.add_argument_group("statistic: one of")
    one = group.add_mutually_exclusive_group(required=True)
    _add(one.add_argument, ("count", "sum", "max", "min"))
    outputs = {"type": candidates, "metavar": "LOW:HIGH:STEP", "help": _OUTPUTS}
    group.add_argument("--candidates", required=True, **outputs)
    made.set_defaults(weights={}, one_sided=False)


def _add(argument: Callable[..., argparse.Action], names: Sequence[str]) -> None:
    into = functools.partial(argument, dest="metrics", default=[])
    for name in names:
        if name in _PLAIN:
            metric, help_ = _PLAIN[name]
            into(f"--{name}", action="append_const", const=metric(), help=help_)
        else:
            metric, help_ = _OF_A_COLUMN[name]
            into(f"--{name}", action="append", type=_of(metric), metavar="COLUMN", help=help_)


def _of(metric: Callable[[str], Metric]) -> Callable[[str], Metric]:
    return lambda text: metric(words.column(text))


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
    """Return the metrics with their names, sides and weights."""
    left, found = dict(options.weights), {}
    for metric in options.metrics:
        name = plain_name(metric.output)
        if name in found:
            raise ValueError(f"two metrics would be the output column {name!r}: ask for it once")
        sides = {"one_sided": options.one_sided} if isinstance(metric, (dp.Count, dp.Sum)) else {}
        weight = left.pop(name, 1)
        found[name] = dataclasses.replace(metric, name=name, weight=weight, **sides)
    if not found:
        raise ValueError("a metric is required: --count, --people_count, --sum COLUMN, ...")
    if left:
        names = ", ".join(found)
        raise ValueError(f"--weights: {min(left)!r} is none of the output columns {names}")
    return list(found.values())
