"""What a user would pick instead, doing the same work on the same file."""

import argparse
import csv
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


def options(about: str, public: int | None = None) -> argparse.ArgumentParser:
    """Return the options that all have.

    Args:
        about: the docstring of the program.
        public: how many partitions are public if nothing is said; None: there is no such option.
    """
    made = argparse.ArgumentParser(description=about.splitlines()[0])
    made.add_argument("--input", required=True)
    made.add_argument("--output", required=True)
    made.add_argument("--max_partitions", type=int_or_auto, default=3)
    if public is not None:
        made.add_argument("--public", type=int, default=public, help="0: select them privately")
    return made


def int_or_auto(text: str) -> int | str:
    return text if text == "auto" else int(text)


def report(path: str, started: float, header: bool = False) -> str:
    """Return how many partitions a written file names and their counts' sum, as a JSON object.

    Args:
        path: the file.
        started: `time.perf_counter()` after the imports.
        header: whether the file has one.
    """
    with open(path, newline="") as file:
        lines = csv.reader(file)
        names = next(lines) if header else ["partition", "count"]
        place = names.index("count") if "count" in names else None
        counts = [0.0 if place is None else float(cells[place]) for cells in lines]
    return line_of(len(counts), round(sum(counts)), started)


def line_of(partitions: int, counted: float, started: float) -> str:
    """Return what a peer prints: a JSON object in a line.

    Args:
        partitions: how many it wrote.
        counted: how many rows are in them.
        started: `time.perf_counter()` after the imports.
    """
    seconds = round(time.perf_counter() - started, 3)
    return json.dumps({"partitions": partitions, "counted": counted, INNER: seconds}) + "\n"
