"""Flink: a JobManager, two TaskManagers of one slot each, and Beam's job server."""

import contextlib
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

from tests.clusters import artefacts, cluster, java, processes

TASK_MANAGERS = ("TaskManager 1", "TaskManager 2")
ENDED = ("FINISHED", "FAILED", "CANCELED")
MEMORY = {
    "task.heap.size": "256mb",
    "framework.heap.size": "128mb",
    "managed.size": "64mb",
    "network.min": "128mb",
    "network.max": "128mb",
    "task.off-heap.size": "64mb",
    "framework.off-heap.size": "128mb",
    "jvm-metaspace.size": "256mb",
    "jvm-overhead.min": "192mb",
    "jvm-overhead.max": "192mb",
}
"""What a TaskManager divides its memory into; Flink's start script would compute it."""


@contextlib.contextmanager
def started(keep: bool = False, restarts: int = 0) -> Iterator[cluster.Cluster]:
    """Run a cluster while the context lasts.

    Args:
        keep: whether the logs stay.
        restarts: how often Flink starts a job again that has lost a TaskManager.
    """
    program = java.java()
    jars = artefacts.class_path("flink")
    with cluster.prepared(keep) as (started, worker):
        rpc, rest, job, *others = processes.free_ports(5)
        configuration = started.folder / "conf"
        configuration.mkdir()
        settings = _settings(rpc, rest, str(started.folder), restarts)
        lines = [f"{name}: {value}\n" for name, value in settings.items()]
        (configuration / "config.yaml").write_text("".join(lines))
        jvm = [program, "-Xmx512m", "-XX:MaxDirectMemorySize=320m", *java.options(), "-cp", jars]
        at = ["--configDir", str(configuration)]
        manager = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
        started.start("JobManager", [*jvm, manager, *at, "--executionMode", "cluster"])
        started.wait_until(lambda: processes.listens(rest), "The JobManager")
        runner = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
        for name in TASK_MANAGERS:
            started.start(name, [*jvm, runner, *at], cluster.python_path())
        driver = "org.apache.beam.runners.flink.FlinkJobServerDriver"
        own = {"flink_master": f"localhost:{rest}"}
        server = cluster.job_server(driver, started.folder, (job, *others), **own)
        started.start("job server", [*jvm, *server])

        def is_ready() -> bool:
            return processes.listens(job) and slots(rest) == len(TASK_MANAGERS)

        started.wait_until(is_ready, "The job server and the TaskManagers")
        yield cluster.Cluster(
            f"localhost:{job}", worker, TASK_MANAGERS, started, is_ready, lambda: cancel(rest)
        )


def slots(rest: int) -> int:
    """Return how many slots the JobManager counts; 0 where it does not answer."""
    try:
        return int(asked(f"http://localhost:{rest}/overview")["slots-total"])
    except (urllib.error.URLError, TimeoutError):
        return 0


def cancel(rest: int) -> None:
    """Cancel all jobs that have not ended; one that began again for ever would keep its slots."""
    jobs = f"http://localhost:{rest}/jobs"
    for job in asked(jobs)["jobs"]:
        if job["status"] not in ENDED:
            asked(f"{jobs}/{job['id']}?mode=cancel", "PATCH")


def asked(address: str, method: str = "GET") -> Any:
    """Return what the JobManager answers."""
    request = urllib.request.Request(address, method=method)
    with urllib.request.urlopen(request, timeout=5) as answer:
        return json.load(answer)


def _settings(rpc: int, rest: int, folder: str, restarts: int) -> dict[str, str | int]:
    """Return Flink's configuration; a lost TaskManager is noticed in seconds."""
    memory = {f"taskmanager.memory.{name}": size for name, size in MEMORY.items()}
    kind = "fixed-delay" if restarts else "none"
    return memory | {
        "jobmanager.rpc.address": "localhost",
        "jobmanager.rpc.port": rpc,
        "rest.address": "localhost",
        "rest.port": rest,
        "taskmanager.host": "localhost",
        "taskmanager.cpu.cores": 1,
        "taskmanager.numberOfTaskSlots": 1,
        "taskmanager.network.sort-shuffle.min-buffers": 64,
        "parallelism.default": 2,
        "io.tmp.dirs": folder,
        "classloader.resolve-order": "parent-first",
        "heartbeat.interval": 1000,
        "heartbeat.timeout": 10000,
        "restart-strategy.type": kind,
        "restart-strategy.fixed-delay.attempts": max(restarts, 1),
        "restart-strategy.fixed-delay.delay": "1s",
    }
