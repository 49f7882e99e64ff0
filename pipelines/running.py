"""Run a pipeline to its end, or to one line without data that says why it failed.

Beam waits for ever for a worker process that was killed; here the job fails. On Prism, Beam stops
every run after 300 s unless told otherwise; here it is told 30 days.
"""

import contextlib
import logging
import sys
import threading
import time
import traceback
from collections.abc import Iterator

import apache_beam as beam
from apache_beam.options.pipeline_options import (
    DirectOptions,
    PortableOptions,
    TestOptions,
)

from beam_dp.results import release
from beam_dp.transforms.stages import guards, threads_and_memory
from pipelines import messages, stopping, terminal

LOST = (
    "error: a worker process was killed, or ended by itself, so the run failed; the system kills "
    "those that take too much memory: give fewer --direct_num_workers"
)
BEAMS_SECONDS = 300
PATIENCE = 1.0
_RAISED = (BaseException,)
LONGEST = 30 * 86_400
WORKERS = "run_worker"
"""The name of the threads in which Beam's in-memory runner waits for a worker process."""


def run(made: beam.Pipeline, first: str, show_errors: bool = False, quiet: bool = False) -> None:
    """Run a pipeline to its end and show its stages; exit with one line if it fails.

    Args:
        made: the pipeline.
        first: the name of the first stage.
        show_errors: whether the error of a failed run is shown as it is, with data that it quotes.
        quiet: whether nothing is shown of a run that succeeds.
    """
    _let_last(made)
    threads_and_memory.keep_freed()
    if not quiet:
        terminal.say(first)
    failure: BaseException | None = None
    with terminal.hushed(), _lost_workers_noticed():
        try:
            release.run(made, show_errors=True)
        except _RAISED as error:
            logging.disable(logging.ERROR)  # threads may be left, which have elements to log
            failure = error
    if show_errors and failure is not None:
        sys.stderr.write("".join(traceback.format_exception(failure)))
    if failure is not None:
        sys.exit(f"error: {messages.translated(release.message_of(failure))}")


def check(made: beam.Pipeline) -> None:
    """Refuse a runner without its job server, and a trial that would be a run, before a charge."""
    runner = type(made.runner).__name__
    trial = "dry_run" if made.options.view_as(TestOptions).dry_run else "template_location"
    if runner != "DataflowRunner" and made.options.get_all_options()[trial]:
        raise ValueError(f"--{trial} is for Dataflow; on {runner} it would be a run: give --plan")
    if runner in guards.RECOMPUTING and not made.options.view_as(PortableOptions).job_endpoint:
        raise ValueError(
            f"{runner} must have a job server: start one, as docs/how_to/runners.md shows, and name "
            "it, as --job_endpoint localhost:8099"
        )


def is_here(made: beam.Pipeline) -> bool:
    """Return whether all steps run in this process: others cannot speak for this job."""
    mode = made.options.view_as(DirectOptions).direct_running_mode
    return type(made.runner).__name__ in guards.LOCAL and mode != "multi_processing"


@contextlib.contextmanager
def _lost_workers_noticed() -> Iterator[None]:
    """End the job where a worker ended otherwise than well: the thread that waits for it fails.

    The runner does not hear of it: the stage that the worker was to do never ends. A Ctrl-C at a
    terminal ends the workers too: then that signal, which may take a moment to come here, ends the
    job.
    """
    before, first = threading.excepthook, threading.Lock()

    def failed(what: threading.ExceptHookArgs, /) -> None:
        before(what)
        is_lost = what.thread is not None and what.thread.name == WORKERS
        if is_lost and first.acquire(blocking=False):
            time.sleep(PATIENCE)
            if not stopping.is_ending():
                terminal.say(LOST)
            stopping.end(1)

    threading.excepthook = failed
    try:
        yield
    finally:
        threading.excepthook = before


def _let_last(made: beam.Pipeline) -> None:
    """Let a run last for 30 days that asks for no job server, unless its limit was chosen.

    Beam learns the states of a job from one request, which lasts as long as the job. Where Beam
    makes it before the job runs, as on Prism, its time limit is one for the whole run. (Dataflow
    has no job server, and would show the option.)
    """
    portable = made.options.view_as(PortableOptions)
    chosen = portable.job_endpoint or portable.job_server_timeout != BEAMS_SECONDS
    if not chosen and type(made.runner).__name__ != "DataflowRunner":
        portable.job_server_timeout = LONGEST
