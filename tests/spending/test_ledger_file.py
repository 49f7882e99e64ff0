"""The file of a ledger: all or nothing, read as it was written, refused if a character changed."""

import functools
import itertools
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import filelock
import pytest

from beam_dp.mechanisms.accounting.budget import Budget
from beam_dp.spending import ledger_file
from beam_dp.spending.ledger_file import Charge, read, started, today, with_charge

KILLED = """
import os, signal, sys
from pathlib import Path
from beam_dp.spending import ledger_file
os.fsync = lambda number: os.kill(os.getpid(), signal.SIGKILL)
ledger_file.replace(Path(sys.argv[1]), "new" * 5000)
"""

LIMIT = Budget.zcdp(3, 1e-6)
COSTS = Budget(1, 1e-9), Budget.zcdp(0.1)
LABELS, PEOPLE = ("visits per day", 'ä "quoted" \u2028'), (("guest", "höst"), ())
CHARGES = tuple(
    Charge(label, "ann", today(), cost, person)
    for label, cost, person in zip(LABELS, COSTS, PEOPLE, strict=True)
)
TEXT = functools.reduce(with_charge, CHARGES, started(LIMIT))
LINES = TEXT.splitlines(keepends=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    ledger_file.replace(tmp_path / "l.jsonl", "old\n")
    return tmp_path / "l.jsonl"


def test_a_job_that_is_killed_while_it_writes_changes_nothing(path):
    words = [sys.executable, "-c", KILLED, str(path)]
    assert subprocess.run(words, check=False, timeout=60).returncode == -9
    assert path.read_text() == "old\n"
    ledger_file.replace(path, "next\n")  # what the killed one left is in nobody's way
    assert path.read_text() == "next\n" and [*path.parent.iterdir()] == [path]


def test_the_content_is_on_the_disk_before_it_takes_the_place_of_the_old_one(path, monkeypatch):
    """And its rights are kept."""
    path.chmod(0o640)
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (steps.append("fsync"), fsync(file)))
    monkeypatch.setattr(os, "replace", lambda *p: (steps.append("replace"), replace(*p)))
    ledger_file.replace(path, "new\n")
    assert steps == ["fsync", "replace", "fsync"] and path.read_text() == "new\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_who_waits_too_long_is_told(path, monkeypatch):
    monkeypatch.setattr(ledger_file, "PATIENCE", 0.05)
    taken = filelock.FileLock(f"{path}.lock")
    refused = pytest.raises(ValueError, match="another job has it")
    with taken, refused, ledger_file.locked(path):
        pass
    with ledger_file.locked(path):
        assert ledger_file.text_of(path) == "old\n"


def test_a_change_is_made_while_nobody_else_has_the_file(path):
    def change(_):
        with pytest.raises(filelock.Timeout):
            filelock.FileLock(f"{path}.lock", timeout=0).acquire()
        return "new\n", 1

    assert ledger_file.changed(path, change) == 1


@pytest.mark.parametrize(
    "path",
    ["gs://bucket/l.jsonl", "", None, b"l", "no/l"],
)
def test_what_cannot_be_locked_is_refused(path):
    with pytest.raises((TypeError, ValueError), match="Ledger: path must be"):
        ledger_file.checked(path)


def refused(text: str) -> str:
    with pytest.raises(ValueError, match="Nothing is charged") as raised:
        read("l.jsonl", text)
    return str(raised.value)


def test_a_file_is_read_as_it_was_written():
    assert read("l.jsonl", TEXT) == (LIMIT, CHARGES)
    assert TEXT.isascii() and len(LINES) == 3


def test_every_changed_character_is_noticed():
    for place in range(0, len(TEXT), 7):
        other = "0" if TEXT[place] != "0" else "1"
        changed = TEXT[:place] + other + TEXT[place + 1 :]
        assert "is damaged" in refused(changed)


def test_a_file_that_ends_early_within_a_line_is_damaged():
    cuts = [TEXT[:cut] for cut in range(1, len(TEXT)) if TEXT[cut - 1] != "\n"]
    assert all(f"line {cut.count(chr(10)) + 1} of l.jsonl" in refused(cut) for cut in cuts)


def test_lines_that_change_places_and_lost_and_doubled_ones_are_noticed():
    for order in list(itertools.permutations(range(3)))[1:]:
        refused("".join(LINES[place] for place in order))
    assert "line 2" in refused(LINES[0] + LINES[2])
    assert "line 3" in refused(LINES[0] + LINES[1] + LINES[1] + LINES[2])
    assert "line 1" in refused(LINES[1] + LINES[2])


@pytest.mark.parametrize("text", ["", "\n", "null\n", "[]\n", "{}\n", "[" * 9999 + "\n"])
def test_what_is_no_ledger_is_refused(text):
    assert "line 1 of l.jsonl" in refused(text)


def test_a_ledger_of_another_version_is_refused_even_with_checks_that_fit():
    content = json.loads(LINES[0])
    del content["check"]
    content["ledger"] = 2
    content["check"] = ledger_file._check("", content)
    refused(json.dumps(content) + "\n")


def test_lines_of_an_older_version_count_whole_and_are_kept():
    """They said also how a cost is made up, and whether it was planned."""
    check, lines = "", []
    for line in LINES:
        content = {**json.loads(line), "pieces": [], "planned": True}
        del content["check"]
        content.pop("person", None)
        check = ledger_file._check(check, content)
        lines.append(json.dumps({**content, "check": check}) + "\n")
    text = with_charge("".join(lines), CHARGES[0])
    assert text.startswith("".join(lines))
    _, charges = read("l.jsonl", text)
    assert [charge.person for charge in charges] == [(), (), ("guest", "höst")]
    assert [charge.budget for charge in charges] == [*COSTS, COSTS[0]]
