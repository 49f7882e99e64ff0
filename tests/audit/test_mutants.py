"""Seeded mutants: each known way to lose privacy, put in on purpose, must make a check fail.

Every mutant replaces one function of the library by a broken one; the check beside it passes with
the library as it is and fails with the mutant. The checks are small ones of their own or those of
the tests of the module. Random checks draw from the system; their false alarm is stated.
"""

import dataclasses
import math
import os
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from beam_dp.mechanisms.accounting import budget as account
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding import ordering
from beam_dp.mechanisms.bounding import table as tables
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.bounding.table import Field
from beam_dp.mechanisms.histogram_choice.clip_choice import ClipChoice
from beam_dp.mechanisms.metrics import sums
from beam_dp.mechanisms.metrics.additive.additive_release import AdditiveRelease, Total
from beam_dp.mechanisms.metrics.additive.shared_clip import SharedClip
from beam_dp.mechanisms.metrics.mean import Mean
from beam_dp.mechanisms.metrics.sums import Count, PeopleCount, Sum
from beam_dp.mechanisms.noise.interval_widths import gaussian_bound
from beam_dp.mechanisms.noise.noise_on_a_sum import AdditiveNoise, JointNoise
from beam_dp.mechanisms.noise.partition_selection import TruncatedGeometric, WeightedThreshold
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import hashing, integers
from beam_dp.mechanisms.planning import budget_split
from beam_dp.mechanisms.planning import compile as compiling
from beam_dp.mechanisms.planning.budget_split import SelectionRequest
from beam_dp.mechanisms.planning.compile import compiled
from beam_dp.mechanisms.planning.program import Adaptive
from beam_dp.mechanisms.planning.request import Request
from beam_dp.mechanisms.summaries import histograms
from beam_dp.mechanisms.summaries.histograms import WEIGHTS, Measure
from beam_dp.mechanisms.summaries.partition_view import PartitionView
from beam_dp.transforms.columns import fixed_point, ids
from tests.doubles import Asked, ZeroNoise, compile_program
from tests.mechanisms.metrics.test_clipped_sum import noise_of_smaller_clips, worst_of_joint_noise
from tests.reference import Row, concatenate, fields_in, reference, rows_in, table_of

FIELDS = (Field(0, "sum"),)
GRID = (1, 2, 4, 8)
MEASURE = Measure(0, 0, GRID, norm=1)
CLIP = SharedClip(MEASURE, Fraction(1), ClipChoice(Budget(1.0), GRID, sides=2))
SIGNED = AdditiveRelease(Total(MEASURE), Fraction(1), Budget(1.0), CLIP)
"""The clipped sum of one partition."""


# ---------------------------------------------------------------- checks: True where all is well


def the_noise_hides_all_partitions_of_a_person() -> bool:
    """Whoever has 8 rows in each of 4 partitions moves 4 sums, by as much as the clip together."""
    made = compile_program([Count()], Budget(1.0), 4, partitions=4)
    [step] = made.steps
    release, noise = step.release, Asked()
    rows = [Row((1, 0), (place, 0), (1,)) for place in range(4) for _ in range(8)]
    histogram = chosen(release, 3)
    view = cells(rows, release.measures).at(0, histogram)
    release.draw(view, noise)
    [rate] = noise.rates
    moved = sum(release.clipped(view).totals.tolist())
    choice = release.clip.choice
    left = choice.left(histogram)
    return rate * moved + choice.cost.amount - (left.amount if left else 0) <= 1


def one_person_moves_a_sum_by_at_most_the_clip() -> bool:
    """10,000 is far above the clip of 8."""
    rows = [Row((person, 0), (0, 0), (person,)) for person in range(20)]
    rows += [Row((99, 0), (0, 0), (value,)) for value in (9000, 1000)]
    more, less = (
        SIGNED.draw(cells(part, SIGNED.measures).at(0, chosen(SIGNED, 3)), ZeroNoise()).values[0]
        for part in (rows, [row for row in rows if row.person[0] != 99])
    )
    return abs(more - less) <= 8


def one_person_is_in_at_most_their_partitions() -> bool:
    bounder = Bounder(ContributionBounds(2), FIELDS, b"key")
    rows = [Row((1, 0), (place, 0), (1,)) for place in range(9)]
    settled = bounder.settle(bounder.prepare(table_of(rows)))
    return len(settled) == 2


