"""Try to refute that a statistic is monotone."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.user_functions import Statistic, check_callable, records
from beam_dp.mechanisms.sensitivity.gradient import minus
from beam_dp.mechanisms.sensitivity.monotone import SetValues
from beam_dp.testing.neighbours import Counterexample, Pair, below, chains, pairs

UNLIMITED = 1 << 62

_PATIENCE = 64  # steps of a descent without a gain


def check_monotone(
    f: Statistic, people: Iterable[Any], attempts: int = 1 << 16
) -> Counterexample | None:
    """Try to find some of these people for whom f falls when one more of them joins.

    With n people and 2^n <= attempts the check looks at all sets: None then *proves* that f is
    monotone on the subsets of these people, and says nothing of other people. With more people it
    draws random chains of sets, each with one person more, and walks from random neighbours towards
    a fall by letting single people in or out: None then proves nothing, and another call may find
    a counterexample. It draws from the operating system; no run can be repeated.

    Args:
        f: a number for a tuple of people's records.
        people: the records; take small, varied ones that are likely to break the claim.
        attempts: at least 1; how many pairs of neighbours are drawn if not all are looked at.

    Raises:
        TypeError, ValueError: for other parameters, or if f returns what is not a number; an error
            that f raises comes through.
    """
    owner = "check_monotone"
    check_callable(owner, "f", f)
    checks.positive_integer(owner, "attempts", attempts)
    values = SetValues(owner, f, records(owner, people), UNLIMITED)
    n = len(values.people)
    looked_at = pairs(n, attempts, n)
    if 1 << n > attempts:
        drawn, walked = pairs(n, attempts - attempts // 2, n), _descents(values)
        looked_at = itertools.chain(drawn, itertools.islice(walked, attempts // 2))
    for pair in looked_at:
        smaller, larger = map(values, pair)
        if smaller > larger:
            people = values.subset(pair[0]), values.subset(pair[1])
            return Counterexample("f(smaller) <= f(larger)", *people, (smaller, larger))
    return None


def _descents(values: SetValues) -> Iterator[Pair]:
    """Yield neighbours S, S + p of random walks on which f(S + p) - f(S) never grows, without end.

    A step lets another person into S or out of it.
    """
    n = len(values.people)
    while True:
        (pair,) = itertools.islice(chains(n, n), 1)
        rise, patience = minus(values(pair[1]), values(pair[0])), _PATIENCE
        while patience:
            yield pair
            bit = 1 << below(n)
            near = pair[0] ^ bit, pair[1] ^ bit
            patience -= 1
            if bit == pair[0] ^ pair[1]:
                continue
            rise_there = minus(values(near[1]), values(near[0]))
            patience = _PATIENCE if rise_there < rise else patience
            if rise_there <= rise:
                pair, rise = near, rise_there
