"""Refuse pipelines and metrics for which the guarantee is not proved, while they are built."""

import pickle
import warnings
from collections.abc import Sequence
from typing import Any

import apache_beam as beam
from apache_beam.internal import pickler
from apache_beam.options.pipeline_options import DebugOptions, GoogleCloudOptions, StandardOptions

from beam_dp.mechanisms.accounting.budget import Budget, cautions
from beam_dp.mechanisms.accounting.periods import meant
from beam_dp.mechanisms.bounding.contribution_bounds import ContributionBounds
from beam_dp.mechanisms.metrics import names_of
from beam_dp.mechanisms.metrics.base import Metric, shown
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.summaries.owner_lines import OWNERS
from beam_dp.transforms.partitions import Partitions, PrivatePartitions
from beam_dp.transforms.stages.fresh_functions import made

RUNNERS = (
    "FnApiRunner",
    "DirectRunner",
    "SwitchingDirectRunner",
    "PrismRunner",
    "PortableRunner",
    "FlinkRunner",
    "SparkRunner",
    "DataflowRunner",
)
"""Runners whose GroupByKey is a barrier and whose bundles finish: the transforms rely on both."""
LOCAL = RUNNERS[:3]
"""Beam's local runners: one machine does the work."""
RECOMPUTING = ("SparkRunner", "FlinkRunner", "PortableRunner")
"""Runners that may compute the steps before a GroupByKey again, after a failure."""

AT_LEAST_ONCE = "streaming_mode_at_least_once"
"""The mode of Dataflow in which an element may be processed, and its result be kept, again."""
SAMPLING, NO_EXCEPTIONS = "enable_data_sampling", "disable_always_on_exception_sampling"
"""Experiments of Beam: one has workers keep elements; one stops them from keeping failed ones."""
BUFFER, BUFFER_BYTES = "data_buffer_size_limit", 1 << 16
"""The experiment that says how many bytes Beam's Java runners gather in a message to a worker.

They queue up to 100 messages, each of 1 MB or of one larger element, outside of their heap. 20
million rows in messages of Beam's 1 MB ended on Flink as "Direct buffer memory".
"""


def check_input(subject: str, rows: beam.PCollection[Any]) -> None:
    """Refuse unbounded, windowed or triggered input, streaming jobs, and unknown runners.

    In an unbounded or windowed collection one person returns in every window and pane, and every
    pane would be another release, for which no budget is spent. A runner that shows elements is
    refused; it is told to show none that fail (Dataflow's service asks the workers to keep each of
    them, unless the job says otherwise), and engines to send workers small messages.
    """
    if not isinstance(rows, beam.PCollection):
        raise checks.ParameterTypeError(
            subject,
            "its input",
            f"be one PCollection of rows, not {type(rows).__name__}",
            "Flatten several: (first, second) | beam.Flatten().",
        )
    options = rows.pipeline.options
    debug, runner = options.view_as(DebugOptions), type(rows.pipeline.runner).__name__
    services = options.view_as(GoogleCloudOptions).dataflow_service_options or ()

    def check(holds: bool, name: str, rule: str, hint: str = "Leave it out.") -> None:
        checks.require(holds, subject, name, rule, hint)

    check(
        bool(rows.is_bounded),
        "its input",
        "be bounded, not a stream: every pane would be another release of the same people",
        "Write the stream to files and run a batch job on them.",
    )
    check(
        rows.windowing.is_default(),
        "its input",
        "be in the global window, with the default trigger, no allowed lateness and the default "
        "timestamp combiner: a person would be bounded anew in every window and released again at "
        "every firing, and another combiner puts the event time of a row on what is released",
        "Apply beam.WindowInto(beam.window.GlobalWindows()) and make time a partition column.",
    )
    check(
        not options.view_as(StandardOptions).streaming,
        "the pipeline",
        "run as a batch job, not with --streaming: such a job keeps no result of a GroupByKey, and "
        "would draw noise again",
    )
    rule = (
        f"run without --dataflow_service_options={AT_LEAST_ONCE}: rows and draws could count twice"
    )
    check(AT_LEAST_ONCE not in services, "the pipeline", rule)
    rule = f"run without --experiments={SAMPLING}, which keeps rows for the monitoring page"
    check(SAMPLING not in (debug.experiments or ()), "the pipeline", rule)
    check(
        runner in RUNNERS,
        "the runner",
        f"be one of {', '.join(RUNNERS)}, not {runner}: others are known to drop what a bundle holds "
        "at its end, or to draw noise again for each consumer",
        'In a notebook write beam.Pipeline("DirectRunner"), or call dp.release.',
    )
    debug.add_experiment(NO_EXCEPTIONS)
    if may_recompute(rows.pipeline) and debug.lookup_experiment(BUFFER) is None:
        debug.add_experiment(f"{BUFFER}={BUFFER_BYTES}")


