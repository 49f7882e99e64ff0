"""Importing the jobs: quietly, and without the garbage collector, which is left as it was."""

import subprocess
import sys

import pytest

STATE = "print(gc.isenabled(), gc.get_freeze_count() > 100_000)"


def said(*lines: str) -> list[str]:
    """Return the words that a process prints which runs these lines."""
    command = [sys.executable, "-c", "\n".join(lines)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stderr == ""
    return found.stdout.split()


@pytest.mark.audit
def test_a_collector_that_was_off_stays_off() -> None:
    assert said("import gc; gc.disable(); import pipelines", STATE) == ["False", "True"]


def test_a_job_makes_columns_without_pandas_until_somebody_asks_for_it() -> None:
    """And the collector is on again, and looks at nothing that was imported."""
    found = said(
        "import gc, sys; sys.argv[0] = 'beam-dp aggregate'; import pipelines, pyarrow",
        STATE,
        "table = pyarrow.table({'day': pyarrow.array([1])}); print('pandas' in sys.modules)",
        "print(table.to_pandas().day[0], 'pandas' in sys.modules)",
    )
    assert found == ["True", "True", "False", "1", "True"]
