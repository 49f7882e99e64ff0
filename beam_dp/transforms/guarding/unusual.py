"""Warn of unusual parameters when a pipeline is built."""

import warnings

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.accounting.cautions import cautions


class UnusualParameters(UserWarning):
    """A parameter is allowed, and so large that it protects hardly anybody."""


def warn(owner: str, budget: Budget) -> None:
    """Warn of an epsilon or a delta that is hardly ever meant, in one line each."""
    for line in cautions(budget):
        warnings.warn(f"{owner}: {line}", UnusualParameters, stacklevel=2)
