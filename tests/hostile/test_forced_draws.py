"""The exact privacy loss of whole releases, for neighbours, metrics and options at random.

See `tests.audit.forced_draws`. Everything here comes from seeds, and the loss is exact: a pair
that fails is a release that is not private, and fails in every run.
"""

import dataclasses
import functools
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import beam_dp as dp
from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.mechanisms.bounding import ordering
from beam_dp.mechanisms.bounding.bounder import Bounder
from beam_dp.mechanisms.consistency import agreement
from beam_dp.mechanisms.metrics import sums
from beam_dp.mechanisms.metrics.additive import contribution
from beam_dp.mechanisms.metrics.additive.additive_release import AdditiveRelease
from beam_dp.mechanisms.metrics.additive.joint_noise import JointNoise
from beam_dp.mechanisms.noise import noise_on_several_sums
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning import compile as compiling
from beam_dp.mechanisms.summaries import histograms
from beam_dp.testing.forced_draws import compared, share_spent
from beam_dp.testing.losses.draw_costs import Fault, hull_levels
from beam_dp.transforms import row_queries
from tests.mechanisms.noise.test_noise_on_several_sums import SMALL, law

CASES, PARTS = 24, 12
NEIGHBOURS = 4
"""Of each case's database, with one person more: 96 pairs in the audit."""
GRID = dp.Candidates.of([-20, -5, 0, 1, 2, 3, 5, 8, 12, 20, 40, 100, 1000])
SEARCHES = "two_phase", "above_threshold", "exponential_mechanism", "noisy_binary_search"
NUMBERS = dp.Candidates.of([0, 1, 2, 3, 5, 8, 12, 20, 40, 100, 1000])


@dataclasses.dataclass(frozen=True)
class Case:
    """A release, a database and neighbours with one person more, and how its draws lean."""

    options: dict[str, Any]
    less: pa.Table
    more: list[pa.Table]
    seed: int
    lean: int


class Chance:
    """What a case is made of, at random."""

    def __init__(self, seed: int) -> None:
        self.source = np.random.default_rng(seed)

    def one(self, *options: Any) -> Any:
        return options[self.source.integers(len(options))]

    def number(self, low: int, high: int) -> int:
        return int(self.source.integers(low, high + 1))


def sided(chance: Chance) -> dict[str, Any]:
    """Return options of a metric with a clip."""
    return chance.one(
        {},
        {},
        {"clip": chance.number(1, 30)},
        {"search": dp.AboveThreshold, "candidates": NUMBERS},
    )


def ends(chance: Chance) -> dict[str, Any]:
    """Return the public ends of a mean, or none."""
    return chance.one({}, {"low": 0, "high": 20}, {"high": 100})


