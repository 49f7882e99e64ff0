"""Public partitions and edges of histograms that files hold, on the command line."""

import pytest

from pipelines import aggregate
from tests.pipelines.described import described

PLAN = ["--person", "p", "--epsilon", "1", "--plan"]


@pytest.mark.parametrize("text", ["0..10", "0..10..0", "0..inf..1", "9..0..1", "0..1..1e-9", "1..2..3..4"])  # fmt: skip
def test_wrong_ranges_are_refused(text, refused):
    assert " must be " in refused(aggregate, *PLAN, "--histogram", f"age,edges={text}")


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_keys_in_a_table_are_those_of_the_release(tmp_path, ending):
    text = "else,day\nx,2\ny,7\nx,2\n" if ending == "csv" else '{"day": 2}\n{"day": 7}\n'
    (tmp_path / f"keys.{ending}").write_text(text)
    keys = ["--partition", "day", "--public_partitions", f"@{tmp_path}/keys.{ending}"]
    listed = described(*PLAN, "--count", *keys).release.partitions
    assert listed is not None and tuple(listed.keys) == ((2,), (7,))
