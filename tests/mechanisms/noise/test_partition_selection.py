"""Selection keeps exactly what (epsilon, delta) allows: in rationals, and nearly all of it."""

import copy
import dataclasses
import decimal
import itertools
import math
import pickle
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from beam_dp.mechanisms.noise.partition_selection import TruncatedGeometric
from beam_dp.mechanisms.noise.sampling import Noise

PAIRS = [
    (Fraction(epsilon), Fraction(delta))
    for epsilon in (0.01, 0.1, Fraction(1, 3), 1, 5, 50)
    for delta in (1e-300, 1e-20, 1e-9, 1e-6, 0.01, Fraction(1, 3), 0.9)
    if -2 * math.log(delta) / epsilon < 3000  # about the size of the table
]
RARE = [
    (Fraction(2.0**-50), Fraction(1e-3)),
    (Fraction(1, 2**100), Fraction(1, 1000)),
    (Fraction(700), Fraction(1e-300)),
    (Fraction(1023), Fraction(1, 10**700)),
    (Fraction(1, 7), 1 - Fraction(1, 10**40)),
]
MANY = Fraction(10**6)  # an epsilon that is used as 1024


def growth_below(epsilon: Fraction) -> Fraction:
    """A rational just below e^epsilon: the series of e^(epsilon / 2^k), squared k times.

    Cut off after 600 terms and in steps of 2^-4000, always downwards.
    """
    halvings, unit = max(0, math.ceil(epsilon).bit_length()), 1 << 4000
    term = total = unit
    for k in range(1, 600):
        term = math.floor(term * epsilon / k / 2**halvings)
        total += term
    for _ in range(halvings):
        total = total * total >> 4000
    return Fraction(total >> 3000, 1 << 1000)


def violations(kept: list[Fraction], growth: Fraction, delta: Fraction) -> int:
    """How many of the inequalities of (epsilon, delta)-DP fail between neighbours."""
    pairs = [
        pair
        for p, q in itertools.pairwise(kept)
        for pair in ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p))
    ]
    return sum(left > growth * right + delta for left, right in pairs)


def probabilities(selection: TruncatedGeometric) -> list[Fraction]:
    return [selection.probability(n) for n in range(selection.threshold + 3)]


def real_recurrence(epsilon: Fraction, delta: Fraction, size: int) -> list[Fraction]:
    """The recurrence of the paper in 900 digits, as good as real numbers here."""
    with decimal.localcontext(prec=900):
        power = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
        step, value = Decimal(delta.numerator) / Decimal(delta.denominator), Decimal(0)
        values = [Fraction(0)]
        for _ in range(size - 1):
            value = min(power * value + step, 1 - (1 - value - step) / power, Decimal(1))
            values.append(Fraction(value))
    return values


@pytest.mark.sampled(13)
@pytest.mark.parametrize(("epsilon", "delta"), PAIRS + RARE)
def test_every_inequality_holds_exactly(epsilon: Fraction, delta: Fraction) -> None:
    selection = TruncatedGeometric(epsilon, delta)
    kept = probabilities(selection)
    assert violations(kept, growth_below(epsilon), delta) == 0
    assert kept == sorted(kept)
    assert kept[0] == 0 < kept[1] <= delta
    assert kept[selection.threshold - 1] < 1 == kept[selection.threshold] == kept[-1]


@pytest.mark.sampled(17)
@pytest.mark.parametrize(("epsilon", "delta"), PAIRS + RARE)
def test_no_more_is_dropped_than_the_paper_allows(epsilon: Fraction, delta: Fraction) -> None:
    kept = probabilities(TruncatedGeometric(epsilon, delta))
    for ours, best in zip(kept, real_recurrence(epsilon, delta, len(kept)), strict=True):
        assert best - Fraction(1, 2**100) <= ours <= best
        assert ours >= best * (1 - Fraction(1, 2**100))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("delta", [Fraction(1e-300), Fraction(1e-20), Fraction(1e-6)])
def test_broken_tables_are_noticed(delta: Fraction) -> None:
    epsilon = Fraction(1)
    growth, kept = growth_below(epsilon), probabilities(TruncatedGeometric(epsilon, delta))
    tiny = Fraction(1, 2**90) * delta
    broken = [
        [Fraction(0), *kept[2:]],  # one person too few
        [min(p + tiny, Fraction(1)) if p else p for p in kept],
        probabilities(TruncatedGeometric(epsilon, 2 * delta)),
        probabilities(TruncatedGeometric(epsilon * (1 + Fraction(1, 2**60)), delta)),
        [min(n * delta * 2, Fraction(1)) for n in range(len(kept))],
        [Fraction(n >= 10) for n in range(12)],  # a threshold without chance
    ]
    assert all(violations(table, growth, delta) > 0 for table in broken)


