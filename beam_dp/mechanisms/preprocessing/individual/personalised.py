"""An epsilon for each person: noise of one scale on a g with a Delta per person.

A person's epsilon is public, like the rules of the release, and must not depend on the data: a
person who asks for less because of what the data say about them gives that away.
"""

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks, integers
from beam_dp.mechanisms.numerics.checks import Real
from beam_dp.mechanisms.preprocessing.individual.general import per_person
from beam_dp.mechanisms.search.draws import draw_by_score


@dataclasses.dataclass(frozen=True)
class Personalised:
    """Laplace and exponential mechanisms for |g(D) - g(D - i)| <= Delta_i.

    With b = max_i Delta_i / epsilon_i, for every output o and every person i,

        e^-epsilon_i <= P[M(D) = o] / P[M(D - i) = o] <= e^epsilon_i:

    * `laplace`: integer noise with P(k) proportional to e^(-|k| / b); the ratio is at most
      e^(|g(D) - g(D - i)| / b) <= e^(Delta_i / b) (Cummings, Durfee 2020, Proposition 7.3);
    * `exponential`: an index with probability proportional to e^(score / (2 b)), for scores that
      person i moves by at most Delta_i each: a factor e^(Delta_i / (2 b)) for the weight, and
      another for the sum of weights (Proposition 7.5).

    Person i spends Delta_i / b (`guarantee`): epsilon_i for people who attain the maximum in b,
    less for all others. `proportional` makes it epsilon_i for all.

    Args:
        sensitivities: Delta_i per person, ints of at least 0 in steps of g's grid; not all 0.
        epsilons: what each person allows; above 0, public.

    Raises:
        TypeError: for values that are no numbers, or sensitivities that are no ints.
        ValueError: for values out of range, or lists of different lengths.
    """

    sensitivities: tuple[int, ...]
    epsilons: tuple[Real, ...]

    def __post_init__(self) -> None:
        owner = "Personalised"
        epsilons = _epsilons(owner, self.epsilons)
        steps = per_person(owner, self.sensitivities, len(epsilons))
        if any(type(step) is not int for step in self.sensitivities):
            raise checks.ParameterTypeError(owner, "sensitivities", "be ints, in steps of the grid")
        checks.require(any(steps), owner, "sensitivities", "not all be 0")
        object.__setattr__(self, "sensitivities", tuple(self.sensitivities))
        object.__setattr__(self, "epsilons", epsilons)

    @property
    def scale(self) -> Fraction:
        """The scale b of the noise, in steps."""
        pairs = zip(self.sensitivities, self.epsilons, strict=True)
        return max(step / Fraction(epsilon) for step, epsilon in pairs)

    @property
    def guarantee(self) -> tuple[Fraction, ...]:
        """The epsilon that each person really gets: Delta_i / b, at most epsilon_i."""
        return tuple(step / self.scale for step in self.sensitivities)

    def laplace(self, steps: Sequence[int] | np.ndarray, noise: Noise | None = None) -> np.ndarray:
        """Return numbers plus noise; each number costs person i `guarantee[i]`.

        Args:
            steps: integers, each of which person i moves by at most Delta_i.
            noise: the randomness; the system's by default.
        """
        column = np.asarray(steps)
        drawn = (noise or Noise()).discrete_laplace(1 / self.scale, len(column))
        return integers.add(column, drawn)

    def exponential(self, scores: Sequence[int], noise: Noise | None = None) -> int:
        """Return the index of a high score; the draw costs person i `guarantee[i]`.

        Args:
            scores: at least one integer; person i moves each by at most Delta_i.
            noise: the randomness; the system's by default.
        """
        checks.require(len(scores) > 0, "Personalised", "scores", "not be empty")
        weighed = [(1, -int(score)) for score in scores]
        return draw_by_score(weighed, 1 / (2 * self.scale), noise or Noise())

    def distribution(self, scores: Sequence[int]) -> list[float]:
        """Return the probabilities of `exponential` (each to about 1e-13 of itself), for audits."""
        best = max(scores)
        rate = 1 / (2 * self.scale)
        weights = [math.exp(float((score - best) * rate)) for score in scores]
        whole = math.fsum(weights)
        return [weight / whole for weight in weights]


def proportional(epsilons: Sequence[Real], scale: Real) -> tuple[int, ...]:
    """Return the largest sensitivities for a given noise: Delta_i = epsilon_i scale, rounded down.

    With noise of this scale (in steps) person i spends Delta_i / scale, so these are the largest
    Delta_i that the epsilons allow. Larger Delta_i never raise the bound of `error_bound`
    on |f - g|, so no other choice has a smaller bound at the same noise.

    Edge cases: a person with epsilon_i scale < 1 gets Delta_i = 0, and counts for nothing.

    Args:
        epsilons: what each person allows; above 0, public.
        scale: of the noise, in steps; above 0.
    """
    owner = "proportional"
    width = checks.fraction_between(owner, "scale", scale, 0, math.inf)
    return tuple(math.floor(epsilon * width) for epsilon in _epsilons(owner, epsilons))


def _epsilons(owner: str, epsilons: Sequence[Real]) -> tuple[Fraction, ...]:
    return tuple(
        checks.fraction_between(owner, "epsilons", epsilon, 0, math.inf) for epsilon in epsilons
    )
