"""What `benchmarks.faults` runs on: engines, the options of their jobs, and what can be killed."""

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.clusters import cluster, flink, spark

RESTARTS = 20
PATIENCE = 60.0
PYTHON_WORKER, EXECUTOR = "tests.clusters.worker", "CoarseGrainedExecutorBackend"


@dataclass(frozen=True)
class Engine:
    """Where jobs run.

    Attributes:
        options: the words of the command line that a job needs, without where its draws are kept.
        keeps: whether the draws of the jobs are kept in a folder.
        victims: what can be killed besides the driver, by functions of the driver's process that
            return whether there was one.
        mended: called after a job: starts again what was killed, and waits for what still runs.
        once: those of the victims without which no job goes on: killed once in a job.
    """

    options: list[str]
    keeps: bool
    victims: dict[str, Callable[[int], bool]]
    mended: Callable[[], None]
    once: tuple[str, ...] = ()


def children(process: int) -> dict[int, str]:
    """Return the processes below a process with their command lines."""
    listed = subprocess.run(
        ["ps", "-eo", "pid=,ppid=,args="], check=True, capture_output=True, text=True
    )
    fields = [(line.split(None, 2) + [""])[:3] for line in listed.stdout.splitlines()]
    below, last = {process}, 0
    while len(below) > last:
        last = len(below)
        below |= {int(child) for child, parent, _ in fields if int(parent) in below}
    return {int(child): command for child, _, command in fields if int(child) in below - {process}}


def kill_below(process: int, word: str) -> bool:
    """Kill one process below another, with a word in its command line, that is no mere shell."""
    shells = ("/bin/sh ", "sh ")
    below = children(process).items()
    named = [p for p, command in below if word in command and not command.startswith(shells)]
    for child in random.sample(named, min(1, len(named))):
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
            return True
    return False


@contextlib.contextmanager
def in_memory() -> Iterator[Engine]:
    """Beam's runner in this process, with two worker processes."""
    options = ["--runner=FnApiRunner", "--direct_running_mode=multi_processing"]
    options += ["--direct_num_workers=2"]
    victims = {"worker": lambda driver: kill_below(driver, "sdk_worker_main")}
    yield Engine(options, True, victims, lambda: None)


@contextlib.contextmanager
def prism(location: Path) -> Iterator[Engine]:
    """Beam's Prism: a process of its own; the driver is its worker."""
    options = ["--runner=PrismRunner", f"--prism_location={location}"]
    victims = {"Prism": lambda driver: kill_below(driver, str(location.name))}
    options.append("--environment_type=LOOPBACK")
    yield Engine(options, True, victims, lambda: None, ("Prism",))


@contextlib.contextmanager
def on_flink(keeps: bool) -> Iterator[Engine]:
    """Flink with a restart strategy."""
    with flink.started(restarts=RESTARTS) as running:
        victims = {"TaskManager": _worker_of(running), "Python worker": _python_of(running)}
        yield _on_cluster(running, keeps, victims)


@contextlib.contextmanager
def on_spark() -> Iterator[Engine]:
    """Spark, which tries tasks again."""
    with spark.started(attempts=RESTARTS) as running:

        def executor(_: int) -> bool:
            below = (running.processes.number(name) for name in running.workers)
            return any(kill_below(process, EXECUTOR) for process in below)

        victims = {"executor": executor, "Python worker": _python_of(running)}
        yield _on_cluster(running, True, victims)


def _on_cluster(
    running: cluster.Cluster, keeps: bool, victims: dict[str, Callable[[int], bool]]
) -> Engine:
    def server(_: int) -> bool:
        running.processes.kill("job server")
        return True

    def mended() -> None:
        wait(lambda: not any(_pythons(running)))
        running.cancel()
        if not running.processes.lives("job server"):
            running.processes.start_again("job server")
        running.processes.wait_until(running.is_ready, "The cluster")

    options = [f"--{name}={value}" for name, value in running.options.items()]
    return Engine(options, keeps, {**victims, "job server": server}, mended, ("job server",))


def _worker_of(running: cluster.Cluster) -> Callable[[int], bool]:
    def kill(_: int) -> bool:
        name = random.choice(running.workers)
        running.processes.kill(name)
        running.processes.start_again(name)
        return True

    return kill


def _python_of(running: cluster.Cluster) -> Callable[[int], bool]:
    def kill(_: int) -> bool:
        for process in _pythons(running):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
                return True
        return False

    return kill


def _pythons(running: cluster.Cluster) -> list[int]:
    """Return the Python workers of a cluster, also those whose TaskManager is dead."""
    ours = children(1)
    word = str(running.worker.parent)
    return sorted(
        p for p, command in ours.items() if PYTHON_WORKER in command and word in _output(p)
    )


def _output(process: int) -> str:
    """Return the file that a process prints to."""
    try:
        return os.readlink(f"/proc/{process}/fd/1")
    except OSError:
        return ""


def wait(done: Callable[[], bool]) -> None:
    """Wait for something, at most for a minute."""
    end = time.monotonic() + PATIENCE
    while not done() and time.monotonic() < end:
        time.sleep(0.2)


def ended(process: subprocess.Popen[bytes]) -> None:
    """End a process and what it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
