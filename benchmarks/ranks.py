"""Measure quantiles, extremes and k-th largest values, for few people and for many, with goals.

    python -m benchmarks.ranks               the tables (two minutes); returns 1 where a goal is missed
    python -m benchmarks.ranks --runs 20     a short look
    python -m benchmarks.ranks --only 0.9 --stray 0.03     a part of them, with fewer people who must
                                             support an answer, and more answers where nobody is
    python -m benchmarks.ranks --bound       how many people must support an answer, whatever the
                                             mechanism

Every run draws new data. The searches are those that the metrics build, with all their defaults,
for one row per person and epsilon 1. Errors are in people: how far p n is from the people below and
those at or below the released value; for the k-th largest, how far k is from the people at or above
it; for the largest, how many these are. "absurd" is further from the data than ten times their
range; "stated" is how often the error is within the released `_rank_error`, people who are rounded
up to one candidate taken for equal. Errors are medians over the distributions, shares are means.

Constants were chosen on the first group of distributions; the second was held out. Goals leave room
for the noise of 100 runs per distribution, about half a person in the middle and one at 95%.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import math
import sys
from collections.abc import Callable, Sequence

import numpy as np

import beam_dp as dp
from beam_dp.mechanisms.candidates.defaults import default_values
from beam_dp.mechanisms.metrics.base import UNIT, Metric
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.releases.quantiles import ExtremeRelease, RankRelease
from beam_dp.mechanisms.releases.request import Context
from beam_dp.mechanisms.search.ranks.node import RESOLUTION, Answer, Node

RUNS = 100
STATED = 0.93
_BUDGET = dp.Budget(1)
_GRID = default_values(UNIT)
_NOISE = Noise()
_FAR = 10  # ranges

Draw = Callable[[np.random.Generator, int], np.ndarray]


def bimodal(random: np.random.Generator, n: int) -> np.ndarray:
    """Return values around 10, and fewer around 1,000."""
    return np.where(random.random(n) < 0.6, random.normal(10, 2, n), random.normal(1000, 50, n))


def zeros(random: np.random.Generator, n: int) -> np.ndarray:
    """Return values of which three in ten are 0."""
    return np.where(random.random(n) < 0.3, 0, random.lognormal(3, 1, n))


TUNED: dict[str, Draw] = {
    "lognormal 1": lambda random, n: random.lognormal(3, 1, n),
    "lognormal 2": lambda random, n: random.lognormal(3, 2, n),
    "exponential": lambda random, n: random.exponential(50, n),
    "normal": lambda random, n: random.normal(10, 30, n),
    "pareto": lambda random, n: random.pareto(1.5, n) + 1,
    "uniform": lambda random, n: random.uniform(0, 100, n),
    "binomial": lambda random, n: random.binomial(10, 0.6, n).astype(float),
    "bimodal": bimodal,
}
HELD_OUT: dict[str, Draw] = {
    "gamma": lambda random, n: random.gamma(0.5, 20, n),
    "weibull": lambda random, n: 10 * random.weibull(0.6, n),
    "t3": lambda random, n: 5 + random.standard_t(3, n),
    "wide": lambda random, n: random.uniform(-1e6, 1e6, n),
    "zipf": lambda random, n: np.minimum(random.zipf(1.8, n), 10**9).astype(float),
    "zeros": zeros,
}
TIES = ("uniform", "binomial", "bimodal", "zipf", "zeros")
"""Left out for the largest: with ties, or an end, "at or above" is not about the search."""


@dataclasses.dataclass(frozen=True)
class Result:
    """What the runs of one row of a table came to.

    Attributes:
        middle: the median error, in people.
        most: the error at 95%.
        absurd: the share of answers far from all data.
        none: the share without an answer.
        stated: the share of the answers whose error is within what is stated.
    """

    middle: float
    most: float
    absurd: float
    none: float
    stated: float


@dataclasses.dataclass(frozen=True)
class Task:
    """One row of the table.

    Attributes:
        name: what is released.
        metric: the metric; the value of the share `p` is looked at.
        n: how many people.
        p: the share below; None: `k` from the top.
        k: which from the top; 0 for the largest.
        goals: the most of the median error, the 95% error and of absurd answers; infinite for none.
    """

    name: str
    metric: Metric
    n: int
    p: float | None = None
    k: int = 0
    goals: tuple[float, float, float] = (math.inf, math.inf, 0.01)

    @property
    def release(self) -> RankRelease | ExtremeRelease:
        """The release for one row per person."""
        [request] = self.metric.requests()
        release = request.build(Context(self.metric.columns(), depth=1), _BUDGET)
        assert isinstance(release, (RankRelease, ExtremeRelease))
        return release

    @property
    def place(self) -> int:
        """Which number of a row of numbers is looked at."""
        shares = getattr(self.metric, "shares", (self.p,))
        return [None if share is None else float(share) for share in shares].index(self.p)

    def error(self, data: np.ndarray, value: float) -> float:
        """Return the error of a value, in people."""
        if self.p is None:
            return abs(int((data >= value).sum()) - self.k)
        asked = self.p * len(data)
        return max(0.0, (data < value).sum() - asked, asked - (data <= value).sum())


def quantile(n: int, p: float, *goals: float) -> Task:
    """Return the task of one quantile."""
    return Task(f"{p:g}-quantile", dp.Quantile("x", p), n, p, goals=_goals(goals))


def several(n: int, p: float, shares: Sequence[float], *goals: float) -> Task:
    """Return the task of one quantile among several."""
    name = f"{p:g} of {', '.join(f'{share:g}' for share in shares)}"
    return Task(name, dp.Quantiles("x", shares), n, p, goals=_goals(goals))


def largest(n: int, *goals: float) -> Task:
    """Return the task of the largest."""
    return Task("largest", dp.Max("x"), n, goals=_goals(goals))


def kth(n: int, k: int, *goals: float) -> Task:
    """Return the task of the k-th largest."""
    return Task(f"{k}th largest", dp.KthLargest("x", k), n, k=k, goals=_goals(goals))


def _goals(given: Sequence[float]) -> tuple[float, float, float]:
    middle, most = given or (math.inf, math.inf)
    return middle, most, 0.01


QUARTERS, HIGH = (0.25, 0.5, 0.75), (0.5, 0.9, 0.99)
TASKS = (
    quantile(5, 0.5),
    quantile(20, 0.5),
    quantile(30, 0.5),
    quantile(100, 0.5, 2, 5),
    quantile(300, 0.5, 2, 5),
    quantile(1000, 0.5, 2, 5),
    quantile(10_000, 0.5, 3, 6),
    quantile(100, 0.75, 2, 5),
    quantile(5, 0.9),
    quantile(12, 0.9),
    quantile(20, 0.9),
    quantile(100, 0.9, 2.5, 6),
    quantile(300, 0.9, 2, 6),
    quantile(1000, 0.9, 2, 6),
    quantile(10_000, 0.9, 4, 7),
    quantile(12, 0.1),
    quantile(1000, 0.1, 2, 6),
    quantile(100, 0.99),
    quantile(1000, 0.99),
    quantile(10_000, 0.99, 3, 6),
    several(100, 0.5, QUARTERS, 2.5, 8),
    several(100, 0.25, QUARTERS),
    several(1000, 0.5, QUARTERS, 2, 7),
    several(1000, 0.5, HIGH, 3, 9),
    several(1000, 0.9, HIGH, 3.5, 10),
    several(1000, 0.99, HIGH),
    largest(8),
    largest(20),
    largest(100, 13, 17),
    largest(1000, 12, 16),
    largest(10_000, 13, 18),
    kth(1000, 10, 2.5, 6),
    kth(1000, 100, 2, 6),
)


def supported(windows: float, stray: float, epsilon: float = 1.0) -> float:
    """Return how many people must support an answer, at least, whatever the mechanism.

    Let x_0 be data, and let J sets of answers, the windows, have none in common and be far from all
    of x_0. Let x_j be x_0 and m more people, so that half of all answers shall be in the j-th
    window. An epsilon-DP mechanism answers x_0 in that window with e^(-epsilon m) / 2 at least. All
    these are answers where nobody is, and shall be `stray` together at most:
    J e^(-epsilon m) / 2 <= stray, so m is at least ln(J / (2 stray)) / epsilon.

    Args:
        windows: J.
        stray: the share of answers where nobody is.
        epsilon: of the budget.
    """
    return math.log(windows / (2 * stray)) / epsilon


def bounds() -> str:
    """Return the table of `supported` for data of any magnitude, from a millionth to 10^18."""
    span = math.log(1e24)
    known = {"a factor of 2": 2.0, "10%": 1.1, "1%": 1.01, "0.1%": 1.001}
    lines = [
        "right to, in half of all releases    people who must support it: any scale, known scale"
    ]
    for name, factor in known.items():
        some = [supported(width / (2 * math.log(factor)), 0.005) for width in (span, math.log(10))]
        lines.append(f"{name:37}{some[0]:8.1f}{some[1]:12.1f}")
    return "\n".join(lines)


def now(task: Task, release: RankRelease | ExtremeRelease, data: np.ndarray) -> Answer:
    """Return what the metric's search answers."""
    indexes = _GRID.indexes(data)
    if isinstance(release, ExtremeRelease):
        node = Node.of(indexes, np.ones(len(data), np.int64), _GRID.size)
        return release.search.choose_at(node, _GRID, _NOISE)
    node = Node.of(indexes, np.full(len(data), RESOLUTION), _GRID.size)
    return release.search.answers(node, _GRID, _NOISE)[task.place]


