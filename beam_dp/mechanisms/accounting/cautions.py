"""Parameters that are allowed and hardly ever meant, each with one line that says why."""

from fractions import Fraction

from beam_dp.mechanisms.accounting.budget import Budget, readable

MOST_EPSILON = 10
"""A person can be told from another with certainty for all that a larger epsilon promises."""
_MOST_RHO = Fraction(MOST_EPSILON**2, 2)
_MOST_DELTA = Fraction(1, 1000)


def cautions(budget: Budget, people: int | None = None) -> tuple[str, ...]:
    """Return a line for each unusual parameter.

    Epsilon 10 allows odds of e^10, 22,026 to 1, on whether somebody is in the data. A rho of
    epsilon^2 / 2 is what epsilon implies at most (Bun and Steinke 2016, Proposition 1.4). A
    mechanism that publishes one random person of n is (0, 1/n)-DP, so that delta must be well below
    1 / people; where these are not known, it is compared with a thousand.

    Args:
        budget: the whole budget.
        people: how many people there are, as far as that is guessed.
    """
    lines = []
    word, most = ("rho", _MOST_RHO) if budget.is_zcdp else ("epsilon", Fraction(MOST_EPSILON))
    if budget.amount > most:
        lines.append(
            f"{word} {readable(budget.amount)} is above {most}: it hardly protects anybody; common "
            "values of epsilon are 0.1 to 3"
        )
    limit = _MOST_DELTA if people is None else Fraction(1, people)
    if float(budget.delta) > float(limit):
        of = "1/1000" if people is None else f"1 / {people} people"
        lines.append(
            f"delta {readable(budget.delta)} is above {of}: so large a delta allows to publish "
            "somebody's rows; take one well below 1 / people, for example 1e-6"
        )
    return tuple(lines)
