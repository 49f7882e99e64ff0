"""Complete the metrics of the command line with the other options: names, weights, searches."""

import argparse
import dataclasses
from collections.abc import Collection
from typing import Any

import beam_dp as dp
from beam_dp.mechanisms.bounding.columns import Role, with_role
from beam_dp.mechanisms.metrics.base import Metric, takes
from beam_dp.mechanisms.metrics.own_function import NO_CANDIDATES
from beam_dp.mechanisms.metrics.ratio import CLIP
from beam_dp.mechanisms.search.choose import TWO_PHASE
from beam_dp.transforms.steps.output_rows import shown_name
from pipelines.arguments import spreads
from pipelines.arguments.metrics import flags_of


def asked(options: argparse.Namespace) -> list[Metric]:
    """Return the metrics with their names, weights, sides, searches, candidates and units.

    Raises:
        ValueError: without a metric, for two metrics of one name, and for options that no metric
            has.
    """
    metrics: dict[str, Metric] = {}
    for metric in options.metrics:
        name = shown_name(metric)
        if name in metrics:
            raise ValueError(f"two metrics would be the output column {name!r}: ask for it once")
        metrics[name] = metric
    if not metrics:
        raise ValueError("a metric is required: --count, --people_count, --sum COLUMN, ...")
    _check_names("--weight", options.weight, "output columns", metrics)
    for flag, given in (("clip", options.clip), ("low", options.low), ("high", options.high)):
        known = {name for name, metric in metrics.items() if takes(metric, flag)}
        _check_names(f"--{flag}", given, "output columns that have one", known)
    for flag, given, kind in (
        ("unit", options.unit, "columns whose numbers are released"),
        ("lowest", options.lowest, "columns of --custom_profile"),
    ):
        columns = {name for m in metrics.values() if takes(m, flag) for name in _names(m)}
        _check_names(f"--{flag}", given, kind, columns)
    return [
        dataclasses.replace(metric, name=name, **_chosen(name, metric, options))
        for name, metric in metrics.items()
    ]


def check(options: argparse.Namespace) -> None:
    """Refuse options that no metric of the command line has, and ratios of rows without a bound.

    Raises:
        ValueError: names the option, and says what it is for.
    """
    if options.one_sided and not any(takes(metric, "search") for metric in options.metrics):
        raise ValueError(f"--one_sided is for {flags_of(lambda kind: takes(kind, 'search'))}")
    if options.one_sided and options.search == TWO_PHASE:
        raise ValueError(
            "--one_sided and --search two_phase exclude each other: one is one-sided, the other "
            "errs to both sides; leave one of the two out"
        )
    if options.search and not any(_takes(metric, options) for metric in options.metrics):
        raise ValueError(
            f"--search is for {flags_of(_searched_by_default)}, and with --one_sided for "
            f"{flags_of(lambda kind: takes(kind, 'one_sided'))}"
        )
    if options.own_count and not any(takes(metric, "own_count") for metric in options.metrics):
        raise ValueError("--own_count is for --mean")
    spreads.check(options, options.metrics)
    _check_grids(options)
    _check_ratios(options)


def _check_grids(options: argparse.Namespace) -> None:
    names = [name for name, _ in options.grids]
    if len(set(names)) < len(names):
        raise ValueError("--candidates must be given once for an output column")
    outputs = {shown_name(m) for m in options.metrics if takes(m, "candidates")}
    _check_names("--candidates", names, "output columns that can have them", outputs)
    for metric in options.metrics:
        name = shown_name(metric)
        if vars(metric).get("candidates") is NO_CANDIDATES and name not in names:
            raise ValueError(
                f"--candidates {name}=LOW:HIGH:STEP must be given for --custom_profile: nothing is "
                f"known of the statistic; add for example --candidates {name}=0:100000:10"
            )


def _check_ratios(options: argparse.Namespace) -> None:
    ratios = [metric for metric in options.metrics if takes(metric, "neighbours")]
    if options.method and not ratios:
        raise ValueError("--method is for --ratio")
    bounded = options.method not in (None, CLIP) and not _several_owners(options)
    of_rows = any(vars(metric)["per"] == "row" for metric in ratios)
    if bounded and of_rows and "rows_per_partition" not in options.bounds:
        raise ValueError(
            f"--bounds rows_per_partition must be given for --ratio by --method {options.method}: "
            "add --bounds rows_per_partition=10, or leave out --method"
        )


def _check_names(flag: str, given: Collection[str], kind: str, known: Collection[str]) -> None:
    for name in sorted(given):
        if name not in known:
            which = ", ".join(sorted(known)) or "there are none"
            raise ValueError(f"{flag}: {name!r} is none of the {kind}: {which}")


def _chosen(name: str, metric: Metric, options: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of a metric that the options choose."""
    chosen: dict[str, Any] = {"weight": options.weight.get(name, 1)}
    if takes(metric, "one_sided"):
        searched = _is_below_for_several(metric, options) and options.search != TWO_PHASE
        chosen["one_sided"] = options.one_sided or searched
    if _is_searched(metric, options) and (options.search or options.one_sided):
        chosen["search"] = options.search or dp.AboveThreshold
    if name in dict(options.grids):
        chosen["candidates"] = dict(options.grids)[name]
    if name in options.clip:
        chosen["clip"] = options.clip[name]
    if takes(metric, "low"):
        ends = (("low", options.low), ("high", options.high))
        chosen.update((end, bounds[name]) for end, bounds in ends if name in bounds)
    if takes(metric, "unit"):
        [column] = _names(metric)
        chosen["unit"] = options.unit.get(column, vars(metric)["unit"])
    if takes(metric, "lowest"):
        chosen["lowest"] = options.lowest.get(_names(metric)[0], vars(metric)["lowest"])
    if takes(metric, "own_count"):
        chosen["own_count"] = options.own_count
    if takes(metric, "neighbours") and options.method:
        chosen["method"] = options.method
    return {**chosen, **spreads.options_of(metric, options)}


def _searched_by_default(kind: type[Metric]) -> bool:
    return takes(kind, "search") and not takes(kind, "one_sided")


def _is_searched(metric: Metric, options: argparse.Namespace) -> bool:
    from_below = options.one_sided or _is_below_for_several(metric, options)
    return takes(metric, "search") and (from_below or not takes(metric, "one_sided"))


def _takes(metric: Metric, options: argparse.Namespace) -> bool:
    by_default = options.search == TWO_PHASE and takes(metric, "one_sided")
    return by_default or _is_searched(metric, options)


def _is_below_for_several(metric: Metric, options: argparse.Namespace) -> bool:
    """Return whether a metric of rows with several owners is released from below by default."""
    if not _several_owners(options) or not takes(metric, "one_sided"):
        return False
    return bool(vars(metric.for_several_owners("--person"))["search"] != TWO_PHASE)


def _names(metric: Metric) -> list[str]:
    """Return the columns whose values a metric reads."""
    return [column.name for column in with_role(metric.columns(), Role.VALUE)]


def _several_owners(options: argparse.Namespace) -> bool:
    return len(options.person) > 1
