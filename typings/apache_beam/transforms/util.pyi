from typing import Any, Generic, TypeVar

from apache_beam.pvalue import PCollection
from apache_beam.transforms.ptransform import PTransform

_A = TypeVar("_A")
_K = TypeVar("_K")
_V = TypeVar("_V")

class Reshuffle(PTransform[Any, Any]):
    def __ror__(self, left: PCollection[_A]) -> PCollection[_A]: ...

def WithKeys(k: _K) -> _WithKeys[_K]: ...

class _WithKeys(PTransform[Any, Any], Generic[_K]):
    def __ror__(self, left: PCollection[_V]) -> PCollection[tuple[_K, _V]]: ...
