"""Collect the contributions of a stream of batches in bounded memory, with several threads."""

import collections
import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from typing import Generic, TypeVar

import numpy as np

from beam_dp.mechanisms.bounding import table
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.ordering import changes, pick
from beam_dp.mechanisms.bounding.table import Table

Made = TypeVar("Made")


class InOrder(Generic[Made]):
    """Run tasks ahead of their caller; results come in the order in which tasks were put.

    numpy and Arrow let other threads run while they work on a column, so that tasks on columns use
    as many cores as the pool has threads. The results are the same in any number of threads. When a
    task fails, its exception is raised where its result would have come, and no task, result or
    pool is held any more.

    Args:
        pool: the threads; None: a task is run when it is put, by its caller.
        most: how many tasks may wait or run when `put` returns.
    """

    def __init__(self, pool: futures.Executor | None, most: int) -> None:
        self._pool, self._most = pool, most
        self._waiting: collections.deque[futures.Future[Made]] = collections.deque()

    def put(self, task: Callable[[], Made]) -> Iterator[Made]:
        """Take a task; yield the results that are there, and wait while too many tasks wait."""
        if self._pool is None:
            yield task()
            return
        self._waiting.append(self._pool.submit(task))
        while self._waiting and (len(self._waiting) > self._most or self._waiting[0].done()):
            yield self._first()

    def drain(self) -> Iterator[Made]:
        """Yield the results of all tasks."""
        while self._waiting:
            yield self._first()

    def _first(self) -> Made:
        with contextlib.ExitStack() as failing:
            failing.callback(self.forget)
            made = self._waiting.popleft().result()
            failing.pop_all()
        return made

    def forget(self) -> None:
        """Drop all tasks and results, and let go of the pool; nobody waits for running tasks."""
        for future in self._waiting:
            future.cancel()
        self._waiting.clear()
        self._pool = None


BATCH_LINES = 1 << 18
HELD_LINES = 1 << 20
_BLOCK = 1 << 15  # lines that are filtered at a time: their columns stay in the cache
_HARDLY_LESS = 0.9  # a batch that keeps more of its lines is returned: merging it would not pay
_PASSED = 15  # so many batches after it are returned without being reduced
_SLOT_BITS = 20
_SLOTS = 1 << _SLOT_BITS
_TAIL, _HEAD = np.uint64(_SLOT_BITS), np.uint64(64 - _SLOT_BITS)
_FREE = np.uint64((1 << 64) - 1)
_SLICE_BOUNDS = np.arange(1, 16, dtype=np.uint64) << np.uint64(60)
_ONE_SLICE = 1 << 16  # so few lines are merged at once: their columns stay in the cache


