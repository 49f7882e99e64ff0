"""Run one Python worker of a job, as Beam's container would: `python -m tests.clusters.worker --id=...`.

The TaskManager or the executor starts it, asks it for work, and ends it with itself.
"""

import argparse
import os
import sys
from typing import Any

import grpc
from apache_beam.portability.api import beam_provision_api_pb2, beam_provision_api_pb2_grpc
from apache_beam.runners.worker import sdk_worker_main
from google.protobuf import json_format, text_format


def provision(endpoint: str, worker: str) -> Any:
    """Return what the runner says of the job: its options, and where to ask for work."""
    with grpc.insecure_channel(endpoint) as channel:
        stub = beam_provision_api_pb2_grpc.ProvisionServiceStub(channel)
        request = beam_provision_api_pb2.GetProvisionInfoRequest()
        return stub.GetProvisionInfo(request, metadata=[("worker_id", worker)]).info


def main(arguments: list[str]) -> None:
    """Work until the runner ends the connection."""
    parser = argparse.ArgumentParser(prog="python -m tests.clusters.worker")
    parser.add_argument("--id", required=True)
    parser.add_argument("--provision_endpoint", required=True)
    given, _ = parser.parse_known_args(arguments)
    info = provision(given.provision_endpoint, given.id)
    os.environ["WORKER_ID"] = given.id
    os.environ["PIPELINE_OPTIONS"] = json_format.MessageToJson(info.pipeline_options)
    for name, endpoint in [("CONTROL", info.control_endpoint), ("LOGGING", info.logging_endpoint)]:
        descriptor = text_format.MessageToString(endpoint, as_one_line=True)
        os.environ[f"{name}_API_SERVICE_DESCRIPTOR"] = descriptor
    sdk_worker_main.main([])


if __name__ == "__main__":
    main(sys.argv[1:])
