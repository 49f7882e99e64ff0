"""The expansion service offers one transform, and takes every cluster for one that may restart."""

from collections.abc import Callable, Iterator

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that
from apache_beam.transforms.fully_qualified_named_transform import FullyQualifiedNamedTransform

from pipelines import expansion_service
from tests.runners import services

STATEMENT = "SELECT day, count(*) AS visits FROM rows GROUP BY day"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with services.expansion_service("--environment_type", "beam:env:embedded_python:v1") as found:
        yield found


def external(constructor: str, address: str, **named: object) -> beam.ExternalTransform:
    """Return a transform of the service, as programs in other languages ask for it."""
    asked = FullyQualifiedNamedTransform(constructor, (), named)
    urn, payload = asked.to_runner_api_parameter(None)
    return beam.ExternalTransform(urn, payload.SerializeToString(), address)


def rows() -> list[beam.Row]:
    return [beam.Row(person=person, day=day) for person in range(500) for day in (1, 2)]


def test_a_select_is_released_for_another_program(address: str) -> None:
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


def test_nothing_else_is_offered(address: str) -> None:
    pipeline = beam.Pipeline(runner="FnApiRunner")
    with pytest.raises(RuntimeError, match="not allowed by filter"):
        _ = pipeline | beam.Create(rows()) | external("beam_dp.release", address, rows=1)


def test_the_service_asks_what_a_cluster_does_that_begins_again(
    refused: Callable[..., str],
) -> None:
    said = refused(expansion_service, "--port", "1")
    assert "must have --draws_folder FOLDER, or --cluster_never_restarts" in said
    assert expansion_service.options_of(["--draws_folder", "/d"])[-1] == expansion_service.UNKNOWN
