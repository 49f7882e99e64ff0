"""The counterexample that a check returns for a false claim."""

from dataclasses import dataclass

from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.numerics.user_functions import People


@dataclass(frozen=True)
class Counterexample:
    """People for whom a claim is false.

    Attributes:
        rule: the claim.
        smaller: one record per person.
        larger: the same people and one more; for a rule about one set of people, the same set.
        values: the left and the right side of the rule, which break it.
        at: the k of B[k], or the y of loss(y), where the rule has one.
    """

    rule: str
    smaller: People
    larger: People
    values: tuple[Number, Number]
    at: Number | None = None
