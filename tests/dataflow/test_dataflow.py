"""The steps of a Dockerfile are done as they stand, and what is wrong with a request is said."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.dataflow import __main__ as checks

SMALL = """# a comment
FROM a AS launcher
COPY --from=launcher /opt/x /opt/x
WORKDIR /template
COPY one.txt two.txt ./
COPY package package
RUN cat one.txt \\
    two.txt > both && ls package > seen
ENV FLEX_TEMPLATE_PYTHON_PY_FILE=/template/package/job.py
"""


def told(**changed: Any) -> dict[str, Any]:
    pool = {"workerHarnessContainerImage": "image"}
    environment = {"experiments": [checks.NO_SAMPLES], "workerPools": [pool]}
    request = {"type": "JOB_TYPE_BATCH", "environment": environment}
    found = {"request": request, "graph_bytes": 9, "largest_step_bytes": 9, "images": ["image"]}
    return {**found, **changed}


def test_the_steps_are_done(tmp_path: Path) -> None:
    root, folder = tmp_path / "root", tmp_path / "template"
    (root / "package" / "__pycache__").mkdir(parents=True)
    folder.mkdir()
    (root / "one.txt").write_text("1\n")
    (root / "two.txt").write_text("2\n")
    (root / "package" / "job.py").write_text("")
    checks.build(SMALL, root, folder, tmp_path)
    assert (folder / "both").read_text() == "1\n2\n"
    assert (folder / "seen").read_text() == "job.py\n"
    assert checks.job_file(SMALL, folder) == folder / "package" / "job.py"
    with pytest.raises(subprocess.CalledProcessError):
        checks.build("RUN false", root, folder, tmp_path)


def test_the_dockerfile_has_the_steps() -> None:
    text = checks.DOCKERFILE.read_text()
    assert ["setup.py", "pyproject.toml", "README.md"] in [one for one, _ in checks.copied(text)]
    assert checks.job_file(text, checks.ROOT).exists()
    assert sum(name == "RUN" for name, _ in checks.instructions(text)) == 1


def test_what_is_wrong_is_said() -> None:
    assert checks.faults(told()) == []
    assert checks.faults(told(images=["other"])) == ["its workers have another image"]
    assert checks.faults(told(largest_step_bytes=2_000_000)) == ["a step is too large"]
    text = json.dumps(told()).replace(checks.NO_SAMPLES, "other").replace("BATCH", "STREAMING")
    assert checks.faults(json.loads(text)) == ["it is no batch job", "exceptions are sampled"]
