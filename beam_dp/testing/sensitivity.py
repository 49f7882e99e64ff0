"""Try to refute that one person moves a statistic by at most what is claimed."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any

from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.integers import Number
from beam_dp.mechanisms.numerics.user_functions import check_callable, records
from beam_dp.mechanisms.sensitivity import histograms, norm
from beam_dp.mechanisms.sensitivity.gradient import Values, check_p, step
from beam_dp.testing.profiles import Counterexample, Pair, below, pairs

_ROUNDING = 1 + Fraction(1, 1 << 40)  # by so much the rounding of floats may exceed a claim

State = tuple[int, ...]
Move = tuple[State, int]
"""A histogram x, and the bin i of the person who joins: the neighbours x and x + e_i."""


def check_sensitivity(
    f: Callable[[Any], Any],
    claimed: checks.Real,
    people: Iterable[Any] | None = None,
    *,
    bins: int | None = None,
    p: checks.Real = 1,
    attempts: int = 1 << 12,
    size: int | None = None,
) -> Counterexample | None:
    """Try to find neighbours between which f moves by more than is claimed, in the p-norm.

    Give either `people`, whose subsets are the databases, or `bins`, for all histograms of up to
    `size` people. If these databases are at most `attempts`, all neighbours among them are looked
    at, and None *proves* the claim for them. Else the attempts are random neighbours: None then
    proves nothing, and another call may find a counterexample.

    Ints and Fractions are compared exactly. Floats may exceed the claim by one part in 10^12, which
    is taken for their rounding (a danger of its own: 2207.10635).

    Args:
        f: a real number, or a flat vector of them, for a tuple of people's records; with `bins`,
            for a histogram (an integer array).
        claimed: the claim: for all neighbours at least the p-norm of f(x) - f(x').
        people: the records; take small, varied ones that are likely to break the claim.
        bins: the length of the histograms.
        p: the norm, from 1 to `math.inf`.
        attempts: at least 1; how many pairs of neighbours are looked at if not all are.
        size: the most people of a database; without it all of `people`, or 32.

    Returns:
        None, or the counterexample: `values` are the norm and the claim, `at` is p. With `bins` a
        person's record is the number of the bin.

    Raises:
        TypeError, ValueError: for other parameters, or if f returns what are not numbers; an error
            that f raises comes through.
    """
    subject = "check_sensitivity"
    check_callable(subject, "f", f)
    power, limit = check_p(subject, p), _limit(subject, claimed)
    checks.positive_integer(subject, "attempts", attempts)
    if size is not None:
        checks.positive_integer(subject, "size", size)
    if (people is None) == (bins is None):
        hint = "Write people=[...] for a function of records, bins=3 for one of histograms."
        raise checks.ParameterTypeError(subject, "either people or bins", "be given", hint)
    if bins is not None:
        universe = tuple(range(checks.positive_integer(subject, "bins", bins)))
        values, moves = Values(subject, f), _moves(bins, size or 32, attempts)
    else:
        universe = records(subject, people if people is not None else ())
        n = len(universe)
        values = Values(subject, lambda x: f(tuple(universe[i] for i in x.nonzero()[0])))
        moves = _joining(n, pairs(n, attempts, min(size or n, n)))
    for x, i in moves:
        moved = norm(values.difference(x, i), power)
        if exceeds(moved, limit):
            smaller, larger = _people(universe, x), _people(universe, step(x, i, 1))
            rule = "|f(larger) - f(smaller)|_p <= claimed"
            return Counterexample(rule, smaller, larger, (moved, limit), power)
    return None


def exceeds(moved: Number, claimed: Number) -> bool:
    """Return whether a norm refutes a claim; a float must exceed it by more than rounding may."""
    if isinstance(moved, float) and claimed != math.inf:
        return moved > Fraction(claimed) * _ROUNDING
    return moved > claimed


def _limit(subject: str, claimed: object) -> Number:
    if isinstance(claimed, float) and claimed == math.inf:
        return math.inf
    exact = checks.number(subject, "claimed", claimed)
    checks.require(exact >= 0, subject, "claimed", f"be at least 0, not {checks.shown(claimed)}")
    return exact.numerator if exact.denominator == 1 else exact


def _people(universe: tuple[Any, ...], x: State) -> tuple[Any, ...]:
    """Return one record per person."""
    pairs = zip(universe, x, strict=True)
    return tuple(itertools.chain.from_iterable([record] * n for record, n in pairs))


def _joining(n: int, neighbours: Iterable[Pair]) -> Iterator[Move]:
    """Yield neighbouring sets of n people as who is in the first, and who joins."""
    for smaller, larger in neighbours:
        if smaller != larger:
            yield tuple(smaller >> i & 1 for i in range(n)), (smaller ^ larger).bit_length() - 1


def _moves(bins: int, size: int, attempts: int) -> Iterator[Move]:
    """Yield all neighbours of at most `size` people if the histograms are few, else random ones."""
    if math.comb(bins + size, bins) > attempts:
        return itertools.islice(_random(bins, size), attempts)
    starts = (x for x in histograms(bins, size) if sum(x) < size)
    return ((x, i) for x in starts for i in range(bins))


def _random(bins: int, size: int) -> Iterator[Move]:
    """Yield random histograms, of all sizes and concentrations alike, and who joins."""
    while True:
        among = [below(bins) for _ in range(1 + below(bins))]
        x: State = (0,) * bins
        for _ in range(below(size)):
            x = step(x, among[below(len(among))], 1)
        yield x, below(bins)
