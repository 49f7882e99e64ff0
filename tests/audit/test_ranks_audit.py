"""The exact privacy audit of the searches of ranks: central, tail, and their splitting.

No draw is made: the laws of `tests.laws` are compared over all databases of up
to 2 people with all possible shares, many larger ones, and all their neighbours; some tests take
each a third of the larger ones.
"""

import dataclasses
import itertools
import math
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.candidates.decimal_grid import DecimalGrid
from beam_dp.mechanisms.search.quantiles import several_quantiles, tail_quantile
from beam_dp.mechanisms.search.quantiles.middle_quantile import CentralSearch
from beam_dp.mechanisms.search.quantiles.node import Node
from beam_dp.mechanisms.search.quantiles.several_quantiles import SplitSearch
from beam_dp.mechanisms.search.quantiles.tail_quantile import Line, TailSearch
from beam_dp.testing.losses import search_laws
from tests import laws

D, N = 2, 4  # candidates at both ends, and two between them
ROUNDING = 1e-8
EVEN = Candidates.of(range(N))
SIGNED = Candidates.of(range(-2, N - 2))
WEIGHTED = DecimalGrid(0, 1, 1)  # 21 values, of weights from 1/9 to 1
# What a person can be: shares that do not fall over the candidates, 1 at the last one.
KINDS = [s for s in itertools.product(range(D + 1), repeat=N - 1) if list(s) == sorted(s)]


def node_of(people: tuple[int, ...], size: int, are_ends: bool = False) -> Node:
    """Return so many people of each kind."""
    shares = np.array(people) @ np.array(KINDS)
    return Node.of(np.arange(N), np.diff([0, *shares, D * sum(people)]), size, are_ends)


