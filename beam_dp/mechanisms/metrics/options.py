"""Refuse options that another option leaves without effect, rather than ignore them."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.search.choose import TWO_PHASE

CLIP = ("clip", "clip_share")
"""The options of a metric that chooses a clip."""

SEARCH = ("search", "beta")
"""The options of a metric that searches for its output."""


PREPROCESSING = "preprocessing"
"""The method of a metric by which it is released as `spread.Preprocessed` would be."""


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
    searched = SEARCH[1:] if metric.search == TWO_PHASE else SEARCH
    refuse(metric, searched, because, "Write one_sided=True beside it, or leave it out.")
    if metric.candidates is not None and metric.candidates.size == 1:
        because = "with candidates of one value, which leave no clip to choose"
        refuse(metric, CLIP, because, "Give several candidates, or leave it out.")


def check_method(metric: Any, other: str, *names: str) -> None:
    """Refuse a method that a metric has not, and options that preprocessing has no use for.

    Args:
        metric: a record with a `method`.
        other: the method beside preprocessing.
        names: the options without effect under preprocessing.

    Raises:
        ValueError: for another method, and for options that have no effect.
    """
    checks.one_of(type(metric).__name__, "method", metric.method, (other, PREPROCESSING))
    if metric.method == PREPROCESSING:
        because = 'with method="preprocessing", which has no use for it'
        refuse(metric, names, because, f'Write method="{other}", or leave it out.')
