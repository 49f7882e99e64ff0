"""The metrics that the options ask for, each with what the options choose for it."""

import argparse
import dataclasses
from collections.abc import Collection
from typing import Any

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.search.choose import TWO_PHASE
from beam_dp.transforms.steps.output_rows import plain_name
from pipelines.arguments import forms, spreads

_WITH_SIDE = (dp.Count, dp.Sum, dp.DistinctCount)


def asked(options: argparse.Namespace) -> list[Metric]:
    """Return the metrics with their names, weights, sides, searches, candidates and units.

    Raises:
        ValueError: without a metric, for one name of two, and for options that nothing has.
    """
    found: dict[str, Metric] = {}
    for metric in options.metrics:
        name = plain_name(metric.output)
        if name in found:
            raise ValueError(f"two metrics would be the output column {name!r}: ask for it once")
        found[name] = dataclasses.replace(metric, name=name, **_chosen(name, metric, options))
    if not found:
        raise ValueError("a metric is required: --count, --people_count, --sum COLUMN, ...")
    _check_names("--weights", options.weights, "output columns", found)
    columns = {name for m in found.values() if _has(m, "unit") for name in m.columns}
    _check_names("--unit", options.units, "columns whose numbers are released", columns)
    columns = {name for m in found.values() if _has(m, "lowest") for name in m.columns}
    _check_names("--lowest", options.lowest, "columns of --custom_profile", columns)
    return list(found.values())


def check(options: argparse.Namespace) -> None:
    """Refuse options that no metric of the command line has, and rates of rows without a bound.

    Raises:
        ValueError: with the option, and what it is for.
    """
    if options.one_sided and not any(_has(metric, "search") for metric in options.metrics):
        raise ValueError(
            "--one_sided is for --count, --sum, --distinct, --max, --min, --kth_largest, "
            "--max_frequency, --sum_of_squares and --custom_profile"
        )
    if options.one_sided and options.search == TWO_PHASE:
        raise ValueError(
            "--one_sided and --search two_phase exclude each other: one releases from below, the "
            "other errs to both sides; leave one of the two out"
        )
    if options.search and not any(_takes(metric, options) for metric in options.metrics):
        raise ValueError(
            "--search is for --max, --min, --kth_largest, --max_frequency, --sum_of_squares, "
            "--custom_profile, and with --one_sided for --count, --sum and --distinct"
        )
    spreads.check(options, options.metrics)
    _check_grids(options)
    _check_ratios(options)


def _check_grids(options: argparse.Namespace) -> None:
    names = [name for name, _ in options.grids]
    if len(set(names)) < len(names):
        raise ValueError("--candidates must be given once for an output column")
    outputs = {plain_name(m.output) for m in options.metrics if _has(m, "candidates")}
    _check_names("--candidates", names, "output columns that can have them", outputs)
    for metric in options.metrics:
        name = plain_name(metric.output)
        if vars(metric).get("candidates") is forms.NO_CANDIDATES and name not in names:
            raise ValueError(
                f"--candidates {name}=LOW:HIGH:STEP must be given for --custom_profile: nothing is "
                f"known of the statistic; add for example --candidates {name}=0:100000:10"
            )


def _check_ratios(options: argparse.Namespace) -> None:
    ratios = [metric for metric in options.metrics if isinstance(metric, dp.Ratio)]
    if options.method and not ratios:
        raise ValueError("--method is for --ratio")
    of_rows = any(metric.per == "row" for metric in ratios) and not _two_owners(options)
    if of_rows and options.max_rows_per_partition is None:
        raise ValueError(
            "--max_rows_per_partition must be given where --ratio counts every row: add "
            "--max_rows_per_partition 10, or count people: --ratio COLUMN:person"
        )


def _check_names(flag: str, given: Collection[str], kind: str, known: Collection[str]) -> None:
    for name in sorted(given):
        if name not in known:
            which = ", ".join(sorted(known)) or "there are none"
            raise ValueError(f"{flag}: {name!r} is none of the {kind}: {which}")


def _chosen(name: str, metric: Metric, options: argparse.Namespace) -> dict[str, Any]:
    """Return what the options choose for a metric, as its parameters."""
    chosen: dict[str, Any] = {"weight": options.weights.get(name, 1)}
    if isinstance(metric, _WITH_SIDE):
        searched = _is_distinct_of_two(metric, options) and options.search != TWO_PHASE
        chosen["one_sided"] = options.one_sided or searched
    if _is_searched(metric, options) and (options.search or options.one_sided):
        chosen["search"] = options.search or dp.AboveThreshold
    if name in dict(options.grids):
        chosen["candidates"] = dict(options.grids)[name]
    if _has(metric, "unit"):
        [column] = metric.columns
        chosen["unit"] = options.units.get(column, vars(metric)["unit"])
    if isinstance(metric, dp.CustomProfile):
        chosen["lowest"] = options.lowest.get(metric.column, metric.lowest)
    if isinstance(metric, dp.Ratio) and options.method:
        chosen["method"] = options.method
    return {**chosen, **spreads.options_of(metric, options)}


def _has(metric: Metric, option: str) -> bool:
    return option in vars(metric)


def _is_searched(metric: Metric, options: argparse.Namespace) -> bool:
    from_below = options.one_sided or _is_distinct_of_two(metric, options)
    return _has(metric, "search") and (from_below or not isinstance(metric, _WITH_SIDE))


def _takes(metric: Metric, options: argparse.Namespace) -> bool:
    by_default = options.search == TWO_PHASE and isinstance(metric, _WITH_SIDE)
    return by_default or _is_searched(metric, options)


def _is_distinct_of_two(metric: Metric, options: argparse.Namespace) -> bool:
    return isinstance(metric, dp.DistinctCount) and _two_owners(options)


def _two_owners(options: argparse.Namespace) -> bool:
    return len(options.person) > 1