def databases() -> list[tuple[int, ...]]:
    """Return all databases of up to 2 people, and some of up to 100."""
    found = []
    for size in range(3):
        for some in itertools.combinations_with_replacement(range(len(KINDS)), size):
            found.append(tuple(np.bincount(some, minlength=len(KINDS)).tolist()))
    random = np.random.default_rng(1)
    some = [random.choice([0, 0, 0, 1, 3, 12], len(KINDS)) for _ in range(20)]
    few = [random.multinomial(size, np.ones(len(KINDS)) / len(KINDS)) for size in range(3, 30, 3)]
    edges = []
    for one, other in itertools.permutations(range(len(KINDS)), 2):
        if one in (0, len(KINDS) // 2, len(KINDS) - 1) or other in (0, len(KINDS) - 1):
            edges.append([12 * (i == one) + 3 * (i == other) for i in range(len(KINDS))])
    return [*found, *(tuple(map(int, people)) for people in [*some, *few, *edges])]


DATABASES = databases()


def some_databases(part: int) -> list[tuple[int, ...]]:
    """Return all databases of up to 2 people, and each third of the others."""
    numbered = enumerate(DATABASES)
    return [people for at, people in numbered if sum(people) <= 2 or (at - part) % 3 == 0]


class Audit:
    """Compares a search over all databases and their neighbours, each distribution made once."""

    def __init__(self, search, candidates=EVEN, are_ends=False):
        self.search, self.candidates, self.cache = search, candidates, {}
        self.are_ends = are_ends

    def logarithms(self, people):
        if people not in self.cache:
            node = node_of(people, self.candidates.size, self.are_ends)
            listed = np.array(laws.all_that_is_drawn(self.search, node, self.candidates))
            assert listed.sum() == pytest.approx(1, abs=1e-12)
            self.cache[people] = np.log(listed)
        return self.cache[people]

    def worst(self, some=DATABASES) -> tuple[float, float]:
        """Return the largest |ln P_x / P_x'| and the largest range of ln P_x / P_x'."""
        most, span = 0.0, 0.0
        for people in some:
            for kind in range(len(KINDS)):
                more = tuple(count + (i == kind) for i, count in enumerate(people))
                change = self.logarithms(people) - self.logarithms(more)
                most = max(most, float(np.abs(change).max()))
                span = max(span, float(change.max() - change.min()))
        return most, span


@pytest.fixture(autouse=True)
def _each_node_once(monkeypatch):
    """Parts of different databases are often the same: their distributions are made once."""
    monkeypatch.setattr(laws, "chances_at", _remembering(laws.chances_at))


def _remembering(method):
    known = {}

    def chances_at(search, node, candidates):
        people = node.buckets.tobytes(), node.amounts.astype(np.int64).tobytes()
        key = search, candidates, node.first, node.stop, people
        if key not in known:
            known[key] = method(search, node, candidates)
        return known[key]

    return chances_at


HALF, TENTH = Fraction(1, 2), Fraction(1, 10)
QUARTERS = (HALF / 2, HALF, 3 * HALF / 2)
QUANTILES = [HALF, 3 * TENTH, Fraction(2, 3), 9 * TENTH]


@pytest.mark.audit
@pytest.mark.parametrize("p", QUANTILES)
@pytest.mark.parametrize("candidates", [EVEN, Candidates.of([0, 5, 90, 91])])
def test_central_search_spends_all_of_epsilon_and_no_more(p, candidates):
    most, span = Audit(CentralSearch(Budget(2), p, D), candidates).worst()
    assert 1.0 < most <= 2 + ROUNDING
    assert 1.8 < span <= 2 + ROUNDING


@pytest.mark.audit
def test_central_search_under_zcdp_by_its_bounded_range():
    _, span = Audit(CentralSearch(Budget.zcdp(0.5), HALF, D)).worst()
    assert 1.8 < span <= 2 + ROUNDING  # sqrt(8 / 2)


@pytest.mark.audit
def test_weights_of_candidates_change_no_ratio():
    # The grid's 21 candidates: everybody is on the first ones, where weights differ.
    most, span = Audit(CentralSearch(Budget(2), HALF, D), WEIGHTED).worst()
    assert 1.0 < most <= 2 + ROUNDING and span <= 2 + ROUNDING


@pytest.fixture
def small_steps(monkeypatch):
    """Puts an edge at every second candidate, and lets a search change its levels."""
    made = tail_quantile._levels

    def levels(search, outer, result):
        found = made(search, outer, result)
        return search.changed(found) if hasattr(search, "changed") else found

    monkeypatch.setattr(tail_quantile, "STEP", 2)
    monkeypatch.setattr(tail_quantile, "_levels", levels)
    made.cache_clear()
    tail_quantile._asked_at_first.cache_clear()


TAILS = [
    (TENTH, 0, True),
    (2 * TENTH, 0, False),
    (0, 0, True),
    (0, 0, False),
    (0, 4, True),
    (Fraction(1, 3), 2, False),
]


@pytest.mark.audit
@pytest.mark.parametrize(("share", "rank", "upper"), TAILS)
@pytest.mark.parametrize("false_stop", [0.9, 0.02])
def test_tail_search_spends_at_most_epsilon(share, rank, upper, false_stop, small_steps):
    search = TailSearch(Budget(2), share, rank, upper, false_stop, D)
    part = TAILS.index((share, rank, upper)) + (false_stop > 0.5)
    most, _ = Audit(search, SIGNED).worst(some_databases(part))
    assert 1.4 < most <= 2 + ROUNDING


@pytest.mark.audit
@pytest.mark.parametrize(("share", "rank", "upper"), TAILS)
def test_tail_search_under_zcdp_by_its_bounded_range(share, rank, upper, small_steps):
    search = TailSearch(Budget.zcdp(0.5), share, rank, upper, 0.5, D)
    _, span = Audit(search).worst(some_databases(TAILS.index((share, rank, upper))))
    assert 1.2 < span <= 2 + ROUNDING


@pytest.mark.audit
@pytest.mark.parametrize("are_ends", [False, True])
@pytest.mark.parametrize(
    "shares", [(HALF,), (TENTH, HALF), QUARTERS, (3 * TENTH, 9 * TENTH, 1 - TENTH / 10)]
)
def test_splitting_spends_at_most_epsilon(shares, are_ends):
    search = SplitSearch(Budget(3), shares, D)
    some = [DATABASES[0], *DATABASES[are_ends :: 27 if len(shares) == 3 else 18]]
    most, _ = Audit(search, are_ends=are_ends).worst(some)
    assert 1.2 < most <= 3 + ROUNDING


@pytest.mark.audit
def test_splitting_under_zcdp():
    audit, worst = Audit(SplitSearch(Budget.zcdp(0.5), QUARTERS, D)), 0.0
    for people in DATABASES[::16]:
        for kind in range(len(KINDS)):
            more = tuple(count + (i == kind) for i, count in enumerate(people))
            pair = audit.logarithms(people), audit.logarithms(more)
            for one, other in (pair, pair[::-1]):
                for alpha in (1.5, 2, 8, 32):
                    terms = alpha * one + (1 - alpha) * other
                    moments = np.log(np.exp(terms - terms.max()).sum()) + terms.max()
                    worst = max(worst, float(moments) / (alpha - 1) / alpha)
    assert 0.1 < worst <= 0.5 + ROUNDING


class WithAllThatIsDrawn(TailSearch):
    """Lists what the first look saw, the answer, and the number behind it in units, to 160 people."""

    def chances_at(self, node, candidates):
        line = Line.of(node, candidates, self.upper)
        results, first = self._first_scan(line)
        parts = [
            self._after(line, tail_quantile._levels(self, line.side, result), chance)
            for result, chance in zip(results, laws.scan_chances(first), strict=True)
        ]
        return np.concatenate(parts)

    def _after(self, line, levels, chance):
        begins, scan = self._scan(line, levels)
        behind = line.total - np.repeat(line.reached(begins), scan.lengths).astype(int)
        rate = float(levels.rate / self.resolution)
        least = -30 * self.resolution if levels.many else self._units(levels.behind)
        seen = np.arange(least, 160 * self.resolution)
        scale = (1 - math.exp(-rate)) / (1 + math.exp(-rate))
        *stops, none = laws.scan_chances(scan)
        reached = chance * np.array(stops)
        found = reached[:, None] * scale * np.exp(-rate * np.abs(seen - behind[:, None]))
        far = reached * laws.laplace_at_least(160 * self.resolution - behind, rate)
        few = reached * laws.laplace_at_least(1 + behind - least, rate)
        if levels.many:
            return np.concatenate([found.ravel(), far, few, [chance * none]])
        return np.concatenate([found.ravel(), far, [few.sum() + chance * none]])


@pytest.mark.audit
@pytest.mark.parametrize(("share", "rank", "upper"), TAILS[:3])
def test_the_number_of_people_behind_the_answer_costs_nothing_more(share, rank, upper, small_steps):
    search = WithAllThatIsDrawn(Budget(2), share, rank, upper, 0.5, D)
    most, _ = Audit(search, SIGNED).worst(DATABASES[::2])
    assert 1.6 < most <= 2 + ROUNDING
    search = WithAllThatIsDrawn(Budget.zcdp(0.5), share, rank, upper, 0.5, D)
    _, span = Audit(search, SIGNED).worst(DATABASES[::4])
    assert 1.2 < span <= 2 + ROUNDING


# ------------------------------------------------------------------------- seeded mutants


class HalfTheNoise(CentralSearch):
    @property
    def _rate(self):
        return 2 * super()._rate


class TheSmallerSide(CentralSearch):
    """Divides by min(p, 1 - p) where a person moves the rank by max(p, 1 - p)."""

    @property
    def _rate(self):
        share = self.p
        return super()._rate * max(share, 1 - share) / min(share, 1 - share)


class NoneIfFew(CentralSearch):
    """Answers none by the exact number of people."""

    def chances_at(self, node, candidates):
        few = int(node.sums[-1]) < 3 * D
        chances = search_laws.law_of_node(self, node, candidates).chances
        some = [chance / 1e9 for chance in chances[:-1]]
        return [*some, 1 - math.fsum(some)] if few else chances


@pytest.mark.audit
@pytest.mark.parametrize("mutant", [HalfTheNoise, TheSmallerSide, NoneIfFew])
def test_broken_central_searches_are_noticed(mutant):
    assert max(Audit(mutant(Budget(2), 8 * TENTH, D)).worst()) > 2.2


class AllOfEpsilonBesideTheShare(TailSearch):
    """Does not pay for the level, which moves by s."""

    def changed(self, levels):
        return dataclasses.replace(levels, rate=levels.rate * (1 + levels.share))


class HalfTheNoiseOfTheScan(TailSearch):
    def changed(self, levels):
        return dataclasses.replace(levels, rate=2 * levels.rate)


class AFirstLookForNothing(TailSearch):
    """Pays a twentieth of epsilon for what costs half."""

    def _first_scan(self, line):
        results, first = super()._first_scan(line)
        return results, first._replace(rate=10 * first.rate)


def always_kept(search, levels, behind):
    return np.ones(len(behind)), np.zeros(len(behind))


class TheCheckCountsEverybody(TailSearch):
    """Looks at n, in which each person counts, also one who has counted in the walk."""

    def chances_at(self, node, candidates):
        with mock.patch.object(laws, "kept_chances", always_kept):
            chances = laws._tail(self, node, candidates)
        [kept], _ = laws.kept_chances(self, self._few(candidates), node.sums[-1:])
        lost = math.fsum(chances[:-1]) * (1 - kept)
        return [*(chance * kept for chance in chances[:-1]), chances[-1] + lost]


@pytest.mark.audit
@pytest.mark.parametrize(
    "mutant",
    [
        AllOfEpsilonBesideTheShare(Budget(2), Fraction(1, 3), 0, True, 0.9, D),
        HalfTheNoiseOfTheScan(Budget(2), 0, 2, True, 0.5, D),
        HalfTheNoiseOfTheScan(Budget(2), TENTH, 0, False, 0.5, D),
        AFirstLookForNothing(Budget(2), 0, 0, True, 0.02, D),
        TheCheckCountsEverybody(Budget(2), 0, 0, True, 0.9, D),
    ],
)
def test_broken_tail_searches_are_noticed(mutant, small_steps):
    assert Audit(mutant).worst(some_databases(0))[0] > 2.05


@pytest.mark.audit
def test_parts_that_share_people_are_noticed(monkeypatch):
    # The broken twin searches everybody on both sides.
    monkeypatch.setattr(several_quantiles.Node, "split", lambda node, *_: (node, node))
    search = SplitSearch(Budget(3), (3 * TENTH, HALF, 7 * TENTH), D)
    assert Audit(search).worst(DATABASES[::30])[0] > 3.1


def with_those_who_are_tied(node, index, below=0, above=0):
    """A mutant: people at an answer, who are counted, are searched below it as well."""
    cut = np.searchsorted(node.buckets, index, side="right")
    lower = Node(node.buckets[:cut], node.amounts[:cut], node.first, index + 1)
    return lower, Node(node.buckets[cut:], node.amounts[cut:], index, node.stop)


@pytest.mark.audit
def test_people_who_are_counted_and_searched_are_noticed(monkeypatch):
    monkeypatch.setattr(several_quantiles.Node, "split", with_those_who_are_tied)
    assert Audit(SplitSearch(Budget(3), QUARTERS, D)).worst(DATABASES[::39])[0] > 3.1


class ThePlaceForNothing(SplitSearch):
    """Draws the place of a quantile among people of one value, and searches with all the rest."""

    def _left(self, level, ties):
        return self.level_cost(level)


@pytest.mark.audit
def test_a_place_that_is_not_paid_is_noticed():
    assert Audit(ThePlaceForNothing(Budget(3), QUARTERS, D)).worst(DATABASES[::26])[0] > 3.1


@pytest.mark.audit
def test_every_level_needs_its_own_part_of_the_budget():
    class AllForEachLevel(SplitSearch):
        def level_cost(self, level):
            return self.cost

    assert Audit(AllForEachLevel(Budget(2), QUARTERS, D)).worst(DATABASES[::40])[0] > 2.2
