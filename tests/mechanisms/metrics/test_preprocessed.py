"""`method="preprocessing"`: the same release as `Preprocessed`, and nothing that does not apply."""

import dataclasses

import apache_beam as beam
import pytest

import beam_dp as dp
from beam_dp.mechanisms.metrics import preprocessed
from tests.hostile import support

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


@pytest.mark.parametrize("name", SAME)
def test_without_it_nothing_changes(name: str) -> None:
    metric = SAME[name][0]
    other = "clip" if isinstance(metric, dp.Mean) else "search"
    plain = dataclasses.replace(metric, method=other)
    assert metric.is_preprocessed and not plain.is_preprocessed
    assert type(metric)("x").method == other
    assert "preprocessed" not in {part.word for part in plain.parts()}


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


def test_the_pipeline_releases_it() -> None:
    """At epsilon 10,000 the noise of Delta = 2 R / n stays below 1 but for e^-50."""
    rows = [{"p": n, "x": float(n % 50 + 5 * copy)} for n in range(1000) for copy in range(2)]
    metrics = [one for one, _, _ in SAME.values()]
    asked = [dataclasses.replace(one, name=f"m{n}") for n, one in enumerate(metrics)]
    transform = dp.PrivateAggregate("p", [*asked, dp.Count()], dp.Budget(10_000.0))
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        kept = support.keep(pipeline | beam.Create(rows) | transform)
    [row] = kept
    found = [getattr(row, f"m{n}") for n in range(5)]
    for value, expected in zip(found[:3], (27.0, 54.0, 27.0), strict=True):
        assert abs(value - expected) < 1
    # Of 1,000 people 20 each have the largest and the smallest number: removals change nothing.
    assert abs(found[3] - 54) < 2 and abs(found[4] - 0) < 2
