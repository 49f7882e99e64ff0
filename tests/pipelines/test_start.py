"""Importing the jobs: quietly, and without the garbage collector, which is left as it was."""

import subprocess
import sys

import pytest

STATE = "import gc; {0}import pipelines; print(gc.isenabled(), gc.get_freeze_count() > 100_000)"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("before", "enabled"), [("", "True"), ("gc.disable(); ", "False")])
def test_the_collector_is_left_as_it_was(before: str, enabled: str) -> None:
    command = [sys.executable, "-c", STATE.format(before)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.split() == [enabled, "True"] and found.stderr == ""


def test_a_job_makes_columns_without_pandas_until_somebody_asks_for_it() -> None:
    lines = (
        "import sys; sys.argv[0] = 'beam-dp aggregate'; import pipelines, pyarrow",
        "table = pyarrow.table({'day': pyarrow.array([1])}); print('pandas' in sys.modules)",
        "print(table.to_pandas().day[0], 'pandas' in sys.modules)",
    )
    command = [sys.executable, "-c", "\n".join(lines)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "1", "True"] and found.stderr == ""
