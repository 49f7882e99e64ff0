"""Tools for users' own tests: releases without noise, and checks that try to refute a claim.

`without_noise` is for tests of pipelines, and warns with `NotPrivate`.

The checks are about a statistic or its removal profile. Each returns None or a `Counterexample`,
which shows records that the check was given: run checks on made-up people. Each docstring says
what None proves. `audit` is about a whole release, with made-up people.
"""

from contextlib import AbstractContextManager

from beam_dp.testing.profiles import (
    Counterexample,
    check_interlacing,
    check_monotone,
    check_profile,
)
from beam_dp.testing.release_audit import Audit, audit
from beam_dp.testing.sensitivity import check_sensitivity
from beam_dp.transforms.stages import noise_off
from beam_dp.transforms.stages.noise_off import NotPrivate

__all__ = [
    "Audit",
    "Counterexample",
    "NotPrivate",
    "audit",
    "check_interlacing",
    "check_monotone",
    "check_profile",
    "check_sensitivity",
    "without_noise",
]


def without_noise() -> AbstractContextManager[None]:
    """Return a block in which releases have no noise, for unit tests on made-up rows.

        with without_noise(), beam.Pipeline("FnApiRunner") as pipeline:
            assert_that(pipeline | beam.Create(ROWS) | my_release, equal_to([...]))

    THE NUMBERS ARE NOT PRIVATE, and a `NotPrivate` warning says so at the start of the block.
    Build and run the pipeline in the block, in this process and on an in-memory runner: every other
    run fails. Jobs of the command line refuse to start in such a block, and nothing else switches
    it on (see `transforms.stages.noise_off`).

    What comes out is what a budget of epsilon 1,000,000 releases when every noise is 0: sums,
    counts, means, extremes and quantiles as they are, up to the grid of their possible values.
    Bounds on contributions hold as always, and who is cut by them is random.
    """
    return noise_off.block()
