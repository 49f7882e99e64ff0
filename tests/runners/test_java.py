"""A pipeline in Java releases through the expansion service, on Prism (`make test-runners`)."""

import os
import subprocess
from pathlib import Path

from tests.runners import services

JAVA = Path(__file__).with_name("java")
SECONDS = 300


def test_a_java_pipeline_releases_one_select(tmp_path: Path, prism: str) -> None:
    """The noise is above 100 with a chance below 1e-60."""
    build = ["mvn", "-q", "-B", f"-Dout={tmp_path}", "package", "dependency:copy-dependencies"]
    subprocess.run(build, cwd=JAVA, check=True, timeout=SECONDS)
    path = os.pathsep.join([str(tmp_path / "classes"), str(tmp_path / "dependency" / "*")])
    out = tmp_path / "released.txt"
    # A loopback worker has its address when the job runs; what is expanded before wants one too.
    worker = ["--defaultEnvironmentType=LOOPBACK", "--defaultEnvironmentConfig=localhost:1"]
    with (
        services.expansion_service("--serve_loopback_worker") as service,
        services.listening([prism, "--serve_http=false", "--job_port"]) as jobs,
    ):
        options = ["--runner=PortableRunner", f"--jobEndpoint={jobs}", *worker]
        command = ["java", "-cp", path, "Release", service, str(out), *options]
        subprocess.run(command, check=True, timeout=SECONDS)
    found = dict(line.split(",") for line in out.read_text().splitlines())
    assert sorted(found) == ["mon", "tue"]
    assert all(abs(int(visits) - 500) < 100 for visits in found.values())
