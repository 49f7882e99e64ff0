"""`method="preprocessing"`: the same release as `Preprocessed`, and nothing that does not apply."""

import dataclasses

import pytest

import beam_dp as dp
from beam_dp.mechanisms.metrics import preprocessed

HOW = {"method": "preprocessing"}
SAME = {
    "mean": (dp.Mean("x", **HOW), "mean", "mean"),
    "mean of totals": (dp.Mean("x", per="person", **HOW), "mean", "sum"),
    "median": (dp.Median("x", **HOW), "median", "mean"),
    "max": (dp.Max("x", **HOW), "maximum", "max"),
    "min": (dp.Min("x", **HOW), "minimum", "min"),
}
USELESS = [
    (dp.Mean, {"low": 0}),
    (dp.Mean, {"high": 0.5}),
    (dp.Median, {"per": "person"}),
    *((kind, {"beta": 0.1}) for kind in (dp.Median, dp.Max, dp.Min)),
    *((kind, {"candidates": dp.Candidates.linear(0, 9, 1)}) for kind in (dp.Median, dp.Max, dp.Min)),
    *((kind, {"search": dp.ExponentialMechanism}) for kind in (dp.Max, dp.Min)),
]  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_it_is_the_preprocessed_metric(name: str) -> None:
    metric, of, person_value = SAME[name]
    named = dataclasses.replace(metric, name="y", weight=3, unit=0.5)
    same = dp.Preprocessed("x", of, person_value=person_value, name="y", weight=3, unit=0.5)
    assert preprocessed.preprocessed(named) == same and named.parts() == same.parts()
    plans = [dp.PrivateAggregate("p", [one], dp.Budget(1.0)).plan() for one in (named, same)]
    assert str(plans[0]) == str(plans[1]) and "preprocessing" in str(plans[0])


@pytest.mark.parametrize(("kind", "options"), USELESS)
def test_options_without_a_use_are_refused(kind: type, options: dict[str, object]) -> None:
    [name] = options
    assert kind("x", **options)
    message = rf'{kind.__name__}: {name} must be left out with method="preprocessing".* Write'
    with pytest.raises(ValueError, match=message):
        kind("x", **options, **HOW)


@pytest.mark.parametrize("kind", [dp.Max, dp.Min])
def test_it_has_no_removal_loss(kind: type) -> None:
    metric, keys = kind("x", **HOW), dp.PublicPartitions([1])
    for build in (
        lambda: dp.RemovalLoss(metric, "p"),
        lambda: dp.ShiftedInverse(metric, "p", dp.Budget(1.0)),
        lambda: dp.PrivateAggregate(["a", "b"], [metric], dp.Budget(1.0), ["k"], partitions=keys),
    ):
        with pytest.raises(ValueError, match="method must not be .preprocessing"):
            build()
