from typing import Any

from apache_beam.pvalue import PCollection
from apache_beam.transforms.ptransform import PTransform

class ToList(PTransform[Any, Any]):
    def __ror__(self, left: PCollection[Any]) -> PCollection[list[Any]]: ...
