"""The graph algorithms of scipy, loaded when the first graph is solved.

Loading them takes a fifth of a second, which most releases have no use for.
"""

import functools
from typing import Any


@functools.cache
def solvers() -> Any:
    """Return `scipy.sparse.csgraph`."""
    from scipy.sparse import csgraph

    return csgraph


def matrix(given: tuple[Any, ...], shape: tuple[int, int]) -> Any:
    """Return what `scipy.sparse.csr_matrix` makes of `given`."""
    from scipy.sparse import csr_matrix

    return csr_matrix(given, shape=shape)
