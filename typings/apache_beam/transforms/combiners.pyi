from collections.abc import Callable
from typing import Any, Generic, TypeVar

from apache_beam.pvalue import PCollection
from apache_beam.transforms.ptransform import PTransform

T = TypeVar("T")

class Top:
    class Of(PTransform[PCollection[T], PCollection[list[T]]], Generic[T]):
        def __init__(self, n: int, key: Callable[[T], Any], reverse: bool) -> None: ...
        def without_defaults(self) -> Top.Of[T]: ...
