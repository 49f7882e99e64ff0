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
import time
from collections.abc import Callable, Iterator

import apache_beam as beam
from apache_beam.options.pipeline_options import PortableOptions

PATIENCE = 60.0
"""Seconds of refusals without a break: a job server that is started again has so long."""
PAUSE = 1.0
PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
"""The environment variables by which gRPC is told of a proxy, which may reach what we cannot."""


@contextlib.contextmanager
def noticed(made: beam.Pipeline, lost: Callable[[], object]) -> Iterator[None]:
    """Call a function, in another thread, if the job server of a pipeline is gone meanwhile.

    Args:
        made: the pipeline, which is handed to its job server meanwhile, if it has one.
        lost: what is called; it should end the process.
    """
    ended = threading.Event()
    has_job_server = hasattr(made.runner, "create_job_service")
    if has_job_server and not any(map(os.environ.get, PROXIES)):
        endpoint = made.options.view_as(PortableOptions).job_endpoint or ""
        threading.Thread(target=_watch, args=(endpoint, ended, lost), daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _watch(endpoint: str, ended: threading.Event, lost: Callable[[], object]) -> None:
    answered = time.monotonic()
    while not ended.wait(PAUSE):
        if not refuses(endpoint):
            answered = time.monotonic()
        elif time.monotonic() - answered > PATIENCE:
            lost()
            return


def refuses(endpoint: str) -> bool:
    """Return whether nobody listens at HOST:PORT; False for an address of another kind."""
    host, _, port = endpoint.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PAUSE).close()
    except ConnectionRefusedError:
        return True
    except (OSError, ValueError, OverflowError):
        return False
    return False
