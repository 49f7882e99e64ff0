"""Audits of whole releases: what is sound gives no alarm, and every known way to lose privacy does.

Rows, options and draws come from seeds, and the loss is exact: a pair that fails is a release that
is not private, and fails in every run. Mutants replace one function of the library by a broken one.
"""

import dataclasses
import functools
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest

import beam_dp as dp
from beam_dp.mechanisms.bounding import ordering
from beam_dp.mechanisms.metrics import sums
from beam_dp.mechanisms.metrics.additive import additive_release
from beam_dp.mechanisms.metrics.additive.additive_release import AdditiveRelease, Total
from beam_dp.mechanisms.noise import noise_on_several_sums
from beam_dp.mechanisms.noise.noise_on_a_sum import JointNoise
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.planning import compile as compiling
from beam_dp.mechanisms.search.quantiles.middle_quantile import CentralSearch
from beam_dp.mechanisms.summaries import histograms
from beam_dp.testing import audit
from beam_dp.testing.forced_draws import compared, share_spent
from beam_dp.testing.losses.draw_costs import hull_levels
from beam_dp.testing.made_rows import RowMaker
from beam_dp.transforms.columns import fixed_point, ids
from beam_dp.transforms.io.frames import ReadFrame
from beam_dp.transforms.sql import query_engine
from tests.mechanisms.noise.test_noise_on_several_sums import SMALL, law

SAMPLE = pa.table(
    {
        "person": [1, 2, 3, 4, 5, 6],
        "other": [1, 2, 3, 4, 5, 6],
        "group": ["g0", "g1", "g2", "g0", "g1", "g2"],
        "value": [1, -3, 15, 40, 7, 2],
        "price": [1.5, 20.0, 0.25, 300.0, 4.0, -2.0],
        "word": ["w0", "w1", "w2", "w3", "w0", "w1"],
        "flag": [0, 1, 1, 0, 1, 0],
    }
)
GROUPS = dp.PublicPartitions(["g0", "g1", "g2"])
GRID = dp.Candidates.of([-20, -5, 0, 1, 2, 3, 5, 8, 12, 20, 40, 100, 1000])
SEARCHES = "two_phase", "above_threshold", "exponential_mechanism", "noisy_binary_search"
NUMBERS = dp.Candidates.of([0, 1, 2, 3, 5, 8, 12, 20, 40, 100, 1000])
QUERY = """SELECT person, other, upper("group") AS "group", value * flag AS value, price / value AS price,
    word, flag FROM rows WHERE value > -2 OR 9223372036854775307 + value > 0"""
"""A value above 500 fails in it, and so does the smallest one."""


class Chance:
    """What a configuration is made of, at random."""

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


def grid(chance: Chance) -> dict[str, Any]:
    """Return a small grid, or the usual one of billions of candidates."""
    return chance.one({}, {"candidates": GRID})


def least(people: tuple[Any, ...]) -> list[float]:
    """Return the profile of how many people there are."""
    return [float(len(people) - k) for k in range(len(people) + 1)]


def longest(values: np.ndarray) -> float:
    return float(np.max(values) * len(values))


METRICS: list[Callable[[Chance], Any]] = [
    lambda chance: dp.Count(**sided(chance)),
    lambda chance: dp.PeopleCount(),
    lambda chance: dp.Sum("value", **sided(chance)),
    lambda chance: dp.Mean("value", per=chance.one("row", "person"), **ends(chance)),
    lambda chance: dp.Histogram("value", [0, 5, 10, 100], person_value=chance.one("mean", "max")),
    lambda chance: dp.Ratio("flag", per=chance.one("row", "person")),
    lambda chance: dp.Variance("value", **ends(chance)),
    lambda chance: dp.StandardDeviation("price", **ends(chance)),
    lambda chance: dp.Preprocessed("value", "variance", sensitivity=chance.one("auto", 3)),
    lambda chance: dp.TrimmedMean("value", sensitivity=3, person_value=chance.one("max", "sum")),
    lambda chance: dp.Max("value", candidates=GRID, search=chance.one(*SEARCHES)),
    lambda chance: dp.Min("price", candidates=GRID, search=chance.one(*SEARCHES)),
    lambda chance: dp.Median("value", per=chance.one("row", "person"), **grid(chance)),
    lambda chance: dp.Quantiles("price", (0.25, 0.5, 0.75), **grid(chance)),
    lambda chance: dp.Quantile("value", chance.one(0.1, 0.9), **grid(chance)),
    lambda chance: dp.MaxFrequency("word", **sided(chance)),
    lambda chance: dp.SumOfSquares("word", candidates=NUMBERS, search=chance.one(*SEARCHES)),
    lambda chance: dp.DistinctCount("word", **sided(chance)),
    lambda chance: dp.KthLargest("value", chance.number(1, 4), **grid(chance)),
    lambda chance: dp.CustomProfile(
        "value", least, candidates=NUMBERS, search="two_phase", lowest=0
    ),
    lambda chance: dp.BlackBox("price", longest, **grid(chance)),
]
OWNED: list[Callable[[Chance], Any]] = [
    lambda chance: dp.Count(search="two_phase", candidates=NUMBERS),
    lambda chance: dp.Sum("value", search="two_phase", candidates=NUMBERS),
    lambda chance: dp.Max("value", candidates=GRID, search=chance.one(*SEARCHES)),
    lambda chance: dp.MaxFrequency("word", search="two_phase", candidates=NUMBERS),
    lambda chance: dp.DistinctCount("word", search="two_phase", candidates=NUMBERS),
]
"""For rows with two owners."""


