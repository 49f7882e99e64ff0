"""The exact audit of the choice of a clip and the noise together, at work in the library's own code.

A histogram has independent noise in every bucket, and one person changes one bucket. So the noise
of the other buckets is fixed (a mixture over it has no larger ratio), and all values of the noise
of that one bucket are tried, each with its exact chance at the rate that the library asks for. What
comes out is the noisy histogram, and for each the rate of the noise of the numbers and the clipped
totals of both databases, in steps of the grid of the noise.
"""

import dataclasses
import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Field
from beam_dp.mechanisms.histogram_choice.clip_choice import ClipChoice
from beam_dp.mechanisms.metrics.additive.additive_release import AdditiveRelease, Total
from beam_dp.mechanisms.metrics.additive.shared_clip import SharedClip
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise
from beam_dp.mechanisms.summaries import histograms
from beam_dp.mechanisms.summaries.histograms import Measure
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from tests.doubles import ZeroNoise
from tests.reference import Row, table_of

pytestmark = pytest.mark.audit

GRID = (1, 4)
QUARTERS = 4  # so that the grid of several partitions is coarse
ROUNDING = 1e-6
FAR, NEAR = 10, 4  # the noise that is tried, and how far from the truth outcomes are compared


class Script(ZeroNoise):
    """Noise that is given, and remembers the rates that it was asked for."""

    def __init__(self, draw):
        object.__setattr__(self, "draw", list(draw))
        object.__setattr__(self, "rates", [])

    def discrete_laplace(self, rate, size):
        """Return the given noise."""
        self.rates.append(float(rate))
        return np.array(self.draw[:size])


def log_laplace(rate: float, value: int) -> float:
    """Return ln P(X = value) of a discrete Laplace variable."""
    return math.log(math.tanh(rate / 2)) - rate * abs(value)


def settled(numbers: tuple[tuple[int, ...], ...]):
    """Return the settled table of people with a number in each of some partitions."""
    rows = [
        Row((person, 0), (place, 0), (number,))
        for person, each in enumerate(numbers)
        for place, number in enumerate(each)
    ]
    bounder = Bounder(ContributionBounds(None), (Field(0, "sum"),), b"key")
    return bounder.settle(bounder.prepare(table_of(rows)))