def test_paper_example() -> None:
    # By hand: epsilon = ln 2 nearly, delta = 1/4 gives 1/4, then 1 - (1 - 1/2)/2 = 3/4, then 1.
    epsilon = Fraction(0.6931471805599453)
    selection = TruncatedGeometric(epsilon, Fraction(1, 4))
    assert [round(selection.probability(n) * 2**30) for n in range(4)] == [
        0,
        2**28,
        3 * 2**28,
        2**30,
    ]
    assert selection.threshold in (3, 4)  # ln 2 is not a rational
    assert TruncatedGeometric(Fraction(1), Fraction(1e-6)).threshold == 28


def test_pre_threshold_shifts_everything() -> None:
    plain = TruncatedGeometric(Fraction(1), Fraction(1e-6))
    shifted = dataclasses.replace(plain, pre_threshold=5)
    assert shifted.threshold == plain.threshold + 4
    assert probabilities(shifted)[:5] == [0] * 5  # impossible with fewer than 5 people
    assert probabilities(shifted)[4:] == probabilities(plain)
    huge = dataclasses.replace(plain, pre_threshold=2**62)
    people = np.array([0, 2**62 - 1, 2**62 + 100, 2**63 - 1, -(2**63)])
    assert huge.keep(people, Noise()).tolist() == [False, False, True, True, False]


def test_large_epsilon_is_used_as_1024() -> None:
    capped, most = (TruncatedGeometric(e, Fraction(1, 2)) for e in (MANY, Fraction(1024)))
    assert probabilities(capped) == probabilities(most)


@pytest.mark.parametrize("delta", [Fraction(1e-300), Fraction(5e-324), Fraction(1, 10**999)])
def test_tiny_delta_has_a_finite_threshold(delta: Fraction) -> None:
    selection = TruncatedGeometric(Fraction(1), delta)
    bound = 2 * (math.log(delta.denominator) - math.log(delta.numerator)) + 4
    assert selection.threshold <= bound
    assert 0 < selection.probability(1) <= delta


@dataclasses.dataclass(frozen=True)
class Scripted(Noise):
    """Hands out prepared words."""

    script: Iterator[npt.NDArray[np.uint64]]

    def words(self, size: int) -> npt.NDArray[np.uint64]:
        """Return the next ones."""
        drawn = next(self.script)
        assert drawn.size == size
        return drawn


def columns(numbers: list[int], words: int) -> list[list[int]]:
    """The words of each number, most significant first, as columns."""
    return [[number >> 64 * k & 2**64 - 1 for number in numbers] for k in reversed(range(words))]


