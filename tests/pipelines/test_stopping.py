"""Ctrl-C and SIGTERM: a job ends quietly, with its code, and leaves no file and no process."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipelines import stopping

ROOT = Path(__file__).parents[2]
PROCESSES = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
THREADS = ["--direct_running_mode=multi_threading", "--direct_num_workers=2"]
ASKED = ["--person", "visitor", "--epsilon", "1", "--runner", "FnApiRunner"]
SLOW = """
import time

def total(people):
    try:
        print("asked", flush=True)
        time.sleep(60)
    except BaseException:  # a function that lets nothing through
        pass
    return [0]
"""
METRIC = {
    "custom_profile": "spent",
    "profile": "slow:total",
    "candidates": {"low": 0, "high": 9, "step": 1},
}
LONGEST = 60


class Job:
    """A job in a process group of its own, with folders of its own."""

    def __init__(self, folder: Path, words: list[str], at_start: object = signal.SIG_DFL) -> None:
        self.folder = folder
        (folder / "out").mkdir()
        paths = os.pathsep.join([str(folder), str(ROOT)])
        self.said = (folder / "said").open("w+")
        # A process starts with what is ignored, as SIGHUP is where tests run behind nohup.
        starts = {signal.SIGINT: at_start, signal.SIGHUP: signal.SIG_DFL}
        before = {number: signal.signal(number, start) for number, start in starts.items()}
        try:
            self.process = subprocess.Popen(
                [sys.executable, *words],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": paths},
                stdout=self.said,
                stderr=self.said,
                start_new_session=True,
            )
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def words(self) -> str:
        """Return what it has said until now."""
        return (self.folder / "said").read_text()

    def wait_for(self, seen: Callable[[], bool]) -> None:
        """Wait until something is so."""
        until = time.monotonic() + LONGEST
        while not seen():
            assert self.process.poll() is None and time.monotonic() < until, self.words()
            time.sleep(0.001)

    def watched(self) -> bool:
        """Return whether SIGTERM is caught: Python itself catches SIGINT only."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        caught = int(status.partition("SigCgt:")[2].split()[0], 16)
        return bool(caught >> (signal.SIGTERM - 1) & 1)

    def running(self) -> list[int]:
        """Return the processes of the group that have not ended."""
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                state, _, group = path.read_bytes().rpartition(b")")[2].split()[:3]
                if int(group) == self.process.pid and state != b"Z":
                    found.append(int(path.parent.name))
        return found

    def check_end(self, code: int, stages: tuple[str, ...]) -> None:
        """Check the code, that nothing but stages is said, and that nothing is left."""
        assert self.process.wait(LONGEST) == code, self.words()
        assert set(self.words().splitlines()) <= set(stages)
        assert [*(self.folder / "out").iterdir()] == []
        until = time.monotonic() + LONGEST  # a killed process takes its time to leave the table
        while self.running() and time.monotonic() < until:
            time.sleep(0.01)
        assert self.running() == []


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Job]]:
    """Start jobs, and end what a failed test leaves."""
    jobs: list[Job] = []

    def started(words: list[str], **options: object) -> Job:
        jobs.append(Job(tmp_path, words, **options))
        return jobs[-1]

    yield started
    for job in jobs:
        for process in job.running():
            with contextlib.suppress(ProcessLookupError):  # it may end by itself meanwhile
                os.kill(process, signal.SIGKILL)
        job.process.wait()
        job.said.close()


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[str]:
    """An input that does not end: reading it goes on until the job is stopped."""
    path = tmp_path / "visits.csv"
    os.mkfifo(path)
    ours = os.open(path, os.O_RDWR)
    os.write(ours, b"visitor,spent\n" + b"1,2\n" * 1000)
    yield str(path)
    os.close(ours)


def reading(start: Callable[..., Job], source: str, *options: str, **given: object) -> Job:
    """Start a job, and wait until it reads."""
    files = ["--input", source, "--output", "out/released.csv", "--sum", "spent"]
    job = start(["-m", "pipelines.aggregate", *files, *ASKED, *options], **given)
    job.wait_for(lambda: "Reading" in job.words())
    return job


