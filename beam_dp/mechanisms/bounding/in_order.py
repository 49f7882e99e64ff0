"""Run tasks in the threads of a pool, and hand out their results in the order of the tasks."""

import collections
import contextlib
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Generic, TypeVar

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
