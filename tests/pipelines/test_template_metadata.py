"""The metadata of the Flex Template names every option of the job, in Dataflow's own form."""

import re

from pipelines import aggregate, template_metadata

FIELDS = {"name": str, "label": str, "helpText": str, "isOptional": bool, "paramType": str}
"""The fields of `ParameterMetadata` in Dataflow's API v1b3 that are used, and their types."""
FOUND = {each["name"]: each for each in template_metadata.metadata()["parameters"]}
GIVEN = {
    "config": "gs://bucket/release.yaml",
    "input": "gs://bucket/visits/*.parquet",
    "count": "true",
    "sum": "spent",
    "epsilon": "0.5",
    "bounds": "partitions=auto,rows=7",
    "clip": "sum_spent=100",
}


def test_every_option_is_there_but_for_those_of_one_machine() -> None:
    flags = {flag for action in aggregate.parser()._actions for flag in action.option_strings}
    left_out = {flag.removeprefix("--") for flag in flags if flag.startswith("--")} - set(FOUND)
    assert left_out == {"help", "version", "ledger", "total_epsilon", "total_delta"}


def test_it_is_what_dataflow_takes() -> None:
    for name, parameter in FOUND.items():
        assert {field: type(value) for field, value in parameter.items()} == FIELDS
        assert re.fullmatch("[a-zA-Z][a-zA-Z0-9_]*", name)
        assert parameter["helpText"] and parameter["label"] and parameter["paramType"] == "TEXT"


def test_a_call_that_is_described_is_one_that_the_job_takes() -> None:
    assert GIVEN.keys() <= FOUND.keys()
    options, _ = aggregate.parser().read([f"--{name}={value}" for name, value in GIVEN.items()])
    assert len(options.metrics) == 2