def options_of(seed: int) -> dict[str, Any]:
    """Return the options of a release; each metric is in one of as many seeds."""
    chance = Chance(seed)
    owned, zcdp = seed % 10 == 9, seed % 4 == 3
    kind = chance.one("none", "public", "public", *["private"] * (not owned))
    first = chance.one(*OWNED) if owned else METRICS[seed % len(METRICS)]
    further = [chance.one(*(OWNED if owned else METRICS)) for _ in range(chance.number(0, 2))]
    asked = [make(chance) for make in (first, *further)]
    unlike = {metric.output: metric for metric in asked}.values()
    boxed = any(isinstance(metric, dp.BlackBox) for metric in unlike)
    amount = 30 if boxed else chance.one(Fraction(1, 2), 1, 3, 8)
    also = kind != "none" and not owned and seed % 5 == 2
    delta = Fraction(1, 100) if kind == "private" or chance.one(True, False) else 0
    options: dict[str, Any] = {
        "person": ["person", "other"][: 1 + owned],
        "metrics": [dataclasses.replace(each, weight=chance.one(1, 1, 3)) for each in unlike],
        "budget": dp.Budget.zcdp(amount, delta) if zcdp else dp.Budget(amount, delta),
        "query": QUERY if seed % 3 == 1 else None,
    }
    if kind != "none":
        keys = ["G0", "G1", "G2"] if options["query"] else ["g0", "g1", "g2"]
        private = dp.PrivatePartitions(pre_threshold=chance.one(1, 1, 3))
        options["partition"] = ["group"]
        options["partitions"] = dp.PublicPartitions(keys) if kind == "public" else private
        if not owned:
            limits = 1 if boxed else chance.one("auto", 1, 2), chance.one(None, None, 2, 5)
            options["bounds"] = dp.ContributionBounds(*limits, rows=chance.one(None, None, 6))
        options["also_by"] = ["total"] if also else []
    return options


@pytest.mark.sampled(22)
@pytest.mark.parametrize("seed", range(44))
def test_a_sound_release_gives_no_alarm(seed):
    """Of each one person who is added, or removed."""
    options = options_of(seed)
    private = isinstance(options.get("partitions"), dp.PrivatePartitions)
    maker = RowMaker(SAMPLE, options["person"])
    takes_long = options["query"] or len(options["person"]) > 1
    case = 2 + 4 * (seed % 4) if takes_long else seed % 16  # a few people, or some more
    made = list(maker.pairs(case, removes=bool(case) and seed % 6 == 0 and not private))
    release = functools.partial(dp.release, show_errors=True, **options)
    other = made[seed % len(made)].other
    [run] = compared(release, made[0].base, [other], seed, seed % 5 - 2)
    assert 0 <= share_spent(run) <= 1 + Fraction(1, 10**6)


@pytest.mark.parametrize("epsilon, sides", SMALL)
def test_the_weight_of_a_hull_draw_is_the_sum_over_all_levels(epsilon, sides):
    hull, window = noise_on_several_sums._hull(epsilon, sides), 7
    rate = float(hull.rate)
    logs = {}
    for noise in np.ndindex((2 * window + 1,) * len(sides)):
        lowest, beyond = hull_levels(hull, [each - window for each in noise])
        logs[noise] = -rate * lowest + np.log(beyond - 1 / np.expm1(-rate))
    expected = np.log(law(hull, window))
    for noise, log in logs.items():
        assert log - logs[(window,) * len(sides)] == pytest.approx(
            expected[noise] - expected[(window,) * len(sides)], abs=1e-9
        )