def measured(task: Task, draw: Draw, runs: int, answer: Callable[[np.ndarray], Answer]) -> Result:
    """Return the errors of many runs on data of one distribution."""
    random = np.random.default_rng(1)
    errors, absurd, none, stated = [], 0, 0, 0
    for _ in range(runs):
        data = np.round(draw(random, task.n), 6)
        found = answer(data)
        value = found.value(_GRID)
        if math.isnan(value):
            none += 1
            continue
        far = _FAR * float(np.ptp(data))
        absurd += not data.min() - far <= value <= data.max() + far
        errors.append(task.error(data, value))
        stated += task.error(_rounded(data), value) <= found.error
    answered = len(errors)
    middle, most = np.quantile(errors, [0.5, 0.95]) if answered else (math.nan, math.nan)
    share = stated / answered if answered else math.nan
    return Result(float(middle), float(most), absurd / runs, none / runs, share)


def _rounded(data: np.ndarray) -> np.ndarray:
    """Return the candidates that the data are rounded up to."""
    places = np.minimum(_GRID.indexes(data), _GRID.size - 1)
    return np.array([_GRID[place] for place in places.tolist()])


def together(results: Sequence[Result]) -> Result:
    """Return the median of errors and the mean of shares, over distributions."""
    columns = {
        field.name: np.array([getattr(result, field.name) for result in results])
        for field in dataclasses.fields(Result)
    }
    if all(math.isnan(error) for error in columns["middle"]):
        return Result(math.nan, math.nan, float(columns["absurd"].mean()), 1.0, math.nan)
    middle, most = (float(np.nanmedian(columns[name])) for name in ("middle", "most"))
    absurd, none = (float(columns[name].mean()) for name in ("absurd", "none"))
    return Result(middle, most, absurd, none, float(np.nanmean(columns["stated"])))