STAGES = ("Reading and bounding", "Writing")


@pytest.mark.audit
@pytest.mark.parametrize(
    ("options", "number", "times"),
    [
        (PROCESSES, signal.SIGTERM, 1),
        ([], signal.SIGHUP, 1),
        (THREADS, signal.SIGINT, 1),
        (PROCESSES, signal.SIGINT, 3),
    ],
)
def test_a_job_that_reads_is_stopped(options, number, times, start, endless):
    """A terminal stops the workers too, and a second time changes nothing."""
    job = reading(start, endless, *options)
    time.sleep(1.5 if options else 0.3)
    for _ in range(times):
        with contextlib.suppress(ProcessLookupError):
            (os.kill if times == 1 else os.killpg)(job.process.pid, number)
        time.sleep(0.005)
    job.check_end(128 + number, STAGES)


@pytest.mark.parametrize("wait", [0.0, pytest.param(0.2, marks=pytest.mark.audit)])
def test_a_job_that_is_being_imported_is_stopped(wait, start):
    job = start(["-m", "pipelines.aggregate"])
    job.wait_for(job.watched)
    time.sleep(wait)
    os.kill(job.process.pid, signal.SIGINT)
    if wait:  # it may be on, and may have refused the call
        assert job.process.wait(LONGEST) in (130, 2) and "Traceback" not in job.words()
    else:
        job.check_end(130, ())


def test_a_function_that_catches_everything_cannot_hold_a_job(start, tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "visits.csv").write_text("visitor,spent\n1,2\n")
    (tmp_path / "r.json").write_text(json.dumps({"metrics": [METRIC]}))
    files = ["--input", "visits.csv", "--output", "out/released.csv", "--config", "r.json"]
    job = start(["-m", "pipelines.aggregate", *files, *ASKED])
    job.wait_for(lambda: "asked" in job.words())
    os.kill(job.process.pid, signal.SIGINT)
    job.check_end(130, ("Reading and bounding", "asked"))


def test_a_query_at_work_is_stopped(start, tmp_path):
    """One execution of DuckDB lasts for minutes here, and Python sees no signal in C++."""
    rows = [f"{number},{'a' * 60_000}\n" for number in range(20)]
    (tmp_path / "visits.csv").write_text("".join(["visitor,note\n", *rows]))
    slow = [f"regexp_extract(note, '(a|aa)*(a*)(.*)($|{n})', 3) = 'x'" for n in range(20)]
    query = ["--query", f"SELECT visitor FROM rows WHERE {' OR '.join(slow)}", "--count"]
    files = ["--input", "visits.csv", "--output", "out/a.csv"]
    job = start(["-m", "pipelines.aggregate", *files, *ASKED, *query])
    job.wait_for(lambda: "Reading" in job.words())
    time.sleep(0.5)
    sent = time.monotonic()
    os.kill(job.process.pid, signal.SIGTERM)
    job.check_end(143, STAGES)
    assert time.monotonic() - sent < 10


