from typing import Any, TypeVar

from apache_beam.pvalue import PCollection
from apache_beam.transforms.ptransform import PTransform

_A = TypeVar("_A")

class Reshuffle(PTransform[Any, Any]):
    def __ror__(self, left: PCollection[_A]) -> PCollection[_A]: ...
