"""The page: what it says, charts that fit the keys, no key that acts, refusals before it is paid."""

import base64
import hashlib
import html
import importlib.util
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

import beam_dp as dp
from beam_dp.results import report
from beam_dp.results.report import Figure
from beam_dp.results.shown_numbers import ComputedNumber, shown
from beam_dp.results.view import Series, View
from beam_dp.transforms.io.formats import FORMATS
from tests.results.releases import HOSTILE, HOSTILE_KEYS, METRICS, made, record

TRIAL = {"NOT PRIVATE": "a trial: no noise was drawn"}


def page(keys: list[Any], **changed: Any) -> str:
    return dp.Released(*made(keys, **changed)).report()


def words(source: str) -> str:
    """Return what a reader of a page sees, in one line."""
    body = re.sub(r"<(style|script|details).*?</\1>", " ", source, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def figures(keys: list[Any], metrics: tuple[Any, ...] = METRICS) -> list[Figure]:
    return report._figures(View.of(*made(keys, metrics)))


def drawn(values: list[Any]) -> Figure:
    """Return the chart of three numbers each: a value and its interval, or one with neighbours."""
    groups = [
        (v,) if v is None else v if isinstance(v, tuple) else (v, v - 1, v + 2) for v in values
    ]
    numbers = tuple(shown(*group) for group in groups)
    keys = tuple((f"key {at}",) for at in range(len(values)))
    [figure] = report._figures(View({}, ("k",), keys, (Series("n", "Sum", "", "n", "", numbers),)))
    return figure


# ------------------------------------------------------------------------------ what it says


def test_it_says_what_the_numbers_protect():
    said = words(page(["a"]))
    assert "A person is a value of the column “who”, with all rows that have it." in said
    assert "at most 2.72 times as likely" in said and "a chance of at most 1e-6 (delta)." in said
    assert "was chosen privately: those with few people are missing" in said
    one = words(page([()]))
    assert "as zero-concentrated differential privacy says with rho = 0.5." in one
    assert "All rows are one partition" in one and "(delta)" not in one
    parameters = {"partitions": {"type": "PublicPartitions"}, "person": ["a", "b"]}
    said = words(page(["a"], parameters=parameters))
    assert "was settled beforehand" in said
    assert "each row has 2 owners: a and b; each of them is a person" in said


def test_every_cost_is_listed_and_they_are_the_budget():
    section = page(["a"]).partition("What was spent on what")[2].partition("In all:")[0]
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall("<tr><td.*", section)]
    assert len(rows) == len(record()["spent"])
    of_two_norms = [["sum_spent", "clip (L2)"], ["histogram_age", "clip (L2)"]]
    assert [row[:2] for row in rows if row[:2] not in of_two_norms] == [
        ["partitions per person", "all"],
        ["partitions that count for the selection", "all"],
        ["partition selection", "all"],
        ["sum_spent", "noise"],
        ["sum_spent", "clip"],
        ["median_ms", "ranks"],
        ["median_ms", "clip"],
        ["histogram_age", "noise"],
        ["histogram_age", "clip"],
        ["max_ms", "all"],
    ]
    total = sum(float(row[4].split()[1].rstrip(",")) for row in rows)
    assert total == pytest.approx(1, abs=1e-3)


def beware(keys: list[Any], **changed: Any) -> list[str]:
    return [
        html.unescape(said)
        for said in re.findall(r"<strong>Beware:</strong> (.*?)</p>", page(keys, **changed))
    ]


def test_every_warning_has_a_remedy():
    [said] = beware(["a", "b"])
    assert said.startswith("* 6 of 12 numbers may be of little use: they are missing or infinite, ")
    assert said.endswith(" would help.") and "epsilon" not in said
    assert beware(["a"]) == []
    [said] = beware([])
    assert said.startswith("No partition was released. A larger epsilon or delta, ")
    lost = {"pairs_lost_estimate": 1234.5}
    [said] = beware(["a"], partitions_chosen=lost, partitions_of_one_person=4)
    assert "rows in more than 4 partitions: about 1,234 pairs of a person and a partition" in said


