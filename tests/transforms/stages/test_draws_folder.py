"""What is committed to a folder is one draw, whoever races for it, and whoever is killed."""

import os
import pickle
import secrets
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from beam_dp.mechanisms.numerics.checks import ParameterError
from beam_dp.transforms.stages.draws_folder import DrawsFolder
from tests.sizes import tries

ROOT = Path(__file__).parents[3]


def fresh() -> bytes:
    """Two of these are equal with a chance of 2^-256."""
    return secrets.token_bytes(32)


def test_the_second_attempt_reads_what_the_first_one_drew(tmp_path: Path) -> None:
    folder = DrawsFolder.made_in(str(tmp_path))
    first = folder.once("clips", fresh)
    elsewhere = pickle.loads(pickle.dumps(folder))
    assert elsewhere.once("clips", fresh) == first
    assert elsewhere.once("reach", fresh) != first


def test_a_draw_that_fails_commits_nothing(tmp_path: Path) -> None:
    folder = DrawsFolder.made_in(str(tmp_path))

    def fail() -> bytes:
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        folder.once("clips", fail)
    assert os.listdir(folder.path) == ["made"]


def late_and_early(folder: DrawsFolder) -> list[bytes]:
    """Return what two attempts read: one commits between the look at the folder and the commit."""
    early: list[bytes] = []

    def late() -> bytes:
        early.append(folder.once("clips", fresh))
        return fresh()

    return [folder.once("clips", late), *early]


def test_who_is_late_drops_its_draw(tmp_path: Path) -> None:
    folder = DrawsFolder.made_in(str(tmp_path))
    late, early = late_and_early(folder)
    assert late == early
    assert sorted(os.listdir(folder.path)) == ["clips", "made"]


class Overwriting(DrawsFolder):
    """A broken twin: the last attempt wins, not the first."""

    def _commit(self, name: str, content: bytes) -> None:
        with open(self._file(name), "wb") as file:
            file.write(self._tag(name, content) + content)


def seen_by_killed(folder: DrawsFolder, kills: int) -> dict[int, set[tuple[str, int]]]:
    """Return what processes read of each draw, of which so many were killed."""
    command = [sys.executable, "-m", "tests.transforms.stages.killed_attempts", str(kills)]
    words = [*command, pickle.dumps(folder).hex()]
    output = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    found: dict[int, set[tuple[str, int]]] = {}
    for line in output.splitlines():
        draw, start, size = line.split()
        found.setdefault(int(draw), set()).add((start, int(size)))
    return found


@tries(6, 60)
def test_attempts_that_are_killed_leave_one_draw(tmp_path: Path, tries: int) -> None:
    found = seen_by_killed(DrawsFolder.made_in(str(tmp_path)), tries)
    assert len(found) > 10
    assert all(len(drawn) == 1 for drawn in found.values())
    assert {length for drawn in found.values() for _, length in drawn} == {1 << 14}


def test_two_draws_would_be_noticed(tmp_path: Path) -> None:
    folder = DrawsFolder.made_in(str(tmp_path))
    late, early = late_and_early(Overwriting(folder.path, folder.secret))
    assert late != early


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content[:-1],
        lambda content: b"",
        lambda content: content[:31],
        lambda content: content[:40] + bytes([content[40] ^ 1]) + content[41:],
        lambda content: secrets.token_bytes(32) + pickle.dumps("forged"),
    ],
)
def test_what_this_run_did_not_write_is_not_opened(
    tmp_path: Path, spoil: Callable[[bytes], bytes]
) -> None:
    folder = DrawsFolder.made_in(str(tmp_path))
    folder.once("clips", fresh)
    file = Path(folder.path, "clips")
    file.write_bytes(spoil(file.read_bytes()))
    with pytest.raises(RuntimeError, match="was not written by this run"):
        folder.once("clips", fresh)


def test_a_draw_is_not_taken_for_another_and_a_worker_that_sees_no_folder_fails(
    tmp_path: Path,
) -> None:
    folder = DrawsFolder.made_in(str(tmp_path))
    folder.once("clips", fresh)
    Path(folder.path, "clips").rename(Path(folder.path, "reach"))
    with pytest.raises(RuntimeError, match="was not written by this run"):
        folder.once("reach", fresh)
    with pytest.raises(FileNotFoundError):
        DrawsFolder(str(tmp_path / "elsewhere"), bytes(32)).once("clips", fresh)
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_in_the_place_of_the_runs_own_gives_no_second_draw(tmp_path: Path) -> None:
    """Who may write to the folder above can rename that of the run, and make another."""
    folder = DrawsFolder.made_in(str(tmp_path))
    folder.once("clips", fresh)
    Path(folder.path).rename(tmp_path / "away")
    Path(folder.path).mkdir(0o777)
    with pytest.raises(FileNotFoundError):
        folder.once("clips", fresh)
    (tmp_path / "away" / "clips").rename(Path(folder.path, "made"))
    with pytest.raises(RuntimeError, match="was not written by this run"):
        folder.once("clips", fresh)
    assert [path.name for path in Path(folder.path).iterdir()] == ["made"]


def test_only_the_owner_may_read(tmp_path: Path) -> None:
    folder = DrawsFolder.made_in(str(tmp_path / "not there yet"))
    assert stat.S_IMODE(os.stat(folder.path).st_mode) == 0o700
    assert "secret" not in repr(folder)


def test_places_where_nothing_can_be_written_and_linked_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        ParameterError, match="the pipeline: --draws_folder must name.* all workers"
    ):
        DrawsFolder.made_in("gs://bucket/draws")
    (tmp_path / "file").touch()
    for wrong in (tmp_path / "file", "a\0b"):
        with pytest.raises(ParameterError, match="--draws_folder must .*can be written and linked"):
            DrawsFolder.made_in(wrong)

    def link(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(ParameterError, match="written and linked.*Operation not permitted"):
        DrawsFolder.made_in(str(tmp_path))
    assert not any(path.suffix == ".partial" for path in tmp_path.rglob("*"))
