"""Build the request for a job as Dataflow's runner would send it, without network or credentials.

    python dry_run.py FILE OUT     where FILE is the job of the Flex Template

It runs in the environment of the image, where the package is installed and this checkout is not. It
writes what it finds as one JSON object to OUT.
"""

import json
import os
import runpy
import socket
import sys
from typing import Any, NoReturn

IMAGE = "europe-docker.pkg.dev/project/repository/beam-dp:0.1.0"
STAGED = "gs://bucket/temp/pipeline.pb"
WORDS = [
    *("--input", "/data/visits/*.parquet", "--output", "gs://bucket/released.csv", "--overwrite"),
    *("--person", "visitor_id", "--partition", "day", "--public_partitions", "1,2,3"),
    *("--count", "--sum", "spent", "--median", "minutes", "--epsilon", "1", "--quiet"),
    *("--runner", "DataflowRunner", "--project", "some-project", "--region", "europe-west1"),
    *("--temp_location", "gs://bucket/temp", "--sdk_container_image", IMAGE, "--dry_run=true"),
    *("--max_num_workers", "100", "--no_auth", "--show_errors"),
]


def refuse(*_: object) -> NoReturn:
    """Refuse a connection."""
    raise OSError("no network here")


def run(file: str, out: str) -> NoReturn:
    """Run the job's file as the template's launcher does, and end where it would be sent."""
    from apache_beam.runners.dataflow import dataflow_runner

    build = dataflow_runner.DataflowRunner.run_pipeline

    def keep(*given: Any, **named: Any) -> NoReturn:
        told = found(build(*given, **named).job)
        with open(out, "w", encoding="utf-8") as written:
            json.dump(told, written)
        os._exit(0)

    dataflow_runner.DataflowRunner.run_pipeline = keep
    sys.argv = [file, *WORDS]
    runpy.run_path(file, run_name="__main__")
    sys.exit("the job was not sent")


def found(job: Any) -> dict[str, Any]:
    """Return what is said of the request, and of the graph that it stages."""
    from apache_beam.runners.dataflow.internal import apiclient

    graph = job.proto_pipeline
    environment = apiclient.Environment([], job.options, "1", STAGED, graph)
    job.proto.environment = environment.proto
    payloads = [step.spec.payload for step in graph.components.transforms.values()]
    return {
        "request": json.loads(job.json()),
        "graph_bytes": graph.ByteSize(),
        "steps": len(payloads),
        "largest_step_bytes": max(map(len, payloads)),
        "images": sorted({image_of(one) for one in graph.components.environments.values()}),
    }


def image_of(environment: Any) -> str:
    """Return the image in which an environment's steps run."""
    from apache_beam.portability.api import beam_runner_api_pb2

    container = beam_runner_api_pb2.DockerPayload.FromString(environment.payload)
    return str(container.container_image)


if __name__ == "__main__":
    socket.socket.connect = refuse
    socket.getaddrinfo = refuse
    run(*sys.argv[1:])
