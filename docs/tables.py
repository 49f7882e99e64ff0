"""Print the computed table of the docs: `python -m docs.tables`.

Every number is computed here, from public parameters; no data is read.
"""

import math
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction

import beam_dp as dp
from beam_dp.mechanisms.search import Search

BETA = 0.05
PURE, ZCDP = dp.Budget(1), dp.Budget.zcdp(Fraction(1, 2))


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def searches() -> str:
    """Return the proved shifts T of all searches at beta = 0.05."""
    sizes = [2**8, 2**16, 2**64]
    kinds = (dp.AboveThreshold, dp.ExponentialMechanism, dp.NoisyBinarySearch)
    rows: list[list[object]] = [[f"`{kind.__name__}`", *_shifts(kind, sizes)] for kind in kinds]
    published = [2 * math.ceil(2 * math.log(n / BETA)) for n in sizes]
    rows.append(["the published mechanism, 2 tau", *published, *["-"] * len(sizes)])
    asked = [f"{budget}, 2^{n}" for budget in ("epsilon 1", "rho 0.5") for n in (8, 16, 64)]
    return table(["search", *asked], rows)


def _shifts(kind: Callable[[dp.Budget, float], Search], sizes: Sequence[int]) -> list[int]:
    return [kind(budget, BETA).shift(n) for budget in (PURE, ZCDP) for n in sizes]


if __name__ == "__main__":
    sys.stdout.write(searches())
