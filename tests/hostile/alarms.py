"""Objects whose every method records that it was called, and raises: for rows, keys and values.

They are made while the alarm is off, when they are what they are derived from, and given to the
library while it is on.
"""

import contextlib
import datetime
import decimal
import inspect
import itertools
import uuid
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from apache_beam.utils.timestamp import Timestamp

CALLS: list[str] = []
_ON: list[bool] = []
_RAISED = itertools.cycle([RuntimeError, SystemExit, KeyboardInterrupt, GeneratorExit, TypeError])
_TEXT = (
    "eq ne lt le gt ge hash bool len iter next contains getitem missing getattribute getattr repr"
)
_TEXT += (
    " str format bytes int index float complex round trunc floor ceil abs neg pos invert add radd"
)
_TEXT += " sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow and rand or ror"
_TEXT += " reduce reduce_ex getstate copy deepcopy sizeof dir call enter exit reversed length_hint fspath"
_TEXT += " array array_ufunc array_function arrow_array arrow_c_array arrow_c_stream dataframe"
SPECIAL = [f"__{word}__" for word in _TEXT.split()]
PROPERTIES = [
    "id",
    "__class__",
    "__dict__",
    "__array_interface__",
    "__array_struct__",
    "__module__",
]
ORDINARY = "get items keys values as_integer_ratio numerator denominator item tolist dtype shape"
ORDINARY += " equals __arrow_ext_class__ __arrow_ext_scalar_class__ __arrow_ext_serialize__"
ORDINARY += " isoformat tzinfo utcoffset toordinal adjusted is_nan is_finite encode lower as_py"
OF_CLASSES = "eq hash getattribute instancecheck subclasscheck repr str bool len iter or call dir"


@contextlib.contextmanager
def on() -> Iterator[list[str]]:
    """Switch the alarm on; give the names of the methods that were called."""
    CALLS.clear()
    _ON.append(True)
    try:
        yield CALLS
    finally:
        _ON.pop()


def _ring(name: str) -> None:
    CALLS.append(name)
    raise next(_RAISED)("secret")


def _method(name: str, base: type) -> Any:
    def method(*args: Any, **named: Any) -> Any:
        return _ring(name) if _ON else getattr(base, name)(*args, **named)

    return method


def _property(name: str, base: type) -> Any:
    def read(self: Any) -> Any:
        return _ring(name) if _ON else inspect.getattr_static(base, name).__get__(self)

    return property(read)


class Watched(type):
    """A metaclass that records what its classes are asked."""


for _word in OF_CLASSES.split():
    setattr(Watched, f"__{_word}__", _method(f"__{_word}__", type))


def loud(base: type, watched: bool = False) -> Any:
    """Return a class derived from another, with an alarm in every method.

    Args:
        base: what it is derived from.
        watched: whether its metaclass has alarms too.
    """
    space = {name: _method(name, base) for name in (*SPECIAL, *ORDINARY.split())}
    space |= {name: _property(name, base) for name in PROPERTIES}
    return (Watched if watched else type(base))("Loud", (base,), space)


class _Zone(datetime.tzinfo):
    """A time zone."""


def values() -> dict[str, object]:
    """Return values that may stand in a field: none of them is of a type that counts."""
    made: dict[str, tuple[type, tuple[Any, ...]]] = {
        "object": (object, ()),
        "int": (int, (7,)),
        "float": (float, (7.0,)),
        "str": (str, ("good",)),
        "bytes": (bytes, (b"good",)),
        "date": (datetime.date, (2026, 1, 1)),
        "datetime": (datetime.datetime, (2026, 1, 1)),
        "Decimal": (decimal.Decimal, (7,)),
        "Fraction": (Fraction, (7, 2)),
        "UUID": (uuid.UUID, ("0" * 32,)),
        "dict": (dict, ({"person": 1},)),
        "list": (list, ([7],)),
        "tuple": (tuple, ((7,),)),
        "np.int64": (np.int64, (7,)),
        "np.float64": (np.float64, (7,)),
        "np.str_": (np.str_, ("good",)),
        "np.ndarray": (np.ndarray, ((1,),)),
    }
    found: dict[str, object] = {}
    for name, (base, arguments) in made.items():
        # Python asks the classes derived from Fraction whether any number is one of theirs.
        for watched in (False, base is not Fraction):
            found[f"{name}{', watched' * watched}"] = loud(base, watched)(*arguments)
    return found | _filled()


def _filled() -> dict[str, object]:
    """Return values of types that count, filled with what they never hold, or with nothing."""
    half, empty, unknown = Fraction(1, 2), Fraction.__new__(Fraction), uuid.UUID(int=0)
    object.__setattr__(half, "_numerator", loud(int)(1))
    del empty._numerator
    second, named = Timestamp(1), Timestamp(1)
    second._seconds = loud(int)(1)
    vars(named)[key_like("_seconds")] = 1
    object.__setattr__(unknown, "int", loud(int)(1))
    return {
        "a Fraction of alarms": half,
        "a Fraction of nothing": empty,
        "a timestamp of alarms": second,
        "a timestamp with an alarm": named,
        "a timestamp of nothing": Timestamp.__new__(Timestamp),
        "a UUID of alarms": unknown,
        "a UUID of nothing": uuid.UUID.__new__(uuid.UUID),
        "a time of an alarming zone": datetime.datetime(2026, 1, 1, tzinfo=loud(_Zone)()),
        "a time of a watched zone": datetime.datetime(2026, 1, 1, tzinfo=loud(_Zone, True)()),
    }


def key_like(name: str, watched: bool = False) -> object:
    """Return a key with the hash of a text, which is asked whether it is that text."""
    kind = loud(object, watched)
    kind.__hash__ = lambda self: hash(name) if not _ON else _ring("__hash__")
    return kind()
