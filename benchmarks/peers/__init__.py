"""What a user would pick instead, doing the same work on the same file."""

import argparse
import importlib
import json
import sys
import time
from types import ModuleType

from benchmarks.measure import INNER

INSTALL = "python -m pip install --editable '.[bench]'"


def imported(name: str) -> ModuleType:
    """Return the module of a peer; where it is not installed, end with one line that says how."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        sys.exit(f"{name} is not here: {INSTALL}, or name one that has it: --peer_python PYTHON")


def options(about: str | None) -> argparse.ArgumentParser:
    """Return the options that all peers have.

    Args:
        about: the docstring of the peer.
    """
    made = argparse.ArgumentParser(description=(about or "").splitlines()[0])
    made.add_argument("--input", required=True)
    made.add_argument("--output", required=True)
    made.add_argument("--max_partitions", type=int, default=3)
    return made


def told(partitions: int, counted: float, started: float) -> str:
    """Return what a peer prints: a JSON object in a line.

    Args:
        partitions: how many it wrote.
        counted: how many rows are in them.
        started: `time.perf_counter()` after the imports.
    """
    seconds = round(time.perf_counter() - started, 3)
    return json.dumps({"partitions": partitions, "counted": counted, INNER: seconds}) + "\n"
