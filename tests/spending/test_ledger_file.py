"""The file of a ledger: all or nothing, whatever happens to the disk or to the job."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import filelock
import pytest

from beam_dp.spending import ledger_file

FULL = """
import resource, sys
from pathlib import Path
from beam_dp.spending import ledger_file
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    ledger_file.replace(Path(sys.argv[1]), "x" * 5000)
except OSError as error:
    sys.exit(f"refused: {type(error).__name__}")
"""
KILLED = """
import os, signal, sys
from pathlib import Path
from beam_dp.spending import ledger_file
os.fsync = lambda number: os.kill(os.getpid(), signal.SIGKILL)
ledger_file.replace(Path(sys.argv[1]), "new" * 5000)
"""


def run(program: str, path: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", program, str(path)]
    return subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    ledger_file.replace(tmp_path / "l.jsonl", "old\n")
    return tmp_path / "l.jsonl"


def test_a_file_that_cannot_be_written_whole_stays_as_it_was(path: Path) -> None:
    assert "refused: OSError" in run(FULL, path).stderr
    assert path.read_text() == "old\n" and [*path.parent.iterdir()] == [path]


def test_a_job_that_is_killed_while_it_writes_changes_nothing(path: Path) -> None:
    assert run(KILLED, path).returncode == -9
    assert path.read_text() == "old\n"
    ledger_file.replace(path, "next\n")  # what the killed one left is in nobody's way
    assert path.read_text() == "next\n" and [*path.parent.iterdir()] == [path]


def test_the_content_is_on_the_disk_before_it_takes_the_place_of_the_old_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (steps.append("fsync"), fsync(file)))
    monkeypatch.setattr(os, "replace", lambda *p: (steps.append("replace"), replace(*p)))
    ledger_file.replace(path, "new\n")
    assert steps == ["fsync", "replace", "fsync"] and path.read_text() == "new\n"


def test_rights_are_kept(path: Path) -> None:
    path.chmod(0o640)
    ledger_file.replace(path, "new\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_link_is_followed(path: Path) -> None:
    link = path.with_name("link")
    link.symlink_to(path)
    assert ledger_file.checked(link) == path


def test_a_file_of_two_names_is_not_read(path: Path) -> None:
    os.link(path, path.with_name("other"))
    with pytest.raises(ValueError, match="one name, and .*l.jsonl' has 2 .hard links.*delete all"):
        ledger_file.text_of(path)
    path.with_name("other").unlink()
    assert ledger_file.text_of(path) == "old\n"


def test_links_in_a_circle_are_refused_by_the_system(path: Path) -> None:
    (path.parent / "a").symlink_to("b")
    (path.parent / "b").symlink_to("a")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        ledger_file.text_of(ledger_file.checked(path.parent / "a"))


def test_who_waits_too_long_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_file, "PATIENCE", 0.05)
    taken = filelock.FileLock(f"{path}.lock")
    refused = pytest.raises(ValueError, match="another job has it")
    with taken, refused, ledger_file.locked(path):
        pass
    with ledger_file.locked(path):
        assert ledger_file.text_of(path) == "old\n"


@pytest.mark.parametrize(
    "path", ["gs://bucket/l.jsonl", "s3://b/l", "file:///l", "", None, 3, b"l"]
)
def test_what_cannot_be_locked_is_refused(path: object) -> None:
    with pytest.raises((TypeError, ValueError), match="Ledger: path must be"):
        ledger_file.checked(path)
