"""Check what can be checked of Dataflow without the service: `python -m tests.dataflow` (minutes).

It does the steps of the Dockerfile that need no container engine, in an environment of Python that
has nothing else: copies what they copy, and runs what they run. There it starts the Flex Template's
job as the template's launcher does, without network and credentials, up to where Dataflow's runner
would send the request (`dry_run`).
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "Dockerfile"
DRY_RUN = Path(__file__).with_name("dry_run.py")
JOB = "FLEX_TEMPLATE_PYTHON_PY_FILE"
NO_SAMPLES = "disable_always_on_exception_sampling"
LIMIT_REQUEST, LIMIT_STEP = 10_000_000, 1_000_000
"""The most bytes of a request and of a step that Dataflow takes, by its documentation."""


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Yield the instructions of a Dockerfile with their words."""
    whole = text.replace("\\\n", " ")
    for line in whole.splitlines():
        name, _, rest = line.strip().partition(" ")
        if name and not name.startswith("#"):
            yield name, rest.strip()


def copied(text: str) -> Iterator[tuple[list[str], str]]:
    """Yield what each COPY from this folder copies, and where to."""
    for name, rest in instructions(text):
        words = shlex.split(rest)
        if name == "COPY" and not words[0].startswith("--from"):
            yield words[:-1], words[-1]


def build(text: str, root: Path, folder: Path, binaries: Path) -> None:
    """Do the COPY and RUN of a Dockerfile in a folder.

    Args:
        text: the Dockerfile.
        root: the folder that is copied from.
        folder: stands for the WORKDIR.
        binaries: comes first on the PATH.
    """
    for sources, target in copied(text):
        for source in map(root.joinpath, sources):
            place = folder / target if len(sources) == 1 else folder / target / source.name
            if source.is_dir():
                shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copyfile(source, place)
    path = f"{binaries}{os.pathsep}{os.environ['PATH']}"
    defaults = dict(
        rest.split("=") for name, rest in instructions(text) if name == "ARG" if "=" in rest
    )
    for name, command in instructions(text):
        if name == "RUN":
            words = ["/bin/sh", "-c", command]
            quiet = {"stdout": subprocess.DEVNULL, "env": {**bare(path), **defaults}}
            subprocess.run(words, cwd=folder, check=True, **quiet)


def bare(path: str) -> dict[str, str]:
    """Return the environment without the words that change what Python imports."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, "PATH": path}


def job_file(text: str, folder: Path) -> Path:
    """Return the file that the launcher starts, in the folder that stands for the WORKDIR."""
    [workdir] = [rest for name, rest in instructions(text) if name == "WORKDIR"]
    [where] = [rest for name, rest in instructions(text) if rest.startswith(f"{JOB}=")]
    return folder / Path(where.partition("=")[2]).relative_to(workdir)


def faults(told: dict[str, Any]) -> list[str]:
    """Return what is wrong with the request of a job."""
    request = told["request"]
    environment = request["environment"]
    pools = environment["workerPools"]
    size = len(json.dumps(request))
    checks = {
        "it is no batch job": request["type"] == "JOB_TYPE_BATCH",
        "exceptions are sampled": NO_SAMPLES in environment["experiments"],
        "its steps run in another image": len(told["images"]) == 1,
        "its workers have another image": [told["images"][0]] * len(pools)
        == [pool["workerHarnessContainerImage"] for pool in pools],
        "it is too large": max(size, told["graph_bytes"]) < LIMIT_REQUEST,
        "a step is too large": told["largest_step_bytes"] < LIMIT_STEP,
    }
    return [fault for fault, holds in checks.items() if not holds]


def main(words: Sequence[str] | None = None) -> int:
    """Print what was found; return 1 if something is wrong."""
    parser = argparse.ArgumentParser("python -m tests.dataflow", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.parse_args(words)
    text = DOCKERFILE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as at:
        folder, out = Path(at, "template"), Path(at, "out.json")
        folder.mkdir()
        subprocess.run([sys.executable, "-m", "venv", Path(at, "venv")], check=True)
        binaries = Path(at, "venv", "bin")
        build(text, ROOT, folder, binaries)
        command = [binaries / "python", DRY_RUN, job_file(text, folder), out]
        subprocess.run(command, cwd=at, env=bare(os.environ["PATH"]), check=True)
        told = json.loads(out.read_text(encoding="utf-8"))
    wrong = faults(told)
    request = len(json.dumps(told.pop("request")))
    for name, value in {"request_bytes": request, **told}.items():
        sys.stdout.write(f"{name}: {value}\n")
    sys.stdout.write("".join(f"wrong: {fault}\n" for fault in wrong) or "nothing is wrong\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
