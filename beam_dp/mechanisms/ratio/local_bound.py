"""The local sensitivity of a / b, and its maximum over the counts that noisy counts leave possible.

With L rows per person, z = b - a and b > L:

*Add-remove.* Removing i of the ones and j - i of the zeros, j <= L, moves a / b most where all L
rows are of one kind: to (a - L) / (b - L), by L z / (b (b - L)), or to a / (b - L), by
L a / (b (b - L)); adding moves it less (b + L below). Hence

    LS <= L max(a, z) / (b (b - L)),

with equality where the person may have these rows (the article forgets a = 0 and a = b, for which
there is nobody to remove; an upper bound it stays).

*Substitution.* a / b rises most if zeros become ones: to (a + L) / b, by L / b; if there are fewer
than L zeros it rises to 1, by z / b < L / b. It falls by at most L / b likewise. So

    LS <= L / b,

of which add-remove is a special case: L / b bounds that too, and is the lower one at a = 0, a = b.
The article says that its form does not degrade under substitution. The noise on its counts does
not, but its bound must grow: near a = b / 2 it is 1 / (2 b - 2), and the substitution needs 1 / b.

*The maximum over a box.* g(b) = (b - c) / (b (b - L)) for b > L: g' has the sign of
-(b^2 - 2 c b + c L), so g rises between c - s and c + s, s = sqrt(c^2 - c L), and falls elsewhere
(everywhere if c < L); below c - s g is negative. Over the integers of [low, high] its maximum, if
positive, is at low, high, or next to c + s: at floor(c + s) or floor(c + s) + 1.

Source: Harrison, "Privately bounding local sensitivity" (2024), whose code exchanges the lower and
the upper bounds of a, and so bounds nothing: at (a, b) = (500, 2000), epsilon 1, delta 10^-6 it is
below the local sensitivity with probability 0.9999.
"""

import math

Rational = tuple[int, int]
"""top / bottom, bottom > 0; not reduced, for speed."""
Span = tuple[int, int]
"""low <= count <= high."""


def largest_bound(ones: Span, zeros: Span, rows: int) -> Rational:
    """Return the largest add-remove bound over a in `ones` and z in `zeros`.

    ones[0] >= 0, zeros[0] >= 0 and ones[0] + zeros[0] > rows. a / (b (b - L)) with b = a + z falls
    with z; at z = c it is g(b), b from c + ones[0] to c + ones[1]. The other term is its mirror.
    L / (least b) bounds both.
    """
    a, z = ones[0], zeros[0]
    largest = _larger(_peak(z, a + z, z + ones[1], rows), _peak(a, a + z, a + zeros[1], rows))
    top, bottom = rows * largest[0], largest[1]
    return (top, bottom) if top * (a + z) <= rows * bottom else (rows, a + z)


def _peak(c: int, low: int, high: int, rows: int) -> Rational:
    """Return max of (b - c) / (b (b - rows)) over the integers low <= b <= high, low > rows.

    Where no value there is positive, the result may be any of them.
    """
    best = _larger(_slope(c, low, rows), _slope(c, high, rows))
    if c >= rows:
        top = c + math.isqrt(c * (c - rows))
        for b in (top, top + 1):
            if low < b < high:
                best = _larger(best, _slope(c, b, rows))
    return best


def _slope(c: int, b: int, rows: int) -> Rational:
    return b - c, b * (b - rows)


def _larger(one: Rational, other: Rational) -> Rational:
    return one if one[0] * other[1] >= other[0] * one[1] else other