class Accumulator:
    """Reduce batches of raw rows as they come, and return lines when memory is full.

    However the lines are cut into pieces, reduced or not, `Bounder.settle` makes the same of them:
    dropping early is safe on any part of the data (`bounder`, "Mergeability"). So threads may work
    on several batches at a time. At most `held + batch` lines are held between calls, beside those
    of the batches that threads work on.

    Args:
        bounder: the bounding of the run.
        batch: how many raw rows are collected before they are reduced.
        held: how many reduced lines are held before they are returned.
        pool: the threads; None: all work is done by the caller.
        ahead: how many batches may wait or be worked on by threads.
    """

    def __init__(
        self,
        bounder: Bounder,
        batch: int = BATCH_LINES,
        held: int = HELD_LINES,
        pool: futures.Executor | None = None,
        ahead: int = 0,
    ) -> None:
        self._bounder = bounder
        self._batch, self._held = batch, held
        self._raw: list[Table] = []
        self._raw_lines = 0
        self._pass = 0
        self._reduced: list[Table] = []
        self._full: list[Table] = []
        self._unlearned: list[Table] = []
        self._filter = _CertainToDrop(bounder)
        self._sifted: InOrder[list[Table]] = InOrder(pool, ahead)
        self._batches: InOrder[tuple[int, Table]] = InOrder(pool, ahead)
        self._merged: InOrder[Table] = InOrder(pool, len(_SLICE_BOUNDS))

    def add(self, rows: Table | Callable[[], Table]) -> list[Table]:
        """Take raw rows, or what makes them; return the tables that must leave to make room."""
        tables, self._unlearned = self._unlearned, []
        for reduced in tables:
            self._filter.renew(len(reduced.person))
            self._filter.learn(reduced)
        for parts in self._sifted.put(functools.partial(self._sift, rows)):
            self._store(parts)
        return self._make_room()

    def drain(self) -> list[Table]:
        """Return all lines that are held; the accumulator is empty afterwards."""
        for parts in self._sifted.drain():
            self._store(parts)
        self._filter = _CertainToDrop(self._bounder)  # no line comes that could be dropped
        self._reduce_raw()
        for raw_lines, reduced in self._batches.drain():
            self._take(raw_lines, reduced)
        full, self._full = self._full, []
        tables, self._reduced, self._unlearned = self._reduced, [], []
        return [*full, *(self._merge(tables) if len(tables) > 1 else tables)]

    def forget(self) -> None:
        """Drop all lines and tasks, and let go of the pool, as after a failure."""
        for tasks in (self._sifted, self._batches, self._merged):
            tasks.forget()
        for tables in (self._raw, self._reduced, self._unlearned, self._full):
            tables.clear()

    def _sift(self, rows: Table | Callable[[], Table]) -> list[Table]:
        """Return the lines that may still count, in blocks."""
        if not isinstance(rows, Table):
            rows = rows()
        step = min(_BLOCK, self._batch)
        blocks = (rows.take(slice(start, start + step)) for start in range(0, len(rows), step))
        return [self._bounder.prepare(part) for part in map(self._filter.drop, blocks) if len(part)]

    def _store(self, parts: list[Table]) -> None:
        for part in parts:
            self._raw.append(part)
            self._raw_lines += len(part)
            if self._raw_lines >= self._batch:
                (self._pass_raw if self._pass else self._reduce_raw)()

    def _reduce_raw(self) -> None:
        raw, self._raw, self._raw_lines = self._raw, [], 0
        if raw:
            for raw_lines, reduced in self._batches.put(functools.partial(self._reduced_of, raw)):
                self._take(raw_lines, reduced)

    def _reduced_of(self, tables: list[Table]) -> tuple[int, Table]:
        """Return the tables as one, reduced, and how many lines they had.

        The list is emptied, lest its lines be held twice.
        """
        joined = table.concatenate(tables)
        tables.clear()
        [reduced] = table.named([self._bounder.reduce(joined)], joined.names)
        return len(joined), reduced

    def _take(self, raw_lines: int, reduced: Table) -> None:
        if raw_lines >= self._batch and len(reduced) > _HARDLY_LESS * raw_lines:
            self._full.append(reduced)
            self._pass = _PASSED
        elif len(reduced):
            self._reduced.append(reduced)
            self._unlearned.append(reduced)

    def _pass_raw(self) -> None:
        """Let a batch leave as it is: one before hardly shrank, so a sort would be for nothing."""
        self._full.append(table.concatenate(self._raw))
        self._raw, self._raw_lines = [], 0
        self._pass -= 1

    def _make_room(self) -> list[Table]:
        full, self._full = self._full, []
        if sum(map(len, self._reduced)) < self._held:
            return full
        tables, self._reduced, self._unlearned = self._reduced, [], []
        self._filter.renew(max(len(each.person) for each in tables))
        merged = self._merge(tables)
        if sum(map(len, merged)) > self._held - self._held // 8:
            return [*full, *merged]
        self._reduced = merged
        return full

    def _merge(self, tables: list[Table]) -> list[Table]:
        """Return the reduced union of reduced tables, cut by the first bits of the people's hashes.

        Reduced tables are in the order of these bits, so that threads merge different people.
        """
        names = table.all_names([each.names for each in tables])
        merged: list[Table] = []
        hashes = [self._bounder.hashes(each)[0] for each in tables]
        for parts in _slices([dataclasses.replace(each, names={}) for each in tables], hashes):
            merged += self._merged.put(functools.partial(self._merged_of, parts))
        merged += self._merged.drain()
        return table.named(merged, names)

    def _merged_of(self, tables: list[Table]) -> Table:
        merged = self._bounder.reduce(table.concatenate(tables))
        self._filter.learn(merged)
        return merged


def _slices(tables: Sequence[Table], hashes: Sequence[np.ndarray]) -> Iterator[list[Table]]:
    """Yield the parts of tables that hold the same people, without copying.

    Args:
        tables: each in the order of its people's hashes.
        hashes: these hashes.
    """
    few = sum(map(len, tables)) <= _ONE_SLICE
    bounds = _SLICE_BOUNDS[:0] if few else _SLICE_BOUNDS
    edges = [[0, *np.searchsorted(each, bounds).tolist(), len(each)] for each in hashes]
    for index in range(len(bounds) + 1):
        pairs = zip(tables, edges, strict=True)
        parts = [each.take(slice(edge[index], edge[index + 1])) for each, edge in pairs]
        if any(map(len, parts)):
            yield [part for part in parts if len(part)]


