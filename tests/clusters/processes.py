"""Processes that live as long as a context: started with a log each, killed one by one, all stopped."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.clusters.artefacts import ClusterError

START_SECONDS = 180
STOP_SECONDS = 10


def free_ports(count: int) -> list[int]:
    """Return ports of this machine that nobody listens to."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("localhost", 0))
        return [each.getsockname()[1] for each in sockets]


def listens(port: int) -> bool:
    """Return whether somebody listens to a port of this machine."""
    with socket.socket() as tried:
        return tried.connect_ex(("localhost", port)) == 0


class Processes:
    """Start and stop processes, each the leader of a group of its own, with a log file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, tuple[Sequence[str], Mapping[str, str]]] = {}
        self._groups: list[int] = []

    def start(
        self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        """Start a process; `environment` is added to that of this one."""
        self._commands[name] = (command, environment or {})
        with self._log(name).open("ab") as log:
            self._running[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )

    def number(self, name: str) -> int:
        """Return the number of a process."""
        return self._running[name].pid

    def lives(self, name: str) -> bool:
        """Return whether a process runs."""
        return self._running[name].poll() is None

    def kill(self, name: str) -> None:
        """Kill a process, and none of those that it has started, as a fault would."""
        self._running[name].kill()
        self._running[name].wait()

    def start_again(self, name: str) -> None:
        """Start a process that has ended, with the same command."""
        self._groups.append(self.number(name))
        self.start(name, *self._commands[name])

    def wait_until(self, ready: Callable[[], bool], what: str) -> None:
        """Wait for what the processes shall do.

        Raises:
            ClusterError: if one of them ends meanwhile, or it takes too long.
        """
        end = time.monotonic() + START_SECONDS
        while not ready():
            for name, process in self._running.items():
                if process.poll() is not None:
                    raise ClusterError(f"{what}: {name} has ended.\n{self._last_lines(name)}")
            if time.monotonic() > end:
                raise ClusterError(f"{what}: not in {START_SECONDS} s; see {self.folder}.")
            time.sleep(0.2)

    def stop(self) -> None:
        """Stop everything that was started, and what that has started; the last started first."""
        for process in reversed(self._running.values()):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
        for group in [*self._groups, *map(self.number, self._running)]:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        for process in self._running.values():
            process.wait()

    def _log(self, name: str) -> Path:
        return self.folder / f"{name.replace(' ', '_')}.log"

    def _last_lines(self, name: str) -> str:
        lines = self._log(name).read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-5:])


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Processes]:
    """Give the means to start processes; all are stopped at the end."""
    processes = Processes(folder)
    try:
        yield processes
    finally:
        processes.stop()
