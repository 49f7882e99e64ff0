"""One released number as a reader sees it: rounded to what its noise allows, with its interval.

*Rounding.* Let w be the length of the interval. All three numbers are shown to two digits beyond
the first digit of w: of 8,412.37 between 7,900.2 and 9,300.8, where w is 1,400.6, to tens. Further
digits are noise. The ends are rounded outwards, so that the shown interval holds the exact one.
Where an end is not known, as for quantiles, four digits of the number are shown at most.

*Text.* Keys can be anything that people wrote. What would move a terminal's cursor, end a line or
turn the direction of writing is shown by its number, as Python writes it: `\\x1b`.
"""

import dataclasses
import decimal
import functools
import math
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

from beam_dp.text.text_tables import width
from beam_dp.transforms.suppress_unreliable import doubtful

UNKNOWN = "?"
MISSING = "-"
MARK = "*"
_BEYOND = 2
_DIGITS = 4
_LARGE, _FINE = 15, 9  # powers of ten from which, and down to which, digits are written out
_HIDDEN = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")
_MORE = ".."


@dataclasses.dataclass(frozen=True)
class ShownNumber:
    """A released number, and what is known of the truth.

    Attributes:
        value: the number; None where there is none.
        low: the lower end of the interval of the truth; None where nothing is known below.
        high: the upper end; None where nothing is known above.
        rank: for a quantile, so many people its rank may be off (infinite: nothing is known);
            None for a number with an interval.
        whole: whether it counts something.
        beyond: for a largest or smallest number by ranks, how many people it may pass over; else
            None. Its interval has an end where these are few beside all.
        share: whether it is from 0 to 1, where a small number is as good as a large one.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    rank: float | None = None
    whole: bool = False
    beyond: int | None = None
    share: bool = False

    @functools.cached_property
    def is_doubtful(self) -> bool:
        """Whether it may be of little use, so it is marked: see `suppress_unreliable.doubtful`."""
        return bool(self.doubts([self])[0])

    @staticmethod
    def doubts(numbers: Sequence["ShownNumber"]) -> np.ndarray:
        """Return which of several are doubtful; of a million at once, not one by one."""
        cells = [(each.value, each.low, each.high, each.rank) for each in numbers]
        value, low, high, rank = np.array(cells, float).reshape(-1, 4).T
        share = np.array([each.share for each in numbers], bool)
        one_sided = np.array([each.beyond is not None for each in numbers], bool)
        wide = doubtful(value, low, high, share=share, one_sided=one_sided)
        return np.asarray(np.isnan(value) | np.where(np.isnan(rank), wide, np.isinf(rank)))

    @property
    def passes_over(self) -> bool:
        """Whether it is shown with the people that it may pass over, on its open side."""
        is_open = (self.low is None) != (self.high is None)
        return is_open and None not in (self.value, self.beyond)

    @property
    def text(self) -> str:
        """The number without its interval, with its mark."""
        mark = MARK * self.is_doubtful
        if self.value is None:
            return MISSING + mark
        return self._written(self.value, decimal.ROUND_HALF_EVEN) + mark

    @property
    def ends(self) -> tuple[str, str]:
        """The two ends as text."""
        return (
            UNKNOWN if self.low is None else self._written(self.low, decimal.ROUND_FLOOR),
            UNKNOWN if self.high is None else self._written(self.high, decimal.ROUND_CEILING),
        )

    def __str__(self) -> str:
        if self.value is None:
            return self.text
        if self.passes_over:
            side = "above" if self.high is None else "below"
            return f"{self.text} (up to {self.beyond:,} people {side})"
        if self.rank is None:
            return f"{self.text} [{', '.join(self.ends)}]"
        off = f"{self.rank:,.0f}" if math.isfinite(self.rank) else UNKNOWN
        return f"{self.text} (rank ±{off})"

    @functools.cached_property
    def _exponent(self) -> int:
        """The place of the last digit that is shown, as a power of ten."""
        ends = [end for end in (self.low, self.high) if end is not None]
        known = ends if self.value is None else [*ends, self.value]
        sizes = map(abs, known)
        size = max((each for each in sizes if each and math.isfinite(each)), default=1.0)
        exponent = math.floor(math.log10(size)) + 1 - _DIGITS
        span = max(known, default=0.0) - min(known, default=0.0)
        if math.isfinite(span) and span > 0:
            digit = math.floor(math.log10(span)) - _BEYOND
            exponent = digit if len(ends) == 2 else max(digit, exponent)
        return max(exponent, 0) if self.whole else exponent

    def _written(self, number: float, rounding: str) -> str:
        """Return a number with its digits, or by powers of ten if they are many."""
        exponent = self._exponent
        if abs(number) >= 10**_LARGE or exponent < -_FINE:
            return f"{number:.4g}"
        digit = decimal.Decimal((0, (1,), exponent))
        text = f"{decimal.Decimal(str(number)).quantize(digit, rounding) + 0:,f}"
        known = self.low is not None or self.high is not None
        return text if known or exponent >= 0 else text.rstrip("0").rstrip(".")


@dataclasses.dataclass(frozen=True)
class ComputedNumber(ShownNumber):
    """A number that is computed of released ones: nothing is stated of its truth.

    Attributes:
        of_doubtful: whether one of these is doubtful.
    """

    of_doubtful: bool = False

    @staticmethod
    def doubts(numbers: Sequence[ShownNumber]) -> np.ndarray:
        """Return which are missing or without end, or computed of doubtful ones."""
        known = np.isfinite(np.array([each.value for each in numbers], float))
        of_doubtful = [getattr(each, "of_doubtful", False) for each in numbers]
        return np.asarray(~known | np.array(of_doubtful, bool))

    def __str__(self) -> str:
        return self.text


def shown(
    value: object,
    low: object = None,
    high: object = None,
    rank: float | None = None,
    whole: bool = False,
    **known: Any,
) -> ShownNumber:
    """Return a number as it stands in a released table; NaN and the infinities become None.

    Args:
        value, low, high, rank, whole: as in `ShownNumber`; an int is whole.
        known: its further attributes.
    """
    number, least, most = map(_finite, (value, low, high))
    return ShownNumber(number, least, most, rank, whole or type(value) is int, **known)


def _finite(cell: object) -> float | None:
    return cell if isinstance(cell, (int, float)) and math.isfinite(cell) else None


def one_line(value: object, most: int = 0) -> str:
    """Return a value as text of one line, of at most `most` columns; 0: of any length."""
    text = "".join(
        sign.encode("unicode_escape").decode() if unicodedata.category(sign) in _HIDDEN else sign
        for sign in str(value)
    )
    if not most or width(text) <= most:
        return text
    while width(text) > most - len(_MORE):
        text = text[:-1]
    return text + _MORE