TOTALS = [
    lambda chance: dp.Count(**sided(chance)),
    lambda chance: dp.PeopleCount(),
    lambda chance: dp.Sum("value", **sided(chance)),
    lambda chance: dp.Mean("value", per=chance.one("row", "person"), **ends(chance)),
    lambda chance: dp.Histogram("value", [0, 5, 10, 100], person_value=chance.one("mean", "max")),
    lambda chance: dp.Ratio("flag", per=chance.one("row", "person")),
    lambda chance: dp.Ratio("flag", per="person", method="naive"),
    lambda chance: dp.Variance("value", **ends(chance)),
    lambda chance: dp.StandardDeviation("value", **ends(chance)),
    lambda chance: dp.Preprocessed("value", "variance", sensitivity=chance.one("auto", 3)),
    lambda chance: dp.Preprocessed("value", chance.one("median", "maximum"), sensitivity=3),
    lambda chance: dp.TrimmedMean("value", sensitivity=3, person_value=chance.one("max", "sum")),
]
SEARCHED = [
    lambda chance: dp.Max("value", candidates=GRID, search=chance.one(*SEARCHES)),
    lambda chance: dp.Min("value", candidates=GRID, search=chance.one(*SEARCHES)),
    lambda chance: dp.Median("value", per=chance.one("row", "person"), candidates=GRID),
    lambda chance: dp.Quantiles("value", (0.25, 0.5, 0.75), candidates=GRID),
    lambda chance: dp.Quantile("value", 0.5, per=chance.one("row", "person"), candidates=GRID),
    lambda chance: dp.MaxFrequency("word", **sided(chance)),
    lambda chance: dp.SumOfSquares("word", candidates=NUMBERS, search=chance.one(*SEARCHES)),
    lambda chance: dp.DistinctCount("word", **sided(chance)),
]
WALKS = [
    lambda chance: dp.Max("value", candidates=GRID),
    lambda chance: dp.Min("value", candidates=GRID),
    lambda chance: dp.KthLargest("value", chance.number(1, 4), candidates=GRID),
    lambda chance: dp.Quantile(
        "value", chance.one(0.1, 0.9), per=chance.one("row", "person"), candidates=GRID
    ),
]
"""Three draws each, whose divergences are bounded together and not one by one: for epsilon alone."""
OWNED = [
    lambda chance: dp.Count(search="two_phase", candidates=NUMBERS),
    lambda chance: dp.Sum("value", search="two_phase", candidates=NUMBERS),
    lambda chance: dp.Max("value", candidates=GRID, search=chance.one(*SEARCHES)),
    lambda chance: dp.MaxFrequency("word", search="two_phase", candidates=NUMBERS),
    lambda chance: dp.DistinctCount("word", search="two_phase", candidates=NUMBERS),
]
"""For rows with two owners."""
PLAIN = [lambda chance: dp.Count(), lambda chance: dp.PeopleCount(), lambda chance: dp.Sum("value")]
"""For mutants of what all metrics share, and for one draw of all partitions."""


def rows_of(
    chance: Chance, person: int, others: int, groups: int, heavy: bool = False
) -> list[Any]:
    """Return the rows of a person, who may own each together with one of the others."""
    rows = []
    far = chance.one(1, 1, 10**9) if heavy else 1
    for group in range(groups) if heavy else {chance.number(0, groups - 1) for _ in "12"}:
        for _ in range(chance.number(1, 25 if heavy else 4)):
            value = chance.number(-3, 1000 if heavy else 15) * far
            word = f"w{chance.number(0, 40 if heavy else 5)}"
            other = chance.number(0, others)
            rows.append((person, other, f"g{group}", value, word, chance.number(0, 1)))
    return rows


def data(chance: Chance, groups: int, owners: int) -> tuple[pa.Table, list[pa.Table]]:
    """Return people's rows, and with one more person in several ways, who often has much more."""
    people = chance.number(3, 40 if owners == 1 else 10)
    kept = [row for each in range(people) for row in rows_of(chance, each, people - 1, groups)]
    neighbours = []
    for _ in range(NEIGHBOURS):
        rows = rows_of(chance, people, people, groups, heavy=chance.one(True, True, False))
        if owners == 2:  # some rows of others are theirs too
            shared = rows_of(chance, people, people, groups)
            rows += [(chance.number(0, people - 1), people, *row[2:]) for row in shared]
        neighbours.append(table_of(kept + rows))
    return table_of(kept), neighbours


def table_of(rows: list[Any]) -> pa.Table:
    """Return rows as a table."""
    names = "person", "other", "group", "value", "word", "flag"
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def options_of(chance: Chance, families: list[Any] | None) -> tuple[dict[str, Any], int]:
    """Return options of a release at random, and how many partitions there are."""
    zcdp = chance.one(True, False, False, False)
    groups, kind = chance.number(1, 4), chance.one("none", "public", "public", "private")
    owners = ["person", "other"][: 1 if families or kind == "private" else chance.one(1, 1, 1, 2)]
    known = [TOTALS, SEARCHED] if zcdp or kind == "private" else [TOTALS, SEARCHED, WALKS]
    known = [families] if families else known if len(owners) == 1 else [OWNED]
    asked = [chance.one(*chance.one(*known))(chance) for _ in range(chance.one(1, 1, 2, 3))]
    unlike = {metric.output: metric for metric in asked}.values()
    amount = chance.one(Fraction(1, 2), 1, 3, 8, 30)
    wanted = kind == "private" or (kind == "public" and not zcdp and chance.one(True, False))
    delta = Fraction(1, 100) if wanted else 0
    options: dict[str, Any] = {
        "person": owners,
        "metrics": [dataclasses.replace(each, weight=chance.one(1, 1, 3)) for each in unlike],
        "budget": dp.Budget.zcdp(amount, delta) if zcdp else dp.Budget(amount, delta),
    }
    if kind != "none":
        options["partition"] = ["group"]
        listed = dp.PublicPartitions([f"g{group}" for group in range(groups)])
        private = dp.PrivatePartitions(pre_threshold=chance.one(1, 1, 3))
        options["partitions"] = listed if kind == "public" else private
        if len(owners) == 1:
            max_partitions = chance.one("auto", "auto", 1, chance.number(1, groups))
            limits = max_partitions, chance.one(None, None, 2, 5)
            options["bounds"] = dp.ContributionBounds(*limits, rows=chance.one(None, None, 6))
    return options, groups


