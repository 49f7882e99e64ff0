"""Refuse options that another option leaves without effect, rather than ignore them."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from beam_dp.mechanisms import checks

CLIP = ("clip", "clip_share")
"""The options of a metric that chooses a clip."""

SEARCH = ("search", "beta")
"""The options of a metric that searches for its output."""


def refuse(metric: Any, names: Iterable[str], because: str, mend: str) -> None:
    """Refuse each of these options of a metric if it is not the default.

    Args:
        metric: a record with defaults for these options.
        names: the options.
        because: the other option, and why these have no effect beside it.
        mend: what to write instead.

    Raises:
        ValueError: with both options, and how to mend the call.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(metric)}
    for name in names:
        checks.require(
            bool(getattr(metric, name) == defaults[name]),
            f"{type(metric).__name__}: {name} must be left out {because}. {mend}",
        )


def check_side(metric: Any) -> None:
    """Refuse options of the clip in a one-sided release, and those of the search in others.

    Args:
        metric: a metric with one_sided, clip, clip_share, candidates, search and beta.

    Raises:
        TypeError: unless one_sided is True or False.
        ValueError: for options that have no effect.
    """
    owner = type(metric).__name__
    if type(metric.one_sided) is not bool:
        raise TypeError(
            f"{owner}: one_sided must be True or False, not {checks.shown(metric.one_sided)}."
        )
    if metric.one_sided:
        because = "with one_sided=True, which searches for the output and clips nobody"
        refuse(metric, CLIP, because, "Leave one of the two out.")
        return
    because = "with one_sided=False, which chooses a clip and does not search for the output"
    # Two phases are what is meant: with one owner by default, with two if they are asked for.
    searched = SEARCH[1:] if metric.search == "two-phase" else SEARCH
    refuse(metric, searched, because, "Write one_sided=True beside it, or leave it out.")
    if metric.candidates is not None and metric.candidates.size == 1:
        because = "with candidates of one value, which leave no clip to choose"
        refuse(metric, CLIP, because, "Give several candidates, or leave it out.")
