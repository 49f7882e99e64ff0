"""Real servers of objects on loopback: versitygw for S3, fake-gcs-server for Google Cloud Storage."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clusters import processes
from tests.stores.servers import S3, Google, Server


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--stores", metavar="FOLDER", help="where versitygw and fake-gcs-server are")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave these tests to `--stores`: they need programs that Go builds."""
    is_test = collection_path.name.startswith("test_")
    return True if is_test and not config.getoption("--stores", default=None) else None


@pytest.fixture(params=[S3, Google])
def server(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    """A server with a bucket `shop`, which the clients of this process ask."""
    programs = Path(request.config.getoption("--stores")).resolve()
    with processes.running(tmp_path) as started:
        made = request.param(started, programs, tmp_path / "data")
        for name, value in made.environment.items():
            monkeypatch.setitem(os.environ, name, value)
        made.create_bucket()
        yield made
