"""Kill processes at random moments, and look how many different releases anybody has seen.

    python -m benchmarks.faults                          200 kills on each engine (hours)
    python -m benchmarks.faults --kills 10 --minutes 5   fewer
    python -m benchmarks.faults --engines flink:spark    some engines; Linux only

A job makes one release for three readers (`benchmarks.fault_job`). While it runs one process is
killed, after a time that is uniform over what the job takes undisturbed: in turn the driver, and
each kind of process of the engine. If there is no process of the kind at that moment, the next one
that starts is killed. Afterwards the job has a minute and a half to end; then the driver is killed
too. The release keeps its draws in a folder (`--draws_folder`); "flink, not kept" has none: it shows
that a second draw would be noticed.

Two draws are the same with a chance below 2^-120: where a day has two rows, there were two releases.
A leftover is a file with a row of the input, or a part of the output.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from benchmarks import fault_engines
from benchmarks.fault_engines import Engine
from benchmarks.fault_job import CANARY, DAYS, FIRST, OUTPUT, SECOND

ROOT = Path(__file__).resolve().parents[1]
ENGINES = ("memory", "prism", "flink", "spark", "flink, not kept")
DRIVER = "driver"
PATIENCE = 90.0
SAME, FAILED, DIFFERENT = "same release", "failed job", "different releases"
HEADS = ("engine", "killed", "kills", SAME, FAILED, DIFFERENT, "leftovers")


def outcome(shown: Iterable[str], has_ended_well: bool) -> str:
    """Return what happened to a release.

    Args:
        shown: the lines that any reader has shown, "day,number,number".
        has_ended_well: whether the job says that it has.
    """
    by_day = collections.defaultdict(set)
    for line in shown:
        by_day[line.split(",")[0]].add(line)
    if any(len(lines) > 1 for lines in by_day.values()):
        return DIFFERENT
    return SAME if has_ended_well and len(by_day) == len(DAYS) else FAILED


def lines_of(path: Path) -> list[str]:
    """Return the whole lines of a file that may not be there, or may be cut."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    return text[: text.rfind("\n") + 1].splitlines()


def leftovers(folder: Path) -> list[Path]:
    """Return the files below a folder with a row of the input, and an output that is not whole."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    parts = [path for path in found if path.name.startswith(OUTPUT.split(".")[0])]
    cut = [path for path in parts if len(lines_of(path)) != len(DAYS) + 1]
    return [*cut, *(path for path in found if CANARY.encode() in path.read_bytes())]


def run_once(engine: Engine, victim: str | None, moment: float, folder: Path) -> tuple[str, float]:
    """Run a job, kill something, and return the outcome and the seconds that the job took."""
    temporary = folder / "temporary"
    temporary.mkdir()
    where = f"--draws_folder={folder / 'draws'}" if engine.keeps else "--cluster_never_restarts"
    words = [sys.executable, "-m", "benchmarks.fault_job", str(folder), *engine.options, where]
    start = time.monotonic()
    with (folder / "log").open("wb") as log:
        environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)}
        driver = subprocess.Popen(
            words, stdout=log, stderr=log, cwd=ROOT, env=environment, start_new_session=True
        )
        try:
            if victim is not None:
                strike(engine, victim, driver, start + moment)
            driver.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            print(f"  not ended {PATIENCE:.0f} s after {victim}: the driver was killed too")
        finally:
            fault_engines.ended(driver)
    seconds = time.monotonic() - start
    engine.mended()
    shown = [*lines_of(folder / FIRST), *lines_of(folder / SECOND)]
    shown += lines_of(folder / OUTPUT)[1:]
    return outcome(shown, driver.returncode == 0), seconds


def strike(engine: Engine, victim: str, driver: subprocess.Popen[bytes], moment: float) -> None:
    """Kill something at a moment, or as soon as it is there, or not if the job ends before."""
    time.sleep(max(0.0, moment - time.monotonic()))
    if victim == DRIVER:
        driver.kill()
        return
    while driver.poll() is None and not engine.victims[victim](driver.pid):
        time.sleep(0.05)


def measure(name: str, engine: Engine, kills: int, end: float) -> tuple[list[list[str]], bool]:
    """Kill so many processes, or until the end; return the lines of the table, and whether it held."""
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    left: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="faults-") as at:
        seconds = []
        for number in range(2):
            folder = Path(at, f"whole-{number}")
            folder.mkdir()
            found, took = run_once(engine, None, 0.0, folder)
            if found != SAME:
                raise SystemExit(f"{name}: {found} without a kill.\n{tail(folder / 'log')}")
            seconds.append(took)
        victims = itertools.cycle([*engine.victims, DRIVER])
        for number, victim in zip(range(kills), victims, strict=False):
            if time.monotonic() > end:
                break
            folder = Path(at, f"kill-{number}")
            folder.mkdir()
            moment = random.uniform(0.0, min(seconds))
            found, took = run_once(engine, victim, moment, folder)
            counts[victim][found] += 1
            files = leftovers(folder)
            left[victim] += len(files)
            print(f"  {name}: {victim} at {moment:.1f} s of {took:.1f}: {found}", flush=True)
            for path in files:
                print(f"  left: {path.relative_to(folder)}", flush=True)
    held = not any(count[DIFFERENT] for count in counts.values()) and not any(left.values())
    return [line(name, victim, counts[victim], left[victim]) for victim in counts], held


def line(engine: str, victim: str, count: Mapping[str, int], left: int) -> list[str]:
    """Return one line of the table."""
    outcomes = [str(count.get(kind, 0)) for kind in (SAME, FAILED, DIFFERENT)]
    return [engine, victim, str(sum(count.values())), *outcomes, str(left)]


def tail(path: Path) -> str:
    """Return the last lines of a log."""
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-5:])


def opened(name: str, prism: Path) -> AbstractContextManager[Engine]:
    """Return an engine by its name."""
    if name == "memory":
        return fault_engines.in_memory()
    if name == "prism":
        return fault_engines.prism(prism)
    if name == "spark":
        return fault_engines.on_spark()
    return fault_engines.on_flink(keeps=name == "flink")


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a release that keeps its draws was not one and the same."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--engines", default=":".join(ENGINES), help='with : between; "all"')
    parser.add_argument("--kills", type=int, default=200, help="on each engine")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="at most, for each")
    parser.add_argument("--prism", type=Path, default=ROOT / "build/bin/prism")
    given = parser.parse_args(words)
    table, holds = [list(HEADS)], True
    for name in given.engines.split(":"):
        if name not in ENGINES:
            parser.error(f"--engines must be some of {':'.join(ENGINES)}, not {name}")
        with opened(name, given.prism) as engine:
            lines, held = measure(name, engine, given.kills, time.monotonic() + 60 * given.minutes)
        table += lines
        holds = holds and (held or not engine.keeps)
    print(
        "\n".join(f"| {' | '.join(row)} |" for row in [table[0], ["---"] * len(HEADS), *table[1:]])
    )
    return int(not holds)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