def bounds_hold_over_shards_and_not_in_each() -> bool:
    """Every row arrives in a part of its own."""
    for bounds in (ContributionBounds(2, 3), ContributionBounds(2, None, 4), ContributionBounds(3)):
        bounder = Bounder(bounds, (), b"key", keep_rows=True)
        rows = [Row((1, 0), (n % 4, 0), (n,)) for n in range(40)]
        parts = [bounder.reduce(table_of([row])) for row in rows]
        if rows_in(bounder.settle(concatenate(parts))) != reference(bounder, rows):
            return False
    return True


def a_retry_keeps_the_same_rows() -> bool:
    bounder = Bounder(ContributionBounds(2, 2), FIELDS, b"key")
    rows = [Row((1, 0), (n % 5, 0), (n,)) for n in range(50)]
    runs = [fields_in(bounder.settle(bounder.reduce(table_of(rows)))) for _ in range(12)]
    return all(run == runs[0] for run in runs)


def rows_of_a_person_do_not_depend_on_others() -> bool:
    """Another person has an id of two words, and a value beyond 64 bits."""
    bounder = Bounder(ContributionBounds(2, 2), FIELDS, b"key")
    rows = [Row((n % 9, 0), (n % 5, 0), (n % 31,)) for n in range(300)]
    other = [Row((1, 1), (0, 0), (1 << 90,)), Row((77, 0), (1, 3), (5,))]
    alone = fields_in(bounder.settle(table_of(rows)))
    together = fields_in(bounder.settle(table_of(rows + other)))
    shared = {pair: line for pair, line in together.items() if pair[0] not in ((1, 1), (77, 0))}
    return alone == shared


def one_person_has_one_identity() -> bool:
    """1, True, "1" and 1.0 are one person; "01" is another; 1.5 is none."""
    found, valid = ids.identify([1, True, "1", 1.0, "01", 1.5], b"key")
    same = (found[:, :4] == found[:, :1]).all() and (found[:, 4] != found[:, 0]).any()
    return bool(same) and valid.tolist() == [True] * 5 + [False]


def nan_never_becomes_a_number() -> bool:
    """A clip before the test for NaN would make it a bound."""
    units = fixed_point.to_units([math.nan, 3.0, math.inf, -math.inf], Fraction(1))
    missing = integers.is_missing(units, integers.LOWEST)
    return missing.tolist() == [True, False, False, False] and units[1] == 3


def noise_names_one_person_as_rarely_as_delta_says() -> bool:
    """The chance that noise is above the threshold for one person, by its whole distribution."""
    chosen = WeightedThreshold(Fraction(1, 200), Fraction(1, 1000))
    beyond = (chosen.threshold - 2**20) / math.sqrt(chosen.variance)
    return math.erfc(beyond / math.sqrt(2)) / 2 <= 1e-3


def weights_of_a_person_are_one_in_l2() -> bool:
    """Whoever is in k partitions adds at most 2^20 / sqrt(k) to each."""
    rows = [Row((1, 0), (place, 0), (1,)) for place in range(5)]
    seen = cells(rows, (Measure(WEIGHTS),), fields=())
    return sum(weight**2 for weight in seen.totals(0)) <= 2**40


def partitions_are_kept_as_rarely_as_delta_says() -> bool:
    """With the lowest words whoever can be kept is kept; with the highest, who must be."""
    chosen = TruncatedGeometric(Fraction(1), Fraction(1, 1000), 3)
    people = np.arange(60)
    possible = [chosen.probability(number) > 0 for number in people.tolist()]
    certain = [chosen.probability(number) == 1 for number in people.tolist()]
    return (
        chosen.keep(people, Words(0)).tolist() == possible
        and chosen.keep(people, Words(2**64 - 1)).tolist() == certain
        and possible == [number >= 3 for number in people.tolist()]
        and chosen.probability(3) <= Fraction(1, 1000)
    )


