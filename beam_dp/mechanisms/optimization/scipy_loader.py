"""Load scipy's graphs, sparse matrices and factorisations at the first use.

Loading them takes a third of a second and 30 MiB, and most releases do not need them.
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


@functools.cache
def sparse() -> Any:
    """Return `scipy.sparse`."""
    from scipy import sparse

    return sparse


@functools.cache
def dense() -> Any:
    """Return `scipy.linalg`."""
    from scipy import linalg

    return linalg