class _CertainToDrop:
    """Recognise lines that cannot be among their person's lowest pairs.

    For some people a slot holds the first bits of the priority of their L0-th lowest pair seen so
    far: L0 pairs up to there exist, so every later reduction drops a line above it anyway. To drop
    it before the sort costs a look-up, and saves most of the sorting where people own many rows.

    People are compared by their full identity. The first bits of a person's hash are the number of
    the slot, the others stand in it, before those of the priority. The hash is one to one in the
    first word of an identity, given the second one, which is kept beside where a person has one.

    Threads look up without a lock while others learn. A slot never changes its person, whose second
    word is written before the slot's one word; no priority is above that of a free slot. Slots are
    written by one thread at a time: by the caller's, or while it waits by those that merge
    different people.
    """

    def __init__(self, bounder: Bounder) -> None:
        self._bounder = bounder
        self._bound = None if bounder.by_row else bounder.bounds.max_partitions
        self._slots: tuple[np.ndarray, np.ndarray | None] | None = None

    def renew(self, words: int) -> None:
        """Make slots for people of so many words, or new ones where half are taken.

        Whoever is noted first keeps a slot.
        """
        if self._bound is not None and (self._slots is None or _is_used_up(*self._slots, words)):
            seconds = np.zeros(_SLOTS, np.uint64) if words > 1 else None
            self._slots = np.full(_SLOTS, _FREE), seconds

    def learn(self, merged: Table) -> None:
        """Note the people who have all of their L0 pairs in reduced lines (one line per pair)."""
        bound, slots = self._bound, self._slots
        if bound is None or slots is None or len(merged) < bound:
            return
        first = merged.person[:, : len(merged) - bound + 1]
        full = bound - 1 + np.flatnonzero((merged.person[:, bound - 1 :] == first).all(axis=0))
        person_hash, priority = pick(self._bounder.hashes(merged), full)
        _note(*slots, person_hash, priority, pick(merged.person, full))

    def drop(self, rows: Table) -> Table:
        """Return the lines that may still count, with their hashes."""
        rows = dataclasses.replace(rows, hashes=self._bounder.hashes(rows))
        if self._slots is None:
            return rows
        words, seconds = self._slots
        slot, word = _placed(*self._bounder.hashes(rows))
        known = words.take(slot, mode="clip")  # the quickest mode
        certain_to_drop = (
            (word > known) & _is_same(known, word) & _is_second(seconds, slot, rows.person)
        )
        return rows.take(np.flatnonzero(~certain_to_drop)) if certain_to_drop.any() else rows


def _placed(person_hash: np.ndarray, priority: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the slot of each line, and the word that would stand in it."""
    return (person_hash >> _HEAD).view(np.int64), person_hash << _TAIL | priority >> _HEAD


def _is_same(known: np.ndarray, word: np.ndarray) -> np.ndarray:
    """Return which words of slots have the same person hash."""
    return np.asarray((known ^ word) >> _TAIL == 0)


def _is_second(seconds: np.ndarray | None, slot: np.ndarray, person: np.ndarray) -> np.ndarray:
    """Return which slots have these second words; a missing one is 0."""
    known = 0 if seconds is None else seconds.take(slot)
    return np.asarray(known == (person[1] if len(person) > 1 else 0))


def _is_used_up(words: np.ndarray, seconds: np.ndarray | None, needed: int) -> bool:
    narrow = needed > 1 and seconds is None
    return narrow or bool(2 * np.count_nonzero(words != _FREE) > _SLOTS)


def _note(
    words: np.ndarray,
    seconds: np.ndarray | None,
    person_hash: np.ndarray,
    priority: np.ndarray,
    person: np.ndarray,
) -> None:
    """Write people, in the order of their hashes, into slots that are free or theirs."""
    slot, word = _placed(person_hash, priority)
    known = words.take(slot)
    theirs = _is_same(known, word) & _is_second(seconds, slot, person) | (known == _FREE)
    chosen = np.flatnonzero(theirs & changes(slot[None]))
    slot = slot[chosen]
    if seconds is not None:
        seconds[slot] = person[1, chosen] if len(person) > 1 else 0
    words[slot] = np.minimum(known[chosen], word[chosen])
