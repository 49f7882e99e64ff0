"""Checks for users' own tests: try to refute a claim about a statistic or its removal profile.

A check returns None or a `Counterexample`, which shows the records that the check was given: run
checks on made-up people. Each docstring says what None proves.
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
