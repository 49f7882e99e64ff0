"""Bounds of the program of `removal_program`, proved in integers, from any guess.

*Upper bounds.* Any r in [0, 1] with sum r <= k leaves z_v = max(0, max over the rows t of v of
(1 - the sum of r_i over the owners of t)), and the largest sum of a group is at least LP[k].

*Lower bounds.* Let mu_g >= 0 add up to at most 1, and let y_t >= 0 add up to at most mu_g w_v over
the rows of each value v of g. With the load l_i = the sum of y_t over the rows of i,

    LP[k] >= sum of all y_t - (the sum of the k largest l_i)        for all k at once:

the largest sum is at least sum of mu_g w_v z_v >= sum of y_t z_t >= sum of y_t (1 - sum r_i) =
sum of y_t - sum of l_i r_i, and no r in [0, 1] with sum r <= k makes the last sum larger.

Both are computed without rounding, from integers over 2^bits that are moved between their bounds
first. They hold wherever r, mu and y come from: a solver that lies can only make them far apart.

*Few rows are looked at.* One row of each value is its base. By itself it would give z_v = 1 - (the
sum of r_i over its owners), a linear function, known from the weight of each person in each group.
That is right unless the part comes below 0, for which two of its owners must be removed, or another
row of v stays by more. So only values matter that have several rows and an owner of the base among
the chosen people (those who may have r > 0), or one row and two chosen owners.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.optimization.removal_program import RemovalProgram


class Touched(NamedTuple):
    """The values that matter for some chosen people.

    Attributes:
        values: their numbers, rising.
        rows: their rows, value by value.
        starts: where the rows of each value start in `rows`.
    """

    values: np.ndarray
    rows: np.ndarray
    starts: np.ndarray


class BaseLosses(NamedTuple):
    """What the base rows of a group lose without a person: lines by group, then by person."""

    groups: np.ndarray
    people: np.ndarray
    amounts: np.ndarray

    def chosen(self, kept: np.ndarray) -> BaseLosses:
        """Return some of the lines, named by flags or places."""
        return BaseLosses(self.groups[kept], self.people[kept], self.amounts[kept])


class Weights(NamedTuple):
    """A guess of mu, and of how much of y is not on the base rows, integers over 2^bits.

    Attributes:
        groups: mu of each group.
        values: the value of each entry.
        rows: the row of each entry, or -1: this much of the value is on no row.
        amounts: of each entry, taken from the base of its value.
    """

    groups: np.ndarray
    values: np.ndarray
    rows: np.ndarray
    amounts: np.ndarray


@dataclass(frozen=True)
class RemovalBounds:
    """Judge guesses for one program.

    Attributes:
        program: the program.
    """

    program: RemovalProgram

    @functools.cached_property
    def starts(self) -> np.ndarray:
        """Where the rows of each value start."""
        return np.flatnonzero(np.diff(self.program.values, prepend=-1))

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """How many rows each value has."""
        return np.diff(np.append(self.starts, len(self.program.values)))

    @functools.cached_property
    def base(self) -> np.ndarray:
        """The base of each value: the row whose owners have few rows."""
        if len(self.starts) == len(self.program.values):
            return self.starts
        owners = self.program.owners
        rows = np.bincount(owners[owners >= 0], minlength=self.program.people)
        most = np.append(rows, 0)[owners].max(axis=1)
        order = np.lexsort((most, self.program.values))
        return np.asarray(order[self.starts])

    @functools.cached_property
    def sums(self) -> np.ndarray:
        """The sum of the weights of each group."""
        program = self.program
        return integers.sums_at(program.groups, program.weights, int(program.groups.max()) + 1)

    @functools.cached_property
    def lines(self) -> BaseLosses:
        """What each group loses without each person, by the base rows."""
        program, people = self.program, self.program.people
        owners = program.owners[self.base]
        value, role = np.nonzero(owners >= 0)
        key = program.groups[value] * people + owners[value, role]
        if len(self.sums) == 1:
            amounts = integers.sums_at(key, program.weights[value], people)
            known = np.flatnonzero(amounts)
            return BaseLosses(np.zeros(len(known), np.int64), known, amounts[known])
        order = np.argsort(key, kind="stable")
        key, weights = key[order], program.weights[value[order]]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        groups, person = np.divmod(key[first], people)
        return BaseLosses(groups, person, integers.segment_sums(weights, first))

    @functools.cached_property
    def _firsts(self) -> np.ndarray:
        """Where the lines of each group start, and the end."""
        return np.searchsorted(self.lines.groups, np.arange(len(self.sums) + 1))

    def lines_of(self, groups: np.ndarray) -> BaseLosses:
        """Return the lines of these groups: time is taken for them alone."""
        starts, ends = self._firsts[groups], self._firsts[groups + 1]
        lengths = ends - starts
        ahead = np.repeat(starts - np.cumsum(lengths) + lengths, lengths)
        return self.lines.chosen(ahead + np.arange(len(ahead)))

    @functools.cached_property
    def unit(self) -> int:
        """The power of 2 above the largest loss of a group without one person."""
        return 1 << int(self.lines.amounts.max()).bit_length()

    def touched(self, chosen: np.ndarray) -> Touched:
        """Return the values that matter where only the people with these flags are removed."""
        owners = self.program.owners
        hits = np.append(chosen, False)[owners[self.base]].sum(axis=1)
        values = np.flatnonzero(hits > (self.lengths == 1))
        lengths = self.lengths[values]
        starts = np.cumsum(lengths) - lengths
        rows = np.arange(int(lengths.sum())) + np.repeat(self.starts[values] - starts, lengths)
        return Touched(values, rows, starts)

    def excess(self, removed: np.ndarray, touched: Touched, one: float) -> np.ndarray:
        """Return by how much z of each of these values is above 1 - sum r of its base.

        Args:
            removed: r of each person, and a 0 at the end.
            touched: the values.
            one: what stands for 1 in r.
        """
        owners = self.program.owners
        taken = removed[owners[touched.rows]].sum(axis=1)
        stays = np.maximum(one - taken, 0)
        most = np.maximum.reduceat(stays, touched.starts) if len(stays) else stays
        return np.asarray(most - one + removed[owners[self.base[touched.values]]].sum(axis=1))

    def left(
        self, removed: np.ndarray, touched: Touched, lines: BaseLosses, bits: int
    ) -> np.ndarray:
        """Return what is left of each group, times 2^bits.

        Args:
            removed: r of each person and a 0 at the end, integers over 2^bits within [0, 1].
            touched: the values that matter to them.
            lines: at least those of the people with r > 0.
            bits: the precision of r.
        """
        size = len(self.sums)
        taken = integers.product(lines.amounts, removed[lines.people])
        excess = self.excess(removed, touched, 1 << bits)
        more = integers.product(self.program.weights[touched.values], excess)
        left = integers.add(
            integers.product(self.sums, _single(1 << bits)),
            -integers.sums_at(lines.groups, taken, size),
        )
        groups = self.program.groups[touched.values]
        return integers.add(left, integers.sums_at(groups, more, size))

    def left_in_turn(self, order: np.ndarray, touched: Touched) -> np.ndarray:
        """Return what is left of the largest group without the first 0, 1, 2, ... of some people.

        A value is lost at the first turn that takes an owner of each of its rows. No group grows
        from turn to turn, so what a group has until some turn is left of the largest until then.

        Args:
            order: people, in the order of their removal.
            touched: the values that matter to them.
        """
        program, last = self.program, len(order) + 1
        turn = np.full(program.people + 1, last)
        turn[order] = np.arange(1, last)
        weights, groups = program.weights[touched.values], program.groups[touched.values]
        parts = [(self.lines.groups, turn[self.lines.people], self.lines.amounts)]
        if len(touched.rows):
            first = turn[program.owners[touched.rows]].min(axis=1)
            parts.append((groups, np.maximum.reduceat(first, touched.starts), weights))
        # What the base rows lose stands among the lines, one owner at a time.
        for owner in program.owners[self.base[touched.values]].T:
            parts.append((groups, turn[owner], -weights))
        group, when, lost = (
            integers.concatenate([part[side] for part in parts]) for side in range(3)
        )
        return self._steps(group[when < last], when[when < last], lost[when < last], last)

    def _steps(
        self, groups: np.ndarray, turns: np.ndarray, lost: np.ndarray, last: int
    ) -> np.ndarray:
        """Return the most of a group before turns 1 to `last`, of what each loses at which turn."""
        every = np.arange(len(self.sums))
        keys = np.append(every * last, groups * last + turns)
        names, codes = np.unique(keys, return_inverse=True)
        lost = integers.sums_at(codes[len(every) :], lost, len(names))
        group, turn = np.divmod(names, last)
        first = np.flatnonzero(turn == 0)
        running = integers.running_sums(lost)
        left = integers.add(self.sums[group], integers.add(running[first][group], -running))
        ends = np.where(np.append(turn[1:], 0) > 0, np.append(turn[1:], 0), last)
        most = np.zeros(last, left.dtype)
        np.maximum.at(most, ends - 1, left)
        return np.asarray(np.maximum.accumulate(most[::-1])[::-1])

    def lowers(self, guess: Weights, removals: int, bits: int) -> np.ndarray:
        """Return lower bounds of LP[0..removals], times 2^bits, as Python integers."""
        program, weights = self.program, self._feasible(guess, bits)
        lines = self.lines_of(np.flatnonzero(weights.groups > 0))
        loads = integers.sums_at(
            lines.people,
            integers.product(lines.amounts, weights.groups[lines.groups]),
            program.people,
        )
        for rows, sign in ((self.base[weights.values], -1), (weights.rows, 1)):
            loads = integers.add(loads, _by_owner(program, rows, sign * weights.amounts))
        nowhere = weights.amounts[weights.rows < 0].astype(object).sum()
        products = integers.product(self.sums, weights.groups)
        whole = int(products.astype(object).sum()) - int(nowhere)
        count = min(removals, len(loads))
        rank = min(len(loads) - count, len(loads) - 1)
        largest = -np.sort(-np.partition(loads, rank)[len(loads) - count :])
        cut = np.zeros(removals + 1, object)
        cut[1 : count + 1] = largest
        return np.asarray(np.maximum(whole - np.add.accumulate(cut), 0))

    def _feasible(self, guess: Weights, bits: int) -> Weights:
        """Return the guess moved between its bounds; entries of one value are cut in order."""
        groups = np.maximum(guess.groups, 0)
        above = int(groups.astype(object).sum())
        if above > 1 << bits:
            scaled = integers.widen(integers.product(groups, _single(1 << bits)))
            groups = integers.narrow(scaled // above)
        order = np.argsort(guess.values, kind="stable")
        values, rows = guess.values[order], guess.rows[order]
        amounts = integers.running_sums(np.maximum(guess.amounts[order], 0))
        first = np.diff(values, prepend=-1) > 0
        start = np.flatnonzero(first)[np.cumsum(first) - 1] if len(first) else values
        before = np.append(np.zeros(1, amounts.dtype), amounts)[start]
        most = integers.product(self.program.weights[values], groups[self.program.groups[values]])
        within = np.minimum(amounts - before, most)
        previous = np.where(first, 0, np.append(within[:1], within[:-1]))
        return Weights(groups, values, rows, np.asarray(within - previous))


def _by_owner(program: RemovalProgram, rows: np.ndarray, amounts: np.ndarray) -> np.ndarray:
    """Return the sum of the amounts for each person over her rows; a row of -1 is nobody's."""
    known = np.flatnonzero(rows >= 0)
    owners = program.owners[rows[known]]
    entry, role = np.nonzero(owners >= 0)
    return integers.sums_at(owners[entry, role], amounts[known][entry], program.people)


def _single(number: int) -> np.ndarray:
    return integers.narrow(np.array([number], object))