def size_of(path: Path) -> int:
    """Return the size of a file; 0 if it has gone since it was listed: some are there for a moment."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


@pytest.mark.parametrize(
    "options",
    [[], pytest.param(PROCESSES, marks=pytest.mark.audit)],
    ids=["in memory", "processes"],
)
def test_a_file_that_is_being_written_is_deleted(options, start, tmp_path):
    (tmp_path / "visits.csv").write_text("visitor,spent\n1,2\n")
    (tmp_path / "keys.csv").write_text("\n".join(["spent", *map(str, range(100_000))]))
    keys = ["--partition", "spent", "--public_partitions", "@keys.csv", "--bounds", "partitions=1"]
    files = ["--input", "visits.csv", "--output", "out/released.jsonl", "--count"]
    job = start(["-m", "pipelines.aggregate", *files, *ASKED, *keys, *options])
    job.wait_for(lambda: any(map(size_of, (tmp_path / "out").iterdir())))
    os.kill(job.process.pid, signal.SIGINT)
    job.check_end(130, STAGES)


@pytest.mark.audit
def test_a_signal_that_is_to_be_ignored_is_ignored(start, endless):
    job = reading(start, endless, at_start=signal.SIG_IGN)
    os.kill(job.process.pid, signal.SIGINT)
    time.sleep(0.3)
    assert job.process.poll() is None
    os.kill(job.process.pid, signal.SIGTERM)
    job.check_end(143, STAGES)


@pytest.mark.audit
def test_a_job_whose_reader_went_away_ends_quietly_with_whole_files(tmp_path):
    """What is not held until the end fails at once."""
    (tmp_path / "visits.csv").write_text("visitor,spent\n1,2\n")
    files = ["--input", "visits.csv", "--output", "out.csv", "--report", "out.html", "--count"]
    done = without_a_reader(tmp_path, "-u", "-m", "pipelines.aggregate", *files, *ASKED)
    assert done.returncode == stopping.NO_READER and b"rror" not in done.stderr
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 2
    assert (tmp_path / "out.html").read_text().rstrip().endswith("</html>")


def without_a_reader(folder: Path, *words: str) -> "subprocess.CompletedProcess[bytes]":
    """Run Python where nobody reads what it prints."""
    reader, writer = os.pipe()
    os.close(reader)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    call = [sys.executable, *words]
    done = subprocess.run(
        call, cwd=folder, env=env, stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    return done


ALONE = f"""
import os, runpy, signal, sys, threading, time
sys.orig_argv = ["", "-m", "pipelines.aggregate"]
stopping = runpy.run_path({stopping.__file__!r})
assert stopping["is_program"]()
stopping["watch"]()
"""
"""The signals of a job, without what a job needs a second to import."""
FORKS = """
stopping["cleanings"].append(lambda: os.write(1, b"cleaned"))
fork = os.fork()
if fork == 0:
    time.sleep(60)
time.sleep(0.5)  # Python forgets signals that come while it forks
os.kill(fork, signal.SIGTERM)
assert os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]) == 143
"""
STARTS_A_THREAD = """
with threading._active_limbo_lock:
    os.write(1, b"ready")
    time.sleep(60)
"""
WAITS = """
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
lock = threading.Lock()
lock.acquire()
os.write(1, b"ready")
lock.acquire(timeout=60)
"""


def test_a_job_whose_reader_went_away_says_nothing(tmp_path):
    done = without_a_reader(tmp_path, "-c", f"{ALONE}\nprint('held until the end')")
    assert done.returncode == stopping.NO_READER and done.stderr == b""


@pytest.mark.parametrize("waiting", [STARTS_A_THREAD, WAITS])
def test_a_fork_of_a_job_cleans_nothing_and_a_job_is_stopped_whatever_it_waits_for(waiting):
    """A signal finds the main thread with a lock that every `threading.Thread` needs; or it is not
    interrupted, for another thread got the signal, or it came just before the wait began."""
    words = [sys.executable, "-c", ALONE + FORKS + waiting]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as job:
        assert job.stdout is not None and job.stdout.read(5) == b"ready"
        job.terminate()
        assert job.wait(LONGEST / 2) == 143 and job.stdout.read() == b"cleaned"


@pytest.mark.parametrize(("flag", "shown"), [([], False), (["--show_errors"], True)])
def test_what_nothing_catches_is_one_line_and_shown_to_who_asks(flag, shown):
    words = [sys.executable, "-c", f"{ALONE}\nraise EOFError('canary')", *flag]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and ("canary" in done.stderr) == shown
    assert "EOFError" in done.stderr and (done.stderr.count("\n") == 1) != shown


@pytest.mark.audit
def test_a_program_that_imports_jobs_keeps_its_signals(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/__init__.py").write_text("import pipelines.aggregate\n")
    (tmp_path / "mine/tool.py").write_text(
        "import signal, sys\n"
        "print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)\n"
        "print(sys.excepthook is sys.__excepthook__)\n"
    )
    path = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    words = [sys.executable, "-m", "mine.tool"]
    done = subprocess.run(words, cwd=tmp_path, env=path, capture_output=True, check=True)
    assert done.stdout == b"True\nTrue\n"
