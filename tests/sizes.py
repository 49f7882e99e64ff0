"""How much a test tries: a part of it in `make test`, all of it in `make audit`."""

import pytest


def tries(part: int, whole: int) -> pytest.MarkDecorator:
    """Give a test the argument `tries`: `part`, and in the audit `whole`."""
    every = pytest.param(whole, marks=pytest.mark.audit)
    return pytest.mark.parametrize("tries", [part, every])
