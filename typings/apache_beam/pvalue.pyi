from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from apache_beam.pipeline import AppliedPTransform, Pipeline
from apache_beam.transforms.core import Windowing

_T = TypeVar("_T")
_Tag = TypeVar("_Tag")
_T_co = TypeVar("_T_co", covariant=True)

class PValue:
    pipeline: Pipeline

# `collection | step` is typed by the step: see `PTransform.__ror__`.
class PCollection(PValue, Generic[_T_co]):
    element_type: object
    is_bounded: bool
    producer: AppliedPTransform
    @property
    def windowing(self) -> Windowing: ...

class PBegin(PValue): ...

class DoOutputsTuple(Generic[_T]):
    def __getitem__(self, tag: int | str | None) -> PCollection[_T]: ...
    def __getattr__(self, tag: str) -> PCollection[_T]: ...

class TaggedOutput(Generic[_Tag, _T]):
    tag: _Tag
    value: _T
    def __init__(self, tag: _Tag, value: _T) -> None: ...

class Row:
    def __init__(self, **kwargs: object) -> None: ...
    def as_dict(self) -> dict[str, Any]: ...
    def __getattr__(self, name: str) -> Any: ...  # a field

class AsSingleton:
    def __init__(self, pcoll: PCollection[object]) -> None: ...

# To `Map` it is what the function sees in its place.
def AsIter(pcoll: PCollection[_T]) -> Iterable[_T]: ...
