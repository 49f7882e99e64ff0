from collections.abc import Callable, Iterable
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, overload

from apache_beam.pvalue import DoOutputsTuple, PBegin, PCollection
from apache_beam.transforms.ptransform import PTransform
from apache_beam.transforms.trigger import TriggerFn
from apache_beam.transforms.window import WindowFn

_A = TypeVar("_A")
_B = TypeVar("_B")
_C = TypeVar("_C")
_K = TypeVar("_K")
_V = TypeVar("_V")
_P = ParamSpec("_P")
_A_contra = TypeVar("_A_contra", contravariant=True)
_B_co = TypeVar("_B_co", covariant=True)
_Function = TypeVar("_Function", bound=Callable[..., Any])

class Windowing:
    windowfn: WindowFn
    triggerfn: TriggerFn
    accumulation_mode: int
    timestamp_combiner: int

class DoFn:
    def setup(self) -> None: ...
    def start_bundle(self) -> None: ...
    def process(self, element: Any, *args: Any, **kwargs: Any) -> Any: ...
    def finish_bundle(self) -> Any: ...
    def infer_output_type(self, input_type: object) -> object: ...
    @staticmethod
    def yields_elements(fn: _Function) -> _Function: ...

# What a DoFn takes and gives, as its own `process` says.
class _Processes(Protocol[_A_contra, _B_co]):
    def process(self, element: _A_contra, /) -> Iterable[_B_co]: ...

class ParDo(PTransform[PCollection[_A], PCollection[_B]]):
    def __init__(self, fn: _Processes[_A, _B], *args: object, **kwargs: object) -> None: ...
    @overload
    def with_output_types(self, type_hint: type[_C]) -> ParDo[_A, _C]: ...
    @overload
    def with_output_types(self, type_hint: object) -> Self: ...
    def with_outputs(
        self, *tags: str, main: str | None = ...
    ) -> PTransform[PCollection[_A], DoOutputsTuple[_B]]: ...

def Map(
    fn: Callable[Concatenate[_A, _P], _B], *args: _P.args, **kwargs: _P.kwargs
) -> ParDo[_A, _B]: ...
def MapTuple(
    fn: Callable[Concatenate[_K, _V, _P], _B], *args: _P.args, **kwargs: _P.kwargs
) -> ParDo[tuple[_K, _V], _B]: ...
def FlatMap(
    fn: Callable[Concatenate[_A, _P], Iterable[_B]], *args: _P.args, **kwargs: _P.kwargs
) -> ParDo[_A, _B]: ...
def FlatMapTuple(
    fn: Callable[Concatenate[_K, _V, _P], Iterable[_B]], *args: _P.args, **kwargs: _P.kwargs
) -> ParDo[tuple[_K, _V], _B]: ...

# What the following steps give depends on what stands left of them, so each has a `|` of its own.
class GroupByKey(PTransform[Any, Any]):
    def __ror__(self, left: PCollection[tuple[_K, _V]]) -> PCollection[tuple[_K, Iterable[_V]]]: ...

class CombinePerKey(PTransform[Any, Any]):
    def __init__(self, fn: Callable[..., object]) -> None: ...
    def __ror__(self, left: PCollection[tuple[_K, _V]]) -> PCollection[tuple[_K, _V]]: ...

class Flatten(PTransform[Any, Any]):
    def __ror__(self, left: Iterable[PCollection[_A]]) -> PCollection[_A]: ...

class Impulse(PTransform[PBegin, PCollection[bytes]]): ...

class Create(PTransform[PBegin, PCollection[_A]]):
    def __init__(self, values: Iterable[_A]) -> None: ...
