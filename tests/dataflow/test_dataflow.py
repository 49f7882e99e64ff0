"""The steps of a Dockerfile are done as they stand, and what is wrong with a request is said."""

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from pipelines import aggregate, running
from tests.dataflow import __main__ as checks

METADATA = checks.ROOT / "pipelines" / "flex_template.json"
LEFT_OUT = {"ledger", "ledger_period", "metrics"}
"""What a template must not have, or can say by `select` or `config` only: each name once."""
IMAGE = "the image of the workers: that of the template"
SELECT = "one SELECT, as SELECT day, count(*) AS visits FROM rows GROUP BY day"


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


def metadata() -> dict[str, Any]:
    """Return the metadata of the template: what the help says of options that have a value."""
    options = {"sdk_container_image": IMAGE, "select": SELECT}
    for action in aggregate.parser()._actions:
        if action.nargs != 0 and action.help != argparse.SUPPRESS:
            options[action.dest] = str(action.help).replace("%%", "%")
    parameters = [
        {"name": name, "label": name, "helpText": text, "isOptional": True}
        for name, text in options.items()
        if name not in LEFT_OUT
    ]
    about = "Release private statistics per partition from files of rows, without clipping bounds"
    return {"name": "beam_dp", "description": about, "parameters": parameters}


def test_the_template_has_the_parameters_of_the_job() -> None:
    assert json.loads(METADATA.read_text(encoding="utf-8")) == metadata()


def test_where_a_template_is_written_no_old_release_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    rows, out = tmp_path / "rows.csv", tmp_path / "out.csv"
    rows.write_text("person,day\n" + "".join(f"{n},1\n" for n in range(200)))
    words = ["--input", str(rows), "--output", str(out), "--person", "person", "--count"]
    assert aggregate.main([*words, "--epsilon", "1"]) == 0
    before = out.read_bytes()
    capfd.readouterr()
    monkeypatch.setattr(running, "check", lambda made: None)
    monkeypatch.setattr(running, "run", lambda *given: None)
    template = ["--overwrite", "--template_location", "gs://bucket/job.json"]
    assert aggregate.main([*words, "--epsilon", "2", *template]) == 0
    said = capfd.readouterr().out
    assert "in all: epsilon 2" in said and "200" not in said
    assert out.read_bytes() == before
