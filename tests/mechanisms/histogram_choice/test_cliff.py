"""A clip by two noisy histograms: what they reveal, which one is taken, and the clip.

Laws are summed exactly from the values that the library's own code returns for given noise.
"""

import dataclasses
import functools
import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.histogram_choice.cliff import CliffChoice, with_round_numbers
from beam_dp.mechanisms.histogram_choice.noisy_histogram import HistogramNoise
from beam_dp.mechanisms.noise.sampling import Noise
from tests.doubles import ZeroNoise
from tests.laws import laplace

OCTAVES = tuple(1 << power for power in range(20))
GRID = with_round_numbers(OCTAVES)
CHOICE = CliffChoice(Budget(Fraction(2, 5)), GRID, edges=OCTAVES)


def people(choice: CliffChoice, numbers: dict[int, int]) -> np.ndarray:
    """Return a histogram: how many people have each number; a number below 0 on its own side."""
    found = np.zeros((1, choice.sides, choice.buckets), np.int64)
    for number, count in numbers.items():
        found[0, int(number < 0), np.searchsorted(choice.thresholds, abs(number))] += count
    return found


def clip_of(numbers: dict[int, int], choice: CliffChoice = CHOICE) -> int:
    """Return the clip without noise."""
    [index] = choice.clips(choice.draw(people(choice, numbers), ZeroNoise()), 1.7)
    return choice.thresholds[index] if index >= 0 else 0


def is_cliff(numbers: dict[int, int], choice: CliffChoice = CHOICE) -> bool:
    return choice.left(choice.draw(people(choice, numbers), ZeroNoise())) is not None


def test_round_numbers_are_among_the_clips():
    assert with_round_numbers((1, 2, 4, 8, 16, 32)) == (
        *range(1, 11),
        *(12, 15, 16, 20, 25, 30, 32),
    )
    assert with_round_numbers((1, 2, 4, 8, 9)) == tuple(range(1, 10))
    steps = with_round_numbers(tuple(1024 * clip for clip in OCTAVES))
    assert steps == tuple(1024 * clip for clip in GRID)
    assert set(OCTAVES) < set(GRID) and {250_000, 500_000, 90, 1500} <= set(GRID)


# ------------------------------------------------------------------------------ what is revealed


class Given(ZeroNoise):
    """Noise that is given: of both histograms, and of the blur."""

    def __init__(self, laplace, geometric):
        object.__setattr__(self, "laplace", list(laplace))
        object.__setattr__(self, "geometrics", list(geometric))
        object.__setattr__(self, "rates", [])

    def discrete_laplace(self, rate, size):
        self.rates.append(rate)
        return self.laplace.pop(0) if self.laplace else np.zeros(size, np.int64)

    def geometric(self, rate, size):
        self.rates.append(rate)
        return self.geometrics.pop(0)


def geometric(rate: float, span: int) -> np.ndarray:
    return -math.expm1(-rate) * np.exp(-rate * np.arange(span))


@functools.cache
def blur(cost: Fraction, rest: Fraction, span: int) -> np.ndarray:
    """Return the law of what `blurred` adds, from -span to span, by all its draws."""
    a, b = (each.ravel() for each in np.mgrid[:span, :span])
    chances = np.outer(geometric(float(cost), span), geometric(float(rest), span)).ravel()
    nothing = np.zeros_like(a)
    law = np.zeros(2 * span + 1)
    parts = []
    for draws in ([a, b, nothing, nothing], [nothing, nothing, a, b]):
        noise = Given([], draws)
        added = HistogramNoise(Budget(cost + rest)).blurred(nothing, Budget(cost), noise)
        assert noise.rates == [cost, rest, cost, rest]
        part = np.zeros_like(law)
        np.add.at(part, added + span, chances)
        parts.append(part)
    return np.convolve(*parts)[span : 3 * span + 1]


