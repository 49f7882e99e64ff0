from collections.abc import Callable
from typing import Any, Generic, TypeVar

from apache_beam.pvalue import PCollection
from apache_beam.transforms.ptransform import PTransform

_Row = TypeVar("_Row")

class Top:
    class Of(PTransform[PCollection[_Row], PCollection[list[_Row]]], Generic[_Row]):
        def __init__(self, n: int, key: Callable[[_Row], Any], reverse: bool) -> None: ...
        def without_defaults(self) -> Top.Of[_Row]: ...
