"""The exact laws of the searches: the chances of all that one can answer, without a draw.

They are computed from the parameters and the runs of the searches themselves, each chance to about
1e-13 of itself. That the searches draw by them is tested in `tests.mechanisms.search`.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.search import Search
from beam_dp.mechanisms.search.quantiles import several_quantiles, tail_quantile
from beam_dp.mechanisms.search.quantiles.middle_quantile import CentralSearch
from beam_dp.mechanisms.search.quantiles.node import Node
from beam_dp.mechanisms.search.quantiles.several_quantiles import (
    NO_TIES,
    SplitSearch,
    Ties,
    _parts,
)
from beam_dp.mechanisms.search.quantiles.tail_quantile import (
    Levels,
    Line,
    SparseVectorScan,
    TailSearch,
)
from beam_dp.mechanisms.search.threshold_search import Extension, ThresholdSearch
from beam_dp.testing.losses import search_laws


def distribution(search: Search, profile: Profile, candidates: Candidates) -> list[float]:
    """Return the probabilities of at most 64 candidates."""
    return search_laws.law_of(search, profile, candidates).chances[:-1]


def thresholds(search: ThresholdSearch, extension: Extension, top: int, usual: int) -> list[float]:
    """Return the chances of the prices 0, ..., top and of None."""
    return search_laws.law_of_thresholds(search, extension, top, usual).chances


def scan_chances(scan: SparseVectorScan) -> list[float]:
    """Return the chance to stop at each candidate; the last entry is that to pass all."""
    return search_laws.law_of_scan(scan).chances


# ---------------------------------------------------------------- ranks


def chances_at(search: Any, node: Node, candidates: Candidates) -> Any:
    """Return the probabilities of the candidates of a node, and of none.

    Of a `SplitSearch`: of all lists of indexes, with None for none.
    A mutant may have a method `chances_at` that says its own.
    """
    own = getattr(search, "chances_at", None)
    if own is not None:
        return own(node, candidates)
    if isinstance(search, SplitSearch):
        return _split(search, node, candidates)
    if isinstance(search, CentralSearch):
        return search_laws.law_of_node(search, node, candidates).chances
    return _tail(search, node, candidates)


def all_that_is_drawn(search: Any, node: Node, candidates: Candidates) -> list[float]:
    """Return the probabilities of all that is drawn, for an audit; see `_split`."""
    if isinstance(search, SplitSearch):
        return list(_split(search, node, candidates, few=True).values())
    return chances_at(search, node, candidates)


def _tail(search: TailSearch, node: Node, candidates: Candidates) -> list[float]:
    line = Line.of(node, candidates, search.upper)
    chances = np.zeros(node.stop - node.first + 1)
    results, first = search._first_scan(line)
    for result, chance in zip(results, scan_chances(first), strict=True):
        levels = tail_quantile._levels(search, line.side, result)
        begins, scan = search._scan(line, levels)
        behind = line.total - np.repeat(line.reached(begins), scan.lengths)
        kept, lost = kept_chances(search, levels, behind)
        *stops, passed = chance * np.array(scan_chances(scan))
        chances[:-1] += stops * kept
        chances[-1] += passed + stops @ lost
    ordered = chances[-2::-1] if search.upper else chances[:-1]
    return [float(each) for each in (*ordered, chances[-1])]


def kept_chances(
    search: TailSearch, levels: Levels, behind: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the chances that answers with so many units behind are released, or are not."""
    if levels.many:
        return np.ones(len(behind)), np.zeros(len(behind))
    least = search._units(levels.behind) - behind
    rate = float(levels.rate / search.resolution)
    return laplace_at_least(least, rate), laplace_at_least(1 - least, rate)


def laplace(rate: float | Fraction, span: int) -> np.ndarray:
    """Return P(X = k) for k from -span to span, X discrete Laplace."""
    numbers = np.abs(np.arange(-span, span + 1.0))
    return np.asarray(math.tanh(rate / 2) * np.exp(-float(rate) * numbers))


def laplace_at_least(least: np.ndarray, rate: float) -> np.ndarray:
    """Return P(eta >= least) of the discrete Laplace distribution."""
    above = np.maximum(least, 1 - least).astype(np.float64)
    tail = np.exp(-rate * above) / (1 + math.exp(-rate))
    return np.asarray(np.where(least > 0, tail, 1 - tail))


