"""Processes that commit the same draws to a folder, and are killed at random moments.

    python -m tests.transforms.stages.killed_attempts KILLS FOLDER

FOLDER is a pickled `DrawsFolder` in hexadecimal digits. Each line that is printed is what one
process read of one draw before it was killed: the draw, the first bytes, the length.
"""

import os
import pickle
import random
import secrets
import signal
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from beam_dp.transforms.stages.draws_folder import DrawsFolder

ALIVE = 3
LONGEST = 0.03
LEAST = 20
SIZE = 1 << 14


class Attempt(NamedTuple):
    """A process, and the pipe that it writes what it read to."""

    process: int
    output: int


def begun(folder: DrawsFolder) -> Attempt:
    """Start a process that reads draw after draw."""
    output, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return Attempt(process, output)
    for number in range(1_000_000):
        drawn = folder.once(f"bucket-{number}", lambda: secrets.token_bytes(SIZE))
        os.write(writing, f"{number} {drawn[:16].hex()} {len(drawn)}\n".encode())
    os._exit(0)


def killed(attempt: Attempt, least: int = 0) -> str:
    """Kill a process, once it has read so many draws, and return what it had written."""
    with open(attempt.output) as output:
        written = "".join(output.readline() for _ in range(least))
        os.kill(attempt.process, signal.SIGKILL)
        written += output.read()
    os.waitpid(attempt.process, 0)
    return written[: written.rfind("\n") + 1]


def main(words: Sequence[str]) -> None:
    """Kill so many processes of which some live at the same time, then the last ones."""
    kills, folder = int(words[0]), pickle.loads(bytes.fromhex(words[1]))
    alive = [begun(folder) for _ in range(ALIVE)]
    for _ in range(kills):
        time.sleep(random.uniform(0.0, LONGEST))
        sys.stdout.write(killed(alive.pop(0)))
        alive.append(begun(folder))
    for attempt in alive:
        sys.stdout.write(killed(attempt, LEAST))


if __name__ == "__main__":
    main(sys.argv[1:])