def missed(task: Task, result: Result, runs: int) -> list[str]:
    """Return the goals that a result misses; shares of few runs have their noise."""
    middle, most, absurd = task.goals
    noise = 3 * math.sqrt(absurd / runs)
    found = []
    if result.middle > middle or result.most > most:
        found.append(f"{middle:g}/{most:g}")
    if result.absurd > absurd + noise:
        found.append("absurd")
    ranked = task.p is not None or task.k > 0
    if ranked and result.stated < STATED:
        found.append("stated")
    return found


def shown(result: Result) -> str:
    """Return a result as it stands in the table."""
    errors = f"{result.middle:5.1f}/{result.most:<6.1f}"
    shares = f"{result.absurd:7.1%}{result.none:8.1%}"
    return f"{errors}{shares}{result.stated:8.1%}"


def strayed(
    release: RankRelease | ExtremeRelease, stray: float | None
) -> RankRelease | ExtremeRelease:
    """Return a release that may stop where nobody is with another chance; None: its own."""
    if stray is None:
        return release
    search = dataclasses.replace(release.search, stray=stray)
    return dataclasses.replace(release, search=search)


def table(
    title: str,
    draws: dict[str, Draw],
    runs: int,
    only: str = "",
    stray: float | None = None,
) -> bool:
    """Print one table; return whether all goals are reached.

    Args:
        title: what stands above it.
        draws: the distributions.
        runs: per distribution.
        only: a part of the names of the tasks.
        stray: the chance to stop where nobody is; None: that of the library.
    """
    head = f"{title:26}{'n':>7}  "
    columns = f"{'error':^12}{'absurd':>7}{'none':>8}"
    print(f"{head}{columns}{'stated':>8}")
    fine = True
    for task in (task for task in TASKS if only in task.name):
        some = {name: draw for name, draw in draws.items() if task.p or name not in TIES}
        count = max(5, runs // 5) if task.n > 3000 else runs
        answer = functools.partial(now, task, strayed(task.release, stray))
        new = together([measured(task, draw, count, answer) for draw in some.values()])
        line = f"{task.name:26}{task.n:>7,}  {shown(new)}"
        goals = missed(task, new, count * len(some))
        print(line + (f"   MISSED: {', '.join(goals)}" if goals else ""), flush=True)
        fine &= not goals
    return fine


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both tables; return 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Plain)
    parser.add_argument("--runs", type=int, default=RUNS, help="per distribution (default 100)")
    parser.add_argument("--only", default="", help="a part of the names of the lines")
    parser.add_argument("--stray", type=float, help="another chance to stop where nobody is")
    parser.add_argument("--bound", action="store_true", help="what no mechanism can do")
    given = parser.parse_args(arguments)
    if given.bound:
        print(bounds())
        return 0
    options = {"only": given.only, "stray": given.stray}
    tuned = table("distributions of the tuning", TUNED, given.runs, **options)
    print()
    held = table("held-out distributions", HELD_OUT, given.runs, **options)
    return int(not (tuned and held))


class _Plain(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of the description."""


if __name__ == "__main__":
    sys.exit(main())
