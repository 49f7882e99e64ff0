"""Prove g of a database-ordered function by a saddle: by two vectors instead of n^2 windows.

For phi(t, s) = f(x_{s+1}, ..., x_{n-t}) + (t - s) Delta, and phi(n - s, s) = f(empty) +
(n - 2s) Delta where nothing is left,

    max_s min_t phi(t, s) <= g(x) <= min_t max_s phi(t, s).

Upper bound: g <= g(without the largest) + Delta, so go from x to the window without its t largest
values, in t steps. From there on, g = max(min(f, UB), LB) <= max(f, LB) moves the left end only,
and each of the s steps gives Delta back: g <= max_s phi(t, s). The lower bound is the mirror image
(LB <= UB always). Where the two bounds meet, g is known, after a few passes over the data.

For the mean no database without such a saddle is known, but for ties on a coarse grid. Where
none is met, `staircase` goes on from the bounds. (Cummings, Durfee 2020, section 5: h_- and h_+ are
the row and the column of s = t = 0.)
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from beam_dp.mechanisms.preprocessing.sketch import likely
from beam_dp.mechanisms.preprocessing.windows import Windows

Number = int | float
_ROUNDS = 40
_Reply = Callable[[int], int]


class Bracket:
    """Bounds on g that every row and column of phi tightens.

    Attributes:
        low: the greatest lower bound so far.
        high: the least upper bound so far.
    """

    def __init__(self, windows: Windows, sensitivity: Number, empty: Number) -> None:
        self._windows = windows
        self._step = sensitivity
        self._empty = empty
        self.size = windows.size
        self._slack = _rounding(windows.values, sensitivity, empty)
        self._ramp = np.arange(self.size + 1, dtype=windows.values.dtype) * sensitivity
        # Per t the greatest phi(t, s) of the columns computed so far; per s the least of the rows.
        self._ceiling = self._column(0)
        self._floor = self._row(0)
        self.low: Number = _plain(self._ceiling.min())
        self.high: Number = _plain(self._floor.max())

    @property
    def value(self) -> Number | None:
        """g if the bounds meet (for floats: up to their rounding), else None."""
        return self.low if self.high - self.low <= self._slack else None

    def column(self, s: int) -> int:
        """Return the t of the least phi(t, s), and tighten `low` by it."""
        phis = self._column(s)
        index = int(phis.argmin())
        self.low = max(self.low, _plain(phis[index]))
        known = self._ceiling[: len(phis)]
        np.maximum(known, phis, out=known)
        return index

    def row(self, t: int) -> int:
        """Return the s of the greatest phi(t, s), and tighten `high` by it."""
        phis = self._row(t)
        index = int(phis.argmax())
        self.high = min(self.high, _plain(phis[index]))
        known = self._floor[: len(phis)]
        np.minimum(known, phis, out=known)
        return index

    def tighten(self) -> None:
        """Compute the row and the column that look best against all those computed before."""
        t, s = int(self._ceiling.argmin()), int(self._floor.argmax())
        self.column(s)
        self.row(t)

    def _column(self, s: int) -> np.ndarray:
        """Return phi(t, s) for t = 0, ..., n - s; its least bounds g from below."""
        phis = np.empty(self.size - s + 1, self._ramp.dtype)
        phis[:-1] = self._windows.starting(s)
        phis[-1] = self._empty
        phis += self._ramp[: len(phis)]
        phis -= s * self._step
        return phis

    def _row(self, t: int) -> np.ndarray:
        """Return phi(t, s) for s = 0, ..., n - t; its greatest bounds g from above."""
        phis = np.empty(self.size - t + 1, self._ramp.dtype)
        phis[:-1] = self._windows.stopping(self.size - t)
        phis[-1] = self._empty
        phis -= self._ramp[: len(phis)]
        phis += t * self._step
        return phis


def bounds(windows: Windows, sensitivity: Number, empty: Number) -> tuple[Number, Number]:
    """Return a lower and an upper bound on g: both are g where a saddle is met that proves it.

    Args:
        windows: of one database.
        sensitivity: Delta, in the steps of the windows.
        empty: f of nobody, in the same steps.
    """
    bracket = Bracket(windows, sensitivity, empty)
    guess = functools.partial(likely, windows, sensitivity, empty)
    values = (bracket.value for _ in _search(bracket, guess))
    proved = next((value for value in values if value is not None), None)
    return (bracket.low, bracket.high) if proved is None else (proved, proved)


def _search(bracket: Bracket, guess: Callable[[], tuple[int, int]]) -> Iterator[None]:
    """Try f itself, then a guess, then to halve for a fixed point of the replies; then tighten."""
    yield
    s, t = guess()
    bracket.column(s)
    bracket.row(t)
    yield
    yield from _halve(bracket.column, bracket.row, bracket.size)
    yield from _halve(bracket.row, bracket.column, bracket.size)
    for _ in range(_ROUNDS):
        bracket.tighten()
        yield


def _halve(ask: _Reply, reply: _Reply, size: int) -> Iterator[None]:
    """Search, by halving, for an index that is the reply to its own answer."""
    low, high = 0, size
    while low <= high:
        middle = (low + high) // 2
        replied = reply(ask(middle))
        yield
        if replied == middle:
            return
        low, high = (middle + 1, high) if replied > middle else (low, middle - 1)


def _rounding(values: np.ndarray, sensitivity: Number, empty: Number) -> float:
    """Return how far apart the two bounds may be by rounding alone: 0 for integers."""
    if values.dtype != np.float64:
        return 0.0
    largest = float(np.abs(values).max(initial=0.0)) + abs(empty) + len(values) * sensitivity
    return 2.0**-48 * largest


def _plain(value: Any) -> Number:
    """Return a numpy number as a Python one."""
    number: Number = value.item() if isinstance(value, np.generic) else value
    return number
