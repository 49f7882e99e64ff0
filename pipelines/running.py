"""Run a pipeline to its end, or to one line without data that says why it failed.

Beam waits for ever for a worker process that was killed, and for `--job_server_timeout` for a job
server that is gone: these jobs end. And it ends a run on Prism after 300 s: these may last.
"""

import contextlib
import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Iterator

import apache_beam as beam
from apache_beam.options.pipeline_options import PortableOptions

from pipelines import messages, stopping, terminal

LOST = (
    "error: a worker process was killed, or ended by itself, so the run failed; the system kills "
    "those that take too much memory: give fewer --direct_num_workers"
)
NO_JOB_SERVER = (
    "error: nobody listens at --job_endpoint, so the run failed; start the job server again, or "
    "name another address"
)
BEAMS_SECONDS = 300
LONGEST = 30 * 86_400
REFUSALS = 60
"""So often in a row, once a second, a job server may refuse: it has a minute to start again."""
PAUSE = 1.0
PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
"""The environment variables by which gRPC is told of a proxy, which may reach what we cannot."""
WORKERS = "run_worker"
"""The name of the threads in which Beam's in-memory runner waits for a worker process."""


def run(
    made: beam.Pipeline,
    first: str,
    show_errors: bool = False,
    reads: str = "",
    quiet: bool = False,
) -> None:
    """Run a pipeline to its end and show its stages; exit with one line if it fails.

    Args:
        made: the pipeline.
        first: the name of the first stage.
        show_errors: whether the error of a failed run is shown as it is, with data that it quotes.
        reads: the files that it reads, whose share is shown on a terminal; "" for none.
        quiet: whether nothing is shown of a run that succeeds.
    """
    runner = type(made.runner).__name__
    server = _job_server(made)
    try:
        shown = contextlib.nullcontext() if quiet else terminal.shown(first, reads, runner)
        with shown, terminal.hushed(), _lost_workers_noticed():
            with _lost_job_server_noticed(server):
                running = made.run()
            running.wait_until_finish()
    except messages.RAISED as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        if show_errors:
            sys.stderr.write("".join(traceback.format_exception(error)))
        sys.exit(f"error: {messages.explain(error, runner, show_errors)}")


def _end(words: str) -> None:
    """Say what is lost, and end: the runner waits for it, in the main thread."""
    if not stopping.is_ending():
        terminal.say(words)
    stopping.end(1)


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
            time.sleep(terminal.PATIENCE)
            _end(LOST)

    threading.excepthook = failed
    try:
        yield
    finally:
        threading.excepthook = before


def _job_server(made: beam.Pipeline) -> str:
    """Return the address of a job server that is to be watched, "" for none; let other runs last.

    Whoever gives `--job_server_timeout` waits for as long as that says. The states of a job come by
    one answer that lasts as long as the job does, and where Beam asks for them before the job runs,
    as on Prism, the limit is one for the whole run: a run without `--job_endpoint` gets 30 days.
    (Dataflow has no job server, and would show the option.)
    """
    portable, runner = made.options.view_as(PortableOptions), made.runner
    if portable.job_server_timeout != BEAMS_SECONDS:
        return ""
    endpoint = portable.job_endpoint or ""
    if not endpoint and type(runner).__name__ != "DataflowRunner":
        portable.job_server_timeout = LONGEST
    is_seen = hasattr(runner, "create_job_service") and not any(map(os.environ.get, PROXIES))
    return endpoint if is_seen else ""


@contextlib.contextmanager
def _lost_job_server_noticed(endpoint: str) -> Iterator[None]:
    """End the job where nobody listens at its job server's address for a minute, while it connects.

    The kernel of that machine refuses who connects to a port that nobody listens to, and lets in
    who comes to a process that is busy or stopped. So only refusals count.
    """
    connected = threading.Event()
    if endpoint:
        threading.Thread(target=_watch, args=(endpoint, connected), daemon=True).start()
    try:
        yield
    finally:
        connected.set()


def _watch(endpoint: str, connected: threading.Event) -> None:
    refused = 0  # counted, as a driver may have been stopped for a while itself
    while not connected.wait(PAUSE):
        refused = refused + 1 if refuses(endpoint) else 0
        if refused > REFUSALS and not connected.is_set():
            _end(NO_JOB_SERVER)
            return


def refuses(endpoint: str) -> bool:
    """Return whether nobody listens at HOST:PORT, at any address of the host.

    False for an address of another kind.
    """
    host, _, port = endpoint.rpartition(":")
    address = host.strip("[]"), int(port) if port.isdecimal() else -1
    try:
        socket.create_connection(address, timeout=PAUSE, all_errors=True).close()
    except ExceptionGroup as failed:
        return all(isinstance(error, ConnectionRefusedError) for error in failed.exceptions)
    except (OSError, ValueError, OverflowError):
        pass
    return False
