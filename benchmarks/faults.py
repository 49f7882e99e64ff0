"""Kill processes at random moments, and look how many different releases anybody has seen.

    python -m benchmarks.faults                          200 kills on each engine (hours)
    python -m benchmarks.faults --kills 10 --minutes 5   fewer
    python -m benchmarks.faults --engines flink:spark    some engines; Linux only

A job makes one release for three readers (`benchmarks.fault_job`). While it runs processes of one
kind are killed: in turn each kind of process of the engine, and the driver. The first is killed
after a time that is uniform over what the job takes undisturbed; further ones after times that are
uniform over a fourth of it, eight in all, for each job that lasts so long. For half of the jobs the
first moment is half a second at most after the first reader has shown something, where a second
draw would do the most harm. If there is no process of the kind at that moment, the next one that
starts is killed. Afterwards the job has five minutes to end; then the driver is killed too. The
release keeps its draws in a folder (`--draws_folder`); "flink, not kept" has none: it shows that a
second draw would be noticed.

Two draws are the same with a chance below 2^-120: where a day has two rows, there were two releases.
A leftover is a file with a row of the input, or a part of the output.
"""

import argparse
import collections
import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import fault_engines
from benchmarks.fault_engines import Engine
from benchmarks.fault_job import CANARY, DAYS, FIRST, OUTPUT, SECOND

ROOT = Path(__file__).resolve().parents[1]
ENGINES = ("memory", "prism", "flink", "spark", "flink, not kept")
DRIVER = "driver"
PATIENCE = 300.0
SAME, FAILED, DIFFERENT = "same release", "failed job", "different releases"
KILLS, JOBS, LEFT = "kills", "jobs", "leftovers"
COUNTS = (KILLS, JOBS, SAME, FAILED, DIFFERENT, LEFT)
HEADS = ("engine", "killed", *COUNTS)
KILLS_A_JOB = 8
AIMED = 0.5


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


@dataclass(frozen=True)
class Result:
    """What happened to one job: how it came out, how often it was struck, and what it took."""

    outcome: str
    kills: int
    seconds: float


def run_once(engine: Engine, victim: str | None, span: float, folder: Path) -> Result:
    """Run a job in a new folder, and kill processes of one kind meanwhile, or none."""
    temporary = folder / "temporary"
    temporary.mkdir(parents=True)
    where = f"--draws_folder={folder / 'draws'}" if engine.keeps else "--cluster_never_restarts"
    words = [sys.executable, "-m", "benchmarks.fault_job", str(folder), *engine.options, where]
    kills, start = 0, time.monotonic()
    with (folder / "log").open("wb") as log:
        environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)}
        driver = subprocess.Popen(
            words, stdout=log, stderr=log, cwd=ROOT, env=environment, start_new_session=True
        )
        try:
            if victim is not None:
                kills = struck(engine, victim, driver, span, folder / FIRST)
            driver.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            print(f"  not ended in {PATIENCE:.0f} s: the driver is killed too", flush=True)
        finally:
            fault_engines.ended(driver)
    seconds = time.monotonic() - start
    engine.mended()
    shown = [*lines_of(folder / FIRST), *lines_of(folder / SECOND), *lines_of(folder / OUTPUT)[1:]]
    return Result(outcome(shown, driver.returncode == 0), kills, seconds)


def struck(
    engine: Engine, victim: str, driver: subprocess.Popen[bytes], span: float, first: Path
) -> int:
    """Kill processes of one kind, each at a moment of its own; return how many."""
    is_aimed = not engine.keeps or random.random() < 0.5
    if is_aimed:
        until(first.exists, driver)
    for number in range(1 if victim in (DRIVER, *engine.once) else KILLS_A_JOB):
        most = span / 4 if number else AIMED if is_aimed else span
        with contextlib.suppress(subprocess.TimeoutExpired):
            driver.wait(random.uniform(0.0, most))
        if not until(lambda: killed(engine, victim, driver), driver):
            return number
    return number + 1


def killed(engine: Engine, victim: str, driver: subprocess.Popen[bytes]) -> bool:
    """Kill one process of a kind; return whether there was one."""
    if victim != DRIVER:
        return engine.victims[victim](driver.pid)
    driver.kill()
    return True


def until(done: Callable[[], bool], driver: subprocess.Popen[bytes]) -> bool:
    """Wait until something is done; return whether it was, before the job or the patience ended."""
    end = time.monotonic() + PATIENCE
    while driver.poll() is None and time.monotonic() < end:
        if done():
            return True
        time.sleep(0.02)
    return False


def measured(name: str, engine: Engine, kills: int, end: float) -> dict[str, Counter[str]]:
    """Kill so many processes, or until the end; return the counts for each kind of process."""
    counts: dict[str, Counter[str]] = collections.defaultdict(Counter)
    with tempfile.TemporaryDirectory(prefix="faults-") as at:
        whole = run_once(engine, None, 0.0, Path(at, "whole"))
        if whole.outcome != SAME:
            raise SystemExit(f"{name}: the release fails without a kill.\n{tail(Path(at))}")
        for number, victim in enumerate(itertools.cycle([*engine.victims, DRIVER])):
            if sum(count[KILLS] for count in counts.values()) >= kills or time.monotonic() > end:
                break
            folder = Path(at, f"job-{number}")
            result, files = run_once(engine, victim, whole.seconds, folder), leftovers(folder)
            counts[victim] += Counter(
                {KILLS: result.kills, JOBS: 1, result.outcome: 1, LEFT: len(files)}
            )
            said = f"{result.kills} x {victim}, {result.seconds:.0f} s: {result.outcome}"
            print(
                f"  {name}: {said}{''.join(f', {file.name} is left' for file in files)}", flush=True
            )
    return counts


def lines(engine: str, counts: Mapping[str, Mapping[str, int]]) -> list[list[str]]:
    """Return the lines of the table, one for each kind of process."""
    return [
        [engine, victim, *(str(count.get(name, 0)) for name in COUNTS)]
        for victim, count in counts.items()
    ]


def holds(counts: Mapping[str, Mapping[str, int]]) -> bool:
    """Return whether there was never a second release, nor a leftover."""
    return not any(count.get(name, 0) for count in counts.values() for name in (DIFFERENT, LEFT))


def tail(folder: Path) -> str:
    """Return the last lines of the logs in a folder."""
    logs = [log.read_text(errors="replace").splitlines()[-5:] for log in folder.glob("*/log")]
    return "\n".join(itertools.chain.from_iterable(logs))


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
    parser.add_argument("--engines", default=":".join(ENGINES), help="with : between")
    parser.add_argument("--kills", type=int, default=200, help="on each engine")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="at most, for each")
    parser.add_argument("--prism", type=Path, default=ROOT / "build/bin/prism")
    given = parser.parse_args(words)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # stops the engines
    table, held = [list(HEADS), ["---"] * len(HEADS)], True
    for name in given.engines.split(":"):
        if name not in ENGINES:
            parser.error(f"--engines must be some of {':'.join(ENGINES)}, not {name}")
        with opened(name, given.prism) as engine:
            end = time.monotonic() + 60 * given.minutes
            counts = measured(name, engine, given.kills, end)
        table += lines(name, counts)
        held = held and (holds(counts) or not engine.keeps)
    print("\n".join(f"| {' | '.join(row)} |" for row in table))
    return int(not held)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