@pytest.mark.parametrize("rates", [(1, 1), (0.25, 0.15), (0.5, 3), (2, 0.1)], ids=str)
def test_a_blurred_histogram_has_the_noise_of_the_lower_budget(rates):
    cost, rest = map(Fraction, rates)
    span = math.ceil(30 / min(rates))
    whole = laplace(float(cost + rest), span)
    found = np.convolve(whole, blur(cost, rest, span))[span : 3 * span + 1]
    assert found == pytest.approx(laplace(float(cost), span), rel=1e-9, abs=1e-12)


SMALL = CliffChoice(Budget(4), with_round_numbers((1, 2, 4, 8)), edges=(1, 2, 4, 8))
SPANS, NEAR = (4, 5, 6), 3


def outcomes(choice: CliffChoice, numbers: dict[int, int], bucket: int):
    """Return both histograms with their chances, from all noises of one bucket of octaves.

    Returns:
        By the key of what is released: its chance, how the second histogram is read, that of round
        numbers without noise, and the first one's bucket.
    """
    histogram, one = (
        people(choice, numbers),
        np.eye(1, len(choice.starts), bucket, dtype=np.int64)[0],
    )
    whole, *blurs = SPANS
    laws = [laplace(4.0, whole)]
    for rate, span in zip((3, 2), blurs):
        law = blur(Fraction(rate), Fraction(1), 2 * span)
        laws.append(law[span : 3 * span + 1])
    found: dict = {}
    for places in np.ndindex(*map(len, laws)):
        value, *more = (place - span for place, span in zip(places, SPANS))
        draws = [d * one for each in more for d in (max(each, 0), 0, max(-each, 0), 0)]
        drawn = choice.draw(histogram, Given([value * one], draws))
        first, second, octaves, _ = choice._split(drawn)
        key = first.tobytes(), b"" if octaves is None else second.tobytes()
        chance = found[key][0] if key in found else 0.0
        chance += math.prod(law[place] for law, place in zip(laws, places))
        found[key] = chance, octaves, second, int(first[0, 0, bucket])
    return found


def worst_ratio(choice: CliffChoice, crowd: dict[int, int], person: int) -> dict[str, float]:
    """Return the largest |log ratio| when a person is added, by what the second histogram is of."""
    place = int(np.searchsorted(choice.thresholds, person))
    bucket = int(np.searchsorted(choice.places, place))
    more = crowd | {person: crowd.get(person, 0) + 1}
    one, other = (outcomes(choice, each, bucket) for each in (crowd, more))
    truth = np.add.reduceat(people(choice, crowd), choice.starts, axis=-1)[0, 0, bucket]
    kinds = {choice._whole.cost: "whole", choice._both.cost: "both"}
    worst = dict.fromkeys(("whole", "both", "round"), 0.0)
    for key in one.keys() & other.keys():
        (p, octaves, second, shift), (q, _, again, _) = one[key], other[key]
        shown = [shift] if octaves is None else [shift, int(second[0, 0, bucket])]
        if all(abs(each - truth) <= NEAR for each in shown):  # far away noises are left out
            kind = "round" if octaves is None else kinds[octaves.cost]
            cells = int(np.abs(second - again).sum()) * float(choice.cost.amount) / 4
            ratio = abs(math.log(p / q)) + (cells if kind == "round" else 0)
            worst[kind] = max(worst[kind], ratio)
    return worst


CROWDS = [{1: 9, 3: 40, 4: 20}, {3: 13, 4: 12}, {4: 26, 8: 3}, {1: 26}, {2: 25, 3: 2}]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "crowd", [pytest.param(CROWDS[0], marks=pytest.mark.audit), *CROWDS[1:]], ids=str
)
def test_both_looks_cost_what_they_say_and_the_noise_gets_the_rest(crowd):
    ratios = [worst_ratio(SMALL, crowd, person) for person in (*crowd, 9)]
    assert max(each["whole"] for each in ratios) <= 4 + 1e-5
    assert max(each[kind] for each in ratios for kind in ("both", "round")) <= 3 + 1e-5
    # Nothing is wasted: all branches are among the outcomes of some crowd and come close.
    assert max(max(each.values()) for each in ratios) >= 2.9


