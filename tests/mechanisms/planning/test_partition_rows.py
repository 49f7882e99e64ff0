"""Bounds on the size of partitions are held against what one worker takes, by kind of statistic."""

import dataclasses
import re

import pytest

import beam_dp as dp
from beam_dp.mechanisms.planning import partition_rows
from beam_dp.mechanisms.summaries import worker_limits

GRID = dp.Candidates.linear(0, 10, 1)
FREE = [dp.Count(), dp.Sum("a"), dp.Max("a"), dp.Min("a"), dp.Mean("a"), dp.PeopleCount()]
LINES = [
    *(
        dp.KthLargest("a", 3, search="two_phase"),
        dp.Quantile("a", 0.9),
        dp.Median("a"),
        dp.Median("a", per="row"),
    ),
    dp.SumOfSquares("a"),
    *(
        dp.CustomProfile("a", len, candidates=GRID),
        dp.TrimmedMean("a"),
        dp.Preprocessed("a", "mean"),
    ),
    dp.BlackBox("a", len),
]
VALUES = [dp.DistinctCount("a"), dp.DistinctCount("a", one_sided=True)]
OF_KINDS = [
    *((metric, None) for metric in (*FREE, dp.Ratio("a", per="person"))),
    *((metric, worker_limits.LINES) for metric in LINES),
    *((metric, worker_limits.VALUES) for metric in VALUES),
    (dp.MaxFrequency("a"), worker_limits.LINES),
]


def aggregate(metric, **options):
    return dp.PrivateAggregate("person", [dp.Count(), metric], dp.Budget(1.0), **options)


@pytest.mark.parametrize(("metric", "most"), OF_KINDS, ids=lambda value: str(value)[:40])
def test_every_kind_has_its_limit(metric, most):
    assert partition_rows.most_rows(metric) == most
    assert partition_rows.most_rows(metric, several_owners=True) == worker_limits.EDGES
    program = dp.PrivateAggregate("person", [metric], dp.Budget(1.0))._program
    assert program.keep_rows == (most is not None)


@pytest.mark.parametrize("owners", ["person", ["person", "other"]])
def test_a_size_that_is_not_known_or_small_is_taken(owners):
    for rows in (None, 1, worker_limits.EDGES):
        assert dp.PrivateAggregate(owners, [dp.Count()], dp.Budget(1.0), partition_rows=rows)


def released(metric, rows):
    return dp.PrivateAggregate(
        "person", [dp.Mean("b"), metric], dp.Budget(1.0), partition_rows=rows
    )


def inverted(metric, rows):
    return dp.ShiftedInverse(metric, "person", dp.Budget(1.0), partition_rows=rows)


def removed(metric, rows):
    return dp.RemovalLoss(metric, "person", partition_rows=rows)


@pytest.mark.parametrize("make", [released, inverted, removed])
@pytest.mark.parametrize(
    ("metric", "most", "named"),
    [
        (
            dp.DistinctCount("a"),
            worker_limits.VALUES,
            r"DistinctCount \(output column distinct_a\)",
        ),
        (dp.KthLargest("a", 2, name="it"), worker_limits.LINES, r"KthLargest \(output column it\)"),
    ],
)
def test_too_many_rows_are_refused_with_metric_limit_and_mend(make, metric, most, named):
    assert make(metric, most)
    rule = rf"partition_rows must be at most {most} for {named}, not {most + 1}: .*Cut the part"
    with pytest.raises(ValueError, match=rule):
        make(metric, most + 1)


@pytest.mark.parametrize("kind", [dp.ShiftedInverse, dp.RemovalLoss])
@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "9"])
def test_a_size_is_a_whole_number(kind, wrong):
    budget = () if kind is dp.RemovalLoss else (dp.Budget(1.0),)
    with pytest.raises((TypeError, ValueError), match=f"{kind_name(kind)}: partition_rows must be"):
        kind(dp.Max("a"), "person", *budget, partition_rows=wrong)


def kind_name(kind):
    return "PrivateAggregate" if kind is dp.ShiftedInverse else kind.__name__


