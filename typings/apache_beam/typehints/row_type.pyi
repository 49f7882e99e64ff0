from collections.abc import Sequence
from typing import Any

class RowTypeConstraint:
    _fields: Sequence[tuple[str, Any]]
    @property
    def user_type(self) -> type | None: ...
    @classmethod
    def from_user_type(cls, user_type: object) -> RowTypeConstraint | None: ...
    @classmethod
    def from_fields(cls, fields: Sequence[tuple[str, Any]]) -> RowTypeConstraint: ...

class GeneratedClassRowTypeConstraint(RowTypeConstraint):
    def __init__(self, fields: Sequence[tuple[str, Any]]) -> None: ...
