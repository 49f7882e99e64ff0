"""Turn values that are only compared into codes, such as the items that `DistinctCount` counts.

Everything that can be an id can be an item, by the same canonical form (`ids`). All finite floats
can be items too: a whole float is the integer (29.0 and 29 are one item), another float is the
double (float32 is widened first; -0.0 is 0). Null, NaN, infinities, bytes, timestamps, lists
and everything else are no items: the row counts as a row, but has no item.
"""

import contextlib
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beam_dp.mechanisms.bounding.table import two_words
from beam_dp.mechanisms.numerics import integers
from beam_dp.mechanisms.summaries import owner_lines
from beam_dp.transforms.columns import ids, plain_values

_FLOAT = np.uint64(6)  # the second word: integers have 0, dates 4, texts odd numbers
_WHOLE = float(1 << 63)
_TRUTHS = {"true": 1, "false": 0}
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]{0,30})\.[0-9]{1,30}")
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_SHORT = 10**15


def codes(column: ids.Cells, key: bytes) -> np.ndarray:
    """Return the code of each item of a column; `integers.LOWEST` where there is no item.

    Args:
        column: an Arrow column of a type that can hold ids, or Python values.
        key: the run's key.
    """
    if isinstance(column, list):
        typed = ids.to_array(column)
        if typed is None:
            return _codes_of_mixed(column, key)
        column = typed
    if pa.types.is_dictionary(column.type) and pa.types.is_floating(column.type.value_type):
        column = column.dictionary_decode()
    if not pa.types.is_floating(column.type):
        return coded(*ids.identify(column, key), key)
    floats = pc.fill_null(column.cast(pa.float64()), np.nan).to_numpy(zero_copy_only=False)
    return coded(*_identify_floats(floats), key)


def _codes_of_mixed(values: list[object], key: bytes) -> np.ndarray:
    """Return the codes of values of several types: of the floats, and of all others."""
    floats = [float(value) if ids.is_float(value) else None for value in values]
    others = [None if ids.is_float(value) else value for value in values]
    of_floats = coded(*_identify_floats(np.array(floats, np.float64)), key)
    return np.asarray(np.maximum(of_floats, coded(*ids.identify(others, key), key)))


def equal(found: np.ndarray, value: object, key: bytes) -> np.ndarray:
    """Return 1 where a code is that of `value`, else 0; `integers.LOWEST` where there is no code.

    Args:
        found: the codes of a column.
        value: a value; each of its `spellings` counts as equal.
        key: the run's key.
    """
    same = np.isin(found, codes(spellings(value), key)).astype(np.int64)
    return np.where(found == integers.LOWEST, integers.LOWEST, same)


def spellings(value: object) -> list[object]:
    """Return a value in all the forms that it has in files whose cells are text.

    1 is also "1.0" (as integers are written among missing values), "true", "True" and "TRUE".
    """
    number = _number(value)
    if number is None:
        return [value]
    truths = [word for word, truth in _TRUTHS.items() if truth == number]
    words = [form for word in truths for form in (word, word.capitalize(), word.upper())]
    if abs(number) < _SHORT:  # larger floats are written as powers
        words.append(str(float(number)))
    return [value, number, *words]


def _number(value: object) -> int | float | None:
    """Return the number that a value is or spells (2.0 is 2); None for other values."""
    if type(value) is str:
        if value.lower() in _TRUTHS:
            return _TRUTHS[value.lower()]
        if _DECIMAL.fullmatch(value):
            return _number(float(value))
        return int(value) if _INTEGER.fullmatch(value) else None
    if type(value) is float and value.is_integer():
        return int(value)
    if type(value) is float and math.isfinite(value):
        return value
    return int(value) if type(value) is int or type(value) is bool else None


def judged(column: ids.Cells, judge: Callable[[Any], bool]) -> np.ndarray:
    """Return 1 for the values that a user's function is true for, 0 for others.

    None and NaN are missing values: they have no code, and are not passed to the function. Of an
    Arrow column each different value is passed once.
    """
    if isinstance(column, list):
        verdicts = [integers.LOWEST if _is_missing(v) else _truth(judge, v) for v in column]
        return np.array(verdicts, np.int64)
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float64())
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    of_values = judged([*plain_values.to_list(column.dictionary), None], judge)
    indexes = pc.fill_null(column.indices.cast(pa.int64()), len(of_values) - 1)
    return np.asarray(of_values[indexes.to_numpy(zero_copy_only=False)])


def _is_missing(value: object) -> bool:
    return value is None or ids.is_float(value) and math.isnan(value)


def _truth(judge: Callable[[Any], bool], value: object) -> bool:
    # A boundary to a user's function on private data: nothing of an error is kept.
    with contextlib.suppress(BaseException):
        return bool(judge(value))
    return False


def _identify_floats(floats: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the identities of doubles, and which doubles have one."""
    finite = np.isfinite(floats)
    floats = np.where(finite, floats, 0.0) + 0.0  # never -0.0
    whole = (floats == np.rint(floats)) & (floats >= -_WHOLE) & (floats < _WHOLE)
    integers = np.where(whole, floats, 0.0).astype(np.int64).view(np.uint64)
    bits = np.ascontiguousarray(floats).view(np.uint64)
    words = [np.where(whole, integers, bits), np.where(whole, np.uint64(0), _FLOAT)]
    return np.stack(words), finite


def coded(identity: np.ndarray, valid: np.ndarray, key: bytes) -> np.ndarray:
    """Return the codes of identities; `integers.LOWEST` where there is none."""
    return np.where(valid, owner_lines.code(two_words(identity), key), integers.LOWEST)
