"""What `make test` leaves to `make audit`, and examples of hypothesis that are the same in every run.

* The tests of the folders in `EXHAUSTIVE` are audits: whole distributions, whole benchmarks.
* Of a test that is marked `sampled(n)` each n-th case is a test, and the others are audits.
* A test with sizes has a small one and a whole one (`tests.sizes`).

With derandomized examples, a test that fails does so for everybody. Search further with
`python -m pytest --hypothesis-profile default`.
"""

import collections
import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# What is loaded now stays: it is not looked at for garbage, neither now nor between the tests.
gc.disable()
# A worker of pytest-xdist has the width of the terminal; jobs of tests print no narrow tables.
os.environ.pop("COLUMNS", None)
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

TESTS = Path(__file__).parent
EXHAUSTIVE = ("audit", "benchmarks")
WITHOUT_BEAM = ("mechanisms",)


def is_exhaustive(path: Path) -> bool:
    """Return whether all tests of a file are audits."""
    return path.is_relative_to(TESTS) and path.relative_to(TESTS).parts[0] in EXHAUSTIVE


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not load files whose tests are not asked for."""
    left_out = collection_path.is_file() and config.option.markexpr == "not audit"
    return True if left_out and is_exhaustive(collection_path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is for the audit alone, before marks are looked at."""
    counts: collections.Counter[str] = collections.Counter()
    for item in items:
        sampled = item.get_closest_marker("sampled")
        name = item.nodeid.partition("[")[0]
        left_out = sampled is not None and counts[name] % sampled.args[0] != 0
        counts[name] += 1
        if left_out or is_exhaustive(item.path):
            item.add_marker(pytest.mark.audit)


def pytest_collection_finish() -> None:
    """Look for garbage among what the tests make."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="module")
def quick_beam(request: pytest.FixtureRequest) -> Iterator[None]:
    """Build pipelines quickly, but for what is exhaustive."""
    if request.path.relative_to(TESTS).parts[0] in (*WITHOUT_BEAM, *EXHAUSTIVE):
        yield
        return
    from tests.quick_beam import kept_answers

    with kept_answers():
        yield