def test_a_trial_without_noise_cannot_be_taken_for_a_release():
    said = words(page(["a"], **TRIAL))
    assert said.startswith("NOT PRIVATE. Released statistics")
    assert beware(["a"], **TRIAL) == ["NOT PRIVATE: a trial: no noise was drawn."]
    assert "Nothing and nobody: a trial: no noise was drawn." in said
    assert "with differential privacy" not in said
    released = dp.Released(*made(["a"], **TRIAL))
    assert str(released).endswith("\nNOT PRIVATE: a trial: no noise was drawn")


def test_a_page_begins_with_what_was_measured_and_ends_with_warnings():
    source = page(["a", "b"])
    lead = words(source).partition("What these numbers protect")[0]
    assert "4 statistics of the people in “who” in 2 partitions, by “day”, released on" in lead
    assert re.findall("<h2>(.*?)</h2>", source)[-1] == "Warnings"
    assert source.index("Beware:") > source.index("<h2>Warnings")
    assert "rows without who or day" in words(source)
    assert "<h2>Warnings" not in page(["a"])
    trial = dp.Released(*made(["a"], **TRIAL)).report(title="Visits")
    assert "<h1>NOT PRIVATE. Visits</h1>" in trial and trial.count("Beware:") == 1


@pytest.mark.parametrize(
    ("style", "cell", "example"),
    [
        ("1234,5", "1000 [799; 1321]", "1000 [800; 1300] says: 1000 was"),
        ("1'234.5", "1'000 [799, 1'321]", "1'000 [800, 1'300] says: 1'000 was"),
    ],
)
def test_numbers_have_the_signs_that_were_asked_for(style, cell, example):
    """Keys that look like numbers stay as they are."""
    source = dp.Released(*made(["1,234.5", "x"])).report(number_style=style)
    said = words(source.partition("<h2>What was spent")[0])
    assert f"1,234.5 {cell}" in said and example in said
    assert f"at most 2{'.' if '.5' in style else ','}72 times" in said
    assert not re.search(r"\d,\d{3}", said.replace("1,234.5", ""))


@pytest.mark.parametrize("style", ["1,234,5", "2,345.6", 3])
def test_a_style_that_no_reader_could_tell_apart_is_refused(style):
    with pytest.raises(ValueError, match="number_style must be 1234.5 with the signs"):
        dp.Released(*made(["a"])).report(number_style=style)


# ----------------------------------------------------------------------------- charts and table


def keys_of(figure: Figure) -> list[str]:
    [(_, bars)] = figure.panels
    return [key for key, _ in bars]


def test_bars_stand_in_the_order_of_the_table_and_the_largest_of_thousands_by_size():
    names = ["sum_spent", "median_ms", "histogram_age", "max_ms"]
    assert [figure.name for figure in figures(["x", "y"])] == names
    assert "Sum of “spent” by “day”" in words(page(["x"]))
    assert keys_of(drawn([5.0, 50.0])) == ["key 0", "key 1"]
    many = drawn([float(10 + at) for at in range(3_000)])
    assert keys_of(many) == [f"key {at}" for at in range(2_999, 2_939, -1)]
    assert many.left_out == 2_940
    few = drawn([float(at) if at > 95 else None for at in range(100)])
    assert keys_of(few) == [f"key {at}" for at in range(99, 95, -1)] and few.left_out == 96
    assert "60 largest are drawn, by size; the other 40 are" in words(page([*range(100)]))
    panels = figures([f"shop {at}" for at in range(14)])[2].panels
    assert [name for name, _ in panels] == [f"shop {at}" for at in range(13, 1, -1)]
    bins = [label for label, _ in panels[0][1]]
    assert bins == ["0 to below 18", "18 to below 30", "30 to below 65"]


def test_doubts_can_be_seen_without_color():
    """A number of little use is hollow; an end that is not known is dotted, and has no cap."""
    source = page(["a", "b"])
    charts = source.partition("<h2>Charts")[2].partition("<h2>Table")[0]
    assert charts.count('<rect class="hollow"') == 5 and charts.count("<rect") == 11
    assert charts.count('class="open"') == 5 and charts.count("1,040*") == 5
    assert "Hollow: may be of little use." in charts and "Dotted: nothing is known" in charts
    assert "Hollow" not in page(["a"]).partition("<h2>Charts")[2].replace("hollow", "")


