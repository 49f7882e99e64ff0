"""The exact chances to stop at each query of the sparse vector technique, for audits."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

_BLOCK = 2**16  # values of rho at a time


def stop_chances(needs: Sequence[int], first: float, second: float) -> list[float]:
    """Return the chance to stop at each query; the last entry is that of passing all queries.

    Each chance is right to about 1e-13 of itself. With rho ~ Geo(first) and nu_i ~ Geo(second),
    query i stops iff needs[i] + rho <= nu_i.

    Args:
        needs: per query, how far it is from its threshold; at most 64 of them.
        first: the rate of rho.
        second: the rate of every nu.
    """
    parts = list(_parts(np.array(needs, np.float64), first, second))
    return [math.fsum(column) for column in zip(*parts, strict=True)]


def _parts(needs: npt.NDArray[np.float64], first: float, second: float) -> Iterator[list[float]]:
    """Yield the summands of every chance, one block of values of rho at a time."""
    # From the largest rho = z / second - needs[i], z = ln(64) + 1, on, every product is above
    # (1 - 1 / (64 e))^64 > 1/2 and all terms fall like e^(-first r). 45 / first later, the terms
    # left out are below 1e-18 of the sum.
    reach = max(0, -int(needs.min(initial=0))) + math.ceil(6 / second + 45 / first)
    for start in range(0, reach, _BLOCK):
        rho = np.arange(start, min(start + _BLOCK, reach), dtype=np.float64)
        passed = -math.expm1(-first) * np.exp(-first * rho)
        sums = []
        for need in needs:
            hazard = second * np.maximum(need + rho, 0)
            sums.append(float((passed * np.exp(-hazard)).sum()))  # pairwise: right to 1e-14
            passed = passed * -np.expm1(-hazard)
        yield [*sums, float(passed.sum())]
