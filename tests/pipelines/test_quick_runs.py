"""What a job spares Beam changes nothing but the time: same options, same samples of stages."""

import copy
import pickle

from apache_beam.options.pipeline_options import DebugOptions, PipelineOptions, StandardOptions
from apache_beam.runners.worker import statesampler
from apache_beam.utils.counters import CounterFactory

from pipelines import quick_runs

WORDS = ["--streaming", "--experiments=one", "--runner=FnApiRunner"]


def test_views_are_made_once_and_share_their_values() -> None:
    options = quick_runs.JobOptions(WORDS)
    view = options.view_as(StandardOptions)
    assert view is options.view_as(StandardOptions) and view.streaming
    options.view_as(DebugOptions).experiments.append("two")
    view.streaming = False
    for again in (options, copy.deepcopy(options), pickle.loads(pickle.dumps(options))):
        assert again.view_as(DebugOptions).experiments == ["one", "two"]
        assert not again.view_as(StandardOptions).streaming
    other = copy.deepcopy(options)
    other.view_as(StandardOptions).streaming = True
    assert not options.view_as(StandardOptions).streaming


def test_all_options_are_those_of_beam() -> None:
    ours, theirs = quick_runs.JobOptions(WORDS), PipelineOptions(WORDS)
    ours.view_as(StandardOptions)
    assert ours.get_all_options() == theirs.get_all_options()
    assert ours.display_data() == theirs.display_data()


def test_stages_are_sampled_every_20_ms_at_least_until_the_block_ends() -> None:
    def period() -> int:
        return statesampler.StateSampler("", CounterFactory()).sampling_period_ms

    before = period()
    with quick_runs.short_waits():
        assert period() == 20 < before
        with quick_runs.short_waits():
            assert period() == 20
        assert period() == 20
    assert period() == before