def families_of(seed: int) -> list[Any] | None:
    """Return the only families of metrics that a case of this seed has; None: of all."""
    return PLAIN if seed % 8 == 6 else None


def case_of(seed: int, families: list[Any] | None = None) -> Case:
    """Return a case at random, of these families of metrics or of all."""
    chance = Chance(seed)
    options, groups = options_of(chance, families)
    tables = data(chance, groups, len(options["person"]))
    return Case(options, *tables, seed, chance.number(-2, 2))


def check(case: Case) -> None:
    """Raise `Fault` where the release of a case is not private."""
    release = functools.partial(dp.release, show_errors=True, **case.options)
    for run in compared(release, case.less, case.more, case.seed, case.lean):
        share_spent(run)


@pytest.mark.parametrize("seed", range(6))
def test_neighbours_are_told_apart_by_no_more_than_the_budget(seed: int) -> None:
    check(case_of(seed, families_of(seed)))


@pytest.mark.audit
@pytest.mark.parametrize("part", range(PARTS))
def test_so_they_are_whatever_options_meet(part: int) -> None:
    for seed in range(part, CASES, PARTS):
        try:
            check(case_of(seed, families_of(seed)))
        except Fault as fault:
            pytest.fail(f"seed {seed}: {fault}")


def tables_of(seed: int, also_by: list[str]) -> Case:
    """Return several tables of one run, and one neighbour."""
    chance = Chance(seed)
    groups = {"group": ["g0", "g1", "g2"], "flag": [0, 1]}
    options = {
        "person": ["person"],
        "metrics": [dp.Count(), dp.Sum("value"), dp.Mean("value"), dp.PeopleCount()],
        "budget": dp.Budget.zcdp(3) if seed == 1 else dp.Budget(8),
        "partition": list(groups),
        "partitions": dp.PublicPartitions.product(**groups),
        "also_by": [{"partition": by, "weight": 1 + at / 10} for at, by in enumerate(also_by, 1)],
    }
    less, [more, *_] = data(chance, 4, 1)
    return Case(options, less, [more], seed, chance.number(-2, 2))


SHAPES = [["total"], ["group", "total"], ["group", "flag", "total"]]


@pytest.mark.parametrize("seed, also_by", list(enumerate(SHAPES)))
def test_tables_that_agree_cost_the_budget_together(seed: int, also_by: list[str]) -> None:
    """What they agree on is a function of the draws: it is the same where these are forced."""
    check(tables_of(seed, also_by))


UNRELEASED: list[int] = []


def _kept_for_later(self, clipped, noisy, clips, noise):
    UNRELEASED.append(int(sum(clipped.totals)))
    return RELEASED(self, clipped, noisy, clips, noise)


def _totals_from_unreleased_numbers(levels, links, nonnegative=True):
    true = float(sum(UNRELEASED))
    levels = [levels[0]._replace(values=levels[0].values + true), *levels[1:]]
    return AGREE(levels, links, nonnegative)


