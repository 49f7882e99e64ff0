"""The fixture `pipeline_options`: one test, every runner.

In process by default; with `--runners` also on Prism (`--prism` names the binary) and on
Beam's local job service (`make test-runners` gives both), and with `--job_endpoint HOST:PORT`,
once for each, on job servers that you have started: of Flink or of Spark.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from tests.runners import services

ROOT = Path(__file__).parents[2]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--runners", action="store_true", help="also run on Prism and a job service")
    parser.addoption("--prism", default="build/bin/prism", help="the Prism binary")
    parser.addoption(
        "--job_endpoint",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="also run on this job server, which must run already; can be repeated",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "pipeline_options" in metafunc.fixturenames:
        wanted = metafunc.config.getoption("--runners", default=False)
        endpoints = metafunc.config.getoption("--job_endpoint", default=[])
        names = [*services.IN_PROCESS, *(services.SERVICES if wanted else ()), *endpoints]
        metafunc.parametrize("pipeline_options", names, indirect=True)


@pytest.fixture(scope="session")
def job_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with services.local_job_service(tmp_path_factory.mktemp("job_service")) as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def prism(request: pytest.FixtureRequest) -> Iterator[str]:
    yield str(Path(request.config.getoption("--prism")).resolve())
    services.stop_prism()


@pytest.fixture
def pipeline_options(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> PipelineOptions:
    """Options of one runner; the worker processes that it starts can import the tests."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    if request.param == "prism":
        return services.prism_options(request.getfixturevalue("prism"))
    if request.param == "loopback":
        return services.loopback_options(request.getfixturevalue("job_endpoint"))
    if request.param in services.IN_PROCESS:
        return PipelineOptions.from_dictionary(services.IN_PROCESS[request.param])
    return services.loopback_options(request.param)
