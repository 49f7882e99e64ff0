"""A job server that is gone fails its job within a minute or so: Beam waits longer to reach it.

A driver that is connected is told by its machine when the job server ends. But while it connects,
Beam tries again until `--job_server_timeout` is over: 300 s, for it cannot tell a job server that
is gone from one that is slow. The kernel of its machine can: it refuses who connects to a port that
nobody listens to, and lets in who comes to a process that is busy or stopped. So only refusals
count, and whatever else happens is left to Beam.
"""

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator

import apache_beam as beam
from apache_beam.options.pipeline_options import PortableOptions

from pipelines import long_runs

PATIENCE = 60.0
"""Seconds of refusals without a break: a job server that is started again has so long."""
PAUSE = 1.0
PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
"""The environment variables by which gRPC is told of a proxy, which may reach what we cannot."""


@contextlib.contextmanager
def noticed(made: beam.Pipeline, lost: Callable[[], object]) -> Iterator[None]:
    """Call a function, in another thread, if the job server of a pipeline is gone meanwhile.

    Who gives `--job_server_timeout` waits for as long as that says.

    Args:
        made: the pipeline, which is handed to its job server meanwhile, if it has one.
        lost: what is called; it should end the process.
    """
    ended = threading.Event()
    portable = made.options.view_as(PortableOptions)
    endpoint = portable.job_endpoint or ""
    has_job_server = endpoint and hasattr(made.runner, "create_job_service")
    chosen = portable.job_server_timeout != long_runs.BEAMS_SECONDS
    if has_job_server and not chosen and not any(map(os.environ.get, PROXIES)):
        threading.Thread(target=_watch, args=(endpoint, ended, lost), daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _watch(endpoint: str, ended: threading.Event, lost: Callable[[], object]) -> None:
    refused = 0  # counted, as a driver may have been stopped for a while itself
    while not ended.wait(PAUSE):
        refused = refused + 1 if refuses(endpoint) else 0
        if refused > PATIENCE / PAUSE and not ended.is_set():
            lost()
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
        return False
    return False
