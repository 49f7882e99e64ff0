"""A running cluster, and what a job or a test needs to reach it."""

import contextlib
import dataclasses
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.clusters.processes import Processes, running

ROOT = Path(__file__).resolve().parents[2]
JOB_SERVER = Path(__file__).parent / "JobServer.java"
CACHE_MILLISECONDS = 5000
"""How long a Python worker waits for the next stage of its job; otherwise each stage starts one."""
WORKER = """#!/bin/sh
# Runs one Python worker; Beam's Java runners start it, and discard what it prints.
cd {root} && exec {python} -m tests.clusters.worker "$@" >> {log} 2>&1
"""


@dataclasses.dataclass(frozen=True)
class Cluster:
    """A cluster with a job server in front.

    Attributes:
        endpoint: HOST:PORT of the job server.
        worker: the program that starts a Python worker.
        workers: the names of the processes that run tasks, to be killed.
        processes: all processes.
        is_ready: whether the job server listens and all workers are there.
        cancel: cancels the jobs that still run, where they do not end with their job server.
    """

    endpoint: str
    worker: Path
    workers: tuple[str, ...]
    processes: Processes
    is_ready: Callable[[], bool]
    cancel: Callable[[], None] = lambda: None

    @property
    def options(self) -> dict[str, str | int]:
        """The pipeline options of a job, whose Python workers are processes of their own."""
        return options_of(self.endpoint, self.worker)


def options_of(endpoint: str, worker: Path | str) -> dict[str, str | int]:
    """Return the pipeline options of a job for the job server of a cluster.

    They do not say where draws are kept: `--draws_folder`, or `--cluster_never_restarts`.
    """
    return {
        "runner": "PortableRunner",
        "job_endpoint": endpoint,
        "environment_type": "PROCESS",
        "environment_config": json.dumps({"command": str(worker)}),
        "environment_cache_millis": CACHE_MILLISECONDS,
        "parallelism": 2,
    }


def job_server(program: str, folder: Path, ports: Sequence[int], **own: object) -> list[str]:
    """Return what starts the job server of a cluster, after the Java command.

    Args:
        program: the class of the runner's own job server.
        folder: where the cluster's files are.
        ports: those for jobs, artifacts and expansion.
        own: arguments of this program alone.
    """
    names = ("job-port", "artifact-port", "expansion-port")
    shared = {"job-host": "localhost", "artifacts-dir": folder / "staged"}
    given = {**own, **shared, **dict(zip(names, ports, strict=True))}
    words = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    return [str(JOB_SERVER), program, *words]


@contextlib.contextmanager
def prepared(keep: bool) -> Iterator[tuple[Processes, Path]]:
    """Give processes in a private folder, and the program of the Python workers.

    Args:
        keep: whether the folder with all logs stays; it is printed then.
    """
    folder = Path(tempfile.mkdtemp(prefix="cluster-"))
    worker = folder / "worker"
    names = {"root": ROOT, "python": sys.executable, "log": folder / "python_workers.log"}
    worker.write_text(WORKER.format_map({key: shlex.quote(str(v)) for key, v in names.items()}))
    worker.chmod(0o700)
    try:
        with running(folder) as processes:
            yield processes, worker
    finally:
        if keep:
            print(f"Logs: {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def python_path() -> dict[str, str]:
    """Return the environment in which a Python worker can import this checkout."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
