import argparse
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

_Options = TypeVar("_Options", bound=PipelineOptions)

class PipelineOptions:
    def __init__(self, flags: Sequence[str] | None = ...) -> None: ...
    def get_all_options(
        self, *, add_extra_args_fn: Callable[[argparse.ArgumentParser], object] | None = ...
    ) -> dict[str, Any]: ...
    def view_as(self, cls: type[_Options]) -> _Options: ...

class StandardOptions(PipelineOptions):
    streaming: bool

class GoogleCloudOptions(PipelineOptions):
    temp_location: str | None
    template_location: str | None

class DirectOptions(PipelineOptions):
    direct_num_workers: int | None

class FlinkRunnerOptions(PipelineOptions):
    parallelism: int | None

class PortableOptions(PipelineOptions):
    job_endpoint: str | None
    job_server_timeout: int

class WorkerOptions(PipelineOptions):
    num_workers: int | None
    max_num_workers: int | None

class DebugOptions(PipelineOptions):
    experiments: list[str] | None
    def add_experiment(self, experiment: str) -> None: ...
