"""The runners that end-to-end tests run on, and the local job service that one of them needs."""

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.job_server import StopOnExitJobServer
from apache_beam.runners.portability.prism_runner import PrismRunner

IN_PROCESS = {
    "in_memory": {"runner": "FnApiRunner"},
    "bundle_repeat": {"runner": "FnApiRunner", "direct_runner_bundle_repeat": 1},
    "other_process": {"runner": "FnApiRunner", "direct_running_mode": "multi_processing"},
    "multi_processing": {
        "runner": "FnApiRunner",
        "direct_running_mode": "multi_processing",
        "direct_num_workers": 2,
    },
}
OTHERS = ("other_process", "multi_processing")
SERVICES = ("prism", "loopback")

START_SECONDS = 60


def prism_options(location: str) -> PipelineOptions:
    """Return options for Prism: Beam starts the binary itself, once, and stops it at exit."""
    return PipelineOptions.from_dictionary(
        {"runner": "PrismRunner", "prism_location": location, "environment_type": "LOOPBACK"}
    )


def loopback_options(endpoint: str) -> PipelineOptions:
    """Return options for a job service whose workers run in this process; two at once on Flink."""
    options = {
        "job_endpoint": endpoint,
        "environment_type": "LOOPBACK",
        "parallelism": 2,
        "cluster_never_restarts": True,
    }
    return PipelineOptions.from_dictionary({"runner": "PortableRunner", **options})


def stop_prism() -> None:
    """Stop the Prism that Beam keeps for the next pipeline, before the logs are closed."""
    server = PrismRunner.shared_handle.acquire(contextlib.nullcontext)
    if isinstance(server, StopOnExitJobServer):
        server.stop()


@contextlib.contextmanager
def local_job_service(directory: Path) -> Iterator[str]:
    """Run Beam's local job service while the context lasts; gives its endpoint."""
    port_file = directory / "port"
    command = [sys.executable, "-m", "apache_beam.runners.portability.local_job_service_main"]
    files = ["--port_file", str(port_file), "--staging_dir", str(directory / "staging")]
    with (directory / "log").open("wb") as log:
        service = subprocess.Popen([*command, *files], stdout=log, stderr=log)
        try:
            yield f"localhost:{_port(service, port_file)}"
        finally:
            service.terminate()
            service.wait()


def _port(service: subprocess.Popen[bytes], port_file: Path) -> str:
    end = time.monotonic() + START_SECONDS
    while not port_file.exists():
        if service.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"The local job service did not start; see {port_file.parent}/log.")
        time.sleep(0.05)
    return port_file.read_text()


@contextlib.contextmanager
def expansion_service(*words: str) -> Iterator[str]:
    """Run the job `expansion_service` while the context lasts; gives its address."""
    command = [sys.executable, "-m", "pipelines.expansion_service", "--cluster_never_restarts"]
    with listening([*command, *words, "--port"]) as address:
        yield address


@contextlib.contextmanager
def listening(command: Sequence[str]) -> Iterator[str]:
    """Run a program whose last word is a free port until the context ends; gives its address."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    program = subprocess.Popen([*command, str(port)], **quiet)
    try:
        end = time.monotonic() + START_SECONDS
        while socket.socket().connect_ex(("localhost", port)):
            if program.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{command[0]} did not start.")
            time.sleep(0.1)
        yield f"localhost:{port}"
    finally:
        program.kill()
        program.wait()
