"""The exact privacy audit of ranks of rows: people with many rows, weighed by a clip.

No draw is made: the output probabilities of the searches are compared over all small databases and
all their neighbours, for several clips; and the histogram by which a clip is chosen, which one
person moves by 1 in one bucket.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.metrics import quantiles
from beam_dp.mechanisms.search.quantiles import tail_quantile
from beam_dp.mechanisms.search.quantiles.middle_quantile import CentralSearch
from beam_dp.mechanisms.search.quantiles.node import Answer, Node, increments
from beam_dp.mechanisms.search.quantiles.several_quantiles import SplitSearch
from beam_dp.mechanisms.search.quantiles.tail_quantile import TailSearch
from beam_dp.mechanisms.summaries.owner_lines import Lines
from tests import laws
from tests.doubles import ZeroNoise, compile_program

pytestmark = pytest.mark.audit

D, SIZE, ROUNDING = 4, 4, 1e-8
CANDIDATES = Candidates.of(range(SIZE))
CLIPS = (1, 2, 4)
# How many rows a person has at each candidate; nobody has any at the third one.
KINDS = [kind for kind in itertools.product((0, 1, 3), (0, 2), (0,), (0, 5)) if any(kind)]


def databases() -> list[tuple[int, ...]]:
    """Return all databases of one person, some of 2, and some of up to 40, by kinds."""
    found = [
        tuple(some)
        for size in range(3)
        for some in itertools.combinations_with_replacement(range(len(KINDS)), size)
    ]
    random = np.random.default_rng(3)
    several = [random.integers(0, len(KINDS), size) for size in (5, 9, 20, 40) for _ in range(2)]
    alike = [[one] * 12 + [other] * 6 for one, other in ((0, 2), (3, 1), (4, 9), (10, 1))]
    return found + [tuple(map(int, some)) for some in (*several, *alike)]


DATABASES = databases()


def lines_of(people: tuple[int, ...]) -> Lines:
    """Return the lines of people, each with their rows from the largest place down."""
    cells = [
        (person, place, KINDS[kind][place])
        for person, kind in enumerate(people)
        for place in reversed(range(SIZE))
        if KINDS[kind][place]
    ]
    owner, items, counts = np.array(cells, np.int64).reshape(-1, 3).T
    return Lines(owner[None], items, counts)


def by_share(lines: Lines, clip: int) -> Node:
    """Return the node of quantiles."""
    columns = lines.people, lines.items, lines.counts
    return Node.of(*increments(*columns, D, clip), SIZE)


def by_largest(lines: Lines, clip: int) -> Node:
    """Return the node of the k-th largest."""
    people, items, counts = quantiles._largest(lines, clip)
    return Node.of(*increments(people, items, counts, D, clip), SIZE)


def worst(search, node_of, clip, some=DATABASES) -> float:
    """Return the largest |ln P_x / P_x'| of all neighbours, and check the sums."""
    known: dict = {}

    def logarithms(people):
        people = tuple(sorted(people))
        if people not in known:
            node = node_of(lines_of(people), clip)
            listed = laws.all_that_is_drawn(search, node, CANDIDATES)
            assert math.fsum(listed) == pytest.approx(1, abs=1e-12)
            known[people] = np.log(listed)
        return known[people]

    return max(
        float(np.abs(logarithms(people) - logarithms((*people, kind))).max())
        for people in some
        for kind in range(len(KINDS))
    )


SEARCHES = [
    CentralSearch(Budget(2), Fraction(1, 2), D),
    CentralSearch(Budget(2), Fraction(3, 10), D),
    TailSearch(Budget(2), Fraction(1, 10), 0, True, 0.9, D),
    TailSearch(Budget(2), Fraction(1, 5), 0, False, 0.9, D),
    SplitSearch(Budget(2), (Fraction(1, 4), Fraction(1, 2)), D),
]


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("search", SEARCHES, ids=lambda s: f"{type(s).__name__}")
def test_quantiles_of_rows_spend_at_most_epsilon(search, clip, monkeypatch):
    monkeypatch.setattr(tail_quantile, "STEP", 2)
    some = DATABASES[CLIPS.index(clip) :: 8 if isinstance(search, SplitSearch) else 2]
    found = worst(search, by_share, clip, some)
    assert 0.8 < found <= 2 + ROUNDING


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("rank", [1, 4, 9])
def test_the_kth_largest_row_spends_at_most_epsilon(clip, rank, monkeypatch):
    monkeypatch.setattr(tail_quantile, "STEP", 2)
    search = TailSearch(Budget(2), 0, rank, True, 0.9, D, worth=clip)
    found = worst(search, by_largest, clip, DATABASES[CLIPS.index(clip) % 2 :: 2])
    assert 1.0 < found <= 2 + ROUNDING


def every_row(lines: Lines, clip: int) -> Node:
    """A mutant: each row weighs 1 / C, however many a person has."""
    return Node.of(lines.items, lines.counts * (D // clip), SIZE)


def by_the_others(lines: Lines, clip: int) -> Node:
    """A mutant: the clip is the exact largest number of rows, which a person moves."""
    rows = np.bincount(lines.people, lines.counts) if len(lines.items) else np.ones(1)
    return by_share(lines, int(rows.max()))


@pytest.mark.parametrize("mutant", [every_row, by_the_others])
def test_broken_weights_are_noticed(mutant):
    assert worst(SEARCHES[0], mutant, 2) > 2.2


def test_broken_cuts_are_noticed(monkeypatch):
    monkeypatch.setattr(tail_quantile, "STEP", 2)
    search = TailSearch(Budget(2), 0, 4, True, 0.9, D, worth=2)
    assert worst(search, every_row, 2) > 2.2


def histograms_of(release, people, place, monkeypatch) -> list[np.ndarray]:
    """Return the histograms that choose clips, where the first scan ends at `place`."""
    seen = []
    draw = quantiles.ClipChoice.draw

    def remembered(self, histogram, noise):
        seen.append(histogram.copy())
        return draw(self, histogram, noise)

    with monkeypatch.context() as patch:
        patch.setattr(quantiles.ClipChoice, "draw", remembered)
        if isinstance(release, quantiles.RankRelease):
            patch.setattr(quantiles.SplitSearch, "answers", lambda *given: [Answer()])
            release._answers(lines_of(people), ZeroNoise())
        else:

            def near(self, own, search, noise):
                return Answer(place if search.budget == self.near.budget else None)

            patch.setattr(type(release), "_scanned", near)
            release._answer(lines_of(people), ZeroNoise())
    return seen


METRICS = [
    dp.Median("v", candidates=CANDIDATES, unit=1),
    dp.KthLargest("v", 10**6, candidates=CANDIDATES, unit=1),
]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: type(metric).__name__)
def test_a_person_more_moves_one_bucket_of_the_histogram_by_1(metric, monkeypatch):
    [step] = compile_program([metric], Budget(1), 1).steps
    for people in [each for each in DATABASES if len(each) < 2][::6]:
        for place in (None, 2):
            before = histograms_of(step.release, people, place, monkeypatch)
            for kind in range(0, len(KINDS), 2):
                after = histograms_of(step.release, (*people, kind), place, monkeypatch)
                for one, other in zip(before, after, strict=True):
                    moved = other - one
                    assert np.abs(moved).sum() == moved.sum() <= 1
                assert moved.sum() == 1 or not sum(KINDS[kind][place or 0 :])
