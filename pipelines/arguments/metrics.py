"""The options of the metrics, and of how they are released."""

import argparse
import functools
from collections.abc import Callable, Mapping
from typing import Any

import beam_dp as dp
from beam_dp.mechanisms import metrics, ratio
from beam_dp.mechanisms.metrics.base import Metric, takes
from beam_dp.mechanisms.metrics.ratio import CLIP
from beam_dp.mechanisms.search.choose import BY_WORD, SearchKind
from pipelines.arguments import forms, spreads, words

_OUTPUTS = "LOW below HIGH, STEP above 0, like 0:1440:1, or xRATIO with LOW above 0, like 1:1e6:x2"

WAYS: dict[str, SearchKind] = {**BY_WORD, "two_phase": "two_phase", "walk": "walk"}
"""The searches; "two_phase", which is none: clip and noise in one transform; "walk" by ranks."""


def add(made: argparse.ArgumentParser) -> None:
    """Add --count and all other metrics, and the options that say how they are released."""
    group = made.add_argument_group("metrics: as many as wanted, in the order of the output")
    _add(group.add_argument, asked_by_flag(lambda kind: True))
    how = made.add_argument_group("how they are released")
    one_sided = (
        "release numbers that are at most the true ones in 95 of 100 releases, and further from "
        "them, of what can be released so"
    )
    how.add_argument("--one_sided", action="store_true", help=one_sided)
    _add_search(how, WAYS)
    clips = f"possible outputs, or clips, of an output column, public; may be repeated: {_OUTPUTS}"
    form: dict[str, Any] = {"type": grid, "metavar": "NAME=LOW:HIGH:STEP", "help": clips}
    how.add_argument("--candidates", action="append", default=[], dest="grids", **form)
    known = (
        "a bound that you know without the data: what nobody exceeds in a partition, by output "
        "column: sum_spent=100,count=10 (default: chosen privately)"
    )
    form = {"type": words.clips, "metavar": "NAME=BOUND", "default": {}, "action": words.Gathered}
    how.add_argument("--clip", help=known, **form)
    _add_bounds(how)
    _add_unit(how)
    _add_lowest(how)
    method = f"how a ratio is drawn (default {CLIP}); others need --bounds rows_per_partition"
    how.add_argument("--method", choices=(CLIP, *ratio.METHODS), help=method)
    own = "means by a count of their own, of rows that have a value, also beside --count"
    how.add_argument("--own_count", action="store_true", help=own)
    spreads.add(how)
    shares = "parts of the budget, by output column: sum_spent=2,count=1 (default 1)"
    how.add_argument("--weight", action=words.Gathered, type=words.weights, default={}, help=shares)


def add_statistic(made: argparse.ArgumentParser) -> None:
    """Add the options that name one monotone statistic, its possible outputs, and the search."""
    group = made.add_argument_group("statistic: one of")
    exclusive = group.add_mutually_exclusive_group(required=True)
    _add(exclusive.add_argument, asked_by_flag(lambda kind: takes(kind, "search")), from_below=True)
    outputs = f"the values that may be released, public: {_OUTPUTS}"
    form: dict[str, Any] = {"type": candidates, "metavar": "LOW:HIGH:STEP", "help": outputs}
    group.add_argument("--candidates", required=True, **form)
    _add_search(group, BY_WORD)
    _add_unit(group)
    _add_lowest(group)
    made.set_defaults(
        weight={}, one_sided=True, own_count=False, grids=[], clip={}, low={}, high={}
    )


def asked_by_flag(suits: Callable[[type[Metric]], bool]) -> dict[str, type[Metric]]:
    """Return the metrics of the library that have a flag and suit, by the name of the flag."""
    known = metrics.REGISTRY.items()
    return {name: kind for name, kind in known if kind.command is not None and suits(kind)}


def flags_of(suits: Callable[[type[Metric]], bool]) -> str:
    """Return the flags of the metrics that suit, for messages."""
    return ", ".join(f"--{name}" for name in asked_by_flag(suits))


def _add(
    argument: Callable[..., argparse.Action],
    kinds: Mapping[str, type[Metric]],
    from_below: bool = False,
) -> None:
    """Add the flags of metrics; `from_below`: with their help for releases from below."""
    into = functools.partial(argument, dest="metrics", default=[])
    for name, kind in kinds.items():
        command = kind.command
        assert command is not None
        says = command.help_from_below if from_below else ""
        form: dict[str, Any]
        if command.form:
            read = forms.reader(kind, command.form)
            form = {"action": "append", "type": read, "metavar": command.form}
        else:
            form = {"action": "append_const", "const": kind()}
        into(f"--{name}", help=says or command.help, **form)


def _add_search(group: argparse._ArgumentGroup, ways: Mapping[str, SearchKind]) -> None:
    help_ = "how a one-sided release is searched; auto: by the smallest proved shift T"
    if ways is WAYS:
        help_ += "; two_phase: a private clip and noise; walk: by ranks, the default of extremes"
    kind = functools.partial(search, ways=ways)
    form: dict[str, Any] = {"type": kind, "metavar": "NAME", "help": f"{help_} ({', '.join(ways)})"}
    group.add_argument("--search", **form)


def _add_bounds(group: argparse._ArgumentGroup) -> None:
    for end, bound, beyond in (("low", 0, "below"), ("high", 120, "above")):
        known = (
            f"a bound of extremes and quantiles that you know without the data, by output column: "
            f"median_age={bound},max_age={bound}; values {beyond} count as that (default: none)"
        )
        form: dict[str, Any] = {
            "type": words.lowest,
            "metavar": "NAME=BOUND",
            "default": {},
            "action": words.Gathered,
        }
        group.add_argument(f"--{end}", help=known, **form)


def _add_unit(group: argparse._ArgumentGroup) -> None:
    grid_ = "the grid of a column's values: spent=0.01,minutes=1 (default 0.000001)"
    form: dict[str, Any] = {
        "type": words.units,
        "metavar": "COLUMN=UNIT",
        "default": {},
        "action": words.Gathered,
    }
    group.add_argument("--unit", help=grid_, **form)


def _add_lowest(group: argparse._ArgumentGroup) -> None:
    nobody = "the statistic of nobody, for --custom_profile: minutes=0 (default: below everything)"
    form: dict[str, Any] = {
        "type": words.lowest,
        "metavar": "COLUMN=VALUE",
        "default": {},
        "action": words.Gathered,
    }
    group.add_argument("--lowest", **form, help=nobody)


def search(text: str, ways: Mapping[str, SearchKind] = WAYS) -> SearchKind:
    """Return the search of this name."""
    words.require(text in ways, f"one of {', '.join(ways)}", text)
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