def test_what_is_spent_and_what_is_left_are_the_cost():
    for numbers in ({5: 10**4}, {1: 3}):
        noisy = CHOICE.draw(people(CHOICE, numbers), ZeroNoise())
        histograms, left = CHOICE.histograms(noisy), CHOICE.left(noisy)
        costs = [cost.amount for cost, _, _ in histograms]
        spent = costs[-1] if left is None else sum(costs) + left.amount
        assert spent == CHOICE.cost.amount and costs[0] == CHOICE.cost.amount * Fraction(1, 2)
        assert [each.shape[-1] for _, _, each in histograms] == [
            len(OCTAVES) + 1,
            len(OCTAVES) + 1 if left is None else len(histograms[1][1]),
        ]


@pytest.mark.audit
def test_a_first_look_that_is_not_blurred_is_noticed(monkeypatch):
    assert worst_ratio(SMALL, CROWDS[0], 4)["round"] <= 3 + 1e-5  # and the blur's law is known
    monkeypatch.setattr(HistogramNoise, "blurred", lambda self, noisy, cost, noise: noisy)
    assert worst_ratio(SMALL, CROWDS[0], 4)["round"] > 3.5


@pytest.mark.audit
def test_people_in_two_cells_are_noticed(monkeypatch):
    def twice(self, histogram, noise):
        changed = histogram if histogram.shape[-1] == 5 else np.cumsum(histogram, axis=-1)
        return ADD(self, changed, noise)

    ADD = HistogramNoise.add
    monkeypatch.setattr(HistogramNoise, "add", twice)
    assert worst_ratio(SMALL, CROWDS[0], 3)["round"] > 3.4


# ------------------------------------------------------------------------------ which histogram,
# and clip

RATINGS = {number: 1000 for number in range(1, 6)}
CLIFFS = {
    "ratings": (RATINGS, 5),
    "flags": ({1: 3000}, 1),
    "lines of an order": ({number: 1500 for number in range(1, 8)}, 7),
    "minutes": ({number: 120 for number in range(1, 91)}, 90),
    "hours": ({number: 400 for number in range(1, 25)}, 25),
    "ends at a power": ({number: 400 for number in range(1, 17)}, 16),
    "a group that is far above": ({1: 10**5, 1000: 1000}, 1000),
}


@pytest.mark.parametrize("name", CLIFFS)
def test_where_people_end_sharply_the_clip_is_a_round_number(name):
    numbers, clip = CLIFFS[name]
    assert is_cliff(numbers) and clip_of(numbers) == clip


TAILS = {
    "few people": {5: 200},
    "40 people far above": RATINGS | {700: 40},
    "25 people in the next octave": RATINGS | {9: 25},
    "two groups of 25 in octaves beside each other": RATINGS | {700: 25, 1000: 25},
    "a thin tail": {3: 10**5, 5: 1000},
    "nobody": {},
    "above all clips": {1 << 30: 10**6},
}


@pytest.mark.parametrize("name", TAILS)
def test_elsewhere_the_second_look_is_at_octaves(name):
    numbers = TAILS[name]
    assert not is_cliff(numbers)
    assert clip_of(numbers) == (
        0 if not numbers else min(GRID[-1], 1 << (max(numbers) - 1).bit_length())
    )


def test_people_who_thin_out_within_an_octave_leave_it_whole():
    assert clip_of({4: 2000, 5: 1500, 6: 30}) == 5
    assert clip_of({4: 2000, 5: 1500, 6: 40}) == 8
    assert clip_of({4: 2000, 5: 1500, 7: 40}) == 8
    assert clip_of({4: 2000, 5: 70, 6: 60}) == 8