class Database:
    """People, as the library sees them."""

    def __init__(self, release: AdditiveRelease, numbers: tuple[tuple[int, ...], ...]) -> None:
        self.release, table = release, settled(numbers)
        self.partitions = len(numbers[0])
        people = histograms.summarise_people(histograms.Contributions(table), [release.measure])
        self.shared = PartitionView(people, np.zeros(len(people), np.int64), 1)
        summary = histograms.summarise(histograms.Contributions(table), release.measures)
        places = summary.partition[0].astype(np.int64)
        self.view = PartitionView(summary, places, self.partitions)
        self.known: dict = {}

    def outcomes(self, bucket: int, others: int) -> dict:
        """Return each noisy histogram with its chance, from all noises of one bucket."""
        buckets, found = self.release.clip.choice.buckets * self.release.clip.choice.sides, {}
        for value in range(-FAR, FAR + 1):
            draw = [others] * buckets
            draw[bucket] = value
            noise = Script(draw)
            noisy = self.release.clip.choose(self.shared, noise)
            found[str(noisy.tolist())] = math.exp(log_laplace(noise.rates[0], value)), noisy
        return found

    def number(self, key: str, choice: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the clipped totals, and the rate of their noise."""
        if key not in self.known:
            noise, view = Script([0] * self.partitions), self.view.at(0, choice)
            self.release.draw(view, noise)
            [rate] = noise.rates
            self.known[key] = self.release.clipped(view).totals.astype(float), rate
        return self.known[key]


def changed_bucket(one: Database, other: Database) -> int:
    """Return the bucket in which two databases differ; 0 where they do not."""
    buckets = one.release.clip.choice.buckets * one.release.clip.choice.sides
    first, second = (each.shared.histogram(0, buckets)[0][0] for each in (one, other))
    changed = np.flatnonzero(first != second)
    return int(changed[0]) if len(changed) else 0


def worst_ratio(
    release: AdditiveRelease, crowd: tuple, person: tuple[int, ...], others: int
) -> float:
    """Return the largest |log ratio| of (noisy histogram, numbers) when a person is added.

    Args:
        release: the release.
        crowd: everybody else.
        person: their numbers, by partition.
        others: the noise of all other buckets.
    """
    one, other = Database(release, crowd), Database(release, (*crowd, person))
    bucket = changed_bucket(one, other)
    truth = int(
        one.shared.histogram(0, release.clip.choice.buckets * release.clip.choice.sides)[0][
            0, bucket
        ]
    )
    found = [each.outcomes(bucket, others) for each in (one, other)]
    worst = 0.0
    for key in found[0].keys() & found[1].keys():
        chances, choice = [each[key][0] for each in found], found[0][key][1]
        if abs(int(choice.reshape(-1)[bucket]) - truth) > NEAR:
            continue  # noise beyond what is tried might lead there
        (small, rate), (large, again) = (each.number(key, choice) for each in (one, other))
        assert rate == again
        move = rate * float(np.abs(large - small).sum())
        worst = max(worst, abs(math.log(chances[1] / chances[0])) + move)
    # What only one of them can come to tells them apart.
    for mine, theirs in (found, found[::-1]):
        for key in mine.keys() - theirs.keys():
            value = int(mine[key][1].reshape(-1)[bucket])
            if abs(value - truth) <= NEAR:
                worst = math.inf
    return worst


@functools.cache
def unbroken(release: AdditiveRelease, *case) -> float:
    """Return the largest |log ratio| of the library's own code."""
    return worst_ratio(release, *case)


def clipped(
    epsilon: Fraction, noise: Fraction, signed: bool = True, kind=Budget, norm: int = 1
) -> AdditiveRelease:
    """Return a release with what its clip and its noise cost."""
    measure = Measure(0, 1 - signed, GRID, norm=norm, steps=QUARTERS)
    choice = ClipChoice(kind(epsilon), GRID, sides=1 + signed)
    clip = SharedClip(measure, Fraction(1), choice)
    return AdditiveRelease(Total(measure), Fraction(1), kind(noise), clip)


def crowd(size: int, number: int = 1) -> tuple:
    return ((number,),) * size


@pytest.mark.parametrize("signed", [False, True])
def test_the_clip_and_the_number_together_spend_the_budget(signed):
    release = clipped(Fraction(1), Fraction(3, 2), signed)
    people = crowd(40) + crowd(30, 3) + crowd(25, 9)
    persons = [(1,), (3,), (9,), (-1,), (-9,), (0,)]
    ratios = [
        worst_ratio(release, people, person, others)
        for person, others in itertools.product(persons, (0, 2))
    ]
    assert max(ratios) <= 2.5 + ROUNDING and max(ratios) >= 0.97 * 2.5
    assert min(ratios) == 0.0  # who adds 0 is not seen at all


@pytest.mark.parametrize("places", [2, 3])
def test_a_clip_of_several_partitions_and_all_their_noise_are_paid_once(places):
    release = clipped(Fraction(1), Fraction(1, 2))
    rest = (0,) * (places - 2)
    people = ((2, 2, *rest),) * 40 + ((1, 0, *rest),) * 30 + ((-9, 1, *rest),) * 25
    persons = [(2, 2), (9, -9), (-9, 1), (0, 1), (-1, 3), (100, 0), (3, 300)]
    ratios = [worst_ratio(release, people, (*person, *rest), 0) for person in persons]
    assert max(ratios) <= 1 + 0.5 + ROUNDING and max(ratios) >= 0.97 * 1.5


# --------------------------------------------------------------------------- broken twins


def in_two_buckets(self, view, noise):
    """Count a person in every bucket up to theirs."""
    people, _ = view.histogram(0, self.choice.buckets)
    above = people[:, ::-1].cumsum(axis=1)[:, ::-1]
    return self.choice.draw(above.reshape(1, 1, -1), noise)


def per_partition(people, measures):
    """Count a person once in every partition."""
    apart = [dataclasses.replace(measure, norm=0) for measure in measures]
    summary = histograms.summarise(people, apart)
    summary.partition = np.zeros_like(summary.partition)
    return histograms.reduce(summary, measures)


def of_one_partition(numbers, starts, norm):
    """Clip what a person has in one partition."""
    return np.maximum.reduceat(abs(numbers), starts)


def for_half_of_the_clip(self, numbers, sensitivity, noise):
    """Draw noise for half of what a person moves."""
    draw = self._draw(sensitivity, len(numbers), noise)
    noise.rates[-1] *= 2
    return numbers + draw


MANY = (((2, 2),) * 40 + ((1, 0),) * 30, (3, 3), 0)
FEW = (crowd(40) + crowd(30, 3), (3,), 0)
BROKEN = [
    (SharedClip, "choose", in_two_buckets, clipped(1, 1, False), FEW, 2),
    (histograms, "summarise_people", per_partition, clipped(1, 1, False), MANY, 2),
    (histograms, "norms", of_one_partition, clipped(1, 1, False), MANY, 2),
    (AdditiveNoise, "add", for_half_of_the_clip, clipped(1, 1, False), FEW, 2),
]


@pytest.mark.parametrize("twin", BROKEN, ids=lambda twin: twin[2].__name__)
def test_the_audit_notices_a_broken_twin(twin, monkeypatch):
    owner, attribute, broken, release, case, whole = twin
    assert unbroken(release, *case) <= whole + ROUNDING
    monkeypatch.setattr(owner, attribute, broken)
    assert worst_ratio(release, *case) > 1.05 * whole


# ------------------------------------------------------------------------------------- zCDP


def log_gaussian(variance: float, span: int) -> np.ndarray:
    """Return ln P(X = k) for k from -span to span."""
    weights = -(np.arange(-span, span + 1.0) ** 2) / (2 * variance)
    return weights - math.log(np.exp(weights).sum())


class GaussianScript(ZeroNoise):
    """The same for Gaussian noise: what is given, and the variances that were asked for."""

    def __init__(self, draw):
        object.__setattr__(self, "draw", np.array(draw))
        object.__setattr__(self, "variances", [])

    def discrete_gaussian(self, variance, size):
        """Return the given noise."""
        self.variances.append(float(variance))
        return self.draw[:size]


def renyi(log_p: np.ndarray, log_q: np.ndarray, order: float) -> float:
    """Return the divergence of that order."""
    return math.log(np.exp(order * log_p + (1 - order) * log_q).sum()) / (order - 1)


def worst_divergence(
    release: AdditiveRelease, people: tuple, person: tuple[int, ...], order: float
):
    """Return the larger divergence of (noisy histogram, numbers), either way."""
    one, other = Database(release, people), Database(release, (*people, person))
    bucket, span = changed_bucket(one, other), 40
    buckets = release.clip.choice.buckets * release.clip.choice.sides
    logs: dict = {}
    for database in (one, other):
        truth = int(database.shared.histogram(0, buckets)[0][0, bucket])
        base = int(one.shared.histogram(0, buckets)[0][0, bucket])
        for value in range(base - span, base + span + 1):
            draw = [0] * buckets
            draw[bucket] = value - truth
            noise = GaussianScript(draw)
            choice = release.clip.choose(database.shared, noise)
            [variance] = noise.variances
            law = log_gaussian(variance, 2 * span)
            numbers, view = GaussianScript([0] * database.partitions), database.view.at(0, choice)
            release.draw(view, numbers)
            [wide] = numbers.variances
            totals = release.clipped(view).totals.astype(int)
            logs.setdefault(value, []).append((law[value - truth + 2 * span], totals, wide))
    sums = [0.0, 0.0]
    for (p, total, variance), (q, moved, again) in logs.values():
        assert variance == again
        noise = [sum(each) for each in zip(*(shifted(variance, s, order) for s in moved - total))]
        for side, (mine, theirs) in enumerate(((p, q), (q, p))):
            sums[side] += math.exp(order * mine + (1 - order) * theirs + (order - 1) * noise[side])
    return max(math.log(value) / (order - 1) for value in sums)


@functools.cache
def shifted(variance: float, shift: int, order: float) -> list[float]:
    """Return the divergences of one noise moved by whole steps, either way.

    Those of a Gaussian, at most (and here nearly).
    """
    spread = 12 * int(math.sqrt(variance)) + 20
    law = log_gaussian(variance, spread)
    inside, rolled = slice(abs(shift), len(law) - abs(shift)), np.roll(law, shift)
    return [renyi(a[inside], b[inside], order) for a, b in ((law, rolled), (rolled, law))]


@pytest.mark.parametrize("order", [1.5, 2.0, 8.0, 32.0])
@pytest.mark.parametrize("places", [1, 2])
def test_a_gaussian_histogram_and_the_numbers_together_spend_rho(order, places):
    rho, rest = Fraction(1, 20), (0,) * (places - 1)
    costs = rho * Fraction(2, 5), rho * Fraction(3, 5)
    release = clipped(*costs, False, Budget.zcdp, norm=places)
    people = ((1, *rest),) * 60 + ((3, *rest),) * 40
    persons = [(1, *rest), (3, *rest), (9, *rest), (2,) * places, (60, *(80 for _ in rest))]
    found = [worst_divergence(release, people, person, order) for person in persons]
    assert max(found) <= order * float(rho) * (1 + ROUNDING)
    assert max(found) >= 0.97 * order * float(rho)
    # The broken twin spends what the clip costs again on the numbers.
    twin = clipped(costs[0], rho, False, Budget.zcdp, norm=places)
    assert worst_divergence(twin, people, (9, *rest), order) > 1.3 * order * float(rho)
