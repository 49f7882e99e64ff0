"""Spark: a standalone master, two workers with one executor of one core each, and Beam's job server."""

import contextlib
import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.clusters import artefacts, cluster, java, processes

WORKERS = ("worker 1", "worker 2")


@contextlib.contextmanager
def started(keep: bool = False, attempts: int = 4) -> Iterator[cluster.Cluster]:
    """Run a cluster while the context lasts.

    Args:
        keep: whether the logs stay.
        attempts: how often Spark tries a task before its job fails; 4 is its default.
    """
    program = java.java()
    jars = artefacts.class_path("spark")
    with cluster.prepared(keep) as (started, worker):
        home = _home(started.folder, jars)
        at, page, job, artifact, expansion, *pages = processes.free_ports(5 + len(WORKERS))
        jvm = [program, "-Xmx512m", *java.options()]
        environment = cluster.python_path() | {
            "SPARK_HOME": str(home),
            "SPARK_SCALA_VERSION": "2.12",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_HOSTNAME": "localhost",
            "SPARK_LOCAL_DIRS": str(started.folder),
            "JAVA_HOME": str(Path(program).resolve().parents[1]),
        }
        deploy = "org.apache.spark.deploy"
        master = ["--host", "localhost", "--port", str(at), "--webui-port", str(page)]
        command = [*jvm, "-cp", jars, f"{deploy}.master.Master", *master]
        started.start("master", command, environment)
        started.wait_until(lambda: processes.listens(at), "The master")
        for name, own in zip(WORKERS, pages, strict=True):
            folder = started.folder / name.replace(" ", "_")
            small = ["--cores", "1", "--memory", "640m", "--webui-port", str(own)]
            run = [f"{deploy}.worker.Worker", *small, "--work-dir", str(folder)]
            url = f"spark://localhost:{at}"
            started.start(name, [*jvm, "-cp", jars, *run, url], environment)
        settings = [f"-Dspark.{name}={value}" for name, value in _settings(attempts).items()]
        driver = "org.apache.beam.runners.spark.SparkJobServerDriver"
        own = {"spark_master_url": f"spark://localhost:{at}"}
        server = cluster.job_server(driver, started.folder, (job, artifact, expansion), **own)
        started.start("job server", [*jvm, *settings, "-cp", jars, *server], environment)

        def is_ready() -> bool:
            return processes.listens(job) and alive(page) == len(WORKERS)

        started.wait_until(is_ready, "The job server and the workers")
        yield cluster.Cluster(f"localhost:{job}", worker, WORKERS, started, is_ready)


def alive(page: int) -> int:
    """Return how many workers the master counts; 0 where it does not answer."""
    try:
        with urllib.request.urlopen(f"http://localhost:{page}/json/", timeout=5) as answer:
            return int(json.load(answer)["aliveworkers"])
    except (urllib.error.URLError, TimeoutError):
        return 0


def _home(folder: Path, jars: str) -> Path:
    """Make the folder of jars that Spark's workers start executors with."""
    home = folder / "home"
    (home / "jars").mkdir(parents=True)
    for jar in map(Path, jars.split(os.pathsep)):
        (home / "jars" / jar.name).symlink_to(jar)
    return home


def _settings(attempts: int) -> dict[str, str]:
    return {
        "driver.host": "localhost",
        "ui.enabled": "false",
        "task.maxFailures": str(attempts),
        "stage.maxConsecutiveAttempts": str(attempts),
        "executor.cores": "1",
        "executor.memory": "512m",
        "executor.extraJavaOptions": " ".join(java.options()),
    }
