"""Every runner groups, and keeps what a DoFn emits at the end of a bundle."""

from collections.abc import Iterable, Iterator

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue


class SumPerBundle(beam.DoFn):
    """Emits one sum per bundle, when the bundle ends."""

    def start_bundle(self) -> None:
        self.total = 0

    def process(self, number: int) -> None:
        self.total += number

    def finish_bundle(self) -> Iterator[WindowedValue]:
        window = GlobalWindow()
        yield WindowedValue((0, self.total), window.max_timestamp(), [window])


def parity(number: int) -> tuple[int, int]:
    return number % 2, number


def add_up(key: int, numbers: Iterable[int]) -> tuple[int, int]:
    return key, sum(numbers)


def test_groups_are_whole(pipeline_options: PipelineOptions) -> None:
    with beam.Pipeline(options=pipeline_options) as p:
        sums = (
            p
            | "Numbers" >> beam.Create(range(100))
            | "ByParity" >> beam.Map(parity)
            | "Group" >> beam.GroupByKey()
            | "Add" >> beam.MapTuple(add_up)
        )
        assert_that(sums, equal_to([(0, 2450), (1, 2500)]))


def test_what_a_bundle_emits_at_its_end_is_kept(pipeline_options: PipelineOptions) -> None:
    with beam.Pipeline(options=pipeline_options) as p:
        sums = (
            p
            | "Numbers" >> beam.Create(range(100))
            | "Sum" >> beam.ParDo(SumPerBundle())
            | "Group" >> beam.GroupByKey()
            | "Add" >> beam.MapTuple(add_up)
        )
        assert_that(sums, equal_to([(0, 4950)]))