@pytest.mark.audit
def test_totals_from_unreleased_numbers_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    UNRELEASED.clear()
    monkeypatch.setattr(AdditiveRelease, "released", _kept_for_later)
    monkeypatch.setattr(agreement, "agree", _totals_from_unreleased_numbers)
    with pytest.raises(Fault, match="differs"):
        check(tables_of(0, ["total"]))


def _whole_budget_again(self, columns, entry, share):
    return FURTHER(self, columns, entry, self.first.budget)


@pytest.mark.audit
def test_a_cost_that_is_counted_once_for_two_tables_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dp.PrivateTables, "_further", _whole_budget_again)
    with pytest.raises(Fault, match="are spent"):
        check(tables_of(1, ["total"]))


def check_select(seed: int) -> None:
    """Raise `Fault` where a SELECT is not private: a row with a value above 500 fails in it."""
    chance = Chance(seed)
    by = ["GROUP BY ROLLUP (g, flag)", "GROUP BY g"][seed]
    asked = f"""SELECT upper("group") AS g, count(*) AS n, sum(value * flag) AS s, avg(value > 3) AS h,
        sum(value) FILTER (WHERE word <> 'w1') AS w, s / n AS each, count(DISTINCT person) AS people
        FROM rows WHERE value > -2 OR 9223372036854775307 + value > 0
        {by} HAVING n > 1 ORDER BY s DESC LIMIT 5"""
    keys = {"g": ["G0", "G1", "G2"]} | ({"flag": [0, 1]} if seed == 0 else {})
    options = {"person": "person", "budget": dp.Budget(8)}
    options["partitions"] = dp.PublicPartitions.product(**keys)
    less, more = data(chance, 4, 1)
    release = functools.partial(dp.select, asked, show_errors=True, **options)
    for run in compared(lambda rows: release(rows=rows), less, more, seed, chance.number(-2, 2)):
        share_spent(run)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(2))
def test_a_select_costs_its_budget(seed: int) -> None:
    """Its filters and expressions look at one row; what is left is a function of the draws."""
    check_select(seed)


def test_a_select_whose_failing_rows_drop_others_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_queries._Engine, "_halves", lambda self, batch: iter(()))
    with pytest.raises(Fault):
        check_select(1)


@pytest.mark.parametrize("epsilon, sides", SMALL)
def test_the_weight_of_a_hull_draw_is_the_sum_over_all_levels(epsilon: Fraction, sides) -> None:
    hull, window = noise_on_several_sums._hull(epsilon, sides), 7
    rate = float(hull.rate)
    logs = {}
    for noise in np.ndindex((2 * window + 1,) * len(sides)):
        least, beyond = hull_levels(hull, [each - window for each in noise])
        logs[noise] = -rate * least + np.log(beyond - 1 / np.expm1(-rate))
    expected = np.log(law(hull, window))
    for noise, log in logs.items():
        assert log - logs[(window,) * len(sides)] == pytest.approx(
            expected[noise] - expected[(window,) * len(sides)], abs=1e-9
        )


# ---------------------------------------------------------------- mutants

LOWEST = ordering.lowest
SUM, WHOLE = sums.clipped_sum, contribution.clipped_totals
AGREE, FURTHER = agreement.agree, dp.PrivateTables._further
ADD, RELEASED, LOSS = JointNoise.add, AdditiveRelease.released, AdditiveRelease._loss


def _choice_not_taken_from_the_noise(context, share, *measured, **options):
    return dataclasses.replace(SUM(context, share, *measured, **options), noise_cost=share)


def _clip_one_too_high(whole, shares, clip, fine, steps):
    return WHOLE(whole, shares, clip + 1, fine, steps)


def _norm_of_one_partition(numbers, starts, norm):
    return np.maximum.reduceat(abs(numbers), starts)


def _people_in_each_partition(table, measures, bounded=None):
    """Count a person once in every partition."""
    apart = [dataclasses.replace(measure, norm=0) for measure in measures]
    summary = histograms.summarise(table, apart, bounded)
    summary.partition = np.zeros_like(summary.partition)
    return histograms.reduce(summary, measures)


def _given_back_by_true_numbers(self, clipped, bound, noise):
    return dataclasses.replace(LOSS(self, clipped, bound, noise), lost=float(clipped.totals.sum()))


