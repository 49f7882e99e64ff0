"""Collect the contributions of a stream of batches in bounded memory."""

import numpy as np

from beam_dp.mechanisms.bounding import table
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.table import Table

BATCH_LINES = 1 << 18
HELD_LINES = 3 << 18
_BLOCK = 1 << 15  # lines that are filtered at a time: their columns stay in the cache
_HARDLY_LESS = 0.9  # a batch that keeps more of its lines is returned: merging it would not pay
_PASSED = 15  # so many batches after it are returned without being reduced
_SLOTS = 1 << 20
_SLOT_SHIFT = np.uint64(64 - 20)


class Accumulator:
    """Reduce batches of raw rows as they come, and return lines when memory is full.

    However the lines are cut into pieces, reduced or not, `Bounder.settle` makes the same of them:
    dropping early is safe on any part of the data (`bounder`, "Mergeability"). At most
    `held + batch` lines are held between calls.

    Args:
        bounder: the bounding of the run.
        batch: how many raw rows are collected before they are reduced.
        held: how many reduced lines are held before they are returned.
    """

    def __init__(self, bounder: Bounder, batch: int = BATCH_LINES, held: int = HELD_LINES) -> None:
        self._bounder = bounder
        self._batch, self._held = batch, held
        self._raw: list[Table] = []
        self._raw_lines = 0
        self._pass = 0
        self._reduced: list[Table] = []
        self._full: list[Table] = []
        self._filter = _Hopeless(bounder)

    def add(self, table: Table) -> list[Table]:
        """Take raw rows; return the tables that must leave to make room."""
        step = min(_BLOCK, self._batch)
        for start in range(0, len(table), step):
            part = self._filter.drop(table.take(slice(start, start + step)))
            if len(part):
                self._raw.append(self._bounder.prepare(part))
                self._raw_lines += len(part)
            if self._raw_lines >= self._batch:
                (self._pass_raw if self._pass else self._reduce_raw)()
        return self._make_room()

    def drain(self) -> list[Table]:
        """Return all lines that are held; the accumulator is empty afterwards."""
        self._reduce_raw()
        tables, self._reduced, self._full = [*self._full, *self._reduced], [], []
        if len(tables) <= 1:
            return tables
        return [self._reduced_of(tables)]

    def _reduced_of(self, tables: list[Table]) -> Table:
        """Return the tables as one, reduced; empty the list, lest its lines be held twice."""
        joined = table.concatenate(tables)
        tables.clear()
        return table.prune(self._bounder.reduce(joined))

    def _reduce_raw(self) -> None:
        if not self._raw:
            return
        reduced = self._reduced_of(self._raw)
        if self._raw_lines >= self._batch and len(reduced) > _HARDLY_LESS * self._raw_lines:
            self._full.append(reduced)
            self._pass = _PASSED
        elif len(reduced):
            self._filter.learn(reduced)
            self._reduced.append(reduced)
        self._raw, self._raw_lines = [], 0

    def _pass_raw(self) -> None:
        """Let a batch leave as it is: one before hardly shrank, so a sort would be for nothing."""
        self._full.append(table.concatenate(self._raw))
        self._raw, self._raw_lines = [], 0
        self._pass -= 1

    def _make_room(self) -> list[Table]:
        full, self._full = self._full, []
        if sum(map(len, self._reduced)) < self._held:
            return full
        [merged] = self.drain()
        self._filter.learn(merged)
        if len(merged) > self._held - self._held // 8:
            return [*full, merged]
        self._reduced = [merged]
        return full


class _Hopeless:
    """Recognise lines that cannot be among their person's lowest pairs.

    For some people a slot holds the priority of their L0-th lowest pair seen so far: L0 pairs up to
    there exist, so every later reduction drops a line above it anyway. To drop it before the sort
    costs a look-up, and saves most of the sorting where people own many rows. People are compared
    by their full identity, never by a hash. The words of a slot stand together: reading them is
    one access to memory.
    """

    def __init__(self, bounder: Bounder) -> None:
        self._bounder = bounder
        self._slots: np.ndarray | None = None  # per slot: priority, two words of the person, 0

    def learn(self, merged: Table) -> None:
        """Note the people who have all of their L0 pairs in reduced lines (one line per pair)."""
        reach = self._bounder.bounds.reach
        if reach is None or self._bounder.by_row or len(merged) < reach:
            return
        first = merged.person[:, : len(merged) - reach + 1]
        full = np.flatnonzero((merged.person[:, reach - 1 :] == first).all(axis=0))
        self._note(merged.take(full + reach - 1))

    def _note(self, full: Table) -> None:
        if self._slots is None:
            self._slots = np.zeros((_SLOTS, 4), np.uint64)
            self._slots[:, 0] = np.iinfo(np.uint64).max
        person_hash = self._bounder.person_hash(full)
        noted = np.zeros((len(full), 4), np.uint64)
        noted[:, 0] = self._bounder.priority(full, person_hash)
        noted[:, 1 : 1 + len(full.person)] = full.person.T
        self._slots[(person_hash >> _SLOT_SHIFT).astype(np.int64)] = noted

    def drop(self, table: Table) -> Table:
        """Return the lines that may still count."""
        if self._slots is None:
            return table
        person_hash = self._bounder.person_hash(table)
        slots = (person_hash >> _SLOT_SHIFT).view(np.int64)
        known = np.take(self._slots, slots, axis=0)
        hopeless = self._bounder.priority(table, person_hash) > known[:, 0]
        hopeless &= known[:, 1] == table.person[0]
        hopeless &= known[:, 2] == (table.person[1] if len(table.person) > 1 else 0)
        return table.take(np.flatnonzero(~hopeless))
