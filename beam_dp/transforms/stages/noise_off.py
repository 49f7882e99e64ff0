"""Trials: pipelines of unit tests that run without noise, and can run nowhere else.

What a trial draws is not private. So it must be impossible to leave it on:

* It is on in a block of code (`beam_dp.testing.without_noise`), in the thread that runs the block.
  No option, environment variable or file switches it on, and no transform has a parameter for it.
  (`transforms.rehearsal` computes true numbers in one: it writes no release, and marks all it shows.)
* What is sent to the steps is a token, and noise that is 0 only as long as this very process has
  the token. It is drawn at random and forgotten at the end of the block. So a pipeline that was
  built in the block and runs after it, a pickle of it, a template, or a worker in another process
  (of another runner, or a fork) fails at the first draw, and releases nothing.
"""

import contextlib
import contextvars
import dataclasses
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.metrics.person_epsilon import PersonalisedStatistic
from beam_dp.mechanisms.noise.sampling import Integers, Noise, Stop
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.enclosures import Bound

_SUBJECT = "without_noise"
_LARGE = 1_000_000
_WORD = 0x9E3779B97F4A7C15
"""A uniform number whose bits repeat this word is about 0.618, and equals no chance of a coin."""
_processes: dict[bytes, int] = {}
_token: contextvars.ContextVar[bytes | None] = contextvars.ContextVar("token", default=None)


class NotPrivate(UserWarning):
    """Numbers are released without noise: they are not private."""


@contextlib.contextmanager
def block() -> Iterator[None]:
    """Draw no noise in pipelines that are built and run in the block."""
    token = Noise().words(2).tobytes()
    _processes[token] = os.getpid()
    before = _token.set(token)
    text = (
        f"{_SUBJECT}: numbers that are released in this block have no noise: THEY ARE NOT PRIVATE"
    )
    try:
        warnings.warn(text, NotPrivate, stacklevel=3)
        yield
    finally:
        # First the token may draw no more. A block can be left in another context, as at the end of
        # an asynchronous fixture. Then the variable cannot be put back, and all that is built there
        # fails at its first draw.
        _processes.pop(token, None)
        with contextlib.suppress(ValueError):
            _token.reset(before)


def applies() -> bool:
    """Return whether this is in such a block."""
    return _token.get() is not None


def noise() -> Noise:
    """Return the noise of a pipeline that is being built: in such a block, none."""
    token = _token.get()
    return Noise() if token is None else NoNoise(token)


def mark(drawn_with: Noise) -> dict[str, str]:
    """Return what a record says of a release that drew with this noise, wherever it is asked."""
    text = "a trial in without_noise(): no noise was drawn"
    return {"NOT PRIVATE": text} if isinstance(drawn_with, NoNoise) else {}


def budget_of(budget: Budget, metrics: Iterable[Metric]) -> Budget:
    """Return the budget that a trial is computed with: so large that nothing is cut or hidden.

    Raises:
        ValueError: where people have an epsilon of their own, which is no other in a trial.
    """
    own = any(isinstance(metric, PersonalisedStatistic) for metric in metrics)
    rule = "be the same for all people where true numbers are computed"
    hint = "Leave out person_epsilon, which changes no true number."
    checks.require(not own, _SUBJECT, "epsilon", rule, hint)
    delta = budget.delta
    return Budget.zcdp(_LARGE, delta) if budget.is_zcdp else Budget(_LARGE, delta)


@dataclasses.dataclass(frozen=True)
class NoNoise(Noise):
    """Noise that is 0, in the block of its token.

    Attributes:
        token: is known to the process of the block, as long as that lasts.
    """

    is_off: ClassVar[bool] = True

    token: bytes

    def words(self, size: int) -> np.ndarray:
        """Return one word again and again: a coin comes up as it is likelier to."""
        self._check()
        return np.full(size, _WORD, np.uint64)

    def geometric(self, rate: checks.Real, size: int) -> Integers:
        """Return zeros."""
        return self._zeros(size)

    discrete_laplace = geometric

    def discrete_gaussian(self, variance: checks.Real, size: int) -> Integers:
        """Return zeros."""
        return self._zeros(size)

    def below(self, limits: Integers) -> Integers:
        """Return zeros."""
        return self._zeros(len(limits))

    def coins_near(self, chances: np.ndarray, bound_of: Callable[[int], Bound]) -> np.ndarray:
        """Return heads: the first level of a draw, 0, is kept."""
        self._check()
        return np.ones(len(chances), bool)

    def first_success(
        self, unit: Fraction, needs: Sequence[int], lengths: Sequence[int]
    ) -> Stop | None:
        """Return where success is certain for the first time: no trial of chance succeeds."""
        self._check()
        return next((Stop(run, 0) for run, need in enumerate(needs) if need <= 0), None)

    def _zeros(self, size: int) -> Integers:
        self._check()
        return np.zeros(size, np.int64)

    def _check(self) -> None:
        """Refuse to draw anywhere but in the process and the block of the token."""
        checks.require(
            _processes.get(self.token) == os.getpid(),
            _SUBJECT,
            "a pipeline that is built in its block",
            "run in the same block and in the same process, and nowhere else",
            "Release with noise everywhere else.",
        )
