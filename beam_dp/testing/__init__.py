"""Tools for users' own tests: releases without noise, and checks that try to refute a claim.

`without_noise` is for tests of pipelines, and warns with `NotPrivate`.

The checks are about a statistic or its removal profile: one returns None or a `Counterexample`,
which shows the records that the check was given: run checks on made-up people. Each docstring says
what None proves.
"""

from beam_dp.testing.counterexample import Counterexample
from beam_dp.testing.monotone import check_monotone
from beam_dp.testing.profiles import check_interlacing, check_profile
from beam_dp.testing.sensitivity import check_sensitivity
from beam_dp.testing.without_noise import without_noise
from beam_dp.transforms.guarding.trial import NotPrivate

__all__ = [
    "Counterexample",
    "NotPrivate",
    "check_interlacing",
    "check_monotone",
    "check_profile",
    "check_sensitivity",
    "without_noise",
]
