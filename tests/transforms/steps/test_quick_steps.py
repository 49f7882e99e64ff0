"""Steps that are quick to build do what Beam's own do, and Beam finds no more to look for in them."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import apache_beam as beam
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.core import _DoFnParam
from apache_beam.transforms.userstate import get_dofn_specs

import beam_dp.transforms
from beam_dp.transforms.steps import quick_steps


def scaled(number: int, by: int, add: int = 0) -> int:
    return number * by + add


def repeated(number: int, times: int) -> Iterator[int]:
    yield from [number] * times


def steps() -> set[type[quick_steps.QuickStep]]:
    """Return all classes of steps that the library has."""
    for module in pkgutil.walk_packages(beam_dp.transforms.__path__, "beam_dp.transforms."):
        importlib.import_module(module.name)
    found: set[type[quick_steps.QuickStep]] = set()
    wanted = [quick_steps.QuickStep]
    while wanted:
        classes = wanted.pop().__subclasses__()
        found |= set(classes)
        wanted += classes
    return found


def test_they_give_what_the_steps_of_beam_give() -> None:
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        numbers = pipeline | beam.Create([1, 2, 3])
        side = beam.pvalue.AsSingleton(pipeline | "Side" >> beam.Create([10]))
        for each, ours, theirs in (
            ("Map", quick_steps.mapped, beam.Map),
            ("FlatMap", quick_steps.flat_mapped, beam.FlatMap),
        ):
            function = scaled if each == "Map" else repeated
            for case, given in (("plain", (2,)), ("side", (side,))):
                label = f"{each} {case}"
                got = numbers | f"{label} ours" >> ours(function, *given)
                want = numbers | f"{label} theirs" >> theirs(function, *given)
                counted = (got, want) | f"{label} both" >> beam.Flatten()
                counts = counted | f"{label} count" >> beam.combiners.Count.PerElement()
                expected = {2: 2, 4: 2, 6: 2} if each == "Map" else {1: 4, 2: 4, 3: 4}
                if case == "side":
                    expected = {10: 2, 20: 2, 30: 2} if each == "Map" else {1: 20, 2: 20, 3: 20}
                assert_that(counts, equal_to(list(expected.items())), label)
        named = numbers | "Named" >> quick_steps.mapped(scaled, 2, add=side)
        assert_that(named, equal_to([12, 14, 16]), "named")


def test_what_beam_does_not_see_of_our_steps_is_without_states_and_timers() -> None:
    found = steps()
    assert len(found) > 10
    for kind in found:
        step = kind.__new__(kind)
        assert set(dir(step)) <= set(object.__dir__(step))
        assert get_dofn_specs(step) == (set(), set())
        for name in object.__dir__(step):
            method = getattr(kind, name, None)
            if inspect.isfunction(method):
                defaults = [each.default for each in inspect.signature(method).parameters.values()]
                assert not [each for each in defaults if isinstance(each, _DoFnParam)], (kind, name)
