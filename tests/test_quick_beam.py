"""What the tests keep of Beam's answers is what Beam answers."""

from typing import Any

import apache_beam as beam
import pytest
from apache_beam.coders import VarIntCoder
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions, TypeOptions
from apache_beam.transforms import userstate
from apache_beam.typehints import decorators

from tests import quick_beam

SIGNATURE, SPECS = decorators.get_signature, userstate.get_dofn_specs
VIEW = PipelineOptions.view_as


class Remembers(beam.DoFn):
    """A step with a state."""

    TOTAL = beam.DoFn.StateParam(userstate.CombiningValueStateSpec("sum", VarIntCoder(), sum))

    def process(self, element: Any, total: Any = TOTAL) -> None:
        """Add an element."""
        total.add(element)


def plain(one: int, *, two: str = "2") -> list[int]:
    """Return a list."""
    return [one, len(two)]


@pytest.mark.parametrize("given", [plain, Remembers().process, str.strip, int, Remembers, len])
def test_signatures_are_beams(given: Any) -> None:
    kept = quick_beam.kept_signatures(SIGNATURE)
    assert kept(given) == SIGNATURE(given) == kept(given)


def test_states_are_those_of_the_class() -> None:
    kept = quick_beam.kept_specs(SPECS)
    steps = [Remembers(), beam.Map(plain).fn, Remembers(), beam.Map(plain).fn]
    assert [kept(each) for each in steps] == [SPECS(each) for each in steps]
    assert [len(kept(each)[0]) for each in steps] == [1, 0, 1, 0]


def test_views_share_the_values_of_their_options_alone() -> None:
    kept = quick_beam.kept_views(VIEW)
    first, second = PipelineOptions(["--runner=Prism"]), PipelineOptions([], streaming=True)
    kept(first, StandardOptions).streaming = True
    kept(second, TypeOptions).runtime_type_check = True
    for each in (first, second):
        for kind in (StandardOptions, TypeOptions):
            shown, said = kept(each, kind), VIEW(each, kind)
            assert type(shown) is kind and shown.get_all_options() == said.get_all_options()
    assert kept(first, StandardOptions).runner == "Prism"
    assert kept(second, StandardOptions).runner is None and kept(second, StandardOptions).streaming
    assert not kept(first, TypeOptions).runtime_type_check
