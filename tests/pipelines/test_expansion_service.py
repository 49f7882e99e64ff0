"""The expansion service offers one transform, and takes every cluster for one that may restart."""

import socket
import threading
import time
from collections.abc import Iterator
from unittest import mock

import apache_beam as beam
import pytest
from apache_beam.runners.portability import expansion_service_main
from apache_beam.testing.util import assert_that
from apache_beam.transforms.fully_qualified_named_transform import FullyQualifiedNamedTransform

from pipelines import expansion_service

STATEMENT = "SELECT day, count(*) AS visits FROM rows GROUP BY day"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The service, in a thread of this process, where no signal ends it."""
    end = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    words = ["--port", port, "--cluster_never_restarts"]
    words += ["--environment_type", "beam:env:embedded_python:v1"]
    with mock.patch.object(expansion_service_main, "signal") as signals:
        signals.pause = end.wait
        served = threading.Thread(target=expansion_service.main, args=[words])
        served.start()
        while not signals.signal.called:
            time.sleep(0.01)
        yield f"localhost:{port}"
        signals.signal.call_args.args[1](None, None)
        end.set()
        served.join()


def external(constructor: str, address: str, **named: object) -> beam.ExternalTransform:
    """Return a transform of the service, as programs in other languages ask for it."""
    asked = FullyQualifiedNamedTransform(constructor, (), named)
    urn, payload = asked.to_runner_api_parameter(None)
    return beam.ExternalTransform(urn, payload.SerializeToString(), address)


def rows() -> list[beam.Row]:
    return [beam.Row(person=person, day=day) for person in range(500) for day in (1, 2)]


def test_a_select_is_released_for_another_program(address):
    """The noise of either number is above 100 with a chance below 1e-60."""
    budget = beam.Row(epsilon=10.0, delta=1e-6)
    ask = external(
        expansion_service.OFFERED, address, person="person", select=STATEMENT, budget=budget
    )

    def near(found: list[beam.Row]) -> None:
        assert [row.day for row in sorted(found)] == ["1", "2"]
        assert all(abs(row.visits - 500) < 100 and row.visits_low <= row.visits for row in found)

    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        assert_that(pipeline | beam.Create(rows()) | ask, near)


def test_nothing_else_is_offered(address):
    pipeline = beam.Pipeline(runner="FnApiRunner")
    with pytest.raises(RuntimeError, match="not allowed by filter"):
        _ = pipeline | beam.Create(rows()) | external("beam_dp.release", address, rows=1)


def test_the_service_asks_what_a_cluster_does_that_begins_again(refused):
    said = refused(expansion_service, "--port", "1")
    assert "must have --draws_folder FOLDER, or --cluster_never_restarts" in said
    assert expansion_service.options_of(["--draws_folder", "/d"])[-1] == expansion_service.UNKNOWN
