"""Tell the classes of values without running code of a value, its class or its metaclass.

`type(value)` runs no code. But `type(value) in (int, str)` calls `__eq__` of the class of the class
(the metaclass), and a set of types calls its `__hash__`: a value in a row may bring a metaclass
along. So classes are told by their addresses. Only exact types are known: a subclass could bring
code along.
"""

import datetime
import decimal
import uuid
import zoneinfo
from collections.abc import Sequence
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
_FEW = 4
_KNOWN = {id(kind): kind for kind in {*INTEGERS, *FLOATS, *TEXTS, *TRUTHS, *ZONES, *_OTHERS}}


def of(value: object) -> type:
    """Return the class of a value, if it is one of the classes known here; else `object`."""
    return _KNOWN.get(id(type(value)), object)


def of_all(values: Sequence[object]) -> set[type]:
    """Return the set of `of(value)` over the values."""
    kinds: list[type] = []
    # A comparison by identity takes a quarter of the time of an address in a set; types are few.
    while values and len(kinds) < _FEW:
        kind = type(values[0])
        kinds.append(kind)
        values = [value for value in values if type(value) is not kind]
    addresses = {*map(id, kinds), *map(id, map(type, values))}
    return {_KNOWN.get(address, object) for address in addresses}


def is_utf8(text: str) -> bool:
    """Return whether a text can be written: a lone surrogate, half a character, cannot."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