def test_both_signs_share_the_clip():
    choice = dataclasses.replace(CHOICE, sides=2)
    assert clip_of({3: 1000, -7: 1000}, choice) == 7
    assert clip_of({3: 1000, -7: 70, 7: 70}, choice) == 8
    noisy = choice.draw(people(choice, {3: 1000, -5: 2000}), ZeroNoise())
    losses = choice.losses(noisy, choice.clips(noisy, 1.7))
    assert len(losses) == 2 and 0 < losses[0].total[0] < losses[1].total[0] < 60


def test_what_is_lost_at_a_clip_is_a_few_clips():
    for numbers in (RATINGS, {number: 400 for number in range(1, 17)}, {1: 3, 9: 900, 30: 25}):
        noisy = CHOICE.draw(people(CHOICE, numbers), ZeroNoise())
        [index] = CHOICE.clips(noisy, 1.7)
        [loss] = CHOICE.losses(noisy, np.array([index]))
        # Nobody is above; a few people whom the noise hides may be, at most as much as the clip.
        assert 0 < loss.total[0] < 12 * GRID[index]


def test_people_above_a_cliff_lose_no_more_than_is_said():
    # As many as the histograms do not show, at twice the round number.
    for clip, above in ((1, 2), (3, 6), (5, 10)):
        cliffs = [n for n in range(60) if clip_of({clip: 2000, above: n}) == clip]
        assert len(cliffs) > 3
        noisy = CHOICE.draw(people(CHOICE, {clip: 2000, above: cliffs[-1]}), ZeroNoise())
        [loss] = CHOICE.losses(noisy, CHOICE.clips(noisy, 1.7))
        assert cliffs[-1] * (above - clip) <= loss.total[0]


@pytest.mark.parametrize(("partitions", "is_end"), [(2, False), (20, False), (500, True)])
def test_of_several_partitions_people_hidden_above_a_cliff_decide_with_the_noise(
    partitions, is_end
):
    """The second histogram shows less than 3.5 scales of them in each cell: they may be noise."""
    choice = dataclasses.replace(CHOICE, cost=Budget(Fraction(1, 6)))
    everybody = {10: 10**4, 12: 80, 15: 80, 16: 80}
    noisy = choice.draw(people(choice, everybody), ZeroNoise())
    noise = 1.2 * np.array(GRID, float)
    index, _ = choice.best_clip(noisy, noise, partitions, 0.5)
    assert (GRID[index] == 10) == is_end
    [loss] = choice.losses(noisy, np.array([index]), partitions)
    exact = sum(count * max(number - GRID[index], 0) for number, count in everybody.items())
    assert is_end or loss.total[0] >= exact
    # Where nobody is above, the clip is the number that all have, of any partitions.
    alike = choice.draw(people(choice, {10: 10**4}), ZeroNoise())
    assert GRID[choice.best_clip(alike, noise, partitions, 0.5)[0]] == 10


@pytest.mark.parametrize("epsilon", [1e-6, 50.0, 1e6])
@pytest.mark.parametrize("number", [0, 1, 1 << 60])
def test_extreme_budgets_and_numbers_of_people(epsilon, number):
    for sides in (1, 2):
        for octaves in (OCTAVES, (1,), (1, 2, 4, 5)):
            grid = with_round_numbers(octaves)
            choice = CliffChoice(Budget(epsilon), grid, sides, sides == 1, edges=octaves)
            for place in {0, 2 % len(grid), len(grid)}:
                histogram = np.zeros((1, sides, choice.buckets), np.int64)
                histogram[0, -1, place] = number
                noisy = choice.draw(histogram, Noise())
                clips = choice.clips(noisy, 1.7 / epsilon)
                assert clips.shape == (1,) and -1 <= clips[0] < len(grid)
                for loss in choice.losses(noisy, np.maximum(clips, 0)):
                    assert np.isfinite(loss.total).all() and (loss.total >= 0).all()
                    assert np.isfinite(loss.squares).all() and (loss.squares >= 0).all()
                assert math.isfinite(choice.unseen)