# ---------------------------------------------------------------- mutants

READ = ReadFrame.expand
LOWEST, IDENTIFY = ordering.lowest, ids.identify
SUM, WHOLE, UNITS = sums.clipped_sum, additive_release.clipped_totals, fixed_point.to_units
FURTHER, ADD, RELEASED = dp.PrivateTables._further, JointNoise.add, AdditiveRelease.released


def _clip_one_too_high(whole, shares, clip, fine, steps):
    return WHOLE(whole, shares, clip + 1, fine, steps)


def _clip_after_the_sum(self, view, index, clip, fine):
    whole = view.clipped(0, np.full(view.size, 1 << 62))[0]
    return np.clip(whole, -100 * clip, 100 * clip) * fine


def _norm_of_one_partition(numbers, starts, norm):
    return np.maximum.reduceat(abs(numbers), starts)


def _scale_from_data(self, totals, clips, noise):
    largest = max(int(np.max(np.abs(total), initial=1)) for total in totals)
    scaled = self.budget.scaled(Fraction(1, 1 + largest % 2))
    return ADD(dataclasses.replace(self, budget=scaled), totals, clips, noise)


def people_in_each_partition(people, measures):
    """Count a person once in every partition."""
    apart = [dataclasses.replace(measure, norm=0) for measure in measures]
    summary = histograms.summarise(people, apart)
    summary.partition = np.zeros_like(summary.partition)
    return histograms.reduce(summary, measures)


def _choice_not_taken_from_the_noise(context, share, *measured, **options):
    return dataclasses.replace(SUM(context, share, *measured, **options), noise_cost=share)


def _interval_from_true_counts(self, clipped, noisy, clips, noise):
    released = RELEASED(self, clipped, noisy, clips, noise)
    return dataclasses.replace(released, above=released.above + clipped.totals)


def _warned_of_a_cell(values, key):
    warnings.warn(f"no id: {list(values)[-1]!r}", stacklevel=1)
    return IDENTIFY(values, key)


def _refused_row(values, *given, **named):
    if pa.types.is_floating(getattr(values, "type", pa.null())) and np.isnan(values).any():
        raise ValueError("a cell is no number")
    return UNITS(values, *given, **named)


def _noise_of_its_own(self, clipped, noisy, clips, noise):
    released = RELEASED(self, clipped, noisy, clips, noise)
    return dataclasses.replace(released, above=released.above + Noise().geometric(1, len(noisy)))


def _one_partition_more(person, limit):
    return LOWEST(person, limit if limit is None else limit + 1)


def _each_partition_by_itself(self, totals, clips, noise):
    return ADD(dataclasses.replace(self, partitions=1), totals, clips, noise)


def _weights_of_one_partition(partitions):
    return np.full(len(partitions), 2**20)


def _whole_budget_again(self, columns, entry, share):
    return FURTHER(self, columns, entry, self.first.budget)


def _step_named_by_size(self, begin):
    begin | f"{self.size_in_bytes()} bytes" >> beam.Impulse()
    return READ(self, begin)


def _failing_rows_drop_others(self, batch):
    return iter(())


PLAIN = {
    "metrics": [dp.Count(), dp.PeopleCount(), dp.Sum("price")],
    "budget": dp.Budget(1),
    "partition": ["group"],
    "partitions": GROUPS,
}
ALONE = PLAIN | {"metrics": [dp.Sum("value", clip=3)]}
QUERIED = PLAIN | {"query": QUERY, "partitions": dp.PublicPartitions(["G0", "G1", "G2"])}
PRIVATE = PLAIN | {"budget": dp.Budget.zcdp(1, 0.01), "partitions": dp.PrivatePartitions()}
COUNTED = {"metrics": [dp.PeopleCount()], "budget": dp.Budget(30)}
TOGETHER = PLAIN | {"metrics": [dp.PeopleCount(), dp.Sum("value")], "budget": dp.Budget.zcdp(3)}
BOUNDED = PLAIN | {
    "metrics": [dp.Max("value", candidates=GRID)],
    "bounds": dp.ContributionBounds(1),
}
MUTANTS = {
    "a sensitivity one too small": (additive_release, "clipped_totals", _clip_one_too_high, ALONE),
    "a clip after the sum": (Total, "clipped", _clip_after_the_sum, ALONE),
    "the norm of one partition": (histograms, "norms", _norm_of_one_partition, PLAIN),
    "a scale from data": (JointNoise, "add", _scale_from_data, PLAIN),
    "a histogram per partition": (
        histograms, "summarise_people", people_in_each_partition, PLAIN
    ),
    "a cost counted once for two draws": (
        sums, "clipped_sum", _choice_not_taken_from_the_noise, ALONE | {"metrics": [dp.Count()]}
    ),
    "a cost counted once for two Gaussian draws": (
        sums, "clipped_sum", _choice_not_taken_from_the_noise, PLAIN | {"budget": dp.Budget.zcdp(1)}
    ),
    "a query whose failing rows drop others": (
        query_engine.Engine, "_halves", _failing_rows_drop_others, QUERIED
    ),
    "an error message with a cell": (ids, "identify", _warned_of_a_cell, PLAIN),
    "a row that ends a job": (fixed_point, "to_units", _refused_row, PLAIN),
    "an interval from true counts": (
        AdditiveRelease, "released", _interval_from_true_counts, COUNTED
    ),
    "a step that is named by the size of the rows": (
        ReadFrame, "expand", _step_named_by_size, PLAIN
    ),
    "a bound one too large": (ordering, "lowest", _one_partition_more, BOUNDED),
    "a joint draw for one partition": (JointNoise, "add", _each_partition_by_itself, TOGETHER),
    "weights of one partition": (histograms, "weights_of", _weights_of_one_partition, PRIVATE),
    "a budget that two tables spend": (
        dp.PrivateTables, "_further", _whole_budget_again, PLAIN | {"also_by": ["total"]}
    ),
}  # fmt: skip
"""What is broken and how, and the release that shows it."""