def may_recompute(pipeline: beam.Pipeline) -> bool:
    """Return whether a GroupByKey alone is no barrier when something fails.

    Args:
        pipeline: its runner decides. `PortableRunner` may be any of them.
    """
    return type(pipeline.runner).__name__ in RECOMPUTING


def check_person(subject: str, person: object) -> tuple[str, tuple[str, ...]]:
    """Return the column of the person, and those of further owners where rows have several."""
    if isinstance(person, str) or not isinstance(person, (list, tuple)):
        return checks.column(subject, "person", person), ()
    names = checks.columns(subject, "person", person)
    checks.require(
        1 <= len(names) <= OWNERS,
        subject,
        "person",
        f"be one column, or up to {OWNERS} of rows with several owners, not {len(names)}",
        "Name those who must be protected, and leave out the others.",
    )
    return names[0], tuple(names[1:])


def check_several(
    subject: str,
    asked: Sequence[Metric],
    bounds: ContributionBounds,
    partitions: Partitions | None,
    person: Sequence[str],
) -> tuple[Metric, ...]:
    """Return the metrics as released for rows with several owners: by their removal profile.

    They are released by packings, or in two phases.

    A person's new rows belong to other people too: bounding them would move rows of other people,
    and counting people would count those. So neither is offered.

    Raises:
        TypeError: for a metric that has no proved loss for several owners.
        ValueError: for bounds, and for private partitions.
    """
    checks.require(
        bounds == ContributionBounds(None),
        subject,
        "bounds",
        "be left out where rows have several owners: cutting the rows of one would "
        "move those of another",
        meant(person),
    )
    checks.require(
        not isinstance(partitions, PrivatePartitions),
        subject,
        "partitions",
        "be public where rows have several owners",
        meant(person) or "Write partitions=dp.PublicPartitions([1, 2, 3]).",
    )
    for metric in asked:
        if not metric.several_owners:
            names = names_of(lambda kind: kind.several_owners)
            raise checks.ParameterTypeError(
                subject,
                "a metric of rows with several owners",
                f"be {names}, not {shown(metric)}: only these have a proved sensitivity of 1, "
                "whichever owner is removed",
                meant(person),
            )
    return tuple(metric.for_several_owners() for metric in asked)


def check_functions(asked: Sequence[Metric]) -> None:
    """Refuse metrics with functions that cannot be pickled: workers make them of a pickle, anew.

    Args:
        asked: the metrics.

    Raises:
        TypeError: names the metric, and says how to correct the call.
    """
    for metric in asked:
        for name in metric.functions:
            try:
                made(pickler.dumps(vars(metric)[name]))
            except (pickle.PicklingError, TypeError, ValueError, AttributeError, RuntimeError):
                raise checks.ParameterTypeError(
                    type(metric).__name__,
                    name,
                    "be picklable, to be sent to workers",
                    "Write a function that holds no open file, lock or generator.",
                ) from None


class UnusualParameters(UserWarning):
    """A parameter is allowed, and so large that it protects hardly anybody."""


def warn_of_unusual(subject: str, budget: Budget) -> None:
    """Warn of an epsilon or a delta that is hardly ever meant, in one line each."""
    for line in cautions(budget):
        warnings.warn(f"{subject}: {line}", UnusualParameters, stacklevel=2)
