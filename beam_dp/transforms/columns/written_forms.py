"""How keys and cells are written: a key in another form than all cells equals none of them.

Cells are compared with keys by a canonical form (`ids`): "1" is the integer 1, a date is its ISO
text. "1.0", "01", "24.11.2026" and "True" are other texts than 1, 2026-11-24 and "true". A release
by such keys would be noise around 0, and look right.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from beam_dp.mechanisms.numerics import value_types
from beam_dp.transforms.columns import ids

WHOLE, DATE, TRUTH, TEXT = "whole numbers", "dates like 2026-11-22", "true or false", "other text"
TRUTHS = ("true", "false")
NO_NUMBERS = (
    "hold numbers, not true and false: a share of rows is a ratio, in SQL avg (CAST (x AS BOOLEAN))"
)
"""The rule for a column of numbers that has these."""
_FORMS = {
    WHOLE: "^(0|-?[1-9][0-9]{0,37})$",
    DATE: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "numbers like 1.0": "^[+-]?[0-9]+[.,][0-9]+$",
    TRUTH: "^(true|false)$",
    "True or False": "^(True|False)$",
    "TRUE or FALSE": "^(TRUE|FALSE)$",
}
"""Each form but that of other text, and its pattern."""
_JSON = {bool: "booleans", int: "numbers", float: "numbers", str: "texts"}
JSON_TYPES = frozenset(_JSON.values())
"""The types of values of JSON, which stand beside their forms."""
_MOST = 10_000
"""So many different texts say how a column is written."""


def are(texts: pa.Array, form: str) -> pa.Array:
    """Return which texts have a form."""
    return pc.match_substring_regex(texts, _FORMS[form])


def of_texts(texts: pa.Array) -> frozenset[str]:
    """Return the forms of some texts; of nulls there is none."""
    left = pc.drop_null(pc.unique(texts))[:_MOST]
    found = set()
    for form in _FORMS:
        same = are(left, form)
        found |= {form} if pc.any(same).as_py() else set()
        left = left.filter(pc.invert(same))
    return frozenset(found | ({TEXT} if len(left) else set()))


def of_values(values: Sequence[object]) -> frozenset[str]:
    """Return the forms of values of JSON, and their types; a boolean is 1 or 0, or true or false."""
    types = frozenset(map(type, values))
    texts = {value for value in values if type(value) is str}
    found = {_JSON[kind] for kind in types & _JSON.keys()}
    if types & {int, bool} or any(type(value) is float and value.is_integer() for value in values):
        found.add(WHOLE)
    if bool in types:
        found.add(TRUTH)
    known = [text for text in texts if value_types.is_utf8(text)]
    return of_texts(pa.array(known, pa.string())) | found


def of_keys(keys: pa.Array) -> frozenset[str]:
    """Return the forms of public keys of one type."""
    keys = keys.cast(pa.int8()) if pa.types.is_boolean(keys.type) else keys
    return of_texts(keys.cast(pa.string()))


def unlike(keys: pa.Array, kind: pa.DataType) -> object:
    """Return the first public key that no value of a type equals; None where there is none.

    Args:
        keys: the keys, of one type.
        kind: the type of a column that can hold keys.
    """
    if ids.is_text(kind) or pa.types.is_null(kind):
        return None
    plain = keys.cast(pa.int8()) if pa.types.is_boolean(keys.type) else keys
    is_number = not (pa.types.is_date(kind) or pa.types.is_boolean(kind))
    texts = plain if is_number and pa.types.is_integer(plain.type) else plain.cast(pa.string())
    if pa.types.is_date(kind):
        same = are(texts, DATE)
        days = pc.strptime(texts, "%Y-%m-%d", "s", error_is_null=True).cast(pa.date32())
        fits = pc.and_(same, pc.fill_null(pc.equal(days.cast(pa.string()), texts), False))
    elif pa.types.is_boolean(kind):
        fits = pc.is_in(texts, pa.array(["0", "1", *TRUTHS]))
    else:
        if texts is not plain:
            same = are(texts, WHOLE)
            texts = pc.if_else(same, texts, None)
        numbers = texts.cast(pa.decimal128(38)).cast(pa.decimal256(40))
        least, most = _ends(kind)
        inside = pc.and_(pc.greater_equal(numbers, least), pc.less_equal(numbers, most))
        fits = pc.fill_null(inside, False)
    wrong = keys.filter(pc.invert(fits))
    return wrong[0].as_py() if len(wrong) else None


def needed(kind: pa.DataType) -> str:
    """Return the form of keys that values of a type can equal."""
    if pa.types.is_date(kind):
        return DATE
    return TRUTH if pa.types.is_boolean(kind) else f"{WHOLE} that it can hold"


def _ends(kind: pa.DataType) -> tuple[pa.Scalar, pa.Scalar]:
    """Return the least and the largest whole number that a type of numbers holds as an id."""
    if pa.types.is_integer(kind):
        signed = pa.types.is_signed_integer(kind)
        most = (1 << (kind.bit_width - signed)) - 1
        least = -most - 1 if signed else 0
    else:
        most = ids.EXACT[kind.bit_width // 8] if pa.types.is_floating(kind) else 10**38
        most -= 1
        least = -most
    return pa.scalar(least, pa.decimal256(40)), pa.scalar(most, pa.decimal256(40))
