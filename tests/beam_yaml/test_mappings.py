"""Plain mappings become the parameters that the Python call has; wrong ones are told in a line."""

import statistics
from fractions import Fraction
from typing import Any

import pytest
import yaml

import beam_dp as dp
from beam_dp.beam_yaml import mappings
from beam_dp.mechanisms.numerics.checks import ParameterError, ParameterTypeError

METRICS: dict[str, Any] = {
    "count": dp.Count(),
    "{count: , weight: 2}": dp.Count(weight=2),
    "{people_count: '', weight: 2}": dp.PeopleCount(weight=2),
    "{sum: spent, clip: 100}": dp.Sum("spent", clip=100),
    "{sum: spent, name: revenue, weight: 0.1}": dp.Sum("spent", name="revenue", weight=Fraction(1, 10)),
    "{kth_largest: minutes, k: 3}": dp.KthLargest("minutes", 3),
    "{ratio: clicked, equals: 'yes', per: person}": dp.Ratio("clicked", equals="yes", per="person"),
    "{max: m, search: above_threshold}": dp.Max("m", search=dp.AboveThreshold),
    "{max: s, candidates: {low: 1, high: 1e3, ratio: 10}}": dp.Max("s", candidates=dp.Candidates.geometric(1, 1000, 10)),
    "{histogram: age, edges: [-.inf, 0..1..0.5, 7]}": dp.Histogram("age", [-float("inf"), 0, Fraction(1, 2), 1, 7]),
    "{black_box: a, function: 'statistics:median'}": dp.BlackBox("a", statistics.median),
    "{max: s, candidates: {low: 1, high: 9, step: 1}}": dp.Max("s", candidates=dp.Candidates.linear(1, 9, 1)),
}  # fmt: skip


@pytest.mark.parametrize("text", METRICS)
def test_a_mapping_is_a_metric(text):
    [found] = mappings.metrics_of("owner", [yaml.safe_load(text)])
    assert found == METRICS[text]


WRONG: dict[str, tuple[Any, str]] = {
    "no list": ({"sum": "spent"}, "metrics must be a list of metrics"),
    "empty": ([], "metrics must be a list of metrics"),
    "no metric": (["sums"], "a metric must not have the word 'sums'. Did you mean sum"),
    "an option of others": (
        [{"sum": "a", "k": 3}],
        "sum must not have the word 'k'. It has beta, .*, weight",
    ),
    "no column": ([{"sum": None}], "sum must have column"),
    "a column of none": (
        [{"count": "spent"}],
        "count must have no column. Write count, or {count: , weight: 2}.",
    ),
    "a function": ([{"black_box": "a"}], "black_box must have function"),
    "a number": ([3], "a metric must be a mapping, not 3"),
    "a name that yaml reads as false": (
        [{"sum": "spent", "name": False}],
        "name must be the name of a column .a string., not False",
    ),
    "a word that yaml reads as true": (
        [{True: "spent"}],
        "a metric must have text as keys, not True. Quote on, yes, no and numbers.",
    ),
    "nothing": ([{}], "a metric must not be an empty mapping. Write metrics"),
}


@pytest.mark.parametrize(("given", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_metric_is_told_in_a_line(given, said):
    with pytest.raises((ParameterError, ParameterTypeError), match=said):
        mappings.metrics_of("owner", given)


def test_a_word_that_yaml_reads_as_true_is_unknown():
    with pytest.raises(ParameterError, match="it must not have the word True"):
        mappings.check_words("owner", "it", yaml.safe_load("on: x"), ["input", "person"])


def test_budgets_are_the_decimals_that_were_written():
    given = yaml.safe_load("{epsilon: 0.1, delta: 1e-6}")
    assert given["delta"] == "1e-6"  # YAML takes it for text
    found = mappings.budget_of("owner", given)
    assert found == dp.Budget(Fraction(1, 10), Fraction(1, 10**6))
    assert mappings.budget_of("owner", {"rho": 0.5}) == dp.Budget.zcdp(0.5)
    for wrong in ({}, {"epsilon": 1, "rho": 1}, {"delta": 1e-6}, {"epsilon": "one"}, 1, {"eps": 1}):
        with pytest.raises((ParameterError, ParameterTypeError)):
            mappings.budget_of("owner", wrong)


def test_partitions_and_bounds():
    made = mappings.partitions_of("owner", {"product": {"day": [1, 2], "at": ["a"]}}, ["day", "at"])
    assert made == dp.PublicPartitions.product(day=[1, 2], at=["a"])
    assert mappings.partitions_of("owner", [["a", 1]], ["x", "y"]) == dp.PublicPartitions(
        [("a", 1)]
    )
    private = mappings.partitions_of("owner", {"private": {"pre_threshold": 5}}, ["x"])
    assert private == dp.PrivatePartitions(5)
    assert mappings.partitions_of("owner", None, ["x"]) is None
    for wrong in ({"keys": [1]}, {}, "abc", {"product": {}, "files": "x.csv"}):
        with pytest.raises((ParameterError, ParameterTypeError)):
            mappings.partitions_of("owner", wrong, ["x"])
    bounds = mappings.bounds_of("owner", {"partitions": 3, "rows_per_partition": 2})
    assert bounds == dp.ContributionBounds(3, 2)
    with pytest.raises(ParameterError, match="Did you mean partitions or rows_per_partition"):
        mappings.bounds_of("owner", {"partition": 3})


def test_people_with_an_epsilon_of_their_own():
    given = {"sum": "m", "person_epsilon": "e", "epsilons": [0.5, 2], "person_value": "max"}
    [found] = mappings.metrics_of("owner", [given])
    options = {"person_epsilon": "e", "epsilons": [0.5, 2], "person_value": "max"}
    asked = dp.PreprocessSensitivity(dp.Sum("m"), "p", dp.Budget(2), **options)
    assert asked._aggregate.metrics == (found,)
