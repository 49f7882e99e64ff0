"""Refuse options that have no effect beside another option, instead of ignoring them."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from beam_dp.mechanisms.numerics import checks

CLIP = ("clip", "clip_share")
"""The options of a metric that chooses a clip."""

SEARCH = ("search", "beta")
"""The options of a metric that searches for its output."""

PREPROCESSING = "preprocessing"
"""The method that releases a metric as `Preprocessed` would."""


def refuse(metric: Any, names: Iterable[str], because: str, mend: str) -> None:
    """Refuse each of these options of a metric that is not at its default.

    Args:
        metric: a record with defaults for these options.
        names: the options.
        because: the other option, and why these options have no effect beside it.
        mend: what to write instead.

    Raises:
        ValueError: names both options, and says how to mend the call.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(metric)}
    for name in names:
        checks.require(
            bool(getattr(metric, name) == defaults[name]),
            type(metric).__name__,
            name,
            f"be left out {because}",
            mend,
        )


def check_method(metric: Any, other: str, names: Iterable[str]) -> None:
    """Refuse a method that the metric does not have, and options that preprocessing ignores.

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
