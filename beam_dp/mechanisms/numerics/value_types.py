"""The classes of values, asked so that no code of a value or its class runs, nor of a metaclass.

`type(value)` asks nobody. But `type(value) in (int, str)` asks the class of the class, a metaclass,
for its `__eq__`, and a set of types for its `__hash__`: a value in a row may bring its own. So they
are told by their addresses. Only exact types are known: a subclass could bring code of its own.
"""

import datetime
import decimal
import uuid
import zoneinfo
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

_OF_NUMPY = frozenset(np.sctypeDict.values())
NUMPY_INTEGERS = frozenset(
    kind
    for kind in _OF_NUMPY
    if issubclass(kind, np.integer) and not issubclass(kind, np.timedelta64)
)
NUMPY_FLOATS = frozenset(kind for kind in _OF_NUMPY if issubclass(kind, np.floating))
INTEGERS = frozenset({int, *NUMPY_INTEGERS})
FLOATS: frozenset[type] = frozenset({float, *NUMPY_FLOATS})
TEXTS = frozenset({str, np.str_})
TRUTHS = frozenset({bool, np.bool_})
ZONES = frozenset({type(None), datetime.timezone, zoneinfo.ZoneInfo})
_OTHERS = {bytes, np.bytes_, datetime.date, datetime.datetime, decimal.Decimal, Fraction, uuid.UUID}
_KNOWN = {id(kind): kind for kind in {*INTEGERS, *FLOATS, *TEXTS, *TRUTHS, *ZONES, *_OTHERS}}


def of(value: object) -> type:
    """Return the class of a value, if it is one of those known here; `object` for all others."""
    return _KNOWN.get(id(type(value)), object)


def of_all(values: Iterable[object]) -> set[type]:
    """Return `of` of several values, each once."""
    return {_KNOWN.get(address, object) for address in set(map(id, map(type, values)))}
