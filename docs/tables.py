"""Print the computed tables of the docs: `python -m docs.tables`.

Every number is computed here, from public parameters; no data is read.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import beam_dp as dp
from beam_dp.mechanisms.metrics.base import Metric
from beam_dp.mechanisms.planning import partition_rows
from beam_dp.mechanisms.search import Search

BETA = 0.05
PURE, ZCDP = dp.Budget(1), dp.Budget.zcdp(Fraction(1, 2))


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def sizes() -> str:
    """Return how many rows of one partition each metric takes, by one owner and by several."""
    candidates = dp.Candidates.linear(0, 1, 1)
    asked = {
        "`PeopleCount`, `Mean`, `Ratio`, `Variance`, `StandardDeviation`": (
            *(dp.PeopleCount(), dp.Mean("a"), dp.Ratio("a")),
            *(dp.Variance("a"), dp.StandardDeviation("a")),
        ),
        "`Count`, `Sum`, `Max`, `Min`": (dp.Count(), dp.Sum("a"), dp.Max("a"), dp.Min("a")),
        "`KthLargest`, `MaxFrequency`": (dp.KthLargest("a", 1), dp.MaxFrequency("a")),
        "`DistinctCount`": (dp.DistinctCount("a"), dp.DistinctCount("a", one_sided=True)),
        "the others": (
            *(dp.Quantile("a", 0.5), dp.Median("a", per="person"), dp.Median("a")),
            *(dp.SumOfSquares("a"), dp.CustomProfile("a", len, candidates=candidates)),
            *(dp.TrimmedMean("a"), dp.Preprocessed("a", "mean"), dp.BlackBox("a", len)),
        ),
    }
    rows = [_size(name, kinds) for name, kinds in asked.items()]
    return table(["metric", "most rows of a partition", "with several owners"], rows)


def _size(name: str, kinds: Sequence[Metric]) -> list[object]:
    [most] = {partition_rows.most_rows(metric) for metric in kinds}
    two = (
        partition_rows.most_rows(kinds[0], several_owners=True) if kinds[0].several_owners else None
    )
    return [name, f"{most:,}" if most else "any", f"{two:,}" if two else "-"]


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


def tables() -> Iterator[str]:
    """Yield all tables."""
    yield from (sizes(), searches())


if __name__ == "__main__":
    sys.stdout.write("\n".join(tables()))