@pytest.mark.parametrize("metric", [dp.Count(), dp.Max("a")])
def test_rows_with_several_owners_have_a_limit_for_every_metric(metric):
    two = ["from", "to"]
    rule = f"at most {worker_limits.EDGES} for {type(metric).__name__} of rows with several owners"
    with pytest.raises(ValueError, match=rule):
        dp.PrivateAggregate(two, [metric], dp.Budget(1.0), partition_rows=worker_limits.EDGES + 1)
    with pytest.raises(ValueError, match=rule):
        dp.RemovalLoss(metric, two, partition_rows=worker_limits.EDGES + 1)
    assert aggregate(dp.Max("a"), partition_rows=10**12)


def test_a_preprocessed_statistic_has_one_too():
    rule = f"at most {worker_limits.LINES} for TrimmedMean"
    with pytest.raises(ValueError, match=rule):
        dp.PreprocessSensitivity(
            dp.TrimmedMean("a"), "person", dp.Budget(1.0), partition_rows=worker_limits.LINES + 1
        )


SEARCHED = [
    *(dp.Count(one_sided=True), dp.Sum("a", one_sided=True), dp.DistinctCount("a", one_sided=True)),
    *(dp.Max("a", search="two_phase"), dp.Min("a", search="two_phase")),
    dp.MaxFrequency("a", one_sided=True),
    dp.KthLargest("a", 3, search="two_phase"),
    dp.SumOfSquares("a"),
    *(dp.CustomProfile("a", len, candidates=GRID), dp.Max("a", search="two_phase")),
    *(dp.Max("a", search=kind) for kind in (dp.ExponentialMechanism, dp.NoisyBinarySearch)),
    dp.Max("a", search="auto"),
]


@pytest.mark.sampled(9)
@pytest.mark.parametrize("budget", [dp.Budget(1e-6), dp.Budget.zcdp(1e-12)], ids=repr)
@pytest.mark.parametrize("metric", SEARCHED, ids=lambda metric: str(metric)[:60])
def test_a_search_that_looks_at_too_many_people_is_refused_when_built(metric, budget):
    rule = (
        rf"^{type(metric).__name__}: budget must be larger: the search for output column "
        rf"{metric.output} would look at the (\d+) most important people of each partition, and at "
        rf"most {worker_limits.REMOVALS} can be held\. Give it more epsilon"
    )
    for build in (dp.PrivateAggregate, aggregate_of_one):
        with pytest.raises(ValueError, match=rule) as refused:
            build("person", [metric], budget)
        assert int(re.match(rule, str(refused.value))[1]) > worker_limits.REMOVALS


def aggregate_of_one(person, metrics, budget):
    """Build `ShiftedInverse` where it has the statistic, else what it stands on."""
    [metric] = metrics
    if isinstance(metric, (dp.Quantile, dp.Median)):
        return dp.PrivateAggregate(person, metrics, budget)
    clips = {"one_sided": False} if "one_sided" in vars(metric) else {}
    return dp.ShiftedInverse(dataclasses.replace(metric, **clips), person, budget)


def test_more_partitions_per_person_need_a_larger_budget():
    keys, days = dp.PublicPartitions(range(1000)), ["day"]
    given = ("person", [dp.Max("a", search="two_phase")], dp.Budget(0.01), days)
    assert dp.PrivateAggregate(*given, dp.ContributionBounds(10), keys).plan().rows
    with pytest.raises(ValueError, match="fewer partitions per person: bounds=dp.Contribution"):
        dp.PrivateAggregate(*given, dp.ContributionBounds(None), keys)
    # A bound that is chosen privately is one with which it can be released.
    assert dp.PrivateAggregate(*given, None, keys).plan().rows
    assert dp.PrivateAggregate(*given[:1], [dp.PeopleCount()], *given[2:], None, keys).plan().rows


@pytest.mark.parametrize("removals", [worker_limits.REMOVALS + 1, 10**30])
def test_a_loss_of_too_many_removals_is_refused(removals):
    assert dp.RemovalLoss(dp.Max("a"), "person", removals=worker_limits.REMOVALS)
    with pytest.raises(
        ValueError, match=f"RemovalLoss: removals must be at most {worker_limits.REMOVALS}"
    ):
        dp.RemovalLoss(dp.Max("a"), "person", removals=removals)