@pytest.mark.parametrize(
    ("delta", "words"), [(Fraction(1e-6), 2), (Fraction(1e-9), 3), (Fraction(1e-300), 18)]
)
def test_comparison_is_exact_to_the_last_bit(delta: Fraction, words: int) -> None:
    selection = TruncatedGeometric(Fraction(1), delta)
    one = 2 ** (64 * words)
    for n in range(1, selection.threshold, max(1, selection.threshold // 40)):
        level = int(selection.probability(n) * one)
        assert Fraction(level, one) == selection.probability(n)
        for number in (level - 1, level, level + 1, 0, one - 1):
            script = [np.array(c, dtype=np.uint64) for c in columns([number], words)]
            kept = selection.keep(np.array([n]), Scripted(iter(script)))
            assert kept.tolist() == [number < level]


def test_undecided_partitions_alone_draw_again() -> None:
    selection = TruncatedGeometric(Fraction(1), Fraction(1e-6))
    people = np.array([3, 9, 0, 15, 40, 3])
    levels = [int(selection.probability(int(n)) * 2**128) for n in people]
    first, second = columns(levels, 2)
    first[4], first[5] = 7, 0  # 40 people are always kept; 0 is below the first word for 3
    script = [first, [second[0] - 1, second[1], 0, second[3] - 1]]
    noise = Scripted(iter([np.array(words, dtype=np.uint64) for words in script]))
    assert selection.keep(people, noise).tolist() == [True, False, False, True, True, True]


def test_certain_cases_do_not_depend_on_the_draw() -> None:
    selection = TruncatedGeometric(Fraction(1), Fraction(1e-6), 4)
    people = np.array([-5, 0, 1, 3] * 500 + [31, 32, 10**6, 2**63 - 1] * 500)
    for dtype in (np.int64, np.int32):
        kept = selection.keep(np.minimum(people, np.iinfo(dtype).max).astype(dtype), Noise())
        assert kept.dtype == np.bool_ and kept.tolist() == [False] * 2000 + [True] * 2000
    assert selection.keep(np.array([], dtype=np.int64), Noise()).tolist() == []


def deviation(selection: TruncatedGeometric, people: int, shift: int, size: int) -> float:
    """How far the rate of `size` decisions is from the claimed probability."""
    kept = selection.keep(np.full(size, people + shift), Noise())
    return abs(float(kept.mean()) - float(selection.probability(people)))


@pytest.mark.parametrize("people", [1, 2, 4, 5, 7, 9])
def test_rates_follow_the_probabilities(people: int) -> None:
    # Hoeffding: P[|mean - p| > t] <= 2 exp(-2 size t^2) = 1e-10 for this t, 6 cases, and the
    # broken twin passes with at most 1e-10 too, as its p is further than 2 t away.
    selection, size = TruncatedGeometric(Fraction(1, 2), Fraction(0.03)), 200_000
    tolerance = math.sqrt(math.log(2e10) / (2 * size))
    assert deviation(selection, people, 0, size) <= tolerance
    assert selection.probability(people + 1) > selection.probability(people) + 2 * Fraction(
        tolerance
    )
    assert deviation(selection, people, 1, size) > tolerance


@pytest.mark.parametrize("bad", [0, -1, -0.0, math.nan, math.inf, True, "1", None, np.array([1.0])])
def test_parameters_out_of_range_are_refused(bad: Fraction) -> None:
    half = Fraction(1, 2)
    for arguments in ((bad, half), (half, bad)):
        with pytest.raises((ValueError, TypeError), match=r"^TruncatedGeometric: \w+ must be"):
            TruncatedGeometric(*arguments)


def test_delta_of_zero_or_one_is_refused_with_a_way_out() -> None:
    for delta in (Fraction(0), Fraction(1)):
        with pytest.raises(ValueError, match=r"delta must be above 0 and below 1.* Write Budget\("):
            TruncatedGeometric(Fraction(1), delta)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, None, np.int64(1), 2**62 + 1])
def test_pre_threshold_out_of_range_is_refused(bad: int) -> None:
    with pytest.raises((ValueError, TypeError), match="^TruncatedGeometric: pre_threshold must be"):
        TruncatedGeometric(Fraction(1), Fraction(1e-6), bad)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(1e-3, 1e-300), (1e-5, 1e-12), (2.0**-50, 9e-7), (Fraction(1, 10**400), Fraction(1, 2))],
)
def test_tables_that_are_too_long_are_refused_at_once(epsilon: float, delta: float) -> None:
    with pytest.raises(ValueError, match=r"settle within 2\^20 people.* Raise epsilon or delta"):
        TruncatedGeometric(Fraction(epsilon), Fraction(delta))


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS + RARE)
def test_closed_form_of_the_size_is_right(epsilon: Fraction, delta: Fraction) -> None:
    with decimal.localcontext(prec=400):
        rate = Decimal(epsilon.numerator) / epsilon.denominator
        odds = (1 - (-rate).exp()) / (1 + (-rate).exp()) * delta.denominator / delta.numerator
        size = 2 * (1 + odds * (1 - Decimal(delta.numerator) / delta.denominator)).ln() / rate
    assert abs(TruncatedGeometric(epsilon, delta).threshold - size) <= 3


def test_selection_is_frozen_small_and_checked_when_unpickled() -> None:
    selection = TruncatedGeometric(Fraction(1, 10), Fraction(1e-9), 2)
    selection.keep(np.array([5]), Noise())
    pickled = pickle.dumps(selection)
    assert len(pickled) < 400
    assert pickle.loads(pickled) == copy.deepcopy(selection) == selection
    assert hash(pickle.loads(pickled)) == hash(selection)
    for field in ("epsilon", "delta", "pre_threshold"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(selection, field, Fraction(2))


@dataclasses.dataclass
class Forged:
    """Pickles as whatever `reduced` says."""

    reduced: tuple[object, ...]

    def __reduce__(self) -> tuple[object, ...]:
        return self.reduced


@pytest.mark.parametrize(
    "reduced",
    [
        (TruncatedGeometric, (Fraction(1), Fraction(2), 1)),
        (TruncatedGeometric, (Fraction(1), Fraction(1, 2), 0)),
        (TruncatedGeometric.__new__, (TruncatedGeometric,), {"epsilon": Fraction(-1)}),
    ],
)
def test_forged_pickles_are_refused(reduced: tuple[object, ...]) -> None:
    with pytest.raises((ValueError, TypeError), match=r"^TruncatedGeometric: \w+ must be"):
        pickle.loads(pickle.dumps(Forged(reduced)))
