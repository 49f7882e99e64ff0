"""Decide in which cell of a grid the value of a packing program lies, certain however it was found.

With s = D / 32 for the price D, E is known by the whole number

    q(E) = ceil(E / s - c),    c = sqrt(2) - 1,

which never falls with E. E is rational (a vertex of a polyhedron with rational coefficients), and
the points (n + c) s where q jumps are not: bounds of E that are exact and close enough always have
the same q. So q is a function of the program, whoever proposes.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.optimization import bipartite_flow, highs_model
from beam_dp.mechanisms.optimization.packing.packing_program import Packing
from beam_dp.mechanisms.optimization.packing.packing_proposals import (
    PackingGuess,
    PackingProposals,
)
from beam_dp.mechanisms.optimization.removal_levels import rounded

PARTS = 32
_TINY = 1000  # numbers in a tableau below which rational numbers are faster than floats
_STEPS = (1_000, 20_000)  # before HiGHS is asked, and after
_ROWS = 100_000  # of a program that HiGHS is asked for


class PackingCell(NamedTuple):
    """Where the value of a program lies, and a line above it for all prices.

    Attributes:
        number: q of the value, and of what was added to it.
        stays: the sum of z of a removal.
        removed: the sum of r of it.
    """

    number: int
    stays: Fraction
    removed: Fraction


def cell(value: Fraction, price: Fraction) -> int:
    """Return q of a value."""
    return rounded(*(value * PARTS / price).as_integer_ratio())


def decided(packing: Packing, added: Fraction) -> PackingCell:
    """Return the cell of the value of a program plus a number.

    Tiny programs are solved in rational numbers. Of others the first-order method is tried first;
    then a flow is exact where every row has one owner, and elsewhere HiGHS has its turn. Rational
    numbers decide what nobody else could.
    """
    search = _Search(packing, added)
    if packing.numbers > _TINY:
        proposals, small = PackingProposals(packing), len(packing.values) <= _ROWS
        if search.closed_by(proposals.guesses(_STEPS[0])):
            return search.best_cell()
        if (packing.owners >= 0).sum(axis=1).max() == 1:
            return search.exactly(_flow(packing))
        if small and search.closed_by(_by_highs(packing)):
            return search.best_cell()
        if search.closed_by(proposals.guesses(_STEPS[1])):
            return search.best_cell()
        if not small and search.closed_by(_by_highs(packing)):
            return search.best_cell()
    value, removed = packing.solved()
    search.take_line(removed)
    return search.exactly(value)


class _Search:
    """The best bounds of guesses."""

    def __init__(self, packing: Packing, added: Fraction) -> None:
        self.packing, self.added, self.low = packing, added, Fraction(0)
        self.high = Fraction(packing.size)
        self.line = self.high, Fraction(0)

    def closed_by(self, guesses: Iterator[PackingGuess]) -> bool:
        """Return whether the bounds of guesses come into one cell."""
        return any(self._closes(guess) for guess in guesses)

    def take_line(self, removed: np.ndarray) -> None:
        """Take the upper bound of a removal."""
        line = self.packing.upper(removed)
        high = line[0] + self.packing.price * line[1]
        if high < self.high:
            self.high, self.line = high, line

    def _closes(self, guess: PackingGuess) -> bool:
        price = self.packing.price
        self.take_line(guess.removed)
        self.low = max(self.low, self.packing.lower(guess.packed))
        return cell(self.low + self.added, price) == cell(self.high + self.added, price)

    def best_cell(self) -> PackingCell:
        """Return the cell of the upper bound."""
        return self.exactly(self.high)

    def exactly(self, value: Fraction) -> PackingCell:
        """Return the cell of a value."""
        return PackingCell(cell(value + self.added, self.packing.price), *self.line)


def _flow(packing: Packing) -> Fraction:
    """Return the value of a program in which every row has one owner."""
    scale, owner = packing.price.denominator, packing.owners.max(axis=1)
    room = np.full(packing.people, packing.price.numerator)
    flow = bipartite_flow.maximum(room, np.full(packing.size, scale), owner, packing.values)
    return Fraction(flow.value, scale)


def _by_highs(packing: Packing) -> Iterator[PackingGuess]:
    """Yield the solutions of HiGHS."""
    values, rows = packing.size, len(packing.values)
    row, role = np.nonzero(packing.owners >= 0)
    columns = np.append(packing.values, values + packing.owners[row, role])
    order = np.argsort(columns, kind="stable")
    size = values + packing.people
    starts = np.searchsorted(columns[order], np.arange(size + 1)).astype(np.int32)
    entries = np.append(np.arange(rows), row)[order].astype(np.int32)
    matrix = highs_model.Matrix(starts, entries, np.ones(len(entries)))
    price = float(packing.price)
    limits = highs_model.Limits(
        np.append(np.ones(values), np.full(packing.people, price)),
        np.zeros(size),
        np.append(np.full(values, np.inf), np.ones(packing.people)),
        np.ones(rows),
        np.full(rows, np.inf),
    )
    model = highs_model.HighsModel()
    for way in range(len(highs_model.WAYS)):
        model.take(matrix, limits, (size,), (rows,))
        solution = model.solved(way)
        if solution is not None:
            yield PackingGuess(solution.values[values:], solution.prices)
