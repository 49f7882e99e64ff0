"""The most frequent value by one clip: brute force over small databases and all their neighbours."""

import itertools
import math

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.histogram_choice.noisy_histogram import Choice
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning.program import compile_program
from beam_dp.mechanisms.releases import clipped
from beam_dp.mechanisms.releases.clipped import ClippedFrequency
from tests.doubles import Asked, ZeroNoise
from tests.relations import Row, as_dicts, views

PROGRAM = compile_program([dp.MaxFrequency("item")], dp.Budget(2.0), 1, partitions=1)
[STEP] = PROGRAM.steps
CLIPS = (0, 1, 2)
"""The indexes of the clips 1, 2 and 4."""
# What a person can have: how many rows of each of three values.
KINDS = [kind for kind in itertools.product((0, 1, 3), (0, 2), (0, 5)) if any(kind)]
SMALL = [
    people
    for size in range(3)
    for people in itertools.combinations_with_replacement(range(len(KINDS)), size)
]


def rows_of(people) -> list[Row]:
    return [
        Row(number, 1, item="abc"[place])
        for number, kind in enumerate(people)
        for place, count in enumerate(KINDS[kind])
        for _ in range(count)
    ]


def statistics(people) -> list[float]:
    """Return what the release adds noise to, for each clip."""
    if not people:
        return [0.0] * len(CLIPS)
    found = []
    for cells, _ in views(as_dicts(rows_of(people)), PROGRAM):
        buckets = STEP.release.choice.buckets
        for clip in CLIPS:
            noisy = np.zeros((1, 1, buckets), np.int64)
            noisy[0, 0, clip] = 10**6
            [drawn] = PROGRAM.release(cells, (Choice(noisy, 0),), ZeroNoise())
            found.append(float(drawn.values[0]))
    return found


def sums(people) -> np.ndarray:
    return np.array([KINDS[kind] for kind in people]).reshape(-1, 3)


@pytest.fixture(scope="module")
def known() -> dict:
    return {people: statistics(people) for people in SMALL}


def test_it_is_released_by_clip_and_noise():
    assert type(STEP.release) is ClippedFrequency and STEP.release.anchored
    assert STEP.release.relation in STEP.release.measures
    assert STEP.release.thresholds[:3] == (1, 2, 4)


def test_everybody_counts_for_at_most_the_clip_of_each_value(known):
    for people, found in known.items():
        for clip, value in zip((1, 2, 4), found, strict=True):
            own = sums(people)
            assert value == np.minimum(own, clip).sum(axis=0).max(initial=0)
            most = own.max(axis=1, initial=0)
            truth = own.sum(axis=0).max(initial=0)
            assert value <= truth <= value + np.maximum(most - clip, 0).sum()


def worst_move(known) -> float:
    """Return the largest move by a person more, in clips; the least is checked to be 0 or more."""
    worst = 0.0
    for people in (each for each in SMALL if len(each) < 2):
        for kind in range(len(KINDS)):
            more = tuple(sorted((*people, kind)))
            for clip, one, other in zip((1, 2, 4), known[people], known[more], strict=True):
                assert other >= one
                worst = max(worst, (other - one) / clip)
    return worst


def test_a_person_more_moves_it_by_0_to_the_clip(known):
    assert worst_move(known) == 1


def every_row(lines, cap):
    """A mutant: nobody is clipped."""
    return int(np.bincount(np.unique(lines.items, return_inverse=True)[1], lines.counts).max())


def several_values(lines, cap):
    """A mutant: a person counts for the clip with each of their values, in one number."""
    return int(np.minimum(lines.counts, cap).sum())


@pytest.mark.parametrize("mutant", [every_row, several_values])
def test_broken_statistics_are_noticed(mutant, monkeypatch):
    monkeypatch.setattr(clipped, "_most_rows", mutant)
    assert worst_move({people: statistics(people) for people in SMALL}) > 1


def log_chances(number: float, rate: float) -> np.ndarray:
    """Return ln P of what comes out, from -30 to 40, of the noise that the release asks for."""
    return math.log(math.tanh(rate / 2)) - rate * np.abs(np.arange(-30, 41) - number)


def test_the_exact_distribution_of_neighbours_is_within_the_noise_s_epsilon(known):
    # The clip is chosen by the histogram of `ClippedSum`, which tests/audit/test_release_audit.py
    # audits; given the clip, noise is all that is random, added to the statistic of that clip.
    epsilon = float(STEP.release.noise_costs[0].amount)
    [(cells, _)] = views(as_dicts(rows_of((3,))), PROGRAM)
    worst = 0.0
    for clip in CLIPS:
        noisy = np.zeros((1, 1, STEP.release.choice.buckets), np.int64)
        noisy[0, 0, clip] = 10**6
        noise = Asked()
        PROGRAM.release(cells, (Choice(noisy, 0),), noise)
        [rate] = {float(each) for each in noise.rates}
        for people in (each for each in SMALL if len(each) < 2):
            one = log_chances(known[people][clip], rate)
            for kind in range(len(KINDS)):
                more = tuple(sorted((*people, kind)))
                other = log_chances(known[more][clip], rate)
                worst = max(worst, float(np.abs(one - other).max()))
    assert 0.9 * epsilon < worst <= epsilon * (1 + 1e-9)


@pytest.mark.sampled(1)
def test_the_interval_holds():
    generator = np.random.default_rng(4)
    counts = np.minimum(generator.zipf(1.7, 3000), 400)
    rows = [
        {"person": number, "day": 1, "item": "a" if number % 3 else "b", "other": None}
        for number, count in enumerate(counts.tolist())
        for _ in range(count)
    ]
    truth = max(sum(row["item"] == item for row in rows) for item in "ab")
    [(cells, _)] = views(rows, PROGRAM)
    own = cells.owned(STEP.first + len(STEP.release.measures) - 1)[0]
    sizes = np.bincount(own.people, own.counts).astype(np.int64)
    release = STEP.release
    buckets = np.searchsorted(release.thresholds, sizes)
    people = np.bincount(buckets, minlength=release.choice.buckets).reshape(1, 1, -1)
    held = 0
    for _ in range(100):
        choice = release.choice.draw(people, Noise())
        drawn = PROGRAM.release(cells, (choice,), Noise())
        _, low, high = PROGRAM.combine(drawn, PROGRAM.sums(drawn))
        held += bool(low[0] <= truth <= high[0])
    # 95 are asked for; fewer than 70 of 100 come with a chance below 1e-15 if each has 95%.
    assert held >= 70