def selection_counts_people() -> bool:
    """One person with 1,000 rows is one person, far below the threshold."""
    request = SelectionRequest(Fraction(1), 1)
    made = compile_program([PeopleCount()], Budget(1.0, 1e-9), 1, bound=1, selection=request)
    rows = [Row((1, 0), (0, 0), (n,)) for n in range(1000)]
    seen = cells(rows, (Measure(WEIGHTS),), fields=())
    return not len(made.select(seen, ZeroNoise()))


def the_whole_is_spent_once() -> bool:
    """What the releases hold is at most the budget, by their own parameters."""
    made = compile_program([Count(), Sum("x"), PeopleCount()], Budget(1.0), 3)
    releases = [step.release for step in made.steps]
    costs = [cost for each in releases for cost in (each.clip.choice.cost, each.noise_cost)]
    return sum(cost.amount for cost in costs if cost) <= 1


def one_draw_covers_what_a_person_moves() -> bool:
    """The joint law of three numbers of one pool, added up over all levels."""
    return worst_of_joint_noise(Fraction(2)) <= 2 * (1 + 1e-9)


def a_centre_is_entered() -> bool:
    """The account holds the choice of the centre: its entries add up to the budget."""
    made = compile_program([Mean("x")], Budget(1), (1,))
    entries = compiled(made.request, Adaptive(None, (7,))).entries
    return sum(cost.amount * times for _, cost, times in entries) == 1


def delta_is_shared_among_partitions() -> bool:
    request = SelectionRequest(Fraction(1), 1)
    made = compile_program([PeopleCount()], Budget(1.0, 1e-6), 2, bound=2, selection=request)
    return 2 * made.selection.delta <= Fraction(1e-6)


def the_ledger_adds_without_rounding() -> bool:
    """Ten times the float 0.1 is more than 1, and nine of them leave less than another."""
    try:
        account.check_total(Budget(1.0), [("a tenth", Budget(0.1), 1)] * 10)
    except ValueError:
        return True
    return False


def a_person_is_in_one_bucket() -> bool:
    """One more person adds 1 to one bucket of the histogram of both signs, whatever they have."""
    buckets = 2 * CLIP.choice.buckets
    others = [Row((person, 0), (0, 0), (3,)) for person in range(5)]
    for numbers in ((5, -5), (-1, 1), (7, -3), (1, 9), (-9, 2), (4, 4), (0, -8)):
        more = [Row((99, 0), (place, 0), (number,)) for place, number in enumerate(numbers)]
        found = []
        for rows in (others, others + more):
            summary = histograms.summarise_people(
                histograms.Contributions(settled(rows)), [SIGNED.measure]
            )
            view = PartitionView(summary, np.zeros(len(summary), np.int64), 1)
            found.append(view.histogram(0, buckets)[0])
        moves = np.abs(found[1] - found[0])
        if moves.sum() != 1:
            return False
    return True


def a_person_counts_once_for_a_shared_clip() -> bool:
    """One person in many partitions is one person to the search for a shared clip."""
    rows = [Row((person, 0), (place, 0), (3,)) for person in range(5) for place in range(4)]
    table = settled(rows)
    summary = histograms.summarise_people(
        histograms.Contributions(table), [Measure(0, 1, GRID, norm=1)]
    )
    return summary.people.tolist() == [5]


def each_person_is_kept_by_chance_alone() -> bool:
    """Uniform over 6 partitions: with 20,000 people Hoeffding allows 1e-10 for t = 0.026."""
    key = os.urandom(8)
    rows = np.arange(20_000, dtype=np.uint64)
    person = np.repeat(rows, 6)[None]
    partition = np.tile(np.arange(6, dtype=np.uint64), 20_000)[None]
    table = tables.Table(person, partition, np.ones(120_000, np.int64), [])
    kept = Bounder(ContributionBounds(1), (), key).settle(table).partition[0]
    return all(abs((kept == place).mean() - 1 / 6) < 0.026 for place in range(6))


# ------------------------------------------------------------------------------- what they need


class Words(Noise):
    """Words that are all the same."""

    def __init__(self, word):
        object.__setattr__(self, "word", word)

    def words(self, size):
        return np.full(size, self.word, np.uint64)


def chosen(release: AdditiveRelease, clip: int) -> np.ndarray:
    """Return a histogram by which the clip is the one of this index: many people are there."""
    noisy = np.zeros((1, release.clip.choice.sides, release.clip.choice.buckets), np.int64)
    noisy[0, 0, clip] = 10**9
    return release.clip.choice.draw(noisy, ZeroNoise())


