"""The same cells of packings in every run."""

from collections.abc import Iterator
from fractions import Fraction

import pytest

from beam_dp.mechanisms.packing import packing_program


@pytest.fixture(autouse=True, scope="session")
def same_cells() -> Iterator[None]:
    """Take sqrt(2) - 1 for the number that each process draws: small fractions are far from it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing_program, "EDGE", Fraction(414213562373095, 10**15))
        yield
