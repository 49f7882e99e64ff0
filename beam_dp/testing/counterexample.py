"""What a check returns where a claim is false."""

from dataclasses import dataclass

from beam_dp.mechanisms.numerics.numbers import Number
from beam_dp.mechanisms.numerics.user_functions import People


@dataclass(frozen=True)
class Counterexample:
    """People for whom a claim is false.

    Attributes:
        rule: the claim.
        smaller: one record per person.
        larger: the same people and one more; for a rule about one set only, that set again.
        values: the two sides of the rule that do not agree with it, left one first.
        at: the k of B[k], or the y of loss(y), where the rule has one.
    """

    rule: str
    smaller: People
    larger: People
    values: tuple[Number, Number]
    at: Number | None = None
