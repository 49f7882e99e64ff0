"""The linear programs and sparse matrices of scipy, loaded when the first program is solved.

Loading them takes a third of a second and 30 MiB, which most releases have no use for.
"""

import functools
from typing import Any


@functools.cache
def sparse() -> Any:
    """Return `scipy.sparse`."""
    from scipy import sparse

    return sparse


def linprog(*given: Any, **options: Any) -> Any:
    """Return what `scipy.optimize.linprog` finds."""
    from scipy.optimize import linprog

    return linprog(*given, **options)
