"""Say what a preprocessed statistic promises, in words and numbers, before any data is read.

Where g = f (proved beside `preprocessing.enough_for_mean` and `enough_for_variance`; for the other
statistics by Lemma 3.6 of Cummings and Durfee 2020, which holds for all: |f - g| is at most the
greatest sum, over the orders in which people may come, of what each moves f beyond Delta):

* mean: range <= n Delta and |mean - empty| <= n Delta;
* variance: range^2 + variance <= n Delta;
* others: nobody, coming to any group of the others, moves f by more than Delta.

The rest of the error is noise of scale Delta / epsilon (zCDP: deviation Delta / sqrt(2 rho)).
"""

from typing import NamedTuple

from beam_dp.mechanisms.additive import AdditiveNoise
from beam_dp.mechanisms.preprocessed import PreprocessedRelease
from beam_dp.mechanisms.tails import laplace_bound
from beam_dp.mechanisms.tiered import TieredRelease

_FINE = 1 << 20  # a Delta in steps of its grid: bounds are told to about a millionth


class Promise(NamedTuple):
    """What a plan says of a preprocessed statistic.

    Attributes:
        scale: of the noise.
        error: the mean absolute noise.
        reason: where g = f, and how far the noise strays.
    """

    scale: str
    error: str
    reason: str


def promise_of(release: PreprocessedRelease) -> Promise:
    """Return the scale of the noise, its mean size, and when nothing else is lost."""
    if isinstance(release, TieredRelease):
        return _tiered(release)
    adder = AdditiveNoise(release.noise_cost)
    bound = adder.bound(_FINE, release.alpha) / _FINE
    given = release.sensitivity
    exact = _exactly(release)
    if given is None:
        factor, per = _delta(release)
        scale, error = f"{adder.scale * factor:.4g} {per}", f"{adder.mean_error * factor:.4g} {per}"
        where = f"Delta = {factor:.4g} {per}; {exact}"
        strays = f"noise within {bound * factor:.4g} {per}"
    else:
        delta = float(given)
        scale, error = f"{adder.scale * delta:.4g}", f"{adder.mean_error * delta:.4g}"
        where, strays = f"Delta = {delta:.4g}; {exact}", f"noise within {bound * delta:.4g}"
    return Promise(scale, f"{error}, and |f - g|", f"{where}; {strays} for 95%")


def _delta(release: PreprocessedRelease) -> tuple[float, str]:
    """Return Delta as a multiple of R / n, for what R and n will be released."""
    if release.statistic.endswith("variance"):
        return 4.0, "R^2/n"
    return float(2 / (1 - 2 * release.trim)), "R/n"


def _exactly(release: PreprocessedRelease) -> str:
    if release.statistic == "mean":
        around = f"|mean - {float(release.empty):g}|"
        return f"g = f where the range and {around} are at most n Delta"
    if release.statistic.endswith("variance"):
        return "g = f where range^2 + variance is at most n Delta"
    return "g = f where nobody, coming to any others, moves f by more than Delta"


def _tiered(release: TieredRelease) -> Promise:
    """Say it in units of Delta, the sensitivity of the person who allows most."""
    rate = release.epsilons[-1]
    scale = f"{float(1 / rate):.4g} Delta"
    parts = ", ".join(f"{float(each / rate):.3g}" for each in release.epsilons)
    bound = laplace_bound(rate / _FINE, release.alpha) / _FINE
    where = f"by epsilon, a person moves g by at most {parts} times Delta"
    return Promise(
        scale, f"{scale}, and |f - g|", f"{where}; noise within {bound:.4g} Delta for 95%"
    )
