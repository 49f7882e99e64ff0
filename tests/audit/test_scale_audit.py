"""The exact audit of ScaleThenChoose: each of its three steps, and all of them together.

Its parameters are set by hand to be small, so that every branch is taken by profiles with up to 6
candidates and losses up to 6: all of them, with all neighbours, as in `test_search_audit`.
"""

import dataclasses
import itertools
import math
from fractions import Fraction

import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.profiles.profile import Profile
from beam_dp.mechanisms.search import ScaleThenChoose
from beam_dp.mechanisms.search.scale_then_choose import Scales, scales_for
from tests import laws
from tests.audit.test_search_audit import (
    PAIRS,
    ROUNDING,
    SIZES,
    all_losses,
    distribution,
    worst_delta,
)

DELTA = Fraction(1, 20)


def small(rates: str, alarm: int, inner: int, margin: int) -> Scales:
    names = ("first", "second", "third", "fourth")
    given = dict(zip(names, map(Fraction, rates.split()), strict=True))
    return Scales(**given, delta=DELTA, alarm=alarm, inner=inner, margin=margin, n=6)


SMALL = [
    small("0.3 0.4 0.5 0.6", alarm=3, inner=4, margin=1),
    small("1 0.5 0.9 0.2", alarm=2, inner=6, margin=0),
    small("0.2 2 0.2 2", alarm=1, inner=3, margin=2),
]


class Cheap(Scales):
    """The broken twin: "no cell" has hardly any weight, so that new cells stand out."""

    @property
    def nothing(self) -> int:
        return 1


@dataclasses.dataclass(frozen=True)
class Fixed:
    """The mechanism with parameters of our own, as a search."""

    scales: Scales


@laws.by_losses.register
def _(search: Fixed, losses: list[int]) -> list[float]:
    scales = dataclasses.replace(search.scales, n=len(losses))
    return laws.of_scales(scales, places_of(losses, scales))


def epsilon_of(found: Scales) -> float:
    return float(found.first + 2 * found.second + found.third + found.fourth)


def cheap(found: Scales) -> Cheap:
    return Cheap(**dataclasses.asdict(found))


def places_of(losses: tuple[int, ...], found: Scales) -> list[int]:
    n = len(losses)
    values = [
        next((i for i, loss in enumerate(losses) if loss <= k), n) for k in range(max(losses) + 1)
    ]
    return found.indexes(Profile(values).steps(Candidates.of(range(n))))


def steps_of(found: Scales, n: int) -> tuple[list, list, list]:
    """Return, per profile, the chances of the scales, of the cells, and inside of the cells."""
    mechanism = dataclasses.replace(found, n=n)
    all_places = [places_of(losses, mechanism) for losses in all_losses(n)]
    m = mechanism.count
    by_scale = [dict(enumerate(laws.scale_chances(mechanism, places))) for places in all_places]
    by_cell = [
        [
            laws.choice_chances(mechanism.cells(places, scale), mechanism.third)
            for scale in range(m + 1)
        ]
        for places in all_places
    ]
    by_end = [
        [
            laws.choice_chances(mechanism.inside(places, cell, scale), mechanism.fourth)
            for scale in range(m + 1)
            for cell in range(-(-n >> scale))
        ]
        for places in all_places
    ]
    return by_scale, by_cell, by_end


def excess(one: dict, other: dict, epsilon: float) -> float:
    """Return the sum of (P - e^epsilon P')^+."""
    return sum(max(0.0, p - math.exp(epsilon) * other.get(key, 0.0)) for key, p in one.items())


