"""The content of a page: charts that fit the keys, the table, and all of it as text."""

import base64
import hashlib
import re

import pytest

import beam_dp as dp
from beam_dp.results import report_content
from beam_dp.results.report_content import html, page_of
from tests.results.releases import HOSTILE, HOSTILE_KEYS, METRICS, made


def test_nothing_of_a_key_or_a_name_is_code() -> None:
    metrics = (*METRICS, dp.Sum(HOSTILE, name="x"))
    known = made(HOSTILE_KEYS)
    record = {**known.record, "parameters": {**known.record["parameters"], "person": HOSTILE}}
    record["job"] = {"input": HOSTILE, HOSTILE: HOSTILE}
    page = html(known.table, record, HOSTILE)
    assert page.count("<script") == 1 and "<b>" not in page and "\x1b" not in page
    assert page.count("&lt;script&gt;") > 5 and len(metrics) == 5


def test_the_page_allows_its_own_script_only() -> None:
    page = html(*made(["a"]), "")
    [script] = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
        in page.replace("&#39;", "'")
    )
    assert not re.search(r"(?:src|href)=\"(?!data:,|#)", page) and "url(" not in re.sub(
        r"url\(#\w+\)", "", page
    )


def test_days_make_a_line_and_shops_make_bars() -> None:
    days, shops = (page_of(*made(keys), "") for keys in (["1", "2", "3"], ["x", "y", "z"]))
    assert [figure.name for figure in days.figures] == [
        "sum_spent",
        "median_ms",
        "histogram_age",
        "max_ms",
    ]
    assert "Sum of “spent” by “day”" in [figure.says for figure in days.figures]
    assert days.figures[0].svg != shops.figures[0].svg
    assert any(note.startswith("Hollow, and marked with *") for note in shops.figures[0].notes)
    # No number stands beside the points of a line or the bars of a histogram, and so no mark.
    assert any(note.startswith("Hollow: of little use") for note in days.figures[0].notes)
    for figure in (*days.figures, *(each for each in shops.figures if "histogram" in each.name)):
        assert not any("*" in note for note in figure.notes)


def test_a_mark_is_explained_below_a_chart_that_has_one() -> None:
    """The hopeless number is the last of 40, and the 30 largest are drawn."""
    keys = [f"shop {at}" for at in range(40)]
    table, record = made(keys, metrics=(dp.Sum("spent"),))
    [figure] = page_of(table, record, "").figures
    marked = re.compile(r"\d\*<")
    assert marked.search(figure.svg) and any("marked with *" in note for note in figure.notes)
    column = table.schema.get_field_index("sum_spent")
    small = table.set_column(column, "sum_spent", [[*table["sum_spent"].to_pylist()[:-1], 1.0]])
    [figure] = page_of(small, record, "").figures
    assert not marked.search(figure.svg) and not any("*" in note for note in figure.notes)


@pytest.mark.audit
def test_of_thousands_the_largest_are_drawn_and_the_table_has_the_rest() -> None:
    page = page_of(*made([f"shop {at}" for at in range(6_000)]), "")
    assert (
        page.figures[0].notes[0]
        == "The 30 largest released numbers are drawn; 5,970 more are in the table."
    )
    assert page.figures[2].notes[0].startswith("The 12 partitions with the largest released sums")
    assert len(page.rows) == report_content.MOST_ROWS and page.more_rows == 1_000


def test_cells_are_sorted_by_exact_numbers() -> None:
    page = page_of(*made(["a", "b"]), "")
    key, total, *_ = page.rows[0]
    assert (key.text, key.order) == ("a", "") and total.text == "1,000 [799, 1,321]"
    assert total.order == "1000.0" and not total.doubtful and page.rows[1][1].doubtful
    assert page.rows[1][2].order == "" and page.rows[1][2].is_number


def test_a_release_without_rows_or_without_keys_is_a_page() -> None:
    nothing = html(*made([]), "")
    assert "No partition was released" in nothing and "<svg" not in nothing
    one = page_of(*made([()]), "Visits")
    assert one.title == "Visits" and one.headings[0] == "sum_spent" and len(one.rows) == 1
    assert "rho = 0.5" in html(*made([()]), "")


def test_the_whole_record_is_there() -> None:
    release = made(["a"])
    page = page_of(*release, "")
    assert release.record["code"] in page.record and '"noisy_people"' in page.record
    names = [entry.name for entry in (*page.asked, *page.origin)]
    assert {"person", "metrics", "budget", "python", "beam-dp", "input", "code"} <= set(names)
