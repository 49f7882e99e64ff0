"""Checks for users' own tests: try to refute that a statistic, or its profile, is what it claims.

A check returns None, or a `Counterexample` to look at. It shows the records that it was given: run
checks on made-up people. What None proves is in each docstring.
"""

from beam_dp.testing.counterexample import Counterexample
from beam_dp.testing.monotone import check_monotone
from beam_dp.testing.profiles import check_interlacing, check_profile
from beam_dp.testing.sensitivity import check_sensitivity

__all__ = [
    "Counterexample",
    "check_interlacing",
    "check_monotone",
    "check_profile",
    "check_sensitivity",
]
