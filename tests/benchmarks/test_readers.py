"""Programs that print for nobody end quietly, and help runs no benchmark."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import NO_READER
from benchmarks import __main__ as everything

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("words", [["benchmarks"], ["benchmarks.speed"], ["benchmarks", "data"]])
def test_help_for_nobody(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", *words, "--help"],
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (NO_READER, b"")


@pytest.mark.parametrize(("words", "code"), [(["--nonsense"], 2), (["no_such"], 2)])
def test_words_that_name_no_benchmark_run_none(
    words: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a benchmark would run"))
    with pytest.raises(SystemExit) as stopped:
        everything.main(words)
    assert stopped.value.code == code and "--growth" in capsys.readouterr().err
    assert everything.main(["--help"]) == 0 and "--growth" in capsys.readouterr().out


def test_nothing_more_is_run_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def run(words: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        ran.append(words)
        return subprocess.CompletedProcess(words, NO_READER)

    monkeypatch.setattr(subprocess, "run", run)
    assert everything.main([]) == NO_READER and len(ran) == 1
