from collections.abc import Sequence
from typing import Any, TypeVar

_Options = TypeVar("_Options", bound=PipelineOptions)

class PipelineOptions:
    def __init__(self, flags: Sequence[str] | None = ...) -> None: ...
    def get_all_options(self) -> dict[str, Any]: ...
    def view_as(self, cls: type[_Options]) -> _Options: ...

class StandardOptions(PipelineOptions):
    streaming: bool

class GoogleCloudOptions(PipelineOptions):
    temp_location: str | None
    template_location: str | None
