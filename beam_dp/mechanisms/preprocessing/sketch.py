"""Guess where a saddle lies, from a few thousand of n rows and columns; `saddle` tests the guess.

The row and the column are searched on a coarse mesh and then, on ever finer ones, around the last
guess. A wrong guess costs time only.
"""

from collections.abc import Callable

import numpy as np

from beam_dp.mechanisms.preprocessing.windows import Windows

Number = int | float
_POINTS = 1 << 11  # of a mesh
_REACH = 32  # spacings of the last mesh that the next one reaches, to either side
_ZOOMS = 12
_SMALL = 200  # sizes of small windows
_Reply = Callable[[int], int]


def likely(windows: Windows, sensitivity: Number, empty: Number) -> tuple[int, int]:
    """Return the column s and the row t of a likely saddle of phi(t, s).

    Args:
        windows: of one database.
        sensitivity: Delta, in the steps of the windows.
        empty: f of nobody, in the same steps.
    """
    size = windows.size
    coarse = _mesh(0, size)
    spacing = size // _POINTS + 1
    s, t = _Sketch(windows, sensitivity, empty, coarse, coarse).settle()
    for _ in range(_ZOOMS):
        columns, rows = (
            np.union1d(
                coarse, _mesh(max(0, at - _REACH * spacing), min(size, at + _REACH * spacing))
            )
            for at in (s, t)
        )
        before = s, t
        s, t = _Sketch(windows, sensitivity, empty, columns, rows).settle()
        if spacing == 1 and (s, t) == before:
            break
        near = abs(s - before[0]) + abs(t - before[1]) < _REACH * spacing
        spacing = 2 * _REACH * spacing // _POINTS + 1 if near else spacing
    return s, t


def _mesh(low: int, high: int) -> np.ndarray:
    return np.unique(np.linspace(low, high, _POINTS + 1).astype(np.int64))


class _Sketch:
    """The function phi of `saddle` on some columns and rows only."""

    def __init__(
        self,
        windows: Windows,
        sensitivity: Number,
        empty: Number,
        columns: np.ndarray,
        rows: np.ndarray,
    ) -> None:
        self._windows = windows
        self._step = sensitivity
        self._empty = empty
        self._columns = columns
        self._rows = rows
        self._small = np.unique(np.geomspace(1, windows.size + 1, _SMALL).astype(np.int64)) - 1
        self._lows: dict[int, Number] = {}
        self._highs: dict[int, Number] = {}

    def settle(self) -> tuple[int, int]:
        """Return the column of the greatest least phi, and the row of the least greatest phi."""
        _halve(self._columns, self._column, self._row)
        _halve(self._rows, self._row, self._column)
        lows, highs = self._lows, self._highs
        return max(lows, key=lows.__getitem__), min(highs, key=highs.__getitem__)

    def _column(self, s: int) -> int:
        """Return the row of the least phi in a column."""
        rows = self._replies(self._rows, self._windows.size - s)
        phis = self._phi(rows, np.full(len(rows), s))
        index = int(phis.argmin())
        self._lows[s] = phis[index]
        return int(rows[index])

    def _row(self, t: int) -> int:
        """Return the column of the greatest phi in a row."""
        columns = self._replies(self._columns, self._windows.size - t)
        phis = self._phi(np.full(len(columns), t), columns)
        index = int(phis.argmax())
        self._highs[t] = phis[index]
        return int(columns[index])

    def _replies(self, positions: np.ndarray, last: int) -> np.ndarray:
        """Return the indexes up to the last, and those that leave a small window only."""
        kept = positions[: int(np.searchsorted(positions, last, "right"))]
        return np.concatenate([kept, last - self._small[: int(np.searchsorted(self._small, last))]])

    def _phi(self, t: np.ndarray, s: np.ndarray) -> np.ndarray:
        stops = self._windows.size - t
        kind = self._windows.values.dtype
        values = np.full(len(t), self._empty, kind)
        filled = s < stops
        values[filled] = self._windows.between(s[filled], stops[filled])
        return np.asarray(values + (t - s).astype(kind) * self._step)


def _halve(positions: np.ndarray, ask: _Reply, reply: _Reply) -> None:
    """Search, by halving, for an index that is the reply to its own answer."""
    low, high = 0, len(positions) - 1
    while low <= high:
        middle = (low + high) // 2
        index = int(positions[middle])
        replied = reply(ask(index))
        if replied == index:
            return
        low, high = (middle + 1, high) if replied > index else (low, middle - 1)