def _split(
    search: SplitSearch, node: Node, candidates: Candidates, few: bool = False
) -> dict[Any, float]:
    """Return the probabilities of all lists of indexes, with None for none.

    Args:
        search: the search.
        node: the people.
        candidates: the public outputs.
        few: list what is drawn of people who are tied as well, but all except a few such draws as
            one: an audit needs no more, and a sum over all of them takes long.
    """

    def of_parts(parts: Sequence[Any], level: int, cost: Any) -> dict[Any, float]:
        below, above = (
            {(None,) * len(rest): 1.0} if part is None else of_part(part, rest, level, cost)
            for part, rest, _ in parts
        )
        return {
            (left, right): some * other
            for left, some in below.items()
            for right, other in above.items()
        }

    def of_part(node: Node, shares: tuple, level: int, cost: Any) -> dict[Any, float]:
        if not shares:
            return {(): 1.0}
        middle = shares[several_quantiles._middle(shares)]
        chances: dict[Any, float] = {}
        asked = search._search(middle, cost, none=several_quantiles._none(node, level))
        for at, chance in enumerate(chances_at(asked, node, candidates)):
            index = None if at == node.stop - node.first else node.first + at
            drawn = {NO_TIES: 1.0}
            if index is not None and len(shares) > 1:
                drawn = ties_chances(search, node.around(index), middle, level + 1, few)
            for ties, so_often in drawn.items():
                if ties is None:
                    chances[index, ties] = chance * so_often
                    continue
                parts = _parts(node, shares, index, ties)
                further = of_parts(parts, level + 1, search._left(level + 1, ties))
                for (left, right), part in further.items():
                    key = (*left, index, *right)
                    key = (ties, *key) if few else key
                    chances[key] = chances.get(key, 0.0) + chance * so_often * part
        return chances

    return of_part(node, search.shares, 0, search.level_cost(0))


class Added(NamedTuple):
    """The law of additive noise for a sensitivity."""

    adder: AdditiveNoise
    sensitivity: int

    def at(self, number: np.ndarray) -> np.ndarray:
        """Return the chances of integers."""
        amount = float(self.adder.budget.amount)
        if self.adder.budget.is_zcdp:
            narrow = amount / self.sensitivity**2
            every = np.arange(-self._far, self._far + 1.0)
            return np.exp(-narrow * number.astype(float) ** 2) / np.exp(-narrow * every**2).sum()
        rate = amount / self.sensitivity
        return np.exp(-rate * np.abs(number)) * math.tanh(rate / 2)

    @property
    def _far(self) -> int:
        return math.ceil(60 * self.adder.scale * self.sensitivity)

    def between(self, low: int | None, high: int | None) -> float:
        """Return the chance of at least low and below high; None: there is no such end."""
        first = min(0, high) - self._far if low is None else low
        last = max(0, low or 0) + self._far if high is None else high
        return float(self.at(np.arange(first, last)).sum())


def ties_chances(
    search: SplitSearch, around: tuple[int, int, int], p: Fraction, level: int, few: bool
) -> dict[Ties | None, float]:
    """Return the chances of what is drawn of the people at an answer; None: of all others."""
    below, here, above = around
    cost, resolution = search.level_cost(level), search.resolution
    seen = AdditiveNoise(cost.scaled(1 - several_quantiles._TIES))
    place = AdditiveNoise(cost.scaled(several_quantiles._TIES))
    bound = seen.bound(1, several_quantiles._SEEN) * resolution
    over, under = p.as_integer_ratio()
    most = max(over, under - over)
    exact = over * (here + above) - (under - over) * below
    first, second = Added(seen, resolution), Added(place, most * resolution)
    found: dict[Ties | None, float] = {NO_TIES: first.between(None, bound + 1 - here)}
    sizes = range(bound + 1, max(bound, here) + 2 + first._far // 2)
    for people in [bound + 1, bound + 5] if few else sizes:
        often = float(first.at(np.array([people - here]))[0])
        if not few and often < 1e-8:
            continue
        for lower in sorted({0, people // 3, people}) if few else range(people + 1):
            least = lower * under - exact if lower else None
            until = (lower + 1) * under - exact if lower < people else None
            ties = Ties(lower, people - lower, place.bound(most, several_quantiles._WRONG) / under)
            found[ties] = often * second.between(least, until)
    if few:
        found[None] = 1 - math.fsum(found.values())
    return found
