"""DrawsOptions: the options of a pipeline that say where its draws are kept, and which need it.

`run()` of a pipeline can be called again, and Beam begins anew: each draw is drawn again, a second
release for one charge. With a folder the second run reads the draws of the first. Without one it is
refused where it is called, by replacing `run` of that pipeline: workers cannot tell a second run
from a bundle that is tried again, and Beam tells no transform that a run begins. A run that goes
past that method is not seen: of a copy made by `Pipeline.from_runner_api`, of a template, or by a
runner that is given the pipeline.
"""

import argparse
from collections.abc import Callable
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.draws.draws_folder import Barriers, Draws, DrawsFolder
from beam_dp.transforms.guarding import trial

RESTARTING = ("FlinkRunner", "PortableRunner")
"""Runners whose cluster may begin again with the steps before a barrier. A `PortableRunner` may be
Flink's."""
_RULE = (
    "have --draws_folder on {}: a cluster that loses a worker and begins again would draw again, "
    "and that is a second release"
)
_MEND = (
    "Name a folder that all workers share by --draws_folder; or say --cluster_never_restarts where "
    "the cluster has no restart strategy."
)
_TRIAL = (
    "a pipeline in without_noise()",
    "have no --draws_folder: it would keep numbers without noise",
    "Leave it out in unit tests.",
)
_ONCE = "be run once, not twice: a second run draws again, which is a second release"
_ANOTHER = (
    "Build another pipeline with a budget of its own; or name a folder by --draws_folder, where a "
    "second run reads what the first one drew."
)


class DrawsOptions(PipelineOptions):
    """Where draws are kept. Beam reads the flags, for all its runners and programs.

    Attributes:
        draws_folder: a folder that all workers share; None: draws are not kept.
        cluster_never_restarts: the word of the user that the cluster fails a job where it loses
            a worker, and does not begin again.
    """

    draws_folder: str | None
    cluster_never_restarts: bool

    @classmethod
    def _add_argparse_args(cls, parser: argparse.ArgumentParser) -> None:
        """Add the flags."""
        parser.add_argument(
            "--draws_folder",
            help="A folder that all workers share: what is drawn is kept there before it is read, "
            "so that a cluster that begins again does not draw again.",
        )
        parser.add_argument(
            "--cluster_never_restarts",
            action="store_true",
            help="The cluster has no restart strategy: a job that loses a worker fails.",
        )


def draws_of(owner: str, pipeline: beam.Pipeline) -> Draws:
    """Return what keeps the draws of one transform of a pipeline, which runs once without a folder.

    Args:
        owner: the name that errors begin with.
        pipeline: its options and its runner decide.

    Raises:
        ValueError: if the runner may begin again, and no folder was given; or for a folder in
            `without_noise()`: it would keep what is not private.
    """
    options = pipeline.options.view_as(DrawsOptions)
    if options.draws_folder is not None:
        checks.require(not trial.is_on(), owner, *_TRIAL)
        return DrawsFolder.made_in(options.draws_folder)
    runner = type(pipeline.runner).__name__
    is_safe = runner not in RESTARTING or options.cluster_never_restarts
    checks.require(is_safe, owner, "the pipeline", _RULE.format(runner), _MEND)
    if not trial.is_on() and not isinstance(pipeline.run, _RunOnce):
        vars(pipeline)["run"] = _RunOnce(owner, pipeline.run)
    return Barriers()


class _RunOnce:
    """`run` of a pipeline, but for a second call; also after a failure, for that may have drawn."""

    def __init__(self, owner: str, run: Callable[..., Any]) -> None:
        self._owner, self._run, self._begun = owner, run, False

    def __call__(self, *given: Any, **named: Any) -> Any:
        checks.require(not self._begun, self._owner, "the pipeline", _ONCE, _ANOTHER)
        self._begun = True
        return self._run(*given, **named)
