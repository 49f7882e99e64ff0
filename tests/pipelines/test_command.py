"""The command `beam-dp`: each word is a job, also where a folder `pipelines` is somebody else's."""

import contextlib
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import beam_dp
from beam_dp import command
from pipelines import aggregate, stopping, table

ROOT = Path(__file__).parents[2]
ASKED = ["--person", "visitor", "--count", "--epsilon", "1", "--runner", "FnApiRunner"]


def called(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Call the command in a folder whose own `pipelines` Python would find first."""
    (folder / "pipelines").mkdir(exist_ok=True)
    (folder / "pipelines" / "__init__.py").write_text("raise SystemExit('not ours')")
    program = [sys.executable, "-m", "beam_dp.command", *words]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        program, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", ["in_memory", "multi_processing"])
def test_it_runs_beside_another_folder_of_the_name(mode, visits, tmp_path, capsys):
    """Worker processes, which find that folder too, need nothing of the jobs."""
    words = ["aggregate", "--input", visits, "--output", "out.csv", *ASKED]
    done = called(tmp_path, *words, f"--direct_running_mode={mode}")
    assert done.returncode == 0 and "in all: epsilon 1.0" in done.stdout, done.stderr
    assert '"program": "beam-dp aggregate"' in (tmp_path / "out.csv.json").read_text()
    assert table.main([str(tmp_path / "out.csv")]) == 0
    assert capsys.readouterr().out == done.stdout


def test_every_word_is_a_job_and_is_in_the_help(capsys, monkeypatch):
    for words in (["beam-dp"], ["beam-dp", "--help"], ["beam-dp", "help"]):
        monkeypatch.setattr(sys, "argv", words)
        assert command.main() == 0
        said = capsys.readouterr().out
        assert re.findall(r"^  (\w+) ", said, re.MULTILINE) == [*command.COMMANDS]
    for module, _ in command.COMMANDS.values():
        assert callable(importlib.import_module(f"pipelines.{module}").main)
    monkeypatch.setattr(sys, "argv", ["beam-dp", "agregate"])
    assert command.main() == 2 and "must name one of aggregate, " in capsys.readouterr().err


def test_help_and_version_and_a_schedule_are_called_by_their_names(capsys, monkeypatch):
    monkeypatch.setattr(command, "_load_jobs", lambda: None)
    monkeypatch.setattr(sys, "path", [*sys.path])

    def said(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["beam-dp", *words])
        with contextlib.suppress(SystemExit):
            command.main()
        return capsys.readouterr().out

    usage = "usage: beam-dp ledger schedule --runs N --total_epsilon E ..."
    assert said("ledger", "schedule", "--help").startswith(usage)
    for job in ("check", "rehearse"):  # they write no output
        assert "--output" not in said(job, "--help").partition("\n\n")[0]
    assert said("help", "ledger") == said("ledger", "--help") != ""
    assert said("--version") == f"beam_dp {beam_dp.__version__}\n"


def test_the_script_is_installed():
    [name, at] = re.findall(r"(beam-dp)=([\w.]+:main)", (ROOT / "setup.py").read_text())[0]
    module, function = at.split(":")
    assert vars(importlib.import_module(module))[function] is command.main and name == "beam-dp"


def test_errors_name_the_command_that_was_called(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["beam-dp aggregate", "--cuont"])
    assert stopping.is_program()
    with pytest.raises(SystemExit):
        aggregate.main()
    assert capsys.readouterr().err.startswith(
        "beam-dp aggregate: error: unrecognized argument: --cuont"
    )
