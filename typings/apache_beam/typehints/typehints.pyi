from collections.abc import Iterator
from typing import Any as Any

class UnionConstraint:
    def inner_types(self) -> Iterator[Any]: ...

class TupleConstraint: ...
