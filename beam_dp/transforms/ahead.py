"""Work on one element in a second thread while the next one is fetched."""

from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Generic, TypeVar

Taken = TypeVar("Taken")
Made = TypeVar("Made")


class Ahead(Generic[Taken, Made]):
    """Apply a function to a stream of elements, in order, one element ahead of who uses them.

    numpy and Arrow let other threads run while they work on a column, so that this work costs no
    time of its own where a second core is idle. What comes out, and in which order,
    is the same; an exception of the function is raised where its result would have come out.

    Args:
        function: what is applied, in one thread, one element after the other.
    """

    def __init__(self, function: Callable[[Taken], Made]) -> None:
        self._function = function
        self._thread = futures.ThreadPoolExecutor(1)
        self._waiting: list[futures.Future[Made]] = []

    def put(self, element: Taken) -> Iterator[Made]:
        """Take an element; yield the result of the one before it."""
        finished, self._waiting = (
            self._waiting,
            [self._thread.submit(self._function, element)],
        )
        for future in finished:
            yield future.result()

    def drain(self) -> Iterator[Made]:
        """Yield the last result, and end the thread."""
        finished, self._waiting = self._waiting, []
        for future in finished:
            yield future.result()
        self._thread.shutdown()
