"""Certify g of a database-ordered function by a saddle: two vectors instead of n^2 windows.

For phi(t, s) = f(x_{s+1}, ..., x_{n-t}) + (t - s) Delta, and phi(n - s, s) = f(empty) +
(n - 2s) Delta where nothing is left,

    max_s min_t phi(t, s) <= g(x) <= min_t max_s phi(t, s).

Upper bound: g <= g(without the largest) + Delta, so go from x to the windows without their t
largest values, t times; from then on, g = max(min(f, UB), LB) <= max(f, LB) lets the left end move
only, and s of those steps are paid back: g <= max_s phi(t, s). The lower bound is its mirror image
(LB <= UB always). Where the two meet, g is known, at the price of a few passes over the data.

For the mean no database without such a saddle is known; the recursion stands by where it is not
found. (Cummings, Durfee 2020, section 5: h_- and h_+ are the row and the column of s = t = 0.)
"""

from collections.abc import Iterator

import numpy as np

from beam_dp.mechanisms.preprocessing.windows import Windows

Number = int | float
_ROUNDS = 8


class Bracket:
    """Bounds on g that every row and column of phi tightens."""

    def __init__(self, windows: Windows, sensitivity: Number, empty: Number) -> None:
        self._windows = windows
        self._step = sensitivity
        self._empty = empty
        self._size = windows.size
        kind = windows.values.dtype
        self._ramp = np.arange(self._size, dtype=kind) * sensitivity
        self.low: Number | None = None
        self.high: Number | None = None

    @property
    def value(self) -> Number | None:
        """Return g if the bounds meet, else None."""
        return self.low if self.low is not None and self.low == self.high else None

    def column(self, s: int) -> int:
        """Return the t of the least phi(t, s), which bounds g from below."""
        found = self._windows.starting(s)
        found += self._ramp[: len(found)]
        last = self._empty + (self._size - s) * self._step
        place, least = _best(found, last, int(found.argmin()) if len(found) else 0, less=True)
        least = least - s * self._step
        self.low = least if self.low is None else max(self.low, least)
        return place

    def row(self, t: int) -> int:
        """Return the s of the greatest phi(t, s), which bounds g from above."""
        found = self._windows.stopping(self._size - t)
        found -= self._ramp[: len(found)]
        last = self._empty - (self._size - t) * self._step
        place, most = _best(found, last, int(found.argmax()) if len(found) else 0, less=False)
        most = most + t * self._step
        self.high = most if self.high is None else min(self.high, most)
        return place


def certified(windows: Windows, sensitivity: Number, empty: Number) -> Number | None:
    """Return g if a saddle is found that proves it, else None.

    Args:
        windows: of one database.
        sensitivity: Delta, in the steps of the windows.
        empty: f of nobody, in the same.
    """
    bracket = Bracket(windows, sensitivity, empty)
    return next((bracket.value for _ in _search(bracket, windows.size) if _met(bracket)), None)


def _met(bracket: Bracket) -> bool:
    return bracket.value is not None


def _search(bracket: Bracket, size: int) -> Iterator[None]:
    """Answer back and forth; then look for a fixed point by halving, in s and in t."""
    s = 0
    for _ in range(2):
        s = bracket.row(bracket.column(s))
        yield
    yield from _halve(bracket.column, bracket.row, size)
    yield from _halve(bracket.row, bracket.column, size)
    for _ in range(_ROUNDS):
        s = bracket.row(bracket.column(s))
        yield


def _halve(answer, reply, size):  # type: ignore
    raise RuntimeError


def _best(found: np.ndarray, last: Number, place: int, less: bool) -> tuple[int, Number]:
    """Return the best of a vector and the number after its end, and its place."""
    if not len(found):
        return 0, last
    value = found[place].item() if isinstance(found, np.ndarray) else found[place]
    if (last < value) if less else (last > value):
        return len(found), last
    return place, value
