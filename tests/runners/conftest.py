"""The fixture `pipeline_options`: one test, every runner; `job_options` for tests of whole jobs.

In process by default; with `--runners` also on Prism (`--prism` names the binary) and on
Beam's local job service (`make test-runners` gives both), and with `--job_endpoint HOST:PORT`,
once for each, on job servers that run: of Flink or of Spark. `make test-flink` and `make test-spark`
start these, name their Python workers by `--worker` and run nothing else (`--only_endpoints`).
In process, whole jobs run on one runner only: `tests/pipelines` tests them there. Worker processes
take seconds to start, so most tests with them are audits.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from tests.clusters import cluster
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
    parser.addoption(
        "--worker",
        metavar="PROGRAM",
        help="what starts a Python worker for the job servers; without it they work in this process",
    )
    parser.addoption("--only_endpoints", action="store_true", help="run on the job servers only")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the test of Java to `--runners`: it needs Java, Maven, a network and Prism."""
    is_java = collection_path.name == "test_java.py"
    return True if is_java and not config.getoption("--runners", default=False) else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    in_process = {
        "pipeline_options": ["bundle_repeat", *services.OTHERS],
        "job_options": ["in_memory"],
    }
    for fixture, own in in_process.items():
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, cases(metafunc, own), indirect=True)


def cases(metafunc: pytest.Metafunc, in_process: Sequence[str]) -> list[Any]:
    """Return the runners of a test: `make test` runs one test in a worker process."""
    names = asked_for(metafunc.config, in_process)
    if metafunc.config.getoption("--runners", default=False):
        return names
    of_all = metafunc.function.__name__ == "test_bounded_data_is_the_same_bit_for_bit"
    audits = services.OTHERS[of_all:]
    marks = {name: pytest.mark.audit for name in audits}
    return [pytest.param(name, marks=marks.get(name, ())) for name in names]


def asked_for(config: pytest.Config, in_process: Sequence[str]) -> list[str]:
    """Return the names of the runners that the command line asks for."""
    endpoints = config.getoption("--job_endpoint", default=[])
    if config.getoption("--only_endpoints", default=False):
        return list(endpoints)
    wanted = config.getoption("--runners", default=False)
    return [*in_process, *(services.SERVICES if wanted else ()), *endpoints]


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
    return options(request, monkeypatch)


@pytest.fixture
def job_options(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> PipelineOptions:
    """The same for a whole job."""
    return options(request, monkeypatch)


def options(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> PipelineOptions:
    """Return the options of the runner that the parameter names."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    if request.param == "prism":
        return services.prism_options(request.getfixturevalue("prism"))
    if request.param == "loopback":
        return services.loopback_options(request.getfixturevalue("job_endpoint"))
    if request.param in services.IN_PROCESS:
        return PipelineOptions.from_dictionary(services.IN_PROCESS[request.param])
    worker = request.config.getoption("--worker")
    if worker is not None:
        named = cluster.options_of(request.param, worker)
        folder = str(request.getfixturevalue("tmp_path") / "draws")
        return PipelineOptions.from_dictionary({**named, "draws_folder": folder})
    return services.loopback_options(request.param)