def settled(rows: list[Row], fields: tuple[Field, ...] = FIELDS) -> tables.Table:
    bounder = Bounder(ContributionBounds(None), fields, b"key")
    return bounder.settle(bounder.prepare(table_of(rows)))


def cells(rows: list[Row], measures, fields: tuple[Field, ...] = FIELDS) -> PartitionView:
    return PartitionView.of_all(
        histograms.summarise(histograms.Contributions(settled(rows, fields)), measures)
    )


# -------------------------------------------------------------------------------- the mutants


def _norm_of_one_partition(numbers, starts, norm):
    return np.maximum.reduceat(abs(numbers), starts)


def _whole_noise_after_the_clip(context, share, *measured, **options):
    return dataclasses.replace(SUM(context, share, *measured, **options), noise_cost=share)


def _largest_of_each_sign(people, measures):
    """Count a person with their largest number above 0, and with that below 0."""
    signs = [dataclasses.replace(m, sign=s) for m in measures for s in (1, -1)]
    summary = PEOPLE(people, signs)
    below = summary.measure == 1
    summary.bucket = summary.bucket + below * (len(GRID) + 1)
    summary.measure = np.zeros_like(summary.measure)
    return summary


def _without_clip(self, view, index, clip, fine):
    return view.clipped(0, np.full(view.size, 1 << 62))[0]


def _cap_of_each_part(self, table):
    """Bound a part, and take it for bounded ever after."""
    return SETTLE(self, table) if len(table) <= 4 else table


def _random_choice(self, table, person_hash):
    return np.frombuffer(os.urandom(8 * len(table)), np.uint64)


def _hash_of_the_form(pair, columns, constant):
    mixed = pair
    for part in (part for parts in columns for part in parts):
        mixed = hashing.mix(mixed + part.view(np.uint64), constant)
    return mixed


def _hash_of_the_width(self, table):
    return hashing.fold(table.person, hashing.salt(self.key, "person"))


def _equality(values, key):
    """Python's ==: 1.0 is 1, and text is another person than its number."""
    words = [hash(value) % 2**64 for value in values]
    return np.array([words, [0] * len(words)], np.uint64), np.ones(len(values), bool)


def _mask_after_clip(units, present):
    return units


def _one_more(self, people, noise):
    return KEEP(self, np.asarray(people) + 1, noise)


def _rows(self, measure, buckets):
    lines = np.flatnonzero(self._summary.measure == measure)
    return (np.full((self.size, 1), 1000 * len(lines) << 20, np.int64),) * 2


def _unweighted(partitions):
    return np.full(len(partitions), 2**20)


def _whole_for_each(budget, weights, max_partitions, selection, gaussian=False):
    whole, parts = SHARE_OUT(budget, weights, max_partitions, selection, gaussian)
    return whole, dict.fromkeys(parts, whole)


def _undivided_delta(share, max_partitions, pre_threshold):
    return dataclasses.replace(
        BEST_SELECTION(share, max_partitions, pre_threshold), delta=share.delta
    )


def _float_sums(budget, entries):
    if sum(float(cost.amount) * times for _, cost, times in entries) > float(budget.amount):
        raise ValueError("over")


def _per_partition(people, measures):
    apart = [dataclasses.replace(measure, norm=0) for measure in measures]
    return histograms.summarise(people, apart)


def _lowest_partition(self, table, person_hash):
    return table.partition[0]


def _bounded_by_one_sensitivity(self, numbers_, sensitivity, noise):
    return ADD(self, numbers_, 1, noise)


def _root_of_the_sensitivity(self, values, sensitivity, noise):
    return ADD(self, values, math.isqrt(sensitivity), noise)


def _everything(person, limit):
    return np.ones(person.shape[1], bool)


def _undoubled_alarm(self):
    return 2**20 + gaussian_bound(self.variance, 4 * self.delta)


SUM, SETTLE, KEEP = sums.clipped_sum, Bounder.settle, TruncatedGeometric.keep
SHARE_OUT, ADD = budget_split.share_out, AdditiveNoise.add
BEST_SELECTION = compiling.best_selection
PEOPLE = histograms.summarise_people

