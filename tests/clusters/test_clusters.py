"""What a cluster needs is pinned, verified and asked for in one line; its processes end with it."""

import hashlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clusters import artefacts, cluster, java, processes
from tests.clusters.artefacts import ClusterError

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Maven repository of one jar, of a cluster of its own."""
    jar = tmp_path / "repository" / "org" / "thing-1.jar"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"classes")
    table = tmp_path / "artefacts.tsv"
    digest = hashlib.sha256(b"classes").hexdigest()
    table.write_text(f"clusters\tsha256\tpath\nsmall\t{digest}\torg/thing-1.jar\n")
    monkeypatch.setenv("MAVEN_REPOSITORY", (tmp_path / "repository").as_uri())
    monkeypatch.setattr(artefacts, "TABLE", table)
    monkeypatch.setattr(artefacts, "JARS", tmp_path / "jars")
    return jar


def test_every_artefact_is_pinned_once() -> None:
    lines = artefacts.TABLE.read_text().splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for _, digest, _ in rows)
    for name in ("flink", "spark"):
        jars = [Path(path).name for clusters, _, path in rows if name in clusters.split()]
        assert len(jars) == len(set(jars)) > 100
        assert any(jar.startswith(f"beam-runners-{name}-") for jar in jars)


def test_another_jar_is_refused(repository: Path) -> None:
    repository.write_bytes(b"others")
    with pytest.raises(ClusterError, match=r"org/thing-1.jar must have the sha256 .* not "):
        artefacts.class_path("small")


def fake_java(folder: Path, version: str, compiler: bool) -> str:
    (folder / "bin").mkdir(parents=True)
    for name in ["java", *(["javac"] if compiler else [])]:
        program = folder / "bin" / name
        program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        program.chmod(0o700)
    return str(folder)


@pytest.mark.parametrize(
    ("version", "compiler", "said"),
    [("25.0.1", True, "has version 25"), ("17.0.2", False, "has none"), ("17.0.2", True, None)],
)
def test_java_is_asked_for(
    version: str, compiler: bool, said: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = fake_java(tmp_path / "java", version, compiler)
    monkeypatch.setenv("JAVA_HOME", home)
    if said is None:
        assert java.java() == f"{home}/bin/java"
        return
    with pytest.raises(ClusterError, match=said) as refused:
        java.java()
    assert "\n" not in str(refused.value)


def test_processes_end_with_their_context_and_so_do_their_children(tmp_path: Path) -> None:
    program = f"import subprocess; print(subprocess.Popen({SLEEP!r}).pid, flush=True)"
    wait = "import time; time.sleep(60)"
    with processes.running(tmp_path) as running:
        running.start("parent", [sys.executable, "-c", f"{program}; {wait}"])
        log = tmp_path / "parent.log"
        running.wait_until(lambda: log.read_text().endswith("\n"), "The parent")
        child, parent = int(log.read_text()), running.number("parent")
        running.kill("parent")
        assert not running.lives("parent") and is_running(child)
        running.start_again("parent")
        again = running.number("parent")
    assert not any(is_running(process) for process in (parent, child, again))


def is_running(process: int) -> bool:
    """Return whether a process runs; one that has ended and waits for its parent does not."""
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False
    ).stdout.strip()
    return state != "" and not state.startswith("Z")


def test_the_folder_of_a_cluster_is_private_and_goes() -> None:
    with cluster.prepared(keep=False) as (running, worker):
        assert os.stat(running.folder).st_mode & 0o777 == 0o700
        assert os.access(worker, os.X_OK)
    assert not running.folder.exists()


def test_the_cluster_is_stopped_when_the_command_is_told_to_end(tmp_path: Path) -> None:
    """SIGTERM goes through all contexts."""
    mark = tmp_path / "stopped"
    program = (
        "import pathlib, signal, time\n"
        "from tests.clusters import __main__ as command\n"
        "signal.signal(signal.SIGTERM, command._stop)\n"
        "try:\n    print('on', flush=True); time.sleep(60)\n"
        f"finally:\n    pathlib.Path({str(mark)!r}).touch()\n"
    )
    started = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=cluster.ROOT
    )
    assert started.stdout is not None and started.stdout.readline()
    started.send_signal(signal.SIGTERM)
    assert started.wait(30) == 128 + signal.SIGTERM
    started.stdout.close()
    assert mark.exists()
