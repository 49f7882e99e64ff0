"""The metadata of the Flex Template names every option of the job, in Dataflow's own form."""

import json
import re

import pytest

from pipelines import aggregate, template_metadata

FIELDS = {
    "name": str,
    "label": str,
    "helpText": str,
    "isOptional": bool,
    "regexes": list,
    "paramType": str,
}
"""The fields of `ParameterMetadata` in Dataflow's API v1b3 that are used, and their types."""
FOUND = {each["name"]: each for each in template_metadata.metadata()["parameters"]}

GIVEN = {
    "input": "gs://bucket/visits/*.parquet",
    "output": "gs://bucket/released.csv",
    "person": "visitor_id",
    "partition": "day",
    "public_partitions": "1,2,3",
    "count": "true",
    "sum": "spent",
    "epsilon": "0.5",
    "delta": "1e-6",
    "bounds": "partitions=auto,rows=7",
    "quotes": "false",
    "clip": "sum_spent=100",
}


def test_every_option_is_there_but_for_those_of_one_machine() -> None:
    flags = {flag for action in aggregate.parser()._actions for flag in action.option_strings}
    left_out = {flag.removeprefix("--") for flag in flags if flag.startswith("--")} - set(FOUND)
    assert left_out == {"help", "ledger", "total_epsilon", "total_rho", "total_delta", "planned"}


@pytest.mark.parametrize("name", FOUND)
def test_it_is_what_dataflow_takes(name: str) -> None:
    parameter = FOUND[name]
    assert {field: type(value) for field, value in parameter.items()} == FIELDS
    assert re.fullmatch("[a-zA-Z][a-zA-Z0-9_]*", name)
    assert parameter["helpText"] and parameter["label"] and parameter["paramType"] == "TEXT"
    assert all(re.compile(each) for each in parameter["regexes"])


def test_only_what_every_call_needs_is_required() -> None:
    assert [name for name in FOUND if not FOUND[name]["isOptional"]] == [
        *template_metadata.REQUIRED
    ]


def test_a_call_that_is_described_is_one_that_the_job_takes() -> None:
    for name, value in GIVEN.items():
        assert all(re.search(each, value) for each in FOUND[name]["regexes"]), name
    words = [f"--{name}={value}" for name, value in GIVEN.items()]
    options, _ = aggregate.parser().read(words)
    assert len(options.metrics) == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [("count", "yes"), ("epsilon", "one"), ("bounds", "rows=-3"), ("quotes", "no"), ("sum", " ")],
)
def test_a_wrong_value_is_refused_before_the_launch(name: str, value: str) -> None:
    assert not all(re.search(each, value) for each in FOUND[name]["regexes"])


def test_it_is_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert template_metadata.main([]) == 0
    assert json.loads(capsys.readouterr().out) == template_metadata.metadata()