BROKEN: dict[str, tuple[object, str, object, Callable[[], bool]]] = {
    "2 scale by one bound only: the partitions are forgotten": (histograms, "norms", _norm_of_one_partition, the_noise_hides_all_partitions_of_a_person),
    "2 scale by one bound only: the clip is forgotten": (AdditiveNoise, "add", _bounded_by_one_sensitivity, the_noise_hides_all_partitions_of_a_person),
    "3 root of the sensitivity": (AdditiveNoise, "add", _root_of_the_sensitivity, the_noise_hides_all_partitions_of_a_person),
    "12 clip forgotten": (Total, "clipped", _without_clip, one_person_moves_a_sum_by_at_most_the_clip),
    "13 L0 forgotten": (ordering, "lowest", _everything, one_person_is_in_at_most_their_partitions),
    "14 cap per part only": (Bounder, "settle", _cap_of_each_part, bounds_hold_over_shards_and_not_in_each),
    "15 random choice under retry": (Bounder, "priority", _random_choice, a_retry_keeps_the_same_rows),
    "15 choice by the form of a column": (ordering, "row_hash", _hash_of_the_form, rows_of_a_person_do_not_depend_on_others),
    "15 choice by the width of ids": (Bounder, "person_hash", _hash_of_the_width, rows_of_a_person_do_not_depend_on_others),
    "15 choice by the partition": (Bounder, "priority", _lowest_partition, each_person_is_kept_by_chance_alone),
    "16 ids by ==": (ids, "identify", _equality, one_person_has_one_identity),
    "17 NaN clipped": (fixed_point, "_mask", _mask_after_clip, nan_never_becomes_a_number),
    "20 threshold off by one": (TruncatedGeometric, "keep", _one_more, partitions_are_kept_as_rarely_as_delta_says),
    "20 threshold for noise, at twice delta": (WeightedThreshold, "threshold", property(_undoubled_alarm), noise_names_one_person_as_rarely_as_delta_says),
    "20 weights that are not normalised": (histograms, "weights_of", _unweighted, weights_of_a_person_are_one_in_l2),
    "21 rows for people": (PartitionView, "histogram", _rows, selection_counts_people),
    "23 epsilon spent twice": (compiling, "share_out", _whole_for_each, the_whole_is_spent_once),
    "24 delta not divided": (compiling, "best_selection", _undivided_delta, delta_is_shared_among_partitions),
    "25 float sums": (account, "check_total", _float_sums, the_ledger_adds_without_rounding),
    "a person counts in every partition": (histograms, "summarise_people", _per_partition, a_person_counts_once_for_a_shared_clip),
    "a person counts on both sides": (histograms, "summarise_people", _largest_of_each_sign, a_person_is_in_one_bucket),
    "one draw for clips that are one too small": (JointNoise, "add", noise_of_smaller_clips, one_draw_covers_what_a_person_moves),
    "the centre of a mean is not entered": (Request, "centre_costs", property(lambda self: {}), a_centre_is_entered),
    "the choice of the clip is not taken from the noise": (sums, "clipped_sum", _whole_noise_after_the_clip, the_whole_is_spent_once),
}  # fmt: skip
"""What is replaced in which owner, by what, and the check that must notice."""
UNWATCHED = (
    "23 epsilon spent twice",
    "24 delta not divided",
    "the choice of the clip is not taken from the noise",
)
"""Those that the account would refuse are noticed without it too."""

CHECKS = list(dict.fromkeys(check for *_, check in BROKEN.values()))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_library_passes_every_check(check):
    assert check()


@pytest.mark.parametrize(
    ("name", "unwatched"),
    [*((name, False) for name in BROKEN), *((name, True) for name in UNWATCHED)],
)
def test_every_mutant_is_noticed(name, unwatched, monkeypatch):
    owner, attribute, broken, check = BROKEN[name]
    monkeypatch.setattr(owner, attribute, broken)
    if unwatched:  # the account, which would refuse it, is taken away as well
        monkeypatch.setattr(compiling, "check_total", lambda *_: None)
    try:
        assert not check()
    except ValueError as refusal:
        assert str(refusal).startswith("account: the total must be at most")