def test_numbers_that_are_missing_or_infinite_do_not_stop_a_chart():
    values = [(None, None, None), (3.0, None, 4.0), (1e308, -1e308, 1e308), (2.0,)]
    figure = drawn(values)
    assert all(1 <= figure.place(n.value) <= 99 for n in figure.numbers if n.value is not None)
    far = drawn([5.0, (5.0, -1e308, 1e308)])
    assert (far.place(0), far.place(7), far.place(1e308), far.place(-1e308)) == (1, 99, 197, -97)
    missing = words(dp.Released(NOTHING, made(["a"], (dp.Median("ms"),)).record).report())
    assert "median_ms Median of “ms” by “day” No number could be released." in missing


NOTHING = made(["a", "b"], (dp.Median("ms"),)).table.slice(1)


@pytest.mark.parametrize("end", [math.inf, -math.inf])
def test_a_number_without_end_leaves_the_others_their_places(end):
    numbers = (ComputedNumber(2.5), ComputedNumber(end))
    panels = [("", list(zip("ab", numbers, strict=True)))]
    figure = Figure("q", Series("q", "", "", "q", "", numbers), "", panels, 0)
    assert figure.place(2.5) == 99 and figure.place(end) in (-97.0, 197.0)


def test_a_release_without_rows_or_without_keys_is_a_page():
    nothing = page([])
    assert "No partition was released" in nothing and "<svg" not in nothing
    assert "<h3>sum_spent</h3>" in page([()]) and "all rows" in page([()])


# ------------------------------------------------------------------------------------- safety


def test_nothing_of_a_key_or_a_name_is_code():
    known = made(HOSTILE_KEYS)
    changed = json.loads(json.dumps(known.record).replace("sum_spent", "sum</td><script>\\u202e"))
    changed["parameters"]["person"] = HOSTILE
    changed["job"] = {"input": HOSTILE, HOSTILE: HOSTILE}
    columns = [
        name.replace("sum_spent", "sum</td><script>\u202e") for name in known.table.column_names
    ]
    source = dp.Released(known.table.rename_columns(columns), changed).report()
    assert source.count("<script") == 1 and "<b>" not in source
    assert "\x1b" not in source and "\u202e" not in source
    assert source.count("&lt;script&gt;") > 5


def test_the_page_allows_its_own_script_only():
    source = page(["a"])
    [script] = re.findall(r"<script>(.*?)</script>", source, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    assert allowed in html.unescape(source)
    assert not re.search(r"(?:src|href)=\"(?!data:,|#)", source) and "url(" not in source


# -------------------------------------------------------------------------------------- files


def test_a_page_of_a_released_file_is_returned_and_written_whole(tmp_path):
    release, written, path = made(["a", "b"]), tmp_path / "out.parquet", tmp_path / "page.html"
    with written.open("wb") as file:
        FORMATS[".parquet"].write(file, release.table)
    Path(f"{written}.json").write_text(json.dumps(release.record))
    path.write_text("older")
    with pytest.raises(ValueError, match=r"report: path must name a new .* Write overwrite=True"):
        dp.Released.read(written).report(path)
    assert path.read_text() == "older"
    source = dp.Released.read(written).report(path, title="Visits", overwrite=True)
    assert source == dp.Released(*release).report(title="Visits")
    assert path.read_text(encoding="utf-8") == source and source.startswith("<!DOCTYPE html>")
    assert "<title>Visits</title>" in source
    assert len([*tmp_path.iterdir()]) == 3


def test_wrong_calls_are_refused():
    with pytest.raises(ValueError, match="report: path must end in .html, not 'page.txt'"):
        dp.Released(*made(["a"])).report("page.txt")
    with pytest.raises(ValueError, match="report: path must be one that can be written"):
        dp.Released(*made(["a"])).report("no/page.html")


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"jinja2 must be installed. Write: pip install jinja2\."):
        dp.Released(*made(["a"])).report()
