"""Refuse options that have no effect beside another option, instead of ignoring them."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from beam_dp.mechanisms.numerics import checks


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
