"""Run one command beside a cluster: `python -m tests.clusters flink -- COMMAND...`.

Starts the cluster, runs the command, stops the cluster, and ends as the command did. In the command
`{endpoint}` is the HOST:PORT of the job server, `{worker}` the program that starts a Python worker,
and `{options}` the pipeline options of a job, as several arguments:

    python -m tests.clusters spark -- python -m pipelines.aggregate ... {options}
"""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from types import FrameType

from tests.clusters import cluster, flink, spark
from tests.clusters.artefacts import ClusterError


def parser() -> argparse.ArgumentParser:
    """Return the parser of what stands before `--`."""
    made = argparse.ArgumentParser(prog="python -m tests.clusters", description=__doc__)
    made.formatter_class = argparse.RawDescriptionHelpFormatter
    made.add_argument("cluster", choices=("flink", "spark"))
    made.add_argument("--restarts", type=int, default=0, help="of a job that fails; Flink only")
    made.add_argument("--keep", action="store_true", help="keep the logs, and say where they are")
    made.add_argument("command", nargs="+", metavar="COMMAND")
    return made


def filled(command: Sequence[str], running: cluster.Cluster) -> Iterator[str]:
    """Yield the command with the names of the cluster in it."""
    for word in command:
        if word == "{options}":
            yield from (f"--{name}={value}" for name, value in running.options.items())
        else:
            named = word.replace("{endpoint}", running.endpoint)
            yield named.replace("{worker}", str(running.worker))


def main(arguments: Sequence[str]) -> int:
    """Run the command beside the cluster; return its exit status."""
    given = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _stop)
    try:
        with _context(given) as running:
            command = list(filled(given.command, running))
            environment = {**os.environ, **cluster.python_path()}
            return subprocess.run(command, env=environment, check=False).returncode
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 2


def _context(given: argparse.Namespace) -> AbstractContextManager[cluster.Cluster]:
    if given.cluster == "flink":
        return flink.started(given.keep, given.restarts)
    return spark.started(given.keep)


def _stop(number: int, _: FrameType | None) -> None:
    """End as after an error, so that the cluster is stopped too."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
