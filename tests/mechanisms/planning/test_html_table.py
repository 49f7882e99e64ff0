"""A table of a notebook: every cell is text."""

import beam_dp as dp
from beam_dp.mechanisms.planning.html_table import html_table

HOSTILE = "<script>alert('x')</script>&"


def test_cells_are_escaped() -> None:
    page = html_table(["day", HOSTILE], [("1", HOSTILE)], note=f"a\n{HOSTILE}")
    assert "<script" not in page and page.count("&lt;script&gt;") == 3
    assert page.count("<tr>") == 2 and "a\n&lt;" in page
    assert "<pre" not in html_table(["a"], [("1",)])


def test_a_plan_shows_itself() -> None:
    metrics = [dp.Count(), dp.Sum("<b>")]
    release = dp.PrivateAggregate("who", metrics, dp.Budget(1.0), batches=True)
    page = release.plan()._repr_html_()
    assert page.startswith("<table>") and "sum_&lt;b&gt;" in page and "in all: epsilon 1" in page
    assert "Warning: " in release.plan(people=10, assume={"<b>": 5})._repr_html_()
