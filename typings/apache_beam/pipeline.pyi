from typing import Any, TypeVar

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import PBegin, PCollection
from apache_beam.runners.runner import PipelineResult, PipelineRunner
from apache_beam.transforms.ptransform import PTransform

_Out = TypeVar("_Out")

class Pipeline:
    runner: PipelineRunner
    @property
    def options(self) -> PipelineOptions: ...
    def __init__(
        self,
        runner: str | PipelineRunner | None = ...,
        options: PipelineOptions | None = ...,
    ) -> None: ...
    def __or__(self, right: PTransform[PBegin, _Out]) -> _Out: ...
    def run(self) -> PipelineResult: ...

class AppliedPTransform:
    full_label: str
    parent: AppliedPTransform | None
    transform: PTransform[Any, Any] | None
    @property
    def inputs(self) -> tuple[PCollection[Any] | PBegin, ...]: ...