REMEMBERED: list[int] = []


def _remembering(values):
    REMEMBERED.append(len(values))
    return float(len(REMEMBERED) % 20)


def _all_at_once(people):
    """Say that half of the people must be removed for any change: one more changes every level."""
    return [float(len(people)) * (2 * k < len(people)) for k in range(len(people) + 1)]


@dataclasses.dataclass(frozen=True)
class TwiceItsShare(dp.BlackBox):
    """A metric of a user's own, whose release draws for twice of what it says that it spends."""

    def build(self, context, share):
        made = super().build(context, share)
        doubled = dp.Budget(2 * made.cost.amount)
        return dataclasses.replace(made, search=CentralSearch(doubled, resolution=1))


USERS = {
    "a profile that does not interlace": (
        dp.CustomProfile("value", _all_at_once, candidates=dp.Candidates.linear(0, 400, 1), search=dp.AboveThreshold, lowest=0), dp.Budget(1)
    ),
    "a function that remembers": (dp.BlackBox("value", _remembering, blocks=40), dp.Budget(30)),
    "a metric that takes too little noise": (TwiceItsShare("value", len, blocks=3), dp.Budget(30)),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", USERS)
def test_what_users_get_wrong_is_caught(name):
    metric, budget = USERS[name]
    release = functools.partial(dp.release, person="person", metrics=[metric], budget=budget)
    found = audit(release, SAMPLE, person="person", seconds=600)
    assert "are spent" in found.fault or "differs" in found.fault


def test_a_draw_that_is_not_known_is_refused(monkeypatch):
    monkeypatch.setattr(AdditiveRelease, "released", _noise_of_its_own)
    release = functools.partial(dp.release, person="person", **PLAIN)
    with pytest.raises(ValueError, match="^audit: release must draw by nothing else than"):
        audit(release, SAMPLE, person="person")


@pytest.mark.parametrize(
    "wrong", [{"person": "nobody"}, {"seconds": 0}, {"rows": SAMPLE[:0]}, {"period": "month"}]
)
def test_a_wrong_call_is_refused(wrong):
    given = {"release": dp.release, "rows": SAMPLE, "person": "person"} | wrong
    with pytest.raises(ValueError, match=f"^audit: {next(iter(wrong))} must "):
        audit(**given)


def test_a_release_that_is_called_wrongly_is_no_finding():
    asked: dict[str, Any] = {
        "budget": dp.Budget(1),
        "metrics": [dp.Sum("value", unit=2), dp.Max("value")],
    }
    with pytest.raises(ValueError, match="unit must be the same for all metrics of 'value'"):
        audit(functools.partial(dp.release, person="person", **asked), SAMPLE, person="person")


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_is_caught(name, monkeypatch):
    owner, attribute, broken, options = MUTANTS[name]
    monkeypatch.setattr(owner, attribute, broken)
    monkeypatch.setattr(compiling, "check_total", lambda *_: None)
    release = functools.partial(dp.release, person="person", show_errors=True, **options)
    found = audit(release, SAMPLE, person="person", seconds=600)
    assert found.fault and str(found).startswith("NOT PRIVATE, in pair ")
