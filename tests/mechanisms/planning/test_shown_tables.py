"""Tables of words: in a notebook every cell is text, on a terminal every line has its place."""

import beam_dp as dp
from beam_dp.mechanisms.planning.shown_tables import html_table, text_table, wrapped

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


def test_a_table_for_a_terminal_is_aligned_and_loses_its_last_columns() -> None:
    heading, rows = ("name", "of", "what it is"), [("a", "12,345", "words"), ("bcdef", "1", "")]
    assert text_table(heading, rows) == [
        "name   of      what it is",
        "a      12,345  words",
        "bcdef  1",
    ]
    assert text_table(heading, rows, 24, ">") == [
        "name       of",
        "a      12,345",
        "bcdef       1",
        "... and what it is: the terminal is too",
        "  narrow",
    ]
    assert len(text_table(heading, rows, 25)) == 3
    assert text_table(heading, rows, 1)[0] == "name   of", "two columns stay"


def test_long_words_are_not_broken() -> None:
    word = "ContributionBounds(partitions=3),an_even_longer_word"
    assert wrapped(f"take {word} instead of it", 10).splitlines() == [
        "take",
        f"  {word}",
        "  instead of it",
    ]
    assert wrapped(word, None) == word