def _interval_from_true_counts(self, clipped, noisy, clips, noise):
    released = RELEASED(self, clipped, noisy, clips, noise)
    return dataclasses.replace(released, above=released.above + clipped.totals)


def _noise_of_its_own(self, clipped, noisy, clips, noise):
    released = RELEASED(self, clipped, noisy, clips, noise)
    return dataclasses.replace(released, above=released.above + Noise().geometric(1, len(noisy)))


def _one_partition_more(person, limit):
    return LOWEST(person, limit if limit is None else limit + 1)


def _all_partitions(self, table, most):
    return table


def _share_doubled(self, totals, clips, noise):
    doubled = (Budget.zcdp if self.budget.is_zcdp else Budget)(2 * self.budget.amount)
    return ADD(dataclasses.replace(self, budget=doubled), totals, clips, noise)


def _noise_of_one_number_fewer(self, totals, clips, noise):
    if len(clips) == 1 or self.split:
        return ADD(self, totals, clips, noise)
    fewer = dataclasses.replace(self, signed=self.signed[1:])
    alone = dataclasses.replace(self, signed=self.signed[:1])
    return [*ADD(alone, totals[:1], clips[:1], noise), *ADD(fewer, totals[1:], clips[1:], noise)]


def _each_partition_by_itself(self, totals, clips, noise):
    return ADD(dataclasses.replace(self, partitions=1), totals, clips, noise)


def _weights_of_one_partition(partitions):
    return np.full(len(partitions), 2**20)


MUTANTS = {
    "a cost counted twice": (sums, "clipped_sum", _choice_not_taken_from_the_noise, "spent"),
    "a clip one too high": (contribution, "clipped_totals", _clip_one_too_high, "spent"),
    "the norm of one partition": (histograms, "norms", _norm_of_one_partition, "spent"),
    "a person in every partition": (
        histograms, "summarise_people", _people_in_each_partition, "spent"
    ),
    "the loss given back by true numbers": (
        AdditiveRelease, "_loss", _given_back_by_true_numbers, "differs"
    ),
    "an interval from true counts": (
        AdditiveRelease, "released", _interval_from_true_counts, "differs"
    ),
    "a bound one too large": (ordering, "lowest", _one_partition_more, "spent"),
    "ranks of all partitions": (Bounder, "lines_of_pairs", _all_partitions, "spent"),
    "a share doubled": (JointNoise, "add", _share_doubled, "spent"),
    "a draw that no entry has": (AdditiveRelease, "released", _noise_of_its_own, "KINDS"),
    "noise of one number fewer": (JointNoise, "add", _noise_of_one_number_fewer, "spent"),
    "a joint draw for one partition": (JointNoise, "add", _each_partition_by_itself, "spent"),
    "weights of one partition": (histograms, "weights_of", _weights_of_one_partition, "share"),
}  # fmt: skip
"""What is broken and how, and what is said of it."""
SHOWN_BY = {
    "a cost counted twice": (PLAIN, 0),
    "a clip one too high": (PLAIN, 0),
    "the norm of one partition": (PLAIN, 1),
    "a person in every partition": (PLAIN, 1),
    "the loss given back by true numbers": (PLAIN, 3),
    "an interval from true counts": (PLAIN, 2),
    "a bound one too large": (SEARCHED, 76),
    "ranks of all partitions": (SEARCHED, 14),
    "a share doubled": (PLAIN, 0),
    "a draw that no entry has": (PLAIN, 0),
    "noise of one number fewer": (PLAIN, 29),
    "a joint draw for one partition": (PLAIN, 147),
    "weights of one partition": (PLAIN, 12),
}
"""The seed of a release of these metrics that shows it."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, broken, fault = MUTANTS[name]
    families, seed = SHOWN_BY[name]
    case = case_of(seed, families)
    with monkeypatch.context() as planted:
        planted.setattr(owner, attribute, broken)
        planted.setattr(compiling, "check_total", lambda *_: None)
        with pytest.raises(Fault, match=fault):
            check(case)
    check(case)
