"""Stand-ins for the noise, for tests that need to know what comes out."""

import numpy as np

from beam_dp.mechanisms.noise.sampling import Noise


class ZeroNoise(Noise):
    """Noise that is always 0: what is released is what the release computed before its noise."""

    def geometric(self, rate, size):
        """Return zeros."""
        return np.zeros(size, np.int64)

    def discrete_laplace(self, rate, size):
        """Return zeros."""
        return np.zeros(size, np.int64)

    def discrete_gaussian(self, variance, size):
        """Return zeros."""
        return np.zeros(size, np.int64)

    def first_success(self, rate, limit):
        """Return 0 where success is certain, else the limit: no trial of chance succeeds."""
        return 0 if rate <= 0 else limit

    def words(self, size):
        """Return the largest words: no coin that is not certain comes up."""
        return np.full(size, np.iinfo(np.uint64).max, np.uint64)
