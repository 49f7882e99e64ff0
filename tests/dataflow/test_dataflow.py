"""The steps of a Dockerfile are done as they stand, and what is wrong with a request is said."""

import json
from typing import Any

from tests.dataflow import __main__ as checks


def told(**changed: Any) -> dict[str, Any]:
    pool = {"workerHarnessContainerImage": "image"}
    environment = {"experiments": [checks.NO_SAMPLES], "workerPools": [pool]}
    request = {"type": "JOB_TYPE_BATCH", "environment": environment}
    found = {"request": request, "graph_bytes": 9, "largest_step_bytes": 9, "images": ["image"]}
    return {**found, **changed}


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