def worst_steps(found: Scales, claimed: Scales, n: int) -> tuple[float, float, float]:
    """Return the largest excess of each step over what it may spend by the claimed parameters."""
    by_scale, by_cell, by_end = steps_of(found, n)
    first, second, third = float(claimed.first), float(claimed.second), float(claimed.third)
    worst = [0.0, 0.0, 0.0]
    for one, other in itertools.chain(
        zip(*PAIRS[n], strict=True), zip(*PAIRS[n][::-1], strict=True)
    ):
        scale = excess(by_scale[one], by_scale[other], first + 2 * second)
        cells = (excess(a, b, third) for a, b in zip(by_cell[one], by_cell[other], strict=True))
        ends = (
            excess(a, b, float(claimed.fourth))
            for a, b in zip(by_end[one], by_end[other], strict=True)
        )
        worst = [max(*pair) for pair in zip(worst, (scale, max(cells), max(ends)), strict=True)]
    return worst[0], worst[1], worst[2]


@pytest.mark.parametrize("found", SMALL)
@pytest.mark.parametrize("n", [2, 3, 5])
def test_every_step_spends_its_share(found, n):
    scale, cells, ends = worst_steps(found, found, n)
    assert scale <= ROUNDING
    assert cells <= float(DELTA) + ROUNDING
    assert ends <= ROUNDING


def test_the_audit_of_the_steps_notices_too_little_noise():
    # The broken twins: twice the rates of each step, and no weight for "no cell".
    found = SMALL[0]
    rates = {name: 2 * getattr(found, name) for name in ("first", "second", "fourth")}
    scale, _, ends = worst_steps(dataclasses.replace(found, **rates), found, 5)
    assert scale > 1e-3
    assert ends > 1e-3
    assert worst_steps(cheap(found), found, 5)[1] > 2 * float(DELTA)


@pytest.mark.parametrize("found", SMALL)
def test_all_steps_together_spend_epsilon_and_delta(found):
    for n in SIZES[1:]:
        assert worst_delta(Fixed(found), n, epsilon_of(found)) <= float(DELTA) * (1 + ROUNDING)


@pytest.mark.parametrize("found", SMALL[:1])
def test_the_audit_of_delta_notices_new_cells_that_stand_out(found):
    assert worst_delta(Fixed(cheap(found)), 6, epsilon_of(found)) > float(DELTA)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.01), (3.0, 0.9), (60.0, 1e-3)])
def test_the_search_spends_at_most_epsilon_and_delta(epsilon, delta):
    search = ScaleThenChoose(Budget(epsilon, delta), 0.3)
    assert search.cost == Budget(epsilon, delta)
    found = search._scales(6)
    assert found.first + 2 * found.second + found.third + found.fourth == epsilon
    assert found.delta <= min(Fraction(delta), found.third / 2)
    for n in (2, 5):
        assert worst_delta(search, n, epsilon) <= delta * (1 + ROUNDING)


@pytest.mark.parametrize("n", [2, 6, 2**20, 2**64, 2**1024])
@pytest.mark.parametrize(("epsilon", "delta", "beta"), [(1, 1e-6, 0.05), (0.2, 1e-9, 1e-6)])
def test_the_constants_keep_each_way_to_fail_below_a_fourth_of_beta(n, epsilon, delta, beta):
    m = (n - 1).bit_length()
    found = scales_for(Fraction(epsilon), Fraction(delta), n, beta)
    first, second, share = float(found.first), float(found.second), beta / 4
    both = -math.expm1(-first - second)
    # The crowd that is sure to draw a cell, from the definition of the weights.
    crowd = next(
        c
        for c in itertools.count(1)
        if found.nothing * math.exp(float(found.third) * (1 - c) / 2) <= share
    )
    early = found.alarm - crowd + 1
    late = found.inner - found.alarm + 1
    assert m * math.exp(-second * early) * -math.expm1(-first) / both <= share
    assert math.exp(-first * late) * -math.expm1(-second) / both <= share
    assert 2 * math.exp(-float(found.fourth) * (found.margin + 1) / 2) <= share
    assert found.inner >= crowd
    assert distribution(ScaleThenChoose(Budget(epsilon, delta), beta), (3, 2, 0))
