"""The pages of the documentation, cut into blocks, and how a test runs them.

A fenced block in Python, shell or YAML runs in a test. One that cannot has a comment on the line
before it that says why:

    <!-- not run: needs a Google Cloud project -->
"""

import contextlib
import dataclasses
import functools
import importlib
import io
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apache_beam as beam
import pytest

from beam_dp.beam_yaml import PROVIDERS
from beam_dp.command import COMMANDS

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/**/*.md"))]
SHOWN = ("text", "csv", "json")
"""Languages of what is looked at, not run."""
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[a-z]*)\n(?P<code>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
READ = re.compile(
    r"--input (\S+)|^input: (\S+)|ReadFrom\w+\n +config:\n +path: (\S+)"
    r"|FROM '(\S+?\.\w+)'|(?:dp\.release\(|ReadRows\(|Create\(\[)\s*\"(\S+?)\"",
    re.MULTILINE,
)
MARKER = re.compile(r"<!-- not run: (.+) -->\n\s*$")


@dataclasses.dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        language: as the fence names it.
        code: what is between the fences.
        reason: why no test runs it; "" if one does.
    """

    language: str
    code: str
    reason: str

    @property
    def runs(self) -> bool:
        """Whether a test runs it."""
        return not self.reason and self.language not in SHOWN


def read(page: str) -> str:
    """Return the text of a page."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    found = []
    for match in FENCE.finditer(text):
        marker = MARKER.search(text[: match.start()])
        code = re.sub(f"^{match['indent']}", "", match["code"], flags=re.MULTILINE)
        found.append(Block(match["language"], code, marker[1] if marker else ""))
    return found


def commands(code: str) -> list[str]:
    """Return the commands of a block of shell, each on one line."""
    return [line.strip() for line in code.replace("\\\n", " ").splitlines() if line.strip()]


@dataclasses.dataclass
class Shell:
    """Runs the blocks of a page, one after the other, in one directory.

    Attributes:
        whole: run jobs to their end; else only up to their plan, where they have one.
    """

    whole: bool

    def run(self, block: Block) -> str:
        """Return what a block prints."""
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            if block.language == "python":
                named = re.match(r"# (\w+\.py)\n", block.code)
                name = named[1] if named else "block.py"
                Path(name).write_text(block.code, encoding="utf-8")
                runpy.run_path(name)
            elif block.language == "yaml":
                here = block.code.replace("/path/to/beam_dp/beam_yaml/providers.yaml", PROVIDERS)
                name = "pipeline.yaml" if "pipeline:" in here else "release.yaml"
                Path(name).write_text(here, encoding="utf-8")
                check_input(here)
            else:
                for command in commands(block.code):
                    self._command(command)
        return printed.getvalue()

    def _command(self, command: str) -> None:
        words = shlex.split(command)
        check_input(command)
        if words[0] == "make":
            makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
            assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE), command
        elif words[:2] == ["python", "-m"]:
            self._job(words[2], words[3:])
        elif words[0] == "beam-dp":
            asked = words[2 : words.index(">")] if ">" in words else words[2:]
            self._job(f"pipelines.{COMMANDS[words[1]][0]}", asked)
        else:
            subprocess.run(["bash", "-c", command], check=True)

    def _job(self, module: str, words: list[str]) -> None:
        if module == "apache_beam.yaml.main" and not self.whole:
            return
        if not hasattr(importlib.import_module(module), "main"):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sys, "argv", [module, *words])
                runpy.run_module(module, run_name="__main__")
            return
        plans = module.partition(".")[2] in ("aggregate", "select")
        further = ["--plan"] if plans and not self.whole and "--plan" not in words else []
        main: Callable[[list[str]], int | None] = importlib.import_module(module).main
        assert main([*words, *further]) in (0, None), (module, words)


def files() -> None:
    """Write what pages may read into the working directory: a file that the repository ships."""
    Path("docs/start").mkdir(parents=True)
    for path in ROOT.glob("docs/start/*.csv"):
        Path("docs/start", path.name).write_bytes(path.read_bytes())


def check_input(text: str) -> None:
    """Notice a command, or a mapping, whose input is not there, also where only its plan runs."""
    for name in inputs(text):
        assert Path(name).exists(), name


def inputs(text: str) -> list[str]:
    """Return the files that a text reads: in commands, mappings of jobs and of Beam, and Python."""
    return [next(filter(None, found)) for found in READ.findall(text)]


def work_in(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory with the files of the pages, and run pipelines in memory."""
    monkeypatch.chdir(directory)
    monkeypatch.syspath_prepend(directory)
    whole = beam.Pipeline
    in_memory = functools.partial(whole, runner="FnApiRunner")
    made = lambda *given, **named: (whole if given or named else in_memory)(*given, **named)
    monkeypatch.setattr(beam, "Pipeline", made)
    files()
